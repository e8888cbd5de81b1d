"""The quadratic program of the noslip solver: optimality and derivatives, against 40 digits.

min 1/2 x^T A x + b^T x   over   |x / mu| <= r
"""

import mpmath as mp
import numpy as np
import precise
import primitives
import pytest
from precise import EPS, STEP, array, error, solve

# The iteration over the multiplier ends where the excess of |x / mu|^2 over r^2 is below 1e-10, as
# in MuJoCo; then the result is put onto the cone, and an error of its direction remains.
CONVERGED = 1e-9
# The derivative of the steps that were taken is exact, up to the condition of A.
ROUNDING = 1e-11
MAX_STEPS = 20
SIZES = [1, 2, 3, 5]  # of the friction of a contact; MuJoCo has other code above three
NOTHING = mp.mpf(10) ** -60


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(precise.DIFFERENCE_DIGITS):
        yield


def problem(n, seed, load=1.0):
    """Return A, b, mu and r; a small load leaves the optimum inside the cone."""
    rng = np.random.default_rng([n, seed])
    root = rng.normal(size=(n, n))
    A = root @ root.T + 0.3 * np.eye(n)
    return A, load * rng.normal(size=n), rng.uniform(0.4, 1.5, n), float(rng.uniform(0.5, 2))


def iterate(A, b, mu, r, count, on_edge):
    """Return x after `count` evaluations of Newton's method for the multiplier, from zero."""
    scaled, rhs, identity = A * np.outer(mu, mu), mu * b, array(np.eye(len(b)))
    multiplier = mp.mpf(0)
    for k in range(count):
        v = -solve(scaled + multiplier * identity, rhs)
        if k < count - 1:
            w = solve(scaled + multiplier * identity, v)
            step = (v @ v - r * r) / (2 * (v @ w))
            if abs(step) < NOTHING:
                break
            multiplier += step
    return mu * v * (r / mp.sqrt(v @ v) if on_edge else 1)


def optimum(A, b, mu, r):
    inside = iterate(A, b, mu, r, 1, False)
    if sum((inside / mu) ** 2) <= r * r:
        return inside
    return iterate(A, b, mu, r, 40, True)  # converges quadratically


def differentiate(function, values, changes):
    ahead, behind = (
        function(*(v + s * STEP * d for v, d in zip(values, changes, strict=True))) for s in (1, -1)
    )
    return (ahead - behind) / (2 * STEP)


def directions(n):
    """Return two changes of A, b and r: all of them, and r alone."""
    rng = np.random.default_rng(n)
    dA = rng.normal(size=(n, n))
    return [
        (dA + dA.T, rng.normal(size=n), float(rng.normal())),
        (np.zeros((n, n)), np.zeros(n), 1.0),
    ]


def check_derivative(cone, A, b, mu, r, tolerance=ROUNDING):
    """Compare with the derivative of the steps that the solver took."""
    largest = 0.0
    exact_mu = array(mu)

    def steps(A, b, r):
        return iterate(A, b, exact_mu, r, cone.count, cone.on_edge)

    for change in directions(len(b)):
        exact = differentiate(steps, (array(A), array(b), mp.mpf(r)), [array(c) for c in change])
        computed = cone.differentiate(*change)
        size = float(np.abs(exact).max())
        assert error(computed, exact) <= tolerance * max(size, 1e-3)
        assert computed == cone.differentiate(*change)
        largest = max(largest, size)
    assert largest > 1e-3


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("seed", range(2))
def test_optimum_inside_the_cone(n, seed):
    A, b, mu, r = problem(n, seed, load=0.05)
    cone = primitives.Cone(A, b, mu, r)
    assert (cone.on_edge, cone.singular, cone.count) == (False, False, 1)
    assert error(cone.x, optimum(array(A), array(b), array(mu), mp.mpf(r))) <= 64 * EPS
    check_derivative(cone, A, b, mu, r)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("seed", range(2))
def test_optimum_on_the_cone(n, seed):
    A, b, mu, r = problem(n, seed, load=20)
    cone = primitives.Cone(A, b, mu, r)
    assert cone.on_edge
    assert 2 < cone.count < MAX_STEPS
    x = array(cone.x)
    assert error(x, optimum(array(A), array(b), array(mu), mp.mpf(r))) <= CONVERGED
    assert error(sum((x / mu) ** 2), r * r) <= 8 * EPS * r * r
    # stationary: A x + b + multiplier x / mu^2 = 0 with a multiplier that is not negative
    gradient, normal = array(A) @ x + array(b), x / array(mu) ** 2
    multiplier = -(gradient @ normal) / (normal @ normal)
    assert multiplier > 0
    assert error(gradient, -multiplier * normal) <= 100 * CONVERGED
    check_derivative(cone, A, b, mu, r)


