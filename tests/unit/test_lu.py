"""LU factorization of unsymmetric matrices: solutions, exchanges of rows, zeros, strides."""

import numpy as np
import primitives
import pytest
from precise import EPS

SIZES = [1, 2, 3, 6, 13]
COLUMNS, FIRST, LAST = 9, 2, 7
FILL = -7.5  # a value of entries that must not be touched


def factor(A):
    made, order = A.copy(), np.zeros(len(A), dtype=np.int32)
    assert primitives.factor_lu(made, order)
    return made, order


def residual(A, x, b):
    """Return the backward error of a solution, row by row: rows may have very different sizes."""
    A, x = A.astype(np.longdouble), x.astype(np.longdouble)
    return float(np.max(np.abs(A @ x - b) / (np.abs(A) @ np.abs(x))))


def matrices(n):
    """Yield matrices that need no exchange, some and all, and rows and columns of all sizes."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    yield A + 4 * n * np.eye(n)
    yield A
    yield A[:, ::-1] * 10.0 ** rng.uniform(-6, 6, n)[:, None]
    yield np.eye(n)[rng.permutation(n)] * rng.uniform(1, 2, n)


@pytest.mark.parametrize("n", SIZES)
def test_solution(n):
    for A in matrices(n):
        made, order = factor(A)
        assert sorted(order) == list(range(n))
        b = np.random.default_rng(1).normal(size=(n, COLUMNS)) * np.abs(A).max(axis=1)[:, None]
        x = np.full((n, COLUMNS), FILL)
        x[:, FIRST:LAST] = b[:, FIRST:LAST]
        primitives.solve_lu(made, order, x, FIRST, LAST)
        assert residual(A, x[:, FIRST:LAST], b[:, FIRST:LAST]) < 4 * n * EPS
        assert (np.delete(x, range(FIRST, LAST), axis=1) == FILL).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("stride", [1, 4])
def test_transposed_solution(n, stride):
    for A in matrices(n):
        b = np.random.default_rng(2).normal(size=n)
        x = np.full((n, stride), FILL)
        x[:, 0] = b
        primitives.solve_lu_transposed(*factor(A), x)
        assert residual(A.T, x[:, :1], b[:, None]) < 16 * n * EPS
        assert (x[:, 1:] == FILL).all()


def test_factors_multiply_to_the_matrix():
    """Elimination runs from the last row to the first: U L, with the diagonal in the factor L."""
    for A in matrices(6):
        made, order = factor(A)
        upper = np.triu(made, 1) + np.eye(6)
        assert upper @ np.tril(made) == pytest.approx(A[order], rel=1e-13, abs=1e-14)


def test_a_tree_keeps_its_zeros():
    """Two branches of a root: no row of one branch gets entries in columns of the other."""
    n = 7
    mask = np.eye(n, dtype=bool)
    for branch in ([1, 2, 3], [4, 5, 6]):
        for row in (0, *branch):
            mask[row, [0, *branch]] = True
    A = np.where(mask, np.random.default_rng(3).normal(size=(n, n)), 0) + 9 * np.eye(n)
    made, order = factor(A)
    assert list(order) == list(range(n))
    assert (made[~mask] == 0).all()


def test_rows_are_exchanged_only_where_the_diagonal_is_small():
    """A diagonal that is a tenth of the best candidate, row by row, is still the pivot."""
    for small, exchanged in ((0.11, False), (0.09, True)):
        # candidates of column 1, each divided by the largest entry of its row
        _, order = factor(np.array([[0.5, 1.0], [1.0, small]]))
        assert list(order) == ([1, 0] if exchanged else [0, 1])
        _, order = factor(np.array([[0.5, 1.0], [1e9, 1e9 * small]]))
        assert list(order) == ([1, 0] if exchanged else [0, 1])


@pytest.mark.parametrize(
    "rows",
    [
        [[0.0]],
        [[1.0, 2], [0, 0]],
        [[1.0, 0], [2, 0]],
        [[1.0, 2], [2, 4]],
        [[1.0, 2, 4], [2, 8, 8], [1, 6, 4]],
        [[np.nan, 1], [1, np.nan]],
    ],
)
def test_singular_matrices_are_reported(rows):
    A = np.array(rows)
    assert not primitives.factor_lu(A, np.zeros(len(A), dtype=np.int32))
