"""Errors and warnings. Those that programs catch most are names of `mujacobian` itself."""

from __future__ import annotations

from dataclasses import dataclass

# The other classes of this module have the path `mujacobian.NAME`.
__all__ = [
    "ArgumentError",
    "ArgumentIndexError",
    "ArgumentTypeError",
    "DomainError",
    "MissingPackageError",
    "NotConvergedWarning",
    "NotFiniteError",
    "PrecisionError",
    "UnusableError",
]


class MujacobianError(Exception):
    """Base class of the errors of this package."""


class ArgumentError(MujacobianError, ValueError):
    """An argument has a value that is not valid; the message names it."""


class ArgumentTypeError(MujacobianError, TypeError):
    """An argument is of a type that is not valid; the message names it."""


class ArgumentIndexError(MujacobianError, IndexError):
    """An index is out of range; the message names it."""


class DomainError(MujacobianError, ValueError):
    """The state is not one that MuJoCo can step, or the step has no derivative there."""


class NotFiniteError(MujacobianError, ArithmeticError):
    """The step from a state is not finite."""


class PrecisionError(MujacobianError, RuntimeError):
    """A library is set to work in less than double precision."""


class MissingPackageError(MujacobianError, ImportError):
    """An optional package is not installed; the message says how to install it."""


class UnusableError(MujacobianError, ImportError):
    """This machine or the installed MuJoCo cannot be used; the message says why."""


class UnsupportedFeatureError(MujacobianError):
    """Something that is active in this state has no exact derivative here.

    `element` names it as the model does, `reason` says what about it is not covered.
    """

    def __init__(self, element: str, reason: str) -> None:
        super().__init__(element, reason)  # what pickle gives back to __init__
        self.element = element
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.element} has no exact derivative here: {self.reason}"


class SelfCheckError(MujacobianError):
    """A result differs from the reference: an error of this package, or of the reference.

    `block`, `row` and `column` are those of the worst entry. See `mujacobian.selfcheck`.
    """

    def __init__(self, message: str, block: str, row: int, column: int) -> None:
        super().__init__(message, block, row, column)
        self.block = block
        self.row = row
        self.column = column

    def __str__(self) -> str:
        return str(self.args[0])


class NotConvergedWarning(UserWarning):
    """MuJoCo stopped an iteration early, so the step is not the one that is differentiated.

    `value` says how far from the solution it stopped, `limit` up to where there is no warning.
    """

    def __init__(self, message: str, value: float, limit: float) -> None:
        super().__init__(message, value, limit)
        self.value = value
        self.limit = limit

    def __str__(self) -> str:
        return str(self.args[0])


class SolverNotConvergedWarning(NotConvergedWarning):
    """The constraint solver stopped short of the optimum where the step is differentiated.

    `value` is the distance of `qacc` from the optimum, relative to the largest acceleration of the
    bodies that constraints couple. See `mujacobian.converged`.
    """


class ColliderNotConvergedWarning(NotConvergedWarning):
    """The convex collider stopped short of the contact where the step is differentiated.

    `value` is the distance between MuJoCo's contact and that of a converged collider, or the
    relative distance between the accelerations with either: `contact_error` and `collider_error` in
    `mujacobian.diagnose`. It is infinite where the numbers of contacts differ.
    """


@dataclass(frozen=True)
class Unsupported:
    """An element of a model that `support` found not to be covered, and why."""

    element: str
    reason: str
