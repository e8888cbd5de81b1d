"""The numbers of Newton's worlds in a MuJoCo model in double precision."""

from __future__ import annotations

import mujoco
import newton
import numpy as np

from mujacobian._arguments import Array
from mujacobian._parameters.inertia import restore_derived
from mujacobian._parameters.placement import bound_body
from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton.internals import FIELDS, OPTIONS

Values = dict[str, Array]

UNIT = ("body_quat", "body_iquat", "geom_quat", "site_quat", "jnt_axis")
_NONE = int(mujoco.mjtSameFrame.mjSAMEFRAME_NONE)
_INERTIAL = (
    int(mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA),
    int(mujoco.mjtSameFrame.mjSAMEFRAME_INERTIAROT),
)
# rounding of an angle of zero in single precision [rad]
_ROUNDING = 1e-6


def values_of(solver: newton.solvers.SolverMuJoCo) -> Values:
    """Return the model fields of mujoco_warp, in single precision.

    The first axis is the world; it has length one if all worlds share the values.
    """
    warp_model = solver.mjw_model
    found = {
        name: getattr(warp_model, name).numpy()
        for name in FIELDS
        if getattr(solver.mj_model, name).size
    }
    for name in OPTIONS:
        found[f"opt.{name}"] = getattr(warp_model.opt, name).numpy()
    found["opt.impratio"] = warp_model.opt.impratio_invsqrt.numpy() ** -2.0
    found["stat.meaninertia"] = warp_model.stat.meaninertia.numpy()
    return found


def of_world(values: Values, world: int) -> Values:
    """Return a copy of the values of one world."""
    return {name: np.array(batch[world % len(batch)]) for name, batch in values.items()}


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
        release_inertial_frames(model)
    if changed & {"geom_pos", "geom_quat", "geom_size"}:
        release_geom_frames(model)
    if changed:
        restore_derived(model)


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
    if last in UNIT:
        differs = np.broadcast_to(differs.any(axis=-1, keepdims=True), field.shape)
        given = given / np.linalg.norm(given, axis=-1, keepdims=True)
    if field.ndim:
        field[differs] = given[differs]
    else:
        setattr(owner, last, float(given))
    return True


def release_geom_frames(model: mujoco.MjModel) -> None:
    """Clear flags for geoms, and do not use the bounding boxes that MuJoCo compiled."""
    model.geom_sameframe[:] = _NONE
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)


def release_inertial_frames(model: mujoco.MjModel) -> None:
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
