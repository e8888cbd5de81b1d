"""Steps and rollouts as JAX functions, with exact gradients: `pip install 'mujacobian[jax]'`.

They work under `jit`, `grad` and `vmap`. A `vmap` becomes a batch in parallel threads. Arrays have
double precision, which needs `jax.config.update("jax_enable_x64", True)`. Gradients with respect to
the state, the controls and parameters can be differentiated again in forward mode, as `jax.hessian`
does, if `mujacobian.hessian` covers the model, and `Trajectory.hessian` the parameters.

Example:
  >>> import jax, mujoco, mujacobian.jax, numpy as np
  >>> jax.config.update("jax_enable_x64", True)
  >>> model = mujoco.MjModel.from_xml_string(
  ...     "<mujoco><worldbody><body><joint name='pivot'/><geom size='.1'/></body></worldbody>"
  ...     "<actuator><motor joint='pivot'/></actuator></mujoco>")
  >>> def last_angle(controls):
  ...     states, _ = mujacobian.jax.rollout(model, np.zeros(2), controls)
  ...     return states[-1, 0]
  >>> jax.jit(jax.grad(last_angle))(np.zeros((50, 1))).shape
  (50, 1)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import count, require_batch
from mujacobian._differenced import require_fallback
from mujacobian._host import HostRollout, Inputs, flattened
from mujacobian._parameters import Parameters
from mujacobian._rollout import INTEGRATION
from mujacobian._threads import thread_count
from mujacobian.errors import ArgumentTypeError, MissingPackageError, PrecisionError

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise MissingPackageError("mujacobian.jax needs JAX: pip install 'mujacobian[jax]'") from error

__all__ = ["rollout", "step"]


def step(
    model: mujoco.MjModel,
    state: ArrayLike,
    control: ArrayLike,
    *,
    threads: int | None = None,
    fallback: str | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Return the state after one step, and the sensor values of the step.

    Args:
      model: any model that MuJoCo loads.
      state: `(nq + nv + na,)`, (qpos, qvel, act), with or without a leading batch axis.
      control: `(nu,)`, with or without a leading batch axis.
      threads: as in `mujacobian.rollout`.
      fallback: as in `rollout`.
    """
    controls = jnp.expand_dims(as_array("control", control), -2)
    states, sensordata = rollout(model, state, controls, threads=threads, fallback=fallback)
    return states[..., 1, :], sensordata[..., 0, :]


def rollout(
    model: mujoco.MjModel,
    state: ArrayLike,
    controls: ArrayLike,
    *,
    forces: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    mocap: ArrayLike | None = None,
    params: tuple[Parameters, ArrayLike] | None = None,
    checkpoint: int | None = None,
    threads: int | None = None,
    fallback: str | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Return the states `(T + 1, nq + nv + na)` and the sensordata `(T, ns)` of a rollout.

    The arguments are those of `mujacobian.rollout`. Results of a batch have a leading axis. The
    gradient of a quaternion is orthogonal to it. If a gradient contains finite differences because
    of fallback="fd", it warns with a `mujacobian.errors.DifferencedWarning`.
    """
    u = as_array("controls", controls)
    require_batch("controls", u.shape, ("T", model.nu))
    parameters, values = (None, None) if params is None else params
    every = 1 if checkpoint is None else count("checkpoint", checkpoint)
    require_fallback(fallback)
    host = HostRollout(model, parameters, every, thread_count(threads), fallback)
    given: dict[str, Any] = {
        "state": state,
        "controls": u,
        "forces": forces,
        "wrenches": wrenches,
        "mocap": mocap,
        "values": values,
    }
    T = u.shape[-2]
    inputs, axes = {}, {}
    for name, shape in host.shapes(T).items():
        if given[name] is not None:
            inputs[name] = as_array(name, given[name])
            require_batch(name, inputs[name].shape, shape)
            axes[name] = 0 if inputs[name].ndim > len(shape) else None
    run = _function(host, T)
    if 0 in axes.values():
        run = jax.vmap(run, in_axes=(axes,))
    return run(inputs)


def as_array(name: str, values: ArrayLike) -> jax.Array:
    """Return `values` as an array of double precision."""
    if jnp.result_type(float) != np.float64:
        raise PrecisionError(
            'mujacobian.jax needs double precision: jax.config.update("jax_enable_x64", True)'
        )
    if isinstance(values, jax.Array) and values.dtype == jnp.float32:
        raise ArgumentTypeError(
            f"{name} must have double precision, got float32: use {name}.astype(float)"
        )
    return jnp.asarray(values, dtype=jnp.float64)


def like(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    """Return a description of an array of double precision."""
    return jax.ShapeDtypeStruct(shape, np.float64)  # type: ignore[no-untyped-call]


def _function(host: HostRollout, T: int) -> Callable[[Inputs], tuple[jax.Array, jax.Array]]:
    """Return a function of the inputs with the states and sensordata, and its derivatives."""
    m = host.model
    rows = -(-T // host.every), mujoco.mj_stateSize(m, INTEGRATION)
    shapes = (T + 1, m.nq + m.nv + m.na), (T, m.nsensordata), rows
    results = tuple(map(like, shapes))

    @jax.custom_jvp
    def record(inputs: Inputs) -> Any:  # noqa: ANN401
        return call(host.simulate, results, inputs)

    @record.defjvp
    def push(primals: Any, tangents: Any) -> Any:  # noqa: ANN401
        made = record(*primals)
        states, sensordata = call(host.push, results[:2], *primals, *made, *tangents)
        return made, (states, sensordata, jnp.zeros_like(made[2]))

    @jax.custom_jvp
    def pull(inputs: Inputs, *arrays: jax.Array) -> Any:  # noqa: ANN401
        return call(host.pull_back, _same(inputs), inputs, *arrays)

    @pull.defjvp
    def pull_again(primals: Any, tangents: Any) -> Any:  # noqa: ANN401
        # the recorded states are functions of the inputs, whose change includes theirs
        inputs, *recorded, _, _ = primals
        curved = call(host.pull_twice, _same(inputs), *primals, tangents[0])
        turned = pull(inputs, *recorded, *tangents[-2:])
        return pull(*primals), jax.tree.map(jnp.add, curved, turned)

    def forward(inputs: Inputs) -> Any:  # noqa: ANN401
        made = record(inputs)
        return made[:2], (inputs, *made)

    def backward(residuals: Any, cotangents: Any) -> Any:  # noqa: ANN401
        return (pull(*residuals, *cotangents),)

    run = jax.custom_vjp(lambda inputs: record(inputs)[:2])
    run.defvjp(forward, backward)
    return run


def call(work: Callable[..., Any], results: Any, *arguments: Any) -> Any:  # noqa: ANN401
    """Return the results of `work`, which takes a batch, on the host."""
    return jax.pure_callback(flattened(work), results, *arguments, vmap_method="broadcast_all")


def _same(inputs: Inputs) -> Inputs:
    return {name: like(x.shape) for name, x in inputs.items()}
