"""Gradients of masses and armatures where limits or contacts act, against new solvers.

The constants that MuJoCo and Newton derive from these arrays scale the limits and contacts.
"""

import newton
import newton.examples
import numpy as np
import pytest
import scenes
import warp as wp
from losses import Exact, Loss, taped
from oracle import Oracle

from mujacobian.newton import DifferentiableMuJoCo

FORCE_SPACE = {"limit_ke": 400.0, "limit_kd": 8.0}
DEFAULT = {"limit_ke": 0.0, "limit_kd": 0.0}


def started(model, q, v, force=0.0):
    """Return the model with a state and a control."""
    state, control = model.state(), model.control()
    if q is not None:
        state.joint_q.assign(np.float32(q))
    state.joint_qd.assign(np.float32(v))
    control.joint_f.fill_(force)
    return model, state, control


def pendulum():
    """Return a pendulum that a torque presses against its limit."""
    b = scenes.Builder()
    link = b.add_link(mass=1.0, inertia=wp.mat33(np.diag([0.01] * 3)), com=wp.vec3(0.0, 0.0, -0.5))
    bounds = {"limit_lower": -0.1, "limit_upper": 0.1, **FORCE_SPACE}
    b.add_articulation([b.add_joint_revolute(-1, link, axis=(0, 1, 0), **bounds)])
    return started(b.finalize(requires_grad=True), [0.12], [1.0], 5.0)


def arm(gains):
    """Return two links, the second one beyond its limit."""
    b = scenes.Builder(1)
    first, second = b.body("first"), b.body("second")
    bounds = {"limit_lower": -0.1, "limit_upper": 0.1, "armature": 0.02, **gains}
    joints = [
        b.add_joint_revolute(-1, first, axis=(0, 1, 0), armature=0.02, **b.frames()),
        b.add_joint_revolute(first, second, axis=(1, 0, 0), **bounds, **b.frames()),
    ]
    b.add_articulation(joints)
    return started(b.finalize(requires_grad=True), [0.3, 0.13], [0.5, 0.4])


def linear():
    """Return a D6 joint with a limited translation and two rotations, behind a hinge."""
    b = scenes.Builder(2)
    first, second = b.body("first"), b.body("second")
    along = scenes.DOF(axis=(1, 0, 0), limit_lower=-0.05, limit_upper=0.05, **FORCE_SPACE)
    turns = [scenes.DOF(axis=axis) for axis in ((0, 1, 0), (0, 0, 1))]
    joints = [
        b.add_joint_revolute(-1, first, axis=(0, 1, 0), **b.frames()),
        b.add_joint_d6(first, second, linear_axes=[along], angular_axes=turns, **b.frames()),
    ]
    b.add_articulation(joints)
    return started(b.finalize(requires_grad=True), [0.3, 0.06, 0.2, 0.1], [0.5, 0.3, 0.2, 0.1])


def sphere(v):
    """Return a sphere that touches a plane."""
    model = scenes.resting("sphere")
    return started(model, [0.0, 0.0, 0.098, 0.0, 0.0, 0.0, 1.0], v)


def quadruped():
    """Return Newton's quadruped on the ground, with 12 contacts."""
    one = scenes.Builder()
    one.default_joint_cfg.armature, one.default_joint_cfg.target_ke = 0.01, 2000.0
    one.default_joint_cfg.target_kd = 1.0
    one.add_urdf(
        newton.examples.get_asset("quadruped.urdf"), floating=True, enable_self_collisions=False,
        xform=wp.transform(wp.vec3(0.0, 0.0, 0.46), wp.quat_identity()),
        joint_damping_mode="drive",
    )  # fmt: skip
    pose = [0.2, 0.4, -0.6, -0.2, -0.4, 0.6, -0.2, 0.4, -0.6, 0.2, -0.4, 0.6]
    one.joint_q[-12:] = one.joint_target_q[-12:] = pose
    one.add_ground_plane()
    model = one.finalize(requires_grad=True)
    rng = np.random.default_rng(0)
    return started(model, None, 0.1 * rng.normal(size=model.joint_dof_count))


# scene, array, steps
CASES = {
    "pendulum": (pendulum, "body_mass", 1),
    "pendulum, 50 steps": (pendulum, "body_mass", 50),
    "pendulum, armature": (pendulum, "joint_armature", 50),
    "arm, default limit, armature": (lambda: arm(DEFAULT), "joint_armature", 1),
    "arm, limit in force space": (lambda: arm(FORCE_SPACE), "body_mass", 20),
    "linear limit": (linear, "body_mass", 1),
    "sliding sphere": (lambda: sphere([1.0, 0.2, -0.1, 0.0, 0.3, 0.0]), "body_mass", 1),
    "resting sphere": (lambda: sphere([0.0] * 6), "body_mass", 100),
    "quadruped": (quadruped, "body_mass", 10),
    "quadruped, centers": (quadruped, "body_com", 10),
}


@pytest.mark.filterwarnings("ignore:.*conservative")
@pytest.mark.parametrize("name", CASES)
def test_new_solvers(name):
    build, array_name, steps = CASES[name]
    model, state, control = build()
    array = getattr(model, array_name)
    options = {"use_mujoco_cpu": True, "tolerance": 1e-12, "ccd_tolerance": 1e-12}
    solver = DifferentiableMuJoCo(model, parameters=[array_name], **options)
    loss = Loss(model, steps, running=False)
    dt = 1 / 300 if "quadruped" in name else 0.005
    gradients, visited = taped(solver, state, control, steps, dt, loss, of=array)
    found, base = gradients["of"].astype(float), array.numpy().copy()
    exact = Exact(solver, state, control, steps, dt, loss, visited)
    assert exact.oracle.data.nefc > 0
    rng = np.random.default_rng(1)
    direction = rng.uniform(0.5, 1, base.shape) * (0.01 if array_name == "body_com" else base)
    if not direction.any():
        direction[...] = 0.05

    def apart(h):
        """Return the differences of the loss and of the rounded array times the gradient."""
        values, arrays = [], []
        for sign in (1, -1):
            # an armature of zero grows only
            moved = base + (sign * h if base.any() else (sign + 2) * h) * direction
            array.assign(moved.astype(np.float32))
            arrays.append(array.numpy().astype(float))
            exact.oracle = Oracle(newton.solvers.SolverMuJoCo(model, **options))
            values.append(exact.value(exact.x))
        array.assign(base)
        return values[0] - values[1], (found * (arrays[0] - arrays[1])).sum()

    wanted, got = np.array(apart(2e-4)) / 4e-4
    print(name, got, wanted, np.abs(found).max())
    # Newton and MuJoCo round derived numbers to single precision
    assert abs(got - wanted) < 2e-3 * max(abs(wanted), 0.05)
