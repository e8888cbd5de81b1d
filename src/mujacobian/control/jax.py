"""Optimal plans as JAX functions: `pip install 'mujacobian[jax]'`.

They work under `jit`, `grad` and `vmap`. Only first derivatives, in reverse mode, are available.
Arrays have double precision, which needs `jax.config.update("jax_enable_x64", True)`.

Example:
  >>> import jax, numpy as np, mujacobian.control.jax
  >>> from mujacobian import control
  >>> from mujacobian.control import tasks
  >>> jax.config.update("jax_enable_x64", True)
  >>> task = tasks.load("cartpole")
  >>> planner = control.ILQR(task.planned, task.cost, 20, hessian="auto", tolerance=1e-12)
  >>> state = np.array([0.1, 3.0, 0.0, 0.0])
  >>> def first_control(weights):
  ...     states, controls = control.jax.plan(planner, state, weights=weights)
  ...     return controls[0, 0]
  >>> jax.jit(jax.grad(first_control))(task.cost.weights).shape == task.cost.weights.shape
  True
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from mujacobian._arguments import require_batch
from mujacobian.control.ilqr import ILQR
from mujacobian.control.layer import DIFFERENTIATED, HostPlan
from mujacobian.errors import MissingPackageError

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    message = "mujacobian.control.jax needs JAX: pip install 'mujacobian[jax]'"
    raise MissingPackageError(message) from error

from mujacobian.jax import as_array, call, like

__all__ = ["plan"]


def plan(
    planner: ILQR,
    state: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    targets: ArrayLike | None = None,
    controls: ArrayLike | None = None,
    iterations: int = 300,
) -> tuple[jax.Array, jax.Array]:
    """Return the states `(T, nq + nv + na)` and the controls `(T - 1, nu)` of the optimal plan.

    The arguments and the derivatives are those of `mujacobian.control.torch.plan`.
    """
    host = HostPlan(planner, iterations)
    given = {"state": state, "weights": weights, "targets": targets, "controls": controls}
    inputs, axes = {}, {}
    for name, shape in host.shapes.items():
        value = given[name]
        array = as_array(name, host.defaults[name] if value is None else value)
        require_batch(name, array.shape, shape)
        inputs[name], axes[name] = array, 0 if array.ndim > len(shape) else None

    results = like((planner.horizon, *host.shapes["state"])), like(host.shapes["controls"])
    gradients = {name: like(host.shapes[name]) for name in DIFFERENTIATED}

    @jax.custom_vjp
    def solve(inputs: dict[str, Any]) -> Any:  # noqa: ANN401
        return call(host.solve, results, inputs)

    def forward(inputs: dict[str, Any]) -> Any:  # noqa: ANN401
        made = solve(inputs)
        return made, (inputs | {"controls": made[1]}, made[0])

    def backward(residuals: Any, cotangents: Any) -> Any:  # noqa: ANN401
        made = call(host.pull_back, gradients, *residuals, *cotangents)
        return (made | {"controls": jnp.zeros(host.shapes["controls"])},)

    solve.defvjp(forward, backward)
    run = jax.vmap(solve, in_axes=(axes,)) if 0 in axes.values() else solve
    made: tuple[jax.Array, jax.Array] = run(inputs)
    return made
