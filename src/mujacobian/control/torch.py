"""Optimal plans as PyTorch functions: `pip install 'mujacobian[torch]'`.

Tensors have double precision and are on the CPU. Only first derivatives, in reverse mode, are
available.

Example:
  >>> import torch, mujacobian.control.torch
  >>> from mujacobian import control
  >>> from mujacobian.control import tasks
  >>> task = tasks.load("cartpole")
  >>> planner = control.ILQR(task.planned, task.cost, 20, hessian="auto", tolerance=1e-12)
  >>> weights = torch.tensor(task.cost.weights, requires_grad=True)
  >>> state = torch.tensor([0.1, 3.0, 0.0, 0.0]).double()
  >>> states, controls = control.torch.plan(planner, state, weights=weights)
  >>> controls[0, 0].backward()  # the first control
  >>> weights.grad.shape == weights.shape
  True
"""

from __future__ import annotations

from typing import Any

from mujacobian._arguments import require_batch
from mujacobian._host import flattened
from mujacobian._rollout import batch_size
from mujacobian.control.ilqr import ILQR
from mujacobian.control.layer import DIFFERENTIATED, HostPlan
from mujacobian.errors import MissingPackageError, UnsupportedFeatureError

try:
    import torch
except ImportError as error:
    message = "mujacobian.control.torch needs PyTorch: pip install 'mujacobian[torch]'"
    raise MissingPackageError(message) from error

from mujacobian._torch_functions import Batched
from mujacobian._torch_tensors import Tensors, as_tensor, tensors_of

__all__ = ["plan"]


def plan(
    planner: ILQR,
    state: Tensors,
    *,
    weights: Tensors | None = None,
    targets: Tensors | None = None,
    controls: Tensors | None = None,
    iterations: int = 300,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the states `(T, nq + nv + na)` and the controls `(T - 1, nu)` of the optimal plan.

    They are differentiable with respect to the state, the weights and the targets, by the implicit
    function theorem with exact second derivatives (ILQ-16). Controls at a bound do not change. A
    plan that has not converged raises `MujacobianError`: use a planner with `hessian="auto"` and
    a tolerance of 1e-9 or less.

    Args:
      planner: planner with its model, cost, horizon and bounds. Its regularization is reset, as in
        `ILQR.solve`; nothing else changes.
      state: `(nq + nv + na,)`, initial state at time 0.
      weights: `(terms,)`, weights of the terms; by default those of the cost.
      targets: `(rows,)`, numbers that are added to the targets of all rows of all terms, at all
        knots; by default zero. Where a term has no target, they are its target.
      controls: `(T - 1, nu)`, initial controls of the optimization; by default zero. Results do not
        depend on them, if there is only one optimum.
      iterations: maximum number of iterations; by default 300.

    All tensors, or some of them, may have a leading axis for a batch of plans.
    """
    host = HostPlan(planner, iterations)
    given = {"state": state, "weights": weights, "targets": targets, "controls": controls}
    inputs = {}
    for name, shape in host.shapes.items():
        value = given[name]
        tensor = as_tensor(name, host.defaults[name] if value is None else value)
        require_batch(name, tensor.shape, shape)
        inputs[name] = tensor, shape
    n = batch_size({name: (tensor, len(shape)) for name, (tensor, shape) in inputs.items()})
    lead = () if n is None else (n,)
    tensors = (tensor.expand(*lead, *shape) for tensor, shape in inputs.values())
    made = _Plan.apply(host, *tensors)
    # copies, so that the caller can write into them without changing what gradients need
    return made[0].clone(), made[1].clone()


class _Plan(Batched):
    """States and controls of the optimal plans of the inputs."""

    @staticmethod
    def forward(host: HostPlan, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensors_of(flattened(host.solve)(_inputs(host, tensors)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ANN401
        ctx.host, *tensors, _ = inputs
        states, controls = output
        ctx.save_for_backward(*tensors, controls, states)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:  # noqa: ANN401
        made = _Pull.apply(ctx.host, *ctx.saved_tensors, *cotangents)
        return (None, *made, None)


class _Pull(Batched):
    """Gradients with respect to the initial state, the weights and the targets."""

    @staticmethod
    def forward(host: HostPlan, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        n = len(host.shapes)
        arrays = (tensor.numpy(force=True) for tensor in tensors[n:])
        made = flattened(host.pull_back)(_inputs(host, tensors[:n]), *arrays)
        return tensors_of(made[name] for name in DIFFERENTIATED)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:  # noqa: ANN401
        raise UnsupportedFeatureError(
            "plan", "second derivatives of optimal plans are not supported"
        )


def _inputs(host: HostPlan, tensors: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    names = zip(host.shapes, tensors, strict=True)
    return {name: tensor.numpy(force=True) for name, tensor in names}
