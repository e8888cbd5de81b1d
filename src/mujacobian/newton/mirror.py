"""MuJoCo models in double precision with the numbers of Newton's worlds."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import mujoco
import newton
import numpy as np

from mujacobian._arguments import Array
from mujacobian._convergence import converge
from mujacobian._parameters.inertia import restore_derived
from mujacobian._parameters.placement import bound_body
from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton.internals import FIELDS, OPTIONS

Values = dict[str, Array]

_UNIT = ("body_quat", "body_iquat", "geom_quat", "site_quat", "jnt_axis")
_NONE = int(mujoco.mjtSameFrame.mjSAMEFRAME_NONE)
_INERTIAL = (
    int(mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA),
    int(mujoco.mjtSameFrame.mjSAMEFRAME_INERTIAROT),
)
# rounding of an angle of zero in single precision [rad]
_ROUNDING = 1e-6


def values_of(solver: newton.solvers.SolverMuJoCo, world: int) -> Values:
    """Return the model fields of mujoco_warp for one world, in single precision."""
    warp_model = solver.mjw_model
    found = {
        name: _row(getattr(warp_model, name).numpy(), world)
        for name in FIELDS
        if getattr(solver.mj_model, name).size
    }
    for name in OPTIONS:
        found[f"opt.{name}"] = _row(getattr(warp_model.opt, name).numpy(), world)
    found["opt.impratio"] = _row(warp_model.opt.impratio_invsqrt.numpy(), world) ** -2.0
    found["stat.meaninertia"] = _row(warp_model.stat.meaninertia.numpy(), world)
    return found


def write(model: mujoco.MjModel, new: Values, old: Values | None = None) -> None:
    """Write the new values that differ from the old ones, by default those of the model.

    Values that do not differ keep their double precision.
    """
    changed = {
        name
        for name, values in new.items()
        if _write(model, name, values, None if old is None else old[name])
    }
    if changed & {"body_ipos", "body_iquat"}:
        _release_inertial_frames(model)
    if changed & {"geom_pos", "geom_quat", "geom_size"}:
        # the bounding boxes that MuJoCo compiled are no longer valid
        model.geom_sameframe[:] = _NONE
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    if changed:
        restore_derived(model)


class Worlds:
    """A model and its data in double precision for every world, copied at construction."""

    def __init__(self, solver: newton.solvers.SolverMuJoCo) -> None:
        self.models = [copy.copy(solver.mj_model) for _ in range(solver.mjw_data.nworld)]
        if not solver.use_mujoco_cpu:
            for world, model in enumerate(self.models):
                write(model, values_of(solver, world))
        # derivatives are those of converged solvers and colliders, even if the simulation's stop
        # early
        for model in self.models:
            converge(model)
        self.data = [mujoco.MjData(model) for model in self.models]

    def __iter__(self) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
        return zip(self.models, self.data, strict=True)


def _row(batch: Array, world: int) -> Array:
    """Return a copy of the values of one world; an array may have a single row for all worlds."""
    return np.array(batch[world % len(batch)])


def _write(model: mujoco.MjModel, name: str, new: Array, old: Array | None) -> bool:
    """Write the values that differ; return whether there are any."""
    part, _, last = name.rpartition(".")  # fields of opt and stat have a prefix
    owner = getattr(model, part) if part else model
    field = np.asarray(getattr(owner, last))
    before = (field if old is None else old).astype(np.float32).reshape(field.shape)
    given = new.astype(np.float64).reshape(field.shape)
    differs = before != given.astype(np.float32)
    if not differs.any():
        return False
    if last in _UNIT:
        differs = np.broadcast_to(differs.any(axis=-1, keepdims=True), field.shape)
        given = given / np.linalg.norm(given, axis=-1, keepdims=True)
    if field.ndim:
        field[differs] = given[differs]
    else:
        setattr(owner, last, float(given))
    return True


def _release_inertial_frames(model: mujoco.MjModel) -> None:
    """Clear flags for inertial frames that no longer coincide with bodies, geoms or sites."""
    for kind in ("geom", "site"):
        flags = getattr(model, f"{kind}_sameframe")
        flags[np.isin(flags, _INERTIAL)] = _NONE
    for each in range(1, model.nbody):
        bound_body(model, each)
    for body in np.flatnonzero(model.body_sameframe):
        off = np.abs(model.body_ipos[body]).max() > 0
        turned = np.abs(model.body_iquat[body][1:]).max() > _ROUNDING
        if not (off or turned):
            continue
        if model.body_simple[body]:
            raise UnsupportedFeatureError(
                f'body "{model.body(body).name}"',
                "MuJoCo compiled it as a simple body, with its center of mass at its origin and"
                " principal axes, and an edit has changed that: make a new solver",
            )
        model.body_sameframe[body] = _NONE
