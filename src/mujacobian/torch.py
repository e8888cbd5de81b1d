"""Steps and rollouts as PyTorch functions, with exact gradients: `pip install 'mujacobian[torch]'`.

Tensors have double precision and are on the CPU. Gradients with respect to the state and the
controls can be differentiated again (`create_graph=True`) if `mujacobian.hessian` covers the model.

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

from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian._arguments import refuse_single_precision
from mujacobian._differenced import warn
from mujacobian._gradient import NO_MOCAP_GRADIENT
from mujacobian._parameters import Parameters
from mujacobian._rollout import rollout as simulate
from mujacobian._trajectory import Trajectory
from mujacobian.errors import ArgumentError, MissingPackageError, UnsupportedFeatureError

try:
    import torch
    from torch.autograd.function import once_differentiable
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.torch needs PyTorch: pip install 'mujacobian[torch]'"
    ) from error

__all__ = ["rollout", "step"]

Tensors = torch.Tensor | ArrayLike


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
    options = {"checkpoint": checkpoint, "threads": threads, "fallback": fallback}
    given = {
        "state": state,
        "controls": controls,
        "forces": forces,
        "wrenches": wrenches,
        "mocap": mocap,
    }
    tensors = [
        values if values is None or isinstance(values, mujoco.MjData) else as_tensor(name, values)
        for name, values in given.items()
    ]
    parameters, values = (None, None) if params is None else params
    values = None if values is None else as_tensor("params", values)
    run = _Rollout.apply(model, options, parameters, *tensors, values)  # type: ignore[no-untyped-call]
    made: tuple[torch.Tensor, torch.Tensor] = run
    return made


class _Rollout(torch.autograd.Function):
    """A rollout that keeps its trajectory for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        model: mujoco.MjModel,
        options: dict[str, Any],
        parameters: Parameters | None,
        *tensors: torch.Tensor | mujoco.MjData | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        arrays: list[Any] = [
            t.detach().numpy() if isinstance(t, torch.Tensor) else t for t in tensors
        ]
        state, controls, forces, wrenches, mocap, values = arrays
        params = None if parameters is None else (parameters, values)
        ctx.trajectory = simulate(
            model,
            state,
            controls,
            forces=forces,
            wrenches=wrenches,
            mocap=mocap,
            params=params,
            **options,
        )
        ctx.shapes = [t.shape if isinstance(t, torch.Tensor) else None for t in tensors]
        ctx.save_for_backward(*(t if isinstance(t, torch.Tensor) else None for t in tensors))
        ctx.set_materialize_grads(False)  # sensors that the loss does not use need no derivative
        # copies, so that the caller can write into them without changing the trajectory
        return torch.tensor(ctx.trajectory.states), torch.tensor(ctx.trajectory.sensordata)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:  # noqa: ANN401
        needed = ctx.needs_input_grad[3:]
        made = _Gradient.apply(ctx.trajectory, ctx.shapes, needed, *cotangents, *ctx.saved_tensors)  # type: ignore[no-untyped-call]
        return (None, None, None, *made)


class _Gradient(torch.autograd.Function):
    """The gradient of a rollout, as a function of its cotangents and of the inputs."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        trajectory: Trajectory,
        shapes: list[tuple[int, ...] | None],
        needed: tuple[bool, ...],
        *tensors: torch.Tensor | None,
    ) -> tuple[torch.Tensor | None, ...]:
        cotangents = tensors[:2]
        ctx.trajectory, ctx.shapes = trajectory, shapes
        ctx.save_for_backward(*cotangents)
        ctx.set_materialize_grads(False)
        made = trajectory.gradient(*(_numpy(y) for y in cotangents))
        warn(made.differenced)
        gradients = (
            made.state,
            made.controls,
            made.forces,
            made.wrenches,
            made.mocap,
            made.params,
        )
        if needed[4] and made.mocap is None:
            raise UnsupportedFeatureError(*NO_MOCAP_GRADIENT)
        return tuple(
            _summed(gradient, shape) if wanted and gradient is not None else None
            for gradient, shape, wanted in zip(gradients, shapes, needed, strict=True)
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *directions: torch.Tensor | None) -> Any:  # noqa: ANN401
        trajectory: Trajectory = ctx.trajectory
        needed = ctx.needs_input_grad[3:]
        for name, direction, wanted in zip(_CONSTANTS, directions[2:], needed[4:], strict=True):
            if direction is not None or wanted:
                raise UnsupportedFeatureError(name, "second derivatives of rollouts")
        lead = trajectory.states.shape[:-2]

        def spread(x: torch.Tensor | None, rank: int) -> NDArray[np.float64] | None:
            """Return a direction for every rollout of the batch."""
            return None if x is None else x.expand(*lead, *x.shape[-rank:]).numpy()

        along = spread(directions[0], 1), spread(directions[1], 2)
        moved = sensed = state = controls = None
        if needed[0] or needed[1]:
            changes = trajectory.jvp(along, sensors=needed[1])
            moved = torch.from_numpy(changes[0]) if needed[0] else None
            sensed = None if changes[1] is None else torch.from_numpy(changes[1])
        if needed[2] or needed[3]:
            made = trajectory.hvp(along, *(_numpy(y) for y in ctx.saved_tensors))
            state = _summed(made.state, ctx.shapes[0]) if needed[2] else None
            controls = _summed(made.controls, ctx.shapes[1]) if needed[3] else None
        return (None, None, None, moved, sensed, state, controls, *[None] * len(_CONSTANTS))


# the inputs of a rollout without second derivatives
_CONSTANTS = ("forces", "wrenches", "mocap", "params")


def _numpy(tensor: torch.Tensor | None) -> NDArray[np.float64] | None:
    return None if tensor is None else tensor.detach().numpy()


def as_tensor(name: str, values: Tensors) -> torch.Tensor:
    """Return `values` as a tensor that the core can read."""
    refuse_single_precision(name, values)
    tensor = torch.as_tensor(values, dtype=torch.float64)
    if tensor.device.type != "cpu":
        raise ArgumentError(f"{name} must be on the CPU, got {tensor.device}: use {name}.cpu()")
    return tensor


def _summed(gradient: NDArray[np.float64], shape: tuple[int, ...] | None) -> torch.Tensor:
    """Return the gradient of an input of this shape: the sum over the batch if all share it."""
    if shape is not None and gradient.ndim > len(shape):
        gradient = gradient.sum(axis=0)
    return torch.from_numpy(np.ascontiguousarray(gradient))
