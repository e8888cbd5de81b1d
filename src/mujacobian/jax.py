"""Steps and rollouts as JAX functions, with exact gradients: `pip install 'mujacobian[jax]'`.

They work under `jit`, `grad` and `vmap`. A `vmap` becomes a batch in parallel threads. Arrays have
double precision, which needs `jax.config.update("jax_enable_x64", True)`. Gradients with respect to
the state and the controls can be differentiated again in forward mode, as `jax.hessian` does, if
`mujacobian.hessian` covers the model.

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

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, count, require_batch
from mujacobian._differenced import require_fallback, warn
from mujacobian._gradient import NO_MOCAP_GRADIENT
from mujacobian._inputs import Inputs as RolloutInputs
from mujacobian._parameters import Parameters
from mujacobian._rollout import INTEGRATION, apply, core_poses
from mujacobian._rollout import rollout as simulate
from mujacobian._threads import thread_count
from mujacobian._trajectory import Trajectory
from mujacobian.errors import (
    ArgumentTypeError,
    MissingPackageError,
    PrecisionError,
    UnsupportedFeatureError,
)

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise MissingPackageError("mujacobian.jax needs JAX: pip install 'mujacobian[jax]'") from error

__all__ = ["rollout", "step"]

Inputs = dict[str, Any]


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
    parameters, values = (None, None) if params is None else params
    u = as_array("controls", controls)
    require_batch("controls", u.shape, ("T", model.nu))
    T = u.shape[-2]
    given = {
        "state": (state, (model.nq + model.nv + model.na,)),
        "controls": (u, (T, model.nu)),
        "forces": (forces, (T, model.nv)),
        "wrenches": (wrenches, (T, model.nbody, 6)),
        "mocap": (mocap, (T, model.nmocap, 7)),
        "values": (values, () if parameters is None else (len(parameters),)),
    }
    inputs, axes = {}, {}
    for name, (array, shape) in given.items():
        if array is not None:
            inputs[name] = as_array(name, array)
            require_batch(name, inputs[name].shape, shape)
            axes[name] = 0 if inputs[name].ndim > len(shape) else None
    every = 1 if checkpoint is None else count("checkpoint", checkpoint)
    threads = thread_count(threads)
    require_fallback(fallback)
    run = _Rollout(model, parameters, every, threads, fallback).function(T)
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


def _like(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, np.float64)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class _Rollout:
    """A rollout of T steps for JAX: pure functions of arrays, which JAX calls on the host."""

    model: mujoco.MjModel
    parameters: Parameters | None
    every: int
    threads: int
    fallback: str | None

    def function(self, T: int) -> Callable[[Inputs], tuple[jax.Array, jax.Array]]:
        """Return a function of the inputs with the states and sensordata, and its gradient."""
        m = self.model
        rows = -(-T // self.every), mujoco.mj_stateSize(m, INTEGRATION)
        shapes = (T + 1, m.nq + m.nv + m.na), (T, m.nsensordata), rows
        results = tuple(map(_like, shapes))

        @jax.custom_jvp
        def record(inputs: Inputs) -> Any:  # noqa: ANN401
            return _call(self.simulate, results, inputs)

        @record.defjvp
        def push(primals: Any, tangents: Any) -> Any:  # noqa: ANN401
            made = record(*primals)
            states, sensordata = _call(self.push, results[:2], *primals, *made, *tangents)
            return made, (states, sensordata, jnp.zeros_like(made[2]))

        @jax.custom_jvp
        def pull(inputs: Inputs, *arrays: jax.Array) -> Any:  # noqa: ANN401
            return _call(self.pull_back, _same(inputs), inputs, *arrays)

        @pull.defjvp
        def pull_again(primals: Any, tangents: Any) -> Any:  # noqa: ANN401
            # the recorded states are functions of the inputs, whose change includes theirs
            moved = tangents[0], *tangents[-2:]
            return pull(*primals), _call(self.pull_twice, _same(primals[0]), *primals, *moved)

        def forward(inputs: Inputs) -> Any:  # noqa: ANN401
            made = record(inputs)
            return made[:2], (inputs, *made)

        def backward(residuals: Any, cotangents: Any) -> Any:  # noqa: ANN401
            return (pull(*residuals, *cotangents),)

        run = jax.custom_vjp(lambda inputs: record(inputs)[:2])
        run.defvjp(forward, backward)
        return run

    def simulate(self, inputs: Inputs) -> tuple[Array, ...]:
        """Return the states and sensordata of a batch, and the recorded states for gradients."""
        made = []
        for part in _parts(inputs):
            given = {name: x[part] for name, x in inputs.items()}
            trajectory = simulate(
                self.model,
                params=self._params(given.pop("values", None)),
                checkpoint=self.every,
                threads=self.threads,
                **given,
            )
            made.append((trajectory.states, trajectory.sensordata, trajectory.kept))
        return tuple(np.concatenate(results) for results in zip(*made, strict=True))

    def push(self, inputs: Inputs, *arrays: Any) -> tuple[Array, ...]:  # noqa: ANN401
        """Return the changes of states and sensordata of a batch along a change of the inputs."""
        *recorded, moved = arrays
        made = []
        for part in _parts(inputs):
            trajectory = self._trajectory(inputs, part, *recorded)
            made.append(trajectory.jvp(_direction(moved, part)))
        return tuple(np.concatenate(results) for results in zip(*made, strict=True))

    def pull_back(self, inputs: Inputs, *arrays: Array) -> Inputs:
        """Return the gradients of a batch by the name of the input."""
        *recorded, d_states, d_sensors = arrays
        made = []
        for part in _parts(inputs):
            trajectory = self._trajectory(inputs, part, *recorded)
            gradient = vars(trajectory.gradient(d_states[part], _sensed(d_sensors[part])))
            warn(gradient["differenced"])
            gradient["values"] = gradient["params"]
            if "mocap" in inputs and gradient["mocap"] is None:
                raise UnsupportedFeatureError(*NO_MOCAP_GRADIENT)
            made.append(gradient)
        return {name: np.concatenate([gradient[name] for gradient in made]) for name in inputs}

    def pull_twice(self, inputs: Inputs, *arrays: Any) -> Inputs:  # noqa: ANN401
        """Return the changes of the gradients of a batch along changes of inputs and cotangents."""
        *recorded, d_states, d_sensors, moved, d_states_change, d_sensors_change = arrays
        made = []
        for part in _parts(inputs):
            trajectory = self._trajectory(inputs, part, *recorded)
            direction = _direction(moved, part)
            curved = trajectory.hvp(direction, d_states[part], _sensed(d_sensors[part]))
            turned = trajectory.gradient(d_states_change[part], _sensed(d_sensors_change[part]))
            made.append((curved.state + turned.state, curved.controls + turned.controls))
        state, controls = (np.concatenate(results) for results in zip(*made, strict=True))
        return {"state": state, "controls": controls}

    def _trajectory(
        self, inputs: Inputs, part: slice, states: Array, sensordata: Array, kept: Array
    ) -> Trajectory:
        """Return the trajectory of a part of a batch that has been simulated."""
        given = {name: x[part] for name, x in inputs.items()}
        del given["state"]  # it is in `kept`
        params = self._params(given.pop("values", None))
        if "mocap" in given:
            given["mocap"] = core_poses(given["mocap"])
        if params is not None:
            params = apply(self.model, params)
        return Trajectory(
            self.model if params is None else params[0].model,
            states[part],
            sensordata[part],
            RolloutInputs(**given),
            kept[part],
            self.every,
            params,
            self.threads,
            self.fallback,
        )

    def _params(self, values: Array | None) -> tuple[Parameters, Array] | None:
        """Return the parameters and their values, which are the same in all rows."""
        return None if values is None or self.parameters is None else (self.parameters, values[0])


def _call(work: Callable[..., Any], results: Any, *arguments: Any) -> Any:  # noqa: ANN401
    """Return the results of `work`, which takes a batch, on the host."""
    return jax.pure_callback(_flattened(work), results, *arguments, vmap_method="broadcast_all")


def _same(inputs: Inputs) -> Inputs:
    return {name: _like(x.shape) for name, x in inputs.items()}


def _sensed(d_sensors: Array) -> Array | None:
    """Return the derivatives by sensors; None if no sensor needs a derivative."""
    return d_sensors if d_sensors.any() else None


def _direction(moved: Inputs, part: slice) -> tuple[Array, Array]:
    """Return the changes of the first states and of the controls of a part of a batch."""
    for name in moved:
        if name not in ("state", "controls"):
            raise UnsupportedFeatureError(name, "second derivatives of rollouts")
    return moved["state"][part], moved["controls"][part]


def _parts(inputs: Inputs) -> list[slice]:
    """Return the parts of a batch that have the same parameters."""
    n, values = len(inputs["controls"]), inputs.get("values")
    if values is None or (values == values[:1]).all():
        return [slice(0, n)]
    return [slice(k, k + 1) for k in range(n)]


def _flattened(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for any number of batch axes from `work`, which takes one."""

    def call(inputs: Inputs, *arrays: Any) -> Any:  # noqa: ANN401
        lead = inputs["controls"].shape[:-2]

        def flat(x: ArrayLike) -> Array:
            array = np.asarray(x)
            return array.reshape(math.prod(lead), *array.shape[len(lead) :])

        made = work(*jax.tree.map(flat, (inputs, *arrays)))
        return jax.tree.map(lambda x: x.reshape(*lead, *x.shape[1:]), made)

    return call
