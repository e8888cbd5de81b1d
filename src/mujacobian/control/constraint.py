"""Constraints of a plan: rows of sensors and controls between bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array
from mujacobian.control.rows import Rows
from mujacobian.control.schedule import Schedule, knot_factors, require_knots, step_factors, widened
from mujacobian.errors import ArgumentError, ArgumentTypeError


@dataclass(frozen=True)
class Constraint:
    """A constraint lower <= rows <= upper at knots of a plan (ILQ-26).

    Equal bounds make an equality. Bounds of controls alone are better given to `ILQR`, which keeps
    them exactly.

    Attributes:
      name: name in results and errors.
      rows: k rows of sensors and controls.
      lower: `(k,)`, or a function of times `(n,)` that returns `(n, k)`. It is called once per
        plan, and `MPC.run` calls it again with all times of the loop. One number instead of k
        applies to all rows, and -inf is no bound. By default, there is no lower bound.
      upper: upper bounds in the same form; at least one of both must be given.
      tolerance: largest violation of a plan that has converged, in the unit of the rows; by default
        1e-4.
      knots: knots of a plan at which the constraint holds: "all", the default; "last" for a
        terminal constraint; or as for `Term`, an array `(T,)` or a function of times `(n,)` that
        returns `(n,)`, where the constraint holds at the knots whose number is not 0.

    Example:
      >>> from mujacobian import control
      >>> model = control.tasks.load("cartpole").model
      >>> track = control.Constraint("track", control.sensor(model, "place"), lower=-1, upper=1)
      >>> stop = control.Constraint(
      ...     "stop", control.sensor(model, "speed"), lower=0, upper=0, knots="last")
    """

    name: str
    rows: Rows
    _: KW_ONLY
    lower: ArrayLike | Schedule | None = None
    upper: ArrayLike | Schedule | None = None
    tolerance: float = 1e-4
    knots: str | ArrayLike | Schedule = "all"

    def __post_init__(self) -> None:
        if not isinstance(self.rows, Rows):
            raise ArgumentTypeError(f"{self.owner}: rows must be Rows, got {self.rows!r}")
        if not len(self.rows):
            raise ArgumentError(f"{self.owner}: rows must not be empty")
        if self.lower is None and self.upper is None:
            raise ArgumentError(f"{self.owner}: lower or upper must be given")
        if np.ndim(self.tolerance) or not (np.isfinite(self.tolerance) and self.tolerance > 0):
            raise ArgumentError(
                f"{self.owner}: tolerance must be a number above 0, got {self.tolerance!r}"
            )
        require_knots(self.owner, self.knots)
        given = {"lower": self.lower, "upper": self.upper}
        fixed = {name: bound for name, bound in given.items() if not callable(bound)}
        for name, bound in fixed.items():
            self._bound(name, bound, np.zeros(1))
        if len(fixed) == len(given):
            self.bounds(np.zeros(1))

    @property
    def owner(self) -> str:
        """The kind and the name, for errors."""
        return f'constraint "{self.name}"'

    @property
    def moves(self) -> bool:
        """Whether the constraint belongs to times, so that it moves through the knots of plans."""
        return callable(self.knots) or (isinstance(self.knots, str) and self.knots == "all")

    def factors(self, times: Array) -> Array:
        """Return the factors of the knots of a plan, `(n,)`, 0 where it does not hold (ILQ-27)."""
        factors = knot_factors(self.owner, self.knots, times)
        return factors if isinstance(self.knots, str) else (factors > 0).astype(np.float64)

    def step_violation(self, times: Array, values: Array) -> float:
        """Return the largest violation of simulated steps, given their times and rows `(n, k)`.

        Each step is the first knot of a plan, so that it cannot violate a terminal constraint.
        """
        lower, upper = self.bounds(times)
        violations = abs(values - values.clip(lower, upper))
        holds = step_factors(self.owner, self.knots, times) > 0
        return float(violations[holds].max(initial=0.0))

    def bounds(self, times: Array) -> tuple[Array, Array]:
        """Return the lower and the upper bounds at these times, `(n, k)` each."""
        lower, upper = (
            self._bound("lower", self.lower, times),
            self._bound("upper", self.upper, times),
        )
        for t, k in np.argwhere((lower > upper) | (lower == np.inf) | (upper == -np.inf)):
            raise ArgumentError(
                f"{self.owner}: row {k} cannot be between {lower[t, k]} and {upper[t, k]}: lower "
                "must not be above upper"
            )
        return lower, upper

    def _bound(self, name: str, given: ArrayLike | Schedule | None, times: Array) -> Array:
        what, shape = f"{self.owner}: {name}", (len(times), len(self.rows))
        if given is None:
            return np.full(shape, -np.inf if name == "lower" else np.inf)
        if callable(given):
            made = widened(what, given(times), shape[:1], shape[1])
        else:
            made = np.broadcast_to(widened(what, given, (), shape[1]), shape)
        if np.isnan(made).any():
            raise ArgumentError(f"{what} must not be NaN: an infinite bound is no bound")
        return made


def checked_constraints(constraints: Sequence[Constraint]) -> list[Constraint]:
    """Return a list of constraints, which have distinct names."""
    for constraint in constraints:
        if not isinstance(constraint, Constraint):
            raise ArgumentTypeError(
                f"constraints must be control.Constraint, got {type(constraint).__name__}"
            )
    names = [constraint.name for constraint in constraints]
    if len(set(names)) < len(names):
        raise ArgumentError(f"names of constraints must differ, got {', '.join(names)}")
    return list(constraints)
