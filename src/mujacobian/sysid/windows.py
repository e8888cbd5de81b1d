"""Division of a log into windows."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, shaped
from mujacobian._inputs import Inputs
from mujacobian._manifold import tangent_size
from mujacobian._rollout import prepare
from mujacobian.errors import ArgumentError
from mujacobian.sysid.first_state import FirstState
from mujacobian.sysid.log import Log
from mujacobian.sysid.measurement import Measurement
from mujacobian.sysid.reading import Reading
from mujacobian.sysid.unknowns import Unknowns
from mujacobian.sysid.window import Window


def windows(
    unknowns: Unknowns, name: str, log: Log, length: int | None, *, estimate: bool
) -> list[Window]:
    """Return the windows of a log, each of `length` steps except for a shorter last one.

    length: number of steps; None for one window with the whole log.
    estimate: whether the first state of the first window is unknown; those of the others always
        are.
    """
    model = unknowns.parameters.model
    starts, inputs, _ = prepare(model, log.state, log.controls, log.forces, log.wrenches, log.mocap)
    T = inputs.controls.shape[1]
    length = T if length is None else length
    if length < T:
        _require_plain_state(model)
    times = _times(model, name, log, T)
    is_plain = log.sensor_times is None and unknowns.calibration is None
    sensors = _sensors(model, name, log, len(times))
    states = _states(model, name, log, T)
    if not sensors.size + states.size:
        raise ArgumentError(f"{name} has no measurement: neither sensordata nor states")
    made = []
    for first in range(0, T, length):
        last = min(first + length, T)
        free = np.full(tangent_size(model), np.inf)
        given = _first_noise(name, log.first_state_noise, free) if estimate else np.zeros_like(free)
        start = starts[0].copy()
        start[0] += first * model.opt.timestep
        # readings after the last step are interpolated between it and the next one
        end = last if is_plain else min(last + 1, T)
        if is_plain:
            readings, reading = sensors.cut(first, last, rows=last - first), None
        else:
            readings, reading = _readings(unknowns, sensors, times, first, last, is_end=last == T)
        made.append(
            Window(
                unknowns,
                FirstState(model, start, free if first else given),
                _cut(inputs, first, end),
                readings,
                # the state between two windows belongs to the second one
                states.cut(first, last + (last == T), rows=end - first + 1),
                reading,
                last - first,
            )
        )
    if not any(window.sensors.size + window.states.size for window in made):
        raise ArgumentError(f"{name} has no measurement after the longest delay of its sensors")
    return made


def _times(model: mujoco.MjModel, name: str, log: Log, steps: int) -> Array:
    """Return the times of all readings; raise if the simulation does not contain them."""
    h = float(model.opt.timestep)
    if log.sensor_times is None:
        return h * np.arange(steps, dtype=np.float64)
    times = np.asarray(log.sensor_times, np.float64)
    if len(times) and times[-1] > (steps - 1 + 1e-6) * h:
        raise ArgumentError(
            f"{name}: sensor_times must end at the last step, {(steps - 1) * h:g} s, got"
            f" {times[-1]:g} s: append controls"
        )
    return times


def _readings(
    unknowns: Unknowns, sensors: Measurement, times: Array, first: int, last: int, *, is_end: bool
) -> tuple[Measurement, Reading]:
    """Return the readings between two steps, without those that may be older than the first one."""
    h = unknowns.parameters.model.opt.timestep
    begin, end = np.searchsorted(times, np.array([first, last]) * h)
    end = len(times) if is_end else end
    own = times[begin:end] - first * h
    part = sensors.cut(begin, end, rows=end - begin)
    if unknowns.calibration is not None:
        early = own[:, None] < unknowns.calibration.dead_time()
        part = Measurement(np.where(early, np.nan, part.values), part.noise, part.known)
    return part, Reading(own, h, unknowns.calibration)


def _require_plain_state(model: mujoco.MjModel) -> None:
    """Raise for models with states beyond (qpos, qvel, act), which are unknown inside a log."""
    full = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    time = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_TIME)
    if full != time + model.nq + model.nv + model.na:
        raise ArgumentError(
            "window: the model has a state beyond qpos, qvel and act (delays, plugins or"
            " plasticity), which is not known where a window begins: use window=None"
        )


def _cut(inputs: Inputs, first: int, last: int) -> Inputs:
    """Return the inputs of steps first .. last-1."""
    parts = inputs.rows(0, first, last).values()
    u, f, w, p = (None if part is None else np.ascontiguousarray(part)[None] for part in parts)
    assert u is not None
    return Inputs(u, f, w, p)


def _sensors(model: mujoco.MjModel, name: str, log: Log, rows: int) -> Measurement:
    noise = np.repeat(model.sensor_noise, model.sensor_dim)
    known = noise > 0
    noise = np.where(known, noise, 1.0)
    if log.sensor_noise is not None:
        noise = shaped(f"{name}: sensor_noise", log.sensor_noise, noise.shape)
        known = np.ones(len(noise), bool)
    values = _values(f"{name}: sensordata", log.sensordata, (rows, len(noise)))
    return Measurement(values, noise, known)


def _states(model: mujoco.MjModel, name: str, log: Log, rows: int) -> Measurement:
    noise = np.ones(model.nq + model.nv + model.na)
    known = np.full(len(noise), log.state_noise is not None)
    if log.state_noise is not None:
        noise = shaped(f"{name}: state_noise", log.state_noise, noise.shape)
    values = _values(f"{name}: states", log.states, (rows + 1, len(noise)))
    return Measurement(values, noise, known)


def _values(name: str, values: ArrayLike | None, shape: tuple[int, int]) -> Array:
    return np.full(shape, np.nan) if values is None else shaped(name, values, shape, finite=False)


def _first_noise(name: str, given: ArrayLike | None, default: Array) -> Array:
    if given is None:
        return default
    return shaped(f"{name}: first_state_noise", given, default.shape, finite=False)
