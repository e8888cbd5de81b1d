"""The private parts of Newton and Warp that the bridge uses.

They were read in Newton 1.7 with Warp 1.19. `require_versions` raises for other versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import mujoco
import newton
import numpy as np
import warp as wp
from numpy.typing import NDArray

from mujacobian.errors import MujacobianError

Indices = NDArray[np.intp]

# the versions that the extra mujacobian[newton] installs
VERSIONS = {"newton": "1.7", "mujoco": "3.15", "mujoco-warp": "3.15", "warp-lang": "1.19"}

# mjc_actuator_ctrl_source of actuators that follow a joint target; others have a direct control
_TARGET = 0

# fields of mjModel that Newton writes from its own model, and that may differ between worlds
FIELDS = (
    "qpos0",
    "qpos_spring",
    "body_pos",
    "body_quat",
    "body_ipos",
    "body_iquat",
    "body_mass",
    "body_subtreemass",
    "body_inertia",
    "body_invweight0",
    "body_gravcomp",
    "jnt_solref",
    "jnt_solimp",
    "jnt_pos",
    "jnt_axis",
    "jnt_stiffness",
    "jnt_range",
    "jnt_actfrcrange",
    "jnt_margin",
    "dof_armature",
    "dof_damping",
    "dof_invweight0",
    "dof_frictionloss",
    "dof_solimp",
    "dof_solref",
    "geom_solmix",
    "geom_solref",
    "geom_solimp",
    "geom_size",
    "geom_pos",
    "geom_quat",
    "geom_friction",
    "geom_margin",
    "geom_gap",
    "site_pos",
    "site_quat",
    "eq_solref",
    "eq_solimp",
    "eq_data",
    "actuator_gainprm",
    "actuator_biasprm",
    "actuator_dynprm",
    "actuator_ctrlrange",
    "actuator_forcerange",
    "actuator_actrange",
    "actuator_gear",
    "actuator_cranklength",
    "actuator_acc0",
    "actuator_lengthrange",
    "pair_solref",
    "pair_solreffriction",
    "pair_solimp",
    "pair_margin",
    "pair_gap",
    "pair_friction",
    "tendon_solref_lim",
    "tendon_solimp_lim",
    "tendon_solref_fri",
    "tendon_solimp_fri",
    "tendon_range",
    "tendon_actfrcrange",
    "tendon_margin",
    "tendon_stiffness",
    "tendon_damping",
    "tendon_armature",
    "tendon_frictionloss",
    "tendon_lengthspring",
    "tendon_length0",
    "tendon_invweight0",
)
OPTIONS = ("gravity", "wind", "magnetic", "density", "viscosity")


def require_versions() -> None:
    """Raise unless the installed versions are the ones in `VERSIONS`."""
    for name, wanted in VERSIONS.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "none"
        if not found.startswith(f"{wanted}."):
            raise MujacobianError(
                f"mujacobian.newton needs {name} {wanted}, which Newton {VERSIONS['newton']} pins,"
                f" and found {found}: pip install 'mujacobian[newton]'"
            )


@contextmanager
def suspended_tape() -> Iterator[wp.Tape | None]:
    """Suspend the active tape, if there is one, and yield it."""
    runtime = wp._src.context.runtime
    tape, runtime.tape = runtime.tape, None
    try:
        yield tape
    finally:
        runtime.tape = tape


def adjoint_launches(tape: wp.Tape) -> list[wp.Launch]:
    """Return launches that run the adjoint of a tape of kernels and can be reused.

    Running them takes a tenth of the time of `tape.backward`.
    """
    return [
        wp.launch(
            kernel,
            dim=dim,
            inputs=inputs,
            outputs=outputs,
            adj_inputs=[tape.get_adjoint(each) for each in inputs],
            adj_outputs=[tape.get_adjoint(each) for each in outputs],
            device=device,
            adjoint=True,
            record_cmd=True,
            max_blocks=max_blocks,
        )
        for kernel, dim, max_blocks, inputs, outputs, device, *_ in reversed(tape.launches)
    ]


@dataclass(frozen=True)
class Actuators:
    """The sources of MuJoCo's controls, as indices within a world.

    For targets of ball joints, `axis` is the component and `joint` is the ball joint.
    """

    position: Indices  # (n, 2): actuator, number in joint_target_q
    velocity: Indices  # (n, 2): actuator, number in joint_target_qd
    direct: Indices  # (n, 2): actuator, number in control.mujoco.ctrl
    ball_position: Indices  # (n, 4): actuator, first number in joint_target_q, axis, joint
    ball_velocity: Indices  # (n, 4): actuator, first number in joint_target_qd, axis, joint
    position_dofs: tuple[tuple[int, int], ...]  # actuator, dof, of all position targets
    velocity_dofs: tuple[tuple[int, int], ...]  # actuator, dof, of all velocity targets


@dataclass(frozen=True)
class Maps:
    """Index maps between Newton and MuJoCo, within a world; -1 where there is no counterpart."""

    worlds: int
    q_start: Indices  # first index in qpos of each Newton joint
    v_start: Indices  # first index in qvel of each Newton joint
    dof: Indices  # Newton dof of each MuJoCo dof
    joint_dof: Indices  # first Newton dof of each MuJoCo joint
    body: Indices  # Newton body of each MuJoCo body
    shape: Indices  # (worlds, ngeom): Newton shape of each MuJoCo geom
    placing: Indices  # Newton joint whose frames determine the pose of each MuJoCo body
    loops: bool  # whether joints close loops
    equality: Indices  # Newton equality of each MuJoCo equality
    raw_equalities: bool  # whether Newton replaces data of equalities that MuJoCo has compiled
    mimic: Indices  # Newton mimic constraint of each MuJoCo equality
    joint_mimic: Indices  # Newton joint that follows another one, of each MuJoCo equality
    tendon: Indices  # Newton tendon of each MuJoCo tendon
    actuator: Indices  # Newton actuator of each MuJoCo control
    actuators: Actuators


def read_maps(solver: newton.solvers.SolverMuJoCo) -> Maps:
    """Return the index maps that the solver has made for its model."""
    mj, worlds = solver.mj_model, solver.mjw_data.nworld
    return Maps(
        worlds=worlds,
        q_start=_indices(solver.mj_q_start),
        v_start=_indices(solver.mj_qd_start),
        dof=_first_world(solver.mjc_dof_to_newton_dof, mj.nv),
        joint_dof=_first_world(solver.mjc_jnt_to_newton_dof, mj.njnt),
        body=_first_world(solver.mjc_body_to_newton, mj.nbody),
        shape=_indices(solver.mjc_geom_to_newton_shape).reshape(worlds, mj.ngeom),
        placing=_placing_joints(solver),
        loops=_has_loops(solver),
        equality=_first_world(solver.mjc_eq_to_newton_eq, mj.neq),
        raw_equalities=solver.use_mujoco_cpu,
        mimic=_first_world(solver.mjc_eq_to_newton_mimic, mj.neq),
        joint_mimic=_first_world(solver.mjc_eq_to_newton_joint_mimic, mj.neq),
        tendon=_first_world(solver.mjc_tendon_to_newton_tendon, mj.ntendon),
        actuator=(
            np.full(mj.nu, -1)
            if solver.mjc_actuator_to_newton_actuator_idx is None
            else _indices(solver.mjc_actuator_to_newton_actuator_idx)
        ),
        actuators=_read_actuators(solver),
    )


def _has_loops(solver: newton.solvers.SolverMuJoCo) -> bool:
    """Return whether joints close loops: connects with a joint, or welds of fixed joints."""
    mj = solver.mj_model
    joints = solver.mjc_eq_to_newton_jnt
    equalities = _first_world(solver.mjc_eq_to_newton_eq, mj.neq)
    fixed = (mj.eq_type == int(mujoco.mjtEq.mjEQ_WELD)) & (equalities < 0)
    return bool(fixed.any()) or (joints is not None and bool((_indices(joints) >= 0).any()))


def _placing_joints(solver: newton.solvers.SolverMuJoCo) -> Indices:
    """Return the joint of the tree, or of a fixed root, that places each MuJoCo body."""
    mj, child = solver.mj_model, _indices(solver.model.joint_child)
    bodies = _first_world(solver.mjc_body_to_newton, mj.nbody)
    mocap = _first_world(solver.mjc_mocap_to_newton_jnt, mj.nmocap)
    of_body = {child[j]: j for j in np.flatnonzero(_indices(solver.mj_q_start) >= 0).tolist()}
    of_body |= {child[j]: int(j) for j in mocap if j >= 0}
    return np.array([of_body.get(body, -1) for body in bodies.tolist()])


def contact_slots(solver: newton.solvers.SolverMuJoCo, count: int) -> Indices:
    """Return the index in mujoco_warp's contacts of each contact of Newton, -1 if it has none."""
    return _indices(solver._contact_tid_to_cid)[: min(count, solver.mjw_data.naconmax)]


