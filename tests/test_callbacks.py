"""Steps with user callbacks: with their Jacobians, the derivative is that of the closed loop."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference

TOLERANCE = 1e-6  # of the reference in contact
XML = """
<mujoco>
  <option integrator="{integrator}"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body pos="0 0 .5">
      <joint name="height" type="slide" axis="0 0 1" damping="1"/>
      <geom type="box" size=".1 .1 .05"/>
      <body pos=".1 0 0">
        <joint name="swing" type="ball" damping=".1"/>
        <geom type="capsule" fromto="0 0 0 .1 0 -.45" size=".04"/>
        <site name="tip" pos=".1 0 -.45"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="height"/>
    <position joint="height" kp="20" ctrlrange="-2 2"/>
    <general joint="swing" gear="1 .5 0" dyntype="filter" dynprm=".05" gainprm="3"/>
  </actuator>
  <sensor>
    <actuatorfrc actuator="2"/><accelerometer site="tip"/><touch site="tip"/>
  </sensor>
</mujoco>
""".replace('"2"', '"filter"').replace("<general ", '<general name="filter" ')


def control(model, data):
    """Set nonlinear feedback of the velocities, the activation and the last control."""
    data.ctrl[0] = -3 * np.tanh(data.qvel[0]) + data.act[0]
    data.ctrl[2] = np.sin(data.qvel[1]) + 0.5 * data.ctrl[2]


def control_jacobian(model, data):
    """Return the derivatives of `control`; it leaves the second control as it is."""
    nx = 2 * model.nv + model.na
    state, before = np.zeros((model.nu, nx)), np.zeros((model.nu, model.nu))
    state[0, model.nv] = -3 / np.cosh(data.qvel[0]) ** 2
    state[0, 2 * model.nv] = 1
    state[2, model.nv + 1] = np.cos(data.qvel[1])
    before[1, 1], before[2, 2] = 1, 0.5
    return state, before


def passive(model, data):
    """Add a nonlinear spring and a drag that depends on another joint."""
    data.qfrc_passive[0] += -50 * np.sin(3 * data.qpos[0])
    data.qfrc_passive[2] += -0.3 * data.qvel[2] * data.qvel[0] ** 2


def passive_jacobian(model, data):
    slopes = np.zeros((model.nv, 2 * model.nv + model.na))
    slopes[0, 0] = -150 * np.cos(3 * data.qpos[0])
    slopes[2, model.nv + 2] = -0.3 * data.qvel[0] ** 2
    slopes[2, model.nv] = -0.6 * data.qvel[2] * data.qvel[0]
    return slopes


BOTH = {
    "control": control,
    "control_jacobian": control_jacobian,
    "passive": passive,
    "passive_jacobian": passive_jacobian,
}


def load(integrator="Euler"):
    model = mujoco.MjModel.from_xml_string(XML.format(integrator=integrator))
    reference.converge(model)
    data = mujoco.MjData(model)
    data.qpos[0] = -0.012
    data.qvel[:] = 0.3, -0.4, 0.5, 0.2
    data.ctrl[:] = 0.2, 0.1, 0.7
    data.act[:] = 0.3
    return model, data


def share_within_tolerance(lin, expected):
    """Return the share of trusted entries; assert that they are all within the tolerance."""
    given = np.block([[lin.A, lin.B], [lin.C, lin.D]])
    scale = abs(expected.J).max(axis=0, keepdims=True) + 1e-3
    trusted = expected.err < 0.2 * TOLERANCE * scale
    error = abs(given - expected.J)
    assert (error < TOLERANCE * scale)[trusted].all()
    return trusted.mean()


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast"])
@pytest.mark.parametrize("names", [("control",), ("passive",), ("control", "passive")])
def test_closed_loop(integrator, names):
    model, data = load(integrator)
    chosen = {key: BOTH[key] for name in names for key in (name, f"{name}_jacobian")}
    open_loop = mujacobian.linearize(model, data)
    state = data.ctrl.copy(), data.qpos.copy()
    with mujacobian.callbacks(**chosen):
        lin = mujacobian.linearize(model, data, forces=True)
        expected = reference.jacobian(model, data, constrained=True)
    assert data.ncon
    np.testing.assert_array_equal(data.ctrl, state[0])
    np.testing.assert_array_equal(data.qpos, state[1])
    assert abs(lin.A - open_loop.A).max() > 1e-3
    assert share_within_tolerance(lin, expected) > 0.9
    assert mujoco.get_mjcb_control() is None
    assert mujoco.get_mjcb_passive() is None


def test_a_matrix_means_that_controls_are_overwritten():
    model, data = load()
    gain = np.random.default_rng(0).normal(size=(model.nu, 2 * model.nv + model.na))

    def overwrite(model, data):
        data.ctrl[:] = 0.1

    with mujacobian.callbacks(control=overwrite, control_jacobian=lambda m, d: gain):
        lin = mujacobian.linearize(model, data)
    assert not lin.B.any()
    assert not lin.D.any()


def test_a_callback_without_jacobian_raises():
    model, data = load()
    with (
        mujacobian.callbacks(control=control, passive=passive, passive_jacobian=passive_jacobian),
        pytest.raises(mujacobian.UnsupportedFeatureError, match="mjcb_control"),
    ):
        mujacobian.linearize(model, data)


def test_a_callback_that_was_replaced_raises():
    """The Jacobian belongs to the function that it was given with."""
    model, data = load()
    with mujacobian.callbacks(control=control, control_jacobian=control_jacobian):
        mujoco.set_mjcb_control(lambda model, data: None)
        with pytest.raises(mujacobian.UnsupportedFeatureError, match="mjcb_control"):
            mujacobian.linearize(model, data)
    assert mujoco.get_mjcb_control() is None


def test_blocks_nest():
    model, data = load()
    with mujacobian.callbacks(control=control, control_jacobian=control_jacobian):
        first = mujacobian.linearize(model, data)
        with mujacobian.callbacks(passive=passive, passive_jacobian=passive_jacobian):
            assert mujoco.get_mjcb_control() is control
            with pytest.raises(mujacobian.UnsupportedFeatureError, match="mjcb_control"):
                mujacobian.linearize(model, data)
        np.testing.assert_array_equal(mujacobian.linearize(model, data).A, first.A)


def gradient(model, data):
    trajectory = mujacobian.rollout(model, data, np.zeros((3, model.nu)))
    trajectory.gradient(np.ones_like(trajectory.states))


def batch(model, data):
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    mujacobian.linearize_batch(model, np.zeros((1, size)), np.zeros((1, model.nu)))


def pull_back(model, data):
    mujacobian.vjp(model, data, np.ones(2 * model.nv + model.na))


@pytest.mark.parametrize(
    "function", [mujacobian.transition, mujacobian.diagnose, pull_back, gradient, batch]
)
def test_other_functions_raise(function):
    model, data = load()
    with mujacobian.callbacks(**BOTH), pytest.raises(mujacobian.UnsupportedFeatureError):
        function(model, data)


def test_runge_kutta_raises():
    model, data = load("RK4")
    with (
        mujacobian.callbacks(**BOTH),
        pytest.raises(mujacobian.UnsupportedFeatureError, match="RK4"),
    ):
        mujacobian.linearize(model, data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"control_jacobian": control_jacobian}, "control_jacobian is given without control"),
        ({"control": 3}, "control must be a function, got int"),
    ],
)
def test_bad_arguments(arguments, message):
    with (
        pytest.raises(mujacobian.MujacobianError, match=message),
        mujacobian.callbacks(**arguments),
    ):
        pass
    assert mujoco.get_mjcb_control() is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            np.zeros((3, 2)),
            r"control_jacobian must return an array of shape \(3, 9\), got \(3, 2\)",
        ),
        (np.full((3, 9), np.nan), "must be finite"),
        ("x", "must be an array of numbers"),
    ],
)
def test_bad_jacobians(value, message):
    model, data = load()
    with (
        mujacobian.callbacks(control=control, control_jacobian=lambda m, d: value),
        pytest.raises(mujacobian.MujacobianError, match=message),
    ):
        mujacobian.linearize(model, data)


SENSED = """
<mujoco>
  <worldbody>
    <body><joint name="hip" axis="0 1 0"/><geom size=".1" pos="0 0 -1"/>
      <site name="tip" pos="0 .1 -1"/></body>
  </worldbody>
  <actuator><motor joint="hip"/></actuator>
  <sensor>
    <user name="first" dim="2" datatype="real" needstage="vel"/>
    <framepos objtype="site" objname="tip"/>
    <user name="second" dim="1" datatype="positive" needstage="{stage}" cutoff="{cutoff}"/>
  </sensor>
