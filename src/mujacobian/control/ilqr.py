"""Iterative LQR on exact derivatives."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, count, numbers, require_model, shaped
from mujacobian._linearization import Linearization
from mujacobian._rollout import first_states
from mujacobian._summary import describe
from mujacobian._threads import thread_count
from mujacobian.control.bounds import control_bounds
from mujacobian.control.cost import Cost
from mujacobian.control.passes import Direction, DivergedError, Knots, Passes
from mujacobian.control.plan import History, Plan, Policy
from mujacobian.control.regularization import Regularization
from mujacobian.errors import ArgumentError, ArgumentTypeError, MujacobianError

BACKENDS = ("analytic", "fd", "fd_centred", "wasp", "isolation")
REGULARIZATIONS = ("control", "state", "none")
STEP_SIZES = tuple(10.0 ** (-3 * k / 8) for k in range(9))  # 1 .. 0.001
# what precedes ctrl in mjSTATE_INTEGRATION, whose parts are in the order of their bits
BEFORE_CTRL = int(mujoco.mjtState.mjSTATE_INTEGRATION) & int(mujoco.mjtState.mjSTATE_CTRL) - 1
WORSE = 0.5  # by this part of what the plan costs: that may be the fault of its feedback
SMALLEST_COST = 1e-12  # below it a tolerance relative to the cost means nothing
SMALLEST_EXPECTED = 1e-300  # to divide by
ROUNDING = 1e-6  # of a time step: this near to a knot, a time is the knot's


class ILQR:
    """Minimises the mean cost over the knots of a horizon, by iterative LQR between bounds.

    Every iteration differentiates the steps along the trajectory, in threads, finds by a backward
    pass the step of the controls and the feedback that are best for the quadratic model (a QP
    between the bounds at every knot), and tries step sizes in rollouts with that feedback until the
    cost falls as expected. Results do not depend on the number of threads. Calls from several
    threads wait for one another; a process needs a planner of its own, as threads do not survive a
    fork.

    Args:
      model: the model to plan with, see `planning_model`; knots are its timestep apart.
      cost: what to minimise.
      horizon: number of knots T, at least 2.
      derivatives: "analytic", exact; or, to compare with, "fd" (mjd_transitionFD, one-sided),
        "fd_centred", "wasp" (approximate, warm-started), "isolation" (exact A and B, one-sided C
        and D). The latter count in `mujacobian.fd_count`.
      threads: by default one per available core.
      lower, upper: `(nu,)`, bounds of the controls; by default the model's ctrlrange.
      regularization: "control" (mu is added to Quu), "state" (to Vxx) or "none".
      mu: initial regularization.
      mu_bounds: smallest and largest regularization.
      mu_factor: growth factor of the rate at which the regularization changes.
      step_sizes: that rollouts try, in this order.
      acceptance: the part of the expected improvement with which no further one is tried.
      tolerance: converged when the expected improvement is below it, relative to the cost.
      interpolation: of policies between knots, "linear" or "hold".
      eps: step of the finite-difference backends.
      warm_start: of these differences: start MuJoCo's solver from its solution at the same state,
        which makes them about twice as fast, instead of from that of the step before, which is
        how they are used elsewhere.

    Example:
      >>> from mujacobian import control
      >>> from mujacobian.control import tasks
      >>> task = tasks.load("cartpole")
      >>> plan = control.ILQR(task.planned, task.cost, horizon=60).solve(task.start(None))
      >>> plan.status
      'converged'
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        cost: Cost,
        horizon: int,
        *,
        derivatives: str = "analytic",
        threads: int | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        regularization: str = "control",
        mu: float = 1.0,
        mu_bounds: tuple[float, float] = (1e-6, 1e6),
        mu_factor: float = 2.0,
        step_sizes: tuple[float, ...] = STEP_SIZES,
        acceptance: float = 0.1,
        tolerance: float = 1e-7,
        interpolation: str = "linear",
        eps: float = 1e-6,
        warm_start: bool = False,
    ) -> None:
        require_model(model)
        _one_of("derivatives", derivatives, BACKENDS)
        _one_of("regularization", regularization, REGULARIZATIONS)
        _one_of("interpolation", interpolation, ("linear", "hold"))
        if not isinstance(cost, Cost):
            raise ArgumentTypeError(f"cost must be a control.Cost, got {type(cost).__name__}")
        if (cost.ns, cost.nu, cost.nx) != (model.nsensordata, model.nu, 2 * model.nv + model.na):
            raise ArgumentError("the cost is of another model: its sensors or controls differ")
        if not model.nu:
            raise ArgumentError("the model has no actuators: there is nothing to plan")
        if count("horizon", horizon) < 2:
            raise ArgumentError(f"horizon must be at least 2 knots, got {horizon}")
        self.model, self.cost, self.horizon = model, cost, int(horizon)
        self.derivatives = derivatives
        self.threads = thread_count(threads)
        self.lower, self.upper = control_bounds(model, lower, upper)
        self.regularization = regularization
        self.mu_settings = (mu, mu_bounds, mu_factor)
        self.step_sizes = np.atleast_1d(numbers("step_sizes", step_sizes))
        if not len(self.step_sizes) or (self.step_sizes <= 0).any():
            raise ArgumentError(f"step_sizes must be positive, got {step_sizes}")
        if not eps > 0:
            raise ArgumentError(f"eps must be positive, got {eps!r}")
        if not tolerance >= 0:
            raise ArgumentError(f"tolerance must be at least 0, got {tolerance!r}")
        self.acceptance, self.tolerance = acceptance, tolerance
        self.is_linear = interpolation == "linear"
        self._passes = Passes(
            model,
            cost,
            self.horizon,
            (self.lower, self.upper),
            derivatives,
            eps,
            warm_start,
            self.threads,
        )
        self._lock, self._process = threading.Lock(), os.getpid()
        self.reset()

    def __repr__(self) -> str:
        return describe(
            f"ILQR: {self.horizon} knots of {self.model.opt.timestep:g} s",
            [
                f"{self.derivatives} derivatives, {self.threads} threads",
                f"{len(self.cost.terms)} terms, {self.model.nu} controls",
            ],
        )

    def solve(
        self,
        state: mujoco.MjData | ArrayLike,
        *,
        controls: ArrayLike | None = None,
        iterations: int = 100,
    ) -> Plan:
        """The plan from a state, iterated until it converges.

        Args:
          state: an `MjData` of the model or of one that differs in options only, which is not
            changed; or `(nq + nv + na,)`, a row of (qpos, qvel, act) at time 0.
          controls: `(T - 1, nu)` to begin with, by default `ctrl` of the state, 0 for a row, held.
          iterations: at most.
        """
        count("iterations", iterations)
        start = self.start_of(state)
        first = self._open_loop(start, controls)
        with self._alone():
            self.reset()
            return self._run(start, first, -1, iterations)

    def improve(self, state: mujoco.MjData | ArrayLike, plan: Plan | None = None) -> Plan:
        """The plan from a state after one iteration, for control in a loop.

        Where a step on the way has no exact derivative, which would end `solve` with an error, only
        the knots before it are improved, and `Plan.refused` says why.

        Args:
          state: as for `solve`; its time says how far `plan` is shifted.
          plan: the last plan: its policy is followed from the new state to begin with. None, or
            one that diverges from there, begins anew, holding `ctrl` of the state.
        """
        return self.improve_from(self.start_of(state), plan)

    def improve_from(self, start: Array, plan: Plan | None) -> Plan:
        """`improve` from what `start_of` has read."""
        with self._alone():
            if plan is not None:
                shift = round((start[0] - plan.times[0]) / self.model.opt.timestep)
                enough = plan.cost + WORSE * abs(plan.cost)
                try:
                    return self._run(start, plan.policy, max(shift, 0), enough=enough)
                except DivergedError:
                    pass  # where the plan does not lead any more, only a new one can
            self.reset()
            return self._run(start, self._open_loop(start, None), -1)

    def start_of(self, state: mujoco.MjData | ArrayLike) -> Array:
        """The state a plan begins at, as a row of mjSTATE_INTEGRATION."""
        start = first_states(self.model, state)
        if start.ndim != 1:
            raise ArgumentError("a plan begins at one state, not at a batch of them")
        return start

    @property
    def linearization(self) -> Linearization:
        """A, B, C and D along the trajectory that was differentiated last, views that go stale.

        Zero are A and B of the last knot, from which no step is taken, and exact C and D of sensors
        that the cost does not read.
        """
        e = self._passes.expansion
        return Linearization(e.A, e.B, e.C, e.D)

    def reset(self) -> None:
        """Forget the regularization of earlier plans."""
        mu, bounds, factor = self.mu_settings
        if self.regularization == "none":
            mu, bounds = 0.0, (0.0, 0.0)
        self._mu = Regularization(mu, bounds, factor)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While the arrays and threads of the planner are in use, other threads wait."""
        if os.getpid() != self._process:
            raise MujacobianError(
                "this planner was made in another process, and its threads did not survive the "
                "fork: make a planner in each process"
            )
        with self._lock:
            yield

    def _run(
        self,
        start: Array,
        policy: Policy,
        shift: int,
        iterations: int | None = None,
        enough: float = np.inf,
    ) -> Plan:
        """Follow a policy from the start, and improve its trajectory; None: once, come what may."""
        begun = time.perf_counter()
        passes = self._passes
        passes.begin(start)
        knots, cost = passes.follow(policy, shift, enough)
        if iterations:
            passes.require_all()
        refused = passes.refused
        initial, history, is_new = cost, _Log(), False
        shortly_after = passes.times[:-1] + ROUNDING * self.model.opt.timestep
        gains, status = _gains_at(policy, shortly_after), "iterations"
        for _ in range(iterations or 1):
            if is_new:
                passes.expand(knots)
            if passes.reach < 2:
                status = "refused"
                break
            least = self.tolerance * max(abs(cost), SMALLEST_COST)
            direction = self._direction(knots, gains, least)
            if direction is None:
                status = "not convex"
                break
            gains, mu = direction.gains, self._mu.value
            if direction.improvement(1.0) <= least:
                history.add(cost, direction.improvement(1.0), 0.0, mu, 0)
                status = "converged"
                break
            found = self._search(knots, cost, direction)
            expected = direction.improvement(found.size)
            self._mu.adapt((cost - found.cost) / max(expected, SMALLEST_EXPECTED), found.size)
            is_new = found.cost < cost
            knots, cost = found.knots, found.cost
            history.add(cost, expected, found.size if is_new else 0.0, mu, found.tried)
            if not is_new and self._mu.is_largest:
                status = "no improvement"
                break
        plan = self._plan(knots, gains, (initial, cost), history)
        timings = replace(passes.timings, total=time.perf_counter() - begun)
        return replace(plan, status=status, refused=refused, timings=timings)

    def _direction(self, knots: Knots, gains: Array, least: float) -> Direction | None:
        """A backward pass with as much regularization as it needs to be convex.

        As much, and where it expects to improve by no more than `least`, as little as it can.
        """
        best = self._backward(knots, gains)
        while best is None and not self._mu.is_largest:
            self._mu.scale(self._mu.factor)
            best = self._backward(knots, gains)
        while best and best.improvement(1.0) <= least and not self._mu.is_smallest:
            mu, rate = self._mu.value, self._mu.rate
            self._mu.scale(1 / self._mu.factor)
            lower = self._backward(knots, gains)
            if lower is None:
                self._mu.value, self._mu.rate = mu, rate
                break
            best = lower
        return best

    def _backward(self, knots: Knots, gains: Array) -> Direction | None:
        return self._passes.backward(knots, self.regularization, self._mu.value, gains)

    def _search(self, knots: Knots, cost: float, direction: Direction) -> _Found:
        """Rollouts by batches of as many as there are threads, until one is good enough."""
        best = _Found(knots, cost, float(self.step_sizes[-1]), 0)
        for first in range(0, len(self.step_sizes), self.threads):
            sizes = self.step_sizes[first : first + self.threads]
            wanted = np.array([cost - self.acceptance * direction.improvement(a) for a in sizes])
            made = self._passes.search(knots, cost, direction, sizes, wanted)
            for size, enough, (one, total) in zip(sizes, wanted, made, strict=True):
                best = best._replace(tried=best.tried + 1)
                if total < best.cost:
                    best = best._replace(knots=one, cost=total, size=float(size))
                if total <= enough:
                    return best
        return best

    def _plan(self, knots: Knots, gains: Array, costs: tuple[float, float], history: _Log) -> Plan:
        passes = self._passes
        policy = Policy(
            self.model,
            passes.times,
            passes.states(knots),
            knots.controls.copy(),
            np.concatenate([gains, gains[-1:]]),
            self.lower,
            self.upper,
            self.is_linear,
        )
        return Plan(
            times=policy.times,
            states=policy.states,
            controls=policy.controls[:-1],
            gains=gains,
            sensordata=knots.sensors.copy(),
            terms=passes.terms(knots),
            cost=costs[1],
            initial_cost=costs[0],
            policy=policy,
            history=history.arrays(),
        )

    def _open_loop(self, start: Array, controls: ArrayLike | None) -> Policy:
        """A policy of given controls without feedback."""
        T, nu, nx = self.horizon, self.model.nu, self.cost.nx
        if controls is None:
            first = mujoco.mj_stateSize(self.model, BEFORE_CTRL)
            held = start[first : first + nu].clip(self.lower, self.upper)
            u = np.tile(held, (T - 1, 1))
        else:
            u = shaped("controls", controls, (T - 1, nu))
        return Policy(
            self.model,
            start[0] + self.model.opt.timestep * np.arange(T - 1),
            np.tile(start[1 : 1 + self.cost.nstate], (T - 1, 1)),
            u,
            np.zeros((T - 1, nu, nx)),
            self.lower,
            self.upper,
            is_linear=False,
        )


class _Found(NamedTuple):
    """The best rollout of a search, or the trajectory it began with if none is better."""

    knots: Knots
    cost: float
    size: float
    tried: int


class _Log:
    """The rows of a history."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, float, int]] = []

    def add(self, cost: float, expected: float, step: float, mu: float, candidates: int) -> None:
        self.rows.append((cost, expected, step, mu, candidates))

    def arrays(self) -> History:
        return History(*np.array(self.rows, dtype=np.float64).reshape(-1, 5).T)


def _gains_at(policy: Policy, times: Array) -> Array:
    """The gains of the knots of a policy at or before these times."""
    knots = np.searchsorted(policy.times, times, side="right") - 1
    gains: Array = policy.gains[knots.clip(min=0)]
    return gains


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ArgumentError(f"{name} must be one of {', '.join(known)}, got {value!r}")
