"""Steps and rollouts as PyTorch functions, with exact gradients: `pip install 'mujacobian[torch]'`.

Tensors have double precision and are on the CPU. Gradients with respect to the state, the controls
and parameters can be differentiated again (`create_graph=True`, `torch.func.hessian`) if
`mujacobian.hessian` covers the model, and `Trajectory.hessian` the parameters. All functions work
under `torch.func.vmap`, which becomes a batch in parallel threads.

Example:
  >>> import mujoco, torch, mujacobian.torch
  >>> model = mujoco.MjModel.from_xml_string(
  ...     "<mujoco><worldbody><body><joint name='pivot'/><geom size='.1'/></body></worldbody>"
  ...     "<actuator><motor joint='pivot'/></actuator></mujoco>")
  >>> controls = torch.zeros(50, 1, dtype=torch.float64, requires_grad=True)
  >>> states, _ = mujacobian.torch.rollout(model, torch.zeros(2).double(), controls)
  >>> states[-1, 0].backward()  # the last angle
  >>> controls.grad.shape
  torch.Size([50, 1])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import mujoco
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, count, refuse_single_precision, require_batch
from mujacobian._differenced import require_fallback
from mujacobian._host import HostRollout, flattened
from mujacobian._parameters import Parameters
from mujacobian._rollout import batch_size
from mujacobian._threads import thread_count
from mujacobian.errors import ArgumentError, MissingPackageError, UnsupportedFeatureError

try:
    import torch
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.torch needs PyTorch: pip install 'mujacobian[torch]'"
    ) from error

__all__ = ["rollout", "step"]

Tensors = torch.Tensor | ArrayLike
Results = tuple[torch.Tensor | None, ...]


def step(
    model: mujoco.MjModel,
    state: Tensors,
    control: Tensors,
    *,
    threads: int | None = None,
    fallback: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the state after one step, and the sensor values of the step.

    Args:
      model: any model that MuJoCo loads.
      state: `(nq + nv + na,)`, (qpos, qvel, act), with or without a leading batch axis.
      control: `(nu,)`, with or without a leading batch axis.
      threads: as in `mujacobian.rollout`.
      fallback: as in `rollout`.
    """
    controls = as_tensor("control", control).unsqueeze(-2)
    states, sensordata = rollout(model, state, controls, threads=threads, fallback=fallback)
    return states[..., 1, :], sensordata[..., 0, :]


