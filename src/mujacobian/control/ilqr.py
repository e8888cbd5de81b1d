"""Iterative LQR with exact derivatives."""

from __future__ import annotations

import copy
import os
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, count, numbers, require_model, shaped
from mujacobian._differenced import require_fallback
from mujacobian._linearization import Linearization
from mujacobian._parameters import Parameters
from mujacobian._product import bind
from mujacobian._rollout import first_states
from mujacobian._summary import describe
from mujacobian._threads import thread_count
from mujacobian.control.bounds import control_bounds
from mujacobian.control.cost import Cost
from mujacobian.control.passes import Direction, DivergedError, Knots, Passes
from mujacobian.control.plan import History, Plan, Policy, Sensitivity
from mujacobian.control.regularization import Regularization
from mujacobian.control.sensitivity import (
    QUANTITIES,
    differentiate_plan,
    pull_back_plan,
)
from mujacobian.errors import ArgumentError, ArgumentTypeError, MujacobianError

BACKENDS = ("analytic", "fd", "fd_central", "wasp", "isolation")
FORMER_BACKENDS = {"fd_centred": "fd_central"}  # deprecated names
REGULARIZATIONS = ("control", "state", "none")
HESSIANS = ("gauss-newton", "exact", "auto")
STEP_SIZES = tuple(10.0 ** (-3 * k / 8) for k in range(9))  # 1 .. 0.001
# the parts of mjSTATE_INTEGRATION before ctrl; parts are in the order of their bits
BEFORE_CTRL = int(mujoco.mjtState.mjSTATE_INTEGRATION) & int(mujoco.mjtState.mjSTATE_CTRL) - 1
WORSE = 0.5  # relative increase of the cost above which smaller feedback gains are tried
SMALLEST_COST = 1e-12  # lower bound of the cost that the relative tolerance refers to
COST_ROUNDING = 1e-13  # relative rounding of the cost of a trajectory
SMALLEST_EXPECTED = 1e-300  # avoids a division by zero
NEAR = 1e-2  # expected relative decrease of the cost below which "auto" tries the exact Hessian
LONGEST_WAIT = 8  # iterations until "auto" tries the exact Hessian again after failures
ROUNDING = 1e-6  # time steps: a time this close to a knot is the time of the knot


