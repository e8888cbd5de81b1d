"""Gaits: schedules of the heights and contacts of feet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian._arguments import Array, number, numbers
from mujacobian.errors import ArgumentError


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

    Example:
      >>> import numpy as np
      >>> from mujacobian import control
      >>> trot = control.Gait((0.0, 0.5, 0.5, 0.0), duty=0.5, cadence=2.0, amplitude=0.05)
      >>> trot.is_down(np.array([0.0, 0.25]))
      array([[False,  True,  True, False],
             [ True, False, False,  True]])
      >>> trot.targets_down(np.array([0.0]), 0.0)  # for a term that is off while a foot swings
      array([[nan,  0.,  0., nan]])
    """

    offsets: tuple[float, ...]
    duty: float
    cadence: float
    amplitude: float
    start: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.offsets):
            raise ArgumentError("a gait needs the offset of at least one foot")
        numbers("offsets", self.offsets)
        for name in ("duty", "cadence", "amplitude", "start"):
            number(name, getattr(self, name))
        if not 0 < self.duty < 1:
            raise ArgumentError(f"duty must be between 0 and 1, got {self.duty!r}")
        for name in ("cadence", "amplitude"):
            if not getattr(self, name) > 0:
                raise ArgumentError(f"{name} must be positive, got {getattr(self, name)!r}")

    def lift(self, times: Array) -> Array:
        """Return the scheduled height of each foot above the ground, m, `(n, feet)`."""
        t = np.asarray(times, float)[:, None] - self.start
        cycles = self.cadence * t - np.array(self.offsets)
        phase = 2 * np.pi * (cycles - np.round(cycles))
        angle = np.clip(phase / (2 * (1 - self.duty)), -np.pi / 2, np.pi / 2)
        lift = self.amplitude * np.cos(angle)
        return np.where((lift > 1e-6) & (t >= 0), lift, 0.0)

    def is_down(self, times: Array) -> NDArray[np.bool_]:
        """Return the contact schedule: whether each foot is down, `(n, feet)`."""
        down: NDArray[np.bool_] = self.lift(times) == 0
        return down

    def targets_down(self, times: Array, target: ArrayLike) -> Array:
        """Return targets of rows of the feet that are NaN while the foot swings, `(n, feet * k)`.

        `target` is `(k,)`, the target of the k rows of each foot, or a number for one row. With
        rows stacked by feet, a term applies to a foot only while the foot is down. Examples are the
        velocity of the foot and its contact force.
        """
        each = np.atleast_1d(numbers("target", target))
        down = self.is_down(times)[:, :, None]
        return np.where(down, each, np.nan).reshape(len(down), -1)

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
