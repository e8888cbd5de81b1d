"""Delayed actuators and sensors in one step, with a constant history."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import control, reference

TOLERANCE = 1e-8  # of the reference without contacts
XML = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep=".01" integrator="{integrator}"/>
  <worldbody>
    <body name="arm">
      <joint name="hip" axis="0 1 0" damping=".3"/>
      <geom type="capsule" fromto="0 0 0 .3 0 -.4" size=".05"/>
      <site name="tip" pos=".3 0 -.4"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="prompt" joint="hip"/>
    <motor name="late" joint="hip" gear="3" delay=".025" nsample="5" interp="{interp}"
      ctrllimited="true" ctrlrange="-.5 .5"/>
    <position name="servo" joint="hip" kp="20" kv="1" delay=".03" nsample="6"/>
    <general name="slow" joint="hip" dyntype="filterexact" dynprm=".05" delay=".02" nsample="4"
      gaintype="affine" gainprm="2 .3 .1"/>
    <motor name="logged" joint="hip" nsample="3"/>
    <pid name="pid" joint="hip" kp="5" kv=".6" ki="3" input="pos vel" delay=".015" nsample="4"
      interp="{interp}"/>
  </actuator>
  <sensor>
    <jointpos joint="hip"/>
    <jointpos name="past" joint="hip" delay=".025" interp="linear" nsample="4"/>
    <framepos name="rare" objtype="site" objname="tip" interval=".025" nsample="3"/>
    <framelinvel name="logged" objtype="site" objname="tip" nsample="5"/>
    <actuatorfrc name="late" actuator="late"/>
    <accelerometer site="tip" delay=".02" nsample="4"/>
  </sensor>
</mujoco>"""


def scene(integrator="Euler", interp="linear", steps=7):
    model = mujoco.MjModel.from_xml_string(XML.format(integrator=integrator, interp=interp))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(5)
    data.qpos[:], data.qvel[:] = 0.3, 0.5
    for _ in range(steps):
        data.ctrl[:] = rng.uniform(-0.6, 0.6, model.nu)
        mujoco.mj_step(model, data)
    return model, data


def agrees(model, data):
    lin = mujacobian.linearize(model, data, forces=True)
    found = reference.jacobian(model, data, forces=True)
    for name in ("A", "B", "C", "D", "Bf", "Df"):
        error = abs(getattr(lin, name) - getattr(found, name)).max()
        assert error < TOLERANCE * max(1, abs(getattr(found, name)).max()), name
    return lin


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast", "discrete"])
@pytest.mark.parametrize("interp", ["zoh", "linear", "cubic"])
def test_a_step_is_exact(integrator, interp):
    model, data = scene(integrator, interp)
    assert mujacobian.support(model) == []
    before = data.history.copy()
    lin = agrees(model, data)
    assert (data.history == before).all()
    assert lin.B[:, [0, 4]].all(axis=1).any()
    assert not lin.B[:, [1, 2, 3, 5, 6]].any()  # these controls act later
    assert not lin.C[1].any()  # the value comes from the history


@pytest.mark.parametrize("steps", range(6))
def test_sensors_with_an_interval_are_constant_until_it_has_passed(steps):
    model, data = scene(steps=steps)
    lin = agrees(model, data)
    adr, begin = model.sensor("rare").adr[0], data.history[model.sensor_historyadr[2]]
    passed = begin + model.sensor_interval[2, 0] <= data.time
    assert lin.C[adr : adr + 3].any() == passed
    assert lin.C[adr + 3 : adr + 6].any()  # of the sensor whose values are only recorded


def test_products_and_batches_are_exact():
    model, data = scene()
    lin = mujacobian.linearize(model, data)
    rng = np.random.default_rng(1)
    x, s = rng.normal(size=len(lin.A)), rng.normal(size=len(lin.C))
    pulled = mujacobian.vjp(model, data, x, s)
    np.testing.assert_allclose(pulled.state, lin.A.T @ x + lin.C.T @ s, atol=1e-12)
    np.testing.assert_allclose(pulled.controls, lin.B.T @ x + lin.D.T @ s, atol=1e-12)
    state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    batch = mujacobian.linearize_batch(model, state[None], data.ctrl[None])
    np.testing.assert_allclose(batch.A[0], lin.A, atol=1e-12)
    np.testing.assert_allclose(batch.C[0], lin.C, atol=1e-12)


def test_parameters_of_delayed_sensors_raise_in_one_step():
    model, data = scene()
    params = mujacobian.Parameters(model, ["gravity"])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="past"):
        mujacobian.vjp(model, data, None, np.ones(model.nsensordata), params=params)


def test_rk4_raises():
    model, data = scene("RK4")
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"late.*RK4"):
        mujacobian.linearize(model, data)


@pytest.mark.parametrize("fallback", [None, "fd"])
def test_planners_raise(fallback):
    model, _ = scene()
    cost = control.Cost(model, [control.Term("u", control.controls(model))])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"late.*delayed"):
        control.ILQR(model, cost, 5, fallback=fallback)
