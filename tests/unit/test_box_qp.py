"""Quadratic programs between bounds: optimality conditions, free components and their factor."""

import numpy as np
import primitives
import pytest
from precise import EPS

SIZES = [1, 2, 3, 5, 8]


def problem(n, seed, spread=1.0):
    """Return H, padded to whole lanes, and g; `spread` scales components by orders of magnitude."""
    rng = np.random.default_rng([n, seed])
    root = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-spread, spread, n)[:, None]
    H = root @ root.T + 0.1 * np.diag((root**2).sum(axis=1))
    return np.pad(H, ((0, 0), (0, -n % 4 + 4))), rng.normal(size=n) * np.abs(root).max(axis=1), rng


def solve(H, g, lower, upper, guess):
    """Return the solution and the free components, after checking the optimality conditions."""
    n = len(g)
    x = guess.copy()
    solved, free, factor = primitives.solve_box_qp(H, g, lower, upper, x)
    assert solved
    assert (lower <= x).all()
    assert (x <= upper).all()
    # the gradient is zero in free components, and pushes the others against their bounds
    H = H[:, :n].astype(np.longdouble)
    gradient, size = H @ x + g, np.abs(H) @ np.abs(x) + np.abs(g)
    noise = 64 * n * EPS * np.where(size > 0, size, 1) * np.linalg.cond(H.astype(float)) ** 0.5
    held = np.setdiff1d(range(n), free)
    assert (np.abs(gradient[free]) <= noise[free]).all()
    for i in held:
        assert x[i] in (lower[i], upper[i])
        if x[i] > lower[i]:
            assert gradient[i] <= noise[i]
        if x[i] < upper[i]:
            assert gradient[i] >= -noise[i]
    check_factor(H.astype(float), free, factor)
    return x, list(free)


def check_factor(H, free, factor):
    L = np.zeros((len(free), len(free)))
    for r, row in enumerate(factor):
        L[r, : r + 1] = row
    np.fill_diagonal(L, 1 / np.diag(L))
    own = H[np.ix_(free, free)]
    scale = np.sqrt(np.diag(own))
    assert np.abs((L @ L.T - own) / np.outer(scale, scale)).max(initial=0) <= 8 * EPS


def unlimited(H, g):
    return -np.linalg.solve(H[:, : len(g)], g)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("seed", range(8))
def test_random_bounds(n, seed):
    """Bounds around the unlimited optimum: some components are held; any guess gives the same."""
    H, g, rng = problem(n, seed, spread=1.5)
    center = unlimited(H, g) * rng.uniform(-0.5, 2, n)
    width = np.abs(center) * rng.uniform(0, 2, n)
    lower, upper = center - width, center + width
    x, free = solve(H, g, lower, upper, np.zeros(n))
    for guess in (lower, upper, 100 * rng.normal(size=n), x):
        again, free_again = solve(H, g, lower, upper, guess)
        assert free_again == free
        assert again == pytest.approx(x, rel=1e-9, abs=1e-12 * np.abs(x).max())


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("size", [1e3, np.inf])
def test_no_component_is_held_between_wide_bounds(n, size):
    H, g, _ = problem(n, 1)
    bound = np.full(n, size * np.abs(unlimited(H, g)).max())
    x, free = solve(H, g, -bound, bound, np.zeros(n))
    assert free == list(range(n))
    assert x == pytest.approx(unlimited(H, g), rel=1e-9)


@pytest.mark.parametrize("n", SIZES)
def test_all_components_are_held_where_the_gradient_points_outward(n):
    H, g, rng = problem(n, 2)
    sign = np.where(rng.uniform(size=n) < 0.5, -1.0, 1.0)
    g = -1e6 * sign * np.abs(H).max()
    x, free = solve(H, g, np.full(n, -1.0), np.full(n, 2.0), np.zeros(n))
    assert free == []
    assert (x == np.where(sign > 0, 2, -1)).all()


@pytest.mark.parametrize("n", SIZES)
def test_equal_bounds_fix_a_component(n):
    """The others are optimal for that value, whatever the gradient says about the fixed one."""
    for fixed in range(n):
        H, g, rng = problem(n, 3 + fixed)
        lower, upper = np.full(n, -1e3), np.full(n, 1e3)
        lower[fixed] = upper[fixed] = 0.7
        x, free = solve(H, g, lower, upper, rng.normal(size=n))
        assert free == [i for i in range(n) if i != fixed]
        assert x[fixed] == 0.7
    x, free = solve(H, g, np.arange(n) - 0.5, np.arange(n) - 0.5, np.zeros(n))
    assert free == []
    assert (x == np.arange(n) - 0.5).all()


def test_an_optimum_exactly_at_a_bound_is_found_from_all_sides():
    H, g = np.diag([2.0, 1.0, 4.0, 1.0]), np.array([-2.0, 3.0, 0.0, 1.0])
    exact = np.array([1.0, -3.0, 0.0, -1.0])
    for lower, upper in ((exact, exact + 1), (exact - 1, exact), (exact, exact)):
        for guess in (np.zeros(4), exact, exact + 5, exact - 5):
            x, free = solve(H, g, lower, upper, guess)
            assert x == pytest.approx(exact, rel=4 * EPS, abs=4 * EPS)
            assert lower is not upper or free == []


def test_one_sided_bounds():
    H, g, _ = problem(5, 9)
    optimum = unlimited(H, g)
    lower, upper = np.where(optimum > 0, -np.inf, optimum / 2), np.full(5, np.inf)
    x, free = solve(H, g, lower, upper, np.zeros(5))
    assert 0 < len(free) < 5
    assert (x[np.isinf(lower)] != optimum[np.isinf(lower)]).any()


def test_curvature_must_be_positive_over_free_components_only():
    H = np.diag([1.0, -1.0, 1.0, 1.0])
    g, low, high = np.array([0.3, 0.0, -0.2, 0.1]), np.full(4, -1.0), np.full(4, 1.0)
    solved, *_ = primitives.solve_box_qp(H, g, low, high, np.zeros(4))
    assert not solved
    low[1] = high[1] = 0.5
    x = np.zeros(4)
    solved, free, _ = primitives.solve_box_qp(H, g, low, high, x)
    assert solved
    assert free == [0, 2, 3]
    assert list(x) == pytest.approx([-0.3, 0.5, 0.2, -0.1])


def test_solutions_repeat_bitwise_and_leave_the_problem_unchanged():
    H, g, rng = problem(8, 4)
    lower, upper = -np.abs(rng.normal(size=8)), np.abs(rng.normal(size=8))
    given = [a.copy() for a in (H, g, lower, upper)]
    first, _ = solve(H, g, lower, upper, np.zeros(8))
    second, _ = solve(H, g, lower, upper, np.zeros(8))
    assert first.tobytes() == second.tobytes()
    assert all((a == b).all() for a, b in zip(given, (H, g, lower, upper), strict=True))
