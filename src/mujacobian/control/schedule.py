"""Numbers that may depend on time: targets, bounds, and the knots of terms and constraints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array
from mujacobian.errors import ArgumentError

# times (n,) -> one value or row per time
Schedule = Callable[[Array], ArrayLike]

KNOTS = ("all", "last")


def widened(what: str, given: ArrayLike, lead: tuple[int, ...], width: int) -> Array:
    """Return an array of shape `(*lead, width)`; one number per entry of `lead` is repeated.

    `what` is the name of the array in an error.
    """
    array, wanted = np.asarray(given, dtype=np.float64), (*lead, width)
    if array.shape == lead:
        array = np.broadcast_to(array[..., None], wanted)
    if array.shape != wanted:
        raise ArgumentError(f"{what} must have shape {wanted}, got {array.shape}")
    return array


def require_knots(owner: str, knots: str | ArrayLike | Schedule) -> None:
    """Raise unless these are knots of a term or constraint, which `owner` names in an error."""
    if isinstance(knots, str):
        if knots not in KNOTS:
            raise ArgumentError(
                f'{owner}: knots must be "all", "last", factors or a function of times, got '
                f"{knots!r}"
            )
    elif not callable(knots):
        _checked(owner, knots, (np.size(knots),))


def knot_factors(owner: str, knots: str | ArrayLike | Schedule, times: ArrayLike) -> Array:
    """Return the factors of the knots of a plan, `(n,)`.

    The mean over the knots counts the last knot alone once (ILQ-18).
    """
    t = np.asarray(times, dtype=np.float64)
    if callable(knots):
        return _checked(owner, knots(t), (len(t),))
    if not isinstance(knots, str):
        return _checked(owner, knots, (len(t),))
    out = np.ones(len(t))
    if knots == "last":
        out[:-1], out[-1:] = 0, len(t)
    return out


def step_factors(owner: str, knots: str | ArrayLike | Schedule, times: Array) -> Array:
    """Return the factors of simulated steps, `(n,)`, each of which is the first knot of a plan."""
    if callable(knots):
        return knot_factors(owner, knots, times)
    if not isinstance(knots, str):
        return np.full(len(times), np.asarray(knots, dtype=np.float64)[0])
    return np.full(len(times), float(knots == "all"))


def _checked(owner: str, factors: ArrayLike, shape: tuple[int, ...]) -> Array:
    what = f"{owner}: the factors of knots"
    given = np.asarray(factors, dtype=np.float64)
    if given.shape != shape or not given.size:
        raise ArgumentError(f"{what} must have shape {shape}, got {given.shape}")
    for k in np.flatnonzero(~(np.isfinite(given) & (given >= 0))):
        raise ArgumentError(f"{what} must be at least 0, but number {k} is {given[k]}")
    return given
