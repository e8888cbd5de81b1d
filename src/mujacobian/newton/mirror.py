"""MuJoCo models in double precision that are what Newton's worlds are simulated with."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import mujoco
import newton
import numpy as np
from numpy.typing import NDArray

from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton.internals import FIELDS, OPTIONS
from mujacobian.parameters import restore_derived

Array = NDArray[np.float64]

_QUATERNIONS = ("body_quat", "body_iquat", "geom_quat", "site_quat")
_INERTIAL_FRAME = ("body_ipos", "body_iquat")
_GEOM_FRAME = ("geom_pos", "geom_quat")
_NONE = int(mujoco.mjtSameFrame.mjSAMEFRAME_NONE)
# an angle in single precision that is none
_ROUNDING = 1e-6


def update(model: mujoco.MjModel, solver: newton.solvers.SolverMuJoCo, world: int) -> None:
    """Give a model what mujoco_warp has for a world, where that differs in single precision.

    What is equal keeps its double precision. `notify_model_changed` of Newton 1.7 itself does this
    in part (`use_mujoco_cpu`) or not at all.
    """
    changed = {name for name, values in _values(solver, world) if _write(model, name, values)}
    for name in OPTIONS:
        _write(model.opt, name, _row(getattr(solver.mjw_model.opt, name).numpy(), world))
    inverse_root = float(_row(solver.mjw_model.opt.impratio_invsqrt.numpy(), world))
    if np.float32(model.opt.impratio**-0.5) != np.float32(inverse_root):
        model.opt.impratio = inverse_root**-2
    model.stat.meaninertia = float(_row(solver.mjw_model.stat.meaninertia.numpy(), world))
    if changed.intersection(_INERTIAL_FRAME):
        _release_inertial_frames(model)
    if changed.intersection((*_GEOM_FRAME, "geom_size")):
        # boxes around geoms were made by the compiler; the spheres are those that Newton uses, too
        model.geom_sameframe[:] = _NONE
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    if changed:
        restore_derived(model)


class Worlds:
    """A model and data in double precision for every world, as they were when this was made."""

    def __init__(self, solver: newton.solvers.SolverMuJoCo) -> None:
        self.models = [copy.copy(solver.mj_model) for _ in range(solver.mjw_data.nworld)]
        if not solver.use_mujoco_cpu:
            for world, model in enumerate(self.models):
                update(model, solver, world)
        self.data = [mujoco.MjData(model) for model in self.models]

    def __iter__(self) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
        return zip(self.models, self.data, strict=True)


def _values(solver: newton.solvers.SolverMuJoCo, world: int) -> Iterator[tuple[str, Array]]:
    for name in FIELDS:
        if getattr(solver.mj_model, name).size:
            yield name, _row(getattr(solver.mjw_model, name).numpy(), world)


def _row(batch: Array, world: int) -> Array:
    """The values of a world in an array that may have one row for all."""
    row: Array = batch[world % len(batch)]
    return row


def _write(owner: Any, name: str, values: Array) -> bool:  # noqa: ANN401
    """Write what differs in single precision; whether anything did."""
    field = np.asarray(getattr(owner, name))
    given = np.asarray(values, dtype=np.float64).reshape(field.shape)
    differs = field.astype(np.float32) != given.astype(np.float32)
    if not differs.any():
        return False
    if name in _QUATERNIONS or name == "jnt_axis":
        differs = np.broadcast_to(differs.any(axis=-1, keepdims=True), field.shape)
        given = given / np.linalg.norm(given, axis=-1, keepdims=True)
    if field.ndim:
        field[differs] = given[differs]
    else:
        setattr(owner, name, float(given))
    return True


def _release_inertial_frames(model: mujoco.MjModel) -> None:
    """Inertial frames that were the bodies' own may not be so any more."""
    for body in np.flatnonzero(model.body_sameframe):
        off = np.abs(model.body_ipos[body]).max() > 0
        turned = np.abs(model.body_iquat[body][1:]).max() > _ROUNDING
        if not (off or turned):
            continue
        if model.body_simple[body]:
            raise UnsupportedFeatureError(
                f'body "{model.body(body).name}"',
                "MuJoCo compiled it as simple, its centre of mass at its origin and its axes"
                " principal, and that has changed since: make a new solver",
            )
        model.body_sameframe[body] = _NONE
