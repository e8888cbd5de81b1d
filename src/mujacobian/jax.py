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
from functools import partial
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import count
from mujacobian._handle import handle
from mujacobian._host import flattened
from mujacobian._jax_primitives import record
from mujacobian._parameters import Parameters
from mujacobian.errors import ArgumentError, ArgumentTypeError, MissingPackageError, PrecisionError

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
    forces: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    mocap: ArrayLike | None = None,
    params: tuple[Parameters, ArrayLike] | None = None,
    substeps: int = 1,
    threads: int | None = None,
    fallback: str | None = None,
) -> tuple[jax.Array, jax.Array]:
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
    parameters, values = (None, None) if params is None else params
    key = handle(model, parameters, checkpoint, threads, fallback)
    given = {
        "state": state,
        "controls": controls,
        "forces": forces,
        "wrenches": wrenches,
        "mocap": mocap,
        "values": values,
    }
    inputs = {name: as_array(name, x) for name, x in given.items() if x is not None}
    host = key.host()
    host.require_shapes(inputs)
    ranks = {name: len(shape) for name, shape in host.shapes("T").items()}
    axes = tuple(0 if x.ndim > ranks[name] else None for name, x in inputs.items())
    run = partial(record.bind, handle=key, names=tuple(inputs))
    if 0 in axes:
        run = jax.vmap(run, in_axes=axes)
    states, sensordata, _ = run(*inputs.values())
    return states, sensordata


def repeated(name: str, values: ArrayLike, rank: int, times: int) -> jax.Array:
    """Return an input of one step as that of several steps, with an axis before the last `rank`."""
    array = as_array(name, values)
    if array.ndim not in (rank, rank + 1):
        raise ArgumentError(f"{name} must have {rank} or {rank + 1} axes, got {array.ndim}")
    longer = jnp.expand_dims(array, -rank - 1)
    return jnp.repeat(longer, times, axis=-rank - 1)


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


def call(work: Callable[..., Any], results: Any, *arguments: Any) -> Any:  # noqa: ANN401
    """Return the results of `work`, which takes a batch, on the host."""
    return jax.pure_callback(flattened(work), results, *arguments, vmap_method="broadcast_all")
