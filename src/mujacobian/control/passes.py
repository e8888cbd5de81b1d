"""The passes of an iteration of iterative LQR, each one call of the compiled core."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian import _core
from mujacobian.control.cost import Cost, weigh
from mujacobian.control.plan import Policy, Timings
from mujacobian.errors import MujacobianError, UnsupportedFeatureError

Array = NDArray[np.float64]

FEEDBACKS = (1.0, 0.3, 0.1, 0.0)  # parts of it with which a policy is followed


class DivergedError(MujacobianError):
    """A simulation that a plan needs has no end: MuJoCo found its numbers bad."""


class Knots(NamedTuple):
    """A simulated trajectory as the core records it; candidates of a search follow one another."""

    rows: Array  # (T, nstate) mjSTATE_INTEGRATION
    controls: Array
    sensors: Array
    qacc: Array
    norms: Array

    def candidate(self, k: int, T: int) -> Knots:
        """The k-th of several trajectories of T knots."""
        return Knots(*(array[k * T : (k + 1) * T] for array in self))


class Expansion(NamedTuple):
    """Derivatives along a trajectory."""

    A: Array
    B: Array
    C: Array
    D: Array
    gradient: Array
    hessian: Array


class Direction(NamedTuple):
    """What a backward pass has found: steps and gains, and how the cost is expected to change."""

    steps: Array
    gains: Array
    linear: float
    quadratic: float

    def improvement(self, size: float) -> float:
        """By how much the quadratic model of the cost falls at a step size (ILQ-8)."""
        return -size * (self.linear + size * self.quadratic)


class Passes:
    """The compiled core of a planner, its arrays and the time it takes."""

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
    ) -> None:
        self.model, self.cost, self.horizon, self.bounds = model, cost, horizon, bounds
        self._core = _core.Planner(
            model,
            cost=cost.core,
            backend=derivatives,
            eps=eps,
            warm_start=warm_start,
            threads=threads,
        )
        nx, nu, ns = cost.nx, cost.nu, cost.ns
        self.expansion = Expansion(
            np.zeros((horizon, nx, nx)),
            np.zeros((horizon, nx, nu)),
            np.zeros((horizon, ns, nx)),
            np.zeros((horizon, ns, nu)),
            *cost.blank(horizon),
        )
        self.reach = horizon  # knots before the first that has no derivative
        self.timings = Timings()

    def begin(self, start: Array) -> None:
        """Plan from a state, a row of mjSTATE_INTEGRATION."""
        self.start = start
        self.times = start[0] + self.model.opt.timestep * np.arange(self.horizon)
        self.offsets = self.cost.offsets(self.times)
        self.timings = Timings()
        self._core.derivative_seconds()

    def follow(self, policy: Policy, shift: int, enough: float) -> tuple[Knots, float]:
        """The trajectory of a policy, its cost, and derivatives on the way.

        `shift` says by how many knots the plan has moved on since the last, negative that there is
        none. Where with all of its feedback the policy diverges or costs more than `enough`, less
        is tried, too.
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
                )
                self.reach = self.horizon if failed < 0 else failed
                shift = min(shift, 0)  # has been done
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
            self._add_users(knots)
        return knots, cost

    def _diverged(self, taken: int, is_bad: bool, knots: Knots) -> DivergedError:
        """Why a trajectory to start from, simulated to knot `taken`, has no finite cost."""
        if is_bad:
            return DivergedError(
                f"the trajectory to start from diverges at knot {taken} of {self.horizon}: MuJoCo "
                "found its numbers bad. Give other controls to start from, plan with a smaller "
                "timestep or another integrator (control.planning_model), or shorten the horizon"
            )
        end = min(taken + 1, self.horizon)  # the first of infinite cost is the last simulated
        norms = self.terms(Knots(*(array[:end] for array in knots)))
        size = np.nan_to_num(np.where(self.cost.weights, norms, 0.0), nan=np.inf, posinf=np.inf)
        knot, k = np.unravel_index(
            np.argmax(size), size.shape
        )  # if all are finite, their sum is not
        return DivergedError(
            f"the cost of the trajectory to start from is not finite: at knot {knot} of "
            f'{self.horizon} the term "{self.cost.terms[k].name}" is {norms[knot, k]}'
        )

    def require_all(self) -> None:
        """Raise the error of the first knot that has no derivative."""
        if self.reach < self.horizon:
            self._core.raise_failure("knot ")

    @property
    def refused(self) -> str:
        """Which knot has no derivative, and why; empty if all have."""
        try:
            self.require_all()
        except (UnsupportedFeatureError, ValueError) as error:
            return str(error)
        return ""

    def expand(self, knots: Knots) -> None:
        """Derivatives along a trajectory that has been simulated."""
        with self._measured("expansion"):
            self._differentiate(knots)
            self.require_all()
            self._add_users(knots)

    def backward(
        self, knots: Knots, regularization: str, mu: float, gains: Array
    ) -> Direction | None:
        """The backward pass; None if the problem is not convex with this much regularization.

        It begins at the last knot before the first that has no derivative. From there on, controls
        stay as they are, with the given gains.
        """
        n, nx, e = self.reach, self.cost.nx, self.expansion
        lower, upper = self.bounds
        steps, gains = np.zeros(gains.shape[:2]), gains.copy()
        gradient, hessian = e.gradient[:n], e.hessian[:n]
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
            )
        return Direction(steps, gains, linear, quadratic) if knot < 0 else None

    def search(
        self, knots: Knots, cost: float, direction: Direction, sizes: Array, wanted: Array
    ) -> list[tuple[Knots, float]]:
        """Rollouts of several step sizes and their costs, infinite if they cost more than `cost`.

        With the wanted cost or less, what comes after a rollout is not needed.
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
        """Rows of (qpos, qvel, act), which follow the time in MuJoCo's state."""
        return np.ascontiguousarray(knots.rows[:, 1 : 1 + self.cost.nstate])

    def terms(self, knots: Knots) -> Array:
        """The norms of all terms, a row per knot."""
        norms = np.empty((len(knots.norms), len(self.cost.terms)))
        norms[:, self.cost.own] = knots.norms
        norms[:, self.cost.users] = self._user_norms(knots)
        return norms

    def _differentiate(self, knots: Knots) -> None:
        failed = self._core.differentiate_into(self._task(), knots=knots, expansion=self.expansion)
        self.reach = self.horizon if failed < 0 else failed

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
