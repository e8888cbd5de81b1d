"""Checks of the sign and shape of quantities, with errors that contain their names."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers
from mujacobian.errors import ArgumentError


def positive(name: str, value: float) -> float:
    """Return `value` as a number above zero."""
    number = float(spread(name, value, ()))
    if number <= 0:
        raise ArgumentError(f"{name} must be positive, got {value}")
    return number


def nonnegative(name: str, value: float) -> float:
    """Return `value` as a number that is not negative."""
    return float(nonnegatives(name, value, ()))


def nonnegatives(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return `values`, broadcast to this shape, as numbers that are not negative."""
    array = spread(name, values, shape)
    if (array < 0).any():
        raise ArgumentError(f"{name} must not be negative, got {float(array.min())}")
    return array


def spread(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return a new array of this shape, to which `values` are broadcast."""
    array = numbers(name, values)
    try:
        return np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise ArgumentError(f"{name} must have shape {shape}, got {array.shape}") from None
