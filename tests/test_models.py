"""The test models have the features of their names in the tested states."""

import mujoco
import numpy as np
import pytest

from tests.scenes.cases import MODELS, load, states


@pytest.mark.parametrize("name", MODELS)
def test_states_are_smooth_and_finite(name):
    model = load(name)
    for label, data in states(model, name):
        mujoco.mj_forward(model, data)
        assert data.nefc == 0, label
        assert np.isfinite(data.qacc).all(), label


def forward(name, key):
    model = load(name)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key(key).id)
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize(
    ("key", "saturated"), [("first_saturated", [True, False]), ("second_saturated", [False, True])]
)
def test_force_clamping_saturates(key, saturated):
    model, data = forward("force_clamping", key)
    at_limit = (data.actuator_force[:, None] == model.actuator_forcerange).any(axis=1)
    assert at_limit.tolist() == saturated


@pytest.mark.parametrize(
    ("key", "saturated"), [("first_saturated", [True, False]), ("second_saturated", [False, True])]
)
def test_joint_force_clamping_saturates(key, saturated):
    model, data = forward("joint_force_clamping", key)
    at_limit = (data.qfrc_actuator[:, None] == model.jnt_actfrcrange).any(axis=1)
    assert at_limit.tolist() == saturated


@pytest.mark.parametrize(("key", "side"), [("unsaturated", None), ("above", 1), ("below", 0)])
def test_tendon_forces_are_scaled(key, side):
    model, data = forward("tendon_force_scaling", key)
    totals = [
        data.actuator_force[(model.actuator_trntype == 3) & (model.actuator_trnid[:, 0] == t)].sum()
        for t in range(model.ntendon)
    ]
    limits = model.tendon_actfrcrange
    if side is None:
        assert ((limits[:, 0] < totals) & (totals < limits[:, 1])).all()
    else:
        np.testing.assert_allclose(totals, limits[:, side])


def test_gravity_compensation_is_clamped_on_one_joint():
    name = "gravcomp_through_actuators"
    model = load(name)
    narrow = model.joint("narrow").id
    clamped = []
    for _, data in states(model, name):
        mujoco.mj_forward(model, data)
        clamped.append(data.qfrc_actuator[narrow] in model.jnt_actfrcrange[narrow])
    assert any(clamped)


def test_dead_band_keyframes_lie_on_three_sides():
    for key, sign in (("below", 1), ("inside", 0), ("above", -1)):
        model, data = forward("fixed_tendon", key)
        lo, hi = model.tendon_lengthspring[0]
        length = data.ten_length[0]
        assert int(length < lo) - int(length > hi) == sign


def test_simple_bodies_are_simple():
    assert load("free_body_simple").body_simple[1] == 1
    assert load("three_slides").body_simple[1] == 2
    assert load("free_body").body_simple[1] == 0
