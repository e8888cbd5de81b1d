"""User-defined residuals as PyTorch functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from mujacobian._arguments import Array
from mujacobian._torch_tensors import as_tensor

Functions = tuple[Callable[[Array, Array, Array], Array], Callable[[Array, Array, Array], Any]]


def differentiable(value: Callable[..., Any]) -> Functions:
    """Return the value and its derivatives by states and controls as functions of NumPy arrays."""

    def of_one(time: torch.Tensor, state: torch.Tensor, control: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = value(time[None], state[None], control[None])[0]
        return rows

    slopes = torch.func.vmap(torch.func.jacrev(of_one, argnums=(1, 2)))

    def evaluate(*arrays: Array) -> Array:
        rows: Array = value(*_tensors(arrays)).numpy(force=True)
        return rows

    def differentiate(*arrays: Array) -> Any:  # noqa: ANN401
        return tuple(slope.numpy(force=True) for slope in slopes(*_tensors(arrays)))

    return evaluate, differentiate


def _tensors(arrays: tuple[Array, ...]) -> list[torch.Tensor]:
    names = ("times", "states", "controls")
    return [as_tensor(name, array.copy()) for name, array in zip(names, arrays, strict=True)]
