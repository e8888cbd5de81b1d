"""Quaternions: product, exponential, rotation matrix, difference; against 40 digits."""

import mpmath as mp
import numpy as np
import precise
import primitives
import pytest
from precise import EPS, array, error

ANGLES = [0, 1e-170, 1e-160, 1e-20, 1e-9, 1e-3, 1, 2, np.pi - 1e-9, np.pi, np.pi + 1e-9, 4, 6]
AXES = [(1, 0, 0), (0, 0.6, -0.8), (-0.64, 0.6, 0.48)]

# Entries are sums of up to four rounded products of numbers of at most 1.
ROUNDING = 4 * EPS


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(precise.DIGITS):
        yield


def random_quaternions(count):
    made = np.random.default_rng(5).normal(size=(count, 4))
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def product(a, b):
    """Return (a_w b_w - a_v . b_v, a_w b_v + b_w a_v + a_v x b_v)."""
    v = a[0] * b[1:] + b[0] * a[1:] + precise.skew(a[1:]) @ b[1:]
    return np.array([a[0] * b[0] - a[1:] @ b[1:], *v], dtype=object)


def conjugate(q):
    return np.array([q[0], *-q[1:]], dtype=object)


def rotation(q):
    """Return the matrix of u -> q u conj(q) / |q|^2."""
    images = [product(product(q, array([0, *u])), conjugate(q))[1:] for u in np.eye(3)]
    return np.stack(images, axis=1) / (q @ q)


def log(q):
    """Return the rotation vector of norm at most pi of a quaternion, which need not be unit."""
    sine = mp.sqrt(q[1:] @ q[1:])
    if sine == 0:
        return array(np.zeros(3))
    angle = 2 * mp.atan2(sine, q[0])
    return (angle - 2 * mp.pi if angle > mp.pi else angle) / sine * q[1:]


def test_product_conjugate_and_norm():
    for a, b in random_quaternions(20).reshape(10, 2, 4):
        computed = primitives.quaternion_product(a, b)
        assert error(computed, product(array(a), array(b))) <= ROUNDING
        assert primitives.conjugate(a) == [a[0], *-a[1:]]
        exact = array(a) / mp.sqrt(array(a) @ array(a))
        for scale in (1e-3, 1, 70):
            assert error(primitives.normalized(scale * a), exact) <= ROUNDING


def test_rotation_matrix():
    for q in random_quaternions(10):
        u = q[[1, 3, 0]]
        R = rotation(array(q))
        assert error(primitives.rotation(q), R) <= 2 * ROUNDING
        assert error(primitives.rotate_back(q, u), R.T @ array(u)) <= 2 * ROUNDING


@pytest.mark.parametrize("angle", ANGLES)
def test_exponential(angle):
    for axis in AXES:
        w = angle * np.array(axis)
        q = array(primitives.quaternion_exp(w))
        assert error(rotation(q), precise.rotation_exp(array(w))) <= 2 * ROUNDING
        assert error(q @ q, 1) <= ROUNDING
        # small vectors keep all their digits
        scale = mp.sin(mp.mpf(angle) / 2) / angle if angle else mp.mpf(0.5)
        assert error(q[1:], scale * array(w)) <= ROUNDING * angle


@pytest.mark.parametrize("scale", [1, -1, 3, -0.2])
@pytest.mark.parametrize("angle", ANGLES)
def test_difference(angle, scale):
    """The sign and the norm of `a` do not matter: the result is a rotation by at most pi."""
    for axis, b in zip(AXES, random_quaternions(3), strict=True):
        turn = primitives.quaternion_exp(angle * np.array(axis))
        a = scale * np.array(primitives.quaternion_product(b, turn))
        exact = log(product(conjugate(array(b)), array(a)))
        computed = np.array(primitives.quaternion_difference(a, b))
        if angle == np.pi:  # rounding of `a` chooses between two vectors of the same rotation
            computed *= np.sign(computed @ exact.astype(float))
        assert error(computed, exact) <= 2 * np.pi * ROUNDING
        assert np.linalg.norm(computed) <= np.pi * (1 + EPS)


def test_difference_at_half_a_turn_has_the_sign_of_the_vector_part():
    for axis in np.eye(3):
        for sign in (1, -1):
            w = primitives.quaternion_difference([0, *sign * axis], [1, 0, 0, 0])
            assert w == list(np.pi * sign * axis)


def test_difference_of_equal_quaternions_is_zero():
    for q in (np.array([1, 0, 0, 0]), np.array([0.5, 0.5, -0.5, 0.5])):
        assert primitives.quaternion_difference(q, q) == [0, 0, 0]
        assert primitives.quaternion_difference(-q, q) == [0, 0, 0]
