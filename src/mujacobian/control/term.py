"""Terms of a cost: a residual with its target, norm and weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array
from mujacobian.control.norm import Norm, Quadratic
from mujacobian.control.rows import Rows
from mujacobian.control.user_residual import UserResidual
from mujacobian.errors import ArgumentError, ArgumentTypeError

# times (n,) -> one value or row per time
Schedule = Callable[[Array], ArrayLike]

KNOTS = ("all", "last")


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
                f'term "{self.name}": weight must be one number, got an array of shape '
                f"{np.shape(self.weight)}: use knots for one factor per knot"
            )
        if not (np.isfinite(self.weight) and self.weight >= 0):
            raise ArgumentError(
                f'term "{self.name}": weight must be at least 0, got {self.weight!r}'
            )
        if self.target is not None and not callable(self.target):
            self._checked(self.target, ())
        if isinstance(self.knots, str):
            if self.knots not in KNOTS:
                raise ArgumentError(
                    f'term "{self.name}": knots must be "all", "last", factors or a function of '
                    f"times, got {self.knots!r}"
                )
        elif not callable(self.knots):
            self._checked_factors(self.knots, (np.size(self.knots),))

    def _require(self, name: str, value: object, kinds: tuple[type, ...]) -> None:
        if not isinstance(value, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise ArgumentTypeError(f'term "{self.name}": {name} must be {wanted}, got {value!r}')

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
        t = np.asarray(times, dtype=np.float64)
        if callable(self.knots):
            return self._checked_factors(self.knots(t), (len(t),))
        if not isinstance(self.knots, str):
            return self._checked_factors(self.knots, (len(t),))
        out = np.ones(len(t))
        if self.knots == "last":
            out[:-1], out[-1:] = 0, len(t)
        return out

    def step_factors(self, times: Array) -> Array:
        """Return the factors of simulated steps, `(n,)`, each of which is the first of a plan."""
        if isinstance(self.knots, str):
            return np.full(len(times), float(self.knots == "all"))
        if callable(self.knots):
            return self.factors(times)
        return np.full(len(times), np.asarray(self.knots, dtype=np.float64)[0])

    def _checked_factors(self, factors: ArrayLike, shape: tuple[int, ...]) -> Array:
        what = f'term "{self.name}": the factors of knots'
        given = np.asarray(factors, dtype=np.float64)
        if given.shape != shape or not given.size:
            raise ArgumentError(f"{what} must have shape {shape}, got {given.shape}")
        for k in np.flatnonzero(~(np.isfinite(given) & (given >= 0))):
            raise ArgumentError(f"{what} must be at least 0, but number {k} is {given[k]}")
        return given

    def _checked(self, target: ArrayLike, lead: tuple[int, ...]) -> Array:
        """Return a target as an array whose leading axes are `lead`."""
        given, wanted = np.asarray(target, dtype=np.float64), (*lead, len(self.residual))
        if given.shape == lead:
            given = np.broadcast_to(given[..., None], wanted)
        if given.shape != wanted:
            raise ArgumentError(
                f'term "{self.name}": target must have shape {wanted}, got {given.shape}'
            )
        if np.isinf(given).any():
            raise ArgumentError(f'term "{self.name}": target is infinite')
        return given
