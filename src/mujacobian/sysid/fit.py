"""The fit of a log: its readings next to those of the identified model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._summary import summarize
from mujacobian.sysid.window import Point, Window


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """Readings of the sensors of a log, measured and simulated.

    Attributes:
      names: names of the columns, such as `gyro[2]`.
      times: times of the rows in seconds after the first state, `(m,)`.
      measured: measured readings, `(m, ns)`; NaN if missing or not used.
      predicted: readings of the identified model, `(m, ns)`, with NaN in the same places.
      noise: standard deviations of the columns, `(ns,)`.
    """

    names: tuple[str, ...]
    times: Array
    measured: Array
    predicted: Array
    noise: Array

    __repr__ = summarize

    @property
    def residuals(self) -> Array:
        """Predicted minus measured readings, in units of the noise."""
        return np.asarray((self.predicted - self.measured) / self.noise)


def fit_of_log(model: mujoco.MjModel, windows: Sequence[Window], points: Sequence[Point]) -> Fit:
    """Return the fit of a log from its simulated windows."""
    h = float(model.opt.timestep)
    times, measured, predicted = [], [], []
    first = 0
    for window, point in zip(windows, points, strict=True):
        sensors = window.sensors
        own = h * np.arange(len(sensors.values), dtype=np.float64)
        times.append(first * h + (own if window.reading is None else window.reading.times))
        residuals = np.full(sensors.values.shape, np.nan)
        residuals[sensors.there] = point.residuals[0]
        measured.append(sensors.values)
        predicted.append(sensors.values + residuals * sensors.noise)
        first += window.length
    noise = windows[0].sensors.noise
    return Fit(
        column_names(model),
        np.concatenate(times),
        np.concatenate(measured),
        np.concatenate(predicted),
        noise,
    )


def column_names(model: mujoco.MjModel) -> tuple[str, ...]:
    """Return a name for each column of sensordata."""
    names: list[str] = []
    for k in range(model.nsensor):
        name, size = model.sensor(k).name or f"sensor {k}", int(model.sensor_dim[k])
        names += [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]
    return tuple(names)
