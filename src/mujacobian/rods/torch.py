"""Rollouts of rods as PyTorch functions, with exact gradients: `pip install 'mujacobian[torch]'`.

Tensors have double precision and are on the CPU. Only first derivatives are available.

Example:
  >>> import torch, mujacobian.rods.torch
  >>> from mujacobian import rods
  >>> ball = rods.RigidBody(mass=1, inertia=[1, 1, 1])
  >>> world = rods.World(timestep=0.1, bodies=[ball])
  >>> forces = torch.zeros(20, 1, 3, dtype=torch.float64, requires_grad=True)
  >>> positions, rotations = mujacobian.rods.torch.rollout(world, forces=forces)
  >>> positions[-1, 0, 2].backward()  # the final height
  >>> forces.grad.shape
  torch.Size([20, 1, 3])
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from mujacobian.errors import MissingPackageError
from mujacobian.rods.description import instance
from mujacobian.rods.gradient import Gradient
from mujacobian.rods.rollout import rollout as simulate
from mujacobian.rods.state import INPUTS, PARAMETERS, STATE, Parameters, State
from mujacobian.rods.world import World

try:
    import torch
    from torch.autograd.function import once_differentiable
except ImportError as error:
    message = "mujacobian.rods.torch needs PyTorch: pip install 'mujacobian[torch]'"
    raise MissingPackageError(message) from error

from mujacobian._torch_tensors import Tensors, as_tensor


def rollout(
    world: World,
    state: State | None = None,
    steps: int | None = None,
    *,
    forces: Tensors | None = None,
    torques: Tensors | None = None,
    tensions: Tensors | None = None,
    rest: Tensors | None = None,
    targets: Tensors | None = None,
    params: Parameters | None = None,
    tolerance: float = 1e-10,
    iterations: int = 100,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the positions `(T + 1, points, 3)` and rotations `(T + 1, frames, 3, 3)` of a rollout.

    The arguments are those of `rods.rollout`. All values may be tensors, also the fields of
    `rods.State` and `rods.Parameters`. The gradient with respect to a rotation is a matrix in the
    tangent space at this rotation.
    """
    instance("world", world, World)
    given = dict(zip(INPUTS, (forces, torques, tensions, rest, targets), strict=True))
    first = world.state() if state is None else instance("state", state, State)
    numbers = world.parameters() if params is None else instance("params", params, Parameters)
    tensors = [as_tensor(name, getattr(first, name)) for name in STATE]
    tensors += [as_tensor(name, getattr(numbers, name)) for name in PARAMETERS]
    inputs = [None if x is None else as_tensor(name, x) for name, x in given.items()]
    options = {"steps": steps, "tolerance": tolerance, "iterations": iterations}
    run = _Rollout.apply(world, options, *tensors, *inputs)  # type: ignore[no-untyped-call]
    made: tuple[torch.Tensor, torch.Tensor] = run
    return made


class _Rollout(torch.autograd.Function):
    """A rollout that keeps its trajectory for the reverse pass."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        world: World,
        options: dict[str, Any],
        *tensors: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        arrays: list[Any] = [None if t is None else t.detach().numpy() for t in tensors]
        given = iter(arrays)
        state, params = (
            State(*islice(given, len(STATE))),
            Parameters(*islice(given, len(PARAMETERS))),
        )
        inputs = dict(zip(INPUTS, given, strict=True))
        ctx.trajectory = simulate(world, state, params=params, **inputs, **options)
        # copies, so that the caller cannot change the trajectory
        return torch.tensor(ctx.trajectory.positions), torch.tensor(ctx.trajectory.rotations)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:  # noqa: ANN401
        made = ctx.trajectory.gradient(*(y.detach().numpy() for y in cotangents))
        needed = ctx.needs_input_grad[2:]
        return (
            None,
            None,
            *(
                torch.from_numpy(np.ascontiguousarray(x)) if wanted and x is not None else None
                for x, wanted in zip(flattened(made), needed, strict=True)
            ),
        )


def flattened(gradient: Gradient) -> list[Any]:
    """Return the gradients in the order of the tensors."""
    return [
        *(getattr(gradient.state, name) for name in STATE),
        *(getattr(gradient.params, name) for name in PARAMETERS),
        *(getattr(gradient, name) for name in INPUTS),
    ]
