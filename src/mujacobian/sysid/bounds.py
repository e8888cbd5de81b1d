"""Bounds of the parameters to identify."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, suggestion
from mujacobian._parameters import Parameters
from mujacobian.errors import ArgumentError

Bounds = tuple[ArrayLike, ArrayLike] | Mapping[str, tuple[float, float]]


def read_bounds(parameters: Parameters, given: Bounds | None) -> tuple[Array, Array]:
    """Return the lower and upper bounds of all parameters, by default those of `parameters`."""
    if given is None:
        return parameters.lower, parameters.upper
    if isinstance(given, Mapping):
        lower, upper = _by_name(parameters, given)
    elif len(given) == 2:
        lower, upper = (np.asarray(bound, np.float64) for bound in given)
    else:
        raise ArgumentError("bounds must be a pair of lower and upper bounds, or pairs by name")
    for name, bound in (("lower", lower), ("upper", upper)):
        if bound.shape != (len(parameters),) or np.isnan(bound).any():
            raise ArgumentError(f"{name} bounds must be {len(parameters)} numbers, got {bound}")
    for k, name in enumerate(parameters.names):
        if not lower[k] < upper[k]:
            raise ArgumentError(
                f"bounds: {name} must have a lower bound below its upper bound, got {lower[k]:g}"
                f" and {upper[k]:g}"
            )
        if lower[k] < parameters.lower[k] or upper[k] > parameters.upper[k]:
            own = f"{parameters.lower[k]:g} to {parameters.upper[k]:g}"
            raise ArgumentError(f"bounds: {name} must be within {own}")
    return lower, upper


def _by_name(
    parameters: Parameters, given: Mapping[str, tuple[float, float]]
) -> tuple[Array, Array]:
    """Return bounds given by the name of a parameter, or of a field for all its parameters."""
    lower, upper = parameters.lower, parameters.upper
    fields = [name.partition("[")[0] for name in parameters.names]
    for key, pair in given.items():
        if np.shape(pair) != (2,):
            raise ArgumentError(f"bounds: {key} must have a pair of numbers, got {pair!r}")
        chosen = [k for k, name in enumerate(parameters.names) if key in (name, fields[k])]
        if not chosen:
            known = [*parameters.names, *dict.fromkeys(fields)]
            raise ArgumentError(f"bounds: there is no parameter {key!r}, {suggestion(key, known)}")
        lower[chosen], upper[chosen] = pair
    return lower, upper
