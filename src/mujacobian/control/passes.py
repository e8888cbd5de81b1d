"""The passes of an iLQR iteration, each of which is one call of the compiled core."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import mujoco
import numpy as np

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian._differenced import may_difference
from mujacobian._rollout import INTEGRATION
from mujacobian.control.constraint_rows import constraint_values
from mujacobian.control.cost import Cost, weigh
from mujacobian.control.knot_differences import KnotDifferences
from mujacobian.control.lagrangian import Lagrangian, Residuals
from mujacobian.control.plan import Policy, Timings
from mujacobian.control.settings import Settings
from mujacobian.control.trajectory import Direction, Expansion, Iterate, Knots
from mujacobian.errors import MujacobianError, UnsupportedFeatureError

# the parts of mjSTATE_INTEGRATION before ctrl; parts are in the order of their bits
BEFORE_CTRL = int(INTEGRATION) & int(mujoco.mjtState.mjSTATE_CTRL) - 1
PENALTY = 2.0  # penalty of gaps, relative to the expected increase of the cost when they close
FEEDBACKS = (1.0, 0.3, 0.1, 0.0)  # factors of the gains that rollouts of a policy try


class DivergedError(MujacobianError):
    """A simulation that a plan needs diverges: MuJoCo detected NaN or huge values."""


class Passes:
    """The compiled core of a planner with its arrays and timings."""

    def __init__(
        self,
        model: mujoco.MjModel,
        cost: Cost,
        horizon: int,
        settings: Settings,
        fallback: str | None,
    ) -> None:
        self.model, self.cost, self.horizon = model, cost, horizon
        self.bounds = settings.lower, settings.upper
        self._core = _core.Planner(
            model,
            cost=cost.core,
            backend=settings.derivatives,
            eps=settings.eps,
            warm_start=settings.warm_start,
            threads=settings.threads,
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
        self.differences = KnotDifferences(model, cost, self.expansion, settings.threads)
        self.curved = np.zeros_like(self.expansion.hessian)  # with second derivatives of the steps
        half = 0.5 * (settings.upper - settings.lower)
        # the scale of the regularization of each control has the units of 1 / control^2
        self.scale = np.where((half > 0) & np.isfinite(half), half, 1.0) ** -2.0
        self.keeps = False  # whether the next expansion keeps its steps, for `curve`
        self.shift: Array | float = 0.0  # added to the targets of all rows
        self.lagrangian: Lagrangian | None = None  # of the constraints, if there are any
        self.constant = 0.0  # part of the augmented Lagrangian that the core does not compute
        self.broken: list[int] = []  # knots without a derivative
        self.refused = ""  # the first of them, and the reason
        self.omitted: tuple[str, ...] = ()  # sensors without a derivative, whose rows are left out
        self.timings = Timings()

    def set_fallback(self, fallback: str | None) -> None:
        """Difference knots without an exact derivative from now on, or stop to do so."""
        self._core.may_refuse = may_difference(self.model, fallback)

    def begin(self, start: Array) -> None:
        """Begin a plan at a state, which is a row of mjSTATE_INTEGRATION."""
        self.start = start
        self.times = start[0] + self.model.opt.timestep * np.arange(self.horizon)
        self.offsets = self.cost.offsets(self.times) - self.shift
        self.weights = self.cost.knot_weights(self.times) / self.horizon
        self.core_weights, self.constant = self.cost.core_weights(self.weights), 0.0
        self.lagrangian = Lagrangian(self.cost, self.times) if self.cost.constraints else None
        self.timings = Timings()
        self.differences.clear()
        self._core.derivative_seconds()

    def penalize(self) -> None:
        """Add the constraints to the cost, with the present multipliers and penalties (ILQ-27)."""
        if self.lagrangian is None:
            return
        self.offsets[:, self.cost.own_count :] = self.lagrangian.offsets
        self.core_weights = self.cost.core_weights(self.weights, self.lagrangian.weights)
        self.constant = self.lagrangian.constant

    def constraint_values(self, knots: Knots) -> Array:
        """Return the rows of all constraints along a trajectory, `(T, k)`."""
        return constraint_values(self.cost, knots.sensors, knots.controls)

    def residuals(self, knots: Knots) -> Residuals:
        """Return how far a trajectory is from the constraints, which must exist."""
        assert self.lagrangian is not None
        return self.lagrangian.residuals(self.constraint_values(knots))

    def evaluate(self, iterate: Iterate) -> Iterate:
        """Return a trajectory with its cost for the present multipliers and penalties.

        Raises `DivergedError` if the cost is not finite.
        """
        knots = iterate.knots
        norms = self.cost.norms(knots.sensors, knots.controls, self.offsets)
        total = float(weigh(norms, self.core_weights).sum()) + self.constant
        total += self._user_cost(knots)
        knots = knots._replace(norms=norms)
        if not total < np.inf:
            raise self._diverged(self.horizon, False, knots)
        return iterate._replace(knots=knots, cost=total)

    def cost_of(self, iterate: Iterate) -> float:
        """Return the cost of a trajectory without its constraints."""
        if self.lagrangian is None:
            return iterate.cost
        return float(weigh(self.terms(iterate.knots), self.weights).sum())

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
                taken, is_bad, total, _ = self._core.follow_into(
                    self._task(),
                    policy=policy.arrays,
                    feedback=tried,
                    shift=shift,
                    knots=made,
                    expansion=self.expansion,
                    keep=self.keeps,
                )
                shift = min(shift, 0)  # the core has shifted its data
                if taken == self.horizon:
                    total += self.constant + self._user_cost(made)
                if total < cost:
                    knots, cost, feedback = made, total, tried
                if cost <= enough:
                    break
            if knots is None:
                raise self._diverged(taken, is_bad, made)
            if feedback != tried:
                self._differentiate(knots)
            else:
                self._report(knots)
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
        own, cost = len(self.cost.own), self.cost
        owners = [term.owner for term in cost.terms]
        owners += 2 * [constraint.owner for constraint in cost.constraints]  # upper, lower
        norms = self.terms(Knots(*(array[:end] for array in knots)))
        norms = np.concatenate([norms, knots.norms[:end, own:]], axis=1)
        weights = np.concatenate([self.weights, self.core_weights[:, own:]], axis=1)[:end]
        size = np.nan_to_num(np.where(weights, norms, 0.0), nan=np.inf, posinf=np.inf)
        # if all terms are finite, their sum overflows: report the largest one
        knot, k = np.unravel_index(np.argmax(size), size.shape)
        return DivergedError(
            f"the cost of the initial trajectory is not finite: at knot {knot} of "
            f"{self.horizon} the {owners[k]} is {norms[knot, k]}"
        )

    @property
    def segments(self) -> list[slice]:
        """Ranges of at least two consecutive knots that have derivatives."""
        ends = [-1, *self.broken, self.horizon]
        return [slice(a + 1, b) for a, b in pairwise(ends) if b - a > 2]

    def _failure(self) -> str:
        """Return the first knot that failed in the last call of the core, and the reason."""
        try:
            self.raise_failure()
        except (UnsupportedFeatureError, ValueError) as error:
            return str(error)
        return ""

    def expand(self, knots: Knots) -> None:
        """Differentiate along a trajectory that has been simulated."""
        with self._measured("expansion"):
            self._differentiate(knots)
            self._add_users(knots)

    def curve(self, knots: Knots, values: Array) -> str:
        """Compute the Hessian of the cost with the curvature of steps, sensors and rows (ILQ-13).

        The trajectory is that of the last expansion, and `values` are the gradients of the value,
        the multipliers of the second derivatives. Returns the first knot without a second
        derivative and the reason, or nothing.
        """
        with self._measured("curvature"):
            failed = self._core.add_curvature_into(
                self._task(),
                knots=knots,
                values=values,
                hessian=self.expansion.hessian,
                C=self.expansion.C,
                D=self.expansion.D,
                curved=self.curved,
            )
        return "" if failed < 0 else self._failure()

    def raise_failure(self) -> None:
        """Raise the error of the first knot that failed in the last call of the core, if any."""
        self._core.raise_failure("knot ")

    def require_complete(self) -> None:
        """Raise an error if a knot or a sensor has no derivative along the trajectory."""
        self.raise_failure()
        for knot, element, reason in self._core.left_out():
            raise UnsupportedFeatureError(f"knot {knot}: {element}", reason)

    def backward(
        self,
        iterate: Iterate,
        regularization: str,
        mu: float,
        gains: Array,
        *,
        is_exact: bool = False,
    ) -> Direction | None:
        """Return the result of the backward pass, None if the problem is not convex.

        Knots without a derivative divide the horizon into segments, each of which has its own pass.
        The last control of a segment and those between segments do not change and keep the given
        gains. If `is_exact`, the pass uses the result of `curve`.
        """
        T, nx = self.horizon, self.cost.nx
        out = Direction(np.zeros(gains.shape[:2]), gains.copy(), 0.0, 0.0, np.zeros((T, nx)))
        out = out._replace(is_exact=is_exact)
        with self._measured("backward"):
            for segment in self.segments:
                expected = self._pass_segment(iterate, segment, (regularization, mu), out)
                if expected is None:
                    return None
                linear, quadratic = expected
                out = out._replace(linear=out.linear + linear, quadratic=out.quadratic + quadratic)
        if iterate.gaps is not None:
            out = out._replace(penalty=PENALTY * max(0.0, out.linear + out.quadratic))
        return out

    def _pass_segment(
        self, iterate: Iterate, segment: slice, regularization: tuple[str, float], out: Direction
    ) -> tuple[float, float] | None:
        """Write the result of the backward pass along a segment, and return the expected change.

        The value after a segment is zero: (ILQ-22).
        """
        nx, e = self.cost.nx, self.expansion
        lower, upper = self.bounds
        gradient, hessian = (
            e.gradient[segment],
            (self.curved if out.is_exact else e.hessian)[segment],
        )
        if segment.stop < self.horizon:
            gradient, hessian = gradient.copy(), hessian.copy()
            gradient[-1, nx:] = hessian[-1, nx:] = hessian[-1, :, nx:] = 0
        changed = slice(segment.start, segment.stop - 1)
        knot, linear, quadratic = _core.backward_into(
            A=e.A[segment],
            B=e.B[segment],
            gradient=gradient,
            hessian=hessian,
            controls=iterate.knots.controls[segment],
            lower=lower,
            upper=upper,
            regularization=regularization[0],
            mu=regularization[1],
            scale=self.scale,
            steps=out.steps[changed],
            gains=out.gains[changed],
            values=out.values[segment],
            gaps=None if iterate.gaps is None else iterate.gaps[segment],
        )
        return None if knot >= 0 else (linear, quadratic)

    def search(
        self, iterate: Iterate, most: float, direction: Direction, sizes: Array, wanted: Array
    ) -> list[Iterate]:
        """Return rollouts with these step sizes, with infinite costs if they are above `most`.

        If a rollout reaches its wanted cost, the core may skip all later ones.
        """
        T, knots, gaps = self.horizon, iterate.knots, iterate.gaps
        made = self._new_knots(T * len(sizes))
        with self._measured("rollouts"):
            results = self._core.search_into(
                self._task(),
                sizes=sizes,
                accept=np.full(len(sizes), -np.inf) if self.cost.users else wanted - self.constant,
                most=most - self.constant if self.cost.is_nonnegative else np.inf,
                states=self.states(knots),
                controls=knots.controls,
                steps=direction.steps,
                gains=direction.gains,
                knots=made,
                gaps=gaps,
            )
            found = []
            for k, (size, (_, _, total)) in enumerate(zip(sizes, results, strict=True)):
                one = made.candidate(k, T)
                total += self.constant + self._user_cost(one) if total < np.inf else 0.0
                left = None if gaps is None or size == 1 else (1 - size) * gaps
                found.append(Iterate(one, total, left))
        return found

    def close(self, iterate: Iterate, gains: Array) -> Iterate:
        """Return the simulation with feedback to a trajectory, at infinite cost if it diverges."""
        if iterate.gaps is None:
            return iterate
        still = Direction(np.zeros(gains.shape[:2]), gains, 0.0, 0.0, iterate.gaps)
        feasible = iterate._replace(gaps=None)
        (made,) = self.search(feasible, np.inf, still, np.ones(1), np.full(1, -np.inf))
        return made

    def shoot(self, states: Array, controls: Array) -> Iterate:
        """Return the knots that are simulated from given states, with the gaps between them.

        Raises `DivergedError` if the cost is not finite.
        """
        with self._measured("nominal"):
            rows, made = np.tile(self.start, (self.horizon, 1)), self._new_knots(self.horizon)
            rows[:, 0], rows[:, 1 : 1 + self.cost.nstate] = self.times, states
            first = mujoco.mj_stateSize(self.model, BEFORE_CTRL)
            rows[:, first : first + self.model.nu] = controls
            gaps = np.zeros((self.horizon, self.cost.nx))
            total = self._core.shoot_into(self._task(), rows=rows, knots=made, gaps=gaps)
            total += self.constant + self._user_cost(made) if total < np.inf else 0.0
        if not total < np.inf:
            raise DivergedError("a step from the initial states of the knots diverges")
        return Iterate(made, total, gaps)

    def states(self, knots: Knots) -> Array:
        """Return rows (qpos, qvel, act), which follow the time in MuJoCo's state vector."""
        return np.ascontiguousarray(knots.rows[:, 1 : 1 + self.cost.nstate])

    def terms(self, knots: Knots) -> Array:
        """Return the norms of all terms, one row per knot."""
        norms = np.empty((len(knots.norms), len(self.cost.terms)))
        norms[:, self.cost.own] = knots.norms[:, : len(self.cost.own)]
        norms[:, self.cost.users] = self._user_norms(knots)
        return norms

    def _differentiate(self, knots: Knots) -> None:
        self._core.differentiate_into(
            self._task(), knots=knots, expansion=self.expansion, keep=self.keeps
        )
        self._report(knots)

    def _report(self, knots: Knots) -> None:
        """Note what has no exact derivative, and difference those knots if this is wanted."""
        refused = self._core.refused()
        self.broken, self.refused = self._core.broken(), self._failure()
        self.omitted = tuple(
            str(UnsupportedFeatureError(f"knot {knot}: {element}", reason))
            for knot, element, reason in self._core.left_out()
        )
        if not refused:
            return
        failures = self.differences.expand(
            knots, refused, self._core.sensors(), self.offsets, self.core_weights
        )
        self.broken = sorted([*self.broken, *failures])
        first = self.broken[0] if self.broken else -1
        if first in failures:
            self.refused = f"knot {first}: {failures[first]}"

    @contextmanager
    def _measured(self, phase: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        taken = getattr(self.timings, phase) + time.perf_counter() - begun
        derivatives = self.timings.derivatives + self._core.derivative_seconds()
        self.timings = replace(self.timings, derivatives=derivatives, **{phase: taken})

    def _task(self) -> tuple[Array, Array, Array, Array, Array]:
        return self.start, self.offsets, self.core_weights, *self.bounds

    def _user_norms(self, knots: Knots) -> Array:
        times = self.times[: len(knots.rows)]
        return self.cost.user_norms(times, self.states(knots), knots.controls)

    def _user_cost(self, knots: Knots) -> float:
        if not self.cost.users:
            return 0.0
        weights = self.weights[:, self.cost.users]
        return float(weigh(self._user_norms(knots), weights).sum())

    def _add_users(self, knots: Knots) -> None:
        e, states = self.expansion, self.states(knots)
        self.cost.add_users(self.times, states, knots.controls, self.weights, e.gradient, e.hessian)

    def _new_knots(self, n: int) -> Knots:
        m = self.model
        widths = (len(self.start), m.nu, m.nsensordata, m.nv, self.core_weights.shape[1])
        return Knots(*(np.empty((n, width)) for width in widths))
