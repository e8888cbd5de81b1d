"""The constants that `mj_setConst` derives from a model and that steps and sensors read."""

from __future__ import annotations

import copy

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._parameters.fields import KINDS
from mujacobian.errors import ArgumentError

# parameters of the core on which derived constants depend
INERTIAL, ARMATURE = KINDS["inertial"], KINDS["armature"]
BODY_POSITION, BODY_ROTATION = KINDS["body_position"], KINDS["body_rotation"]
BODY_OFFSET, BODY_TURN = KINDS["body_offset"], KINDS["body_turn"]
JOINT_POSITION, JOINT_AXIS = KINDS["joint_position"], KINDS["joint_axis"]
FRAMES = (BODY_POSITION, BODY_ROTATION, BODY_OFFSET, BODY_TURN, JOINT_POSITION, JOINT_AXIS)
# the derived constants, as parameters of the core
DOF, BODY, TENDON = KINDS["dof_weight"], KINDS["body_weight"], KINDS["tendon_weight"]
LENGTH, ACTUATOR, ANCHOR = KINDS["tendon_length"], KINDS["actuator_weight"], KINDS["anchor"]

Raw = tuple[int, int, int]  # kind, element, component

# mj_setConst writes these fields. It also writes statistics, which an XML file may override, fields
# of cameras and lights that follow a body, and damping that an XML file gives as a ratio.
_FIELDS = (
    "body_subtreemass",
    "body_invweight0",
    "dof_invweight0",
    "dof_M0",
    "tendon_length0",
    "tendon_invweight0",
    "actuator_length0",
    "actuator_acc0",
)
# mj_setConst computes them from the following fields, which can be edited in a compiled model.
_INPUTS = (
    "qpos0",
    "body_mass",
    "body_ipos",
    "body_iquat",
    "body_inertia",
    "body_pos",
    "body_quat",
    "jnt_pos",
    "jnt_axis",
    "dof_armature",
    "geom_pos",
    "geom_quat",
    "geom_size",
    "site_pos",
    "site_quat",
    "tendon_armature",
    "wrap_prm",
    "eq_data",
    "eq_type",
    "eq_objtype",
    "eq_obj1id",
    "eq_obj2id",
    "actuator_gear",
    "actuator_armature",
    "actuator_cranklength",
    "actuator_trnid",
    "actuator_trntype",
)
_FLAGS = ("body_sameframe", "geom_sameframe", "site_sameframe")
_CONNECT, _WELD, _JOINT, _TENDON = (
    int(getattr(mujoco.mjtEq, f"mjEQ_{name}")) for name in ("CONNECT", "WELD", "JOINT", "TENDON")
)
_OF_BODIES = int(mujoco.mjtObj.mjOBJ_BODY)
_DIAG_EXACT = int(getattr(mujoco.mjtEnableBit, "mjENBL_DIAGEXACT", 0))


