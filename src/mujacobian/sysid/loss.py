"""Robust losses, which limit the effect of outliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mujacobian._arguments import Array
from mujacobian.errors import ArgumentError

# Scales, in units of the noise, with 95 % of the efficiency of least squares for normal noise.
SCALES = {"huber": 1.345, "cauchy": 2.385}


@dataclass(frozen=True)
class Loss:
    """The loss rho of a residual r: for small r it is r^2, and large r count less (SID-8).

    Attributes:
      name: "huber" (linear beyond the scale) or "cauchy" (logarithmic).
      scale: residual, in units of the noise, at which the loss leaves the square.
    """

    name: str
    scale: float

    def influence(self, r: Array) -> tuple[Array, Array, Array]:
        """Return rho, its half derivative psi, and the derivative of psi."""
        c = self.scale
        if self.name == "huber":
            inside, size = np.abs(r) <= c, np.abs(r)
            rho = np.where(inside, r * r, 2 * c * size - c * c)
            return rho, np.where(inside, r, c * np.sign(r)), inside.astype(np.float64)
        z = (r / c) ** 2
        return c * c * np.log1p(z), r / (1 + z), (1 - z) / (1 + z) ** 2

    def transform(self, rows: Array) -> None:
        """Replace residuals r in the last column by sign(r) sqrt(rho(r)), and their slopes.

        The sum of squares is then the loss, and Gauss-Newton has its exact gradient (SID-8).
        """
        r = rows[:, -1].copy()
        rho, psi, _ = self.influence(r)
        root = np.sign(r) * np.sqrt(rho)
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = np.where(root == 0, 1.0, psi / root)
        rows[:, :-1] *= slope[:, None]
        rows[:, -1] = root

    def variance(self, residuals: Array, degrees_of_freedom: int) -> float:
        """Return the factor of the covariance of an M-estimate (SID-9)."""
        _, psi, slope = self.influence(residuals)
        return float(psi @ psi / degrees_of_freedom / slope.mean() ** 2)


def read_loss(name: str, scale: float | None) -> Loss | None:
    """Return the loss of this name; None for squares."""
    if name == "squares":
        if scale is not None:
            raise ArgumentError('loss_scale needs a robust loss: use loss="huber"')
        return None
    if name not in SCALES:
        known = ", ".join(["squares", *SCALES])
        raise ArgumentError(f"loss must be one of {known}, got {name!r}")
    chosen = SCALES[name] if scale is None else float(scale)
    if not 0 < chosen < np.inf:
        raise ArgumentError(f"loss_scale must be positive, got {chosen:g}")
    return Loss(name, chosen)
