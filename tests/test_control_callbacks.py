"""Callbacks and printed progress of planners and loops."""

import mujoco
import numpy as np
import pytest

from mujacobian import control
from mujacobian.control.attempt import FEW
from tests.scenes.control_models import pendulum


def test_solve_reports_its_iterations():
    model, cost = pendulum()
    planner, seen = control.ILQR(model, cost, 30), []
    plan = planner.solve([0.5, 0.0], callback=seen.append, iterations=FEW)
    assert {each.attempt for each in seen} == {0}
    assert [each.number for each in seen] == list(range(len(plan.history.cost)))
    for name, key in (("cost", "cost"), ("expected", "expected"), ("step", "step")):
        assert np.array_equal([getattr(each, name) for each in seen], getattr(plan.history, key))
    assert np.array_equal(seen[-1].states, plan.states)
    assert np.array_equal(seen[-1].controls[:-1], plan.controls)
    # the arrays do not change later
    assert not np.array_equal(seen[0].controls, seen[-1].controls)
    without = planner.solve([0.5, 0.0], iterations=FEW)
    assert np.array_equal(plan.controls, without.controls)


def test_solve_reports_both_attempts():
    model, cost = pendulum()
    planner, seen = control.ILQR(model, cost, 30), []
    plan = planner.solve([0.5, 0.0], callback=seen.append)
    attempts = [[each for each in seen if each.attempt == k] for k in (0, 1)]
    assert seen == attempts[0] + attempts[1]  # both converge before one of them is chosen
    for attempt in attempts:
        assert [each.number for each in attempt] == list(range(len(attempt)))
        assert not attempt[-1].has_gaps
    assert not any(each.has_gaps for each in attempts[0])
    best = min(attempts, key=lambda attempt: attempt[-1].cost)
    assert np.array_equal([each.cost for each in best], plan.history.cost)
    assert np.array_equal(best[-1].states, plan.states)
    assert plan.status == "converged"
    assert np.array_equal(plan.controls, planner.solve([0.5, 0.0]).controls)


def test_the_better_attempt_is_returned_if_the_second_one_is_stopped():
    model, cost = pendulum()
    planner, seen = control.ILQR(model, cost, 30), []

    def stop(each):
        seen.append(each)
        return each.attempt == 1

    plan = planner.solve([0.5, 0.0], callback=stop)
    assert [each.attempt for each in seen].count(1) == 1
    assert plan.status == "converged"  # the first attempt had ended before
    assert plan.cost == seen[-2].cost
    # or the first one was interrupted
    assert planner.solve([0.5, 0.0], callback=lambda each: each.number == 1).status == "stopped"


def test_given_states_are_reported_with_their_gaps(capsys):
    model, cost = pendulum()
    planner, seen = control.ILQR(model, cost, 30, step_sizes=(0.5,)), []
    states = np.tile([1.0, 0.0], (30, 1))
    plan = planner.solve(
        [0.5, 0.0], states=states, iterations=2, callback=seen.append, verbose=True
    )
    assert [each.has_gaps for each in seen] == [True, True]
    assert all(line.endswith(", with gaps") for line in capsys.readouterr().out.splitlines())
    # the plan is a simulation
    assert not np.allclose(seen[-1].states, plan.states)


def test_solve_can_be_stopped():
    model, cost = pendulum()
    planner = control.ILQR(model, cost, 30)
    plan = planner.solve([0.5, 0.0], callback=lambda each: each.number == 2)
    assert plan.status == "stopped"
    assert len(plan.history.cost) == 3
    limited = planner.solve([0.5, 0.0], iterations=3)
    assert np.array_equal(plan.controls, limited.controls)
    # only True stops, so that a callback may return anything else
    assert planner.solve([0.5, 0.0], callback=lambda each: "seen").status == "converged"


def test_errors_of_a_callback_reach_the_caller_and_leave_the_planner_usable():
    model, cost = pendulum()
    planner = control.ILQR(model, cost, 30)

    def fail(_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        planner.solve([0.5, 0.0], callback=fail)
    assert planner.solve([0.5, 0.0]).status == "converged"
    with pytest.raises(KeyError, match="mine"):
        control.MPC(model, planner).run(mujoco.MjData(model), 0.1, progress=False, callback=fail)


def test_progress_is_printed(capsys):
    model, cost = pendulum()
    planner = control.ILQR(model, cost, 30)
    plan = planner.solve([0.5, 0.0], verbose=True, iterations=FEW)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(plan.history.cost)
    assert lines[0].startswith("iteration   0: cost ")
    planner.solve([0.5, 0.0], verbose=True)
    assert capsys.readouterr().out.splitlines()[-1].endswith(", attempt 1")
    control.MPC(model, planner).run(mujoco.MjData(model), 0.2, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert " 0.020 s: cost " in lines[0]
    planner.solve([0.5, 0.0])
    assert not capsys.readouterr().out


@pytest.mark.parametrize("realtime", [False, True])
def test_a_run_reports_its_plans_and_can_be_stopped(realtime):
    model, cost = pendulum()
    mpc = control.MPC(model, control.ILQR(model, cost, 20), realtime=realtime)
    data, seen = mujoco.MjData(model), []

    def watch(interval):
        assert interval.data is data
        seen.append((interval.taken, interval.data.time, interval.plan.cost))
        return interval.taken >= 8

    result = mpc.run(data, seconds=5.0, progress=False, callback=watch)
    taken = seen[-1][0]
    assert 8 <= taken < 250
    assert len(result.times) == len(result.states) == len(result.controls) == taken
    assert len(result.costs) == len(result.weighted) == taken
    assert data.time == pytest.approx(taken * model.opt.timestep)
    if not realtime:
        assert [each[0] for each in seen] == list(range(1, 9))
        assert [each[2] for each in seen] == list(result.plan_costs)


def test_a_callback_can_disturb_the_simulation():
    model, cost = pendulum()
    runs = []
    for push in (0.0, 1.0):

        def disturb(interval, push=push):
            if interval.taken == 10:
                interval.data.qvel[0] += push

        mpc = control.MPC(model, control.ILQR(model, cost, 20))
        runs.append(mpc.run(mujoco.MjData(model), 0.5, progress=False, callback=disturb))
    calm, pushed = (run.states for run in runs)
    assert np.array_equal(calm[:10], pushed[:10])
    assert pushed[10, 1] - calm[10, 1] == pytest.approx(1.0)


def test_wrong_callbacks_raise():
    model, cost = pendulum()
    planner = control.ILQR(model, cost, 20)
    with pytest.raises(TypeError, match="callback must be a function, got int"):
        planner.solve([0.5, 0.0], callback=3)
    with pytest.raises(TypeError, match="callback must be a function, got str"):
        control.MPC(model, planner).run(mujoco.MjData(model), 1.0, callback="viewer")
