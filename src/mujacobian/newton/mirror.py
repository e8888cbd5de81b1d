"""MuJoCo models in double precision that are what Newton's worlds are simulated with."""

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
# an angle in single precision that is none
_ROUNDING = 1e-6


def values_of(solver: newton.solvers.SolverMuJoCo, world: int) -> Values:
    """What mujoco_warp has for a world, in single precision."""
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
    """Give a model the new values where they differ from the old ones; by default, its own.

    What does not differ keeps its double precision.
    """
    changed = {
        name
        for name, values in new.items()
        if _write(model, name, values, None if old is None else old[name])
    }
    if changed & {"body_ipos", "body_iquat"}:
        _release_inertial_frames(model)
    if changed & {"geom_pos", "geom_quat", "geom_size"}:
        # the compiler's boxes around geoms are not theirs any more
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
                write(model, values_of(solver, world))
        # derivatives are those of converged solvers and colliders, wherever the simulation's stop
        for model in self.models:
            converge(model)
        self.data = [mujoco.MjData(model) for model in self.models]

    def __iter__(self) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
        return zip(self.models, self.data, strict=True)


def _row(batch: Array, world: int) -> Array:
    """A copy of the values of a world in an array that may have one row for all."""
    return np.array(batch[world % len(batch)])


def _write(model: mujoco.MjModel, name: str, new: Array, old: Array | None) -> bool:
    """Write what differs; whether anything does."""
    part, _, last = name.rpartition(".")  # of opt and stat
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
    """Inertial frames that were those of bodies, geoms or sites may not be so any more."""
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
                "MuJoCo compiled it as simple, its centre of mass at its origin and its axes"
                " principal, and that has changed since: make a new solver",
            )
        model.body_sameframe[body] = _NONE
