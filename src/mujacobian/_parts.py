"""Parts of a batched trajectory: single rollouts, which workers differentiate."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._inputs import Inputs
from mujacobian._parameters import Parameters

if TYPE_CHECKING:
    from mujacobian._trajectory import Trajectory

Model = tuple[mujoco.MjModel, tuple[Parameters, Array] | None]  # and the parameters with values
Argument = Array | tuple[Array | None, ...] | None


@dataclass(frozen=True)
class Part:
    """One rollout of a batch without its model, and the call of one of its methods."""

    kind: type[Trajectory]
    states: Array
    sensordata: Array
    inputs: Inputs
    kept: Array
    every: int
    fallback: str | None
    method: str
    arguments: tuple[Argument, ...]
    options: dict[str, object]


def call_by_workers(
    trajectory: Trajectory, method: str, arguments: tuple[Argument, ...], **options: object
) -> object:
    """Return the result of a method of a batched trajectory, computed by its workers.

    The arguments are arrays with a leading axis for the batch, or tuples of them.
    """
    assert trajectory.distribution is not None
    parts = [
        Part(
            type(trajectory),
            trajectory.states[k],
            trajectory.sensordata[k],
            trajectory.inputs.one(k),
            trajectory.kept[k : k + 1],
            trajectory.every,
            trajectory.fallback,
            method,
            tuple(_cut(argument, k) for argument in arguments),
            options,
        )
        for k in range(trajectory.batch)
    ]
    return _stack(trajectory.distribution.run(_call, parts, "rollout", trajectory.model))


def _call(content: Model, part: Part) -> object:
    """Return the result of the method for one rollout; runs in a worker."""
    model, params = content
    trajectory = part.kind(
        model,
        part.states,
        part.sensordata,
        part.inputs,
        part.kept,
        part.every,
        params,
        1,
        part.fallback,
    )
    return getattr(trajectory, part.method)(*part.arguments, **part.options)


def _cut(argument: Argument, k: int) -> Argument:
    """Return the part of an argument that belongs to rollout k."""
    if argument is None:
        return None
    if isinstance(argument, tuple):
        return tuple(None if each is None else each[k] for each in argument)
    row: Array = argument[k]
    return row


def _stack(results: list[Any]) -> object:
    """Return results of single rollouts as the result of the batch."""
    first = results[0]
    if first is None:
        return None
    if isinstance(first, tuple):
        return tuple(_stack(list(column)) for column in zip(*results, strict=True))
    if is_dataclass(first) and not isinstance(first, type):
        made: dict[str, Any] = {
            field.name: _stack([getattr(each, field.name) for each in results])
            for field in fields(first)
            if field.name != "differenced"
        }
        reports = [
            replace(report, index=(k, *report.index))
            for k, each in enumerate(results)
            for report in each.differenced
        ]
        return replace(first, **made, differenced=tuple(reports))
    return np.stack(results)
