"""Iterative LQR with exact derivatives."""

from __future__ import annotations

import copy
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _notices
from mujacobian._arguments import Array, count, numbers, require_model, require_one_of, shaped
from mujacobian._differenced import require_fallback
from mujacobian._linearization import Linearization
from mujacobian._manifold import tangent_size
from mujacobian._parameters import Parameters
from mujacobian._summary import describe
from mujacobian._threads import thread_count
from mujacobian.control.bounds import control_bounds
from mujacobian.control.cost import Cost
from mujacobian.control.enforcement import resume
from mujacobian.control.force_limits import warn_of_force_limits
from mujacobian.control.initial_state import initial_state
from mujacobian.control.optimization import Optimization
from mujacobian.control.passes import DivergedError, Passes
from mujacobian.control.plan import Plan, Sensitivity
from mujacobian.control.planned_model import planning_model
from mujacobian.control.progress import Callback, Log, require_callback
from mujacobian.control.sensitivity import differentiate_plan, pull_back_plan
from mujacobian.control.settings import Settings
from mujacobian.errors import ArgumentError, ArgumentTypeError, MujacobianError

BACKENDS = ("analytic", "fd", "fd_central", "wasp", "isolation")
FORMER_BACKENDS = {"fd_centred": "fd_central"}  # deprecated names
STEP_SIZES = tuple(10.0 ** (-3 * k / 8) for k in range(9))  # 1 .. 0.001
ITERATIONS, CONSTRAINED_ITERATIONS = 100, 300  # of `solve`, by default
HALVINGS = 4  # of the time step, after which a plan that still diverges raises an error


