"""Rotations and their Jacobians on both sides of every small-angle switch, against 40 digits."""

import mpmath as mp
import numpy as np
import precise
import primitives
import pytest
from precise import EPS, STEP, array, error

# Series end and closed forms begin where the squared angle is 1.
BELOW, ABOVE = np.nextafter(1, 0), np.nextafter(1, 2)
SQUARES = [0, 5e-324, 1e-30, 1e-8, 0.3, 0.9, 1 - 1e-9, BELOW, 1, ABOVE, 1 + 1e-9, 1.1, 4, 9, 30]
ANGLES = [0, 1e-170, 1e-20, 1e-9, 1e-4, 0.1, 0.7, 1 - 1e-9, BELOW, 1, ABOVE, 1 + 1e-9, 1.5, 2.5]
ANGLES += [np.pi - 1e-9, np.pi, np.pi + 1e-9, 4, 5.5, 6.2]
LARGE = [2 * np.pi - 1e-9, 2 * np.pi, 2 * np.pi + 1e-9, 7.5, 12.5]  # Jr has no inverse at 2 pi
AXES = [(1, 0, 0), (0, 0.6, -0.8), (-0.64, 0.6, 0.48)]
V = (0.3, -1.1, 0.7)

# Entries are sums of a few rounded terms, none larger than 4.
ROUNDING = 4 * EPS


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(precise.DIGITS):
        yield


def turns(angle):
    """Return rotation vectors of this angle."""
    return [tuple(float(angle * a) for a in axis) for axis in AXES]


def cancellation(angle):
    """Return by how much closed forms amplify rounding: 1 - cos(angle) cancels at a full turn."""
    return 1 if angle < 1 else 1 / np.sin(angle / 2) ** 2


def kappa(t):
    """Return (1 - (theta / 2) cot(theta / 2)) / theta^2 with t = theta^2 > 0."""
    half = mp.sqrt(t) / 2
    return (1 - half * mp.cot(half)) / t


@pytest.mark.parametrize("k", range(6))
@pytest.mark.parametrize("t", [*SQUARES, 90])
def test_coefficients_are_the_sums_of_their_series(k, t):
    with mp.workdps(60):  # terms of up to 1e8 cancel
        exact = sum((-mp.mpf(t)) ** n / mp.factorial(2 * n + k) for n in range(60))
    # the closed forms divide numbers near 1 by t once or twice
    size = mp.mpf(1) / mp.factorial(k) if t < 1 else mp.mpf(t) ** -(k // 2)
    # rounding the result to double precision costs up to EPS / 2 of it
    assert error(primitives.exp_coefficient(k, t), exact) <= EPS * max(2 * size, abs(exact))


def test_the_vectors_below_are_on_both_sides_of_the_switch_and_on_it():
    squares = [float(np.dot(w, w)) for angle in ANGLES for w in turns(angle)]
    assert {np.sign(s - 1) for s in squares if abs(s - 1) < 1e-15} == {-1, 0, 1}


@pytest.mark.parametrize("angle", ANGLES + LARGE)
def test_exponential(angle):
    for w in turns(angle):
        assert error(primitives.rotation_exp(w), precise.rotation_exp(array(w))) <= ROUNDING


@pytest.mark.parametrize("angle", ANGLES + LARGE)
def test_right_jacobian(angle):
    for w in turns(angle):
        assert error(primitives.right_jacobian(w), precise.right_jacobian(array(w))) <= ROUNDING


@pytest.mark.parametrize("angle", [0, 1e-9, 1, 3, 7.5])
def test_right_jacobian_is_the_derivative_of_the_exponential(angle):
    """exp(w + dw) = exp(w) exp(Jr dw) to first order."""
    for w in map(array, turns(angle)):
        back, jacobian = precise.rotation_exp(-w), precise.right_jacobian(w)
        change = precise.derivative(precise.rotation_exp, w)
        for k in range(3):
            assert error(back @ change[..., k], precise.skew(jacobian[:, k])) < 1e-35


@pytest.mark.parametrize("angle", ANGLES)
def test_inverse_of_the_right_jacobian(angle):
    for w in turns(angle):
        exact = precise.inverse(precise.right_jacobian(array(w)))
        tolerance = ROUNDING * cancellation(angle) * np.abs(exact).max()
        assert error(primitives.right_jacobian_inverse(w), exact) <= tolerance


@pytest.mark.parametrize("t", SQUARES)
def test_slope_of_kappa(t):
    with mp.workdps(200):  # kappa cancels at small angles
        at = max(mp.mpf(t), mp.mpf(10) ** -40)
        exact = (kappa(at + STEP * at) - kappa(at - STEP * at)) / (2 * STEP * at)
    assert exact > mp.mpf("1.388e-3")  # 1 / 720 at zero, and growing
    # the series leaves out less than 5e-14 of the sum; the closed form is the difference of numbers
    # near kappa, which is about 0.1
    tolerance = 1e-13 * exact if t < 1 else EPS * cancellation(np.sqrt(t))
    assert error(primitives.kappa_slope(t), exact) <= tolerance


@pytest.mark.parametrize("angle", ANGLES)
def test_change_of_the_inverse_of_the_right_jacobian(angle):
    for w in turns(angle):
        exact = precise.derivative(
            lambda x: precise.inverse(precise.right_jacobian(x)) @ array(V), array(w)
        )
        computed = primitives.right_jacobian_inverse_change(w, V)
        tolerance = ROUNDING * cancellation(angle) * np.abs(exact).max()
        assert error(computed, exact) <= tolerance
        assert np.abs(exact).max() > 0.4


@pytest.mark.parametrize("angle", ANGLES + LARGE)
def test_change_of_the_transposed_right_jacobian(angle):
    for w in turns(angle):
        exact = precise.derivative(lambda x: precise.right_jacobian(x).T @ array(V), array(w))
        computed = primitives.right_jacobian_transposed_change(w, V)
        assert error(computed, exact) <= ROUNDING
        assert np.abs(exact).max() > 0.02


@pytest.mark.parametrize("angle", ANGLES)
def test_curvature_of_the_logarithm(angle):
    """The symmetric part of d(V . Jr^-1(w))/dw Jr^-1(w)."""
    for w in turns(angle):
        at = array(w)
        change = precise.derivative(
            lambda x: precise.inverse(precise.right_jacobian(x)).T @ array(V), at
        ) @ precise.inverse(precise.right_jacobian(at))
        exact = (change + change.T) / 2
        tolerance = ROUNDING * cancellation(angle) ** 2 * max(1, np.abs(change).max())
        assert error(primitives.log_curvature(w, V), exact) <= tolerance
