"""Derivatives with respect to a force and torque on a body."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.scenes.cases import load

STEP = 1e-3  # the step is affine in applied forces where nothing constrains it


def moved(model, data, body, wrench):
    """Return velocities and sensors after a step with an additional wrench on a body."""
    d = mujoco.MjData(model)
    mujoco.mj_copyData(d, model, data)
    d.xfrc_applied[body] += wrench
    mujoco.mj_step(model, d)
    return np.concatenate([d.qvel, d.sensordata])


@pytest.mark.parametrize("name", ["everything", "free_body_with_limbs"])
def test_wrenches_act_at_the_center_of_mass(name):
    model = load(name)
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(1).normal(size=model.nv)
    lin = mujacobian.linearize(model, data, forces=True)
    for body in range(model.nbody):
        B, D = mujacobian.wrench(model, data, lin, body)
        given = np.vstack([B[model.nv : 2 * model.nv], D])
        columns = [
            (moved(model, data, body, STEP * e) - moved(model, data, body, -STEP * e)) / (2 * STEP)
            for e in np.eye(6)
        ]
        expected = np.array(columns).T
        assert abs(given - expected).max() <= 1e-8 * max(1.0, abs(expected).max())


def test_rk4_applies_wrenches_at_several_poses():
    model = load("free_body_with_limbs")
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(model)
    lin = mujacobian.linearize(model, data, forces=True)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="RK4"):
        mujacobian.wrench(model, data, lin, 1)
    wrenches = np.zeros((2, model.nbody, 6))
    trajectory = mujacobian.rollout(model, data, np.zeros((2, model.nu)), wrenches=wrenches)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="RK4"):
        trajectory.gradient(np.ones_like(trajectory.states))


def test_wrong_arguments():
    model = load("hinge_chain")
    data = mujoco.MjData(model)
    with pytest.raises(ValueError, match="forces=True"):
        mujacobian.wrench(model, data, mujacobian.linearize(model, data), 1)
    lin = mujacobian.linearize(model, data, forces=True)
    with pytest.raises(ValueError, match="body"):
        mujacobian.wrench(model, data, lin, model.nbody)
