"""The examples run and find their results, and so do the examples in docstrings."""

import doctest

import numpy as np

import mujacobian.newton.solver
from examples import newton_arm, newton_cartpole, newton_pendulum, newton_push, newton_quadruped


def test_pendulum():
    np.testing.assert_allclose(newton_pendulum.main(), newton_pendulum.TRUTH, rtol=2e-3)


def test_push():
    assert newton_push.main() < 0.01


def test_arm():
    assert newton_arm.main() < 0.02


def test_cartpole():
    first, last = newton_cartpole.main()
    assert last < 0.6 * first  # one force cannot stop two poles at once


def test_quadruped():
    first, last = newton_quadruped.main()
    assert last > first + 0.1  # it moves forward


def test_docstring():
    assert doctest.testmod(mujacobian.newton.solver).failed == 0
