"""Gradients where the step has another slope nearby: dry friction that holds, and ends of ranges.

A hand in free fall has the dry friction and the gains of the fingers in Newton's example of the
Unitree G1. Friction of 1e-5 N m holds the fingers, and the gradient is that of fingers that are
held. Differences see it only if they change the torques of the joints by less, where single
precision has no digits left.
"""

import newton
import numpy as np
import pytest
import scenes
import warp as wp
from losses import Exact, Loss, taped
from oracle import Oracle

from mujacobian.newton import DifferentiableMuJoCo
from mujacobian.reference import branch

DT, STEPS = 1 / 360, 6
FRICTION = 1e-5  # [N m]
# lengths of differences that switch no row [N m, rad], and a usual length
SHORT, USUAL = {"joint_f": 1e-7, "joint_target_q": 1e-9}, 1e-2
TOLERANCE = 1e-6  # rounding of the gradient to single precision, and of short differences
SLIDING = 1e-3  # the force of the friction, relative to the effect of a usual change


class Watched(Oracle):
    """A reference step that records its branches."""

    def __init__(self, solver):
        super().__init__(solver)
        self.branches = []

    def step(self, *arguments):
        after = super().step(*arguments)
        self.branches.append(branch(self.mj, self.data))
        return after


def hand(friction, upper):
    """Return a palm that falls freely with four light fingers at the angle 0.

    upper: the upper end of the range of the fingers [rad].
    """
    b = scenes.Builder()
    palm = b.add_link(mass=1.0, inertia=scenes.INERTIA, com=wp.vec3(0.1, 0.0, 0.0))
    joints = [b.add_joint_free(palm)]
    inertia = wp.mat33(np.diag([2e-5, 2e-5, 1e-5]))
    for k in range(4):
        finger = b.add_link(mass=0.05, inertia=inertia, com=wp.vec3(0.03, 0.0, 0.01))
        joints.append(
            b.add_joint_revolute(
                palm, finger, axis=(0.0, 1.0, 0.3 * k), friction=friction,
                parent_xform=wp.transform(wp.vec3(0.2, 0.03 * k, 0.0), wp.quat_identity()),
                limit_lower=-1.5, limit_upper=upper, limit_ke=1e3, limit_kd=10.0,
                target_ke=500.0, target_kd=10.0, actuator_mode=newton.JointTargetMode.POSITION,
            )
        )  # fmt: skip
    b.add_articulation(joints)
    return b.finalize(requires_grad=True)


def servo():
    """Return a hinge with a servo, whose target is at the lower end of its ctrlrange."""
    b = scenes.Builder()
    b.add_mjcf(
        """
        <mujoco>
          <worldbody>
            <body>
              <joint name="j" axis="0 1 0" armature="0.1"/><geom size="0.1" pos="0 0 -0.3"/>
            </body>
          </worldbody>
          <actuator><position joint="j" kp="50" kv="5" ctrlrange="0 1"/></actuator>
        </mujoco>
        """
    )
    return b.finalize(requires_grad=True)


class Scene:
    """Gradients of a rollout by the tape, and differences in double and in single precision."""

    def __init__(self, model):
        self.model = model
        self.solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
        state, control = model.state(), model.control()
        self.loss = Loss(model, STEPS, names=("joint_q", "joint_qd"), running=False)
        self.gradients, visited = taped(self.solver, state, control, STEPS, DT, self.loss)
        self.exact = Exact(self.solver, state, control, STEPS, DT, self.loss, visited)

    def along(self, name):
        """Return the direction of a gradient and its length."""
        gradient = self.gradients[name].astype(float)
        size = np.linalg.norm(gradient)
        return gradient / size, size

    def values(self, name, h):
        """Return the loss at -h, 0 and h along the gradient, and the branches of all steps."""
        found, (direction, _) = [], self.along(name)
        for step in (-h, 0, h):
            self.exact.oracle = Watched(self.solver)
            x = {**self.exact.x, name: self.exact.x[name] + step * direction}
            found.append((self.exact.value(x), self.exact.oracle.branches))
        return tuple(zip(*found, strict=True))

    def single(self, name, change):
        """Return the loss of Newton's own solver."""
        solver = newton.solvers.SolverMuJoCo(self.model, use_mujoco_cpu=True)
        before, after, control = self.model.state(), self.model.state(), self.model.control()
        array = getattr(control, name)
        array.assign((array.numpy() + change).astype(np.float32))
        for _ in range(STEPS):
            solver.step(before, after, control, None, DT)
            before, after = after, before
        weights = {n: w.astype(float) for (n, _), w in self.loss.weights.items()}
        return sum((getattr(before, n).numpy() * w).sum() for n, w in weights.items())


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("friction", [FRICTION, 0.0])
def test_gradient(friction, name):
    """The gradient is that of the branch of the simulation, with and without friction."""
    scene, h = Scene(hand(friction, upper=1.5)), SHORT[name]
    (left, _, right), branches = scene.values(name, h)
    size, wanted = scene.along(name)[1], (right - left) / (2 * h)
    print(friction, name, size, wanted, size / wanted - 1)
    assert branches[0] == branches[1] == branches[2]
    assert abs(size - wanted) < TOLERANCE * wanted


def test_usual_difference():
    """A usual difference slides the fingers, so that it is the gradient without friction."""
    scene, sliding = Scene(hand(FRICTION, upper=1.5)), Scene(hand(0.0, upper=1.5))
    name, h = "joint_target_q", USUAL
    direction, size = scene.along(name)
    (left, _, right), branches = scene.values(name, h)
    difference = (right - left) / (2 * h)
    rounded = (scene.single(name, h * direction) - scene.single(name, -h * direction)) / (2 * h)
    without = sliding.gradients[name] @ direction
    print(size, difference, rounded, without)
    assert branches[0] != branches[1] != branches[2]
    assert abs(difference - size) > 0.1 * size
    assert abs(rounded - difference) < 1e-4 * difference
    assert abs(without - difference) < SLIDING * difference


def test_end_of_range():
    """At an end of the range, the gradient is the slope on the side of the range."""
    scene, name = Scene(hand(FRICTION, upper=0.0)), "joint_target_q"
    h = SHORT[name]
    (left, middle, right), branches = scene.values(name, h)
    size = scene.along(name)[1]
    inside, beyond = (right - middle) / h, (middle - left) / h
    print(size, inside, beyond)
    assert (scene.gradients[name] <= 0).all()  # a positive step moves all fingers into the range
    assert branches[0] != branches[2]
    assert abs(size - inside) < TOLERANCE * inside
    assert abs(beyond - inside) > 0.1 * inside


def test_end_of_ctrlrange():
    """At an end of ctrlrange, the gradient is the slope on the side of the range."""
    scene, name = Scene(servo()), "joint_target_q"
    (gradient,), h = scene.gradients[name], 1e-4
    left, middle, right = scene.values(name, h)[0]
    if gradient < 0:  # the direction of the differences is that of the gradient
        left, right = right, left
    inside, beyond = (right - middle) / h, (middle - left) / h
    print(gradient, inside, beyond)
    assert abs(gradient - inside) < 1e-5 * abs(inside)
    assert beyond == 0
    assert abs(inside) > 1
