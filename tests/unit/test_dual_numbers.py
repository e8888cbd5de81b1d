"""Dual numbers: every operation against derivatives that mpmath takes with 40 digits."""

import mpmath as mp
import primitives
import pytest
from precise import EPS, STEP, error

X, Y = primitives.COUNT - 1, 3  # the variables of both arguments
POINTS = [(0.3, 0.8), (0.9, -0.4), (-0.6, 2.0), (-0.05, -3.0), (1e-3, 1e3)]
# A product or quotient has two roundings, its derivatives a few more.
ROUNDING = 8 * EPS

# f is the module of the functions: `primitives` for dual numbers, mpmath for the reference
OPERATIONS = {
    "x + y": lambda f, x, y: x + y,
    "x - y": lambda f, x, y: x - y,
    "x * y": lambda f, x, y: x * y,
    "x / y": lambda f, x, y: x / y,
    "2 + x": lambda f, x, y: 2.0 + x,
    "x + 2": lambda f, x, y: x + 2.0,
    "2 - x": lambda f, x, y: 2.0 - x,
    "x - 2": lambda f, x, y: x - 2.0,
    "-x": lambda f, x, y: -x,
    "2 * x": lambda f, x, y: 2.0 * x,
    "2 / x": lambda f, x, y: 2.0 / x,
    "sqrt": lambda f, x, y: f.sqrt(x * x),
    "sin": lambda f, x, y: f.sin(x),
    "cos": lambda f, x, y: f.cos(y),
    "asin": lambda f, x, y: f.asin(x),
    "atan2": lambda f, x, y: f.atan2(y, x),
    "composite": lambda f, x, y: f.sin(x * y) / (1.5 + f.cos(x)) - f.sqrt(y * y) * f.asin(x),
}


@pytest.mark.parametrize("point", POINTS, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name, point):
    operation = OPERATIONS[name]
    x, y = point
    computed = operation(primitives, primitives.variable(x, X), primitives.variable(y, Y))
    with mp.workdps(60):
        x, y = mp.mpf(x), mp.mpf(y)
        value = operation(mp, x, y)
        dx = (operation(mp, x + STEP, y) - operation(mp, x - STEP, y)) / (2 * STEP)
        dy = (operation(mp, x, y + STEP) - operation(mp, x, y - STEP)) / (2 * STEP)
        assert dx != 0 or dy != 0
        for number, exact in ((computed.v, value), (computed.d[X], dx), (computed.d[Y], dy)):
            assert error(number, exact) <= ROUNDING * max(abs(exact), 1)
    assert not any(d for k, d in enumerate(computed.d) if k not in (X, Y))


def test_constants_have_no_derivative():
    constant = primitives.Number(0.7)
    assert (constant.v, set(constant.d)) == (0.7, {0.0})
    x = primitives.variable(-0.2, 4)
    assert (x.v, x.d[4], sum(x.d)) == (-0.2, 1, 1)
    assert (primitives.value(x), primitives.value(0.5)) == (-0.2, 0.5)


def test_square_root_of_zero_has_derivative_zero():
    root = primitives.sqrt(primitives.variable(0.0, 1))
    assert (root.v, set(root.d)) == (0, {0.0})


@pytest.mark.parametrize(
    ("x", "clamped", "inside"),
    [(-2.0, -1, False), (-1.0, -1, True), (0.3, 0.3, True), (0.5, 0.5, True), (0.6, 0.5, False)],
)
def test_clamp(x, clamped, inside):
    """At the ends of the range the inside counts."""
    limits = [-1, 0.5]
    number = primitives.clamp(primitives.variable(x, 2), limits)
    assert (number.v, number.d[2], sum(number.d)) == (clamped, inside, inside)
    assert primitives.clamp(x, limits) == clamped
    assert primitives.outside(x, limits) is not inside


def test_clamp_to_a_limit_that_may_be_absent():
    x = primitives.variable(-3.0, 0)
    for limit, value, slope in (
        (2.0, -2, 0),
        (3.0, -3, 1),
        (4.0, -3, 1),
        (0.0, -3, 1),
        (-1.0, -3, 1),
    ):
        number = primitives.clamp(x, limit)
        assert (number.v, number.d[0]) == (value, slope)
