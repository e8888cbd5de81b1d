"""The reference agrees with closed forms, and reports missing derivatives."""

import mujoco
import numpy as np

import mujacobian
from mujacobian import reference
from mujacobian.check import _extrapolation
from tests.scenes.cases import load, snapshot, states

CLOSED_FORM_TOLERANCE = 1e-11  # a hundred times below the tolerances of the tests
ESTIMATE_MARGIN = 3  # errors may exceed their estimates by this factor; TRUST has a larger margin

LINEAR = """
<mujoco>
  <option timestep=".01" gravity="0 0 -9.81"><flag eulerdamp="disable"/></option>
  <worldbody>
    <body>
      <joint name="x" type="slide" axis="1 0 0" stiffness="7" damping=".3"/>
      <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
    </body>
  </worldbody>
  <actuator><motor joint="x" gear="3"/></actuator>
</mujoco>
"""

PENDULUM = """
<mujoco>
  <option timestep=".01" gravity="0 0 -9.81"/>
  <worldbody>
    <body>
      <joint type="hinge" axis="0 1 0"/>
      <inertial pos="0 0 -.5" mass="2" diaginertia=".1 .1 .1"/>
    </body>
  </worldbody>
</mujoco>
"""

CLAMPED = """
<mujoco>
  <worldbody>
    <body>
      <joint name="x" type="slide"/>
      <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
    </body>
  </worldbody>
  <actuator><motor joint="x" ctrlrange="-1 1"/></actuator>
</mujoco>
"""


class Sawtooth(reference.Step):
    """A map of period two in the velocity, with slope one, which the first steps, 6 and 4, miss."""

    def __init__(self):
        self.model = mujoco.MjModel.from_xml_string(PENDULUM)
        self.blocks, self.nx, self.nz = [0, 1, 2, 2, 2], 2, 3
        self.noise, self.value, self.speed = np.full(2, 1e-17), np.zeros(2), np.array([12.0])
        self._known, self.evaluations = {}, 0

    def _outcome(self, z):
        return np.array([0.0, (z[1] + 1) % 2 - 1])


def test_steps_that_agree_by_accident_are_found_out():
    J, err = reference.differentiate(Sawtooth(), np.eye(3)[1:2], settled=1e-9)
    np.testing.assert_allclose(J[:, 0], [0, 1], atol=1e-9)
    assert np.isfinite(err).all()


def test_rounding_of_a_column_that_is_zero_is_no_error():
    ref = np.array([[100.0, 0.0]])
    for given, right in ((1e-12, True), (1e-10, False)):
        J = np.array([[100.0, given]])
        error = reference.compare(J, ref, np.zeros_like(ref), [0, 1]).error
        assert (error < reference.TRUST) == right


def test_linear_oscillator():
    model = mujoco.MjModel.from_xml_string(LINEAR)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = 0.3, -0.7, 0.2
    ref = reference.jacobian(model, data, forces=True)
    h, mass, k, b, gear = 0.01, 2.0, 7.0, 0.3, 3.0
    dv = np.array([-k, 1 / h * mass - b, gear, 1.0]) * h / mass
    J = np.array([[1, 0, 0, 0], [0, 0, 0, 0]]) + np.outer([h, 1], dv)
    np.testing.assert_allclose(ref.J, J, rtol=CLOSED_FORM_TOLERANCE)
    assert (abs(ref.J - J) <= ref.err + 1e-16).all()


def test_pendulum():
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = 0.8, 1.3
    ref = reference.jacobian(model, data)
    h, inertia, torque = 0.01, 0.1 + 2 * 0.25, 2 * 9.81 * 0.5
    dv_dq = -h * torque * np.cos(0.8) / inertia
    J = np.array([[1 + h * dv_dq, h], [dv_dq, 1]])
    np.testing.assert_allclose(ref.J, J, rtol=CLOSED_FORM_TOLERANCE)


