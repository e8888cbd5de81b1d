"""Sparse symmetric matrices of 3x3 blocks: products, solutions, fixed rows."""

import numpy as np
import primitives
import pytest
from precise import EPS

PATTERNS = {
    "diagonal": [],
    "chain": [(i, i + 1) for i in range(6)],
    "branches": [(1, 0), (2, 1), (0, 3), (4, 3), (6, 0)],
    "star": [(0, i) for i in range(1, 7)],  # the natural order would fill the factor
    "wheel": [(0, i) for i in range(1, 7)] + [(i, i % 6 + 1) for i in range(1, 7)],
    "full": [(i, j) for i in range(7) for j in range(i)],
    "ring": [(i, (i + 1) % 7) for i in range(7)],
}
ROWS = 7


def problem(couplings, rng, definite=True):
    A = np.zeros((3 * ROWS, 3 * ROWS))
    for r, c in couplings:
        A[3 * r : 3 * r + 3, 3 * c : 3 * c + 3] = rng.normal(size=(3, 3))
    A += A.T
    for i in range(ROWS):
        block = rng.normal(size=(3, 3))
        A[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = block + block.T
    return A + 12 * np.eye(3 * ROWS) if definite else A


def solve(couplings, A, b, fixed=(), shift=0.0, anyway=False):
    """Return (positive definite, singular), the solution and the product A b."""
    x, product = b.reshape(ROWS, 3).copy(), np.zeros((ROWS, 3))
    held = [i in fixed for i in range(ROWS)]
    state = primitives.solve_sparse(couplings, A, held, shift, anyway, x, product)
    return state, x.ravel(), product.ravel()


def residual(A, x, b):
    A = A.astype(np.longdouble)
    return float(np.max(np.abs(A @ x - b)) / (np.linalg.norm(A.astype(float)) * np.abs(x).max()))


@pytest.mark.parametrize("name", PATTERNS)
def test_product_and_solution(name):
    rng = np.random.default_rng(1)
    couplings = PATTERNS[name]
    A, b = problem(couplings, rng), rng.normal(size=3 * ROWS)
    state, x, product = solve(couplings, A, b)
    assert state == (True, False)
    assert residual(A, x, b) < 8 * EPS
    assert product == pytest.approx(A @ b, rel=64 * EPS, abs=64 * EPS)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("fixed", [(0,), (2, 3), (6,), tuple(range(ROWS))], ids=str)
def test_fixed_rows_are_left_out(name, fixed):
    rng = np.random.default_rng(2)
    couplings = PATTERNS[name]
    A, b = problem(couplings, rng), rng.normal(size=3 * ROWS)
    _, x, _ = solve(couplings, A, b, fixed)
    free = np.repeat([i not in fixed for i in range(ROWS)], 3)
    assert (x[~free] == 0).all()
    if free.any():
        assert residual(A[np.ix_(free, free)], x[free], b[free]) < 8 * EPS


def test_shift_of_the_diagonal_is_relative_to_the_largest_entry_of_a_block():
    rng = np.random.default_rng(3)
    couplings = PATTERNS["chain"]
    A, b = problem(couplings, rng), rng.normal(size=3 * ROWS)
    _, x, _ = solve(couplings, A, b, shift=0.1)
    largest = np.abs(np.diag(A)).reshape(ROWS, 3).max(axis=1)
    assert residual(A + np.diag(0.1 * np.repeat(largest, 3)), x, b) < 8 * EPS


def test_indefinite_matrices_are_reported_and_solved_anyway():
    rng = np.random.default_rng(4)
    couplings = PATTERNS["branches"]
    A, b = problem(couplings, rng, definite=False), rng.normal(size=3 * ROWS)
    state, x, _ = solve(couplings, A, b)
    assert state == (False, False)
    assert (x == b).all()
    state, x, _ = solve(couplings, A, b, anyway=True)
    assert state == (False, False)
    assert residual(A, x, b) < 1e-12  # without exchanges of rows, pivots may be small


def test_singular_matrices_are_reported():
    A = np.eye(3 * ROWS)
    A[4, 4] = 0
    state, _, _ = solve([], A, np.ones(3 * ROWS), anyway=True)
    assert state == (False, True)
