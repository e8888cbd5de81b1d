"""Arguments as arrays of numbers, or an error that names them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import mujoco
import numpy as np
from mujoco.introspect import structs
from numpy.typing import ArrayLike, NDArray

from mujacobian.errors import ArgumentError, ArgumentTypeError

Array = NDArray[np.float64]

# Sizes of a model that sizes of its data follow from, as the installed MuJoCo declares them.
SIZES = sorted(
    {
        extent
        for field in structs.STRUCTS["mjData"].fields
        for extent in getattr(field, "array_extent", None) or ()
        if hasattr(mujoco.MjModel, str(extent))
    }
)


def require_model(model: object) -> None:
    """Raise unless this is a model."""
    if not isinstance(model, mujoco.MjModel):
        raise ArgumentTypeError(f"model must be a mujoco.MjModel, got {type(model).__name__}")


def require_data(name: str, model: mujoco.MjModel, data: object) -> None:
    """Raise unless this is a data of the model."""
    if not isinstance(data, mujoco.MjData):
        raise ArgumentTypeError(f"{name} must be a mujoco.MjData, got {type(data).__name__}")
    if data.model is model:
        return
    where = f"model and {name} do not belong together: "
    if data.signature != model.signature:
        raise ArgumentError(f"{where}{name} was made from another model")
    # the signature covers the tree and the numbers of elements, but no sizes of arrays
    for size in SIZES:
        have, want = getattr(data.model, size), getattr(model, size)
        if have != want:
            raise ArgumentError(
                f"{where}{name} was made from a model with {size} {have}, the given one has {want}"
            )


def numbers(name: str, values: ArrayLike, *, finite: bool = True) -> Array:
    """`values` as a contiguous float64 array of numbers, finite ones unless said otherwise."""
    refuse_single_precision(name, values)
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "fiu":
            raise ArgumentTypeError(f"its elements are of type {given.dtype}")
        array: Array = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentTypeError(f"{name} must be an array of numbers: {error}") from None
    array = array.reshape(given.shape)  # ascontiguousarray makes scalars arrays
    bad = np.argwhere(~np.isfinite(array))
    if finite and len(bad):
        index = tuple(int(i) for i in bad[0])
        raise ArgumentError(f"{name} must be finite, but {name}{list(index)} is {array[index]}")
    return array


def refuse_single_precision(name: str, values: object) -> None:
    """Raise for torch tensors of less than double precision: their gradients would be, too."""
    dtype = str(getattr(values, "dtype", ""))
    if dtype.startswith("torch.") and dtype != "torch.float64":
        raise ArgumentTypeError(
            f"{name} must have double precision, got {dtype}: use {name}.double()"
        )


def shaped(name: str, values: ArrayLike, shape: Sequence[int], *, finite: bool = True) -> Array:
    """`values` as an array of numbers of this shape, finite ones unless said otherwise."""
    array = numbers(name, values, finite=finite)
    if array.shape != tuple(shape):
        raise ArgumentError(f"{name} must have shape {tuple(shape)}, got {array.shape}")
    return array


def batched(name: str, values: ArrayLike, shape: Sequence[int | str]) -> Array:
    """`values` as numbers of this shape, or with a batch in front of it; letters are free sizes."""
    array = numbers(name, values)
    require_batch(name, array.shape, shape)
    return array


def require_batch(name: str, given: Sequence[int], shape: Sequence[int | str]) -> None:
    """Raise unless `given` is this shape, or has a batch in front of it; letters are free sizes."""
    fits = len(given) - len(shape) in (0, 1) and all(
        isinstance(want, str) or have == want
        for have, want in zip(given[-len(shape) :], shape, strict=True)
    )
    if not fits:
        text = ", ".join(map(str, shape))
        one = f"({text},)" if len(shape) == 1 else f"({text})"
        raise ArgumentError(f"{name} must have shape {one} or (n, {text}), got {tuple(given)}")


def count(name: str, value: int, most: int = 2**31 - 1) -> int:
    """`value` as a whole number of at least 1 and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ArgumentError(f"{name} must be an integer of at least 1, got {value!r}")
    if value > most:
        raise ArgumentError(f"{name} must be at most {most}, got {value}")
    return int(value)


def suggestion(name: str, known: Sequence[str]) -> str:
    """A question that names what is similar to an unknown name, or else what there is."""
    close = difflib.get_close_matches(name, known, 5, 0.4) or known[:10]
    return f"did you mean {', '.join(close)}?" if close else "there are no names to choose from"
