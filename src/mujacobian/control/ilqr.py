"""Iterative LQR on exact derivatives."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core
from mujacobian.arguments import count, require_model, shaped
from mujacobian.control.cost import Cost
from mujacobian.control.plan import History, Plan, Policy, Timings
from mujacobian.control.regularization import Regularization
from mujacobian.errors import MujacobianError
from mujacobian.linearization import Linearization
from mujacobian.rollout import first_states
from mujacobian.threads import available_cores

Array = NDArray[np.float64]

BACKENDS = ("analytic", "fd", "fd_centred", "wasp", "isolation")
REGULARIZATIONS = ("control", "state", "none")
STEP_SIZES = tuple(10.0 ** (-3 * k / 8) for k in range(9))  # 1 .. 0.001
EXPECTED_LEAST = 1e-16
SMALLEST_COST = 1e-12  # below it a tolerance relative to the cost means nothing


class DivergedError(MujacobianError):
    """A simulation that a plan needs has no end: MuJoCo found its numbers bad."""


class InfeasibleBoundsError(MujacobianError, ValueError):
    """Bounds between which there is no control."""


class _Knots(NamedTuple):
    """A trajectory as the core records it; candidates of a search follow one another."""

    rows: Array
    controls: Array
    sensors: Array
    qacc: Array
    norms: Array

    def candidate(self, k: int, T: int) -> _Knots:
        return _Knots(*(array[k * T : (k + 1) * T] for array in self))


class _Expansion(NamedTuple):
    A: Array
    B: Array
    C: Array
    D: Array
    gradient: Array
    hessian: Array


@dataclass
class _Clock:
    derivatives: float = 0.0
    nominal: float = 0.0
    expansion: float = 0.0
    backward: float = 0.0
    rollouts: float = 0.0


class ILQR:
    """Minimises the mean cost over the knots of a horizon, by iterative LQR between bounds.

    Every iteration differentiates the steps along the trajectory, in threads, finds by a backward
    pass the step of the controls and the feedback that are best for the quadratic model (a QP
    between the bounds at every knot), and tries step sizes in rollouts with that feedback until the
    cost falls as expected. Results do not depend on the number of threads.

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
      mu: to begin with.
      mu_bounds: between which it is scaled.
      mu_factor: by which the rate of its scaling changes.
      step_sizes: that rollouts try, in this order.
      acceptance: the part of the expected improvement with which no further one is tried.
      tolerance: converged when the expected improvement is below it, relative to the cost.
      interpolation: of policies between knots, "linear" or "hold".
      eps: of the finite differences that are there to compare with.

    Example:
      >>> import mujoco, numpy as np
      >>> from mujacobian import control
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint name='pivot' axis='0 1 0'/><geom size='.1'/></body>"
      ...     "</worldbody><actuator><motor joint='pivot'/></actuator>"
      ...     "<sensor><jointpos name='angle' joint='pivot'/></sensor></mujoco>")
      >>> cost = control.Cost(model, [
      ...     control.Term("reach", control.sensor(model, "angle") - 1.0),
      ...     control.Term("effort", control.controls(model), weight=1e-4)])
      >>> plan = control.ILQR(model, cost, horizon=50).solve(mujoco.MjData(model))
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
    ) -> None:
        require_model(model)
        _one_of("derivatives", derivatives, BACKENDS)
        _one_of("regularization", regularization, REGULARIZATIONS)
        _one_of("interpolation", interpolation, ("linear", "hold"))
        if (cost.ns, cost.nu, cost.nx) != (model.nsensordata, model.nu, 2 * model.nv + model.na):
            raise ValueError("the cost is of another model: its sensors or controls differ")
        if count("horizon", horizon) < 2:
            raise ValueError(f"horizon must be at least 2 knots, got {horizon}")
        self.model, self.cost, self.horizon = model, cost, int(horizon)
        self.derivatives = derivatives
        self.threads = available_cores() if threads is None else count("threads", threads)
        self.lower, self.upper = _bounds(model, lower, upper)
        self.regularization = regularization
        self.mu_settings = (mu, mu_bounds, mu_factor)
        self.step_sizes = np.array(step_sizes, dtype=np.float64)
        if not len(self.step_sizes) or (self.step_sizes <= 0).any():
            raise ValueError(f"step_sizes must be positive, got {step_sizes}")
        self.acceptance, self.tolerance = acceptance, tolerance
        self.is_linear = interpolation == "linear"
        self._core = _core.Planner(model, cost.core, derivatives, eps, self.threads)
        self._core.require()
        self._expansion = self._new_expansion()
        self._mu = self._new_regularization()
        self._start = np.empty(0)
        self._clock = _Clock()

    # ------------------------------------------------------------------ what users call

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
          controls: `(T - 1, nu)` to begin with, by default those nearest to 0 between the bounds.
          iterations: at most.
        """
        count("iterations", iterations)
        begun = time.perf_counter()
        self.reset()
        start = self.start_of(state)
        policy = self._open_loop(start, controls)
        knots, cost = self._nominal(start, policy, -1, begun)
        return self._iterate(knots, cost, policy, iterations, begun)

    def improve(self, state: mujoco.MjData | ArrayLike, plan: Plan | None = None) -> Plan:
        """The plan from a state after one iteration, for control in a loop.

        Args:
          state: as for `solve`; its time says how far `plan` is shifted.
          plan: the last plan: its policy is followed from the new state to begin with. None begins
            anew, from controls of 0.
        """
        return self.improve_from(self.start_of(state), plan)

    def improve_from(self, start: Array, plan: Plan | None) -> Plan:
        """`improve` from what `start_of` has read."""
        begun = time.perf_counter()
        if plan is None:
            self.reset()
            policy, shift = self._open_loop(start, None), -1
        else:
            policy = plan.policy
            shift = max(0, round((start[0] - policy.times[0]) / self.model.opt.timestep))
        knots, cost = self._nominal(start, policy, shift, begun)
        return self._iterate(knots, cost, policy, 1, begun)

    def start_of(self, state: mujoco.MjData | ArrayLike) -> Array:
        """The state a plan begins at, as a row of mjSTATE_INTEGRATION."""
        start = first_states(self.model, state)
        if start.ndim != 1:
            raise ValueError("a plan begins at one state, not at a batch of them")
        return start

    @property
    def linearization(self) -> Linearization:
        """A, B, C and D along the trajectory that was differentiated last, views that go stale.

        Of the last knot, from which no step is taken, A and B are zero.
        """
        e = self._expansion
        return Linearization(e.A, e.B, e.C, e.D)

    def reset(self) -> None:
        """Forget the regularization of earlier plans."""
        self._mu = self._new_regularization()

    # ------------------------------------------------------------------ one iteration

    def _nominal(
        self, start: Array, policy: Policy, shift: int, begun: float
    ) -> tuple[_Knots, float]:
        """The trajectory of a policy from the start, and derivatives along it."""
        self._clock = _Clock()
        self._core.derivative_seconds()
        times = start[0] + self.model.opt.timestep * np.arange(self.horizon)
        self._start = start
        self._offsets = self.cost.offsets(times)
        self._times = times
        knots = self._new_knots(self.horizon)
        for feedback in (1.0, 0.0):
            taken, is_bad, cost = self._core.follow_into(
                self._task(), policy.arrays, feedback, shift, knots, self._expansion
            )
            if not is_bad:
                break
            shift = min(shift, 0)  # has been done
        else:
            raise DivergedError(
                f"the trajectory to start from diverges at knot {taken} of {self.horizon}: MuJoCo "
                "found its numbers bad. Give other controls to start from, plan with a smaller "
                "timestep or another integrator (control.planning_model), or shorten the horizon"
            )
        cost += self._user_cost(knots)
        if not math.isfinite(cost):
            raise DivergedError(
                f"the cost of the trajectory to start from is {cost}: see its terms by Cost.by_term"
            )
        self._add_users(knots)
        self._clock.derivatives += self._core.derivative_seconds()
        self._clock.nominal += time.perf_counter() - begun
        return knots, cost

    def _iterate(
        self, knots: _Knots, cost: float, policy: Policy, iterations: int, begun: float
    ) -> Plan:
        """Improve a trajectory, which followed a policy."""
        gains = _gains_at(policy, self._times[:-1])
        steps = np.zeros(gains.shape[:2])
        initial, status, history = cost, "iterations", []
        is_new = False  # the trajectory has not been differentiated
        for _ in range(iterations):
            if is_new:
                self._expand(knots)
            slopes = self._backward(knots, steps, gains)
            if slopes is None:
                status = "not convex"
                break
            least = self.tolerance * max(abs(cost), SMALLEST_COST)
            slopes = self._relax(knots, steps, gains, slopes, least)
            mu = self._mu.value
            if _expected(slopes, 1.0) <= least:
                history.append((cost, _expected(slopes, 1.0), 0.0, mu, 0))
                status = "converged"
                break
            found = self._search(knots, cost, slopes, steps, gains)
            improvement = cost - found.cost if found.knots else 0.0
            expected = _expected(slopes, found.size)
            self._mu.adapt(improvement / expected, found.size)
            is_new = found.knots is not None
            if found.knots is not None:
                knots, cost = found.knots, found.cost
            history.append((cost, expected, found.size, mu, found.tried))
            if found.knots is None and self._mu.is_largest:
                status = "no improvement"
                break
        return self._plan(knots, gains, cost, initial, status, history, begun)

    def _expand(self, knots: _Knots) -> None:
        begun = time.perf_counter()
        self._core.differentiate_into(self._task(), knots, self._expansion)
        self._add_users(knots)
        self._clock.expansion += time.perf_counter() - begun
        self._clock.derivatives += self._core.derivative_seconds()

    def _backward(self, knots: _Knots, steps: Array, gains: Array) -> tuple[float, float] | None:
        """Fill steps and gains. The change expected, or None if it is not convex for any mu."""
        begun = time.perf_counter()
        e, slopes = self._expansion, None
        new_steps, new_gains = np.zeros_like(steps), np.empty_like(gains)
        while slopes is None:
            knot, linear, quadratic = _core.backward_into(
                e.A,
                e.B,
                e.gradient,
                e.hessian,
                knots.controls,
                self.lower,
                self.upper,
                self.regularization,
                self._mu.value,
                new_steps,
                new_gains,
            )
            if knot < 0:
                slopes = linear, quadratic
                steps[:], gains[:] = new_steps, new_gains
            elif self._mu.is_largest:
                break
            else:
                self._mu.scale(self._mu.factor)
        self._clock.backward += time.perf_counter() - begun
        return slopes

    def _relax(
        self,
        knots: _Knots,
        steps: Array,
        gains: Array,
        slopes: tuple[float, float],
        least: float,
    ) -> tuple[float, float]:
        """Lower mu while it may be all that keeps the expected improvement below `least`."""
        while _expected(slopes, 1.0) <= least and not self._mu.is_smallest:
            mu = self._mu.value
            self._mu.scale(1 / self._mu.factor)
            lower = self._backward(knots, steps, gains)
            if lower is None or self._mu.value >= mu:
                break  # not convex below
            slopes = lower
        return slopes

    def _search(
        self,
        knots: _Knots,
        cost: float,
        slopes: tuple[float, float],
        steps: Array,
        gains: Array,
    ) -> _Found:
        """Rollouts by batches of as many as there are threads, until one is good enough."""
        begun = time.perf_counter()
        T, has_users = self.horizon, self.cost.has_user_terms
        states = self._states(knots)
        best = _Found(None, cost, float(self.step_sizes[-1]), 0)
        for first in range(0, len(self.step_sizes), self.threads):
            sizes = self.step_sizes[first : first + self.threads]
            wanted = np.array([cost - self.acceptance * _expected(slopes, a) for a in sizes])
            made = self._new_knots(T * len(sizes))
            results = self._core.search_into(
                self._task(),
                sizes,
                np.full(len(sizes), -np.inf) if has_users else wanted,
                cost if self.cost.is_nonnegative else np.inf,
                states,
                knots.controls,
                steps,
                gains,
                made,
            )
            for k, (_, _, total) in enumerate(results):
                one = made.candidate(k, T)
                if has_users and math.isfinite(total):
                    total += self._user_cost(one)
                best = best._replace(tried=best.tried + 1)
                if total < best.cost:
                    best = best._replace(knots=one, cost=total, size=float(sizes[k]))
                if total <= wanted[k]:
                    break
            else:
                continue
            break
        self._clock.rollouts += time.perf_counter() - begun
        return best

    # ------------------------------------------------------------------ arrays

    def _plan(
        self,
        knots: _Knots,
        gains: Array,
        cost: float,
        initial: float,
        status: str,
        history: list[tuple[float, float, float, float, int]],
        begun: float,
    ) -> Plan:
        states = self._states(knots)
        policy = Policy(
            self.model,
            self._times,
            states,
            knots.controls.copy(),
            np.concatenate([gains, gains[-1:]]),
            self.lower,
            self.upper,
            self.is_linear,
        )
        norms = np.empty((self.horizon, len(self.cost.terms)))
        norms[:, self.cost.own] = knots.norms
        if self.cost.has_user_terms:
            norms[:, self.cost.users] = self.cost.user_norms(self._times, states, knots.controls)
        clock = self._clock
        return Plan(
            times=self._times,
            states=states,
            controls=policy.controls[:-1],
            gains=gains,
            sensordata=knots.sensors.copy(),
            terms=norms,
            cost=cost,
            initial_cost=initial,
            status=status,
            policy=policy,
            history=History(*np.array(history, dtype=np.float64).reshape(-1, 5).T),
            timings=Timings(**vars(clock), total=time.perf_counter() - begun),
        )

    def _task(self) -> tuple[Array, Array, Array, Array, Array]:
        weights = self.cost.own_weights() / self.horizon
        return self._start, self._offsets, weights, self.lower, self.upper

    def _user_cost(self, knots: _Knots) -> float:
        if not self.cost.has_user_terms:
            return 0.0
        norms = self.cost.user_norms(self._times, self._states(knots), knots.controls)
        return float((norms @ self.cost.user_weights()).mean())

    def _add_users(self, knots: _Knots) -> None:
        if self.cost.has_user_terms:
            e = self._expansion
            self.cost.add_users(
                self._times,
                self._states(knots),
                knots.controls,
                1 / self.horizon,
                e.gradient,
                e.hessian,
            )

    def _states(self, knots: _Knots) -> Array:
        """Rows of (qpos, qvel, act), which follow the time in MuJoCo's state."""
        return np.ascontiguousarray(knots.rows[:, 1 : 1 + self.cost.nstate])

    def _new_knots(self, n: int) -> _Knots:
        m = self.model
        size = mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_INTEGRATION)
        widths = (size, m.nu, m.nsensordata, m.nv, len(self.cost.own))
        return _Knots(*(np.empty((n, width)) for width in widths))

    def _new_expansion(self) -> _Expansion:
        T, nx, nu, ns = self.horizon, self.cost.nx, self.cost.nu, self.cost.ns
        return _Expansion(
            np.zeros((T, nx, nx)),
            np.zeros((T, nx, nu)),
            np.zeros((T, ns, nx)),
            np.zeros((T, ns, nu)),
            *self.cost.blank(T),
        )

    def _new_regularization(self) -> Regularization:
        mu, bounds, factor = self.mu_settings
        if self.regularization == "none":
            mu, bounds = 0.0, (0.0, 0.0)
        return Regularization(mu, bounds, factor)

    def _open_loop(self, start: Array, controls: ArrayLike | None) -> Policy:
        """A policy of given controls without feedback."""
        T, nu, nx = self.horizon, self.model.nu, self.cost.nx
        if controls is None:
            u = np.clip(np.zeros((T - 1, nu)), self.lower, self.upper)
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
    """The best rollout of a search; None if none is better than the trajectory."""

    knots: _Knots | None
    cost: float
    size: float
    tried: int


