"""linearize_batch returns the same as linearize for every row, with any number of threads."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.scenes.cases import load, random_state

SPEC = mujoco.mjtState.mjSTATE_FULLPHYSICS
KNOTS = 23  # not a multiple of the numbers of threads below


@pytest.fixture
def model():
    return load("everything")


def trajectory(model, knots=KNOTS):
    rng = np.random.default_rng(5)
    states = np.empty((knots, mujoco.mj_stateSize(model, SPEC)))
    controls = rng.normal(size=(knots, model.nu))
    for row in states:
        mujoco.mj_getState(model, random_state(model, rng), row, SPEC)
    return states, controls


def one_by_one(model, states, controls):
    data = mujoco.MjData(model)
    for state, control in zip(states, controls, strict=True):
        mujoco.mj_setState(model, data, state, SPEC)
        data.ctrl[:] = control
        yield mujacobian.linearize(model, data, sensors=False)


@pytest.mark.parametrize("name", ["everything", "two_robots", "ball_chain", "many_free_bodies"])
def test_rows_are_those_of_linearize(name):
    model = load(name)
    states, controls = trajectory(model)
    differences = mujacobian.fd_count()
    lins = mujacobian.linearize_batch(model, states, controls, sensors=False)
    for k, lin in enumerate(one_by_one(model, states, controls)):
        assert lins.A[k].tobytes() == lin.A.tobytes()
        assert lins.B[k].tobytes() == lin.B.tobytes()
    assert np.ptp(lins.A, axis=0).any()
    assert mujacobian.fd_count() == differences


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 64])
def test_threads_do_not_matter(model, threads):
    states, controls = trajectory(model)
    expected = mujacobian.linearize_batch(model, states, controls, sensors=False)
    lins = mujacobian.linearize_batch(model, states, controls, sensors=False, threads=threads)
    assert lins.A.tobytes() == expected.A.tobytes()
    assert lins.B.tobytes() == expected.B.tobytes()


def test_order_does_not_matter(model):
    states, controls = trajectory(model)
    expected = mujacobian.linearize_batch(model, states, controls, sensors=False)
    lins = mujacobian.linearize_batch(
        model, states[::-1].copy(), controls[::-1].copy(), sensors=False
    )
    assert lins.A[::-1].tobytes() == expected.A.tobytes()


def test_inputs_are_unchanged(model):
    states, controls = trajectory(model)
    given = states.copy(), controls.copy()
    mujacobian.linearize_batch(model, states, controls, sensors=False)
    assert (states == given[0]).all()
    assert (controls == given[1]).all()


def test_empty_batch(model):
    states, controls = trajectory(model, 0)
    lins = mujacobian.linearize_batch(model, states, controls)
    nx = 2 * model.nv
    assert lins.A.shape == (0, nx, nx)
    assert lins.B.shape == (0, nx, model.nu)
    assert lins.C.shape == (0, 0, nx)
    assert lins.D.shape == (0, 0, model.nu)


def test_no_controls_and_no_degrees_of_freedom():
    for name in ("ball_chain", "static_world"):
        model = load(name)
        states, controls = trajectory(model, 4)
        lins = mujacobian.linearize_batch(model, states, controls)
        assert lins.A.shape == (4, 2 * model.nv, 2 * model.nv)
        assert lins.B.shape == (4, 2 * model.nv, 0)


def test_wrong_sizes(model):
    states, controls = trajectory(model)
    for wrong in (states[:, :-1], states[0], states[None], np.zeros((KNOTS, 0))):
        with pytest.raises((ValueError, TypeError), match=r"\bstates\b"):
            mujacobian.linearize_batch(model, wrong, controls, sensors=False)
    for wrong in (controls[:, :-1], controls[0], controls[None]):
        with pytest.raises((ValueError, TypeError), match=r"\bcontrols\b"):
            mujacobian.linearize_batch(model, states, wrong, sensors=False)
    with pytest.raises((ValueError, TypeError), match=r"\bcontrols\b|\bstates\b"):
        mujacobian.linearize_batch(model, states, controls[:-1], sensors=False)


@pytest.mark.parametrize("wrong", ["states", None, object()])
def test_inputs_that_are_no_arrays(model, wrong):
    states, controls = trajectory(model)
    with pytest.raises((ValueError, TypeError), match=r"\bstates\b"):
        mujacobian.linearize_batch(model, wrong, controls, sensors=False)
    with pytest.raises((ValueError, TypeError), match=r"\bcontrols\b"):
        mujacobian.linearize_batch(model, states, wrong, sensors=False)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "two"])
def test_wrong_number_of_threads(model, threads):
    states, controls = trajectory(model)
    with pytest.raises((ValueError, TypeError), match="threads"):
        mujacobian.linearize_batch(model, states, controls, sensors=False, threads=threads)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_bad_state_is_named_by_its_index(model, threads):
    states, controls = trajectory(model)
    states[17, 2] = np.nan
    with pytest.raises(ValueError, match=r"\b17\b"):
        mujacobian.linearize_batch(model, states, controls, sensors=False, threads=threads)
    states, controls = trajectory(model)
    controls[11, 0] = np.inf
    with pytest.raises(ValueError, match=r"\b11\b"):
        mujacobian.linearize_batch(model, states, controls, sensors=False, threads=threads)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_unsupported_state_is_named_by_its_index_and_element(threads):
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom name="post" type="cylinder" size=".1 .1"/><body pos="0 0 1">'
        '<joint type="slide" axis="0 0 1"/><geom name="cap" type="cylinder" size=".1 .1"/>'
        "</body></worldbody></mujoco>"
    )
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_NATIVECCD
    states, controls = trajectory(model, 9)
    states[:, 1] = 0
    states[6, 1:3] = -0.801, -1  # two cylinders collide with the legacy collider
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="post") as error:
        mujacobian.linearize_batch(model, states, controls, threads=threads)
    assert "6" in str(error.value)
    states[6, 1:3] = 0.5, 0
    assert mujacobian.linearize_batch(model, states, controls, threads=threads).A.any()
