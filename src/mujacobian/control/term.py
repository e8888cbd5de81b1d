"""Terms of a cost: a residual with its target, norm and weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array
from mujacobian.control.norm import Norm, Quadratic
from mujacobian.control.rows import Rows
from mujacobian.errors import ArgumentError, ArgumentTypeError

# times (n,) -> (n, k)
Schedule = Callable[[Array], ArrayLike]


@dataclass(frozen=True)
class UserResidual:
    """A user-defined residual: a function of times, states and controls with its Jacobian.

    Both functions receive all knots at once: times `(n,)`, states `(n, nq + nv + na)` with rows
    (qpos, qvel, act), and controls `(n, nu)`. The planner calls them a few times per trajectory. A
    value that is not finite makes the cost infinite, so the line search rejects the trajectory.

    Attributes:
      dim: number of rows k.
      value: function that returns the residual, `(n, k)`.
      jacobian: function that returns the derivatives with respect to the state, `(n, k, nx)` in the
        tangent coordinates of `mujacobian.linearize`, and to the controls, `(n, k, nu)`.

    Example:
      >>> import numpy as np
      >>> from mujacobian import control
      >>> power = control.UserResidual(  # torque times speed of a model with nv = 1
      ...     1,
      ...     lambda t, x, u: u * x[:, 1:],
      ...     lambda t, x, u: (np.stack([0 * u, u], axis=2), x[:, 1:, None]))
      >>> control.Term("power", power, weight=0.1).residual.dim
      1
    """

    dim: int
    value: Callable[[Array, Array, Array], ArrayLike]
    jacobian: Callable[[Array, Array, Array], tuple[ArrayLike, ArrayLike]]

    def __len__(self) -> int:
        return self.dim


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
    """

    name: str
    residual: Rows | UserResidual
    norm: Norm = field(default_factory=Quadratic)
    weight: float = 1.0
    target: ArrayLike | Schedule | None = None

    def __post_init__(self) -> None:
        self._require("residual", self.residual, (Rows, UserResidual))
        self._require("norm", self.norm, (Norm,))
        if not (np.isfinite(self.weight) and self.weight >= 0):
            raise ArgumentError(
                f'term "{self.name}": weight must be at least 0, got {self.weight!r}'
            )
        if self.target is not None and not callable(self.target):
            self._checked(self.target, ())

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
