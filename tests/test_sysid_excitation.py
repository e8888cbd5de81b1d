"""Design of experiments: the information, its exact gradient, and better logs."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.errors import ArgumentError
from mujacobian.sysid import Log, excite, identify
from mujacobian.sysid.excitation import Experiment
from mujacobian.sysid.problem import Problem
from mujacobian.sysid.unknowns import Unknowns

STEPS = 30
DIFFERENCE = 1e-5  # central differences of the log determinant have relative errors of about 1e-8
DIFFERENCE_TOLERANCE = 1e-6
INFORMATION_TOLERANCE = 1e-9  # two ways to eliminate the first state

ARM = """
<mujoco>
  <option timestep=".01"/>
  <worldbody>
    <body name="upper">
      <joint name="shoulder" axis="0 1 0" damping=".2"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
      <body name="lower" pos=".3 0 0">
        <joint name="elbow" axis="0 1 0" damping=".1"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass=".5"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="first" joint="shoulder" ctrlrange="-8 8"/>
    <motor name="second" joint="elbow" ctrlrange="-4 4"/>
  </actuator>
  <sensor>
    <jointpos joint="shoulder" noise=".001"/><jointpos joint="elbow" noise=".002"/>
    <jointvel joint="elbow" noise=".05"/>
  </sensor>
</mujoco>
"""
# a quaternion in the state, and accelerations as readings
BALL = """
<mujoco>
  <option timestep=".01"/>
  <worldbody>
    <body name="body">
      <joint name="ball" type="ball" damping=".1"/>
      <geom type="box" size=".1 .2 .05" pos=".1 .1 0" mass="1"/>
      <site name="tip" pos=".2 .1 0"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="ball" gear="1 0 0" ctrlrange="-2 2"/>
    <motor joint="ball" gear="0 1 .5" ctrlrange="-2 2"/>
  </actuator>
  <sensor><gyro site="tip" noise=".01"/><framepos objtype="site" objname="tip"/></sensor>
</mujoco>
"""
FIELDS = ["body_mass", "dof_damping"]
MODELS = {"arm": ARM, "ball": BALL}


def experiment(name, **options):
    model = mujoco.MjModel.from_xml_string(MODELS[name])
    parameters = mujacobian.Parameters(model, FIELDS)
    state = np.concatenate([model.qpos0, np.zeros(model.nv)])
    weights = 1 / np.where(model.sensor_noise > 0, model.sensor_noise, 1.0)
    weights = np.repeat(weights, model.sensor_dim)
    options = {"estimate": True, "threads": 2, **options}
    controls = np.random.default_rng(0).uniform(-1, 1, size=(STEPS, model.nu))
    return Experiment(parameters, state, weights, **options), state, controls


@pytest.mark.parametrize("estimate", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_gradient_is_exact(name, estimate):
    subject, _, controls = experiment(name, estimate=estimate)
    before = controls.copy()
    value, gradient = subject.gradient(controls)
    assert np.array_equal(controls, before)
    again, repeated = subject.gradient(controls)
    assert again == value == subject.sensitivity(controls).log_determinant
    assert gradient.tobytes() == repeated.tobytes()
    assert np.abs(gradient).max() > 1e-3
    for t, k in ((0, 0), (3, 1), (STEPS // 2, 0), (STEPS - 2, 1)):
        sides = []
        for sign in (1, -1):
            moved = controls.copy()
            moved[t, k] += sign * DIFFERENCE
            sides.append(subject.sensitivity(moved).log_determinant)
        difference = (sides[0] - sides[1]) / (2 * DIFFERENCE)
        assert abs(gradient[t, k] - difference) < DIFFERENCE_TOLERANCE * np.abs(gradient).max()


@pytest.mark.parametrize("estimate", [True, False])
def test_information_is_that_of_identification(estimate):
    """Its inverse is the covariance of `identify`, for the noise that the model states."""
    subject, state, controls = experiment("arm", estimate=estimate)
    measured = mujacobian.rollout(subject.parameters.model, state, controls).sensordata
    log = Log(state, controls, measured)
    problem = Problem(Unknowns(subject.parameters), log, estimate=estimate)
    covariance = problem.evaluate(subject.parameters.values).fit.covariance()
    information = subject.sensitivity(controls).information
    assert np.allclose(information @ covariance, np.eye(4), atol=INFORMATION_TOLERANCE)
    _, log_determinant = np.linalg.slogdet(information)
    assert np.isclose(subject.sensitivity(controls).log_determinant, log_determinant)


@pytest.mark.filterwarnings("ignore::mujacobian.sysid.IdentificationWarning")
@pytest.mark.parametrize("hold", [1, 7])
def test_a_designed_log_determines_parameters_better(hold):
    subject, state, controls = experiment("arm")
    made = excite(subject.parameters, state, controls, hold=hold, max_iterations=15)
    assert made.controls.shape == controls.shape
    assert (np.abs(made.controls) <= [8, 4]).all()
    assert made.log_determinant > made.history[0] + 3
    assert np.all(np.diff(made.history[1:]) >= 0)
    starts = np.arange(0, STEPS, hold)
    for begin in starts:
        assert (made.controls[begin : begin + hold] == made.controls[begin]).all()

    rng = np.random.default_rng(1)
    errors = []
    for each in (controls, made.controls):
        readings = mujacobian.rollout(subject.parameters.model, state, each).sensordata
        noise = rng.normal(size=readings.shape) / subject.weights
        log = Log(state, each, readings + noise)
        errors.append(identify(subject.parameters, log).standard_errors)
    assert np.prod(errors[1]) < np.prod(errors[0]) / 4
    assert np.allclose(errors[1], made.standard_errors, rtol=0.5)  # by the noise of one log


def test_columns_that_are_not_measured_carry_no_information():
    subject, state, controls = experiment("arm")
    parameters = subject.parameters
    some = excite(
        parameters, state, controls, sensor_noise=[0.001, 0.002, np.inf], max_iterations=1
    )
    every = excite(parameters, state, controls, sensor_noise=[0.001, 0.002, 0.05], max_iterations=1)
    assert some.history[0] < every.history[0]


def test_bad_arguments_raise():
    subject, state, controls = experiment("arm")
    parameters = subject.parameters
    with pytest.raises(ArgumentError, match="controls must be within the bounds"):
        excite(parameters, state, 100 * controls)
    with pytest.raises(ArgumentError, match="controls must have shape"):
        excite(parameters, state, controls[:, :1])
    with pytest.raises(ArgumentError, match="sensor_noise must be positive"):
        excite(parameters, state, controls, sensor_noise=[1, 1, 0])
    with pytest.raises(ArgumentError, match="bounds must have least controls below"):
        excite(parameters, state, 0 * controls, bounds=([0, 0], [1, 0]))
    with pytest.raises(ArgumentError, match="initial_states must be"):
        excite(parameters, state, controls, initial_states="measured")
    model = mujoco.MjModel.from_xml_string(ARM.replace('ctrlrange="-8 8"', ""))
    free = mujacobian.Parameters(model, FIELDS)
    with pytest.raises(ArgumentError, match='actuator 0 "first" has no ctrlrange: use bounds='):
        excite(free, state, controls)
    model.opt.gravity[:] = 0  # nothing moves
    still, box = mujacobian.Parameters(model, FIELDS), ([-1, -1], [1, 1])
    with pytest.raises(ArgumentError, match="these controls does not determine body_mass"):
        excite(still, state, 0 * controls, bounds=box)
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    with pytest.raises(ArgumentError, match="there are no parameters"):
        excite(mujacobian.Parameters(model, []), [], np.zeros((3, 0)))
