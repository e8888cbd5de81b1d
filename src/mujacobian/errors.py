"""Errors and warnings. Those that programs catch most are names of `mujacobian` itself."""

from __future__ import annotations

from dataclasses import dataclass

# The other classes of this module have the path `mujacobian.NAME`.
__all__ = [
    "ArgumentError",
    "ArgumentIndexError",
    "ArgumentTypeError",
    "DifferencedWarning",
    "DomainError",
    "FailedItemsError",
    "MissingPackageError",
    "NotConvergedWarning",
    "NotFiniteError",
    "PrecisionError",
    "UntestedVersionWarning",
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
    """An element that is active in this state has no exact derivative.

    `element` is its type and its name in the model, `reason` says which feature is not covered.
    `sensor` is the index of a sensor that has no derivative while the step itself has one, else
    None.
    """

    def __init__(self, element: str, reason: str, sensor: int | None = None) -> None:
        super().__init__(element, reason)  # pickle passes these arguments to __init__
        self.element = element
        self.reason = reason
        self.sensor = sensor

    def __str__(self) -> str:
        return f"{self.element} has no exact derivative here: {self.reason}"


class FailedItemsError(MujacobianError):
    """Some of the items that `workers=` distributed have failed, and all others have ended.

    Attributes:
      noun: the kind of an item, such as "rollout".
      errors: the error of each failed item, by its index.
      results: the results of all items, in their order; None for failed items.
    """

    def __init__(self, noun: str, errors: dict[int, Exception], results: list[object]) -> None:
        super().__init__(noun, errors, results)
        self.noun, self.errors, self.results = noun, errors, results

    def __str__(self) -> str:
        texts = [f"{self.noun} {k}: {error}" for k, error in self.errors.items()]
        return f"{len(texts)} of {len(self.results)} {self.noun}s failed: {'; '.join(texts)}"


class SelfCheckError(MujacobianError):
    """A result differs from the reference, because of an error in this package or the reference.

    `block`, `row` and `column` are the place of the worst entry. See docs/checking.md.
    """

    def __init__(self, message: str, block: str, row: int, column: int) -> None:
        super().__init__(message, block, row, column)
        self.block = block
        self.row = row
        self.column = column

    def __str__(self) -> str:
        return str(self.args[0])


class UntestedVersionWarning(UserWarning):
    """The installed MuJoCo is newer than any release that mujacobian is tested with."""


class NotConvergedWarning(UserWarning):
    """MuJoCo stopped an iteration early, so that its step differs from the differentiated one.

    `value` is the distance from the solution, and `limit` is the distance that causes no warning.
    """

    def __init__(self, message: str, value: float, limit: float) -> None:
        super().__init__(message, value, limit)
        self.value = value
        self.limit = limit

    def __str__(self) -> str:
        return str(self.args[0])


class SolverNotConvergedWarning(NotConvergedWarning):
    """The constraint solver stopped before it reached the optimum, which is differentiated.

    `value` is the distance of `qacc` from the optimum, relative to the largest acceleration of the
    bodies that constraints couple. See `mujacobian.converged`.
    """


class ColliderNotConvergedWarning(NotConvergedWarning):
    """The convex collider stopped before it reached the contact that is differentiated.

    `value` is the distance between MuJoCo's contact and that of a converged collider
    (`contact_error` in `mujacobian.diagnose`), or the relative distance between the accelerations
    with both contacts (`collider_error`). It is infinite if the numbers of contacts differ. If both
    are small, it is the relative error of slopes of `mj_step` over 1e-5 m or rad.
    """


class DifferencedWarning(UserWarning):
    """A gradient of `mujacobian.torch` or `mujacobian.jax` contains finite differences.

    They were requested with fallback="fd". `differenced` contains one `Differenced` per element and
    step.
    """

    def __init__(self, message: str, differenced: tuple[object, ...]) -> None:
        super().__init__(message, differenced)
        self.differenced = differenced

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Unsupported:
    """An element of a model without an exact derivative, and the reason: see `support`."""

    element: str
    reason: str
