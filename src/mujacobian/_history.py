"""Histories of delayed actuators and sensors, which couple the steps of a trajectory (ADJ-9).

A buffer of MuJoCo holds the last samples of a control or a sensor with the times at which they were
recorded. A step reads a linear combination of samples, whose weights depend on times only.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian._arguments import Array

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION
HOLD, LINEAR = 0, 1  # interpolation of a buffer; all other numbers: cubic
MOST_SAMPLES = 4  # that one value is interpolated between

# samples by their source with their weights: the number of the step that recorded them, or -n .. -1
# for the n samples that a buffer holds at first, the oldest first
Weights = dict[int, float]


@dataclass(frozen=True)
class Channel:
    """A delayed actuator, or a sensor with a delay or an interval.

    Attributes:
      columns: its controls, or its values in sensordata.
      address: the place of its buffer in `mjData.history`.
      samples: the number of samples.
      order: how the buffer interpolates.
      delay: the delay in seconds.
      interval: the time between two samples of a sensor; 0: it is recorded in every step.
    """

    columns: slice
    address: int
    samples: int
    order: int
    delay: float
    interval: float

    @property
    def width(self) -> int:
        """The number of values of a sample."""
        return int(self.columns.stop - self.columns.start)


def actuator_channels(model: mujoco.MjModel) -> list[Channel]:
    """Return the delayed actuators of a model."""
    return [
        Channel(
            slice(first, first + int(number)),
            int(model.actuator_historyadr[k]),
            int(model.actuator_history[k, 0]),
            int(model.actuator_history[k, 1]),
            float(model.actuator_delay[k]),
            0.0,
        )
        for k in np.flatnonzero(model.actuator_delay)
        for first, number in [(int(model.actuator_ctrladr[k]), model.actuator_ctrlnum[k])]
    ]


def sensor_channels(model: mujoco.MjModel) -> list[Channel]:
    """Return the sensors of a model that may report a sample of their buffer."""
    interval = model.sensor_interval[:, 0]
    is_read = (model.sensor_history[:, 0] > 0) & ((model.sensor_delay > 0) | (interval > 0))
    return [
        Channel(
            slice(int(model.sensor_adr[k]), int(model.sensor_adr[k] + model.sensor_dim[k])),
            int(model.sensor_historyadr[k]),
            int(model.sensor_history[k, 0]),
            int(model.sensor_history[k, 1]),
            float(model.sensor_delay[k]),
            float(interval[k]),
        )
        for k in np.flatnonzero(is_read)
    ]


class Buffer:
    """The times and sources of the samples of a channel, the oldest first, as in MuJoCo.

    Args:
      channel: the actuator or sensor.
      history: the field `history` of an `MjData`.
    """

    def __init__(self, channel: Channel, history: Array) -> None:
        n = channel.samples
        self.channel = channel
        self.last_tick, cursor = history[channel.address : channel.address + 2]
        times = history[channel.address + 2 : channel.address + 2 + n]
        self.times = [float(time) for time in np.roll(times, -1 - int(cursor))]
        self.sources = list(range(-n, 0))

    def step(self, now: float, source: int) -> Weights:
        """Return what a step at this time reads, and record its own value if it is due."""
        channel = self.channel
        is_due = channel.interval <= 0 or self.last_tick + channel.interval <= now
        if channel.delay > 0 or not is_due:
            weights = self._read(now - channel.delay)
        else:
            weights = {source: 1.0}
        if is_due:
            if channel.interval > 0:
                self.last_tick += channel.interval
            self._insert(now, source)
        return weights

    def _read(self, time: float) -> Weights:
        """Return the samples at a time, which is held constant beyond the first and the last."""
        times, sources, least = self.times, self.sources, mujoco.mjMINVAL
        if time <= times[0] + least:
            return {sources[0]: 1.0}
        if time >= times[-1] - least:
            return {sources[-1]: 1.0}
        k = bisect.bisect_left(times, time)
        if abs(time - times[k]) < least:
            return {sources[k]: 1.0}
        width = times[k] - times[k - 1]
        part = (time - times[k - 1]) / width
        if self.channel.order == HOLD:
            return {sources[k - 1]: 1.0}
        if self.channel.order == LINEAR:
            return {sources[k - 1]: 1 - part, sources[k]: part}

        # cubic: values and slopes at both ends; the slopes are differences over two intervals
        weights = [0.0, 1 - part**2 * (3 - 2 * part), part**2 * (3 - 2 * part), 0.0]
        if k > 1:
            slope = part * (1 - part) ** 2 * width / (times[k] - times[k - 2])
            weights[0] -= slope
            weights[2] += slope
        if k + 1 < len(times):
            slope = -(part**2) * (1 - part) * width / (times[k + 1] - times[k - 1])
            weights[1] -= slope
            weights[3] += slope
        places = range(k - 2, k + 2)
        return {sources[j]: w for j, w in zip(places, weights, strict=True) if w and j < len(times)}

    def _insert(self, time: float, source: int) -> None:
        """Record a sample: it replaces the one at the same time, or else the oldest one."""
        k = bisect.bisect_left(self.times, time)
        if k < len(self.times) and abs(time - self.times[k]) < mujoco.mjMINVAL:
            self.sources[k] = source
            return
        k = max(k, 1)
        self.times[:k] = [*self.times[1:k], time]
        self.sources[:k] = [*self.sources[1:k], source]


@dataclass(frozen=True)
class Reading:
    """The values of one channel that all steps of rollouts read.

    Attributes:
      columns: of the channel.
      steps: `(n, T, MOST_SAMPLES)`, the steps whose values are read.
      weights: the same shape; 0 for samples that are older than the rollout.
    """

    columns: slice
    steps: Array
    weights: Array

    def push(self, values: Array) -> None:
        """Replace the values of all steps by those that the steps read: `(n, T, columns, ...)`."""
        for k, (steps, weights) in enumerate(zip(self.steps, self.weights, strict=True)):
            taken = values[k, :, self.columns][steps]
            values[k, :, self.columns] = np.einsum("tj,tj...->t...", weights, taken)

    def pull(self, derivatives: Array) -> None:
        """Replace derivatives with respect to the values read by those with respect to values."""
        for k, (steps, weights) in enumerate(zip(self.steps, self.weights, strict=True)):
            read = derivatives[k, :, self.columns].copy()
            derivatives[k, :, self.columns] = 0
            np.add.at(
                derivatives[k, :, self.columns], steps, weights[:, :, None] * read[:, None, :]
            )


class Histories:
    """The histories that couple the steps of a batch of rollouts.

    Args:
      model: the model that was simulated.
      kept: `(n, rows, size)`, rows of mjSTATE_INTEGRATION, the first one before the first step.
      steps: the number of steps.
      window: as in `Trajectory.gradient`: no step reads a value from an earlier window.
    """

    def __init__(
        self, model: mujoco.MjModel, kept: Array, steps: int, window: int | None = None
    ) -> None:
        self.controls = list(_readings(model, actuator_channels(model), kept, steps, window))
        self.sensors = list(_readings(model, sensor_channels(model), kept, steps, window))

    def push_controls(self, changes: Array) -> Array:
        """Return the changes of the controls that actuators read."""
        return _changed(self.controls, changes, Reading.push)

    def pull_controls(self, derivatives: Array) -> Array:
        """Return derivatives with respect to controls from those with respect to the ones read."""
        return _changed(self.controls, derivatives, Reading.pull)

    def push_sensors(self, changes: Array) -> Array:
        """Return the changes of sensordata from those of the sensors without history."""
        return _changed(self.sensors, changes, Reading.push)

    def pull_sensors(self, derivatives: Array) -> Array:
        """Return derivatives with respect to sensors without history."""
        return _changed(self.sensors, derivatives, Reading.pull)


def _changed(
    readings: list[Reading], values: Array, change: Callable[[Reading, Array], None]
) -> Array:
    """Return the values after every reading has changed its columns of a copy of them."""
    if not readings:
        return values
    made = values.copy()
    for reading in readings:
        change(reading, made)
    return made


def _readings(
    model: mujoco.MjModel, channels: list[Channel], kept: Array, steps: int, window: int | None
) -> Iterator[Reading]:
    """Yield what is read of every channel. Channels with the same times share the work."""
    if not channels or not steps:
        return
    rows = [split_state(model, row[0]) for row in kept]
    found: dict[object, tuple[Array, Array]] = {}
    for channel in channels:
        parts = []
        for now, history in rows:
            buffer = Buffer(channel, history)
            timing = channel.order, channel.delay, channel.interval, now, buffer.last_tick
            key = (*timing, *buffer.times)
            if key not in found:
                found[key] = _weights(buffer, now, model.opt.timestep, steps, window)
            parts.append(found[key])
        yield Reading(channel.columns, *(np.array(part) for part in zip(*parts, strict=True)))


def _weights(
    buffer: Buffer, now: float, timestep: float, steps: int, window: int | None
) -> tuple[Array, Array]:
    """Return the steps that are read in every step, and their weights."""
    sources = np.zeros((steps, MOST_SAMPLES), dtype=int)
    weights = np.zeros((steps, MOST_SAMPLES))
    for t in range(steps):
        read = [(k, w) for k, w in buffer.step(now, t).items() if k >= 0]
        for place, (k, w) in enumerate(read):
            if window is None or k // window == t // window:
                sources[t, place], weights[t, place] = k, w
        now += timestep  # as mj_step adds it
    return sources, weights


def split_state(model: mujoco.MjModel, row: Array) -> tuple[float, Array]:
    """Return the time and the histories of a row of mjSTATE_INTEGRATION."""
    history, time = np.empty(model.nhistory), np.empty(1)
    row = np.ascontiguousarray(row)
    mujoco.mj_extractState(model, row, INTEGRATION, time, mujoco.mjtState.mjSTATE_TIME)
    mujoco.mj_extractState(model, row, INTEGRATION, history, mujoco.mjtState.mjSTATE_HISTORY)
    return float(time[0]), history
