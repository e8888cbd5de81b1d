"""Linear least squares with a Jacobian that may lack rank."""

from __future__ import annotations

import numpy as np

from mujacobian._arguments import Array

# A direction whose singular value is smaller than this part of the largest one, with all columns
# scaled to unit length, is not determined. Two columns reach it when the correlation of their
# parameters differs from 1 by 1e-20, far below the rounding of a simulated Jacobian.
RANK = 1e-10
# Unknowns with a larger part than this in undetermined directions are undetermined, too.
BLIND = 1e-6
# Numbers in a block of rows that is factored at a time. For larger ones BLAS would start threads,
# which cost several times what they save.
BLOCK = 8192


class LinearFit:
    """The linear problem `min |J d + r|`, solved by singular values.

    The columns of J are scaled to unit length first, so that units do not matter.
    """

    def __init__(self, J: Array, r: Array) -> None:
        self._scale = np.linalg.norm(J, axis=0)
        self._scale[self._scale == 0] = 1
        U, s, axes = np.linalg.svd(J / self._scale, full_matrices=True)
        self.rank = int((s > RANK * s.max(initial=0)).sum())
        self._range, self._s, self._axes = U[:, : self.rank], s[: self.rank], axes[: self.rank]
        self._blind = axes[self.rank :]
        self._along = self._range.T @ r

    @property
    def gain(self) -> float:
        """By how much the best step lowers the sum of squares."""
        return float(self._along @ self._along)

    def step(self, damping: float = 0.0) -> Array:
        """The best step, zero along undetermined directions; shorter with Levenberg's damping."""
        lengths = self._s / (self._s**2 + damping)
        step: Array = -(self._axes.T @ (lengths * self._along)) / self._scale
        return step

    def response(self, columns: Array) -> Array:
        """How the best step changes when multiples of these columns are added to r."""
        moved = self._axes.T @ ((self._range.T @ columns) / self._s[:, None])
        response: Array = -moved / self._scale[:, None]
        return response

    def eliminate(self, columns: Array) -> Array:
        """The columns without their part in the range of J (SID-3)."""
        return columns - self._range @ (self._range.T @ columns)

    def undetermined(self) -> list[list[int]]:
        """Unknowns that are not determined, those together that only a combination is known of."""
        coupled = np.abs(self._blind.T @ self._blind) > BLIND
        groups: list[list[int]] = []
        for k in np.flatnonzero(coupled.any(axis=0)):
            mine = [group for group in groups if coupled[k, group].any()]
            groups = [group for group in groups if group not in mine]
            groups.append(sorted([int(k), *(other for group in mine for other in group)]))
        return sorted(groups)

    def covariance(self) -> Array:
        """`(J^T J)^-1`, with inf on the diagonal for what J does not determine (SID-5)."""
        seen = self._axes / self._scale
        covariance: Array = (seen.T / self._s**2) @ seen
        for lost in self.undetermined():
            covariance[lost, lost] = np.inf
        return covariance


def triangular(matrix: Array) -> Array:
    """The square, upper triangular R with R^T R = matrix^T matrix."""
    width = matrix.shape[1]
    if not np.isfinite(matrix).all():  # the slopes overflow: the residuals still have a norm
        overflown = np.full((width, width), np.nan)
        overflown[:, -1] = 0
        overflown[-1, -1] = np.linalg.norm(matrix[:, -1])
        return overflown
    height = max(2 * width, BLOCK // width)
    while len(matrix) > height:
        blocks = -(-len(matrix) // height)
        padded = np.zeros((blocks * height, width))
        padded[: len(matrix)] = matrix
        factors = np.linalg.qr(padded.reshape(blocks, height, width), mode="r")
        matrix = np.asarray(factors).reshape(-1, width)
    rows = np.linalg.qr(matrix, mode="r")
    result = np.zeros((width, width))
    result[: len(rows)] = rows
    return result
