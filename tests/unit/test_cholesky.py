"""Dense Cholesky factorization with padded rows: factors, solutions, columns, failures."""

import numpy as np
import primitives
import pytest
from precise import EPS

LANES = 4
SIZES = [1, 2, 3, 4, 5, 8, 11, 18]
FILL = -7.5  # a value of entries that must not be touched


def padded(a, extra=0):
    """Return rows with zeros behind them, up to a whole number of lanes."""
    width = -(-a.shape[1] // LANES) * LANES + extra * LANES
    return np.pad(a, ((0, 0), (0, width - a.shape[1])))


def positive_definite(n, seed=0):
    a = np.random.default_rng(seed).normal(size=(n, n + 2))
    return a @ a.T + 0.1 * np.eye(n)


def residual(A, x, b):
    A, x = A.astype(np.longdouble), x.astype(np.longdouble)
    return float(np.max(np.abs(A @ x - b)) / (np.linalg.norm(A.astype(float)) * np.abs(x).max()))


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("n", SIZES)
def test_factor(n, extra):
    """The upper triangle is not read, and the diagonal of the factor is inverted."""
    A = positive_definite(n)
    made = padded(np.tril(A), extra)
    made[:, :n] += np.triu(np.full((n, n), FILL), 1)
    assert primitives.factor_dense(made)
    L = np.tril(made[:, :n], -1) + np.diag(1 / np.diag(made))
    assert np.abs(L @ L.T - A).max() <= 8 * EPS * np.abs(A).max()
    assert (made[:, n:] == 0).all()
    assert (made[:, :n][np.triu_indices(n, 1)] == FILL).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("first", "last"), [(0, 1), (0, 5), (4, 20), (3, 4), (0, 75), (9, 61)])
def test_solution(n, first, last):
    """Whole lanes around the columns are solved, by tiles of 12, 6, 3 and 1 of them."""
    A = positive_definite(n)
    factor = padded(np.tril(A))
    assert primitives.factor_dense(factor)
    b = np.random.default_rng(1).normal(size=(n, 80))
    x = b.copy()
    primitives.solve_dense(factor, x, first, last)
    lanes = slice(first // LANES * LANES, -(-last // LANES) * LANES)
    assert residual(A, x[:, lanes], b[:, lanes]) < 8 * n * EPS
    x[:, lanes] = b[:, lanes]
    assert (x == b).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("bad", [-1e-3, 0.0, np.nan])
def test_matrices_that_are_not_positive_definite_are_reported(n, bad):
    for row in range(n):
        A = np.eye(n)
        A[row, row] = bad
        assert not primitives.factor_dense(padded(A))


def test_a_singular_matrix_is_reported():
    assert not primitives.factor_dense(padded(np.array([[4.0, 2, 2], [2, 1, 1], [2, 1, 3]])))
