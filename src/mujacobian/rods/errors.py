"""What goes wrong, by name."""

from __future__ import annotations

from mujacobian.errors import MujacobianError


class ConvergenceError(MujacobianError):
    """A step whose potential has no minimum that Newton's method found.

    `step` is its number, `residual` the largest entry of the gradient left, N or N m.
    """

    def __init__(self, message: str, step: int, residual: float) -> None:
        super().__init__(message, step, residual)  # what pickle gives back to __init__
        self.step = step
        self.residual = residual

    def __str__(self) -> str:
        return str(self.args[0])
