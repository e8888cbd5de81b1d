"""Steps of a solver as an operator of PyTorch, batched over worlds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from mujacobian._arguments import Array
from mujacobian.errors import (
    ArgumentError,
    MissingPackageError,
    MujacobianError,
    UnsupportedFeatureError,
)
from mujacobian.newton import guards
from mujacobian.newton.contacts import found_by_warp
from mujacobian.newton.host import by_world, write
from mujacobian.newton.inputs import arrays
from mujacobian.newton.internals import suspended_tape
from mujacobian.newton.native import NativeSolver
from mujacobian.newton.snapshot import Snapshot
from mujacobian.newton.solver import DifferentiableMuJoCo

try:
    import torch
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.newton.torch_step needs PyTorch: pip install 'mujacobian[torch]'"
    ) from error

_steps: WeakValueDictionary[int, TorchStep] = WeakValueDictionary()


def torch_step(solver: DifferentiableMuJoCo) -> TorchStep:
    """Return a function of PyTorch that takes a step of all worlds.

    The function computes gradients of the state and of the inputs by `torch.autograd`. The solver
    must find its own contacts, and the model must have no activations.

    Args:
      solver: solver whose steps are taken. Make it with `parameters=()`, because the function has
        no gradients of the model.

    Example:
      >>> import newton, torch, warp as wp
      >>> from mujacobian.newton import DifferentiableMuJoCo, torch_step
      >>> builder = newton.ModelBuilder()
      >>> link = builder.add_link(mass=1.0, inertia=wp.mat33(*[.1, 0, 0, 0, .1, 0, 0, 0, .1]))
      >>> builder.add_articulation([builder.add_joint_revolute(-1, link, axis=(0, 1, 0))])
      >>> model = builder.finalize(requires_grad=True)
      >>> step = torch_step(DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=()))
      >>> q, v = torch.zeros(1, 1), torch.zeros(1, 1, requires_grad=True)
      >>> next_q, next_v = step(q, v, 0.01)
      >>> next_q.sum().backward()
      >>> round(float(v.grad), 6)
      0.01
    """
    return TorchStep(solver)


class TorchStep:
    """A step of all worlds of a solver as a function of tensors.

    Attributes:
      inputs: names of the inputs that the model has, besides the state.
    """

    def __init__(self, solver: DifferentiableMuJoCo) -> None:
        if solver.mj_model.na:
            raise UnsupportedFeatureError(
                "torch_step with activations", "they are no part of its state: use a wp.Tape"
            )
        guards.refuse_given_contacts(solver._takes_contacts)
        if solver.update_data_interval != 1:
            raise UnsupportedFeatureError(
                f"torch_step with update_data_interval={solver.update_data_interval}",
                "its steps begin with their arguments",
            )
        self.solver = solver
        model = solver.model
        self._before, self._after = (model.state(requires_grad=False) for _ in range(2))
        self._control = model.control(requires_grad=False)
        self._arrays = arrays(self._before, self._control)
        self._worlds = solver.mjw_data.nworld
        self._default = {name: by_world(each, self._worlds) for name, each in self._arrays.items()}
        self._snapshot: Snapshot | None = None  # of the last step
        self._stamp = 0  # number of the snapshot
        self.inputs = tuple(self._arrays)
        _steps[id(self)] = self

    def __call__(
        self, joint_q: torch.Tensor, joint_qd: torch.Tensor, dt: float, **inputs: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return `joint_q` and `joint_qd` after the step.

        Newton's arrays have single precision, so that all values are rounded.

        Args:
          joint_q: coordinates of all worlds, (worlds, coordinates of a world).
          joint_qd: velocities of all worlds, (worlds, dofs of a world).
          dt: time step [s].
          **inputs: joint_f, joint_target_q, joint_target_qd, ctrl or body_f, with one row per
            world. The default of an input is its value in `model.control()` or `model.state()`.
        """
        given = {"joint_q": joint_q, "joint_qd": joint_qd, **inputs}
        for name, tensor in given.items():
            if name not in self._shapes():
                known = ", ".join(self.inputs)
                raise ArgumentError(f"{name} is no input of this model, only {known}")
            if tuple(tensor.shape) != self._shapes()[name]:
                raise ArgumentError(
                    f"{name} must have shape {self._shapes()[name]}, got {tuple(tensor.shape)}"
                )
        made = _step(id(self), dt, ",".join(given), list(given.values()))
        return made[0], made[1]

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all tensors."""
        c, W = self.solver._current_snapshot().coordinates, self._worlds
        shapes: dict[str, tuple[int, ...]] = {"joint_q": (W, c.nq), "joint_qd": (W, c.nv)}
        return shapes | {name: each.shape for name, each in self._default.items()}

    def _values(self, given: dict[str, Array]) -> dict[str, Array]:
        """Return all inputs besides the state, as Newton rounds them."""
        return {
            name: given[name].astype(np.float32).astype(np.float64) if name in given else default
            for name, default in self._default.items()
        }

    def take(self, given: dict[str, Array], dt: float) -> tuple[Array, Array, Array]:
        """Take a step; return the coordinates and velocities, and what the gradient needs."""
        solver = self.solver
        with suspended_tape():
            guards.refuse_sleep(solver)
            snapshot = solver._current_snapshot()
            write(self._before.joint_q, given["joint_q"])
            write(self._before.joint_qd, given["joint_qd"])
            for name, values in self._values(given).items():
                write(self._arrays[name], values)
            at = self._start(snapshot, given)
            rows = snapshot.rows(at, self._values(given), snapshot.hidden(solver))
            watch = solver._watch()
            NativeSolver.step(solver, self._before, self._after, self._control, None, dt)
            guards.refuse_sleep(solver)
            pairs = np.zeros((self._worlds, 1))
            if watch is not None:
                watch.judge()
            else:
                pairs = found_by_warp(solver).hashes[:, None].view(np.float64)
            data = solver.mj_data if solver.use_mujoco_cpu else solver.mjw_data
            qpos, qvel = (
                np.array(each if isinstance(each, np.ndarray) else each.numpy(), dtype=np.float64)
                .reshape(self._worlds, -1)
                for each in (data.qpos, data.qvel)
            )  # fmt: skip
            q, v = (by_world(x, self._worlds) for x in (self._after.joint_q, self._after.joint_qd))
            guards.require_finite(q, v)
        if snapshot is not self._snapshot:
            self._snapshot, self._stamp = snapshot, self._stamp + 1
        stamp = np.full((self._worlds, 1), float(self._stamp))
        return q, v, np.concatenate([stamp, pairs, qpos, qvel, rows], axis=1)

    def pull(
        self, given: dict[str, Array], dt: float, record: Array, d_q: Array, d_v: Array
    ) -> dict[str, Array]:
        """Return the gradients of all given tensors."""
        snapshot = self._snapshot
        if snapshot is None or record[0, 0] != self._stamp:
            raise MujacobianError(
                "the model was changed between the step and its gradient: call backward before"
                " notify_model_changed"
            )
        c, model = snapshot.coordinates, self.solver.mj_model
        ends = np.cumsum([1, 1, model.nq, model.nv])
        _, pairs, qpos, qvel, rows = np.split(record, ends, axis=1)
        at = self._start(snapshot, given)
        d_q, d_v = d_q * c.written_q, d_v * c.written_v
        y = np.concatenate(c.pull_result(qpos, qvel, d_q, d_v), axis=-1)
        evaluated = np.any(y != 0, axis=-1)
        made = snapshot.pull(np.ascontiguousarray(rows), dt, y, self.solver._step, None)
        if self.solver._uses_warp:
            self._compare(snapshot, evaluated & (made.pairs != pairs[:, 0].copy().view(np.uint64)))
        g_q, g_v = c.pull_start(at, made.q, made.v)
        g_inputs, turned = snapshot.inputs.pull(at, self._values(given), made.actions)
        g_q += turned + np.where(c.kinematic_q, d_q, 0)
        g_v += np.where(c.kinematic_v, d_v, 0)
        return {"joint_q": g_q, "joint_qd": g_v, **g_inputs}

    def _start(self, snapshot: Snapshot, given: dict[str, Array]) -> Any:  # noqa: ANN401
        rounded = (given[name].astype(np.float32) for name in ("joint_q", "joint_qd"))
        return snapshot.coordinates.start(*(each.astype(np.float64) for each in rounded))

    def _compare(self, snapshot: Snapshot, differ: np.ndarray) -> None:
        """Warn once if mujoco_warp and MuJoCo C found different contacts."""
        if snapshot.contacts_agree and differ.any():
            snapshot.contacts_agree = False
            warnings.warn(
                f"mujoco_warp and MuJoCo C found different contacts in world"
                f" {np.flatnonzero(differ)[0]}. The gradients are those of MuJoCo C at the states"
                " that mujoco_warp reached",
                RuntimeWarning,
                stacklevel=2,
            )


def _numbers(names: str, tensors: Sequence[torch.Tensor]) -> dict[str, Array]:
    """Return the values of tensors in double precision, by name."""
    values = (tensor.detach().cpu().double().numpy() for tensor in tensors)
    return dict(zip(names.split(","), values, strict=True))


@torch.library.custom_op("mujacobian::newton_step", mutates_args=())
def _step(
    token: int, dt: float, names: str, inputs: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q, v, record = _steps[token].take(_numbers(names, inputs), dt)
    like = inputs[0]
    return torch.from_numpy(q).to(like), torch.from_numpy(v).to(like), torch.from_numpy(record)


@_step.register_fake
def _fake_step(token: int, dt: float, names: str, inputs: Sequence[torch.Tensor]) -> Any:  # noqa: ANN401
    step = _steps[token]
    width = 2 + step.solver.mj_model.nq + step.solver.mj_model.nv
    width += step.solver._current_snapshot().state_size
    record = torch.empty((inputs[0].shape[0], width), dtype=torch.float64)
    return torch.empty_like(inputs[0]), inputs[0].new_empty(inputs[1].shape), record


@torch.library.custom_op("mujacobian::newton_pull_back", mutates_args=())
def _pull_back(
    token: int,
    dt: float,
    names: str,
    inputs: Sequence[torch.Tensor],
    record: torch.Tensor,
    d_q: torch.Tensor,
    d_v: torch.Tensor,
) -> list[torch.Tensor]:
    d = _numbers("q,v", [d_q, d_v])
    made = _steps[token].pull(_numbers(names, inputs), dt, record.numpy(), d["q"], d["v"])
    return [
        torch.from_numpy(made[name]).to(tensor)
        for name, tensor in zip(names.split(","), inputs, strict=True)
    ]


@_pull_back.register_fake
def _fake_pull_back(
    token: int, dt: float, names: str, inputs: Sequence[torch.Tensor], *_others: torch.Tensor
) -> list[torch.Tensor]:
    return [torch.empty_like(tensor) for tensor in inputs]


def _keep(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ANN401
    ctx.token, ctx.dt, ctx.names, tensors = inputs
    ctx.step = _steps[ctx.token]  # alive until the gradient is computed
    ctx.save_for_backward(*tensors, output[2])


def _gradient(ctx: Any, d_q: Any, d_v: Any, _record: Any) -> Any:  # noqa: ANN401
    *inputs, record = ctx.saved_tensors
    return None, None, None, _pull_back(ctx.token, ctx.dt, ctx.names, inputs, record, d_q, d_v)


_step.register_autograd(_gradient, setup_context=_keep)