</mujoco>"""


def user_sensor(model, data, stage):
    """Set two user sensors, one of which depends on the control."""
    q, v = data.qpos[0], data.qvel[0]
    if stage == mujoco.mjtStage.mjSTAGE_VEL:
        data.sensordata[:2] = q * q, np.sin(q) * v
    if stage == model.sensor_needstage[2]:
        data.sensordata[5] = 3 * v + data.ctrl[0]


def sensor_jacobian(model, data):
    """Return the derivatives of the values above by state and control."""
    q, v = data.qpos[0], data.qvel[0]
    return [[2 * q, 0], [np.cos(q) * v, np.sin(q)], [0, 3]], [[0], [0], [1]]


def sensed(stage="vel", cutoff=0):
    model = mujoco.MjModel.from_xml_string(SENSED.format(stage=stage, cutoff=cutoff))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = 0.4, 0.3, 0.2
    return model, data


@pytest.mark.parametrize("cutoff", [0, 0.5, 5])
def test_user_sensors_with_a_jacobian_are_exact(cutoff):
    model, data = sensed(cutoff=cutoff)
    with mujacobian.callbacks(sensor=user_sensor, sensor_jacobian=sensor_jacobian):
        lin = mujacobian.linearize(model, data, forces=True)
        found = reference.jacobian(model, data, forces=True)
    for name in ("A", "B", "C", "D", "Bf", "Df"):
        np.testing.assert_allclose(getattr(lin, name), getattr(found, name), atol=1e-9)
    assert lin.C[5].any() == (cutoff != 0.5)
    assert lin.differenced == ()
    assert mujoco.get_mjcb_sensor() is None


def test_user_sensors_in_a_closed_loop_have_their_own_derivatives():
    model, data = sensed("acc")

    def feedback(model, data):
        data.ctrl[:] = -2 * data.qvel

    def closed(model, data):
        by_state, _ = sensor_jacobian(model, data)
        return [*by_state[:2], [0, 1]]  # the control at this stage is that of the callback

    with mujacobian.callbacks(
        control=feedback,
        control_jacobian=lambda model, data: [[0, -2]],
        sensor=user_sensor,
        sensor_jacobian=closed,
    ):
        lin = mujacobian.linearize(model, data)
        found = reference.jacobian(model, data)
    np.testing.assert_allclose(lin.A, found.A, atol=1e-9)
    np.testing.assert_allclose(lin.C, found.C, atol=1e-9)
    np.testing.assert_allclose(lin.D, found.D, atol=1e-9)
    assert data.ctrl[0] == 0.2


def test_jacobians_of_sensors_are_checked():
    model, data = sensed("acc")
    with mujacobian.callbacks(sensor=user_sensor):
        with pytest.raises(mujacobian.UnsupportedFeatureError, match="first"):
            mujacobian.linearize(model, data)
        assert mujacobian.linearize(model, data, sensors=False).A.any()
    with (
        mujacobian.callbacks(sensor=user_sensor, sensor_jacobian=lambda m, d: np.zeros((2, 2))),
        pytest.raises(ValueError, match=r"sensor_jacobian must return .*\(3, 2\)"),
    ):
        mujacobian.linearize(model, data)
    with (
        mujacobian.callbacks(sensor=user_sensor, sensor_jacobian=sensor_jacobian),
        pytest.raises(mujacobian.UnsupportedFeatureError, match="applied forces"),
    ):
        mujacobian.linearize(model, data, forces=True)
    with (
        pytest.raises(ValueError, match="sensor_jacobian is given without sensor"),
        mujacobian.callbacks(sensor_jacobian=sensor_jacobian),
    ):
        pass
