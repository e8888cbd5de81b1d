"""MUJACOBIAN_SELFCHECK=1 compares every result with the reference; without it nothing is added."""

import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import _batch, _core
from mujacobian import _linearization as linearization
from tests.scenes.cases import load, snapshot, states

FAULT = 1e-6  # relative to the largest entry: a thousand times the tolerance

MODEL = """
<mujoco>
  <worldbody>
    <body name="arm">
      <joint name="shoulder" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <body name="hand" pos=".3 0 0">
        <joint name="wrist" type="ball"/>
        <geom size=".05" pos=".1 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="drive" joint="shoulder"/></actuator>
  <sensor><jointpos name="angle" joint="shoulder"/></sensor>
</mujoco>"""


@pytest.fixture(autouse=True)
def enabled(monkeypatch):
    for module in (linearization, _batch):
        monkeypatch.setattr(module, "SELFCHECK", True)


@pytest.fixture
def scene():
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    data.qvel[:] = [0.3, -0.2, 0.5, 0.1]
    return model, data


@pytest.fixture
def fault(monkeypatch):
    """Return a function that makes the core add an error to one entry of a block."""

    def inject(block, row, column):
        original = _core.linearize_into

        def faulty(model, data, A, B, C, D, Bf, Df, **options):
            original(model, data, A, B, C, D, Bf, Df, **options)
            target = {"A": A, "B": B, "C": C, "Bf": Bf}[block]
            target[row, column] += FAULT * abs(target).max()

        monkeypatch.setattr(_core, "linearize_into", faulty)

    return inject


def test_correct_results_pass_unchanged(scene):
    model, data = scene
    before, count = snapshot(model, data), mujacobian.selfcheck_count()
    differences = mujacobian.fd_count()
    lin = mujacobian.linearize(model, data, forces=True)
    plain = linearization.linearize_without_selfcheck(model, data, forces=True)
    for block in ("A", "B", "Bf"):
        assert getattr(lin, block).tobytes() == getattr(plain, block).tobytes()
    assert snapshot(model, data) == before
    assert mujacobian.selfcheck_count() > count
    assert mujacobian.fd_count() == differences


@pytest.mark.parametrize("name", ["contacts/quadruped", "constraints/friction_loss_hinge"])
def test_correct_results_pass_with_constraints(name):
    model = load(name)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qvel[:] = 0.01
    mujoco.mj_step(model, data, 5)
    mujoco.mj_forward(model, data)
    assert data.nefc
    mujacobian.linearize(model, data, sensors=False)


@pytest.mark.parametrize(
    ("block", "row", "column", "names"),
    [
        ("A", 5, 1, ('next v of joint "wrist"[0]', 'q of joint "wrist"[0]')),
        ("A", 0, 4, ('next q of joint "shoulder"', 'v of joint "shoulder"')),
        ("B", 4, 0, ('next v of joint "shoulder"', 'ctrl of actuator "drive"')),
        ("C", 0, 3, ('sensor "angle"', 'q of joint "wrist"[2]')),
        ("Bf", 7, 2, ('next v of joint "wrist"[2]', 'qfrc_applied of joint "wrist"[1]')),
    ],
)
def test_a_wrong_entry_is_caught_and_named(scene, fault, block, row, column, names):
    fault(block, row, column)
    with pytest.raises(mujacobian.SelfCheckError) as caught:
        mujacobian.linearize(*scene, forces=True)
    error = caught.value
    assert (error.block, error.row, error.column) == (block, row, column)
    assert f"{block}[{row}, {column}]" in str(error)
    for name in names:
        assert name in str(error)
    assert isinstance(error, mujacobian.MujacobianError)


def test_nan_is_caught(scene, monkeypatch):
    monkeypatch.setattr(_core, "linearize_into", lambda model, data, A, *rest, **kw: A.fill(np.nan))
    with pytest.raises(mujacobian.SelfCheckError, match="A"):
        mujacobian.linearize(*scene, sensors=False)


def test_transition_checks_the_blocks_it_is_given(scene, monkeypatch):
    model, data = scene
    B = np.empty((8, 1))
    linearization.checked_transition(model, data, B=B)
    np.testing.assert_array_equal(
        B, linearization.linearize_without_selfcheck(model, data, sensors=False).B
    )

    original = _core.transition

    def faulty(model, data, A, B, C, D, **options):
        original(model, data, A, B, C, D, **options)
        B[4] *= 1 + FAULT

    monkeypatch.setattr(_core, "transition", faulty)
    with pytest.raises(mujacobian.SelfCheckError, match=r"B\[4, 0\]"):
        linearization.checked_transition(model, data, B=B)


def test_a_batch_is_checked_state_by_state(monkeypatch):
    model = load("everything")
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    rows = np.empty((2, mujoco.mj_stateSize(model, spec)))
    controls = np.empty((2, model.nu))
    for k, (_, data) in zip(range(2), states(model, "everything"), strict=False):
        mujoco.mj_getState(model, data, rows[k], spec)
        controls[k] = data.ctrl
    mujacobian.linearize_batch(model, rows, controls, sensors=False)

    original = _core.batch_into

    def faulty(model, A, **rest):
        original(model, A=A, **rest)
        A[1, model.nv, 0] += FAULT * abs(A[1]).max()

    monkeypatch.setattr(_core, "batch_into", faulty)
    with pytest.raises(mujacobian.SelfCheckError, match="state 1: "):
        mujacobian.linearize_batch(model, rows, controls, sensors=False)


SCRIPT = f"""
import mujoco, mujacobian
from mujacobian import _core
model = mujoco.MjModel.from_xml_string('''{MODEL}''')
mujacobian.linearize(model, mujoco.MjData(model))
plain = mujacobian.transition is _core.transition
print(plain, mujacobian.selfcheck_count() > 0, mujacobian.fd_count())
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "True False 0"), ("0", "True False 0"), ("1", "False True 0")],
)
def test_the_environment_decides_at_import(value, expected):
    environment = {key: v for key, v in os.environ.items() if key != "MUJACOBIAN_SELFCHECK"}
    if value is not None:
        environment["MUJACOBIAN_SELFCHECK"] = value
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == expected
