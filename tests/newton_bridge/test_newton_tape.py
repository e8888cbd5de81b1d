"""Gradients by the tape against differences of rollouts in double precision."""

import newton
import pytest
import scenes
from losses import Exact, Loss, taped

from mujacobian.newton import DifferentiableMuJoCo

DT = 0.005
# relative to the length of the gradient: states have single precision
TOLERANCE = 1e-5
BOTH = newton.JointTargetMode.POSITION_VELOCITY

SCENES = {
    "tree": scenes.tree,
    "ball": lambda: scenes.ball_targets(BOTH),
    "limits": lambda: scenes.limits(0.6, 1.0),
    "friction": lambda: scenes.limits(-3.0, 3.0, friction=0.3, damping=0.2),
    "machine": scenes.machine,
    "connect": lambda: scenes.machine(scenes.EQUALITIES["connect"]),
    "loop": lambda: scenes.loop("ball"),
    "mimic": scenes.mimic,
    "roots": scenes.roots,
    "sphere": lambda: scenes.resting("sphere"),
    "box": lambda: scenes.resting("box"),
}
TOUCHING = ("sphere", "box")
SMOOTH = ("tree", "ball", "roots")  # no constraint begins or ends within a difference


def errors(name, steps, directions=1):
    model = SCENES[name]()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
    if name in TOUCHING:
        state, control = scenes.touching(model, solver)
    else:
        state, control = scenes.random_state(model)
    loss = Loss(model, steps, running=steps < 50)
    gradients, visited = taped(solver, state, control, steps, DT, loss)
    exact = Exact(solver, state, control, steps, DT, loss, visited)
    found = exact.errors(gradients, directions, h=1e-4 if name in SMOOTH else 1e-6, inputs=1e-4)
    print(name, steps, {k: f"{v:.1e}" for k, v in found.items()})
    return found


@pytest.mark.parametrize("name", SCENES)
def test_3_steps(name):
    assert max(errors(name, 3, directions=2).values()) < TOLERANCE


@pytest.mark.parametrize("name", SCENES)
def test_20_steps(name):
    assert max(errors(name, 20).values()) < TOLERANCE


@pytest.mark.parametrize("name", SCENES)
def test_100_steps(name):
    assert max(errors(name, 100).values()) < TOLERANCE
