"""Gradients by the tape against differences of rollouts in double precision."""

import newton
import numpy as np
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


def errors(name, steps, directions=1, **options):
    model = SCENES[name]()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=(), **options)
    if name in TOUCHING:
        state, control = scenes.touching(model, solver)
    else:
        state, control = scenes.random_state(model)
    loss = Loss(model, steps, running=steps < 50)
    gradients, visited = taped(solver, state, control, steps, DT, loss)
    # MuJoCo does not round coordinates that a step continues
    carried = options.get("update_data_interval", 1) != 1
    exact = Exact(solver, state, control, steps, DT, loss, None if carried else visited)
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


@pytest.mark.parametrize("name", SCENES)
def test_wrenches_under_rk4(name):
    """RK4 applies them at four poses."""
    assert max(errors(name, 3, integrator="rk4").values()) < TOLERANCE


@pytest.mark.parametrize("interval", [2, 3, 20])
@pytest.mark.parametrize("name", ["tree", "ball", "machine", "box"])
def test_steps_that_continue(name, interval):
    """Steps between updates begin with the coordinates of MuJoCo, not with those of the state."""
    assert max(errors(name, 5, update_data_interval=interval).values()) < TOLERANCE


def test_steps_that_never_begin_with_the_state():
    """Only inputs have gradients then."""
    model = scenes.machine()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=(), update_data_interval=0)
    state, control = scenes.random_state(model)
    loss = Loss(model, 3)
    gradients, _ = taped(solver, state, control, 3, DT, loss)
    assert not gradients["joint_q"].any()
    assert not gradients["joint_qd"].any()
    assert gradients["joint_f"].any()
    assert gradients["ctrl"].any()


def test_intervals_with_mujoco_warp():
    """The gradients agree with those of MuJoCo C."""
    found = []
    for cpu in (True, False):
        model = scenes.tree()
        solver = DifferentiableMuJoCo(
            model, use_mujoco_cpu=cpu, parameters=(), update_data_interval=2
        )
        state, control = scenes.random_state(model)
        found.append(taped(solver, state, control, 4, DT, Loss(model, 4))[0])
    for name, first in found[0].items():
        scale = np.abs(first).max()
        assert np.abs(first - found[1][name]).max() < 1e-3 * scale, name
