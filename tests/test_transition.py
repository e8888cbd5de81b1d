"""transition writes what linearize returns into the caller's arrays, after mj_forward."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.scenes.cases import load, random_state, snapshot

NAME = "everything"
# results of mj_forward that a user may read after the call
DERIVED = [
    "xpos", "xquat", "xipos", "ximat", "site_xpos", "cdof", "cinert", "M", "ten_length", "ten_J",
    "actuator_length", "actuator_moment", "actuator_velocity", "cvel", "cdof_dot", "qfrc_bias",
    "qfrc_passive", "qfrc_actuator", "actuator_force", "qfrc_smooth", "qacc_smooth", "qacc",
    "qLD", "subtree_com", "ten_velocity",
]  # fmt: skip


@pytest.fixture
def model():
    return load(NAME)


@pytest.fixture
def data(model):
    return random_state(model, np.random.default_rng(3), forces=True)


def outputs(model):
    nx = 2 * model.nv
    return np.full((nx, nx), np.nan), np.full((nx, model.nu), np.nan)


def test_in_place(model, data):
    lin = mujacobian.linearize(model, data, sensors=False)
    A, B = outputs(model)
    assert mujacobian.transition(model, data, A, B) is None
    assert A.tobytes() == lin.A.tobytes()
    assert B.tobytes() == lin.B.tobytes()


def test_none_skips_a_block(model, data):
    full_A, full_B = outputs(model)
    mujacobian.transition(model, data, full_A, full_B)
    A, B = outputs(model)
    mujacobian.transition(model, data, A)
    mujacobian.transition(model, data, B=B)
    mujacobian.transition(model, data)
    assert A.tobytes() == full_A.tobytes()
    assert B.tobytes() == full_B.tobytes()


def test_a_contiguous_view_of_a_larger_array(model, data):
    nx = 2 * model.nv
    horizon = np.zeros((3, nx, nx))
    mujacobian.transition(model, data, horizon[1])
    assert horizon[1].any()
    assert not horizon[[0, 2]].any()


def test_forward_false_uses_the_forward_pass_of_the_caller(model, data):
    expected = mujacobian.linearize(model, data, sensors=False, forces=True)
    fresh = mujoco.MjData(model)
    mujoco.mj_copyData(fresh, model, data)
    mujoco.mj_forward(model, fresh)
    lin = mujacobian.linearize(model, fresh, sensors=False, forces=True, forward=False)
    for block in ("A", "B", "Bf"):
        assert getattr(lin, block).tobytes() == getattr(expected, block).tobytes()


def test_forces(model, data):
    """A force on dof i acts like the control of a motor on it."""
    lin = mujacobian.linearize(model, data, sensors=False, forces=True)
    assert lin.Bf.shape == (2 * model.nv, model.nv)
    mass = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass)
    explicit = load(NAME)
    explicit.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    Bf = mujacobian.linearize(explicit, data, sensors=False, forces=True).Bf
    expected = explicit.opt.timestep * np.linalg.inv(mass)
    np.testing.assert_allclose(Bf[model.nv :], expected, rtol=1e-9, atol=1e-12)


def test_data_is_as_after_mj_forward(model, data):
    expected = mujoco.MjData(model)
    mujoco.mj_copyData(expected, model, data)
    mujoco.mj_forward(model, expected)
    before = snapshot(model, data)
    mujacobian.linearize(model, data, sensors=False, forces=True)
    assert snapshot(model, data) == before
    for field in DERIVED:
        given = np.asarray(getattr(data, field))
        assert given.tobytes() == np.asarray(getattr(expected, field)).tobytes(), field


def test_forward_false_changes_nothing_in_data(model, data):
    mujoco.mj_forward(model, data)
    before = {field: np.asarray(getattr(data, field)).tobytes() for field in DERIVED}
    state = snapshot(model, data)
    mujacobian.linearize(model, data, sensors=False, forces=True, forward=False)
    assert snapshot(model, data) == state
    for field, value in before.items():
        assert np.asarray(getattr(data, field)).tobytes() == value, field


def test_a_step_after_the_call_is_the_step_without_it(model, data):
    other = mujoco.MjData(model)
    mujoco.mj_copyData(other, model, data)
    mujacobian.linearize(model, data, sensors=False)
    mujoco.mj_step(model, data)
    mujoco.mj_step(model, other)
    assert snapshot(model, data) == snapshot(model, other)


def test_options_may_change_between_calls(model, data):
    """No data of a model are cached that its owner may change."""
    first = mujacobian.linearize(model, data, sensors=False).A
    model.opt.timestep *= 2
    model.dof_damping[:] *= 3
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    changed = mujacobian.linearize(model, data, sensors=False).A
    fresh = load(NAME)
    fresh.opt.timestep *= 2
    fresh.dof_damping[:] *= 3
    fresh.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert changed.tobytes() == mujacobian.linearize(fresh, data, sensors=False).A.tobytes()
    assert changed.tobytes() != first.tobytes()


def test_models_of_different_size_may_alternate():
    names = ["everything", "hinge_chain", "many_free_bodies", "three_slides"]
    models = [load(name) for name in names]
    datas = [random_state(model, np.random.default_rng(1)) for model in models]
    expected = [
        mujacobian.linearize(m, d, sensors=False).A for m, d in zip(models, datas, strict=True)
    ]
    for _ in range(3):
        for m, d, A in zip(models, datas, expected, strict=True):
            assert mujacobian.linearize(m, d, sensors=False).A.tobytes() == A.tobytes()
