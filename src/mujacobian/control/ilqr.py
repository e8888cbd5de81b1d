"""Iterative LQR with exact derivatives."""

from __future__ import annotations

import copy
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

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
from mujacobian.control.descent import Descent, Progress, Settings
from mujacobian.control.enforcement import (
    FIRST_TOLERANCE,
    describe_constraints,
    enforce,
    penalize,
    resume,
    update,
)
from mujacobian.control.passes import BEFORE_CTRL, DivergedError, Passes
from mujacobian.control.plan import Plan, Policy, Sensitivity
from mujacobian.control.planned_model import planning_model
from mujacobian.control.progress import Callback, Log, require_callback
from mujacobian.control.race import FEW, TRIAL, Attempt, race
from mujacobian.control.sensitivity import (
    QUANTITIES,
    differentiate_plan,
    pull_back_plan,
)
from mujacobian.control.trajectory import Iterate
from mujacobian.errors import ArgumentError, ArgumentTypeError, MujacobianError

BACKENDS = ("analytic", "fd", "fd_central", "wasp", "isolation")
FORMER_BACKENDS = {"fd_centred": "fd_central"}  # deprecated names
REGULARIZATIONS = ("control", "state", "none")
HESSIANS = ("gauss-newton", "exact", "auto")
STEP_SIZES = tuple(10.0 ** (-3 * k / 8) for k in range(9))  # 1 .. 0.001
ITERATIONS, CONSTRAINED_ITERATIONS = 100, 300  # of `solve`, by default
WORSE = 0.5  # relative increase of the cost above which smaller feedback gains are tried
# of the initial regularization, in `solve`: from a simulation, and from states with gaps
FACTOR, FACTOR_OF_GAPS = 1e-2, 1e-6
HALVINGS = 4  # of the time step, after which a plan that still diverges raises an error
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
      cost: cost to minimize, with the constraints of the plan.
      horizon: number of knots T, at least 2.
      derivatives: source of derivatives. "analytic", the default, is exact. The others are for
        comparison, and `mujacobian.fd_count` counts their differences: "fd" (`mjd_transitionFD`,
        one-sided), "fd_central" (the same, central), "wasp" (approximate, warm-started) and
        "isolation" (exact A and B, one-sided C and D).
      threads: number of threads; by default one per available core.
      lower: `(nu,)`, lower bounds of the controls; by default those of the model's `ctrlrange`.
      upper: `(nu,)`, upper bounds of the controls; by default those of the model's `ctrlrange`.
      regularization: "control" (the default: mu is added to Quu, in units in which the bounds of
        each control are 2 apart), "state" (mu is added to Vxx) or "none".
      mu: initial regularization; by default 1. `solve` begins with smaller values, 0.01
        and 1e-6 times this one.
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
        not convex or its step is rejected. User-defined residuals are always approximated, and
        trajectories with gaps are improved with Gauss-Newton steps.
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
        sizes = np.atleast_1d(numbers("step_sizes", step_sizes))
        if not len(sizes) or (sizes <= 0).any():
            raise ArgumentError(f"step_sizes must be positive, got {step_sizes}")
        if not eps > 0:
            raise ArgumentError(f"eps must be positive, got {eps!r}")
        if not tolerance >= 0:
            raise ArgumentError(f"tolerance must be at least 0, got {tolerance!r}")
        self.hessian, self.is_linear = hessian, interpolation == "linear"
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
        self._settings = Settings(
            regularization,
            mu,
            mu_bounds,
            mu_factor,
            sizes,
            acceptance,
            tolerance,
            hessian,
            self.threads,
        )
        self._descent = Descent(self._passes, self._settings)
        # the planner with half the time step, which is made when a plan diverges
        self._arguments: dict[str, Any] = {
            "derivatives": derivatives,
            "threads": threads,
            "lower": self.lower,
            "upper": self.upper,
            "regularization": regularization,
            "mu": mu,
            "mu_bounds": mu_bounds,
            "mu_factor": mu_factor,
            "step_sizes": step_sizes,
            "acceptance": acceptance,
            "tolerance": tolerance,
            "interpolation": interpolation,
            "eps": eps,
            "warm_start": warm_start,
            "hessian": hessian,
            "fallback": fallback,
        }
        self._finer: ILQR | None = None
        self._halvings = HALVINGS
        self._lock, self._process = threading.Lock(), os.getpid()

    def __repr__(self) -> str:
        return describe(
            f"ILQR: {self.horizon} knots of {self.model.opt.timestep:g} s",
            [
                f"{self.derivatives} derivatives, {self.hessian} Hessian, {self.threads} threads",
                f"{len(self.cost.terms)} terms, {len(self.cost.constraints)} constraints, "
                f"{self.model.nu} controls",
            ],
        )

    def solve(
        self,
        state: mujoco.MjData | ArrayLike,
        *,
        controls: ArrayLike | None = None,
        states: ArrayLike | None = None,
        iterations: int | None = None,
        widths: Sequence[float] = (),
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> Plan:
        """Return the plan from a state, iterated until it converges.

        The iterations begin in two ways: with the simulation of the initial controls, and with the
        initial state at all knots, which the iterations connect (ILQ-23). They also differ in the
        initial regularization. After 40 iterations each, only the better plan is continued. With
        derivatives other than "analytic", or at most 10 iterations, the first way is the only one.

        With constraints, rounds of iterations with updated multipliers follow until they hold.

        If a step has no exact derivative, the iterations improve only the other knots. If the last
        trajectory still has such a step, `Plan.status` and `Plan.refused` contain the element and
        the reason. See also the argument `fallback` of this class.

        Args:
          state: initial state. It is an `MjData` of the model, or of a model that differs only in
            options, and is not changed; or a row `(nq + nv + na,)` of (qpos, qvel, act) at time 0.
          controls: `(T - 1, nu)`, initial controls; by default the constant `ctrl` of the
            `MjData`, or zero for a row.
          states: `(T, nq + nv + na)`, initial states of the knots, rows of (qpos, qvel, act). No
            simulation has to connect them, and the first row is replaced by `state`. The iterations
            then begin only with them. By default they begin as described above.
          iterations: maximum number of iterations; by default 100, or 300 with constraints.
          widths: descending widths of contacts, m, for example (0.03, 0.01). Plans with contacts
            that are at least so wide (`planning_model`) come first, each of which begins with the
            controls of the one before, and the plan with the model itself comes last (homotopy).
            They share the iterations equally. By default there is only the last plan.
            `Plan.history` is that of the last plan, and a callback receives all iterations.
          callback: function that receives a `control.Iteration` after each iteration, for logging
            or drawing. If it returns True, the planner stops with the best plan until then,
            whose status is "stopped" unless it has ended before. It must not use the planner.
          verbose: whether to print a line per iteration; by default False.
        """
        if iterations is None:
            iterations = CONSTRAINED_ITERATIONS if self.cost.constraints else ITERATIONS
        count("iterations", iterations)
        require_callback(callback)
        start = self.start_of(state)
        first = self._open_loop(start, controls)
        given = None
        if states is not None:
            given = shaped("states", states, (self.horizon, self.cost.nstate))
        log = partial(Log, callback, verbose)
        stages = _descending(widths)
        share = max(1, iterations // (len(stages) + 1))
        with self._alone():
            for width in stages:
                wide = self._with_width(width)._solve(start, first, given, share, log)
                first, given = self._open_loop(start, wide.controls), None
                if wide.status == "stopped":
                    return replace(self._solve(start, first, None, 0, log), status="stopped")
            return self._solve(start, first, given, share, log)

    def _with_width(self, width: float) -> ILQR:
        """Return the same planner for the model with contacts of at least this width."""
        model = planning_model(self.model, width=width)
        return ILQR(model, self.cost, self.horizon, **self._arguments)

    def _solve(
        self,
        start: Array,
        first: Policy,
        states: Array | None,
        iterations: int,
        log: Callable[[int], Log],
    ) -> Plan:
        """Return the result of `solve`; `log` makes the log of an attempt, given its number."""
        begun = time.perf_counter()
        passes = self._passes
        passes.begin(start)
        attempts = self._attempts(first, states, iterations)
        initial = attempts[0].progress.iterate.cost
        penalize(passes, [attempt.progress for attempt in attempts])
        for k, attempt in enumerate(attempts):
            attempt.progress.log = log(k)
        first_round = min(iterations, TRIAL) if self.cost.constraints else iterations
        best = race(passes, attempts, first_round)
        enforce(passes, best, self._settings.tolerance, iterations)
        self._descent, progress = best.descent, best.progress
        progress.iterate = passes.close(progress.iterate, progress.gains)
        if not progress.iterate.cost < np.inf:
            raise DivergedError(
                "the iterations did not connect the initial states, and the simulation diverges. "
                "Give other initial states, or plan with a smaller timestep"
            )
        if progress.refused:
            progress.status = f"refused: {progress.refused}"
        return self._plan(start, progress, initial, begun)

    def _attempts(self, first: Policy, states: Array | None, iterations: int) -> list[Attempt]:
        """Return the ways in which `solve` begins."""
        if states is not None:
            return [self._attempt(self._shoot(first, states), 1.0)]
        self._passes.keeps = self.hessian == "exact"
        simulated = Iterate(*self._passes.follow(first, -1, np.inf))
        attempts = [self._attempt(simulated, FACTOR, is_new=False)]
        if self.derivatives == "analytic" and iterations > FEW:
            held = np.tile(first.states[:1], (self.horizon, 1))
            with suppress(DivergedError):
                attempts.append(self._attempt(self._shoot(first, held), FACTOR_OF_GAPS))
        return attempts

    def _shoot(self, policy: Policy, states: Array) -> Iterate:
        """Return the knots from these states with the controls of a policy without feedback."""
        controls = policy.controls.clip(self.lower, self.upper)
        states = np.concatenate([policy.states[:1], states[1:]])
        return self._passes.shoot(states, np.concatenate([controls, controls[-1:]]))

    def _attempt(self, first: Iterate, factor: float, *, is_new: bool = True) -> Attempt:
        """Return the iterations from a trajectory with the regularization times a factor."""
        gains = np.zeros((self.horizon - 1, self.model.nu, self.cost.nx))
        settings = self._settings._replace(mu=factor * self._settings.mu)
        descent = Descent(self._passes, settings)
        if self.cost.constraints:
            descent.tolerance = max(FIRST_TOLERANCE, descent.tolerance)
        return Attempt(descent, Progress(first, gains, is_new))

    def improve(self, state: mujoco.MjData | ArrayLike, plan: Plan | None = None) -> Plan:
        """Return the plan from a state after one iteration, for control in a loop.

        If a step has no exact derivative, this method improves only the other knots, and
        `Plan.refused` contains the element and the reason.

        Args:
          state: initial state, as for `solve`. Its time determines by how many knots `plan` is
            shifted.
          plan: previous plan, whose policy gives the initial trajectory. By default, or if that
            trajectory diverges, the initial controls are the constant `ctrl` of the state. If this
            diverges too, the plan has smaller time steps and a shorter horizon: see
            `Plan.shortened`.
        """
        return self.improve_from(self.start_of(state), plan)

    def improve_from(self, start: Array, plan: Plan | None) -> Plan:
        """Return the same as `improve`, given the result of `start_of` as the initial state."""
        with self._alone():
            if plan is not None:
                shift = round((start[0] - plan.times[0]) / self.model.opt.timestep)
                enough = plan.cost + WORSE * abs(plan.cost)
                try:
                    return self._run(start, plan.policy, max(shift, 0), enough=enough, plan=plan)
                except DivergedError:
                    pass  # the old plan is of no use from this state: begin a new one
            self.reset()
            try:
                return self._run(start, self._open_loop(start, None), -1)
            except DivergedError as error:
                return self._improve_in_small_steps(start, plan, error)

    def _improve_in_small_steps(
        self, start: Array, plan: Plan | None, error: DivergedError
    ) -> Plan:
        """Return the plan of as many knots with half the time step, whose horizon is shorter.

        If it diverges too, the time step is halved again. If all time steps diverge, the error of
        the first one is raised.
        """
        if self._halvings == 0:
            raise error
        if self._finer is None:
            model = copy.copy(self.model)
            model.opt.timestep /= 2
            self._finer = ILQR(model, self.cost, self.horizon, **self._arguments)
            self._finer._halvings = self._halvings - 1
        try:
            made = self._finer.improve_from(start, plan)
        except DivergedError:
            raise error from None
        step = made.times[1] - made.times[0]
        return replace(made, shortened=f"{error}. The plan has time steps of {step:g} s instead")

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
            resume(self._passes, plan)
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
            self._fallback = self._arguments["fallback"] = fallback
            self._passes.set_fallback(fallback)
            self._finer = None

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
        self._descent = Descent(self._passes, self._settings)

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
        iterations: int = 1,
        enough: float = np.inf,
        plan: Plan | None = None,
    ) -> Plan:
        """Return the plan that improves the trajectory of a policy.

        `plan` is the earlier plan whose multipliers the constraints have.
        """
        # simulate and differentiate the initial trajectory
        begun = time.perf_counter()
        passes = self._passes
        passes.begin(start)
        passes.keeps = self._descent.expects_curvature()
        has_multipliers = plan is not None and resume(passes, plan)
        first = Iterate(*passes.follow(policy, shift, enough))
        shortly_after = passes.times[:-1] + ROUNDING * self.model.opt.timestep
        progress, initial = Progress(first, _gains_at(policy, shortly_after)), passes.cost_of(first)
        if not has_multipliers:
            penalize(passes, [progress])
        self._descent.run(progress, iterations)
        update(passes, progress)
        if progress.refused and not passes.segments:
            progress.status = f"refused: {progress.refused}"
        return self._plan(start, progress, initial, begun)

    def _plan(self, start: Array, progress: Progress, initial: float, begun: float) -> Plan:
        passes, knots, gains = self._passes, progress.iterate.knots, progress.gains
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
        plan = Plan(
            times=policy.times,
            states=policy.states,
            controls=policy.controls[:-1],
            gains=gains,
            sensordata=knots.sensors.copy(),
            terms=passes.terms(knots),
            cost=passes.cost_of(progress.iterate),
            initial_cost=initial,
            policy=policy,
            history=progress.log.arrays(),
            status=progress.status,
            refused=progress.refused,
            omitted=progress.omitted,
            approximated=progress.approximated,
            differenced=passes.differenced,
            timings=replace(passes.timings, total=time.perf_counter() - begun),
            _planner=self,
            _start=start.copy(),
        )
        return describe_constraints(passes, knots, plan)

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


def _gains_at(policy: Policy, times: Array) -> Array:
    """Return the gains of a policy at the last knots that are not after these times."""
    knots = np.searchsorted(policy.times, times, side="right") - 1
    gains: Array = policy.gains[knots.clip(min=0)]
    return gains


def _descending(widths: Sequence[float]) -> Array:
    """Return widths of contacts, which must be positive and descending."""
    given = np.atleast_1d(numbers("widths", widths))
    if given.ndim != 1 or (given <= 0).any() or (np.diff(given) >= 0).any():
        raise ArgumentError(f"widths must be positive lengths in descending order, got {widths!r}")
    return given


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ArgumentError(f"{name} must be one of {', '.join(known)}, got {value!r}")
