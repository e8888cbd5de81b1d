"""Dense products with padded rows, against NumPy in extended precision."""

import numpy as np
import primitives
import pytest
from precise import EPS

LANES = 4
SHAPES = [(1, 1, 1), (2, 3, 5), (4, 4, 4), (5, 12, 3), (7, 17, 9), (9, 24, 1), (13, 30, 20)]


def lanes(n):
    return -(-n // LANES) * LANES


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_product_is_added(m, n, k):
    """C += A^T B in whole lanes; columns of C behind them and of A behind its own are not used."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(k, m + 3)), rng.normal(size=(k, lanes(n) + 4))
    c = rng.normal(size=(m, lanes(n) + 4))
    a[:, m:] = b[:, lanes(n) :] = np.nan
    exact = c.astype(np.longdouble)
    exact[:, : lanes(n)] += a[:, :m].astype(np.longdouble).T @ b[:, : lanes(n)]
    primitives.add_product(c, a, b, n)
    assert np.abs(c - exact).max() < 16 * k * EPS
    assert (c[:, lanes(n) :] == exact[:, lanes(n) :]).all()


@pytest.mark.parametrize("n", [1, 2, 4, 5, 7, 12, 19])
def test_symmetric_product_is_added(n):
    """A^T H A with its upper triangle copied from the lower one."""
    rng = np.random.default_rng(n)
    k = 6
    H = rng.normal(size=(k, k))
    a = np.pad(rng.normal(size=(k, n)), ((0, 0), (0, lanes(n) - n)))
    b = (H + H.T) @ a
    c = np.zeros((n, lanes(n)))
    start = rng.normal(size=(n, n))
    c[:, :n] = start + start.T
    exact = c[:, :n] + a[:, :n].astype(np.longdouble).T @ b[:, :n]
    primitives.add_symmetric_product(c, a, b)
    assert np.abs(c[:, :n] - exact).max() < 64 * k * EPS
    assert (c[:, :n] == c[:, :n].T).all()


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_sparse_product_is_added(m, n, k):
    """C += A^T B if three of four entries of A are zero, and some groups of columns."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=(k, lanes(m))) * (rng.random(size=(k, lanes(m))) < 0.25)
    a[:, 4:8] = 0
    b, c = rng.normal(size=(k, lanes(n) + 4)), rng.normal(size=(lanes(m), lanes(n) + 4))
    b[:, lanes(n) :] = np.nan
    exact = c.astype(np.longdouble)
    exact[:, : lanes(n)] += a.astype(np.longdouble).T @ b[:, : lanes(n)]
    primitives.add_sparse_product(c, a, b, n)
    assert np.abs(c - exact).max() < 16 * k * EPS
    assert (c[:, lanes(n) :] == exact[:, lanes(n) :]).all()


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 19])
def test_transpose_is_added(n):
    start = np.random.default_rng(n).normal(size=(lanes(n), lanes(n) + 4))
    a = start.copy()
    primitives.add_transpose(a, n)
    assert (a[:n, :n] == start[:n, :n] + start[:n, :n].T).all()
    assert (a[:, lanes(n) :] == start[:, lanes(n) :]).all()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("width", [4, 8, 12, 16, 28])
@pytest.mark.parametrize("transposed", [False, True])
def test_linear_combinations_of_rows(count, width, transposed):
    rng = np.random.default_rng(count)
    combinations = 7
    x, c = rng.normal(size=(count, width)), rng.normal(size=(combinations, count))
    start = rng.normal(size=(combinations, width))
    stored, next_, step = (c.T, 1, combinations) if transposed else (c, count, 1)
    exact = -0.7 * c.astype(np.longdouble) @ x
    for combine, added in ((primitives.combine_rows, 0), (primitives.add_combined_rows, start)):
        out = start.copy()
        combine(out, stored.flatten(), next_, step, -0.7, x)
        assert np.abs(out - added - exact).max() < 32 * EPS
