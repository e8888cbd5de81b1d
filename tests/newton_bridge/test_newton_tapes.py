"""Unusual uses of tapes: again, twice, in place, with several solvers, through resets."""

import gc
from itertools import pairwise

import numpy as np
import pytest
import scenes
import warp as wp

from mujacobian.newton import DifferentiableMuJoCo
from mujacobian.newton.adjoint import TapedStep

DT = 0.005


@pytest.fixture(scope="module")
def model():
    return scenes.machine()


@pytest.fixture(scope="module")
def solver(model):
    return DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())


def rollout(solvers, states, control):
    """Return a tape through the states, with the next solver in each step."""
    with wp.Tape() as tape:
        for solver, (before, after) in zip(solvers, pairwise(states), strict=True):
            solver.step(before, after, control, None, DT)
    return tape


def gradients(tape, end, arrays):
    """Return the gradients of the sum of the last speeds."""
    tape.zero()
    end.joint_qd.grad.fill_(1.0)
    tape.backward()
    return [array.grad.numpy().copy() for array in arrays]


def inputs(state, control):
    return [state.joint_q, state.joint_qd, control.joint_f, control.mujoco.ctrl]


def fresh(model, count):
    """Return a state, others after it, and a control."""
    state, control = scenes.random_state(model)
    states = [state, *(model.state() for _ in range(count))]
    for each in states:
        each.body_f = state.body_f
    return states, control


def test_backward_twice(model, solver):
    """Gradients add up until they are set to zero."""
    states, control = fresh(model, 2)
    arrays = inputs(states[0], control)
    tape = rollout([solver] * 2, states, control)
    once = gradients(tape, states[-1], arrays)
    states[-1].joint_qd.grad.fill_(1.0)
    tape.backward()
    for first, array in zip(once, arrays, strict=True):
        assert first.any()
        np.testing.assert_allclose(array.grad.numpy(), 2 * first, rtol=1e-6)
    tape.zero()
    assert not any(array.grad.numpy().any() for array in arrays)
    for first, again in zip(once, gradients(tape, states[-1], arrays), strict=True):
        np.testing.assert_array_equal(again, first)


def test_in_place(model, solver):
    """Every step reads and writes the same state."""
    found = []
    for count in (2, 0):
        states, control = fresh(model, count)
        solver.reset(model.state())
        tape = rollout([solver] * 2, states if count else states * 3, control)
        found.append(gradients(tape, states[-1], inputs(states[0], control)))
    for apart, in_place in zip(*found, strict=True):
        assert apart.any()
        np.testing.assert_array_equal(in_place, apart)


def test_several_solvers(model, solver):
    """Each solver has its own activations, which do not affect the other solver."""
    other = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
    states, control = fresh(model, 2)
    solver.reset(model.state())
    first = solver.linearize(states[0], control, DT, coords="ambient")
    tape = rollout([solver, other], states, control)
    other.reset(model.state())
    second = other.linearize(states[1], control, DT, coords="ambient")
    q, v = (first.layout.state[name] for name in ("joint_q", "joint_qd"))
    row = second.A[v].sum(axis=0)
    row[first.layout.state["act"]] = 0
    wanted = [
        (row @ first.A)[q],
        (row @ first.A)[v],
        *(row @ first.block(k) + second.block(k)[v].sum(axis=0) for k in ("joint_f", "ctrl")),
    ]
    for found, exact in zip(
        gradients(tape, states[-1], inputs(states[0], control)), wanted, strict=True
    ):
        np.testing.assert_allclose(found, exact, atol=1e-6 * np.abs(exact).max())


def test_a_tape_used_again_keeps_no_old_steps(model, solver):
    states, control = fresh(model, 5)
    tape = wp.Tape()
    for _ in range(4):
        with tape:
            for before, after in pairwise(states):
                solver.step(before, after, control, None, DT)
        assert gradients(tape, states[-1], [control.mujoco.ctrl])[0].any()
        tape.reset()
    del tape
    gc.collect()
    steps = [each for each in gc.get_objects() if isinstance(each, TapedStep)]
    assert sum(each.snapshot is solver._current_snapshot() for each in steps) == 1  # the last


def test_gradients_asked_for_later(model):
    """A parameter may require gradients after earlier steps, without a notification."""
    model = scenes.mimic()
    model.body_mass.requires_grad = False
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    before, control = scenes.random_state(model)
    after = model.state()
    for wanted in (False, True):
        model.body_mass.requires_grad = wanted
        tape = rollout([solver], [before, after], control)
        tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})
    assert model.body_mass.grad.numpy().any()


def test_model_without_gradients():
    """Only states and controls may have gradients."""
    b = scenes.Builder()
    scenes.add_tree(b)
    model = b.finalize()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    assert solver.parameters == ()
    before, after = (model.state(requires_grad=True) for _ in range(2))
    control = model.control(requires_grad=True)
    tape = rollout([solver], [before, after], control)
    found = gradients(tape, after, [before.joint_q, before.joint_qd, control.joint_f])
    lin = solver.linearize(before, control, DT, coords="ambient")
    q, v = (lin.layout.state[name] for name in ("joint_q", "joint_qd"))
    wanted = lin.A[v][:, q], lin.A[v][:, v], lin.block("joint_f")[v]
    for each, block in zip(found, wanted, strict=True):
        np.testing.assert_allclose(each, block.sum(axis=0), atol=1e-6 * np.abs(block).max())


def test_reset_on_a_tape():
    """Gradients of overwritten values end there, and activations of these worlds start again."""
    b, world = scenes.Builder(6), scenes.Builder(6)
    world.add_mjcf(scenes.MACHINE.replace("EXTRA", ""))
    for _ in range(2):
        b.add_world(world)
    model = b.finalize(requires_grad=True)
    solver = DifferentiableMuJoCo(model, parameters=())
    (first, second, third), control = fresh(model, 2)
    arrays = [first.joint_q, first.joint_qd, model.joint_q, model.joint_qd, control.mujoco.ctrl]
    with wp.Tape() as tape:
        solver.step(first, second, control, None, DT)
        solver.reset(second, wp.array([True, False, False], dtype=wp.bool))  # the first world
        last = [solver.linearize(second, control, DT, world=k) for k in range(2)]
        solver.step(second, third, control, None, DT)
    found = [np.split(each, 2) for each in gradients(tape, third, arrays)]
    for k, (reset, kept) in enumerate(found[:4]):
        assert reset.any() == (k >= 2)
        assert kept.any() == (k < 2)
    for each, lin, alone in zip(found[4], last, (True, False), strict=True):
        one = lin.block("ctrl")[lin.layout.state["joint_qd"]].sum(axis=0)  # of the last step
        assert (np.abs(each - one).max() < 1e-6 * np.abs(each).max()) == alone
