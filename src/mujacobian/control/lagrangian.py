"""The augmented Lagrangian of a plan: multipliers and penalties of its constraints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian.control.cost import Cost

SMALLEST_COST = 1e-3  # lower bound of the cost that the initial penalties refer to
NEAREST = 1e2  # tolerances: least distance from the bounds that the initial penalties refer to
FARTHEST = 1e6  # tolerances: largest ratio of multiplier and penalty
# the residual after a round, relative to that before it, above which the penalty grows: if the
# iterations of the round have converged, and if they have not
ENOUGH, ENOUGH_UNCONVERGED = 0.25, 0.9
GROWTH = 4.0  # of a penalty
LARGEST_GROWTH = 1e5  # of a penalty, in all rounds together
PATIENCE = 20  # rounds of too little progress with the largest penalty, before a plan is given up


class Residuals(NamedTuple):
    """How far a trajectory is from the constraints and from the conditions of an optimum.

    Attributes:
      multipliers: `(T, k)`, next multipliers (ILQ-29).
      violations: `(constraints,)`, largest distance of a row from its bounds.
      optimality: `(constraints,)`, largest residual (ILQ-30), at least the violation.
    """

    multipliers: Array
    violations: Array
    optimality: Array


class Lagrangian:
    """Multipliers and penalties of all constraints at the knots of a plan (ILQ-27).

    It begins without penalties, which leaves the constraints out.

    Attributes:
      multipliers: `(T, k)`, multipliers of the k rows of all constraints.
      penalties: `(constraints,)`, penalties.
      tolerances: `(constraints,)`, tolerances of the constraints.
    """

    def __init__(self, cost: Cost, times: Array) -> None:
        self.cost, self.times, T = cost, times, len(times)
        self.multipliers = np.zeros((T, cost.constrained))
        self.penalties = np.zeros(len(cost.constraints))
        self.tolerances = np.array([each.tolerance for each in cost.constraints])
        self._first_penalties = self.penalties
        self._stuck = np.zeros(len(cost.constraints), dtype=int)  # rounds without progress
        self._factors = np.stack([each.factors(times) for each in cost.constraints], axis=1)
        bounds = [each.bounds(times) for each in cost.constraints]
        self._lower = np.concatenate([lower for lower, _ in bounds], axis=1)
        self._upper = np.concatenate([upper for _, upper in bounds], axis=1)
        # the constraint of each row; rows that are off have no bounds
        sizes = [len(each.rows) for each in cost.constraints]
        self._owner = np.repeat(np.arange(len(sizes)), sizes)
        is_off = self._factors[:, self._owner] == 0
        self._lower[is_off], self._upper[is_off] = -np.inf, np.inf
        self._is_off = np.isinf(self._lower) & np.isinf(self._upper)

    def begin(self, total: float, values: Array) -> None:
        """Set the initial penalties, given the cost and the rows of a trajectory (ILQ-31)."""
        distance = np.minimum(abs(values - self._lower), abs(values - self._upper))
        nearest = 0.5 * (NEAREST * self.tolerances) ** 2
        for k in range(len(self.penalties)):
            own = distance[:, self._owner == k]
            some = own[np.isfinite(own)]
            mean = 0.5 * np.mean(some**2) if some.size else 0.0
            self.penalties[k] = max(abs(total), SMALLEST_COST) / max(mean, nearest[k])
        self._first_penalties = self.penalties.copy()

    def resume(
        self, times: Array, multipliers: dict[str, Array], penalties: dict[str, float]
    ) -> bool:
        """Continue with the multipliers of an earlier plan, whose knots are at these times.

        They are shifted along with the horizon. Returns whether the plan has the same constraints.
        """
        for constraint in self.cost.constraints:
            own = multipliers.get(constraint.name)
            if own is None or own.shape[1] != len(constraint.rows):
                return False
        last, timestep = len(times) - 1, self.times[1] - self.times[0]
        by_time = np.searchsorted(times, self.times + 0.5 * timestep) - 1
        by_place = np.arange(len(self.times)) + last - (len(self.times) - 1)
        for k, (constraint, rows) in enumerate(self.cost.constraint_rows()):
            place = by_time if constraint.moves else by_place
            self.multipliers[:, rows] = multipliers[constraint.name][place.clip(0, last)]
            self.penalties[k] = penalties[constraint.name]
        self.multipliers[self._is_off] = 0.0
        self._first_penalties = self.penalties.copy()
        return True

    @property
    def offsets(self) -> Array:
        """The offsets of the rows of upper and lower bounds, `(T, 2 k)`; NaN if a row is off."""
        center = self.cost.constraint_constants + self._shift
        offsets = np.concatenate([center - self._upper, self._lower - center], axis=1)
        offsets[np.isinf(offsets)] = np.nan
        return offsets

    @property
    def weights(self) -> Array:
        """The weights of the terms of the constraints, `(T, constraints)`."""
        weights: Array = self._factors * self.penalties / len(self.times)
        return weights

    @property
    def row_weights(self) -> Array:
        """The weights of all rows, `(T, k)`."""
        weights: Array = self.weights[:, self._owner]
        return weights

    @property
    def constant(self) -> float:
        """The part of the augmented Lagrangian that does not depend on the trajectory."""
        rates = self._factors[:, self._owner] * self.multipliers * self._shift
        return -0.5 * float(rates.sum()) / len(self.times)

    def residuals(self, values: Array) -> Residuals:
        """Return how far a trajectory with these rows `(T, k)` is from an optimum."""
        penalties = self.penalties[self._owner]
        values = np.where(self._is_off, 0.0, values)  # such rows may be undefined
        shifted = values + self._shift
        outside = shifted - shifted.clip(self._lower, self._upper)
        violation = abs(values - values.clip(self._lower, self._upper))
        return Residuals(
            penalties * outside, self._largest(violation), self._largest(abs(outside - self._shift))
        )

    def rates(self, residuals: Residuals) -> Array:
        """Return the derivatives of the augmented Lagrangian by the rows, `(T, k)`."""
        rates: Array = self._factors[:, self._owner] * residuals.multipliers / len(self.times)
        return rates

    def active(self, residuals: Residuals) -> NDArray[np.bool_]:
        """Return which rows are at their bounds, `(T, k)`: equalities and rows with multipliers."""
        active: NDArray[np.bool_] = (residuals.multipliers != 0) | (self._lower == self._upper)
        return active

    def update(self, residuals: Residuals) -> None:
        """Take the next multipliers, with a limit for infeasible problems."""
        most = (FARTHEST * self.tolerances * self.penalties)[self._owner]
        self.multipliers = residuals.multipliers.clip(-most, most)

    def raise_penalties(self, before: Array, now: Array, *, has_converged: bool) -> None:
        """Increase the penalties of constraints whose residuals have not decreased enough.

        Penalties have an upper limit: beyond it, they only make the problem worse conditioned.

        `before` and `now` are residuals, `(constraints,)`, and `has_converged` says whether the
        iterations in between have converged.
        """
        enough = ENOUGH if has_converged else ENOUGH_UNCONVERGED
        slow = (now > self.tolerances) & (now > enough * before)
        largest = LARGEST_GROWTH * self._first_penalties
        self._stuck = np.where(slow & (self.penalties >= largest), self._stuck + 1, 0)
        raised = np.minimum(GROWTH * self.penalties, largest)
        self.penalties = np.where(slow, raised, self.penalties)

    def hopeless(self, violations: Array) -> str:
        """Return the constraint that the largest penalty does not enforce, or nothing."""
        for k in np.flatnonzero((self._stuck >= PATIENCE) & (violations > self.tolerances)):
            return f"{self.cost.constraints[k].owner} is violated by {violations[k]:.3g}"
        return ""

    def named(self, values: Array) -> dict[str, float]:
        """Return one number per constraint by name."""
        names = (each.name for each in self.cost.constraints)
        return dict(zip(names, map(float, values), strict=True))

    @property
    def named_multipliers(self) -> dict[str, Array]:
        """The multipliers of each constraint by name, `(T, k)` each."""
        rows = self.cost.constraint_rows()
        return {each.name: self.multipliers[:, place].copy() for each, place in rows}

    @property
    def _shift(self) -> Array:
        """The ratio of multipliers and penalties, `(T, k)`, 0 without penalties."""
        penalties = self.penalties[self._owner]
        shift: Array = self.multipliers / np.where(penalties > 0, penalties, 1.0)
        return shift

    def _largest(self, values: Array) -> Array:
        """Return the largest of the rows of each constraint."""
        count = len(self.penalties)
        return np.array([values[:, self._owner == k].max() for k in range(count)])
