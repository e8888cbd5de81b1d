"""Model-predictive control: a loop that alternates between planning and simulation."""

from __future__ import annotations

import copy
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mujacobian import _core
from mujacobian._arguments import Array, count, number, require_data, require_model
from mujacobian._differenced import Differenced
from mujacobian._rollout import INTEGRATION, first_states
from mujacobian._summary import describe
from mujacobian._workers import Distribution, Workers
from mujacobian.control.constraint_rows import step_violations
from mujacobian.control.cost import weigh
from mujacobian.control.force_limits import warn_of_force_limits
from mujacobian.control.ilqr import ILQR
from mujacobian.control.mpc_result import MPCResult
from mujacobian.control.passes import DivergedError
from mujacobian.control.plan import Plan, Timings
from mujacobian.control.progress import Interval, RunCallback, require_callback
from mujacobian.errors import ArgumentError, ArgumentTypeError

Show = Callable[[], None]


class MPC:
    """The receding-horizon loop: a simulation of a model under the plans of a planner.

    Args:
      model: simulated model. The planner's model may differ in options and parameters, such as the
        time step, the integrator and the `solimp` of contacts, but must have the same elements.
      planner: planner that computes the plans.
      steps_per_plan: number of simulated steps per plan; by default as many as one knot lasts.
      realtime: whether the simulation runs in real time while a thread plans from its newest state;
        by default False: the simulation waits for each plan, and results are repeatable.
      fallback: "fd" sets the attribute `fallback` of the planner; by default it stays as it is.

    Example:
      >>> from mujacobian import control
      >>> from mujacobian.control import tasks
      >>> task = tasks.load("cartpole")
      >>> mpc = control.MPC(task.model, control.ILQR(task.planned, task.cost, horizon=60))
      >>> result = mpc.run(task.start(None), seconds=3.0, progress=False)
      >>> task.judge(result).success
      True
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        planner: ILQR,
        *,
        steps_per_plan: int | None = None,
        realtime: bool = False,
        fallback: str | None = None,
    ) -> None:
        require_model(model)
        if not isinstance(planner, ILQR):
            raise ArgumentTypeError(f"planner must be a control.ILQR, got {type(planner).__name__}")
        planned = planner.model
        if model.signature != planned.signature:
            raise ArgumentError("the planner's model has other elements than the simulated model")
        ratio = max(1, round(planned.opt.timestep / model.opt.timestep))
        self.model, self.planner, self.realtime = model, planner, realtime
        self.steps_per_plan = (
            ratio if steps_per_plan is None else count("steps_per_plan", steps_per_plan)
        )
        if fallback is not None:
            planner.fallback = fallback

    def __repr__(self) -> str:
        facts = [f"{self.steps_per_plan} steps of {self.model.opt.timestep:g} s per plan"]
        if self.realtime:
            facts.append("in real time")
        return describe("MPC", [*facts, *repr(self.planner).splitlines()])

    def run(
        self,
        data: mujoco.MjData,
        seconds: float,
        *,
        plan: Plan | None = None,
        progress: bool = True,
        callback: RunCallback | None = None,
        verbose: bool = False,
    ) -> MPCResult:
        """Simulate under control and return the result.

        Args:
          data: data of the simulated model, which advances with the simulation. Its counters of
            warnings are reset.
          seconds: simulated time, s.
          plan: initial plan; by default the planner begins without one.
          progress: whether to show a progress bar; by default True.
          callback: function that receives a `control.Interval` after the steps of each plan. It can
            draw the state in a viewer, write a log, or change the data to disturb the robot. If it
            returns True, the run ends, and the result contains the steps until then.
          verbose: whether to print a line per plan instead of the progress bar; by default False.

        Example:
          >>> from mujacobian.control import tasks
          >>> task = tasks.load("cartpole")
          >>> def push(interval):
          ...     if interval.taken == 50:
          ...         interval.data.qvel[0] += 0.1  # m/s
          ...     return interval.data.time > 0.999  # s
          >>> result = task.mpc().run(task.start(None), 5.0, progress=False, callback=push)
          >>> bool(result.times[-1] < 1.0)
          True
        """
        require_callback(callback)
        _require_seconds(seconds)
        n = max(1, round(seconds / self.model.opt.timestep))
        require_data("data", self.model, data)
        record, plans = _Record(self.model, n), _Plans(plan)
        data.warning.number[:] = 0  # the core detects divergence by new warnings
        begun = time.perf_counter()
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f}% {task.fields[note]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=verbose or not progress,
        )
        with bar:
            task = bar.add_task("simulating", total=n, note="")

            def show() -> None:
                last, rate = plans.made[-1], len(plans.made) / plans.seconds
                note = f"cost {last.cost:.4g}, {rate:.0f} plans/s"
                bar.update(task, completed=record.taken, note=note)
                interval = Interval(data, plans.latest, record.taken)
                if verbose:
                    print(interval)
                if callback is not None and callback(interval) is True:
                    record.stop()

            loop = self._realtime if self.realtime else self._lockstep
            loop(data, plans, record, show)
        result = self._result(record, plans, time.perf_counter() - begun)
        _warn(result)
        warn_of_force_limits(self.planner.model, result.plan)
        return result

    def run_batch(
        self,
        states: Sequence[mujoco.MjData | ArrayLike],
        seconds: float,
        *,
        workers: Workers = map,
    ) -> list[MPCResult]:
        """Return the results of closed loops from many initial states, for example to learn them.

        Each loop has a copy of the planner with one thread, and does not depend on the others.

        Args:
          states: initial states. Each one is an `MjData`, which is not changed, or a row
            `(nq + nv + na,)` of (qpos, qvel, act) at time 0.
          seconds: simulated time of each loop, s.
          workers: a map-like callable, such as the method `map` of an executor, that distributes
            the loops. By default the built-in `map`: one loop after another. Results are equal for
            any number of workers. Loops that fail raise `FailedItemsError` after all have ended.

        Example:
          >>> from concurrent.futures import ThreadPoolExecutor
          >>> from mujacobian.control import tasks
          >>> mpc = tasks.load("cartpole").mpc()
          >>> starts = [[0.1, 3.0, 0, 0], [-0.1, 3.2, 0, 0]]
          >>> with ThreadPoolExecutor(2) as pool:
          ...     results = mpc.run_batch(starts, 0.1, workers=pool.map)
          >>> [len(result.times) for result in results]
          [10, 10]
        """
        if self.realtime:
            raise ArgumentError("a batch of loops cannot run in real time: give realtime=False")
        _require_seconds(seconds)
        loop = copy.copy(self)
        loop.planner = self.planner.remade(threads=1)
        starts = [(first_states(self.model, state), seconds) for state in states]
        if any(start.ndim != 1 for start, _ in starts):
            raise ArgumentError("states must be a list of states, got a batch as one of them")
        return Distribution(workers, loop).run(_run_alone, starts, "loop", self.model)

    def _lockstep(self, data: mujoco.MjData, plans: _Plans, record: _Record, show: Show) -> None:
        """Alternate between planning and simulation."""
        while record.taken < record.n:
            plans.add(self.planner.improve(data, plans.last))
            record.advance(data, plans.latest, self.steps_per_plan)
            show()

    def _realtime(self, data: mujoco.MjData, plans: _Plans, record: _Record, show: Show) -> None:
        """Simulate in real time while another thread plans."""
        plans.add(self.planner.improve(data, plans.last))
        shared = _Shared(mujoco.MjData(self.model), plans)
        shared.publish(self.model, data)
        worker = threading.Thread(target=shared.make_plans, args=(self.planner,), daemon=True)
        worker.start()
        begun, h = time.perf_counter(), self.model.opt.timestep
        try:
            while record.taken < record.n and shared.error is None:
                due = int((time.perf_counter() - begun) / h) + 1 - record.taken
                if due <= 0:
                    time.sleep(h / 2)
                    continue
                record.advance(data, plans.latest, min(due, self.steps_per_plan))
                shared.publish(self.model, data)
                show()
        finally:
            shared.stopped = True
            worker.join()
        if shared.error is not None:
            raise shared.error

    def _result(self, record: _Record, plans: _Plans, seconds: float) -> MPCResult:
        cost = self.planner.cost
        terms = cost.by_term(record.sensordata, record.controls, record.times, record.states)
        weighted = weigh(terms, cost.step_weights(record.times))
        violations = step_violations(cost, record.sensordata, record.controls, record.times)
        return MPCResult(
            times=record.times,
            states=record.states,
            controls=record.controls,
            sensordata=record.sensordata,
            costs=weighted.sum(axis=1),
            terms=terms,
            weighted=weighted,
            names=[term.name for term in cost.terms],
            weights=np.array(cost.weights, dtype=np.float64),
            violations=violations,
            plan_times=np.array([made.time for made in plans.made]),
            plan_costs=np.array([made.cost for made in plans.made]),
            step_sizes=np.array([made.step_size for made in plans.made]),
            refused=[made.refused for made in plans.made],
            shortened=[made.shortened for made in plans.made],
            omitted=[made.omitted for made in plans.made],
            differenced=[made.differenced for made in plans.made],
            timings=[made.timings for made in plans.made],
            seconds=seconds,
            derivatives=self.planner.derivatives,
            threads=self.planner.threads,
            plan=plans.latest,
        )


def _require_seconds(seconds: float) -> None:
    if number("seconds", seconds) <= 0:
        raise ArgumentError(f"seconds must be a positive number, got {seconds!r}")


def _run_alone(loop: MPC, item: tuple[Array, float]) -> MPCResult:
    """Return the result of a loop with a planner of its own; runs in a worker."""
    start, seconds = item
    data = mujoco.MjData(loop.model)
    mujoco.mj_setState(loop.model, data, start, INTEGRATION)
    alone = copy.copy(loop)
    alone.planner = loop.planner.remade()
    return alone.run(data, seconds, progress=False)


class _Made(NamedTuple):
    """The data of a plan that the result contains."""

    time: float
    cost: float
    step_size: float
    refused: str
    shortened: str
    omitted: tuple[str, ...]
    differenced: tuple[Differenced, ...]
    timings: Timings


class _Plans:
    """The last plan of a run, and the recorded data of all plans."""

    def __init__(self, plan: Plan | None) -> None:
        self.last = plan
        self.made: list[_Made] = []
        self.seconds = 0.0  # total planning time

    @property
    def latest(self) -> Plan:
        """The last plan, which must exist."""
        assert self.last is not None
        return self.last

    def add(self, plan: Plan) -> None:
        """Record a plan, which becomes the last one."""
        size = float(plan.history.step[-1]) if len(plan.history.step) else 0.0
        self.seconds += plan.timings.total
        report = plan.refused, plan.shortened, plan.omitted, plan.differenced
        self.made.append(_Made(plan.times[0], plan.cost, size, *report, plan.timings))
        self.last = plan


class _Record:
    """Arrays that a run fills step by step."""

    def __init__(self, model: mujoco.MjModel, n: int) -> None:
        self.model, self.n, self.taken = model, n, 0
        self.times = np.empty(n)
        self.states = np.empty((n, model.nq + model.nv + model.na))
        self.controls = np.empty((n, model.nu))
        self.sensordata = np.empty((n, model.nsensordata))

    def stop(self) -> None:
        """End the record after the steps that have been taken."""
        self.n = self.taken
        for name in ("times", "states", "controls", "sensordata"):
            setattr(self, name, getattr(self, name)[: self.n])

    def advance(self, data: mujoco.MjData, plan: Plan, steps: int) -> None:
        """Simulate this number of steps under a plan."""
        rows = slice(self.taken, min(self.taken + steps, self.n))
        taken = _core.follow_policy(
            self.model,
            data,
            policy=plan.policy.arrays,
            lower=plan.policy.lower,
            upper=plan.policy.upper,
            times=self.times[rows],
            states=self.states[rows],
            controls=self.controls[rows],
            sensors=self.sensordata[rows],
        )
        self.taken += taken
        if self.taken < rows.stop:
            raise DivergedError(
                f"the simulation diverges in step {self.taken}, at {data.time:.3f} s: MuJoCo "
                "detected NaN or huge values. Simulate with a smaller timestep, or plan more often"
            )


class _Shared:
    """Data that the simulation and the planning thread exchange."""

    def __init__(self, data: mujoco.MjData, plans: _Plans) -> None:
        self.lock, self.data, self.plans = threading.Lock(), data, plans
        self.stopped, self.error = False, None  # type: bool, BaseException | None

    def publish(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Copy the newest state for the planning thread."""
        with self.lock:
            mujoco.mj_copyData(self.data, model, data)

    def make_plans(self, planner: ILQR) -> None:
        """Plan from the newest state in a loop, until the simulation stops."""
        try:
            while not self.stopped:
                with self.lock:
                    start = planner.start_of(self.data)
                self.plans.add(planner.improve_from(start, self.plans.last))
        except BaseException as error:  # any error must also stop the simulation
            self.error = error


def _warn(result: MPCResult) -> None:
    """Warn about plans for which some derivatives do not exist."""
    refused = [reason for reason in result.refused if reason]
    omitted = [reasons[0] for reasons in result.omitted if reasons]
    shortened = [reason for reason in result.shortened if reason]
    for reasons, what in (
        (shortened, "have smaller time steps and a shorter horizon, for example because"),
        (refused, "improved only a part of their horizon, for example because at"),
        (omitted, "left out a sensor where it has no derivative, for example at"),
    ):
        if reasons:
            warnings.warn(
                f"{len(reasons)} of {len(result.refused)} plans {what} {reasons[0]}",
                RuntimeWarning,
                stacklevel=3,
            )
