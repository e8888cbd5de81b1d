"""Type checks and immutability for the dataclasses that describe a world."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from mujacobian.errors import ArgumentIndexError, ArgumentTypeError

Function = TypeVar("Function", bound=Callable[..., Any])


def accept_former(old: str, new: str) -> Callable[[Function], Function]:
    """Return a decorator that accepts a keyword by its former name, with a warning."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:  # noqa: ANN401
            if old in keywords:
                warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=2)
                keywords[new] = keywords.pop(old)
            return function(*args, **keywords)

        return call  # type: ignore[return-value]

    return decorate


class Description:
    """Base class of descriptions: their arrays stay read-only in copies and pickles."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        freeze(self)


def freeze(description: object) -> None:
    """Replace the arrays of a description by read-only copies."""
    for name, value in vars(description).items():
        if isinstance(value, np.ndarray):
            kept = value.copy()
            kept.flags.writeable = False
            object.__setattr__(description, name, kept)


def instance(name: str, value: Any, *kinds: type) -> Any:  # noqa: ANN401
    """Return `value`, or raise if it is not an instance of one of these classes."""
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise ArgumentTypeError(f"{name} must be of type {wanted}, got {type(value).__name__}")
    return value


def instances(name: str, values: Iterable[object], *kinds: type) -> tuple[Any, ...]:
    """Return `values` as a tuple, or raise if one is not an instance of these classes."""
    if not isinstance(values, Iterable):
        raise ArgumentTypeError(f"{name} must be a sequence, got {type(values).__name__}")
    return tuple(instance(name, each, *kinds) for each in values)


def flag(name: str, value: object) -> bool:
    """Return `value`, which must be a Boolean."""
    return bool(instance(name, value, bool, np.bool_))


def index(name: str, i: object, count: int) -> int:
    """Return an index below `count`; a negative index counts from the end."""
    number = int(instance(name, i, int, np.integer))
    if isinstance(i, bool) or not -count <= number < count:
        raise ArgumentIndexError(f"{name} must be below {count}, got {i}")
    return number + count if number < 0 else number
