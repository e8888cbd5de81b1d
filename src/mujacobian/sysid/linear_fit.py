"""Linear least squares with a Jacobian that may be rank deficient."""

from __future__ import annotations

import numpy as np

from mujacobian._arguments import Array

# Relative singular value, with all columns scaled to unit length, below which a direction is
# undetermined. Two columns reach it if the correlation of their parameters differs from 1 by 1e-20,
# far below the rounding of a simulated Jacobian.
RANK = 1e-10
# Component in undetermined directions above which an unknown is undetermined.
NULL_COMPONENT = 1e-6
# Numbers in a block of rows that is factored at once. For larger blocks BLAS would start threads,
# which cost several times as much as they save.
BLOCK = 8192


class LinearFit:
    """The linear problem `min |J d + r|`, solved by a singular value decomposition.

    The columns of J are first scaled to unit length, so that units do not matter.
    """

    def __init__(self, J: Array, r: Array) -> None:
        self._scale = np.linalg.norm(J, axis=0)
        self._scale[self._scale == 0] = 1
        U, s, axes = np.linalg.svd(J / self._scale, full_matrices=True)
        self.rank = int((s > RANK * s.max(initial=0)).sum())
        self._range, self._s, self._axes = U[:, : self.rank], s[: self.rank], axes[: self.rank]
        self._null_space = axes[self.rank :]
        self._along = self._range.T @ r

    @property
    def gain(self) -> float:
        """The decrease of the sum of squares by the best step."""
        return float(self._along @ self._along)

    def step(self, damping: float = 0.0) -> Array:
        """Return the best step, which is zero along undetermined directions.

        damping: Levenberg's damping, which shortens the step; by default none.
        """
        lengths = self._s / (self._s**2 + damping)
        step: Array = -(self._axes.T @ (lengths * self._along)) / self._scale
        return step

    def response(self, columns: Array) -> Array:
        """Return the derivative of the best step by the coefficients of columns added to r."""
        moved = self._axes.T @ ((self._range.T @ columns) / self._s[:, None])
        response: Array = -moved / self._scale[:, None]
        return response

    def eliminate(self, columns: Array) -> Array:
        """Return the components of the columns orthogonal to the range of J (SID-3)."""
        return columns - self._range @ (self._range.T @ columns)

    def undetermined(self) -> list[list[int]]:
        """Return groups of undetermined unknowns; of each group only combinations are known."""
        coupled = np.abs(self._null_space.T @ self._null_space) > NULL_COMPONENT
        groups: list[list[int]] = []
        for k in np.flatnonzero(coupled.any(axis=0)):
            joined = [group for group in groups if coupled[k, group].any()]
            groups = [group for group in groups if group not in joined]
            groups.append(sorted([int(k), *(other for group in joined for other in group)]))
        return sorted(groups)

    def null_directions(self) -> Array:
        """Return undetermined directions in the units of the unknowns, one per row (SID-11)."""
        directions: Array = self._null_space / self._scale
        return directions

    def covariance(self) -> Array:
        """Return `(J^T J)^-1`, with inf on the diagonal for undetermined unknowns (SID-5)."""
        scaled = self._axes / self._scale
        covariance: Array = (scaled.T / self._s**2) @ scaled
        for group in self.undetermined():
            covariance[group, group] = np.inf
        return covariance


def triangular(matrix: Array) -> Array:
    """Return the square upper triangular R with R^T R = matrix^T matrix."""
    width = matrix.shape[1]
    if not np.isfinite(matrix).all():  # the slopes overflow, but the residuals have a norm
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
