"""Simulation of many steps, recorded for gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, batched, count, require_data, require_model, shaped
from mujacobian._differenced import require_fallback
from mujacobian._inputs import Inputs
from mujacobian._manifold import require_rotations
from mujacobian._parameters import Parameters
from mujacobian._parts import Model
from mujacobian._product import bind
from mujacobian._threads import borrowed, each, thread_count
from mujacobian._trajectory import Trajectory
from mujacobian._workers import Distribution, Workers
from mujacobian.errors import ArgumentError, MujacobianError

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION


class DivergedRolloutError(MujacobianError):
    """A rollout diverges: MuJoCo detected NaN or huge values."""


def rollout(
    model: mujoco.MjModel,
    state: mujoco.MjData | ArrayLike,
    controls: ArrayLike,
    *,
    forces: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    mocap: ArrayLike | None = None,
    params: Parameters | tuple[Parameters, ArrayLike] | None = None,
    checkpoint: int | None = None,
    threads: int | None = None,
    workers: Workers | None = None,
    fallback: str | None = None,
) -> Trajectory:
    """Simulate T steps and return the trajectory, which has methods for gradients.

    Args:
      model: any model that MuJoCo loads. Do not change it before you compute gradients.
      state: `(nq + nv + na,)`, a row of (qpos, qvel, act), with everything else as after
        `mj_resetData`; or an `MjData` with all its inputs, which is not changed.
      controls: `(T, nu)`.
      forces: `(T, nv)`, `qfrc_applied` of every step.
      wrenches: `(T, nbody, 6)`, `xfrc_applied` of every step.
      mocap: `(T, nmocap, 7)`, positions of mocap bodies, and their quaternions, which are
        normalized to q / |q|.
      params: parameters of the model whose gradients you need: `mujacobian.Parameters`, or a pair
        of parameters and values. With values, a copy of the model with these values is simulated.
      checkpoint: keep every k-th state only, and simulate the steps between them again for a
        gradient. The gradient is bitwise the same and needs one more simulation; memory grows with
        T / k + k instead of T. By default every state is kept.
      threads: number of threads, by default one per available core. Results do not depend on it.
      workers: a map-like callable, such as the method `map` of an executor, that distributes the
        rollouts of a batch over processes or machines, also for the methods of the result; by
        default threads of this process are used. Results do not depend on it. If rollouts fail, the
        others end, and `mujacobian.errors.FailedItemsError` names those that failed.
      fallback: "fd" differentiates a step without an exact derivative by finite differences in
        `gradient` and `jacobian`, whose results list it in `differenced`. It does not apply to
        gradients with respect to `params` and `mocap`. By default None.

    All arrays, or some of them, may have a leading axis for a batch of n. Then n rollouts are
    simulated in parallel, and all results have this leading axis. If MuJoCo resets a rollout
    because it diverges, `MujacobianError` names the step.

    Example:
      >>> import mujoco, mujacobian, numpy as np
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint name='pivot' axis='0 1 0'/><geom size='.1'/></body>"
      ...     "</worldbody><actuator><motor joint='pivot'/></actuator></mujoco>")
      >>> mujacobian.rollout(model, [0, 0], np.ones((50, 1))).states.shape
      (51, 2)
    """
    require_model(model)
    chosen = None if params is None else apply(model, params)
    if chosen is not None:
        model = chosen[0].model
    every = 1 if checkpoint is None else count("checkpoint", checkpoint)
    threads = thread_count(threads)
    require_fallback(fallback)

    starts, inputs, n = prepare(model, state, controls, forces, wrenches, mocap)
    distribution = None if workers is None else Distribution(workers, (model, chosen))
    if distribution is None or n is None:
        made = _simulate(model, starts, inputs, every, chosen, threads, is_batch=n is not None)
    else:
        made = _distribute(model, starts, inputs, every, chosen, distribution)
    return made if fallback is None else replace(made, fallback=fallback)


def prepare(
    model: mujoco.MjModel,
    state: mujoco.MjData | ArrayLike,
    controls: ArrayLike,
    forces: ArrayLike | None,
    wrenches: ArrayLike | None,
    mocap: ArrayLike | None,
) -> tuple[Array, Inputs, int | None]:
    """Return the arguments of `rollout` in the layout of the core, and the batch size, if any."""
    u = batched("controls", controls, ("T", model.nu))
    T = u.shape[-2]
    f = None if forces is None else batched("forces", forces, (T, model.nv))
    w = None if wrenches is None else batched("wrenches", wrenches, (T, model.nbody, 6))
    p = None if mocap is None else core_poses(batched("mocap", mocap, (T, model.nmocap, 7)))
    first = first_states(model, state)
    n = batch_size(
        {
            "state": (first, 1),
            "controls": (u, 2),
            "forces": (f, 2),
            "wrenches": (w, 3),
            "mocap": (p, 2),
        }
    )

    def spread(array: Array, rank: int) -> Array:
        """Return the array with a leading axis for the batch."""
        return np.broadcast_to(array, (1 if n is None else n, *array.shape[-rank:]))

    inputs = Inputs(
        spread(u, 2),
        None if f is None else spread(f, 2),
        None if w is None else spread(w, 3),
        None if p is None else spread(p, 2),
    )
    return spread(first, 1), inputs, n


def _simulate(
    model: mujoco.MjModel,
    starts: Array,
    inputs: Inputs,
    every: int,
    params: tuple[Parameters, Array] | None,
    threads: int,
    *,
    is_batch: bool,
) -> Trajectory:
    n, T = inputs.controls.shape[:2]
    states = np.empty((n, T + 1, model.nq + model.nv + model.na))
    sensordata = np.empty((n, T, model.nsensordata))
    kept = np.empty((n, -(-T // every), starts.shape[-1]))

    def simulate(k: int, data: mujoco.MjData) -> None:
        taken = _core.simulate_into(
            model,
            data,
            state=starts[k],
            steps=T,
            **inputs.rows(k, 0, T),
            every=every,
            start=kept[k],
            states=states[k],
            sensors=sensordata[k],
        )
        if taken < T:
            which = f"rollout {k}" if is_batch else "the rollout"
            raise DivergedRolloutError(
                f"{which} diverges in step {taken}: MuJoCo detected NaN or huge values and reset it"
            )

    each(model, n, threads, simulate)
    if not is_batch:
        states, sensordata = states[0], sensordata[0]
    return Trajectory(model, states, sensordata, inputs, kept, every, params, threads)


def _distribute(
    model: mujoco.MjModel,
    starts: Array,
    inputs: Inputs,
    every: int,
    params: tuple[Parameters, Array] | None,
    distribution: Distribution,
) -> Trajectory:
    """Simulate a batch by workers."""

    def finish(k: int, made: tuple[Array, Array, Array]) -> Trajectory:
        states, sensordata, kept = made
        return Trajectory(model, states, sensordata, inputs.one(k), kept, every, params, 1)

    items = [(starts[k : k + 1], inputs.one(k), every) for k in range(len(starts))]
    parts = distribution.run(_simulate_one, items, "rollout", model, finish)
    return Trajectory(
        model,
        np.stack([part.states for part in parts]),
        np.stack([part.sensordata for part in parts]),
        inputs,
        np.concatenate([part.kept for part in parts]),
        every,
        params,
        1,
        distribution=distribution,
    )


def _simulate_one(content: Model, item: tuple[Array, Inputs, int]) -> tuple[Array, Array, Array]:
    """Return the states, the sensors and the kept states of one rollout; runs in a worker."""
    starts, inputs, every = item
    made = _simulate(content[0], starts, inputs, every, None, 1, is_batch=False)
    return made.states, made.sensordata, made.kept


def apply(
    model: mujoco.MjModel, params: Parameters | tuple[Parameters, ArrayLike]
) -> tuple[Parameters, Array]:
    """Return the parameters bound to a copy of the model with their values, and these values."""
    parameters, values = params if isinstance(params, tuple) else (params, None)
    here = bind(parameters, model)
    chosen = here.values if values is None else shaped("params", values, (len(here),))
    return bind(parameters, here.apply(chosen)), chosen


def first_states(model: mujoco.MjModel, state: mujoco.MjData | ArrayLike) -> Array:
    """Return the first states as rows of mjSTATE_INTEGRATION."""
    size = mujoco.mj_stateSize(model, INTEGRATION)
    if isinstance(state, mujoco.MjData):
        require_data("state", model, state)
        require_rotations(model, state.qpos)
        first = np.empty(size)
        mujoco.mj_getState(model, state, first, INTEGRATION)
        return first
    rows = batched("state", state, (model.nq + model.nv + model.na,))
    require_rotations(model, rows)
    starts = np.empty((*rows.shape[:-1], size))
    with borrowed(model) as data:
        mujoco.mj_resetData(model, data)
        for row, start in zip(np.atleast_2d(rows), np.atleast_2d(starts), strict=True):
            data.qpos, data.qvel, data.act = np.split(row, [model.nq, model.nq + model.nv])
            mujoco.mj_getState(model, data, start, INTEGRATION)
    return starts


def batch_size(arrays: Mapping[str, tuple[Any, int]]) -> int | None:
    """Return the batch size of the arrays that have more axes than their rank; None if none has."""
    sizes = {
        name: len(array)
        for name, (array, rank) in arrays.items()
        if array is not None and array.ndim > rank
    }
    if len(set(sizes.values())) > 1:
        text = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise ArgumentError(f"batches must be of one size, got {text}")
    return next(iter(sizes.values()), None)


def core_poses(poses: Array) -> Array:
    """Return rows of all positions, then all quaternions, as in mjSTATE_INTEGRATION."""
    if (np.linalg.norm(poses[..., 3:], axis=-1) < mujoco.mjMINVAL).any():
        raise ArgumentError("mocap has a quaternion of length 0")
    lead = poses.shape[:-2]
    parts = poses[..., :3].reshape(*lead, -1), poses[..., 3:].reshape(*lead, -1)
    return np.ascontiguousarray(np.concatenate(parts, axis=-1))
