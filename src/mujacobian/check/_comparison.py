"""Comparison of a Jacobian with its reference, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mujacobian._arguments import Array

TRUST = 2e-10  # relative error estimate of a trusted entry: a fifth of the tolerance of 1e-9
BLOCK_FLOOR = 1e-3  # a block of rows is at least this share of its column
COLUMN_FLOOR = 1e-9  # a column below this size counts as zero
ROUNDING = 1e-13  # rounding errors in a column of zeros, relative to the largest entry of the block
ALL_ZERO = 1e-2  # replaces the largest entry of a block that is zero


@dataclass(frozen=True)
class Comparison:
    """Worst relative error over trusted entries, share of trusted entries, error of each entry."""

    error: float
    share: float
    matrix: Array

    def worst(self) -> tuple[int, int]:
        """Return the row and column of the worst entry."""
        row, column = np.unravel_index(np.argmax(self.matrix), self.matrix.shape)
        return int(row), int(column)


def compare(
    J: Array, ref: Array, err: Array, blocks: list[int], trust: float = TRUST
) -> Comparison:
    """Compare the entries of J with those of a reference that are trusted.

    Errors are relative to the largest entry of the same column within the same block of rows, but
    at least to `BLOCK_FLOOR` of the column's largest entry. Errors that are rounding errors of the
    block's largest entry are relative to that entry.
    """
    scale = scale_of(ref, blocks)
    trusted = err <= trust * scale
    wrong = abs(J - ref)
    for lo, hi in pairwise(blocks):
        largest = max(abs(ref[lo:hi]).max(initial=0.0), ALL_ZERO)
        rounding = wrong[lo:hi] <= ROUNDING * largest
        scale[lo:hi] = np.where(rounding, np.maximum(scale[lo:hi], largest), scale[lo:hi])
    matrix = np.where(trusted, wrong / scale, 0.0)
    matrix[trusted & ~np.isfinite(J)] = np.inf
    share = float(trusted.mean()) if trusted.size else 1.0
    return Comparison(float(matrix.max(initial=0.0)), share, matrix)


def scale_of(ref: Array, blocks: list[int]) -> Array:
    """Return the size to which the error of each entry is relative.

    The first three blocks belong to the state, the others to sensors, which have other units.
    """
    scale, size = np.empty_like(ref), abs(ref)
    state = blocks[min(3, len(blocks) - 1)]
    for begin, end in ((0, state), (state, blocks[-1])):
        if begin == end:
            continue
        floor = BLOCK_FLOOR * np.maximum(size[begin:end].max(axis=0), COLUMN_FLOOR)
        for lo, hi in pairwise(blocks):
            if begin <= lo < hi <= end:
                scale[lo:hi] = np.maximum(size[lo:hi].max(axis=0), floor)
    return scale
