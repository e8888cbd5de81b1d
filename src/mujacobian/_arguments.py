"""Checks of arguments: arrays of numbers, or an error that names the argument."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

import mujoco
import numpy as np
from mujoco.introspect import structs
from numpy.typing import ArrayLike, NDArray

from mujacobian.errors import ArgumentError, ArgumentTypeError

Array = NDArray[np.float64]

# Sizes of a model that determine sizes of its data, as the installed MuJoCo declares them.
SIZES = sorted(
    {
        extent
        for field in structs.STRUCTS["mjData"].fields
        for extent in getattr(field, "array_extent", None) or ()
        if hasattr(mujoco.MjModel, str(extent))
    }
)


def require_model(model: object) -> None:
    """Raise if this is not a model."""
    if not isinstance(model, mujoco.MjModel):
        raise ArgumentTypeError(f"model must be a mujoco.MjModel, got {type(model).__name__}")


def require_data(name: str, model: mujoco.MjModel, data: object) -> None:
    """Raise if this is not an `MjData` of the model."""
    if not isinstance(data, mujoco.MjData):
        raise ArgumentTypeError(f"{name} must be a mujoco.MjData, got {type(data).__name__}")
    if data.model is model:
        return
    where = f"model and {name} do not belong together: "
    if data.signature != model.signature:
        raise ArgumentError(f"{where}{name} was made from another model")
    # the signature covers the tree and the numbers of elements, but not the sizes of arrays
    for size in SIZES:
        have, want = getattr(data.model, size), getattr(model, size)
        if have != want:
            raise ArgumentError(
                f"{where}{name} was made from a model with {size} {have}, the given one has {want}"
            )


def numbers(name: str, values: ArrayLike, *, finite: bool = True) -> Array:
    """Return `values` as a contiguous float64 array; raise if it has other values than numbers."""
    refuse_single_precision(name, values)
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "fiu":
            raise ArgumentTypeError(f"its elements are of type {given.dtype}")
        array: Array = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentTypeError(f"{name} must be an array of numbers: {error}") from None
    array = array.reshape(given.shape)  # ascontiguousarray adds an axis to scalars
    bad = np.argwhere(~np.isfinite(array))
    if finite and len(bad):
        index = tuple(int(i) for i in bad[0])
        raise ArgumentError(f"{name} must be finite, but {name}{list(index)} is {array[index]}")
    return array


def refuse_single_precision(name: str, values: object) -> None:
    """Raise for torch tensors with less than double precision, as their gradients would have it."""
    dtype = str(getattr(values, "dtype", ""))
    if dtype.startswith("torch.") and dtype != "torch.float64":
        raise ArgumentTypeError(
            f"{name} must have double precision, got {dtype}: use {name}.double()"
        )


def number(name: str, value: float) -> float:
    """Return `value` as one finite number."""
    array = numbers(name, value)
    if array.ndim:
        raise ArgumentError(f"{name} must be one number, got an array of shape {array.shape}")
    return float(array)


def shaped(name: str, values: ArrayLike, shape: Sequence[int], *, finite: bool = True) -> Array:
    """Return `values` as an array of numbers of this shape."""
    array = numbers(name, values, finite=finite)
    if array.shape != tuple(shape):
        raise ArgumentError(f"{name} must have shape {tuple(shape)}, got {array.shape}")
    return array


def batched(name: str, values: ArrayLike, shape: Sequence[int | str]) -> Array:
    """Return `values` as numbers of this shape, with or without a leading batch axis.

    Letters in the shape stand for any size.
    """
    array = numbers(name, values)
    require_batch(name, array.shape, shape)
    return array


def require_batch(name: str, given: Sequence[int], shape: Sequence[int | str]) -> None:
    """Raise if `given` is not this shape, with or without a leading batch axis.

    Letters in the shape stand for any size.
    """
    fits = len(given) - len(shape) in (0, 1) and all(
        isinstance(want, str) or have == want
        for have, want in zip(given[-len(shape) :], shape, strict=True)
    )
    if not fits:
        text = ", ".join(map(str, shape))
        one = f"({text},)" if len(shape) == 1 else f"({text})"
        raise ArgumentError(f"{name} must have shape {one} or (n, {text}), got {tuple(given)}")


def count(name: str, value: int, most: int = 2**31 - 1) -> int:
    """Return `value` as an integer from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ArgumentError(f"{name} must be an integer of at least 1, got {value!r}")
    if value > most:
        raise ArgumentError(f"{name} must be at most {most}, got {value}")
    return int(value)


def require_one_of(name: str, value: str, known: Collection[str]) -> None:
    """Raise if `value` is not one of the known names."""
    if value not in known:
        raise ArgumentError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def suggestion(name: str, known: Sequence[str]) -> str:
    """Return a question with known names: those similar to an unknown name, or the first ones."""
    close = difflib.get_close_matches(name, known, 5, 0.4) or known[:10]
    return f"did you mean {', '.join(close)}?" if close else "there are no names to choose from"
