"""Cholesky factorization by blocks, on random patterns of blocks, against dense solutions."""

import numpy as np
import primitives
import pytest
from precise import EPS

LANES = 4


def problem(sizes, coupled, seed=0):
    """Return a positive definite matrix whose blocks are not zero where `coupled` says so."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *sizes])
    K = np.zeros((starts[-1], starts[-1]))
    for r in range(len(sizes)):
        for c in range(r):
            if coupled[r, c]:
                block = rng.normal(size=(sizes[r], sizes[c]))
                K[starts[r] : starts[r + 1], starts[c] : starts[c + 1]] = block
    K += K.T
    return K + np.diag(np.abs(K).sum(axis=1) + rng.uniform(0.1, 1, len(K)))


def solve(sizes, coupled, K, x, first, last):
    touching = np.tril(coupled, -1)  # only blocks below the diagonal are given
    return primitives.solve_by_blocks(np.array(sizes, dtype=np.int32), touching, K, x, first, last)


def residual(K, x, b):
    K = K.astype(np.longdouble)
    return float(np.max(np.abs(K @ x - b)) / (np.linalg.norm(K.astype(float)) * np.abs(x).max()))


def chain(n):
    return np.abs(np.subtract.outer(range(n), range(n))) == 1


def star(n):
    coupled = np.zeros((n, n), dtype=bool)
    coupled[:, n // 2] = coupled[n // 2] = True
    return coupled


def ring(n):
    return chain(n) | (np.abs(np.subtract.outer(range(n), range(n))) == n - 1)


PATTERNS = {"none": lambda n: np.zeros((n, n), bool), "chain": chain, "star": star, "ring": ring}
PATTERNS["all"] = lambda n: np.ones((n, n), bool)


@pytest.mark.parametrize("count", [1, 2, 5, 9])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_pattern(pattern, count):
    rng = np.random.default_rng(count)
    sizes, coupled = rng.integers(1, 8, count), PATTERNS[pattern](count)
    K = problem(sizes, coupled)
    b = rng.normal(size=(len(K), 12))
    x = b.copy()
    assert solve(sizes, coupled, K, x, 0, 12) > 0
    assert residual(K, x, b) < 16 * EPS


@pytest.mark.parametrize("seed", range(20))
def test_random_pattern(seed):
    rng = np.random.default_rng(seed)
    count = rng.integers(3, 14)
    sizes = rng.integers(1, 7, count)
    coupled = rng.uniform(size=(count, count)) < rng.uniform(0.05, 0.7)
    coupled |= coupled.T
    K = problem(sizes, coupled, seed)
    first, last = sorted(rng.choice(120, 2, replace=False))
    b = rng.normal(size=(len(K), 120))
    b[rng.uniform(size=len(K)) < 0.6] = 0  # so that a sweep can skip blocks
    x = b.copy()
    assert solve(sizes, coupled, K, x, first, last) > 0
    lanes = slice(first // LANES * LANES, -(-last // LANES) * LANES)
    assert residual(K, x[:, lanes], b[:, lanes]) < 32 * EPS
    x[:, lanes] = b[:, lanes]
    assert (x == b).all()


@pytest.mark.parametrize("count", [2, 6])
def test_unit_vectors_give_the_inverse(count):
    """Each right-hand side is zero in all blocks but one: the first sweep skips most of them."""
    sizes, coupled = np.full(count, 3), chain(count)
    K = problem(sizes, coupled)
    for row in range(len(K)):
        x = np.zeros((len(K), LANES))
        x[row, 0] = 1
        solve(sizes, coupled, K, x, 0, 1)
        assert x[:, 0] == pytest.approx(np.linalg.inv(K)[row], rel=1e-11, abs=1e-14)
        assert (x[:, 1:] == 0).all()


def test_the_number_of_entries_is_that_of_an_elimination_without_fill():
    sizes = np.array([2, 3, 1, 4])
    own = int((sizes**2).sum())
    for pattern, between in (("none", 0), ("chain", 6 + 3 + 4), ("star", 2 + 3 + 4)):
        coupled = PATTERNS[pattern](4)
        K = problem(sizes, coupled)
        assert solve(sizes, coupled, K, np.zeros((10, LANES)), 0, 1) == own + between


@pytest.mark.parametrize("row", range(9))
def test_matrices_that_are_not_positive_definite_are_reported(row):
    sizes, coupled = np.array([2, 3, 4]), ring(3)
    K = problem(sizes, coupled)
    K[row, row] = -1e-3
    assert solve(sizes, coupled, K, np.ones((9, LANES)), 0, 1) == -1
