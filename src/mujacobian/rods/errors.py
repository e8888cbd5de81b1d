"""Exceptions of the rods engine."""

from __future__ import annotations

from mujacobian.errors import MujacobianError


class ConvergenceError(MujacobianError):
    """Newton's method did not find a minimum of the incremental potential of a step.

    Attributes:
      step: index of the step.
      residual: largest entry of the remaining gradient, N or N m.
    """

    def __init__(self, message: str, step: int, residual: float) -> None:
        super().__init__(message, step, residual)  # pickle passes these arguments to __init__
        self.step = step
        self.residual = residual

    def __str__(self) -> str:
        return str(self.args[0])