def _gains_at(policy: Policy, times: Array) -> Array:
    """The gains of the knots of a policy at or before these times."""
    knots = np.searchsorted(policy.times, times, side="right") - 1
    gains: Array = policy.gains[knots.clip(min=0)]
    return gains


def _expected(slopes: tuple[float, float], size: float) -> float:
    """By how much the quadratic model falls."""
    return -size * (slopes[0] + size * slopes[1]) + EXPECTED_LEAST


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def _bounds(
    model: mujoco.MjModel, lower: ArrayLike | None, upper: ArrayLike | None
) -> tuple[Array, Array]:
    """The given bounds, or the model's, of which infinite ones are none."""
    ranges = np.full((model.nu, 2), [-np.inf, np.inf])
    limited = np.flatnonzero(model.actuator_ctrllimited)
    ranges[limited] = model.actuator_ctrlrange[limited]
    bounds = []
    for name, given, own in (("lower", lower, ranges[:, 0]), ("upper", upper, ranges[:, 1])):
        array = own if given is None else np.asarray(given, dtype=np.float64)
        if array.shape != (model.nu,) or np.isnan(array).any():
            raise ValueError(f"{name} must be {model.nu} numbers, got {given!r}")
        bounds.append(np.ascontiguousarray(array))
    for k in np.flatnonzero(bounds[0] > bounds[1]):
        raise InfeasibleBoundsError(
            f"control {k} cannot be between {bounds[0][k]} and {bounds[1][k]}: lower must not be "
            "above upper"
        )
    return bounds[0], bounds[1]