class ILQR:
    """Planner that minimizes the mean cost over a horizon by iterative LQR with control bounds.

    An iteration has three parts. It differentiates the steps along the trajectory in parallel. A
    backward pass then computes the changes of the controls and the feedback gains that minimize the
    quadratic model, with one box-constrained QP per knot. Finally, a line search simulates several
    step sizes with this feedback until the cost decreases as expected.

    Results do not depend on the number of threads. Concurrent calls from several threads wait for
    each other. A planner cannot be used in a forked process, because its threads do not survive a
    fork: make one planner per process. A planner that is copied or pickled begins anew, without
    regularization and multipliers of earlier plans.

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
        require_model(model)
        if derivatives in FORMER_BACKENDS:
            current = FORMER_BACKENDS[derivatives]
            warnings.warn(f"{derivatives} is now {current}", DeprecationWarning, stacklevel=2)
            derivatives = current
        require_one_of("derivatives", derivatives, BACKENDS)
        _require_cost(cost, model)
        if count("horizon", horizon) < 2:
            raise ArgumentError(f"horizon must be at least 2 knots, got {horizon}")
        self.model, self.cost, self.horizon = model, cost, int(horizon)
        self.derivatives, self.hessian = derivatives, hessian
        self.threads = thread_count(threads)
        self.lower, self.upper = control_bounds(model, lower, upper)
        self._settings = Settings(
            derivatives=derivatives,
            threads=self.threads,
            lower=self.lower,
            upper=self.upper,
            regularization=regularization,
            mu=mu,
            mu_bounds=mu_bounds,
            mu_factor=mu_factor,
            step_sizes=np.atleast_1d(numbers("step_sizes", step_sizes)),
            acceptance=acceptance,
            tolerance=tolerance,
            interpolation=interpolation,
            eps=eps,
            warm_start=warm_start,
            hessian=hessian,
        )
        self._require_fallback(fallback)
        self._fallback = fallback
        # the compiled core with its arrays and threads
        self._passes = Passes(model, cost, self.horizon, self._settings, fallback)
        self._optimization = Optimization(self._passes, self._settings)
        self._lock, self._process = threading.Lock(), os.getpid()
        # the planner with half the time step, which is made when a plan diverges
        self._finer: ILQR | None = None
        self._halvings = HALVINGS

    def __repr__(self) -> str:
        return describe(
            f"ILQR: {self.horizon} knots of {self.model.opt.timestep:g} s",
            [
                f"{self.derivatives} derivatives, {self.hessian} Hessian, {self.threads} threads",
                f"{len(self.cost.terms)} terms, {len(self.cost.constraints)} constraints, "
                f"{self.model.nu} controls",
            ],
        )

    def __reduce__(self) -> tuple[Callable[..., ILQR], tuple[object, ...]]:
        make = partial(ILQR, fallback=self._fallback, **vars(self._settings))
        return make, (self.model, self.cost, self.horizon)

    def solve(
        self,
        state: mujoco.MjData | ArrayLike,
        *,
        controls: ArrayLike | None = None,
        states: ArrayLike | None = None,
        iterations: int | None = None,
        widths: Sequence[float] | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> Plan:
        """Return the plan from a state, iterated until it converges.

        The iterations begin in two ways: with the simulation of the initial controls, and with the
        initial state at all knots, which the iterations connect (ILQ-23). They also differ in the
        initial regularization. After 20 and 40 iterations, only the better plan is continued. With
        derivatives other than "analytic", or at most 10 iterations, the first way is the only one.
        If this simulation diverges, the second way is the only one.

        If contacts or limits act along this plan, a detour follows: five plans with wider contacts,
        8 iterations each, and 20 iterations with the model itself (ILQ-33). The better one of both
        plans is continued. There is no detour with constraints, with given `states` or `widths`, or
        with at most 70 iterations.

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
            They share the iterations equally. `Plan.history` is that of the last plan, and a
            callback receives all iterations. By default None, which makes the detour that is
            described above; `widths=()` makes no detour.
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
        first = self._optimization.open_loop(start, controls)
        given = None
        if states is not None:
            given = shaped("states", states, (self.horizon, self.cost.nstate))
        log = partial(Log, callback, verbose)
        stages = _descending(() if widths is None else widths)
        widen = self._widened if widths is None else None
        share = max(1, iterations // (len(stages) + 1))
        with self._alone():
            for width in stages:
                planner = self.remade(planning_model(self.model, width=width))
                wide = planner._optimization.solve(start, first, given, share, log)
                first, given = self._optimization.open_loop(start, wide.controls), None
                if wide.status == "stopped":
                    plan = self._optimization.solve(start, first, None, 0, log)
                    return replace(plan, status="stopped", _planner=self)
            plan = self._optimization.solve(start, first, given, share, log, widen)
        warn_of_force_limits(self.model, plan)
        return replace(plan, _planner=self)

    def _widened(self, width: float) -> Passes:
        """Return the passes of the model with contacts that are at least so wide."""
        model = planning_model(self.model, width=width)
        _notices.share(self.model, model)
        return Passes(model, self.cost, self.horizon, self._settings, self._fallback)

    def remade(self, model: mujoco.MjModel | None = None, threads: int | None = None) -> ILQR:
        """Return a new planner with the same cost, perhaps for another model."""
        settings = vars(self._settings) | {"threads": threads or self.threads}
        chosen = self.model if model is None else model
        return ILQR(chosen, self.cost, self.horizon, fallback=self._fallback, **settings)

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
        if plan is not None:
            _require_plan(plan, self.model)
        return self.improve_from(self.start_of(state), plan)

    def improve_from(self, start: Array, plan: Plan | None) -> Plan:
        """Return the same as `improve`, given the result of `start_of` as the initial state."""
        with self._alone():
            try:
                made = self._optimization.improve(start, plan)
            except DivergedError as error:
                return self._improve_in_small_steps(start, plan, error)
            return replace(made, _planner=self)

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
            self._finer = self.remade(model)
            self._finer._halvings = self._halvings - 1
        try:
            made = self._finer.improve_from(start, plan)
        except DivergedError:
            raise error from None
        step = made.times[1] - made.times[0]
        return replace(made, shortened=f"{error}. The plan has time steps of {step:g} s instead")

    def start_of(self, state: mujoco.MjData | ArrayLike) -> Array:
        """Return the initial state of a plan as a row of mjSTATE_INTEGRATION."""
        return initial_state(self.model, state)

    def sensitivity(
        self, plan: Plan, start: Array, of: str, params: Parameters | None
    ) -> Sensitivity:
        """Return the result of `Plan.sensitivity`; `start` is the result of `start_of`."""
        with self._alone():
            self._passes.begin(start)
            resume(self._passes, plan)
            policy = self._optimization.open_loop(start, plan.controls)
            return differentiate_plan(self._passes, policy, of, params)

    def solve_variant(
        self, state: Array, variant: tuple[Array, Array], controls: Array, iterations: int
    ) -> Plan:
        """Return the plan with other weights `(terms,)` and with an addition `(rows,)` to targets.

        If it has not converged, this raises an error.
        """
        start = self.start_of(state)
        first = self._optimization.open_loop(start, controls)
        with self._changed(*variant):
            self.reset()
            plan = self._optimization.run(start, first, -1, iterations)
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
            policy = self._optimization.open_loop(start, controls)
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
        self._optimization.reset()

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


def _require_cost(cost: object, model: mujoco.MjModel) -> None:
    """Raise if this is not a cost of the model, whose controls are to be planned."""
    if not isinstance(cost, Cost):
        raise ArgumentTypeError(f"cost must be a control.Cost, got {type(cost).__name__}")
    if (cost.ns, cost.nu, cost.nx) != (model.nsensordata, model.nu, tangent_size(model)):
        raise ArgumentError("the cost is of another model: numbers of sensors or controls differ")
    if not model.nu:
        raise ArgumentError("the model has no actuators, so there are no controls to plan")


def _require_plan(plan: object, model: mujoco.MjModel) -> None:
    """Raise if this is not a plan of the model."""
    if not isinstance(plan, Plan):
        raise ArgumentTypeError(f"plan must be a control.Plan, got {type(plan).__name__}")
    widths, wanted = (
        (plan.states.shape[1], plan.controls.shape[1]),
        (model.nq + model.nv + model.na, model.nu),
    )
    if widths != wanted:
        raise ArgumentError(
            "the plan is of another model: it has {} numbers per state and {} controls, the "
            "planner has {} and {}".format(*widths, *wanted)
        )


def _descending(widths: Sequence[float]) -> Array:
    """Return widths of contacts, which must be positive and descending."""
    given = np.atleast_1d(numbers("widths", widths))
    if given.ndim != 1 or (given <= 0).any() or (np.diff(given) >= 0).any():
        raise ArgumentError(f"widths must be positive lengths in descending order, got {widths!r}")
    return given
