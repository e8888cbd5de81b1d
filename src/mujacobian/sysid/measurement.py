"""Measured numbers of a log, and the weights of their residuals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array


class Measurement:
    """Rows of measured numbers, with NaN for missing ones, and their noise.

    Attributes:
      values: measured numbers, one row per time.
      noise: standard deviation of each column, in the unit of the column.
      known: whether the log or the model states the noise of each column; if not, it is 1.
    """

    def __init__(self, values: Array, noise: Array, known: NDArray[np.bool_]) -> None:
        self.there = ~np.isnan(values)
        self.values = values
        self.noise = noise
        self.weights = 1 / noise
        self.size = int(self.there.sum())
        self.known = known
        self.is_known = bool(known[self.there.any(axis=0)].all())

    def cut(self, first: int, last: int, *, rows: int) -> Measurement:
        """Return rows first .. last-1, padded with missing measurements to `rows` rows."""
        part = np.full((rows, self.values.shape[1]), np.nan)
        part[: last - first] = self.values[first:last]
        return Measurement(part, self.noise, self.known)

    def write(self, rows: Array, differences: Array, slopes: Array | None) -> None:
        """Write one row per measured number: its weighted slopes, then its weighted difference.

        rows: output, (size, n + 1).
        differences: predicted minus measured numbers.
        slopes: derivatives of the predicted numbers, (T, n, columns); None if nothing was measured.
        """
        if slopes is None:
            return
        T, n, numbers = slopes.shape
        if self.there.all():
            every = rows.reshape(T, numbers, n + 1)
            np.multiply(slopes.swapaxes(1, 2), self.weights[:, None], out=every[..., :-1])
            np.multiply(differences, self.weights, out=every[..., -1])
        else:
            rows[:, :-1] = (slopes * self.weights).swapaxes(1, 2)[self.there]
            rows[:, -1] = (differences * self.weights)[self.there]
