"""Trajectories with gaps: the backward pass and the line search close them."""

import copy
import dataclasses

import mujoco
import numpy as np
import pytest

from mujacobian import control
from mujacobian.control import tasks
from mujacobian.control.descent import Progress
from mujacobian.control.trajectory import Iterate
from tests.scenes.control_models import (
    pendulum,
    quadratic_cost,
    random_state,
    slides,
    tumbler,
)

STATE = np.array([1.0, -0.5, 0.3, 0.0, 0.2, 0.0])
OPTIMUM = 1e-8
ROUNDING = 1e-12


def shoot(planner, state, states, controls):
    passes = planner._passes
    passes.begin(planner.start_of(state))
    return passes.shoot(states, controls)


def direction_from(planner, iterate):
    """Return the backward pass of a trajectory without regularization."""
    gains = np.zeros((planner.horizon - 1, planner.model.nu, planner.cost.nx))
    planner._passes.expand(iterate.knots)
    return planner._passes.backward(iterate, "none", 0.0, gains)


def test_one_full_step_solves_linear_problems_from_any_states():
    model = slides()
    planner = control.ILQR(model, quadratic_cost(model), 20, regularization="none")
    best = planner.solve(STATE)
    rng = np.random.default_rng(0)
    states, controls = rng.normal(size=(20, 6)), rng.normal(size=(20, 2))
    states[0], controls[-1] = STATE, controls[-2]
    start = shoot(planner, STATE, states, controls)
    assert abs(start.gaps[1:]).min() > 0
    direction = direction_from(planner, start)
    full, half = planner._passes.search(
        start, np.inf, direction, np.array([1.0, 0.5]), np.full(2, -np.inf)
    )
    assert full.gaps is None
    assert full.cost == pytest.approx(best.cost, rel=ROUNDING)
    assert np.allclose(full.knots.controls[:-1], best.controls, atol=OPTIMUM)
    # the quadratic model is exact at all step sizes
    for made, size in ((full, 1.0), (half, 0.5)):
        change = size * (direction.linear + size * direction.quadratic)
        assert made.cost - start.cost == pytest.approx(change, rel=1e-9)
    assert np.allclose(half.gaps, 0.5 * start.gaps)


def test_terms_have_the_weights_of_their_knots():
    model = slides()
    terms = quadratic_cost(model).terms
    factors = np.linspace(0, 2, 20)
    cost = control.Cost(
        model,
        [
            *terms,
            dataclasses.replace(terms[0], name="end", knots="last"),
            dataclasses.replace(terms[0], name="later", knots=factors),
        ],
    )
    planner = control.ILQR(model, cost, 20, regularization="none")
    plan = planner.solve(STATE, iterations=1)
    controls = np.concatenate([plan.controls, plan.controls[-1:]])
    again = shoot(planner, STATE, plan.states, controls)
    assert again.cost == pytest.approx(plan.cost, rel=ROUNDING)
    assert np.allclose(again.gaps, 0, atol=ROUNDING)
    # one step solves the problem from other states
    states = np.random.default_rng(3).normal(size=(20, 6))
    assert planner.solve(STATE, states=states).cost == pytest.approx(plan.cost, rel=1e-9)


def test_gaps_contract_by_the_step_size():
    """The model has contacts, a free joint, a ball joint and an activation."""
    model, cost = tumbler()
    planner = control.ILQR(model, cost, 12, threads=2)
    state = random_state(model, 4)
    states = np.stack([random_state(model, k) for k in range(12)])
    states[0] = state
    start = shoot(planner, state, states, np.full((12, 2), 0.1))
    # the gaps are those of single steps
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.act[:] = np.split(states[3], [model.nq, model.nq + model.nv])
    data.ctrl[:] = 0.1
    mujoco.mj_step(model, data)
    gap = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, gap, 1.0, states[4, : model.nq], data.qpos)
    assert np.allclose(start.gaps[4, : model.nv], gap, atol=ROUNDING)
    speed = slice(model.nq, model.nq + model.nv)
    assert np.allclose(start.gaps[4, model.nv : 2 * model.nv], data.qvel - states[4, speed])
    # those of a candidate are smaller by its step size
    direction = direction_from(planner, start)
    sizes = np.array([1e-3])
    (made,) = planner._passes.search(start, np.inf, direction, sizes, np.array([-np.inf]))
    again = shoot(planner, state, planner._passes.states(made.knots), made.knots.controls)
    assert np.allclose(again.gaps, made.gaps, atol=1e-9)
    assert np.allclose(made.gaps, 0.999 * start.gaps, atol=1e-9)
    assert again.cost == pytest.approx(made.cost, rel=1e-6)
    # and the cost changes as expected
    expected = 1e-3 * (direction.linear + 1e-3 * direction.quadratic)
    assert made.cost - start.cost == pytest.approx(expected, rel=2e-2)


