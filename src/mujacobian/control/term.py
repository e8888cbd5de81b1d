"""Terms of a cost: a residual with its target, norm and weight."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array
from mujacobian.control.norm import Norm, Quadratic
from mujacobian.control.rows import Rows
from mujacobian.control.schedule import Schedule, knot_factors, require_knots, step_factors, widened
from mujacobian.control.user_residual import UserResidual
from mujacobian.errors import ArgumentError, ArgumentTypeError


@dataclass(frozen=True)
class Term:
    """A term weight * norm(residual - target) of a cost.

    Attributes:
      name: name in tables and plots.
      residual: `Rows` of sensors and controls, or a `UserResidual`.
      norm: instance of a subclass of `control.Norm`; by default `Quadratic()`.
      weight: initial weight, at least 0; by default 1. `Cost.weights` holds the current weights.
      target: `(k,)`, or a function of times `(n,)` that returns `(n, k)` and is called once per
        plan; by default zero. One number instead of k applies to all rows. A NaN switches a row off
        at that time, as if the term did not have this row.
      knots: knots of a plan that the term belongs to. "all" is the default. "last" makes a terminal
        term, which counts once per plan, whereas the other terms are averaged over the knots. Or
        factors of the weight: `(T,)`, one per knot of a plan, or a function of times `(n,)` that
        returns `(n,)` and is called once per plan.

    Example:
      >>> from mujacobian import control
      >>> model = control.tasks.load("arm").model
      >>> tip = control.sensor(model, "tip")
      >>> arrive = control.Term("arrive", tip, weight=5, target=(0.5, 0, 0.3), knots="last")
      >>> arrive.factors([0.0, 0.1, 0.2])
      array([0., 0., 3.])
    """

    name: str
    residual: Rows | UserResidual
    norm: Norm = field(default_factory=Quadratic)
    weight: float = 1.0
    target: ArrayLike | Schedule | None = None
    knots: str | ArrayLike | Schedule = "all"

    def __post_init__(self) -> None:
        self._require("residual", self.residual, (Rows, UserResidual))
        self._require("norm", self.norm, (Norm,))
        if np.ndim(self.weight):
            raise ArgumentError(
                f"{self.owner}: weight must be one number, got an array of shape "
                f"{np.shape(self.weight)}: use knots for one factor per knot"
            )
        if not (np.isfinite(self.weight) and self.weight >= 0):
            raise ArgumentError(f"{self.owner}: weight must be at least 0, got {self.weight!r}")
        if self.target is not None and not callable(self.target):
            self._checked(self.target, ())
        require_knots(self.owner, self.knots)

    @property
    def owner(self) -> str:
        """The kind and the name, for errors."""
        return f'term "{self.name}"'

    def _require(self, name: str, value: object, kinds: tuple[type, ...]) -> None:
        if not isinstance(value, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise ArgumentTypeError(f"{self.owner}: {name} must be {wanted}, got {value!r}")

    def targets(self, times: Array) -> Array:
        """Return the targets at these times, `(n, k)`."""
        shape = len(times), len(self.residual)
        if self.target is None:
            return np.zeros(shape)
        if callable(self.target):
            return self._checked(self.target(times), shape[:1])
        return np.broadcast_to(self._checked(self.target, ()), shape)

    @property
    def is_uniform(self) -> bool:
        """Whether the term has the same weight at all knots."""
        return isinstance(self.knots, str) and self.knots == "all"

    def factors(self, times: ArrayLike) -> Array:
        """Return the factors of the weight at the knots of a plan, `(n,)`.

        The mean of the cost over the knots counts a terminal term once (ILQ-18).
        """
        return knot_factors(self.owner, self.knots, times)

    def step_factors(self, times: Array) -> Array:
        """Return the factors of simulated steps, `(n,)`, each of which is the first of a plan."""
        return step_factors(self.owner, self.knots, times)

    def _checked(self, target: ArrayLike, lead: tuple[int, ...]) -> Array:
        """Return a target as an array whose leading axes are `lead`."""
        given = widened(f"{self.owner}: target", target, lead, len(self.residual))
        if np.isinf(given).any():
            raise ArgumentError(f"{self.owner}: target is infinite")
        return given