class Scratch:
    """Copies of a model for `mj_setConst`, kept because a copy takes longer than the call.

    They may be copies of other models that differ only in `_INPUTS` and in fields that
    `mj_setConst` does not read.
    """

    def __init__(self) -> None:
        self._idle: list[mujoco.MjModel] = []

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return Scratch, ()  # copies of parameters start with an empty list

    def recompute(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Update the derived constants of an edited model as `mj_setConst` does.

        `data` may be in any state and is overwritten. The result is False if `mj_setConst` treats
        frames as equal that are not: its tolerance is 1e-6.
        """
        try:
            fresh = self._idle.pop()
        except IndexError:  # other threads use all of them
            fresh = copy.copy(model)
        for name in _INPUTS:
            getattr(fresh, name)[:] = getattr(model, name)
        mujoco.mj_resetData(fresh, data)
        try:
            mujoco.mj_setConst(fresh, data)
        except mujoco.FatalError as error:
            raise ArgumentError(f"these values have no derived constants: {error}") from error
        for name in _FIELDS:
            getattr(model, name)[:] = getattr(fresh, name)
        connects = (model.eq_type == _CONNECT) & (model.eq_objtype == _OF_BODIES)
        model.eq_data[connects, 3:6] = fresh.eq_data[connects, 3:6]
        same = all(np.array_equal(getattr(model, name), getattr(fresh, name)) for name in _FLAGS)
        self._idle.append(fresh)
        return same


def write_constants(model: mujoco.MjModel, constants: list[Raw], values: Array) -> None:
    """Write values of derived constants into the model."""
    for (kind, element, component), value in zip(constants, values, strict=True):
        if kind == DOF:
            model.dof_invweight0[element] = value
        elif kind == BODY:
            model.body_invweight0[element, component] = value
        elif kind == TENDON:
            model.tendon_invweight0[element] = value
        elif kind == LENGTH:
            model.tendon_length0[element] = value
        elif kind == ACTUATOR:
            model.actuator_acc0[model.actuator_outadr[element]] = value
        else:
            model.eq_data[element, 3 + component] = value


def depends_on(core: list[Raw]) -> bool:
    """Return whether derived constants depend on some of the core's parameters."""
    return any(kind in (INERTIAL, ARMATURE, *FRAMES) for kind, _, _ in core)


def derived_constants(model: mujoco.MjModel, core: list[Raw]) -> list[Raw]:
    """Return the derived constants that steps read and that depend on the core's parameters."""
    if not depends_on(core):
        return []
    frames = any(kind in FRAMES for kind, _, _ in core)
    result = [(ACTUATOR, a, 0) for a in _muscles(model)]
    if not (model.opt.enableflags & _DIAG_EXACT):
        trees, of_dof, of_body = _trees(model, core), model.dof_treeid, model.body_treeid
        result += [(DOF, d, 0) for d in sorted(_dofs(model)) if of_dof[d] in trees]
        result += [(BODY, b, k) for b, k in sorted(_bodies(model)) if of_body[b] in trees]
        result += [(TENDON, t, 0) for t in sorted(_tendons(model))]
    if frames:
        result += [(LENGTH, t, 0) for t in sorted(_coupled(model, _TENDON))]
        result += [
            (ANCHOR, e, k)
            for e in np.flatnonzero(model.eq_type == _CONNECT).tolist()
            for k in range(3)
            if model.eq_objtype[e] == _OF_BODIES
        ]
    return result


def structure_key(model: mujoco.MjModel) -> bytes:
    """Return what `derived_constants` reads of a model and its signature does not cover."""
    arrays = (
        [model.opt.enableflags & _DIAG_EXACT],
        model.jnt_limited,
        model.dof_frictionloss > 0,
        model.tendon_limited,
        model.tendon_frictionloss > 0,
        model.eq_type,
        model.eq_objtype,
        model.eq_obj1id,
        model.eq_obj2id,
        model.geom_contype,
        model.geom_conaffinity,
        model.pair_geom1,
        model.pair_geom2,
        model.actuator_gaintype,
        model.actuator_biastype,
        model.actuator_gainprm[:, 2] < 0,
        model.actuator_biasprm[:, 2] < 0,
        model.body_simple,
    )
    return b"".join(np.asarray(array).tobytes() for array in arrays)


def _trees(model: mujoco.MjModel, core: list[Raw]) -> set[int]:
    """Return the trees whose inertia matrices depend on the core's parameters; with frames, all."""
    elements = {(kind, element) for kind, element, _ in core}
    if any(kind in FRAMES for kind, _ in elements):
        return set(range(model.ntree))
    dofs = [element for kind, element in elements if kind == ARMATURE]
    bodies = [element for kind, element in elements if kind == INERTIAL]
    return {*model.dof_treeid[dofs].tolist(), *model.body_treeid[bodies].tolist()}


def _coupled(model: mujoco.MjModel, kind: int) -> set[int]:
    """Return the joints or tendons that equalities couple."""
    of_kind = model.eq_type == kind
    ids = np.concatenate([model.eq_obj1id[of_kind], model.eq_obj2id[of_kind]])
    return set(ids[ids >= 0].tolist())


def _dofs(model: mujoco.MjModel) -> set[int]:
    """Return the dofs whose weights scale rows of dry friction, limits and joint equalities."""
    joints = {*np.flatnonzero(model.jnt_limited).tolist(), *_coupled(model, _JOINT)}
    frictional = np.flatnonzero(model.dof_frictionloss > 0).tolist()
    return {*frictional, *(int(model.jnt_dofadr[j]) for j in joints)}


def _tendons(model: mujoco.MjModel) -> set[int]:
    rows = model.tendon_limited.astype(bool) | (model.tendon_frictionloss > 0)
    return {*np.flatnonzero(rows).tolist(), *_coupled(model, _TENDON)}


def _bodies(model: mujoco.MjModel) -> set[tuple[int, int]]:
    """Return bodies with contacts or equalities, and 0 (translation) or 1 (rotation of welds)."""
    colliding = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    geoms = {*np.flatnonzero(colliding).tolist(), *model.pair_geom1, *model.pair_geom2}
    result = {(int(model.geom_bodyid[g]), 0) for g in geoms}
    for e in np.flatnonzero(np.isin(model.eq_type, (_CONNECT, _WELD))):
        for element in (model.eq_obj1id[e], model.eq_obj2id[e]):
            of_bodies = model.eq_objtype[e] == _OF_BODIES
            body = int(element if of_bodies else model.site_bodyid[element])
            result |= {(body, k) for k in range(2 if model.eq_type[e] == _WELD else 1)}
    # bodies that cannot move have the weight zero
    return {(b, k) for b, k in result if model.body_dofnum[model.body_weldid[b]] > 0}


def _muscles(model: mujoco.MjModel) -> list[int]:
    """Return the muscles whose largest force is a number divided by actuator_acc0."""
    scaled = (model.actuator_gaintype == int(mujoco.mjtGain.mjGAIN_MUSCLE)) & (
        model.actuator_gainprm[:, 2] < 0
    )
    scaled |= (model.actuator_biastype == int(mujoco.mjtBias.mjBIAS_MUSCLE)) & (
        model.actuator_biasprm[:, 2] < 0
    )
    return np.flatnonzero(scaled).tolist()
