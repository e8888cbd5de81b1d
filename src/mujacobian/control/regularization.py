"""Schedule of the regularization of backward passes (ILQ-11)."""

from __future__ import annotations

import math

from mujacobian.errors import ArgumentError


class Regularization:
    """The regularization mu, which increases after failures and decreases after successes.

    The rate of change grows with each change in the same direction.
    """

    def __init__(self, mu: float, bounds: tuple[float, float], factor: float) -> None:
        least, most = bounds
        if not (0 <= least <= most and mu >= 0 and factor > 1):
            raise ArgumentError(
                f"mu must be at least 0, mu_bounds ascending and mu_factor above 1, got mu={mu}, "
                f"mu_bounds={bounds}, mu_factor={factor}"
            )
        self.value, self.rate, self.factor = min(max(mu, least), most), 1.0, factor
        self.bounds = bounds

    @property
    def is_largest(self) -> bool:
        """Whether mu is at its upper bound."""
        return self.value >= self.bounds[1]

    @property
    def is_smallest(self) -> bool:
        """Whether mu is at its lower bound."""
        return self.value <= self.bounds[0]

    def scale(self, factor: float) -> None:
        """Multiply the rate by a factor, and mu by the rate."""
        grow = max if factor > 1 else min
        self.rate = grow(self.rate * factor, factor)
        self.value = min(max(self.value * self.rate, self.bounds[0]), self.bounds[1])

    def adapt(self, ratio: float, size: float) -> None:
        """Update mu after a line search with this step size.

        `ratio` is the actual over the expected improvement.
        """
        ratio = min(max(ratio, 0.0), 2.0)
        if math.isnan(ratio):
            self.scale(self.factor * self.factor)
        elif ratio > 0.5 or (size > 0.3 and ratio > 0):
            self.scale(1 / self.factor)
        elif ratio < 0.1 or size < 0.06:
            self.scale(self.factor)
