"""The iterations of a planner: derivatives, backward pass and line search, until convergence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mujacobian._arguments import Array
from mujacobian.control.passes import Passes
from mujacobian.control.progress import Log
from mujacobian.control.regularization import Regularization
from mujacobian.control.settings import Settings
from mujacobian.control.trajectory import Direction, Iterate

SMALLEST_COST = 1e-12  # lower bound of the cost that the relative tolerance refers to
COST_ROUNDING = 1e-13  # relative rounding of the cost of a trajectory
SMALLEST_EXPECTED = 1e-300  # avoids a division by zero
NEAR = 1e-2  # expected relative decrease of the cost below which "auto" tries the exact Hessian
LONGEST_WAIT = 8  # iterations until "auto" tries the exact Hessian again after failures


@dataclass
class Progress:
    """A trajectory that is being improved, with the feedback gains along it.

    `is_new` is true if the trajectory has not been differentiated, and `has_failed` is true if the
    last line search did not improve it.
    """

    iterate: Iterate
    gains: Array
    is_new: bool = False
    has_failed: bool = False
    status: str = "iterations"
    refused: str = ""
    omitted: tuple[str, ...] = ()
    approximated: str = ""
    log: Log = field(default_factory=Log)


class Descent:
    """The iterations of a plan, with the regularization and the choice of the Hessian.

    Attributes:
      tolerance: improvement relative to the cost below which a trajectory has converged; at first
        that of the settings.
    """

    def __init__(self, passes: Passes, settings: Settings) -> None:
        self._passes, self._settings = passes, settings
        self.tolerance = settings.tolerance
        mu, bounds = settings.mu, settings.mu_bounds
        if settings.regularization == "none":
            mu, bounds = 0.0, (0.0, 0.0)
        self._mu = Regularization(mu, bounds, settings.mu_factor)
        self._curvature = _Schedule()

    def run(self, progress: Progress, iterations: int) -> None:
        """Improve a trajectory until it converges or the limit of iterations is reached."""
        progress.status = "iterations"
        for _ in range(iterations):
            if self._iterate(progress):
                return

    def _iterate(self, p: Progress) -> bool:
        """Make one iteration. Returns whether it is the last one."""
        # derivatives along the current trajectory
        passes = self._passes
        if p.is_new:
            passes.keeps = self.expects_curvature()
            passes.expand(p.iterate.knots)
        p.refused, p.omitted = passes.refused, passes.omitted
        if not passes.segments:
            return True
        # backward pass, and the test of convergence
        iterate = p.iterate
        least = self.tolerance * max(abs(iterate.cost), SMALLEST_COST)
        direction = self._direction(p, least)
        if direction is None:
            p.status = "not convex"
            return True
        directions, reason = self._with_curvature(p, direction)
        p.approximated = p.approximated or reason
        direction, mu = directions[0], self._mu.value
        if iterate.gaps is None and direction.improvement(1.0) <= least:
            p.gains, expected = direction.gains, direction.improvement(1.0)
            p.iterate, size, tried, _ = self._last_step(iterate, direction)
            p.log.add(p.iterate.cost, expected, size, mu, tried, direction.is_exact)
            p.status = "no improvement" if p.has_failed else "converged"
            p.log.report(p.iterate, passes)
            return True
        # line search, and the update of the regularization
        found, direction = self._search_along(iterate, directions)
        p.gains, expected, decrease = (
            direction.gains,
            direction.improvement(found.size),
            found.decrease,
        )
        if not direction.is_exact or self._settings.hessian == "exact":
            self._mu.adapt(decrease / max(expected, SMALLEST_EXPECTED), found.size)
        p.is_new, p.has_failed, p.iterate = decrease > 0, decrease <= 0, found.iterate
        size = found.size if p.is_new else 0.0
        p.log.add(p.iterate.cost, expected, size, mu, found.tried, direction.is_exact)
        p.log.report(p.iterate, passes)
        if p.log.has_stopped:
            p.status = "stopped"
        elif p.is_new and decrease <= least and p.iterate.gaps is None:
            p.status = "converged"
        elif p.has_failed and self._mu.is_largest:
            p.status = "no improvement"
        else:
            return False
        return True

    def expects_curvature(self) -> bool:
        """Return whether the next iteration probably computes the exact Hessian."""
        return self._settings.hessian == "exact" or self._curvature.was_due

    def _with_curvature(self, p: Progress, approximate: Direction) -> tuple[list[Direction], str]:
        """Return the directions to try, in this order, and why there is no exact one.

        The gradients of the value of the Gauss-Newton pass are the multipliers of the second
        derivatives (ILQ-13). They do not depend on the curvature, so that all knots are computed in
        parallel, and they are those of the exact pass up to the length of the step.
        """
        hessian = self._settings.hessian
        if hessian == "gauss-newton" or p.iterate.gaps is not None:
            return [approximate], ""
        is_near = approximate.improvement(1.0) <= NEAR * abs(p.iterate.cost)
        if hessian == "auto" and not self._curvature.is_due(is_near):
            return [approximate], ""
        if reason := self._passes.curve(p.iterate.knots, approximate.values):
            self._curvature.record(False)
            return [approximate], reason
        if hessian == "auto":
            exact = self._backward(p, mu=0.0, is_exact=True)
            exact = exact or self._backward(p, is_exact=True)
            if exact is None:
                self._curvature.record(False)
                return [approximate], ""
            return [exact, approximate], ""
        exact = self._backward(p, is_exact=True)
        while exact is None and not self._mu.is_largest:
            self._mu.scale(self._mu.factor)
            exact = self._backward(p, is_exact=True)
        return [exact or approximate], ""

    def _search_along(
        self, iterate: Iterate, directions: list[Direction]
    ) -> tuple[_Found, Direction]:
        """Return the result of a line search along the first direction that decreases the cost."""
        for direction in directions[:-1]:
            found = self._search(iterate, direction)
            self._curvature.record(found.iterate.cost < iterate.cost)
            if found.iterate.cost < iterate.cost:
                return found, direction
        return self._search(iterate, directions[-1]), directions[-1]

    def _last_step(self, iterate: Iterate, direction: Direction) -> _Found:
        """Return the trajectory after the step of a plan that has converged.

        A step with the exact Hessian squares the error, although the cost may not show it, because
        the decrease is of the size of its rounding. Other plans do not change any more.
        """
        unchanged = _Found(iterate, 0.0, 0, 0.0)
        if not direction.is_exact:
            return unchanged
        most = iterate.cost + COST_ROUNDING * abs(iterate.cost)
        (made,) = self._passes.search(iterate, most, direction, np.ones(1), np.array([most]))
        return (
            unchanged._replace(iterate=made, size=1.0, tried=1)
            if made.cost <= most
            else (unchanged._replace(tried=1))
        )

    def _direction(self, p: Progress, least: float) -> Direction | None:
        """Return the result of the backward pass, None if no regularization makes it convex.

        The regularization increases until the problem is convex. If the expected improvement is not
        above `least`, it decreases as long as the problem stays convex. After a line search that
        failed it must not, because the same search would fail again.
        """
        best = self._backward(p)
        while best is None and not self._mu.is_largest:
            self._mu.scale(self._mu.factor)
            best = self._backward(p)
        may_lower = not p.has_failed and p.iterate.gaps is None
        while may_lower and best and best.improvement(1.0) <= least and not self._mu.is_smallest:
            mu, rate = self._mu.value, self._mu.rate
            self._mu.scale(1 / self._mu.factor)
            lower = self._backward(p)
            if lower is None:
                self._mu.value, self._mu.rate = mu, rate
                break
            best = lower
        return best

    def _backward(
        self, p: Progress, *, mu: float | None = None, is_exact: bool = False
    ) -> Direction | None:
        mu = self._mu.value if mu is None else mu
        kind = self._settings.regularization
        return self._passes.backward(p.iterate, kind, mu, p.gains, is_exact=is_exact)

    def _search(self, iterate: Iterate, direction: Direction) -> _Found:
        """Return the best rollout of a line search, which runs one step size per thread."""
        all_sizes, acceptance = self._settings.step_sizes, self._settings.acceptance
        best, cost = _Found(iterate, float(all_sizes[-1]), 0, 0.0), iterate.cost
        highest = cost + direction.penalty
        for first in range(0, len(all_sizes), self._settings.threads):
            sizes = all_sizes[first : first + self._settings.threads]
            wanted = np.array([direction.wanted(cost, a, acceptance) for a in sizes])
            made = self._passes.search(iterate, highest, direction, sizes, wanted)
            for size, enough, one in zip(sizes, wanted, made, strict=True):
                best = best._replace(tried=best.tried + 1)
                decrease = direction.merit_decrease(cost, one.cost, float(size))
                if decrease > best.decrease:
                    best = best._replace(iterate=one, size=float(size), decrease=decrease)
                if one.cost <= enough:
                    return best
        return best


class _Found(NamedTuple):
    """The best rollout of a line search, or the initial trajectory if no rollout is better.

    `size` is its step size, `tried` the number of rollouts and `decrease` that of the merit.
    """

    iterate: Iterate
    size: float
    tried: int
    decrease: float


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
