"""Gradients by the tape against differences of rollouts in double precision."""

import pytest
from losses import Exact, Loss, taped
from scenes import random_state, tree

from mujacobian.newton import DifferentiableMuJoCo

DT = 0.005


@pytest.mark.parametrize("steps", [3, 20, 100])
def test_every_joint(steps):
    model = tree()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    state, control = random_state(model)
    loss = Loss(model, steps, running=steps < 50)
    gradients, visited = taped(solver, state, control, steps, DT, loss)
    found = Exact(solver, state, control, steps, DT, loss, visited).errors(gradients)
    print(steps, found)
    assert max(found.values()) < 1e-5
