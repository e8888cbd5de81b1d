"""Warp arrays on the host, in double precision, with one row per world."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from mujacobian._arguments import Array


def by_world(array: wp.array, worlds: int) -> Array:
    """Return a copy in double precision, with one row per world."""
    return _rows(_values(array), worlds)


def write(array: wp.array, values: NDArray[np.floating]) -> None:
    """Overwrite an array."""
    kept = _values(array)
    kept[...] = values.reshape(kept.shape)
    _put(array, kept)


def add_gradient(array: wp.array, gradient: Array) -> None:
    """Add to the gradient of an array, if it has one."""
    if array.requires_grad:
        values = _values(array.grad)
        values += gradient.reshape(values.shape)
        _put(array.grad, values)


def take_gradient(array: wp.array, worlds: int, written: NDArray[np.bool_] | None = None) -> Array:
    """Return the gradient of an array that a step has overwritten, and set it to zero.

    Warp does the same where it overwrites an array, unless the array has `retain_grad`.
    written: elements that the step has overwritten; by default all.
    """
    if not array.requires_grad:
        return np.zeros_like(by_world(array, worlds))
    values = _values(array.grad)
    gradient = _rows(values, worlds)
    if written is not None:
        gradient *= written
    if not array.retain_grad:
        values -= gradient.reshape(values.shape)
        _put(array.grad, values)
    return gradient


def _rows(values: NDArray[np.float32], worlds: int) -> Array:
    rows: Array = values.astype(np.float64)
    return rows.reshape(worlds, len(rows) // worlds, *rows.shape[1:])


def _values(array: wp.array) -> NDArray[np.float32]:
    """Return a view, or a copy if the array is on another device."""
    return np.asarray(array) if array.device.is_cpu else array.numpy()


def _put(array: wp.array, values: NDArray[np.float32]) -> None:
    """Copy an edited result of `_values` back to the device."""
    if not array.device.is_cpu:
        array.assign(values)
