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

from typing import Any

import mujoco

from mujacobian._arguments import count
from mujacobian._differenced import require_fallback
from mujacobian._host import HostRollout
from mujacobian._parameters import Parameters
from mujacobian._threads import thread_count
from mujacobian.errors import MissingPackageError

try:
    import torch
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.torch needs PyTorch: pip install 'mujacobian[torch]'"
    ) from error

from mujacobian import _torch_ops
from mujacobian._torch_functions import Kept, Record, Task
from mujacobian._torch_tensors import Tensors, as_tensor, repeated, spread

__all__ = ["rollout", "step"]


def step(
    model: mujoco.MjModel,
    state: Tensors,
    control: Tensors,
    *,
    forces: Tensors | None = None,
    wrenches: Tensors | None = None,
    mocap: Tensors | None = None,
    params: tuple[Parameters, Tensors] | None = None,
    substeps: int = 1,
    threads: int | None = None,
    fallback: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the state after a step, and the sensor values of the step.

    Args:
      model: any model that MuJoCo loads.
      state: `(nq + nv + na,)`, (qpos, qvel, act), with or without a leading batch axis. Everything
        else is as after `mj_resetData`.
      control: `(nu,)`, with or without a leading batch axis, as the other inputs.
      forces: `(nv,)`, `qfrc_applied`.
      wrenches: `(nbody, 6)`, `xfrc_applied`.
      mocap: `(nmocap, 7)`, poses of mocap bodies.
      params: parameters of the model and their values, as in `rollout`.
      substeps: number of calls of `mj_step`, with the same inputs. The sensor values are those that
        MuJoCo has after the last one: values at the state before it.
      threads: as in `mujacobian.rollout`.
      fallback: as in `rollout`.
    """
    T = count("substeps", substeps)
    states, sensordata = rollout(
        model,
        state,
        repeated("control", control, 1, T),
        forces=None if forces is None else repeated("forces", forces, 1, T),
        wrenches=None if wrenches is None else repeated("wrenches", wrenches, 2, T),
        mocap=None if mocap is None else repeated("mocap", mocap, 2, T),
        params=params,
        threads=threads,
        fallback=fallback,
    )
    return states[..., -1, :], sensordata[..., -1, :]


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
    given: dict[str, Any] = {
        "state": None if isinstance(state, mujoco.MjData) else state,
        "controls": controls,
        "forces": forces,
        "wrenches": wrenches,
        "mocap": mocap,
        "values": None if params is None else params[1],
    }
    tensors = {name: as_tensor(name, x) for name, x in given.items() if x is not None}
    parameters = None if params is None else params[0]
    data = state if isinstance(state, mujoco.MjData) else None
    if torch.compiler.is_compiling():
        options = checkpoint, threads, fallback
        token = _torch_ops.token(model, id(model), parameters, id(parameters), *options)
        return _torch_ops.rollout(token, data, spread(tensors))
    every = 1 if checkpoint is None else count("checkpoint", checkpoint)
    require_fallback(fallback)
    host = HostRollout(model, parameters, every, thread_count(threads), fallback, data)
    inputs = tensors
    if not host.fits(tensors):
        host.require_shapes(tensors)
        inputs = spread(tensors)
    transformed = torch._C._are_functorch_transforms_active()
    keep = torch.is_grad_enabled() and any(x.requires_grad for x in inputs.values())
    task = Task(host, tuple(inputs), tape=Kept(transformed, keep and not transformed))
    made = Record.apply(task, *inputs.values())
    return made[0], made[1]
