"""Bounds of controls."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array
from mujacobian.errors import ArgumentError, MujacobianError


class InfeasibleBoundsError(MujacobianError, ValueError):
    """Bounds that no control satisfies."""


def control_bounds(
    model: mujoco.MjModel, lower: ArrayLike | None = None, upper: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Return the given bounds, by default `ctrlrange`, or infinity for unlimited controls."""
    ranges = np.full((model.nu, 2), [-np.inf, np.inf])
    limited = np.flatnonzero(model.actuator_ctrllimited)
    ranges[limited] = model.actuator_ctrlrange[limited]
    bounds = []
    for name, given, own in (("lower", lower, ranges[:, 0]), ("upper", upper, ranges[:, 1])):
        array = own if given is None else np.asarray(given, dtype=np.float64)
        if array.shape != (model.nu,) or np.isnan(array).any():
            raise ArgumentError(f"{name} must be {model.nu} numbers, got {given!r}")
        bounds.append(np.ascontiguousarray(array))
    least, most = bounds[0], bounds[1]
    for k in np.flatnonzero((least > most) | (least == np.inf) | (most == -np.inf)):
        raise InfeasibleBoundsError(
            f"control {k} cannot be between {least[k]} and {most[k]}: lower must not be above upper"
        )
    return least, most
