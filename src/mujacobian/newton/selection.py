"""The arrays of a model whose gradients can be computed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import mujoco
import newton

from mujacobian import _core
from mujacobian._parameters.derived import derived_constants
from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton import effort_limits
from mujacobian.newton.internals import Maps
from mujacobian.newton.parameters import (
    ARRAYS,
    KNOWN,
    NAMED,
    CoreParameters,
    WorldParameters,
    array_of,
)

DEFAULT = tuple(name for name in KNOWN if name not in NAMED)


def select(
    model: newton.Model, maps: Maps, mj: mujoco.MjModel, wanted: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the names of the arrays whose gradients are computed.

    By default, arrays without a derivative in this model are left out, with one warning. So are
    poses and sizes of shapes and frames of joints, without a warning. An array that is wanted and
    has no derivative raises `UnsupportedFeatureError`.
    """
    found, reasons = [], []
    for name in DEFAULT if wanted is None else wanted:
        array = array_of(model, name)
        if array is None or not array.size:
            continue
        try:
            _require(model, maps, mj, name)
        except UnsupportedFeatureError as error:
            if wanted is not None:
                raise
            if array.requires_grad:
                reasons.append(f"{name} ({error})")
            continue
        found.append(name)
    if reasons:
        warnings.warn(
            f"these arrays of the model have no gradients: {'; '.join(reasons)}. Name the arrays"
            " that need gradients in parameters= to silence this warning",
            RuntimeWarning,
            stacklevel=3,
        )
    return tuple(found)


def _require(model: newton.Model, maps: Maps, mj: mujoco.MjModel, name: str) -> None:
    """Raise if the derivative with respect to an array is not supported in the model."""
    if name == effort_limits.NAME:
        effort_limits.require_effort_limits(mj, maps)
    core = CoreParameters()
    ARRAYS[name](WorldParameters(model, maps, mj, 0, core), name)
    _core.require_parameters(mj, [*core.items, *derived_constants(mj, core.items)])
