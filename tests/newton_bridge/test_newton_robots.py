"""Newton's examples of legged robots with the solver of this project.

The examples run as they are shipped, with one world. After some frames, a gradient of the next
frame is compared with differences of the same steps in double precision. The contacts of the frame
are held. States, distances and positions of contacts are rounded as in the simulation.

Newton downloads the robots, so these tests need the environment variable NEWTON_CACHE_PATH, a
folder that may keep them, and `pip install 'newton[importers,onnx]' gitpython`.
"""

import importlib
import os
import sys
from itertools import pairwise

import newton
import newton.examples
import numpy as np
import pytest
import warp as wp
from given_oracle import GivenOracle
from losses import coordinates, inputs_of, inputs_only

from mujacobian.newton import DifferentiableMuJoCo
from mujacobian.reference import branch

pytestmark = pytest.mark.skipif(
    "NEWTON_CACHE_PATH" not in os.environ, reason="NEWTON_CACHE_PATH is not set"
)

ONE = ["--world-count", "1"]
ROBOTS = {"anymal_c_walk": [], "anymal_d": ONE, "g1": ONE, "h1": ONE}
FRAMES = 30
# lengths of differences: usual ones, and short ones, which switch no row
USUAL = {"joint_q": 1e-3, "joint_qd": 1e-2, "joint_f": 1.0, "joint_target_q": 1e-2}
SHORT = {"joint_q": 1e-7, "joint_qd": 1e-6, "joint_f": 1e-4, "joint_target_q": 1e-6}
TOLERANCE = 1e-6


class Watched(GivenOracle):
    """A reference step that records its branches."""

    def __init__(self, solver, contacts):
        super().__init__(solver, contacts)
        self.branches = []

    def given_step(self, *arguments):
        after = super().given_step(*arguments)
        self.branches.append(branch(self.mj, self.data))
        return after


def example(robot, monkeypatch):
    """Return an example of Newton with the solver of this project, after some frames."""
    finalize = newton.ModelBuilder.finalize
    monkeypatch.setattr(
        newton.ModelBuilder, "finalize", lambda b, **options: finalize(b, requires_grad=True)
    )
    monkeypatch.setattr(newton.solvers, "SolverMuJoCo", DifferentiableMuJoCo)
    module = importlib.import_module(f"newton.examples.robot.example_robot_{robot}")
    arguments = ["--viewer", "null", "--device", "cpu", *ROBOTS[robot]]
    monkeypatch.setattr(sys, "argv", [robot, *arguments])
    made = module.Example(*newton.examples.init(module.Example.create_parser()))
    for _ in range(FRAMES):
        made.step()
    return made


class Frame:
    """The steps of one frame, with the contacts of its start."""

    def __init__(self, shown):
        self.model, self.solver, self.control = shown.model, shown.solver, shown.control
        self.contacts, self.dt = shown.contacts, shown.sim_dt
        self.states = [self.model.state() for _ in range(shown.sim_substeps + 1)]
        self.start = self.states[0]
        self.start.assign(shown.state_0)
        self.kinematics()
        shown.collision_pipeline.collide(self.start, self.contacts)
        self.rng = np.random.default_rng(3)
        self.weights = {
            name: self.rng.normal(size=getattr(self.start, name).shape).astype(np.float32)
            for name in ("joint_q", "joint_qd")
        }
        self.inputs = {"joint_q": self.start.joint_q, "joint_qd": self.start.joint_qd}
        self.inputs |= inputs_of(self.start, self.control)
        self.found = []  # distances and positions of the contacts of each step

    def kinematics(self):
        newton.eval_fk(self.model, self.start.joint_q, self.start.joint_qd, self.start)

    def gradients(self):
        """Return the gradients of a weighted sum of the last state."""
        for name in USUAL:
            self.inputs[name].requires_grad = True
        with wp.Tape() as tape:
            self.kinematics()
            for before, after in pairwise(self.states):
                self.solver.step(before, after, self.control, self.contacts, self.dt)
                made = self.solver.mjw_data.contact
                self.found.append([each.numpy().astype(float) for each in (made.dist, made.pos)])
        last = self.states[-1]
        tape.backward(grads={getattr(last, n): wp.array(w) for n, w in self.weights.items()})
        return {name: self.inputs[name].grad.numpy().astype(float) for name in USUAL}

    def direction(self, name, gradient):
        """Return a direction that is partly along the gradient, without lengths of quaternions."""
        direction = self.rng.normal(size=gradient.shape)
        direction = direction / np.linalg.norm(direction) + gradient / np.linalg.norm(gradient)
        if name == "joint_q":
            q = self.start.joint_q.numpy()[3:7].astype(float)
            direction[3:7] -= q * (q @ direction[3:7])
        return direction


class Exact:
    """The frame in double precision."""

    def __init__(self, frame):
        self.frame = frame
        self.oracle = o = Watched(frame.solver, frame.contacts)
        self.base = {name: array.numpy().astype(float) for name, array in frame.inputs.items()}
        visited, used = [coordinates(each) for each in frame.states], len(o.shapes)
        self.added = []
        for (before, after), (distance, position) in zip(
            pairwise(visited), frame.found, strict=True
        ):
            o.rounding = 0.0, 0.0
            exact = o.contacts(o.body_q(*before))
            o.rounding = distance[:used] - exact[0], position[:used] - exact[1]
            made = o.given_step(*before, inputs_only(self.base), o.body_q(*before), frame.dt)
            change = [end - start for end, start in zip(after, made, strict=True)]
            self.added.append((o.rounding, *change))

    def value(self, name, change):
        """Return the weighted sum and the branches of all steps."""
        x, o, weights = (
            {**self.base, name: self.base[name] + change},
            self.oracle,
            self.frame.weights,
        )
        o.branches = []
        q, v = x["joint_q"], x["joint_qd"]
        for o.rounding, dq, dv in self.added:
            q, v = o.given_step(q, v, inputs_only(x), o.body_q(q, v), self.frame.dt)
            q, v = q + dq, v + dv
        return weights["joint_q"].astype(float) @ q + weights["joint_qd"] @ v, o.branches


@pytest.mark.parametrize("robot", ROBOTS)
def test_gradient(robot, monkeypatch):
    frame = Frame(example(robot, monkeypatch))
    gradients = frame.gradients()
    exact = Exact(frame)
    assert frame.solver.mjw_data.nacon.numpy()[0] >= 4
    for name, gradient in gradients.items():
        direction = frame.direction(name, gradient)
        got, size = gradient @ direction, np.linalg.norm(gradient)
        here, branches = exact.value(name, 0.0), []
        slopes = {}
        for h in (SHORT[name], USUAL[name]):
            ends = [exact.value(name, s * h * direction) for s in (1, -1)]
            slopes[h] = (ends[0][0] - ends[1][0]) / (2 * h)
            branches.append([end[1] for end in ends])
        short, usual = slopes.values()
        switches = any(each != here[1] for each in branches[1])
        errors = [abs(got - slope) / size for slope in (short, usual)]
        kind = "usual difference, which switches rows," if switches else "usual difference"
        print(f"{robot}, {name}: error {errors[0]:.1e}, {kind} {errors[1]:.1e}")
        assert all(each == here[1] for each in branches[0])
        assert errors[0] < TOLERANCE
