"""Equality, friction-loss and limit rows: A, B and Bf of every model, integrator and state."""

import mujoco
import numpy as np
import pytest

import mujacobian
import reference
from cases import CONSTRAINT_MODELS, INTEGRATORS, constrained_states, load
from judge import ROW_TOLERANCE, judge_constrained

# Columns on a kink are left out, and entries that drown in rounding (none in these states). A test
# that left out more would prove little.
TRUSTED_SHARE = 0.95


def load_converged(name):
    return reference.converge(load(f"constraints/{name}"))


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", CONSTRAINT_MODELS)
def test_derivatives_match_the_reference(name, integrator):
    model = load_converged(name)
    INTEGRATORS[integrator](model)
    for label, data in constrained_states(model, name):
        try:
            share = judge_constrained(model, data, ROW_TOLERANCE)
        except AssertionError as error:
            raise AssertionError(f"{name}, {integrator}, state {label}: {error}") from None
        assert share >= TRUSTED_SHARE, f"state {label}: the reference trusts only {share:.3f}"
