"""The rotations of mujacobian.rods, which Python computes, through their switches."""

import mpmath as mp
import numpy as np
import precise
import pytest
from precise import EPS, array, error

from mujacobian._rotation import exp, log, right_jacobian

# The series of the Jacobian ends at 0.1, that of the logarithm at 1e-8; beyond a right angle the
# logarithm reads the symmetric part of the matrix.
SWITCHES = [1e-8, 0.1, np.pi / 2]
ANGLES = [0, 1e-170, 1e-20, 1e-4, 0.7, 2.5, np.pi - 1e-4, np.pi - 1e-8, np.pi - 1e-13]
ANGLES += [float(s * (1 + side)) for s in SWITCHES for side in (-1e-9, -EPS, 0, EPS, 1e-9)]
AXES = [(1, 0, 0), (0, 0.6, -0.8), (-0.64, 0.6, 0.48)]

# Entries are sums of a few rounded terms, none larger than 4.
ROUNDING = 4 * EPS


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(precise.DIGITS):
        yield


@pytest.mark.parametrize("angle", [*ANGLES, np.pi, 2 * np.pi, 7.5])
def test_exponential_and_right_jacobian(angle):
    for w in angle * np.array(AXES):
        assert error(exp(w), precise.rotation_exp(array(w))) <= ROUNDING
        assert error(right_jacobian(w), precise.right_jacobian(array(w))) <= ROUNDING


@pytest.mark.parametrize("angle", ANGLES)
def test_logarithm(angle):
    """The rotation is rounded, which a small angle from half a turn does not amplify."""
    for w in angle * np.array(AXES):
        R = precise.rotation_exp(array(w)).astype(float)
        assert error(log(R), array(w)) <= np.pi * ROUNDING
