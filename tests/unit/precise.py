"""Rotations with 40 digits, by their definitions: power series of matrices, and differences.

Vectors and matrices are NumPy arrays of mpmath's numbers. A double is such a number exactly.
"""

import mpmath as mp
import numpy as np

EPS = np.finfo(float).eps
DIGITS = 40
# Central differences have an error of the order of STEP^2, and lose the digits of STEP.
DIFFERENCE_DIGITS, STEP = 70, mp.mpf(10) ** -25
BITS = 240  # behind the point of fixed-point numbers: 72 digits


def array(values):
    """Return an array of numbers of any precision."""
    return np.vectorize(mp.mpf, otypes=[object])(np.asarray(values))


def skew(w):
    """Return [w]x, with [w]x u = w x u."""
    x, y, z = w
    zero = mp.mpf(0)
    return np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]], dtype=object)


def power_series(a, first):
    """Return the sum of a^n / (n + first)! for n = 0, 1, ..., in fixed-point arithmetic."""
    a = np.vectorize(lambda x: int(mp.ldexp(x, BITS)), otypes=[object])(a)
    term = np.eye(3, dtype=int).astype(object) * (1 << BITS)
    result, n = term, first  # first is 0 or 1, with factorial 1
    while np.abs(term).max() > 1:  # floor division ends at -1
        n += 1
        term = (term @ a >> BITS) // n
        result = result + term
    return np.vectorize(lambda x: mp.ldexp(x, -BITS), otypes=[object])(result)


def rotation_exp(w):
    """Return exp([w]x), the sum of [w]x^n / n!."""
    return power_series(skew(w), 0)


def right_jacobian(w):
    """Return Jr(w), the sum of (-[w]x)^n / (n + 1)!."""
    return power_series(-skew(w), 1)


def inverse(a):
    """Return the inverse of a 3x3 matrix by Cramer's rule."""
    rows = np.stack([skew(a[:, k - 2]) @ a[:, k - 1] for k in range(3)])
    return rows / (rows[0] @ a[:, 0])


def solve(a, b):
    """Return a^-1 b for a symmetric positive definite matrix, by elimination without exchanges."""
    rows, n = np.column_stack([a, b]), len(b)
    for p in range(n):
        for r in range(p + 1, n):
            rows[r, p:] -= rows[r, p] / rows[p, p] * rows[p, p:]
    x = np.zeros(n, dtype=object)
    for p in reversed(range(n)):
        x[p] = (rows[p, n] - rows[p, p + 1 : n] @ x[p + 1 :]) / rows[p, p]
    return x


def derivative(function, x):
    """Return d(function)/dx by central differences; the last axis is the component of x."""
    with mp.workdps(DIFFERENCE_DIGITS):
        steps = STEP * array(np.eye(len(x)))
        changes = [(function(x + s) - function(x - s)) / (2 * STEP) for s in steps]
    return np.stack(changes, axis=-1)


def error(computed, exact):
    """Return the largest difference between computed numbers and exact ones, flat or not."""
    difference = array(np.ravel(computed)) - array(np.ravel(exact))
    return float(np.abs(difference).max())
