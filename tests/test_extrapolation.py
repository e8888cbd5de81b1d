"""The error estimate of the extrapolated differences that judge second derivatives."""

import numpy as np
import pytest

from tests.oracle.extrapolation import derivative

FUNCTIONS = 200
# Entries of A^T times a cotangent are about 1. In the smallest failing scene, a pendulum of the
# random trees (seed 144), small slopes of them are about 1e-6.
SLOPE = 1e-6
FIRST_STEP = 0.02


@pytest.mark.parametrize("levels", [7, 9])
@pytest.mark.parametrize("entries", [1, 4])
def test_the_estimate_bounds_the_rounding_of_linear_functions(entries, levels):
    """Differences of a linear function contain rounding alone, which two steps can share."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(FUNCTIONS):
        value = rng.normal(size=entries)
        slope = SLOPE * rng.normal(size=entries)
        found, estimate = derivative(lambda x, a=value, b=slope: a + b * x, FIRST_STEP, levels)
        error = abs(found - slope).max()
        assert error <= estimate, f"error {error:.1e}, estimate {estimate:.1e}"
        largest = max(largest, error)
    assert largest > 0
