"""Schedules of the contact width in `ILQR.solve`."""

import mujoco
import numpy as np
import pytest

from benchmarks import planners
from mujacobian import control
from tests.scenes.control_models import pendulum

PUSHER = """
<mujoco>
  <option timestep=".02" integrator="implicitfast"/>
  <worldbody>
    <body name="tip"><joint name="tip" type="slide" axis="1 0 0" damping="2"/>
      <geom type="sphere" size=".03" mass=".5"/></body>
    <body name="box" pos=".15 0 0"><joint type="slide" axis="1 0 0" damping="3"/>
      <geom type="box" size=".07 .07 .05" mass="1"/></body>
  </worldbody>
  <actuator><motor joint="tip" ctrlrange="-20 20"/></actuator>
</mujoco>
"""
HORIZON = 30
# a replayed plan is the same simulation
REPLAY = 1e-12
# the detour decreases the cost of the push from 2.5 to 1.8 at least
DETOUR = 0.9


def pusher():
    """Return a tip that pushes a box along a line, with its cost."""
    spec = mujoco.MjSpec.from_string(PUSHER)
    rows = control.residuals(spec)
    box, tip = (rows.position(name, kind="body")[0] for name in ("box", "tip"))
    terms = [
        control.Term("place", box - 0.4, control.L2(0.05), weight=5),
        control.Term("near", box - tip - 0.1, control.L2(0.05)),
        control.Term("effort", rows.controls(), weight=1e-3),
    ]
    model = spec.compile()
    return model, control.Cost(model, terms)


def test_a_schedule_of_widths_ends_with_the_model_itself():
    model, cost = pusher()
    planner, numbers = control.ILQR(model, cost, HORIZON), []
    plan = planner.solve(
        mujoco.MjData(model),
        iterations=90,
        widths=(0.05, 0.01),
        callback=lambda each: numbers.append(each.number),
    )
    assert numbers.count(0) >= 3  # three plans have begun
    assert len(plan.history.cost) <= 30
    assert plan.cost < plan.initial_cost or plan.status == "converged"
    # the plan is a simulation of the model with its own contacts
    data = mujoco.MjData(model)
    for state, ctrl in zip(plan.states[1:], plan.controls, strict=True):
        data.ctrl[:] = ctrl
        mujoco.mj_step(model, data)
        assert np.allclose(np.concatenate([data.qpos, data.qvel]), state, rtol=0, atol=REPLAY)
    assert data.qpos[1] > 0.1  # the box has moved
    first = planner.solve(mujoco.MjData(model), iterations=30)
    again = control.ILQR(model, cost, HORIZON).solve(mujoco.MjData(model), iterations=30, widths=())
    assert np.array_equal(first.controls, again.controls)


def test_a_callback_stops_the_whole_schedule():
    model, cost = pusher()
    seen = []

    def stop(each):
        seen.append(each)
        return len(seen) == 4

    plan = control.ILQR(model, cost, HORIZON).solve(
        mujoco.MjData(model), widths=[0.05, 0.01], callback=stop
    )
    assert plan.status == "stopped"
    assert len(seen) == 4
    assert np.isfinite(plan.cost)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_detour_over_wide_contacts_finds_better_plans(seed):
    model, cost, horizon, data, _ = problem = planners.push()
    controls = planners.random_controls(problem, seed)
    planner, seen = control.ILQR(model, cost, horizon, threads=1), []
    plan = planner.solve(data, controls=controls, callback=lambda each: seen.append(each.attempt))
    assert sorted(set(seen)) == [0, 1, 2, 3]
    assert seen.count(2) == 40
    assert plan.cost < DETOUR * planner.solve(data, controls=controls, widths=()).cost
    # the plan is a simulation of the model with its own contacts
    again = planner.solve(data, controls=plan.controls, iterations=1)
    assert again.initial_cost == pytest.approx(plan.cost, rel=REPLAY)
    # the phases with wide contacts are part of the times
    parts = plan.timings
    assert parts.nominal + parts.expansion + parts.backward + parts.rollouts > 0.8 * parts.total


def test_plans_without_contacts_make_no_detour():
    model, cost = pendulum()
    seen = []
    control.ILQR(model, cost, 30).solve([0.5, 0.0], callback=lambda each: seen.append(each.attempt))
    assert set(seen) == {0, 1}


def test_few_iterations_and_given_states_make_no_detour():
    model, cost = pusher()
    planner = control.ILQR(model, cost, HORIZON)
    states = np.zeros((HORIZON, 4))
    for arguments in ({"iterations": 70}, {"states": states}, {"widths": ()}):
        seen = []
        planner.solve(
            mujoco.MjData(model),
            callback=lambda each, to=seen: to.append(each.attempt),
            **arguments,
        )
        assert max(seen) < 2
    seen = []
    planner.solve(mujoco.MjData(model), callback=lambda each: seen.append(each.attempt))
    assert max(seen) == 3


@pytest.mark.parametrize("attempt", [2, 3])
def test_a_callback_stops_the_detour(attempt):
    model, cost, horizon, data, _ = problem = planners.push()
    planner, seen = control.ILQR(model, cost, horizon, threads=1), []

    def stop(each):
        seen.append(each)
        return each.attempt == attempt

    plan = planner.solve(data, controls=planners.random_controls(problem, 1), callback=stop)
    assert [each.attempt for each in seen].count(attempt) == 1
    assert plan.status == "stopped"
    # no plan is worse than those before the detour
    last = {each.attempt: each for each in seen}
    assert plan.cost <= min(last[k].cost for k in (0, 1) if not last[k].has_gaps)


@pytest.mark.parametrize("widths", [(0.01, 0.05), (0.0,), (-1.0,), (0.1, 0.1), np.ones((2, 2))])
def test_wrong_widths_raise(widths):
    model, cost = pusher()
    with pytest.raises(ValueError, match="widths must be positive lengths in descending order"):
        control.ILQR(model, cost, HORIZON).solve(mujoco.MjData(model), widths=widths)
    with pytest.raises(ValueError, match="widths"):
        control.ILQR(model, cost, HORIZON).solve(mujoco.MjData(model), widths=[np.nan])
