"""Gaits: schedules of the heights of feet."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian.control.mpc import MPCResult
from mujacobian.control.tasks.readings import readings


@dataclass(frozen=True)
class Gait:
    """A cyclic schedule of steps.

    A foot swings during the fraction `1 - duty` of its cycle, centered at phase zero. Its height is
    then `amplitude cos(phase / (2 (1 - duty)))`. During the rest of the cycle, the foot is down.

    Attributes:
      offsets: phase of each foot, cycles.
      duty: fraction of the cycle in which a foot is down.
      cadence: cycles per second.
      amplitude: height of a step, m.
      start: time of the first step, s; before it, all feet are down. By default 0.
    """

    offsets: tuple[float, ...]
    duty: float
    cadence: float
    amplitude: float
    start: float = 0.0

    def lift(self, times: Array) -> Array:
        """Return the scheduled height of each foot above the ground, m, `(n, feet)`."""
        t = np.asarray(times, float)[:, None] - self.start
        cycles = self.cadence * t - np.array(self.offsets)
        phase = 2 * np.pi * (cycles - np.round(cycles))
        angle = np.clip(phase / (2 * (1 - self.duty)), -np.pi / 2, np.pi / 2)
        lift = self.amplitude * np.cos(angle)
        return np.where((lift > 1e-6) & (t >= 0), lift, 0.0)

    def height(self, times: Array, ground: float) -> Array:
        """Return the desired height of each foot, m, `(n, feet)`; NaN if the foot is down."""
        lift = self.lift(times)
        return np.where(lift > 0, ground + lift, np.nan)

    def phase_error(self, times: Array, heights: Array) -> float:
        """Return the largest phase error of a foot, in cycles; NaN if there is no whole cycle.

        The error is the angle between two first harmonics at the cadence: that of the heights
        `(n, feet)` above the ground and that of the schedule. Both are computed over the whole
        cycles at the end of the record.
        """
        cycles = np.floor((times[-1] - max(times[0], self.start)) * self.cadence + 1e-9)
        if cycles < 1:
            return np.nan
        late = times > times[-1] - cycles / self.cadence
        wave = np.exp(-2j * np.pi * self.cadence * times[late])
        measured, asked = wave @ heights[late], wave @ self.lift(times[late])
        return float(np.abs(np.angle(measured * np.conj(asked))).max() / (2 * np.pi))

    def swing_heights(self, times: Array, heights: Array) -> Array:
        """Return the maximum height above the ground of each complete swing, for all feet."""
        lifted = self.lift(times) > 0
        peaks = []
        for k in range(heights.shape[1]):
            edges = np.flatnonzero(np.diff(lifted[:, k].astype(int)))
            begins = edges[~lifted[edges, k]] + 1
            ends = edges[lifted[edges, k]] + 1
            for begin in begins:
                after = ends[ends > begin]
                if after.size:
                    peaks.append(heights[begin : after[0], k].max())
        return np.array(peaks)


TROT = Gait(offsets=(0.0, 0.5, 0.5, 0.0), duty=0.45, cadence=2.0, amplitude=0.03)


@dataclass(frozen=True)
class Feet:
    """The feet of a model and their gait.

    Attributes:
      gait: gait that the feet follow.
      sensors: names of the position sensors, in the order of the offsets of the gait.
      ground: sensor reading of the height of a foot that is down, m.
      down: height above the ground, m, below which a foot counts as down; by default 0.005.
    """

    gait: Gait
    sensors: tuple[str, ...]
    ground: float
    down: float = 0.005

    def lifted(self, model: mujoco.MjModel, result: MPCResult) -> Array:
        """Return the measured height of each foot above the ground, m, `(n, feet)`."""
        places = readings(model, result, *self.sensors)
        return np.stack([place[:, 2] for place in places], axis=1) - self.ground

    def measures(self, times: Array, lifted: Array) -> dict[str, float]:
        """Return measures of how well the feet followed the gait."""
        swings = self.gait.swing_heights(times, lifted)
        agree = (self.gait.lift(times) > self.down) == (lifted > self.down)
        return {
            "phase error, worst foot (cycles)": float(self.gait.phase_error(times, lifted)),
            "swing height, mean (m)": float(swings.mean()) if swings.size else 0.0,
            "feet as scheduled (share)": float(agree.mean()),
        }
