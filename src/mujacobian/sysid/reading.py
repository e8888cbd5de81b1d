"""Readings of sensors: interpolated between steps, delayed, scaled and shifted."""

from __future__ import annotations

import numpy as np

from mujacobian._arguments import Array
from mujacobian.sysid.calibration import Calibration


class Reading:
    """Readings at given times as a function of the sensors at the steps of a window (SID-7).

    Attributes:
      times: times of the readings after the first step of the window, `(m,)`.
    """

    def __init__(self, times: Array, timestep: float, calibration: Calibration | None) -> None:
        self.times, self._h, self._calibration = times, timestep, calibration

    def predict(
        self, sensordata: Array, sensed: Array | None, calibration: Array
    ) -> tuple[Array, Array | None]:
        """Return readings `(m, ns)` and their slopes `(m, n + entries, ns)`.

        Args:
          sensordata: sensors at the steps, `(T, ns)`.
          sensed: slopes of the sensors, `(T, n, ns)`; None if nothing was measured.
          calibration: values of the entries of the calibration.
        """
        T, ns = sensordata.shape
        delay, gain, bias = np.zeros(ns), np.ones(ns), np.zeros(ns)
        if self._calibration is not None:
            delay = self._calibration.columns("sensor_delay", calibration, 0.0)
            gain = self._calibration.columns("sensor_gain", calibration, 1.0)
            bias = self._calibration.columns("sensor_bias", calibration, 0.0)
        position = (self.times[:, None] - delay) / self._h
        # a reading at a step belongs to the interval before it, into which a delay moves it
        below = np.clip(np.ceil(position).astype(int) - 1, 0, max(T - 2, 0))
        above = np.minimum(below + 1, T - 1)
        part = np.maximum(position - below, 0.0)  # a delay may be as long as the time itself
        low, high = (np.take_along_axis(sensordata, place, 0) for place in (below, above))
        raw = low + part * (high - low)
        predicted = gain * raw + bias
        if sensed is None:
            return predicted, None
        n, entries = sensed.shape[1], len(calibration)
        slopes = np.zeros((len(self.times), n + entries, ns))
        lows, highs = (np.take_along_axis(sensed, place[:, None], 0) for place in (below, above))
        slopes[:, :n] = gain * (lows + part[:, None] * (highs - lows))
        if self._calibration is not None:
            self._calibration.write_slopes(slopes[:, n:], raw, gain * (high - low) / self._h)
        return predicted, slopes