def test_spinning_free_body_rotates_its_tangent():
    """Without torque on a sphere q' = q exp(h w), so dq'/dq = exp(-h w) and dv'/dv = I."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option gravity="0 0 0" timestep=".01"/><worldbody><body><freejoint/>'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    w = np.array([1.0, -2.0, 3.0])
    data.qvel[3:] = w
    ref = reference.jacobian(model, data)
    turn, rotation = np.empty(4), np.empty(9)
    mujoco.mju_axisAngle2Quat(turn, w / np.linalg.norm(w), 0.01 * np.linalg.norm(w))
    mujoco.mju_quat2Mat(rotation, turn)
    expected = rotation.reshape(3, 3).T
    np.testing.assert_allclose(ref.J[3:6, 3:6], expected, atol=CLOSED_FORM_TOLERANCE)
    np.testing.assert_allclose(ref.J[6:, 6:], np.eye(6), atol=CLOSED_FORM_TOLERANCE)


def test_a_clamp_nearby_is_resolved_and_a_clamp_here_is_excluded():
    model = mujoco.MjModel.from_xml_string(CLAMPED)
    data = mujoco.MjData(model)
    for ctrl, slope in ((0.0, 1.0), (0.99, 1.0), (1.01, 0.0)):
        data.ctrl[:] = ctrl
        ref = reference.jacobian(model, data)
        expected = slope * model.opt.timestep / 2
        np.testing.assert_allclose(ref.B[1, 0], expected, rtol=1e-9)
        assert reference.compare(ref.J, ref.J, ref.err, ref.blocks).share == 1
    data.ctrl[:] = 1.0
    ref = reference.jacobian(model, data)
    assert np.isinf(ref.err[:, 2]).all()
    assert np.isfinite(ref.err[:, :2]).all()


def test_the_error_estimate_holds_on_a_finer_ladder():
    """Extrapolations with different steps agree within their own estimates."""
    model = load("everything")
    _, data = next(states(model, "everything"))
    ref = reference.jacobian(model, data)
    step = reference.Step(model, data)
    with_other_steps = np.empty_like(ref.J)
    err = np.empty_like(ref.err)
    first_step = _extrapolation._first_step
    try:
        _extrapolation._first_step = lambda step, z: 0.37 * first_step(step, z)
        for j in range(ref.J.shape[1]):
            with_other_steps[:, j], err[:, j] = _extrapolation._column(step, np.eye(step.nz)[j])
    finally:
        _extrapolation._first_step = first_step
    assert (with_other_steps != ref.J).any()
    allowed = ESTIMATE_MARGIN * (ref.err + err) + 1e-13 * abs(ref.J).max(axis=0)
    assert (abs(ref.J - with_other_steps) <= allowed).all()


def test_compare_finds_a_wrong_entry_and_a_missing_one():
    model = load("hinge_chain")
    _, data = next(states(model, "hinge_chain"))
    ref = reference.jacobian(model, data)
    for wrong in (ref.J[4, 1] + 1e-8 * abs(ref.J[3:6, 1]).max(), np.nan):
        J = ref.J.copy()
        J[4, 1] = wrong
        result = reference.compare(J, ref.J, ref.err, ref.blocks)
        assert result.error > 1e-9
        assert result.worst() == (4, 1)


def test_directions_combine_columns():
    """J d agrees for random directions, including forces, within the estimates of both."""
    model = load("everything")
    _, data = next(states(model, "everything"))
    ref = reference.jacobian(model, data, forces=True)
    directions = np.random.default_rng(0).normal(size=(4, ref.J.shape[1]))
    along = reference.directional(model, data, directions)
    allowed = ESTIMATE_MARGIN * (along.err + ref.err @ abs(directions.T))
    assert (abs(along.J - ref.J @ directions.T) <= allowed + 1e-12 * abs(along.J).max()).all()
    assert along.evaluations < ref.evaluations


SENSORS = PENDULUM.replace(
    "</mujoco>",
    """<sensor>
      <jointpos joint="swing"/>
      <jointvel joint="swing" cutoff="1"/>
      <jointactuatorfrc joint="swing"/>
    </sensor></mujoco>""",
).replace('<joint type="hinge"', '<joint name="swing" type="hinge"')


def test_sensors_are_rows_and_a_kink_of_one_is_its_own():
    """The second sensor is at its cutoff; nothing else in the column of v is at a kink."""
    model = mujoco.MjModel.from_xml_string(SENSORS)
    data = mujoco.MjData(model)
    data.qvel[:] = 1.0
    ref = reference.jacobian(model, data, forces=True)
    np.testing.assert_allclose(ref.C[[0, 2]], [[1, 0], [0, 0]], atol=CLOSED_FORM_TOLERANCE)
    assert np.argwhere(np.isinf(ref.err)).tolist() == [[3, 1]]
    assert ref.D.shape == (3, 0)
    assert ref.Df.shape == (3, 1)
    data.qvel[:] = 0.5
    ref = reference.jacobian(model, data)
    np.testing.assert_allclose(ref.C, [[1, 0], [0, 1], [0, 0]], atol=CLOSED_FORM_TOLERANCE)


def test_the_state_is_left_alone():
    model = load("everything")
    _, data = next(states(model, "everything"))
    before = snapshot(model, data)
    reference.jacobian(model, data)
    assert snapshot(model, data) == before


def test_an_equality_that_holds_exactly_is_not_saturated():
    """Its impedance is flat there and also far away, where the derivative differs."""
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <worldbody>
          <body><joint name="a" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body>
          <body><joint name="b" axis="0 1 0"/><geom size=".1" pos=".4 0 0"/></body>
        </worldbody>
        <equality><joint joint1="a" joint2="b" solimp=".5 .95 .001"/></equality>
      </mujoco>""")
    reference.converge(model)
    data = mujoco.MjData(model)
    ref = reference.jacobian(model, data, constrained=True)
    lin = mujacobian.linearize(model, data)
    result = reference.compare(np.hstack([lin.A, lin.B]), ref.J, ref.err, ref.blocks, trust=1e-9)
    assert result.share == 1
    assert result.error < 1e-8
