"""The schedule of the regularization of backward passes (ILQ-11)."""

from __future__ import annotations

import math

from mujacobian.errors import ArgumentError


class Regularization:
    """mu, raised where steps fail and lowered where they succeed, faster each time in a row."""

    def __init__(self, mu: float, bounds: tuple[float, float], factor: float) -> None:
        least, most = bounds
        if not (0 <= least <= most and mu >= 0 and factor > 1):
            raise ArgumentError(
                f"mu must be at least 0, its bounds ascending and mu_factor above 1, got mu={mu}, "
                f"mu_bounds={bounds}, mu_factor={factor}"
            )
        self.value, self.rate, self.factor = min(max(mu, least), most), 1.0, factor
        self.bounds = bounds

    @property
    def is_largest(self) -> bool:
        """Whether it cannot be raised any more."""
        return self.value >= self.bounds[1]

    @property
    def is_smallest(self) -> bool:
        """Whether it cannot be lowered any more."""
        return self.value <= self.bounds[0]

    def scale(self, factor: float) -> None:
        """Change the rate by a factor, and the value by the rate."""
        grow = max if factor > 1 else min
        self.rate = grow(self.rate * factor, factor)
        self.value = min(max(self.value * self.rate, self.bounds[0]), self.bounds[1])

    def adapt(self, ratio: float, size: float) -> None:
        """After a search: improvement over what was expected, and the step size."""
        ratio = min(max(ratio, 0.0), 2.0)
        if math.isnan(ratio):
            self.scale(self.factor * self.factor)
        elif ratio > 0.5 or (size > 0.3 and ratio > 0):
            self.scale(1 / self.factor)
        elif ratio < 0.1 or size < 0.06:
            self.scale(self.factor)