def rollout(
    model: mujoco.MjModel,
    state: mujoco.MjData | Tensors,
    controls: Tensors,
    *,
    forces: Tensors | None = None,
    wrenches: Tensors | None = None,
    mocap: Tensors | None = None,
    params: tuple[Parameters, Tensors] | None = None,
    checkpoint: int | None = None,
    threads: int | None = None,
    fallback: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the states `(T + 1, nq + nv + na)` and the sensordata `(T, ns)` of a rollout.

    The arguments are those of `mujacobian.rollout`; arguments that are differentiated are tensors.
    Results of a batch have a leading axis. The gradient of a quaternion is orthogonal to it. If a
    gradient contains finite differences because of fallback="fd", it warns with a
    `mujacobian.errors.DifferencedWarning`.
    """
    u = as_tensor("controls", controls)
    require_batch("controls", u.shape, ("T", model.nu))
    parameters, values = (None, None) if params is None else params
    data = state if isinstance(state, mujoco.MjData) else None
    every = 1 if checkpoint is None else count("checkpoint", checkpoint)
    require_fallback(fallback)
    host = HostRollout(model, parameters, every, thread_count(threads), fallback, data)
    given: dict[str, Any] = {
        "state": None if data is not None else state,
        "controls": u,
        "forces": forces,
        "wrenches": wrenches,
        "mocap": mocap,
        "values": values,
    }
    inputs = {}
    for name, shape in host.shapes(u.shape[-2]).items():
        if given[name] is not None:
            tensor = as_tensor(name, given[name])
            require_batch(name, tensor.shape, shape)
            inputs[name] = tensor, shape
    n = batch_size({name: (tensor, len(shape)) for name, (tensor, shape) in inputs.items()})
    lead = () if n is None else (n,)
    tensors = (tensor.expand(*lead, *shape) for tensor, shape in inputs.values())
    made = _Record.apply(_Task(host, tuple(inputs)), *tensors)  # type: ignore[no-untyped-call]
    # copies, so that the caller can write into them without changing what gradients need
    return made[0].clone(), made[1].clone()


@dataclass(frozen=True)
class _Task:
    """The work of a function below. It is an object without tensors for `torch.func`.

    Attributes:
      host: the rollouts.
      names: names of the inputs.
      wanted: names of the inputs with respect to which derivatives are wanted.
      moved: names of the inputs that change along a direction.
      sensors: whether changes of sensors are wanted.
    """

    host: HostRollout
    names: tuple[str, ...]
    wanted: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    sensors: bool = True

    def arrays(self, tensors: tuple[torch.Tensor, ...]) -> list[Any]:
        """Return the inputs by name, then other arrays, then the changes of inputs by name."""
        arrays = [tensor.numpy(force=True) for tensor in tensors]
        n, last = len(self.names), len(arrays) - len(self.moved)
        inputs = dict(zip(self.names, arrays, strict=False))
        moved = dict(zip(self.moved, arrays[last:], strict=True))
        return [inputs, *arrays[n:last], *([moved] if self.moved else [])]

    def chosen(self, needed: tuple[bool, ...]) -> tuple[str, ...]:
        """Return the names of the inputs that are needed; `needed` begins with the inputs."""
        return tuple(name for name, is_needed in zip(self.names, needed, strict=False) if is_needed)

    def spread(self, names: tuple[str, ...], values: Results) -> Results:
        """Return the values of these inputs in the order of all inputs, with None elsewhere."""
        by_name = dict(zip(names, values, strict=True))
        return tuple(by_name.get(name) for name in self.names)


class Batched(torch.autograd.Function):
    """A function of tensors that all have the same leading axes, which batches have."""

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, task: object, *tensors: torch.Tensor) -> Any:  # noqa: ANN401
        """Return the results of a batch, whose axis becomes the first one."""
        given = (
            x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
            for x, axis in zip(tensors, in_dims[1:], strict=True)
        )
        made = cls.apply(task, *given)  # type: ignore[no-untyped-call]
        return made, (0,) * len(made)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ANN401
        """Keep the arguments."""
        ctx.task, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)


class _Record(Batched):
    """States and sensordata of rollouts of the inputs, and the recorded states for gradients."""

    @staticmethod
    def forward(task: _Task, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensors_of(flattened(task.host.simulate)(*task.arrays(inputs)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ANN401
        ctx.task, *tensors = inputs
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(*tensors, *output)
        ctx.save_for_forward(*tensors, *output)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:  # noqa: ANN401
        task: _Task = ctx.task
        wanted = task.chosen(ctx.needs_input_grad[1:])
        made = _pull(replace(task, wanted=wanted), *ctx.saved_tensors, *cotangents[:2])
        return (None, *task.spread(wanted, made))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: torch.Tensor | None) -> Any:  # noqa: ANN401
        task, moved = _moving(ctx.task, tangents)
        return (*_push(task, *ctx.saved_tensors, *moved), None)


class _Pull(Batched):
    """Gradients with respect to the wanted inputs, from cotangents of states and sensordata."""

    @staticmethod
    def forward(task: _Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        work = partial(task.host.pull_back, wanted=task.wanted)
        return tensors_of(flattened(work)(*task.arrays(tensors)).values())

    @staticmethod
    def backward(ctx: Any, *directions: torch.Tensor) -> Any:  # noqa: ANN401
        task: _Task = replace(ctx.task, moved=ctx.task.wanted)
        *recorded, d_states, d_sensors = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:]
        wanted, sensors = task.chosen(needed), needed[-1]
        inputs: Results = ()
        changes: Results = (None, None)
        if wanted:
            again = replace(task, wanted=wanted)
            inputs = _pull_twice(again, *recorded, d_states, d_sensors, *directions)
        if needed[-2] or needed[-1]:
            changes = _push(replace(task, sensors=sensors), *recorded, *directions)
            changes = (*changes, None) if not sensors else changes
        return (None, *task.spread(wanted, inputs), None, None, None, *changes)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: torch.Tensor | None) -> Any:  # noqa: ANN401
        # the recorded states are functions of the inputs, whose change includes theirs
        *recorded, d_states, d_sensors = ctx.saved_tensors
        task, moved = _moving(ctx.task, tangents[: len(ctx.task.names)])
        terms = []
        if moved:
            terms.append(_pull_twice(task, *recorded, d_states, d_sensors, *moved))
        if any(x is not None for x in tangents[-2:]):
            given = zip(tangents[-2:], (d_states, d_sensors), strict=True)
            changes = (torch.zeros_like(y) if x is None else x for x, y in given)
            terms.append(_pull(ctx.task, *recorded, *changes))
        return tuple(map(sum, zip(*terms, strict=True)))


class _Push(Batched):
    """Changes of states and sensordata along a change of the inputs that move."""

    @staticmethod
    def forward(task: _Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        work = partial(task.host.push, sensors=task.sensors)
        return tensors_of(flattened(work)(*task.arrays(tensors)))

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:  # noqa: ANN401
        task: _Task = ctx.task
        n, k = len(task.names), len(task.names) + 3
        recorded, directions = ctx.saved_tensors[:k], ctx.saved_tensors[k:]
        weights = cotangents if task.sensors else (*cotangents, torch.zeros_like(recorded[n + 1]))
        needed = ctx.needs_input_grad[1:]
        wanted = task.chosen(needed)
        inputs: Results = ()
        if wanted:
            inputs = _pull_twice(replace(task, wanted=wanted), *recorded, *weights, *directions)
        changes: Results = (None,) * len(directions)
        if any(needed[k:]):
            changes = _pull(replace(task, wanted=task.moved, moved=()), *recorded, *weights)
        return (None, *task.spread(wanted, inputs), None, None, None, *changes)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:  # noqa: ANN401
        raise UnsupportedFeatureError(
            "rollout", "forward mode twice, as in jacfwd of jacfwd; use torch.func.hessian"
        )


class _PullTwice(Batched):
    """Changes of the gradients along a change of the inputs that move."""

    @staticmethod
    def forward(task: _Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        work = partial(task.host.pull_twice, wanted=task.wanted)
        return tensors_of(flattened(work)(*task.arrays(tensors)).values())

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:  # noqa: ANN401
        raise UnsupportedFeatureError("rollout", "third derivatives of rollouts")

    jvp = backward


def _pull(task: _Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    made: tuple[torch.Tensor, ...] = _Pull.apply(task, *tensors)  # type: ignore[no-untyped-call]
    return made


def _push(task: _Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    made: tuple[torch.Tensor, ...] = _Push.apply(task, *tensors)  # type: ignore[no-untyped-call]
    return made


def _pull_twice(task: _Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    made: tuple[torch.Tensor, ...] = _PullTwice.apply(task, *tensors)  # type: ignore[no-untyped-call]
    return made


def _moving(task: _Task, tangents: Any) -> tuple[_Task, list[torch.Tensor]]:  # noqa: ANN401
    """Return the task with the inputs that have tangents, and these tangents."""
    pairs = [pair for pair in zip(task.names, tangents, strict=True) if pair[1] is not None]
    return replace(task, moved=tuple(name for name, _ in pairs)), [x for _, x in pairs]


def tensors_of(arrays: Iterable[Array]) -> tuple[torch.Tensor, ...]:
    """Return tensors with the memory of these arrays."""
    return tuple(map(torch.from_numpy, arrays))


def as_tensor(name: str, values: Tensors) -> torch.Tensor:
    """Return `values` as a tensor that the core can read."""
    refuse_single_precision(name, values)
    tensor = torch.as_tensor(values, dtype=torch.float64)
    if tensor.device.type != "cpu":
        raise ArgumentError(f"{name} must be on the CPU, got {tensor.device}: use {name}.cpu()")
    return tensor
