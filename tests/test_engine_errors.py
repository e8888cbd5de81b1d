"""An error raised inside MuJoCo becomes a Python exception, in worker threads too."""

import mujoco
import numpy as np
import pytest

import mujacobian

BALLS = 20
SPEC = mujoco.mjtState.mjSTATE_FULLPHYSICS


@pytest.fixture
def model():
    """Return balls whose constraints exceed the small memory when they touch."""
    balls = "".join(
        f'<body pos="{k} 0 1"><freejoint/><geom size=".1"/></body>' for k in range(BALLS)
    )
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><size memory="16K"/><worldbody>{balls}</worldbody></mujoco>'
    )


def piled_up(model):
    data = mujoco.MjData(model)
    data.qpos.reshape(BALLS, 7)[:, :3] *= 1e-3
    return data


def test_single_call(model):
    with pytest.raises(mujacobian.MujacobianError, match="out of memory"):
        mujacobian.linearize(model, piled_up(model))


def test_data_is_usable_again_after_a_reset(model):
    data = piled_up(model)
    with pytest.raises(mujacobian.MujacobianError):
        mujacobian.linearize(model, data)
    mujoco.mj_resetData(model, data)
    expected = mujacobian.linearize(model, mujoco.MjData(model))
    assert mujacobian.linearize(model, data).A.tobytes() == expected.A.tobytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_batch(model, threads):
    states = np.empty((8, mujoco.mj_stateSize(model, SPEC)))
    for k, row in enumerate(states):
        data = piled_up(model) if k == 5 else mujoco.MjData(model)
        mujoco.mj_getState(model, data, row, SPEC)
    controls = np.zeros((8, 0))
    with pytest.raises(mujacobian.MujacobianError, match=r"\b5\b.*out of memory"):
        mujacobian.linearize_batch(model, states, controls, threads=threads)
    states[5] = states[4]
    assert mujacobian.linearize_batch(model, states, controls, threads=threads).A.any()
