"""One step whose state contains the samples of delayed actuators and sensors (ADJ-10)."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._history import Buffer, Channel, actuator_channels, sensor_channels
from mujacobian._linearization import Linearization, linearize_open_loop


def linearize_with_history(
    model: mujoco.MjModel, data: mujoco.MjData, *, sensors: bool, forces: bool, forward: bool
) -> Linearization:
    """Return the Jacobians of a step with respect to (q, v, act, samples)."""
    lin = linearize_open_loop(model, data, sensors, forces, forward, open_histories=True)
    actuators = actuator_channels(model)
    readers = sensor_channels(model) if sensors else []
    sizes = [channel.samples * channel.width for channel in (*actuators, *readers)]

    # the inputs (x, samples, u, f), each as rows of derivatives with respect to all of them
    widths = len(lin.A), sum(sizes), model.nu, model.nv if forces else 0
    ends = list(itertools.accumulate(widths))
    x, samples, u, f = np.split(np.eye(ends[-1]), ends[:-1])
    blocks = np.split(samples, list(itertools.accumulate(sizes)))[:-1]

    # the controls that are read, the next state, and the sensors without history
    control, recorded = u.copy(), []
    for channel, block in zip(actuators, blocks, strict=False):
        columns = channel.columns
        control[columns], after = _step(channel, data, block, u[columns])
        recorded.append(after)
    state = lin.A @ x + lin.B @ control
    if lin.Bf is not None:
        state += lin.Bf @ f
    values = None
    if lin.C is not None and lin.D is not None:
        values = lin.C @ x + lin.D @ control
        if lin.Df is not None:
            values += lin.Df @ f

        # the sensors that report samples
        computed = values.copy()
        for channel, block in zip(readers, blocks[len(actuators) :], strict=True):
            columns = channel.columns
            values[columns], after = _step(channel, data, block, computed[columns])
            recorded.append(after)

    made = np.concatenate([state, *recorded])
    return Linearization(
        A=_part(made, 0, ends[1]),
        B=_part(made, ends[1], ends[2]),
        C=None if values is None else _part(values, 0, ends[1]),
        D=None if values is None else _part(values, ends[1], ends[2]),
        Bf=_part(made, ends[2], ends[3]) if forces else None,
        Df=_part(values, ends[2], ends[3]) if forces and values is not None else None,
    )


def _step(channel: Channel, data: mujoco.MjData, block: Array, new: Array) -> tuple[Array, Array]:
    """Return what the step reads, and the samples after it, from those before it and a new one."""
    n = channel.samples
    every = np.concatenate([block.reshape(n, *new.shape), new[None]])  # from -n to 0
    buffer = Buffer(channel, data.history)
    read = sum(weight * every[n + k] for k, weight in buffer.step(data.time, 0).items())
    after = every[[n + k for k in buffer.sources]]
    return np.asarray(read), after.reshape(block.shape)


def _part(rows: Array, first: int, end: int) -> Array:
    return np.ascontiguousarray(rows[:, first:end])
