"""Rollouts as autograd functions of PyTorch, with their derivatives up to second order."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from mujacobian import _core
from mujacobian._host import HostRollout, flattened
from mujacobian._stepper import Memory, stepper
from mujacobian._torch_tensors import tensors_of
from mujacobian.errors import UnsupportedFeatureError

TORCH = Memory(
    partial(torch.empty, dtype=torch.float64), torch.Tensor.contiguous, torch.Tensor.data_ptr
)

Results = tuple[torch.Tensor | None, ...]


@dataclass(slots=True)
class Kept:
    """Results of a simulation that gradients need.

    Attributes:
      transformed: a transform of `torch.func` is active, so that nothing can be kept here.
      keep: differentiate the steps of the simulation, because a gradient will follow.
      tape: these steps.
      n: the number of rollouts of the tape.
      recorded: the states and the recorded states.
    """

    transformed: bool = True
    keep: bool = False
    tape: _core.Tape | None = None
    recorded: tuple[torch.Tensor, ...] = ()
    n: int = 0

    def start(self, host: HostRollout, inputs: dict[str, Any]) -> _core.Tape | None:
        """Return a tape for the simulation of a batch, or None if nothing is to be kept."""
        if not self.keep or not host.is_plain:
            return None
        *lead, T, _ = inputs["controls"].shape
        self.n = math.prod(lead)
        self.tape = stepper(host.model).core.tape(self.n, T)
        return self.tape

    def of_batch(self, inputs: dict[str, Any]) -> _core.Tape | None:
        """Return the tape, unless a transform has repeated the batch."""
        return self.tape if math.prod(inputs["controls"].shape[:-2]) == self.n else None


@dataclass(slots=True)
class Task:
    """The work of a function below. It is an object without tensors for `torch.func`.

    Attributes:
      host: the rollouts.
      names: names of the inputs.
      wanted: names of the inputs with respect to which derivatives are wanted.
      moved: names of the inputs that change along a direction.
      sensors: whether changes of sensors are wanted.
      tape: what the simulation keeps for gradients.
    """

    host: HostRollout
    names: tuple[str, ...]
    wanted: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    sensors: bool = True
    tape: Kept = field(default_factory=Kept)

    def arrays(self, tensors: tuple[torch.Tensor, ...]) -> list[Any]:
        """Return the inputs by name, then other arrays, then the changes of inputs by name."""
        arrays = [tensor.detach().numpy() for tensor in tensors]
        n, last = len(self.names), len(arrays) - len(self.moved)
        inputs = dict(zip(self.names, arrays, strict=False))
        moved = dict(zip(self.moved, arrays[last:], strict=True))
        return [inputs, *arrays[n:last], *([moved] if self.moved else [])]

    def chosen(self, needed: tuple[bool, ...]) -> tuple[str, ...]:
        """Return the names of the inputs that are needed; `needed` begins with the inputs."""
        return tuple(name for name, is_needed in zip(self.names, needed, strict=False) if is_needed)

    def no_sensors(self, d_states: torch.Tensor) -> torch.Tensor:
        """Return the derivatives of a function of the states with respect to the sensors: zeros."""
        *lead, rows, _ = d_states.shape
        return d_states.new_zeros(*lead, rows - 1, self.host.model.nsensordata)

    def gradients(self, tensors: Results, wanted: tuple[str, ...]) -> tuple[torch.Tensor, ...]:
        """Return the gradients of the inputs, from the inputs, recorded states and cotangents.

        A cotangent may be None, which is zero.
        """
        n = len(self.names)
        inputs = dict(zip(self.names, tensors, strict=False))
        recorded, cotangents = tensors[n : n + 2], tensors[n + 2 :]
        tape = self.tape.of_batch(inputs)
        made = self.host.attempt_gradient(inputs, recorded, cotangents, wanted, tape, TORCH)
        if made is not None:
            return tuple(made.values())
        *known, d_states, d_sensors = tensors
        states = known[-2]
        assert states is not None
        d_states = torch.zeros_like(states) if d_states is None else d_states
        d_sensors = self.no_sensors(d_states) if d_sensors is None else d_sensors
        work = partial(self.host.pull_back, wanted=wanted)
        arrays = self.arrays((*known, d_states, d_sensors))  # type: ignore[arg-type]
        return tensors_of(flattened(work)(*arrays).values())

    def spread(self, names: tuple[str, ...], values: Results) -> Results:
        """Return the values of these inputs in the order of all inputs, with None elsewhere."""
        by_name = dict(zip(names, values, strict=True))
        return tuple(by_name.get(name) for name in self.names)


class Batched(torch.autograd.Function):
    """A function of tensors that all have the same leading axes, which batches have.

    It is no `torch.library.custom_op`, because that has no forward mode, and because a call of one
    takes twice as long. The operators in `_torch_ops` serve `torch.compile`.
    """

    @classmethod
    def apply(cls, *arguments: Any) -> Any:  # noqa: ANN401
        """Return the results, as `Function.apply`, which spends most of its time on signatures."""
        if torch._C._are_functorch_transforms_active():
            return super().apply(*arguments)  # type: ignore[no-untyped-call]
        return super(torch.autograd.Function, cls).apply(*arguments)  # type: ignore[misc]

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, task: object, *tensors: torch.Tensor) -> Any:  # noqa: ANN401
        """Return the results of a batch, whose axis becomes the first one."""
        given = (
            x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
            for x, axis in zip(tensors, in_dims[1:], strict=True)
        )
        made = cls.apply(task, *given)
        return made, (0,) * len(made)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ANN401
        """Keep the arguments."""
        ctx.task, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)


class Record(Batched):
    """States and sensordata of rollouts of the inputs.

    Gradients need the recorded states, and copies of the states, because the caller may write into
    the results. Transforms of `torch.func` require that they are results, too. Otherwise the task
    keeps them, because every result takes time.
    """

    @staticmethod
    def forward(task: Task, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = dict(zip(task.names, inputs, strict=True))
        made = task.host.attempt_simulation(given, task.tape.start(task.host, given), TORCH)
        if made is None:
            task.tape.tape = None
            made = tensors_of(flattened(task.host.simulate)(*task.arrays(inputs)))
        states, sensordata, kept = made
        recorded = states.clone(), kept
        if task.tape.transformed:
            return states, sensordata, *recorded
        task.tape.recorded = recorded
        return states, sensordata

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ANN401
        ctx.task, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.sensed = output[1].shape
        recorded = output[2:]
        if recorded:
            ctx.mark_non_differentiable(*recorded)
        else:
            recorded = ctx.task.tape.recorded
        ctx.save_for_backward(*tensors, *recorded)
        ctx.save_for_forward(*tensors, *recorded)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:  # noqa: ANN401
        task: Task = ctx.task
        *inputs, states, kept = ctx.saved_tensors
        wanted = task.chosen(ctx.needs_input_grad[1:])
        d_states, d_sensors = cotangents[:2]
        if d_states is None and d_sensors is None:
            return (None,) * (1 + len(inputs))
        if _is_last():
            tensors = *inputs, states, kept, d_states, d_sensors
            return (None, *task.spread(wanted, task.gradients(tensors, wanted)))
        given = (
            states.new_zeros(states.shape) if d_states is None else d_states,
            states.new_zeros(ctx.sensed) if d_sensors is None else d_sensors,
        )
        made = _pull(replace(task, wanted=wanted), *inputs, states, kept, *given)
        return (None, *task.spread(wanted, made))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: torch.Tensor | None) -> Any:  # noqa: ANN401
        task, moved = _moving(ctx.task, tangents)
        changes = _push(task, *ctx.saved_tensors, *moved)
        return changes if task.tape.recorded else (*changes, None, None)


class _Pull(Batched):
    """Gradients with respect to the wanted inputs, from cotangents of states and sensordata."""

    @staticmethod
    def forward(task: Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return task.gradients(tensors, task.wanted)

    @staticmethod
    def backward(ctx: Any, *directions: torch.Tensor) -> Any:  # noqa: ANN401
        task: Task = replace(ctx.task, moved=ctx.task.wanted)
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
        return (None, *task.spread(wanted, inputs), None, None, *changes)

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
    def forward(task: Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        work = partial(task.host.push, sensors=task.sensors)
        return tensors_of(flattened(work)(*task.arrays(tensors)))

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:  # noqa: ANN401
        task: Task = ctx.task
        k = len(task.names) + 2
        recorded, directions = ctx.saved_tensors[:k], ctx.saved_tensors[k:]
        weights = cotangents if task.sensors else (*cotangents, task.no_sensors(cotangents[0]))
        needed = ctx.needs_input_grad[1:]
        wanted = task.chosen(needed)
        inputs: Results = ()
        if wanted:
            inputs = _pull_twice(replace(task, wanted=wanted), *recorded, *weights, *directions)
        changes: Results = (None,) * len(directions)
        if any(needed[k:]):
            changes = _pull(replace(task, wanted=task.moved, moved=()), *recorded, *weights)
        return (None, *task.spread(wanted, inputs), None, None, *changes)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:  # noqa: ANN401
        raise UnsupportedFeatureError(
            "rollout", "forward mode of forward mode is not supported: use torch.func.hessian"
        )


class _PullTwice(Batched):
    """Changes of the gradients along a change of the inputs that move."""

    @staticmethod
    def forward(task: Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        work = partial(task.host.pull_twice, wanted=task.wanted)
        return tensors_of(flattened(work)(*task.arrays(tensors)).values())

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:  # noqa: ANN401
        raise UnsupportedFeatureError("rollout", "third derivatives of rollouts are not supported")

    jvp = backward


def _is_last() -> bool:
    """Return whether nothing differentiates the derivative that is being computed."""
    return not (
        torch.is_grad_enabled()
        or torch._C._are_functorch_transforms_active()
        or torch.autograd.forward_ad._current_level >= 0
    )


def _pull(task: Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    made: tuple[torch.Tensor, ...] = _Pull.apply(task, *tensors)
    return made


def _push(task: Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    made: tuple[torch.Tensor, ...] = _Push.apply(task, *tensors)
    return made


def _pull_twice(task: Task, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    made: tuple[torch.Tensor, ...] = _PullTwice.apply(task, *tensors)
    return made


def _moving(task: Task, tangents: Any) -> tuple[Task, list[torch.Tensor]]:  # noqa: ANN401
    """Return the task with the inputs that have tangents, and these tangents."""
    pairs = [pair for pair in zip(task.names, tangents, strict=True) if pair[1] is not None]
    return replace(task, moved=tuple(name for name, _ in pairs)), [x for _, x in pairs]
