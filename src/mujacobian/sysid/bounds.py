"""Bounds of the unknowns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, suggestion
from mujacobian.errors import ArgumentError
from mujacobian.sysid.unknowns import Unknowns

Bounds = tuple[ArrayLike, ArrayLike] | Mapping[str, tuple[float, float]]


def read_bounds(unknowns: Unknowns, given: Bounds | None) -> tuple[Array, Array]:
    """Return the lower and upper bounds of all unknowns, by default their own."""
    if given is None:
        return unknowns.lower, unknowns.upper
    if isinstance(given, Mapping):
        lower, upper = _by_name(unknowns, given)
    elif len(given) == 2:
        lower, upper = (np.asarray(bound, np.float64) for bound in given)
    else:
        raise ArgumentError("bounds must be a pair of lower and upper bounds, or pairs by name")
    for name, bound in (("lower", lower), ("upper", upper)):
        if bound.shape != (len(unknowns),) or np.isnan(bound).any():
            raise ArgumentError(f"{name} bounds must be {len(unknowns)} numbers, got {bound}")
    for k, name in enumerate(unknowns.names):
        if not lower[k] < upper[k]:
            raise ArgumentError(
                f"bounds: {name} must have a lower bound below its upper bound, got {lower[k]:g}"
                f" and {upper[k]:g}"
            )
        if lower[k] < unknowns.lower[k] or upper[k] > unknowns.upper[k]:
            own = f"{unknowns.lower[k]:g} to {unknowns.upper[k]:g}"
            raise ArgumentError(f"bounds: {name} must be within {own}")
    return lower, upper


def _by_name(unknowns: Unknowns, given: Mapping[str, tuple[float, float]]) -> tuple[Array, Array]:
    """Return bounds given by the name of an unknown, or of a field for all its unknowns."""
    lower, upper = unknowns.lower, unknowns.upper
    for key, pair in given.items():
        if np.shape(pair) != (2,):
            raise ArgumentError(f"bounds: {key} must have a pair of numbers, got {pair!r}")
        chosen = places_by_name("bounds", unknowns, key)
        lower[chosen], upper[chosen] = pair
    return lower, upper


def places_by_name(argument: str, unknowns: Unknowns, key: str) -> list[int]:
    """Return the places of the unknown with this name, or of all unknowns of this field."""
    fields = [name.partition("[")[0] for name in unknowns.names]
    chosen = [k for k, name in enumerate(unknowns.names) if key in (name, fields[k])]
    if not chosen:
        known = [*unknowns.names, *dict.fromkeys(fields)]
        raise ArgumentError(f"{argument}: there is no parameter {key!r}, {suggestion(key, known)}")
    return chosen