@pytest.mark.parametrize("n", SIZES)
def test_derivative_where_the_steps_converged_is_that_of_the_optimum(n):
    A, b, mu, r = problem(n, 7, load=20)
    cone = primitives.Cone(A, b, mu, r)

    def exact_optimum(A, b, r):
        return optimum(A, b, array(mu), r)

    for change in directions(n):
        values = (array(A), array(b), mp.mpf(r))
        exact = differentiate(exact_optimum, values, [array(c) for c in change])
        assert error(cone.differentiate(*change), exact) <= 1e-6


@pytest.mark.parametrize("stiffness", [1, 10])
@pytest.mark.parametrize("outside", [-1e-9, 0, 2e-11, 7e-11, 2e-10])
def test_the_boundary_of_the_cone_belongs_to_the_inside(stiffness, outside):
    """MuJoCo does not move an optimum that is outside by less than its absolute tolerances.

    They are 1e-10 for the excess of |x|^2 over r^2, and for the first step of the multiplier.
    """
    b = stiffness * np.array([0, 1 + outside])
    cone = primitives.Cone(stiffness * np.eye(2), b, np.ones(2), 1.0)
    excess, step = 2 * outside, stiffness * outside
    assert cone.on_edge is (excess > 1e-10 and step > 1e-10)
    assert cone.count == (2 if cone.on_edge else 1)
    expected = 1 if cone.on_edge else 1 + outside
    assert cone.x == pytest.approx([0, -expected], rel=4 * EPS, abs=0)


def test_derivative_on_a_round_cone():
    cone = primitives.Cone(np.eye(2), np.array([0, 2.0]), np.ones(2), 1.0)
    zero = np.zeros((2, 2))
    assert cone.differentiate(zero, np.array([1.0, 0]), 0) == pytest.approx([-0.5, 0], rel=1e-9)
    assert cone.differentiate(zero, np.array([0, 1.0]), 0) == pytest.approx([0, 0], abs=1e-9)
    assert cone.differentiate(zero, np.zeros(2), 1) == pytest.approx([0, -1], rel=1e-9)


@pytest.mark.parametrize("n", SIZES)
def test_small_forces_end_the_steps_early(n):
    """Tolerances are absolute: forces below 1e-5 are not limited, and larger ones roughly."""
    A, b, mu, _ = problem(n, 1)
    counts = set()
    for r in (1e-6, 1e-4, 3e-3):
        b *= 2 * r / float(mp.sqrt(sum((optimum(A, b, mu, mp.inf) / mu) ** 2)))
        cone = primitives.Cone(A, b, mu, r)
        assert cone.on_edge is (r > 1e-5)
        exact = iterate(array(A), array(b), array(mu), mp.mpf(r), cone.count, cone.on_edge)
        assert error(cone.x, exact) <= ROUNDING * r
        check_derivative(cone, A, b, mu, r)
        counts.add(cone.count)
    assert 1 in counts
    assert len(counts) > 1


def test_steps_end_at_their_maximum():
    """The first steps from a multiplier of zero grow by half only."""
    A, b, mu = np.diag([1e-4, 2e-4]), np.array([3e4, 1e4]), np.array([0.8, 1.2])
    cone = primitives.Cone(A, b, mu, 1.0)
    assert cone.count == MAX_STEPS
    exact = iterate(array(A), array(b), array(mu), mp.mpf(1), MAX_STEPS, True)
    assert error(cone.x, exact) <= ROUNDING


@pytest.mark.parametrize(
    ("diagonal", "singular"),
    [
        ([1e-11], True),
        ([1e-9], False),
        ([1e-6, 1e-6], True),  # the determinant counts up to three rows, pivots in more
        ([1e-3, 1e-3, 1e-3], False),
        ([1e-4, 1e-4, 1e-4], True),
        ([1e-6, 1e-6, 1e-6, 1e-6], False),
        ([1, 1, 1, 1e-11], True),
        ([1, 1, 1, 1, -1], True),
    ],
)
def test_matrices_that_mujoco_calls_singular_give_zero(diagonal, singular):
    n = len(diagonal)
    cone = primitives.Cone(np.diag(np.array(diagonal, float)), np.ones(n), np.ones(n), 1.0)
    assert cone.singular is singular
    assert any(cone.x) is not singular
    assert any(cone.differentiate(np.zeros((n, n)), np.arange(1.0, n + 1), 1)) is not singular