class ILQR:
    """Planner that minimizes the mean cost over a horizon by iterative LQR with control bounds.

    An iteration has three parts. It differentiates the steps along the trajectory in parallel. A
    backward pass then computes the changes of the controls and the feedback gains that minimize the
    quadratic model, with one box-constrained QP per knot. Finally, a line search simulates several
    step sizes with this feedback until the cost decreases as expected.

    Results do not depend on the number of threads. Concurrent calls from several threads wait for
    each other. A planner cannot be used in a forked process, because its threads do not survive a
    fork: make one planner per process.

    Args:
      model: model for planning, see `planning_model`; its time step is the time between knots.
      cost: cost to minimize.
      horizon: number of knots T, at least 2.
      derivatives: source of derivatives. "analytic", the default, is exact. The others are for
        comparison, and `mujacobian.fd_count` counts their differences: "fd" (`mjd_transitionFD`,
        one-sided), "fd_central" (the same, central), "wasp" (approximate, warm-started) and
        "isolation" (exact A and B, one-sided C and D).
      threads: number of threads; by default one per available core.
      lower: `(nu,)`, lower bounds of the controls; by default those of the model's `ctrlrange`.
      upper: `(nu,)`, upper bounds of the controls; by default those of the model's `ctrlrange`.
      regularization: "control" (mu is added to Quu, the default), "state" (to Vxx) or "none".
      mu: initial regularization; by default 1.
      mu_bounds: (min, max) of the regularization; by default (1e-6, 1e6).
      mu_factor: growth factor of the rate at which the regularization changes; by default 2.
      step_sizes: step sizes of the line search, in the order in which it tries them; by default
        nine from 1 to 0.001.
      acceptance: fraction of the expected improvement at which the line search stops; by default
        0.1.
      tolerance: improvement relative to the cost, expected or found by a line search, below which
        the plan has converged; by default 1e-7.
      interpolation: interpolation of policies between knots, "linear" (the default) or "hold".
      eps: step of the finite-difference backends; by default 1e-6.
      warm_start: whether finite differences start MuJoCo's solver from its solution at the same
        state, which makes them about twice as fast; by default False, which starts it from the
        solution of the previous step, as other programs do.
      hessian: second derivatives of the quadratic model. "gauss-newton", the default, omits the
        curvature of the steps and of the sensors. "exact" includes it, which converges
        quadratically near a solution. "auto" starts with Gauss-Newton, tries the exact Hessian when
        the expected decrease becomes small, and takes the Gauss-Newton step if the exact problem is
        not convex or its step is rejected. User-defined residuals are always approximated.
      fallback: "fd" differentiates knots without an exact derivative by finite differences, which
        `Plan.differenced` lists. It is an attribute that can be changed later. By default None.

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
        hessian: str = "gauss-newton",
        fallback: str | None = None,
    ) -> None:
        # check the arguments
        require_model(model)
        if derivatives in FORMER_BACKENDS:
            current = FORMER_BACKENDS[derivatives]
            warnings.warn(f"{derivatives} is now {current}", DeprecationWarning, stacklevel=2)
            derivatives = current
        _one_of("derivatives", derivatives, BACKENDS)
        _one_of("regularization", regularization, REGULARIZATIONS)
        _one_of("interpolation", interpolation, ("linear", "hold"))
        _one_of("hessian", hessian, HESSIANS)
        if hessian != "gauss-newton" and derivatives != "analytic":
            raise ArgumentError(
                f'hessian="{hessian}" needs derivatives="analytic", got "{derivatives}"'
            )
        if not isinstance(cost, Cost):
            raise ArgumentTypeError(f"cost must be a control.Cost, got {type(cost).__name__}")
        if (cost.ns, cost.nu, cost.nx) != (model.nsensordata, model.nu, 2 * model.nv + model.na):
            raise ArgumentError(
                "the cost is of another model: numbers of sensors or controls differ"
            )
        if not model.nu:
            raise ArgumentError("the model has no actuators, so there are no controls to plan")
        if count("horizon", horizon) < 2:
            raise ArgumentError(f"horizon must be at least 2 knots, got {horizon}")
        # keep the settings
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
        self.acceptance, self.tolerance, self.hessian = acceptance, tolerance, hessian
        self.is_linear = interpolation == "linear"
        self._require_fallback(fallback)
        self._fallback = fallback
        # the compiled core with its arrays and threads
        self._passes = Passes(
            model,
            cost,
            self.horizon,
            (self.lower, self.upper),
            derivatives,
            eps,
            warm_start,
            self.threads,
            fallback,
        )
        self._lock, self._process = threading.Lock(), os.getpid()
        self.reset()

    def __repr__(self) -> str:
        return describe(
            f"ILQR: {self.horizon} knots of {self.model.opt.timestep:g} s",
            [
                f"{self.derivatives} derivatives, {self.hessian} Hessian, {self.threads} threads",
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
        """Return the plan from a state, iterated until it converges.

        If a step has no exact derivative, the iterations improve only the knots before it. If the
        last trajectory still has such a step, `Plan.status` and `Plan.refused` contain the element
        and the reason. See also the argument `fallback` of this class.

        Args:
          state: initial state. It is an `MjData` of the model, or of a model that differs only in
            options, and is not changed; or a row `(nq + nv + na,)` of (qpos, qvel, act) at time 0.
          controls: `(T - 1, nu)`, initial controls; by default the constant `ctrl` of the
            `MjData`, or zero for a row.
          iterations: maximum number of iterations; by default 100.
        """
        count("iterations", iterations)
        start = self.start_of(state)
        first = self._open_loop(start, controls)
        with self._alone():
            self.reset()
            return self._run(start, first, -1, iterations)

    def improve(self, state: mujoco.MjData | ArrayLike, plan: Plan | None = None) -> Plan:
        """Return the plan from a state after one iteration, for control in a loop.

        If a step has no exact derivative, this method improves only the knots before that step, and
        `Plan.refused` contains the element and the reason.

        Args:
          state: initial state, as for `solve`. Its time determines by how many knots `plan` is
            shifted.
          plan: previous plan, whose policy gives the initial trajectory. By default, or if that
            trajectory diverges, the initial controls are the constant `ctrl` of the state.
        """
        return self.improve_from(self.start_of(state), plan)

    def improve_from(self, start: Array, plan: Plan | None) -> Plan:
        """Return the same as `improve`, given the result of `start_of` as the initial state."""
        with self._alone():
            if plan is not None:
                shift = round((start[0] - plan.times[0]) / self.model.opt.timestep)
                enough = plan.cost + WORSE * abs(plan.cost)
                try:
                    return self._run(start, plan.policy, max(shift, 0), enough=enough)
                except DivergedError:
                    pass  # the old plan is of no use from this state: begin a new one
            self.reset()
            return self._run(start, self._open_loop(start, None), -1)

    def start_of(self, state: mujoco.MjData | ArrayLike) -> Array:
        """Return the initial state of a plan as a row of mjSTATE_INTEGRATION."""
        start = first_states(self.model, state)
        if start.ndim != 1:
            raise ArgumentError("a plan begins at one state, got a batch of states")
        return start

    def sensitivity(
        self, plan: Plan, start: Array, of: str, params: Parameters | None
    ) -> Sensitivity:
        """Return the result of `Plan.sensitivity`; `start` is the result of `start_of`."""
        _one_of("of", of, QUANTITIES)
        if (of == "params") != (params is not None):
            raise ArgumentError(
                'of="params" needs params, the mujacobian.Parameters of the planner\'s model'
                if params is None
                else f'params are only for of="params", got of={of!r}'
            )
        if params is not None:
            bind(params, self.model)
        with self._alone():
            self._passes.begin(start)
            policy = self._open_loop(start, plan.controls)
            return differentiate_plan(self._passes, policy, of, params)

    def solve_variant(
        self, state: Array, variant: tuple[Array, Array], controls: Array, iterations: int
    ) -> Plan:
        """Return the plan with other weights `(terms,)` and with an addition `(rows,)` to targets.

        If it has not converged, this raises an error.
        """
        start = self.start_of(state)
        first = self._open_loop(start, controls)
        with self._changed(*variant):
            self.reset()
            plan = self._run(start, first, -1, iterations)
            if plan.status != "converged":
                raise MujacobianError(
                    f"the plan has not converged after {len(plan.history.cost)} iterations: its "
                    f'status is "{plan.status}". Give more iterations, other initial controls, or '
                    'a planner with hessian="auto"'
                )
        return plan

    def pull_back_variant(
        self,
        state: Array,
        variant: tuple[Array, Array],
        controls: Array,
        d_states: Array,
        d_controls: Array,
    ) -> tuple[Array, Array, Array]:
        """Return the gradients by state, weights and targets of a plan from `solve_variant`."""
        start = self.start_of(state)
        with self._changed(*variant):
            self._passes.begin(start)
            policy = self._open_loop(start, controls)
            return pull_back_plan(self._passes, policy, d_states, d_controls)

    @contextmanager
    def _changed(self, weights: Array, shift: Array) -> Iterator[None]:
        """Lock the planner while it has a cost with other weights and targets."""
        variant, passes = copy.copy(self.cost), self._passes
        variant.weights = weights
        with self._alone():
            passes.cost, passes.shift = variant, shift
            try:
                yield
            finally:
                passes.cost, passes.shift = self.cost, 0.0

    @property
    def fallback(self) -> str | None:
        """The argument `fallback`: "fd" or None."""
        return self._fallback

    @fallback.setter
    def fallback(self, fallback: str | None) -> None:
        self._require_fallback(fallback)
        with self._alone():
            self._fallback = fallback
            self._passes.set_fallback(fallback)

    def _require_fallback(self, fallback: str | None) -> None:
        require_fallback(fallback)
        if fallback is not None and self.derivatives != "analytic":
            raise ArgumentError(
                f'fallback needs derivatives="analytic", got derivatives="{self.derivatives}"'
            )

    @property
    def linearization(self) -> Linearization:
        """A, B, C and D along the trajectory that was differentiated last.

        The arrays are views that the next plan overwrites. A and B of the last knot are zero,
        because no step begins there. Exact C and D of sensors that the cost does not read are zero.
        """
        e = self._passes.expansion
        return Linearization(e.A, e.B, e.C, e.D)

    def reset(self) -> None:
        """Reset the regularization and the choice of the Hessian to their initial values."""
        mu, bounds, factor = self.mu_settings
        if self.regularization == "none":
            mu, bounds = 0.0, (0.0, 0.0)
        self._mu = Regularization(mu, bounds, factor)
        self._curvature = _Schedule()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the arrays and threads of the planner, so that other threads wait."""
        if os.getpid() != self._process:
            raise MujacobianError(
                "this planner belongs to another process, and its threads did not survive the "
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
        """Return the plan that improves the trajectory of a policy.

        Without a number of iterations, there is one.
        """
        # simulate and differentiate the initial trajectory
        begun = time.perf_counter()
        passes = self._passes
        passes.begin(start)
        passes.keeps = self._expects_curvature()
        knots, cost = passes.follow(policy, shift, enough)
        refused = passes.refused
        initial, history, is_new, has_failed, approximated = cost, _Log(), False, False, ""
        shortly_after = passes.times[:-1] + ROUNDING * self.model.opt.timestep
        gains, status = _gains_at(policy, shortly_after), "iterations"
        for _ in range(iterations or 1):
            # derivatives along the current trajectory
            if is_new:
                passes.keeps = self._expects_curvature()
                passes.expand(knots)
                refused = passes.refused
            if passes.reach < 2:
                break
            # backward pass, and the test of convergence
            least = self.tolerance * max(abs(cost), SMALLEST_COST)
            direction = self._direction(knots, gains, least, may_lower=not has_failed)
            if direction is None:
                status = "not convex"
                break
            directions, reason = self._with_curvature(knots, cost, gains, direction)
            approximated = approximated or reason
            direction, mu = directions[0], self._mu.value
            if direction.improvement(1.0) <= least:
                gains, expected = direction.gains, direction.improvement(1.0)
                knots, cost, size, tried = self._last_step(knots, cost, direction)
                history.add(cost, expected, size, mu, tried, direction.is_exact)
                status = "no improvement" if has_failed else "converged"
                break
            # line search, and the update of the regularization
            found, direction = self._search_along(knots, cost, directions)
            gains = direction.gains
            expected, decrease = direction.improvement(found.size), cost - found.cost
            if not direction.is_exact or self.hessian == "exact":
                self._mu.adapt(decrease / max(expected, SMALLEST_EXPECTED), found.size)
            is_new, has_failed = decrease > 0, decrease <= 0
            knots, cost = found.knots, found.cost
            size = found.size if is_new else 0.0
            history.add(cost, expected, size, mu, found.tried, direction.is_exact)
            if is_new and decrease <= least:
                status = "converged"
                break
            if has_failed and self._mu.is_largest:
                status = "no improvement"
                break
        if refused and (iterations or passes.reach < 2):
            status = f"refused: {refused}"
        plan = self._plan(knots, gains, (initial, cost), history)
        timings = replace(passes.timings, total=time.perf_counter() - begun)
        return replace(
            plan,
            status=status,
            refused=refused,
            approximated=approximated,
            _planner=self,
            _start=start.copy(),
            differenced=passes.differenced,
            timings=timings,
        )

    def _expects_curvature(self) -> bool:
        """Return whether the next iteration probably computes the exact Hessian."""
        return self.hessian == "exact" or self._curvature.was_due

    def _with_curvature(
        self, knots: Knots, cost: float, gains: Array, approximate: Direction
    ) -> tuple[list[Direction], str]:
        """Return the directions to try, in this order, and why there is no exact one.

        The gradients of the value of the Gauss-Newton pass are the multipliers of the second
        derivatives (ILQ-13). They do not depend on the curvature, so that all knots are computed in
        parallel, and they are those of the exact pass up to the length of the step.
        """
        if self.hessian == "gauss-newton":
            return [approximate], ""
        if self.hessian == "auto" and not self._curvature.is_due(
            approximate.improvement(1.0) <= NEAR * abs(cost)
        ):
            return [approximate], ""
        if reason := self._passes.curve(knots, approximate.values):
            self._curvature.record(False)
            return [approximate], reason
        if self.hessian == "auto":
            exact = self._backward(knots, gains, mu=0.0, is_exact=True)
            exact = exact or self._backward(knots, gains, is_exact=True)
            if exact is None:
                self._curvature.record(False)
                return [approximate], ""
            return [exact, approximate], ""
        exact = self._backward(knots, gains, is_exact=True)
        while exact is None and not self._mu.is_largest:
            self._mu.scale(self._mu.factor)
            exact = self._backward(knots, gains, is_exact=True)
        return [exact or approximate], ""

    def _search_along(
        self, knots: Knots, cost: float, directions: list[Direction]
    ) -> tuple[_Found, Direction]:
        """Return the result of a line search along the first direction that decreases the cost."""
        for direction in directions[:-1]:
            found = self._search(knots, cost, direction)
            self._curvature.record(found.cost < cost)
            if found.cost < cost:
                return found, direction
        return self._search(knots, cost, directions[-1]), directions[-1]

    def _last_step(self, knots: Knots, cost: float, direction: Direction) -> _Found:
        """Return the trajectory after the step of a plan that has converged.

        A step with the exact Hessian squares the error, although the cost may not show it, because
        the decrease is of the size of its rounding. Other plans do not change any more.
        """
        unchanged = _Found(knots, cost, 0.0, 0)
        if not direction.is_exact:
            return unchanged
        most = cost + COST_ROUNDING * abs(cost)
        one, total = self._passes.search(knots, most, direction, np.ones(1), np.array([most]))[0]
        return _Found(one, total, 1.0, 1) if total <= most else unchanged._replace(tried=1)

    def _direction(
        self, knots: Knots, gains: Array, least: float, *, may_lower: bool
    ) -> Direction | None:
        """Return the result of the backward pass, None if no regularization makes it convex.

        The regularization increases until the problem is convex. If the expected improvement is not
        above `least` and `may_lower` is true, it decreases as long as the problem stays convex.
        After a line search that failed it must not, because the same search would fail again.
        """
        best = self._backward(knots, gains)
        while best is None and not self._mu.is_largest:
            self._mu.scale(self._mu.factor)
            best = self._backward(knots, gains)
        while may_lower and best and best.improvement(1.0) <= least and not self._mu.is_smallest:
            mu, rate = self._mu.value, self._mu.rate
            self._mu.scale(1 / self._mu.factor)
            lower = self._backward(knots, gains)
            if lower is None:
                self._mu.value, self._mu.rate = mu, rate
                break
            best = lower
        return best

    def _backward(
        self, knots: Knots, gains: Array, *, mu: float | None = None, is_exact: bool = False
    ) -> Direction | None:
        mu = self._mu.value if mu is None else mu
        return self._passes.backward(knots, self.regularization, mu, gains, is_exact=is_exact)

    def _search(self, knots: Knots, cost: float, direction: Direction) -> _Found:
        """Return the best rollout of a line search, which runs one step size per thread."""
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
        """Return a policy without feedback, with the given controls or the constant `ctrl`."""
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
    """The best rollout of a line search, or the initial trajectory if no rollout is better.

    `size` is its step size and `tried` the number of rollouts.
    """

    knots: Knots
    cost: float
    size: float
    tried: int


class _Schedule:
    """The iterations in which the exact Hessian is tried: rarely after failures, then always."""

    def __init__(self) -> None:
        self.wait, self.longest, self.was_due = 0, 1, False

    def is_due(self, is_near: bool) -> bool:
        """Return whether to try the exact Hessian now, given whether the solution seems near."""
        self.wait = max(self.wait - is_near, 0)
        self.was_due = is_near and self.wait == 0
        return self.was_due

    def record(self, has_succeeded: bool) -> None:
        """Record whether the exact Hessian gave a step; each failure doubles the wait."""
        self.longest = 1 if has_succeeded else min(2 * self.longest, LONGEST_WAIT)
        self.wait = 0 if has_succeeded else self.longest


class _Log:
    """Rows of a history, one per iteration."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, float, int, bool]] = []

    def add(
        self,
        cost: float,
        expected: float,
        step: float,
        mu: float,
        candidates: int,
        is_exact: bool,
    ) -> None:
        self.rows.append((cost, expected, step, mu, candidates, is_exact))

    def arrays(self) -> History:
        return History(*np.array(self.rows, dtype=np.float64).reshape(-1, 6).T)


def _gains_at(policy: Policy, times: Array) -> Array:
    """Return the gains of a policy at the last knots that are not after these times."""
    knots = np.searchsorted(policy.times, times, side="right") - 1
    gains: Array = policy.gains[knots.clip(min=0)]
    return gains


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ArgumentError(f"{name} must be one of {', '.join(known)}, got {value!r}")
