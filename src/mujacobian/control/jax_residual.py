"""User-defined residuals as JAX functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from mujacobian._arguments import Array
from mujacobian.jax import as_array

Functions = tuple[Callable[[Array, Array, Array], Array], Callable[[Array, Array, Array], Any]]


def differentiable(value: Callable[..., Any]) -> Functions:
    """Return the value and its derivatives by states and controls as functions of NumPy arrays."""

    def of_one(time: jax.Array, state: jax.Array, control: jax.Array) -> jax.Array:
        rows: jax.Array = value(time[None], state[None], control[None])[0]
        return rows

    every = jax.jit(value)
    slopes = jax.jit(jax.vmap(jax.jacrev(of_one, argnums=(1, 2))))

    def evaluate(*arrays: Array) -> Array:
        return np.asarray(every(*_arrays(arrays)))

    def differentiate(*arrays: Array) -> Any:  # noqa: ANN401
        return tuple(np.asarray(slope) for slope in slopes(*_arrays(arrays)))

    return evaluate, differentiate


def _arrays(arrays: tuple[Array, ...]) -> list[jax.Array]:
    names = ("times", "states", "controls")
    return [as_array(name, array) for name, array in zip(names, arrays, strict=True)]
