"""Parts of descriptions: of the right kind, and never changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mujacobian.errors import ArgumentIndexError, ArgumentTypeError


def freeze(description: object) -> None:
    """Replace the description's arrays by copies that cannot be written to."""
    for name, value in vars(description).items():
        if isinstance(value, np.ndarray):
            kept = value.copy()
            kept.flags.writeable = False
            object.__setattr__(description, name, kept)


def instance(name: str, value: Any, *kinds: type) -> Any:  # noqa: ANN401
    """`value`, which must be of one of these kinds."""
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise ArgumentTypeError(f"{name} must be of type {wanted}, got {type(value).__name__}")
    return value


def instances(name: str, values: Iterable[object], *kinds: type) -> tuple[Any, ...]:
    """`values`, each of which must be of one of these kinds."""
    if not isinstance(values, Iterable):
        raise ArgumentTypeError(f"{name} must be a sequence, got {type(values).__name__}")
    return tuple(instance(name, each, *kinds) for each in values)


def flag(name: str, value: object) -> bool:
    """`value` as True or False."""
    return bool(instance(name, value, bool, np.bool_))


def index(name: str, i: object, count: int) -> int:
    """A number below `count`; negative ones count from the end."""
    number = int(instance(name, i, int, np.integer))
    if isinstance(i, bool) or not -count <= number < count:
        raise ArgumentIndexError(f"{name} must be below {count}, got {i}")
    return number + count if number < 0 else number
