"""Rollouts as operators of PyTorch, which `torch.compile` puts into its graphs.

An operator takes numbers and tensors only, so that the token of a handle stands for the model and
the options. A handle does not keep the model alive: the caller of a compiled function has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import torch

from mujacobian._handle import handle, of_token
from mujacobian._host import flattened
from mujacobian._parameters import Parameters
from mujacobian._rollout import INTEGRATION
from mujacobian.errors import ArgumentTypeError


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def token(
    model: mujoco.MjModel,
    _model_id: int,
    parameters: Parameters | None,
    _parameters_id: int,
    checkpoint: int | None,
    threads: int | None,
    fallback: str | None,
) -> int:
    """Return the token of a model and options, a constant of a compiled graph.

    The identities of the objects are arguments because `torch.compile` guards them: it compiles
    again if the function is called with another model.
    """
    return handle(model, parameters, checkpoint, threads, fallback).token


def rollout(
    token: int, data: mujoco.MjData | None, inputs: dict[str, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return states and sensordata by an operator of the graph that is being compiled."""
    if data is not None:
        raise ArgumentTypeError("under torch.compile, state must be a tensor, not an MjData")
    made = record(token, ",".join(inputs), list(inputs.values()))
    return made[0], made[1]


def _arrays(names: str, tensors: Sequence[torch.Tensor]) -> dict[str, Any]:
    return {
        name: tensor.detach().numpy()
        for name, tensor in zip(names.split(","), tensors, strict=True)
    }


@torch.library.custom_op("mujacobian::record", mutates_args=())
def record(
    token: int, names: str, inputs: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return states and sensordata, then a copy of the states and the recorded states."""
    host = of_token(token).host()
    host.require_shapes(dict(zip(names.split(","), inputs, strict=True)), nested=True)
    arrays = _arrays(names, inputs)
    made = host.attempt_simulation(arrays) or flattened(host.simulate)(arrays)
    states, sensordata, kept = map(torch.from_numpy, made)
    return states, sensordata, states.clone(), kept


@record.register_fake
def _fake_record(token: int, names: str, inputs: Sequence[torch.Tensor]) -> Any:  # noqa: ANN401
    host = of_token(token).host()
    given = dict(zip(names.split(","), inputs, strict=True))
    host.require_shapes(given, nested=True)
    model, controls = host.model, given["controls"]
    *lead, T, _ = controls.shape
    states = *lead, T + 1, model.nq + model.nv + model.na
    rows = *lead, -(-T // host.every), mujoco.mj_stateSize(model, INTEGRATION)
    shapes = states, (*lead, T, model.nsensordata), states, rows
    return tuple(controls.new_empty(shape) for shape in shapes)


@torch.library.custom_op("mujacobian::pull_back", mutates_args=())
def pull_back(
    token: int,
    names: str,
    wanted: str,
    inputs: Sequence[torch.Tensor],
    states: torch.Tensor,
    kept: torch.Tensor,
    d_states: torch.Tensor,
    d_sensors: torch.Tensor,
) -> list[torch.Tensor]:
    """Return the gradients with respect to the wanted inputs."""
    host = of_token(token).host()
    chosen = wanted.split(",")

    def work(given: dict[str, Any], *arrays: Any) -> Any:  # noqa: ANN401
        return host.pull_back(given, *arrays, wanted=chosen)

    given = _arrays(names, inputs)
    others = [x.detach().numpy() for x in (states, kept, d_states, d_sensors)]
    made = host.attempt_gradient(given, others[:2], others[2:], chosen)
    if made is None:
        made = flattened(work)(given, *others)
    return [torch.from_numpy(made[name]) for name in chosen]


@pull_back.register_fake
def _fake_pull_back(
    token: int,
    names: str,
    wanted: str,
    inputs: Sequence[torch.Tensor],
    *_others: torch.Tensor,
) -> list[torch.Tensor]:
    given = dict(zip(names.split(","), inputs, strict=True))
    return [given[name].new_empty(given[name].shape) for name in wanted.split(",")]


def _keep(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ANN401
    """Keep the arguments for the gradient, and the copies, into which nobody writes."""
    ctx.token, ctx.names, tensors = inputs
    ctx.save_for_backward(*tensors, *output[2:])


def _gradient(ctx: Any, d_states: Any, d_sensors: Any, *_: Any) -> Any:  # noqa: ANN401
    *inputs, states, kept = ctx.saved_tensors
    names = ctx.names.split(",")
    needed = ctx.needs_input_grad[2]
    wanted = [name for name, is_needed in zip(names, needed, strict=True) if is_needed]
    made = pull_back(
        ctx.token, ctx.names, ",".join(wanted), inputs, states, kept, d_states, d_sensors
    )
    by_name = dict(zip(wanted, made, strict=True))
    return None, None, [by_name.get(name) for name in names]


record.register_autograd(_gradient, setup_context=_keep)


def _batched(size: int, tensors: Sequence[torch.Tensor], axes: Sequence[int | None]) -> Any:  # noqa: ANN401
    """Return the tensors with the axis of `vmap` in front."""
    return [
        x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0)
        for x, axis in zip(tensors, axes, strict=True)
    ]


@record.register_vmap
def _vmap_record(
    info: Any,  # noqa: ANN401
    in_dims: Any,  # noqa: ANN401
    token: int,
    names: str,
    inputs: Sequence[torch.Tensor],
) -> Any:  # noqa: ANN401
    made = record(token, names, _batched(info.batch_size, inputs, in_dims[2]))
    return made, (0, 0, 0, 0)


@pull_back.register_vmap
def _vmap_pull_back(
    info: Any,  # noqa: ANN401
    in_dims: Any,  # noqa: ANN401
    token: int,
    names: str,
    wanted: str,
    inputs: Sequence[torch.Tensor],
    *others: torch.Tensor,
) -> Any:  # noqa: ANN401
    n = info.batch_size
    tensors = _batched(n, inputs, in_dims[3])
    made = pull_back(token, names, wanted, tensors, *_batched(n, others, in_dims[4:]))
    return made, [0] * len(made)
