"""The passes of an iLQR iteration, each of which is one call of the compiled core."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import mujoco
import numpy as np

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian._differenced import Differenced, may_difference
from mujacobian._linearization import Linearization
from mujacobian._threads import each
from mujacobian.control.cost import Cost, weigh
from mujacobian.control.plan import Policy, Timings
from mujacobian.errors import MujacobianError, UnsupportedFeatureError

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION
FEEDBACKS = (1.0, 0.3, 0.1, 0.0)  # factors of the gains that rollouts of a policy try


class DivergedError(MujacobianError):
    """A simulation that a plan needs diverges: MuJoCo detected NaN or huge values."""


class Knots(NamedTuple):
    """A simulated trajectory, or the concatenated trajectories of a line search."""

    rows: Array  # (T, nstate) mjSTATE_INTEGRATION
    controls: Array
    sensors: Array
    qacc: Array
    norms: Array

    def candidate(self, k: int, T: int) -> Knots:
        """Return the k-th of several trajectories of T knots."""
        return Knots(*(array[k * T : (k + 1) * T] for array in self))


class Expansion(NamedTuple):
    """Derivatives of the dynamics and of the cost along a trajectory."""

    A: Array
    B: Array
    C: Array
    D: Array
    gradient: Array
    hessian: Array


class Direction(NamedTuple):
    """Result of a backward pass: steps, gains, and coefficients of the expected change of cost.

    `values` contains the gradients of the value at the knots of the pass, and `is_exact` is true if
    the pass used exact second derivatives.
    """

    steps: Array
    gains: Array
    linear: float
    quadratic: float
    values: Array
    is_exact: bool

    def improvement(self, size: float) -> float:
        """Return the decrease of the quadratic model of the cost at a step size (ILQ-8)."""
        return -size * (self.linear + size * self.quadratic)


class Passes:
    """The compiled core of a planner with its arrays and timings."""

    def __init__(
        self,
        model: mujoco.MjModel,
        cost: Cost,
        horizon: int,
        bounds: tuple[Array, Array],
        derivatives: str,
        eps: float,
        warm_start: bool,
        threads: int,
        fallback: str | None,
    ) -> None:
        self.model, self.cost, self.horizon, self.bounds = model, cost, horizon, bounds
        self.threads = threads
        self._core = _core.Planner(
            model,
            cost=cost.core,
            backend=derivatives,
            eps=eps,
            warm_start=warm_start,
            threads=threads,
            may_refuse=may_difference(model, fallback),
        )
        nx, nu, ns = cost.nx, cost.nu, cost.ns
        self.expansion = Expansion(
            np.zeros((horizon, nx, nx)),
            np.zeros((horizon, nx, nu)),
            np.zeros((horizon, ns, nx)),
            np.zeros((horizon, ns, nu)),
            *cost.blank(horizon),
        )
        self.curved = np.zeros_like(self.expansion.hessian)  # with second derivatives of the steps
        self.keeps = False  # whether the next expansion keeps its steps, for `curve`
        self.shift: Array | float = 0.0  # added to the targets of all rows
        self.reach = horizon  # number of knots before the first one without a derivative
        self.timings = Timings()
        self._reports: dict[tuple[int, str, str], Differenced] = {}
        self._failures: dict[int, str] = {}  # of knots that cannot be differenced either

    def set_fallback(self, fallback: str | None) -> None:
        """Difference knots without an exact derivative from now on, or stop to do so."""
        self._core.may_refuse = may_difference(self.model, fallback)

    def begin(self, start: Array) -> None:
        """Begin a plan at a state, which is a row of mjSTATE_INTEGRATION."""
        self.start = start
        self.times = start[0] + self.model.opt.timestep * np.arange(self.horizon)
        self.offsets = self.cost.offsets(self.times) - self.shift
        self.timings = Timings()
        self._reports.clear()
        self._core.derivative_seconds()

    def follow(self, policy: Policy, shift: int, enough: float) -> tuple[Knots, float]:
        """Simulate and differentiate the trajectory of a policy; return it with its cost.

        The plan begins `shift` knots after the previous plan; a negative number means that there is
        no previous plan. If the policy diverges or costs more than `enough`, smaller feedback gains
        are tried.
        """
        with self._measured("nominal"):
            knots, cost, feedback, tried = None, math.inf, 1.0, 1.0
            for tried in FEEDBACKS:
                made = self._new_knots(self.horizon)
                taken, is_bad, total, failed = self._core.follow_into(
                    self._task(),
                    policy=policy.arrays,
                    feedback=tried,
                    shift=shift,
                    knots=made,
                    expansion=self.expansion,
                    keep=self.keeps,
                )
                self.reach = self.horizon if failed < 0 else failed
                shift = min(shift, 0)  # the core has shifted its data
                if taken == self.horizon:
                    total += self._user_cost(made)
                if total < cost:
                    knots, cost, feedback = made, total, tried
                if cost <= enough:
                    break
            if knots is None:
                raise self._diverged(taken, is_bad, made)
            if feedback != tried:
                self._differentiate(knots)
            else:
                self._difference(knots)
            self._add_users(knots)
        return knots, cost

    def _diverged(self, taken: int, is_bad: bool, knots: Knots) -> DivergedError:
        """Return the error of an initial trajectory that stopped at knot `taken`."""
        if is_bad:
            return DivergedError(
                f"the initial trajectory diverges at knot {taken} of {self.horizon}: MuJoCo "
                "detected NaN or huge values. Give other initial controls, plan with a smaller "
                "timestep or another integrator (control.planning_model), or shorten the horizon"
            )
        end = min(taken + 1, self.horizon)  # the simulation stops after the first infinite cost
        norms = self.terms(Knots(*(array[:end] for array in knots)))
        size = np.nan_to_num(np.where(self.cost.weights, norms, 0.0), nan=np.inf, posinf=np.inf)
        # if all terms are finite, their sum overflows: report the largest one
        knot, k = np.unravel_index(np.argmax(size), size.shape)
        return DivergedError(
            f"the cost of the initial trajectory is not finite: at knot {knot} of "
            f'{self.horizon} the term "{self.cost.terms[k].name}" is {norms[knot, k]}'
        )

    @property
    def refused(self) -> str:
        """The first knot without a derivative, and the reason; empty if all have one."""
        if self.reach == self.horizon:
            return ""
        if self.reach in self._failures:
            return f"knot {self.reach}: {self._failures[self.reach]}"
        return self._failure()

    def _failure(self) -> str:
        """Return the first knot that failed in the last call of the core, and the reason."""
        try:
            self.raise_failure()
        except (UnsupportedFeatureError, ValueError) as error:
            return str(error)
        return ""

    @property
    def differenced(self) -> tuple[Differenced, ...]:
        """Reports of the knots that were differenced since the plan began."""
        return tuple(sorted(self._reports.values(), key=lambda report: report.index))

    def expand(self, knots: Knots) -> None:
        """Differentiate along a trajectory that has been simulated."""
        with self._measured("expansion"):
            self._differentiate(knots)
            self._add_users(knots)

    def curve(self, knots: Knots, values: Array) -> str:
        """Compute the Hessian of the cost with the curvature of steps and sensors (ILQ-13).

        The trajectory is that of the last expansion, and `values` are the gradients of the value,
        the multipliers of the second derivatives. Returns the first knot without a second
        derivative and the reason, or nothing.
        """
        with self._measured("curvature"):
            n = len(values)
            failed = self._core.add_curvature_into(
                self._task(),
                knots=knots,
                values=values,
                hessian=self.expansion.hessian[:n],
                curved=self.curved[:n],
            )
        return "" if failed < 0 else self._failure()

    def raise_failure(self) -> None:
        """Raise the error of the first knot that failed in the last call of the core, if any."""
        self._core.raise_failure("knot ")

    def backward(
        self, knots: Knots, regularization: str, mu: float, gains: Array, *, is_exact: bool = False
    ) -> Direction | None:
        """Return the result of the backward pass, None if the problem is not convex.

        The pass begins at the last knot before the first one without a derivative. Later controls
        do not change and keep the given gains. If `is_exact`, it uses the result of `curve`.
        """
        n, nx, e = self.reach, self.cost.nx, self.expansion
        lower, upper = self.bounds
        steps, gains, values = np.zeros(gains.shape[:2]), gains.copy(), np.empty((n, nx))
        gradient, hessian = e.gradient[:n], (self.curved if is_exact else e.hessian)[:n]
        if n < self.horizon:
            gradient, hessian = gradient.copy(), hessian.copy()
            gradient[-1, nx:] = hessian[-1, nx:] = hessian[-1, :, nx:] = 0
        with self._measured("backward"):
            knot, linear, quadratic = _core.backward_into(
                A=e.A[:n],
                B=e.B[:n],
                gradient=gradient,
                hessian=hessian,
                controls=knots.controls[:n],
                lower=lower,
                upper=upper,
                regularization=regularization,
                mu=mu,
                steps=steps[: n - 1],
                gains=gains[: n - 1],
                values=values,
            )
        if knot >= 0:
            return None
        return Direction(steps, gains, linear, quadratic, values, is_exact)

    def search(
        self, knots: Knots, cost: float, direction: Direction, sizes: Array, wanted: Array
    ) -> list[tuple[Knots, float]]:
        """Return rollouts with these step sizes and their costs, infinite if above `cost`.

        If a rollout reaches its wanted cost, the core may skip all later ones.
        """
        T, has_users = self.horizon, bool(self.cost.users)
        made = self._new_knots(T * len(sizes))
        with self._measured("rollouts"):
            results = self._core.search_into(
                self._task(),
                sizes=sizes,
                accept=np.full(len(sizes), -np.inf) if has_users else wanted,
                most=cost if self.cost.is_nonnegative else np.inf,
                states=self.states(knots),
                controls=knots.controls,
                steps=direction.steps,
                gains=direction.gains,
                knots=made,
            )
            found = []
            for k, (_, _, total) in enumerate(results):
                one = made.candidate(k, T)
                found.append((one, total + (self._user_cost(one) if total < np.inf else 0.0)))
        return found

    def states(self, knots: Knots) -> Array:
        """Return rows (qpos, qvel, act), which follow the time in MuJoCo's state vector."""
        return np.ascontiguousarray(knots.rows[:, 1 : 1 + self.cost.nstate])

    def terms(self, knots: Knots) -> Array:
        """Return the norms of all terms, one row per knot."""
        norms = np.empty((len(knots.norms), len(self.cost.terms)))
        norms[:, self.cost.own] = knots.norms
        norms[:, self.cost.users] = self._user_norms(knots)
        return norms

    def _differentiate(self, knots: Knots) -> None:
        failed = self._core.differentiate_into(
            self._task(), knots=knots, expansion=self.expansion, keep=self.keeps
        )
        self.reach = self.horizon if failed < 0 else failed
        self._difference(knots)

    def _difference(self, knots: Knots) -> None:
        """Difference the knots for which the core found no exact derivative."""
        refused, wanted = self._core.refused(), self._core.sensors()
        self._failures.clear()
        if not refused:
            return
        from mujacobian import _fallback  # it imports the reference solution

        def work(place: int, data: mujoco.MjData) -> None:
            t = refused[place]
            mujoco.mj_setState(self.model, data, knots.rows[t], INTEGRATION)
            try:
                lin = _fallback.linearize(self.model, data, wanted=wanted, index=(t,))
            except (UnsupportedFeatureError, ValueError, ArithmeticError) as error:
                self._failures[t] = str(error)
                return
            self._keep(knots, t, lin)

        each(
            self.model, len(refused), self.threads, work, lambda place: f"at knot {refused[place]}"
        )
        self.reach = min([self.reach, *self._failures])

    def _keep(self, knots: Knots, t: int, lin: Linearization) -> None:
        """Store the linearization of knot t, and expand the cost there."""
        e, one = self.expansion, slice(t, t + 1)
        if t < self.horizon - 1:  # no step begins at the last knot
            e.A[t], e.B[t] = lin.A, lin.B
        e.C[t], e.D[t] = lin.C, lin.D
        _, offsets, weights, *_ = self._task()
        self.cost.core.expand_into(
            sensordata=knots.sensors[one],
            controls=knots.controls[one],
            offsets=offsets[one],
            weights=weights,
            C=e.C[one],
            D=e.D[one],
            gradient=e.gradient[one],
            hessian=e.hessian[one],
        )
        for report in lin.differenced:
            self._reports[t, report.element, report.reason] = report

    @contextmanager
    def _measured(self, phase: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        taken = getattr(self.timings, phase) + time.perf_counter() - begun
        derivatives = self.timings.derivatives + self._core.derivative_seconds()
        self.timings = replace(self.timings, derivatives=derivatives, **{phase: taken})

    def _task(self) -> tuple[Array, Array, Array, Array, Array]:
        return self.start, self.offsets, self.cost.own_weights() / self.horizon, *self.bounds

    def _user_norms(self, knots: Knots) -> Array:
        times = self.times[: len(knots.rows)]
        return self.cost.user_norms(times, self.states(knots), knots.controls)

    def _user_cost(self, knots: Knots) -> float:
        if not self.cost.users:
            return 0.0
        return float(weigh(self._user_norms(knots), self.cost.user_weights()).mean())

    def _add_users(self, knots: Knots) -> None:
        e, states = self.expansion, self.states(knots)
        self.cost.add_users(
            self.times, states, knots.controls, 1 / self.horizon, e.gradient, e.hessian
        )

    def _new_knots(self, n: int) -> Knots:
        m = self.model
        widths = (len(self.start), m.nu, m.nsensordata, m.nv, len(self.cost.own))
        return Knots(*(np.empty((n, width)) for width in widths))
