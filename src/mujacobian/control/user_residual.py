"""User-defined residuals, with Jacobians that are given and checked, automatic or numerical."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, count, shaped
from mujacobian._manifold import Manifold
from mujacobian.errors import ArgumentError, ArgumentTypeError, MujacobianError

Value = Callable[[Array, Array, Array], ArrayLike]
Jacobian = Callable[[Array, Array, Array], tuple[ArrayLike, ArrayLike]]

JACOBIANS = ("numerical", "jax", "torch")
STEP = 1e-3  # largest step of extrapolated differences; rounding allows nothing much smaller
CHECKED_KNOTS = 3  # number of knots at which a given Jacobian is checked
TOLERANCE = 1e-5  # relative error of a Jacobian that is accepted, far above that of differences
MARGIN = 10.0  # factor of the estimated error of differences


class WrongJacobianError(MujacobianError, ValueError):
    """The Jacobian of a user-defined residual is not the derivative of its value."""


@dataclass(frozen=True)
class UserResidual:
    """A user-defined residual: a function of times, states and controls with its Jacobian.

    The functions receive all knots at once: times `(n,)`, states `(n, nq + nv + na)` with rows
    (qpos, qvel, act), and controls `(n, nu)`. The planner calls them a few times per trajectory. A
    value that is not finite makes the cost infinite, so the line search rejects the trajectory.

    The first time that a cost is differentiated, a given Jacobian is compared with extrapolated
    differences of the value at three knots. A wrong one raises `WrongJacobianError`. Entries whose
    differences do not converge, as at a kink, are not judged.

    Attributes:
      dim: number of rows k.
      value: function that returns the residual, `(n, k)`. The row of a knot depends on the time,
        the state and the control of this knot only.
      jacobian: function that returns the derivatives with respect to the state, `(n, k, nx)` in the
        tangent coordinates of `mujacobian.linearize`, and to the controls, `(n, k, nu)`; "jax" or
        "torch" if the value is a function of JAX arrays or PyTorch tensors, which are then
        differentiated automatically; or "numerical" for extrapolated differences, which
        `mujacobian.fd_count` counts.
      check: whether to check a given Jacobian; by default True.

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
    value: Value
    jacobian: Jacobian | str
    check: bool = True

    def __post_init__(self) -> None:
        count("dim", self.dim)
        if isinstance(self.jacobian, str):
            if self.jacobian not in JACOBIANS:
                names = ", ".join(f'"{name}"' for name in JACOBIANS)
                raise ArgumentError(
                    f"jacobian must be a function or one of {names}, got {self.jacobian!r}"
                )
        elif not callable(self.jacobian):
            raise ArgumentTypeError(
                f"jacobian must be a function, got {type(self.jacobian).__name__}"
            )
        if not callable(self.value):
            raise ArgumentTypeError(f"value must be a function, got {type(self.value).__name__}")

    def __len__(self) -> int:
        return self.dim