def _indices(array: wp.array) -> Indices:
    indices: Indices = array.numpy().astype(np.intp)
    return indices


def _first_world(array: wp.array | None, size: int) -> Indices:
    """Return the row of world 0, whose indices are valid within any world."""
    return np.full(size, -1) if array is None or not size else _indices(array)[0]


def _read_actuators(solver: newton.solvers.SolverMuJoCo) -> Actuators:
    position: list[tuple[int, ...]] = []
    velocity: list[tuple[int, ...]] = []
    direct: list[tuple[int, ...]] = []
    ball_position: list[tuple[int, ...]] = []
    ball_velocity: list[tuple[int, ...]] = []
    dofs: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], []
    if solver.mjc_actuator_ctrl_source is not None:
        fields = (
            solver.mjc_actuator_ctrl_source,
            solver.mjc_actuator_to_newton_idx,
            solver.mjc_actuator_to_newton_target_q_idx,
            solver.mjc_actuator_to_target_q_axis_idx,
            solver.mjc_actuator_to_newton_ball_jnt,
        )
        joints = len(solver.mj_q_start)
        for k, (source, place, target, axis, joint) in enumerate(
            zip(*(_indices(each) for each in fields), strict=True)
        ):
            if source != _TARGET:
                direct.append((k, place))
            elif place >= 0:  # a position target
                dofs[0].append((k, int(place)))
                if target >= 0 and axis < 0:
                    position.append((k, target))
                elif target >= 0:
                    ball_position.append((k, target, axis, joint % joints))
            elif place < -1:  # a velocity target, encoded as -(dof + 2)
                dofs[1].append((k, -(int(place) + 2)))
                if axis < 0:
                    velocity.append((k, -(place + 2)))
                else:
                    ball_velocity.append((k, -(place + 2) - axis, axis, joint % joints))
    return Actuators(
        position=_table(position, 2),
        velocity=_table(velocity, 2),
        direct=_table(direct, 2),
        ball_position=_table(ball_position, 4),
        ball_velocity=_table(ball_velocity, 4),
        position_dofs=tuple(dofs[0]),
        velocity_dofs=tuple(dofs[1]),
    )


def _table(rows: list[tuple[int, ...]], width: int) -> Indices:
    return np.array(rows, dtype=np.intp).reshape(-1, width)
