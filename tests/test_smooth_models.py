"""A, B and Bf of every test model, integrator and state against the reference."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.oracle.judge import SMOOTH_TOLERANCE, judge
from tests.scenes.cases import FLAGS, INTEGRATORS, MODELS, load, sample, states

# Columns on a kink or below rounding are left out; a test that left out more would prove little. On
# average 99.8 % of the entries are trusted.
TRUSTED_SHARE = 0.85  # dampers in v|v| have kinks where a velocity is zero

FLAG_MODELS = [
    "everything",
    "gravcomp_through_actuators",
    "joint_dampers",
    "spatial_tendon_across_trees",
    "free_body_damped",
    "tendon_force_scaling",
    "ctrl_clamping",
    "actuator_damping_and_armature",
]


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", MODELS)
def test_derivatives_match_the_reference(name, integrator):
    model = load(name)
    INTEGRATORS[integrator](model)
    for label, data in states(model, name):
        try:
            share, _ = judge(model, data)
        except AssertionError as error:
            raise AssertionError(f"{name}, {integrator}, state {label}: {error}") from None
        assert share >= TRUSTED_SHARE, f"state {label}: the reference trusts only {share:.3f}"


@pytest.mark.parametrize(("name", "integrator", "flag"), sample(3, FLAG_MODELS, INTEGRATORS, FLAGS))
def test_disable_flags(name, integrator, flag):
    model = load(name)
    INTEGRATORS[integrator](model)
    model.opt.disableflags |= int(FLAGS[flag])
    for label, data in states(model, name):
        try:
            share, _ = judge(model, data)
        except AssertionError as error:
            raise AssertionError(f"{name}, {integrator}, {flag}, state {label}: {error}") from None
        assert share >= TRUSTED_SHARE, f"state {label}: the reference trusts only {share:.3f}"


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_control_at_its_limit_has_the_derivative_from_inside(integrator):
    """At lo <= ctrl <= hi the control acts: B at the limit equals the limit of B from inside."""
    model = load("ctrl_clamping")
    INTEGRATORS[integrator](model)
    B = mujacobian.linearize(model, _keyframes(model)["limit"], sensors=False).B
    inside = _keyframes(model)["limit"]
    inside.ctrl[:] *= 1 - 1e-12
    B_inside = mujacobian.linearize(model, inside, sensors=False).B
    assert (abs(B).max(axis=0) > 0).all()
    np.testing.assert_allclose(B, B_inside, rtol=SMOOTH_TOLERANCE, atol=1e-15)


@pytest.mark.parametrize("key", ["above", "below"])
def test_control_beyond_its_limit_has_no_derivative(key):
    model = load("ctrl_clamping")
    B = mujacobian.linearize(model, _keyframes(model)[key], sensors=False).B
    assert not B.any()


def _keyframes(model):
    found = {}
    for k in range(model.nkey):
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, k)
        found[model.key(k).name] = data
    return found