class Evaluator:
    """The value and the Jacobian of a user-defined residual for the states of a model.

    Args:
      name: name of its term.
      residual: the residual.
      manifold: the states of the model.
      nu: number of controls.
    """

    def __init__(self, name: str, residual: UserResidual, manifold: Manifold, nu: int) -> None:
        self.name, self.residual, self.manifold, self.nu = name, residual, manifold, nu
        self._is_checked = isinstance(residual.jacobian, str) or not residual.check
        self._value: Value = residual.value
        self._jacobian: Jacobian | None = None  # by the stored numbers of a state
        if residual.jacobian == "jax":
            from mujacobian.control.jax_residual import differentiable
        elif residual.jacobian == "torch":
            from mujacobian.control.torch_residual import differentiable
        else:
            return
        self._value, self._jacobian = differentiable(residual.value)

    def value(self, times: Array, states: Array, controls: Array) -> Array:
        """Return the residual `(n, k)`, which may be infinite or NaN."""
        given = self._value(times, states, controls)
        shape = len(times), self.residual.dim
        return shaped(f'residual of term "{self.name}"', given, shape, finite=False)

    def jacobian(self, times: Array, states: Array, controls: Array) -> Array:
        """Return the derivatives by state and controls, `(n, k, nx + nu)`."""
        if self.residual.jacobian == "numerical":
            made, _ = self._differences(times, states, controls)
            _core.count_differences(len(times))
            return shaped(f'numerical Jacobian of term "{self.name}"', made, made.shape)
        if self._jacobian is not None:
            given = self._jacobian(times, states, controls)
            rx, ru = self._shaped(len(times), self.manifold.size, given)
            rx = self.manifold.pull(states[:, None], rx)
        else:
            assert callable(self.residual.jacobian)
            given = self.residual.jacobian(times, states, controls)
            rx, ru = self._shaped(len(times), self.manifold.nx, given)
        made = np.concatenate([rx, ru], axis=2)
        if not self._is_checked:
            self._check(made, times, states, controls)
            self._is_checked = True
        return made

    def _shaped(self, n: int, width: int, given: object) -> tuple[Array, Array]:
        what = f'Jacobian of term "{self.name}"'
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ArgumentTypeError(
                f"{what} must be a pair: the derivatives by the state, (n, k, nx), and by the "
                f"controls, (n, k, nu), got {type(given).__name__}"
            )
        return (
            shaped(f"state {what}", given[0], (n, self.residual.dim, width)),
            shaped(f"control {what}", given[1], (n, self.residual.dim, self.nu)),
        )

    def _check(self, given: Array, times: Array, states: Array, controls: Array) -> None:
        """Raise an error if the Jacobian is wrong at one of a few knots."""
        some = np.unique(np.linspace(0, len(times) - 1, CHECKED_KNOTS).astype(int))
        expected, error = self._differences(times[some], states[some], controls[some])
        with np.errstate(invalid="ignore"):
            off = abs(given[some] - expected)
            allowed = TOLERANCE * np.maximum(abs(expected), abs(given[some])) + MARGIN * error
            wrong = np.isfinite(error) & (off > allowed)
        if not wrong.any():
            return
        knot, row, column = np.unravel_index(np.argmax(np.where(wrong, off, -1)), off.shape)
        raise WrongJacobianError(
            f'the Jacobian of term "{self.name}" is wrong at {times[some[knot]]:g} s: row {row}, '
            f"column {self._column(int(column))}: given {given[some[knot], row, column]:.6g}, "
            f"expected {expected[knot, row, column]:.6g}, the derivative of the value. "
            f"{int(wrong.sum())} of {wrong.size} entries are wrong"
        )

    def _column(self, column: int) -> str:
        """Return the number of a column in its matrix, and what it means."""
        nx = self.manifold.nx
        if column >= nx:
            return f"{column - nx} of the controls"
        nv = self.manifold.nv
        if column >= 2 * nv:
            return f"{column} of the state (activation {column - 2 * nv})"
        kind = "position" if column < nv else "velocity"
        return f"{column} of the state ({kind} of dof {column % nv})"

    def _differences(self, times: Array, states: Array, controls: Array) -> tuple[Array, Array]:
        """Return extrapolated central differences `(n, k, nx + nu)` and their estimated errors."""
        a, b, c = (
            self._central(times, states, controls, step) for step in (STEP, STEP / 2, STEP / 4)
        )
        with np.errstate(invalid="ignore"):
            once, twice = (4 * b - a) / 3, (4 * c - b) / 3
            made = (16 * twice - once) / 15
            size = abs(self.value(times, states, controls))[:, :, None]
            rounding = 16 * np.finfo(float).eps * np.maximum(size, abs(made)) / STEP
            return made, abs(made - twice) + rounding

    def _central(self, times: Array, states: Array, controls: Array, step: float) -> Array:
        n, nx, nz = len(times), self.manifold.nx, self.manifold.nx + self.nu
        moves = step * np.concatenate([np.eye(nz), -np.eye(nz)])
        moved = self.manifold.move(states[:, None], np.broadcast_to(moves[:, :nx], (n, 2 * nz, nx)))
        driven = controls[:, None] + moves[:, nx:]
        values = self.value(
            np.repeat(times, 2 * nz),
            np.ascontiguousarray(moved.reshape(2 * n * nz, -1)),
            np.ascontiguousarray(driven.reshape(2 * n * nz, -1)),
        ).reshape(n, 2, nz, -1)
        with np.errstate(invalid="ignore"):
            slopes: Array = (values[:, 0] - values[:, 1]).swapaxes(1, 2) / (2 * step)
        return slopes
