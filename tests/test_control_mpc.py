"""Control in a loop: records, statistics, planning models and real time."""

import _thread
import copy
import gc
import json
import multiprocessing
import pickle
import signal
import sys
import threading
import weakref
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import mujoco
import numpy as np
import pytest

from mujacobian import control
from mujacobian.control import tasks
from mujacobian.errors import ArgumentError, FailedItemsError
from tests.scenes.control_models import falling_cylinder, pendulum, slides, tumbler


def test_the_swing_up_is_repeated_bit_by_bit():
    model, cost = pendulum()
    results = []
    for _ in range(2):
        data = mujoco.MjData(model)
        data.qpos[0] = 0.2  # hanging straight down is a stationary point
        planner = control.ILQR(control.planning_model(model, timestep=0.04), cost, 40)
        results.append(control.MPC(model, planner).run(data, 4.0, progress=False))
    first, second = results
    assert first.states.tobytes() == second.states.tobytes()
    assert first.sensordata[-20:, 2].min() > 0.48
    assert first.times.shape == (200,)
    assert len(first.timings) == 100  # two simulated steps per knot
    assert np.allclose(np.diff(first.times), 0.02)
    assert np.allclose(first.costs, cost(first.sensordata, first.controls, first.times))
    assert np.allclose(first.costs, first.terms @ first.weights)
    assert first.names == ["tip", "speed", "effort"]
    assert first.plans_per_second > 0
    assert set(first.statistics["derivatives"]) == {"mean", "median", "p95"}


def test_the_record_is_what_was_simulated():
    model, cost = tumbler()
    data, again = mujoco.MjData(model), mujoco.MjData(model)
    planner = control.ILQR(control.planning_model(model, timestep=0.02), cost, 15)
    result = control.MPC(model, planner, steps_per_plan=3).run(data, 0.1, progress=True)
    for t in range(10):
        state = np.concatenate([again.qpos, again.qvel, again.act])
        assert state.tobytes() == result.states[t].tobytes()
        again.ctrl[:] = result.controls[t]
        mujoco.mj_step(model, again)
        assert again.sensordata.tobytes() == result.sensordata[t].tobytes()
    assert again.qpos.tobytes() == data.qpos.tobytes()
    assert np.allclose(result.plan_times, [0, 0.03, 0.06, 0.09])


def test_results_are_written_as_json(tmp_path):
    model, cost = pendulum()
    planner = control.ILQR(model, cost, 10, derivatives="fd")
    result = control.MPC(model, planner).run(mujoco.MjData(model), 0.1, progress=False)
    result.to_json(tmp_path / "result.json")
    read = json.loads((tmp_path / "result.json").read_text())
    assert read["derivatives"] == "fd"
    assert read["mujoco"] == mujoco.__version__
    assert np.allclose(read["states"], result.states)
    assert read["mean_cost"] == pytest.approx(result.costs.mean())
    assert read["milliseconds_per_plan"]["backward"]["median"] > 0


def test_real_time():
    model, cost = pendulum()
    planner = control.ILQR(model, cost, 30)
    result = control.MPC(model, planner, realtime=True).run(
        mujoco.MjData(model), 0.4, progress=False
    )
    assert result.seconds > 0.35
    assert len(result.times) == 20
    assert len(result.timings) >= 2
    assert result.plan_times[-1] > 0


def run_by_the_clock(value):
    """Run a pendulum in real time, with a user-defined residual."""
    model, _ = pendulum()

    def jacobian(times, states, controls):
        n = len(times)
        return np.tile(np.eye(1, 2), (n, 1, 1)), np.zeros((n, 1, 1))

    cost = control.Cost(model, [control.Term("a", control.UserResidual(1, value, jacobian))])
    mpc = control.MPC(model, control.ILQR(model, cost, 10), realtime=True)
    mpc.run(mujoco.MjData(model), 5.0, progress=False)


def test_errors_of_the_planner_reach_the_caller_in_real_time():
    calls = []

    def value(times, states, controls):
        calls.append(1)
        if len(calls) > 20:
            raise RuntimeError("no more")
        return states[:, :1]

    with pytest.raises(RuntimeError, match="no more"):
        run_by_the_clock(value)


def test_a_planner_that_exits_does_not_leave_the_simulation_alone():
    def value(times, states, controls):
        if threading.current_thread() is not threading.main_thread():
            sys.exit("enough")
        return states[:, :1]

    with pytest.raises(SystemExit, match="enough"):
        run_by_the_clock(value)


