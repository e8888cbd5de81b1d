"""Tensors of double precision, as inputs and results of the functions for PyTorch."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, refuse_single_precision
from mujacobian.errors import ArgumentError

# the inputs of a rollout, and the number of their axes without a batch
RANKS = {"state": 1, "controls": 2, "forces": 2, "wrenches": 3, "mocap": 3, "values": 1}

Tensors = torch.Tensor | ArrayLike


def repeated(name: str, values: Tensors, rank: int, times: int) -> torch.Tensor:
    """Return an input of one step as that of several steps, with an axis before the last `rank`."""
    tensor = as_tensor(name, values)
    if tensor.ndim not in (rank, rank + 1):
        raise ArgumentError(f"{name} must have {rank} or {rank + 1} axes, got {tensor.ndim}")
    longer = tensor.unsqueeze(-rank - 1)
    if times == 1:
        return longer
    return longer.expand(*longer.shape[: -rank - 1], times, *longer.shape[-rank:])


def spread(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the inputs in the order of `RANKS`, with the batch axis that one of them has."""
    leads = [x.shape[:1] for name, x in tensors.items() if x.ndim > RANKS[name]]
    given = {name: tensors[name] for name in RANKS if name in tensors}
    if not leads or len(leads) == len(tensors):
        return given
    return {
        name: x if x.ndim > RANKS[name] else x.expand(*leads[0], *x.shape)
        for name, x in given.items()
    }


def tensors_of(arrays: Iterable[Array]) -> tuple[torch.Tensor, ...]:
    """Return tensors with the memory of these arrays."""
    return tuple(map(torch.from_numpy, arrays))


def as_tensor(name: str, values: Tensors) -> torch.Tensor:
    """Return `values` as a tensor that the core can read."""
    if isinstance(values, torch.Tensor):
        if values.dtype == torch.float64 and values.device.type == "cpu":
            return values
        refuse_single_precision(name, values)
    tensor = torch.as_tensor(values, dtype=torch.float64)
    if tensor.device.type != "cpu":
        raise ArgumentError(f"{name} must be on the CPU, got {tensor.device}: use {name}.cpu()")
    return tensor
