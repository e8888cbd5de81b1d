"""Exceptions of the rods engine."""

from __future__ import annotations

from mujacobian.errors import MujacobianError


class ConvergenceError(MujacobianError):
    """Newton's method did not find a minimum of the incremental potential of a step.

    Attributes:
      step: index of the step.
      residual: largest entry of the remaining gradient, N or N m.
      unknown: node, edge or body with the largest entry of the last Newton step, such as "node 3 of
        rod 0"; empty if this step is not finite.
      contact: index in `World.contacts` of the deepest contact there, and of its point or segment;
        None if nothing touches.
    """

    def __init__(
        self,
        message: str,
        step: int,
        residual: float,
        unknown: str = "",
        contact: tuple[int, int] | None = None,
    ) -> None:
        # pickle passes these arguments to __init__
        super().__init__(message, step, residual, unknown, contact)
        self.step = step
        self.residual = residual
        self.unknown = unknown
        self.contact = contact

    def __str__(self) -> str:
        return str(self.args[0])