def test_plans_are_not_kept(monkeypatch):
    """Only the last plan is kept; all plans would fill the memory in a long run."""
    model, cost = pendulum()
    planner = control.ILQR(model, cost, 10)
    made, improve = [], planner.improve

    def watched(data, plan):
        plan = improve(data, plan)
        made.append(weakref.ref(plan))
        return plan

    monkeypatch.setattr(planner, "improve", watched)
    result = control.MPC(model, planner).run(mujoco.MjData(model), 0.2, progress=False)
    gc.collect()
    assert [plan() for plan in made] == [None] * 9 + [result.plan]


@pytest.fixture
def interruptible():
    """Restore SIGINT, which a shell ignores for processes in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_run_ends_its_thread():
    model, cost = pendulum()
    before = threading.active_count()

    def stop(times, states, controls):
        if times[0] > 0.1:
            _thread.interrupt_main()
        return 0 * states[:, :1]

    def jacobian(times, states, controls):
        return np.zeros((len(times), 1, 2)), np.zeros((len(times), 1, 1))

    stopper = control.Term("stop", control.UserResidual(1, stop, jacobian))
    cost = control.Cost(model, [*cost.terms, stopper])
    for realtime in (False, True):
        mpc = control.MPC(model, control.ILQR(model, cost, 10), realtime=realtime)
        data = mujoco.MjData(model)
        with pytest.raises(KeyboardInterrupt):
            mpc.run(data, 20.0, progress=False)
        assert 0.1 < data.time < 10
        assert threading.active_count() == before


def test_invalid_arguments_raise():
    model, cost = pendulum()
    planner = control.ILQR(model, cost, 10)
    with pytest.raises(ValueError, match="other elements"):
        control.MPC(slides(), planner)
    with pytest.raises(TypeError, match=r"planner must be a control\.ILQR, got Cost"):
        control.MPC(model, cost)
    with pytest.raises(ValueError, match="data was made from another model"):
        control.MPC(model, planner).run(mujoco.MjData(slides()), 1.0)
    with pytest.raises(TypeError, match=r"data must be a mujoco\.MjData, got MjModel"):
        control.MPC(model, planner).run(model, 1.0)
    with pytest.raises(ValueError, match="seconds must be a positive number"):
        control.MPC(model, planner).run(mujoco.MjData(model), 0.0)
    with pytest.raises(ValueError, match="steps_per_plan"):
        control.MPC(model, planner, steps_per_plan=0)


def test_a_diverging_simulation_says_where():
    model = mujoco.MjModel.from_xml_string(
        """
        <mujoco><option timestep=".01" gravity="0 0 0"><flag eulerdamp="disable"/></option>
          <worldbody><body><joint name="j" type="slide" damping="-1500"/><geom size=".1"/></body>
          </worldbody>
          <actuator><motor joint="j" ctrllimited="true" ctrlrange="-1 1"/></actuator>
          <sensor><jointpos name="p" joint="j"/></sensor></mujoco>
        """
    )
    cost = control.Cost(model, [control.Term("p", control.sensor(model, "p"))])
    planner = control.ILQR(control.planning_model(model, timestep=1e-4), cost, 3)
    data = mujoco.MjData(model)
    data.qvel[0] = 1.0
    with pytest.raises(control.DivergedError, match=r"simulation diverges in step \d+"):
        control.MPC(model, planner, steps_per_plan=5).run(data, 1.0, progress=False)


def test_an_unsupported_contact_does_not_stop_the_loop():
    model, cost = falling_cylinder()
    mpc = control.MPC(model, control.ILQR(model, cost, 12))
    with pytest.warns(RuntimeWarning, match=r"plans improved only a part .* at knot \d+: contact"):
        result = mpc.run(mujoco.MjData(model), 0.1, progress=False)
    assert any(result.refused)
    assert result.to_dict()["plans_refused"] > 0
    assert result.states[-1, 0] > 0  # it was pushed before it landed


def stiff_slide():
    """Return a mass on a spring that is stable below time steps of 6.3 ms, and its cost."""
    model = mujoco.MjModel.from_xml_string(
        """
        <mujoco><option timestep=".002" gravity="0 0 0"/>
          <worldbody><body><joint name="j" type="slide" stiffness="1e5" damping="10"/>
            <geom size=".1" mass="1"/></body></worldbody>
          <actuator><motor joint="j" ctrlrange="-1e4 1e4"/></actuator>
          <sensor><jointpos name="p" joint="j"/></sensor></mujoco>
        """
    )
    effort = control.Term("effort", control.controls(model), weight=1e-12)
    return model, control.Cost(model, [control.Term("p", control.sensor(model, "p")), effort])


def test_a_plan_that_diverges_has_smaller_steps():
    model, cost = stiff_slide()
    planner = control.ILQR(control.planning_model(model, timestep=0.01), cost, 40, mu=1e-9)
    data = mujoco.MjData(model)
    data.qpos[0] = 0.05
    with pytest.warns(RuntimeWarning, match=r"plans have smaller time steps .* diverges at knot"):
        result = control.MPC(model, planner).run(data, 0.1, progress=False)
    assert result.shortened[0].endswith("The plan has time steps of 0.005 s instead")
    assert result.to_dict()["plans_shortened"] == sum(map(bool, result.shortened)) > 0
    assert np.allclose(np.diff(result.plan.times), 0.005)
    assert "smaller time steps: " in repr(result.plan)
    assert result.controls.any()
    assert abs(result.states[:, 0]).max() <= 0.05  # the simulation itself is stable
    # a plan of its own begins with the initial state at all knots, which needs no simulation
    plan = planner.solve(data)
    assert plan.status == "converged"
    assert abs(plan.states[1:, 0]).max() < 0.01
    # a cost that is not finite at any time step still raises
    data.qpos[0] = 1e200
    with pytest.raises(control.DivergedError, match=r"knot .* of 40"):
        planner.improve(data)


def test_loops_of_a_batch_do_not_depend_on_workers():
    mpc = tasks.load("cartpole").mpc()
    starts = [[0.1 * k, 3.0, 0.0, 0.0] for k in range(3)]
    data = mujoco.MjData(mpc.model)
    data.qpos[:] = 0.3, 3.0
    data.ctrl[:] = 0.5
    before = data.qpos.copy()
    expected = mpc.run_batch([*starts, data], 0.2)
    assert (data.qpos == before).all()
    assert data.time == 0
    spawn = multiprocessing.get_context("spawn")
    for pool in (ThreadPoolExecutor(2), ProcessPoolExecutor(2, mp_context=spawn)):
        with pool:
            results = mpc.run_batch([*starts, data], 0.2, workers=pool.map)
        for one, other in zip(results, expected, strict=True):
            assert one.states.tobytes() == other.states.tobytes()
            assert one.plan.controls.tobytes() == other.plan.controls.tobytes()
    alone = tasks.load("cartpole").mpc(threads=1).run(data, 0.2, progress=False)
    assert alone.states.tobytes() == expected[3].states.tobytes()


def test_failed_loops_of_a_batch_are_named():
    mpc = tasks.load("cartpole").mpc()
    with pytest.raises(FailedItemsError, match="1 of 2 loops failed: loop 1: the") as caught:
        mpc.run_batch([[0.0, 3.0, 0.0, 0.0], [1e12, 0.0, 1e15, 1e9]], 0.1)
    assert len(caught.value.results[0].times) == 10
    with pytest.raises(ArgumentError, match=r"state must be finite, but state\[0\] is nan"):
        mpc.run_batch([[np.nan, 0.0, 0.0, 0.0]], 0.1)
    with pytest.raises(ArgumentError, match="got a batch as one of them"):
        mpc.run_batch([np.zeros((2, 4))], 0.1)
    with pytest.raises(ArgumentError, match="seconds must be a positive number"):
        mpc.run_batch([np.zeros(4)], -1.0)
    with pytest.raises(ArgumentError, match="real time"):
        control.MPC(mpc.model, mpc.planner, realtime=True).run_batch([np.zeros(4)], 0.1)


def test_copies_of_planners_and_loops_begin_anew():
    task = tasks.load("cartpole")
    planner, start = task.planner(threads=1), [0.1, 3.0, 0.0, 0.0]
    first = planner.improve(start)
    planner.improve(start, first)
    for twin in (copy.copy(planner), pickle.loads(pickle.dumps(planner))):
        assert repr(twin) == repr(planner)
        assert twin.improve(start).controls.tobytes() == first.controls.tobytes()
