"""Masses and armature of Newton's quadruped on the ground, against MuJoCo in double precision.

Differences of Newton's own solver are not accurate enough for these gradients. In one of the ten
steps, the torque of a knee is 0.03 N m from its effort limit of 80 N m. Differences that change the
mass of the trunk by 1e-3 or more switch this limit and have errors of 7 % and more. Shorter ones
lose digits, because Newton rounds every state to single precision. Here the MuJoCo model is edited
in double precision, `mj_setConst` derives its constants, and neither a constraint row nor an effort
limit switches within a difference.
"""

import copy

import mujoco
import newton
import newton.examples
import numpy as np
import pytest
import warp as wp
from losses import Exact, Loss, taped
from oracle import Oracle

from mujacobian.newton import DifferentiableMuJoCo
from mujacobian.reference import branch

DT, STEPS = 1 / 300, 10
SPREAD, SPEED, HEIGHT = 0.05, 0.2, 0.45  # rad, rad/s and m: all four feet touch
STEP = 1e-5  # relative change of a parameter
# tolerance of the tape, whose gradients pass through ten states in single precision
TOLERANCE = 2e-6
CASES = [("body_mass", k) for k in range(4)] + [("joint_armature", k) for k in (8, 11)]


def quadruped():
    """Return the model of Newton's own example, standing."""
    b = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(b)
    b.default_joint_cfg.armature = 0.01
    b.default_joint_cfg.target_ke, b.default_joint_cfg.target_kd = 2000.0, 1.0
    b.default_shape_cfg.mu = 1.0
    b.add_urdf(
        newton.examples.get_asset("quadruped.urdf"),
        xform=wp.transform((0, 0, 0.7), wp.quat_identity()),
        floating=True,
        enable_self_collisions=False,
        ignore_inertial_definitions=True,
        joint_damping_mode="drive",
    )
    for k in range(b.body_count):
        b.body_inertia[k] += wp.mat33(*(0.01 * np.eye(3)).ravel().tolist())
    legs = [0.2, 0.4, -0.6, -0.2, -0.4, 0.6, -0.2, 0.4, -0.6, 0.2, -0.4, 0.6]
    b.joint_q[-12:] = b.joint_target_q[-12:] = legs
    b.add_ground_plane(cfg=b.default_shape_cfg)
    return b.finalize(requires_grad=True)


def standing(model):
    """Return a state on the ground and a control, both slightly random."""
    rng = np.random.default_rng(1)
    state, control = model.state(), model.control()
    q = model.joint_q.numpy().astype(float)
    q[2] = HEIGHT
    q[7:] += SPREAD * rng.normal(size=len(q))[7:]
    state.joint_q.assign(q.astype(np.float32))
    state.joint_qd.assign((SPEED * rng.normal(size=state.joint_qd.shape)).astype(np.float32))
    control.joint_f.assign((0.1 * rng.normal(size=control.joint_f.shape)).astype(np.float32))
    newton.eval_fk(model, state.joint_q, state.joint_qd, state)
    return state, control


class Watched(Oracle):
    """A reference step that records its branches: of constraint rows and of effort limits."""

    def __init__(self, solver, mj):
        super().__init__(solver, mj)
        self.branches, self.saturated = [], []

    def step(self, *arguments):
        after = super().step(*arguments)
        joint = self.mj.dof_jntid
        low, high = self.mj.jnt_actfrcrange[joint].T
        torque = self.data.qfrc_actuator
        ends = self.mj.jnt_actfrclimited[joint] & ((torque <= low) | (torque >= high))
        self.saturated.append(frozenset(np.flatnonzero(ends).tolist()))
        self.branches.append((branch(self.mj, self.data), self.saturated[-1]))
        return after


@pytest.fixture(scope="module")
def scene():
    """Return the gradients of the tape, and the loss after an edit of the MuJoCo model."""
    model = quadruped()
    solver = DifferentiableMuJoCo(
        model, use_mujoco_cpu=True, parameters=["body_mass", "joint_armature"]
    )
    state, control = standing(model)
    loss = Loss(model, STEPS, names=("joint_q", "joint_qd"), running=False)
    gradients, visited = taped(solver, state, control, STEPS, DT, loss, of=model.body_mass)
    gradients["body_mass"] = gradients.pop("of")
    again, _ = taped(solver, state, control, STEPS, DT, loss, of=model.joint_armature)
    gradients["joint_armature"] = again["of"]
    exact = Exact(solver, state, control, STEPS, DT, loss, visited)

    def value(field, index, change):
        edited = copy.copy(solver.mj_model)
        getattr(edited, field)[index] += change
        mujoco.mj_setConst(edited, mujoco.MjData(edited))
        exact.oracle = Watched(solver, edited)
        return exact.value(exact.x), exact.oracle

    def single(index, mass):
        """Return the loss of a new solver of Newton, whose states have single precision."""
        edited = quadruped()
        masses = edited.body_mass.numpy()
        masses[index] = mass
        edited.body_mass.assign(masses)
        stepper = newton.solvers.SolverMuJoCo(edited, use_mujoco_cpu=True)
        before, given = standing(edited)
        after = edited.state()
        for _ in range(STEPS):
            stepper.step(before, after, given, None, DT)
            before, after = after, before
        weights = {n: w.astype(float) for (n, _), w in loss.weights.items()}
        return sum((getattr(before, n).numpy() * w).sum() for n, w in weights.items())

    return solver, gradients, value, single


@pytest.mark.parametrize(("name", "index"), CASES)
def test_gradient(scene, name, index):
    solver, gradients, value, _ = scene
    field, place = ("dof_armature", index) if name == "joint_armature" else ("body_mass", index + 1)
    h = STEP * getattr(solver.mj_model, field)[place]
    _, here = value(field, place, 0.0)
    (right, above), (left, below) = (value(field, place, s * h) for s in (1, -1))
    assert solver.mj_data.ncon >= 4
    assert above.branches == here.branches == below.branches
    assert any(here.saturated)
    wanted = (right - left) / (2 * h)
    got = float(gradients[name][index])
    print(name, index, got, wanted, abs(got - wanted) / abs(wanted))
    assert abs(wanted) > 1e-2
    assert abs(got - wanted) <= TOLERANCE * abs(wanted)


def test_switch_of_an_effort_limit(scene):
    """A difference that switches an effort limit is wrong in double and in single precision."""
    solver, gradients, value, single = scene
    found = gradients["body_mass"][0].astype(float)
    mass = solver.mj_model.body_mass[1]
    h = np.float32(1e-3 * mass)
    middle, here = value("body_mass", 1, 0.0)
    (right, above), (left, below) = (value("body_mass", 1, s * h) for s in (1, -1))
    central = (right - left) / (2 * h)
    rounded = (single(0, mass + h) - single(0, mass - h)) / (2 * h)
    print(found, (right - middle) / h, (middle - left) / h, central, rounded)
    assert above.saturated == here.saturated
    assert below.saturated != here.saturated
    rows = [[rows for rows, _ in each.branches] for each in (here, below)]
    assert rows[0] == rows[1]
    assert abs((right - middle) / h - found) < 1e-3 * abs(found)
    assert abs((middle - left) / h - found) > 0.05 * abs(found)
    assert abs(central - found) > 0.03 * abs(found)
    assert abs(rounded - central) < 0.01 * abs(central)
