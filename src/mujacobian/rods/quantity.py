"""Numbers with a sign, or an error that names them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers
from mujacobian.errors import ArgumentError


def positive(name: str, value: float) -> float:
    """`value` as a number above zero."""
    number = float(spread(name, value, ()))
    if number <= 0:
        raise ArgumentError(f"{name} must be positive, got {value}")
    return number


def nonnegative(name: str, value: float) -> float:
    """`value` as a number of at least zero."""
    return float(nonnegatives(name, value, ()))


def nonnegatives(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """`values`, given for all or each, as an array of this shape of numbers of at least zero."""
    array = spread(name, values, shape)
    if (array < 0).any():
        raise ArgumentError(f"{name} must not be negative, got {float(array.min())}")
    return array


def spread(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """`values` as a new array of this shape; fewer axes are repeated."""
    array = numbers(name, values)
    try:
        return np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise ArgumentError(f"{name} must have shape {shape}, got {array.shape}") from None