def test_the_merit_of_a_step_that_closes_gaps():
    """Closing the gaps increases the cost here, but decreases the merit."""
    model = slides()
    planner = control.ILQR(model, quadratic_cost(model), 20)
    states = np.tile([0.3, 0.3, 0.3, 0, 0, 0], (20, 1))  # costs nothing
    states[0] = STATE
    start = shoot(planner, STATE, states, np.zeros((20, 2)))
    direction = direction_from(planner, start)
    rise = direction.linear + direction.quadratic
    assert rise > 0
    assert direction.penalty == 2 * rise
    assert direction.improvement(1.0) == pytest.approx(rise)
    progress = Progress(Iterate(*start), np.zeros((19, 2, 6)), is_new=True)
    planner._optimization.descent.run(progress, 100)
    assert progress.status == "converged"
    assert progress.iterate.gaps is None
    assert progress.iterate.cost == pytest.approx(planner.solve(STATE).cost, rel=1e-6)


def test_solve_avoids_a_poor_minimum_by_closing_gaps():
    """From these controls, the arm meets the bollard, and a simulation stays on its wrong side."""
    task = tasks.load("arm")
    planner = control.ILQR(task.planned, task.cost, task.horizon)
    start = task.start(None)
    knots = np.random.default_rng(2).normal(size=(9, task.model.nu)) * 0.3
    half = 0.5 * (planner.upper - planner.lower)
    times = np.linspace(0, 1, planner.horizon - 1)
    rows = [np.interp(times, np.linspace(0, 1, 9), row) for row in (knots * half).T]
    controls = (np.stack(rows, 1) + start.ctrl).clip(planner.lower, planner.upper)
    plan = planner.solve(start, controls=controls)
    optimization = planner._optimization
    policy = optimization.open_loop(plan._start, controls)
    simulated = optimization.run(planner.start_of(start), policy, -1)
    assert plan.initial_cost == simulated.initial_cost
    assert plan.status == "converged"
    assert plan.cost < 0.4
    # the plan is a simulation
    data = mujoco.MjData(planner.model)
    data.qpos[:], data.qvel[:] = start.qpos, start.qvel
    for t, u in enumerate(plan.controls):
        data.ctrl[:] = u
        mujoco.mj_step(planner.model, data)
        assert np.allclose(data.qpos, plan.states[t + 1, : planner.model.nq], atol=1e-6)


def test_solve_begins_with_given_states():
    model = slides()
    planner = control.ILQR(model, quadratic_cost(model), 20, regularization="none")
    states = np.random.default_rng(1).normal(size=(20, 6))
    plan = planner.solve(STATE, states=states)
    assert plan.status == "converged"
    assert len(plan.history.cost) == 2
    assert plan.states[0].tobytes() == STATE.tobytes()
    assert plan.cost == pytest.approx(planner.solve(STATE).cost, rel=1e-9)
    with pytest.raises(ValueError, match=r"states must have shape \(20, 6\)"):
        planner.solve(STATE, states=states[1:])


def test_states_that_cannot_be_connected_raise():
    model = mujoco.MjModel.from_xml_string(
        """
        <mujoco><option timestep=".5" gravity="0 0 0"><flag eulerdamp="disable"/></option>
          <worldbody><body><joint name="j" type="slide" damping="-50"/><geom size=".1"/></body>
          </worldbody>
          <actuator><motor joint="j" ctrlrange="-1 1"/></actuator>
          <sensor><jointpos name="p" joint="j"/></sensor></mujoco>
        """
    )
    cost = control.Cost(model, [control.Term("p", control.sensor(model, "p"))])
    planner = control.ILQR(model, cost, 40)
    with pytest.raises(control.DivergedError, match="did not connect the initial states"):
        planner.solve([1.0, 1.0], states=np.zeros((40, 2)))
    with pytest.raises(control.DivergedError, match="from the initial states of the knots"):
        planner.solve([1.0, 1.0], states=np.full((40, 2), 1e200))


@pytest.mark.parametrize("factor", [0.01, 100.0])
def test_plans_do_not_depend_on_the_units_of_controls(factor):
    model, cost = pendulum()
    other = copy.copy(model)
    other.actuator_gear[:] *= factor
    other.actuator_ctrlrange[:] /= factor
    tip, speed, effort = cost.terms
    scaled = dataclasses.replace(effort, residual=factor * control.controls(other))
    plans = [
        control.ILQR(m, c, 40).solve([0.3, 0.0], iterations=5)
        for m, c in ((model, cost), (other, control.Cost(other, [tip, speed, scaled])))
    ]
    assert plans[0].cost < 0.99 * plans[0].initial_cost
    assert plans[1].cost == pytest.approx(plans[0].cost, rel=1e-9)
    assert np.allclose(factor * plans[1].controls, plans[0].controls, atol=1e-7)
    assert np.array_equal(plans[0].history.step, plans[1].history.step)
