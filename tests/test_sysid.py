"""Identification: its Jacobian, its results, its errors for bad input, and mujoco.sysid."""

import copy
import re
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
from scipy.optimize import least_squares

import mujacobian
from examples import identify_arm, identify_box
from mujacobian.sysid import Log, identify
from mujacobian.sysid.problem import Problem
from mujacobian.sysid.unknowns import Unknowns

DIFFERENCE = 1e-6
DIFFERENCE_TOLERANCE = 1e-6  # relative to the largest number
FOUND_TOLERANCE = 1e-6  # relative tolerance of parameters, from logs without noise


def arm(steps=200):
    model = mujoco.MjModel.from_xml_string(identify_arm.ARM)
    fields = ["body_mass", "dof_damping", "dof_frictionloss"]
    parameters = mujacobian.Parameters(model, fields)
    return parameters, [identify_arm.record(model, seed, steps) for seed in (0, 1)]


def pushed_box():
    """Return a log of states, whose quaternions have the other sign, and of sensors with gaps."""
    model = mujoco.MjModel.from_xml_string(identify_box.SCENE)
    model.opt.tolerance = 1e-14  # differences depend on where the solver stops
    parameters = mujacobian.Parameters(model, [("body_mass", "box"), ("geom_friction", "box")])
    log = identify_box.record(model, 7, 0)
    log.state.qvel[:] = np.random.default_rng(1).normal(size=model.nv) * 0.01
    controls = log.controls[:100]
    made = mujacobian.rollout(model, log.state, controls)
    states, sensordata = made.states.copy(), made.sensordata.copy()
    states[:, 3:7] *= -1
    states[::2, 5] = sensordata[::3, 1] = sensordata[:, 2] = np.nan
    return parameters, [Log(log.state, controls, sensordata, states)]


CASES = {"arm": arm, "pushed box": pushed_box}


@pytest.mark.parametrize("case", CASES)
def test_jacobian(case):
    """The Jacobian is bitwise the same during and after simulation, and agrees with differences."""
    parameters, logs = CASES[case]()
    values = parameters.values * 1.1
    problem = Problem(Unknowns(parameters), logs)
    data = mujoco.MjData(parameters.model)

    def rows(at):
        trial = Unknowns(parameters).trial(at)
        made = [window.evaluate(trial, data, window.first.given)[0] for (window,) in problem.logs]
        return np.vstack(made)

    slopes, residual = rows(values)[:, :-1], rows(values)[:, -1]
    factor = problem.evaluate(values)
    scale = np.abs(slopes).max() * max(np.abs(slopes).max(), np.abs(residual).max()) * len(slopes)
    for made, wanted in (
        (factor.slopes.T @ factor.slopes, slopes.T @ slopes),
        (factor.slopes.T @ factor.residual, slopes.T @ residual),
    ):
        np.testing.assert_allclose(made, wanted, rtol=0, atol=1e-12 * scale)
    assert np.linalg.norm(factor.residual) == pytest.approx(np.linalg.norm(residual), rel=1e-12)

    k = 0
    for log in logs:
        after = mujacobian.rollout(
            parameters.model, log.state, log.controls, params=(parameters, values)
        ).jacobian()
        noise = problem.logs[0][0].sensors.weights
        for part, weights, measured in (
            (after.sensordata, noise, log.sensordata),
            (after.states, np.ones(after.states.shape[1]), log.states),
        ):
            if measured is not None:
                picked = (part * weights[:, None])[~np.isnan(measured)]
                assert slopes[k : k + len(picked)].tobytes() == picked.tobytes()
                k += len(picked)
    assert k == len(slopes)

    for column, slope in enumerate(slopes.T):
        step = DIFFERENCE * np.eye(len(values))[column]
        ahead, behind = (rows(values + s * step)[:, -1] for s in (1, -1))
        difference = (ahead - behind) / (2 * DIFFERENCE)
        assert np.abs(slope - difference).max() <= DIFFERENCE_TOLERANCE * np.abs(slopes).max()
    assert np.concatenate(factor.residuals()).tobytes() == residual.tobytes()


@pytest.mark.filterwarnings("ignore::mujacobian.sysid.IdentificationWarning")
@pytest.mark.parametrize(
    ("case", "initial_states"), [("arm", "given"), ("arm", "estimate"), ("pushed box", "given")]
)
def test_finds_the_truth(case, initial_states):
    parameters, logs = CASES[case]()
    if case == "arm":  # the noise is removed
        logs = [
            Log(log.state, log.controls, made.sensordata)
            for log in logs
            for made in [mujacobian.rollout(parameters.model, log.state, log.controls)]
        ]
    found = identify(
        parameters,
        logs,
        start=parameters.values * 1.2,
        tolerance=1e-14,
        initial_states=initial_states,
    )
    determined = np.isfinite(found.standard_errors)
    np.testing.assert_allclose(
        found.values[determined], parameters.values[determined], rtol=FOUND_TOLERANCE, atol=0
    )
    assert determined.sum() == {"arm": 9, "pushed box": 2}[case]
    assert found.cost < 1e-4  # this includes quaternions of the other sign with missing components
    assert found.converged
    assert found.history[0].cost > found.history[-1].cost == found.cost
    assert sum(len(r) for r in found.residuals) == Problem(Unknowns(parameters), logs).size
    assert found.steps % sum(len(log.controls) for log in logs) == 0
    assert mujacobian.Parameters(found.model, ["body_mass"]).values[0] == found.values[0]
    assert parameters.names[0] in str(found)


def test_same_optimum_as_differences():
    """Errors agree with the normal equations, and threads have no effect."""
    parameters, logs = arm(steps=100)
    start = parameters.values * 1.3
    options = {"start": start, "tolerance": 1e-12, "initial_states": "given"}
    found = identify(parameters, logs, **options)
    problem = Problem(Unknowns(parameters), logs)
    bounds = parameters.lower, parameters.upper

    def residuals(values):
        return np.concatenate(problem.evaluate(values).residuals())

    wanted = least_squares(
        residuals, start, "3-point", bounds, x_scale="jac", ftol=1e-12, xtol=1e-12
    )
    off = np.abs(found.values - wanted.x) / found.standard_errors
    assert off.max() < 1e-4
    assert problem.steps > 10 * found.steps

    J = problem.evaluate(found.values).slopes
    covariance = np.linalg.inv(J.T @ J) * 2 * found.cost / (problem.size - len(start))
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-6)
    alone = identify(parameters, logs, **options, threads=1)
    assert alone.values.tobytes() == found.values.tobytes()


SLIDER = """
<mujoco>
  <option timestep="0.1"/>
  <worldbody><body name="cart"><joint name="rail" type="slide" stiffness="1"/><geom size=".1"/>
    <site name="top"/></body></worldbody>
  <sensor><jointpos joint="rail"/><accelerometer site="top"/></sensor>
</mujoco>
"""


def slider(sensor=""):
    model = mujoco.MjModel.from_xml_string(SLIDER.replace("</sensor>", f"{sensor}</sensor>"))
    parameters = mujacobian.Parameters(model, ["jnt_stiffness"])
    controls = np.zeros((50, 0))
    return parameters, controls, mujacobian.rollout(model, [1, 0], controls).sensordata


def test_sensors_that_depend_on_parameters():
    """Accelerations depend on parameters; unsupported sensors raise only if they are measured."""
    parameters, controls, sensordata = slider("<e_potential/>")
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="with respect to parameters"):
        identify(parameters, Log([1, 0], controls, sensordata))
    trajectory = mujacobian.rollout(parameters.model, [1, 0], controls, params=parameters)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="with respect to parameters"):
        trajectory.jacobian()
    assert trajectory.jacobian(sensors=[0, 3]).sensordata.shape == (50, 2, 1)
    data = mujoco.MjData(parameters.model)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="with respect to parameters"):
        mujacobian.jvp(parameters.model, data, params=parameters, d_params=[1])
    with pytest.raises(ValueError, match="entries of sensordata below 5"):
        trajectory.jacobian(sensors=[5])

    for unmeasured in ([4], [0, 4], [1, 2, 3, 4]):
        part = sensordata.copy()
        part[:, unmeasured] = np.nan
        found = identify(parameters, Log([1, 0], controls, part), start=[2])
        np.testing.assert_allclose(found.values, parameters.values, rtol=FOUND_TOLERANCE)


def test_divergence():
    """If the initial values diverge, the error names the step; a diverging trial is rejected."""
    parameters, controls, sensordata = slider()
    sensordata[:, 1:] = np.nan
    log = Log([1, 0], controls, sensordata)
    with pytest.raises(mujacobian.MujacobianError, match="diverges in step") as caught:
        identify(parameters, [log], start=[1e8])
    assert caught.value.__notes__ == ["in log 0"]
    assert np.isinf(Problem(Unknowns(parameters), log).residuals(np.array([1e8]))).all()


GOOD = {"state": [1, 0], "controls": np.zeros((50, 0)), "sensordata": np.zeros((50, 4))}


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (
            {"sensordata": np.zeros((49, 4))},
            r"sensordata must have shape \(50, n\) for 50 rows of controls, got \(49, 4\)",
        ),
        ({"sensordata": np.full((50, 4), np.inf)}, "must be finite, or NaN"),
        ({"states": np.zeros((50, 2))}, r"states must have shape \(51, n\)"),
        ({"controls": np.zeros((2, 50, 0))}, "controls has shape .* with a batch axis in front"),
        ({"controls": np.zeros((0, 0))}, "controls must have at least one row"),
        ({"controls": np.zeros(50)}, r"controls must have shape \(n, n\)"),
        ({"controls": np.full((50, 1), np.nan)}, "controls must be finite"),
        ({"state": [1, np.nan]}, "state must be finite"),
        ({"forces": np.zeros((49, 1))}, r"forces must have shape \(50, n\)"),
        ({"wrenches": np.zeros((50, 2, 5))}, r"wrenches must have shape \(50, n, 6\)"),
        ({"mocap": np.zeros((51, 1, 7))}, r"mocap must have shape \(50, n, 7\)"),
        ({"sensor_noise": np.zeros(4)}, "sensor_noise must be positive, got 0"),
        ({"sensor_noise": np.ones(3)}, r"sensor_noise must have shape \(4,\)"),
        ({"first_state_noise": [-1, 0]}, "standard deviations from 0 .* to inf .*, got -1"),
        ({"first_state_noise": [np.nan, 0]}, "standard deviations from 0 .* got nan"),
    ],
)
def test_bad_log(log, message):
    """A log that contradicts itself raises an error in its constructor."""
    with pytest.raises(ValueError, match=message):
        Log(**GOOD | log)


@pytest.mark.parametrize(
    ("log", "options", "error", "message"),
    [
        ({"sensordata": np.zeros((50, 5))}, {}, ValueError, r"log 0: sensordata must have shape"),
        ({"states": np.zeros((51, 3))}, {}, ValueError, r"log 0: states must have shape \(51, 2\)"),
        ({"sensordata": None}, {}, ValueError, "log 0 has no measurement"),
        ({"sensordata": np.full((50, 4), np.nan)}, {}, ValueError, "log 0 has no measurement"),
        ({"controls": np.zeros((50, 1))}, {}, ValueError, "controls must have shape"),
        ({"state_noise": np.ones(3)}, {}, ValueError, r"log 0: state_noise must have shape"),
        ({"first_state_noise": [1]}, {}, ValueError, r"log 0: first_state_noise must have shape"),
        ({}, {"start": [-1]}, ValueError, r'start: jnt_stiffness\["rail"\] is -1, not between 0'),
        ({}, {"start": [1, 2]}, ValueError, r"start must have shape \(1,\)"),
        ({}, {"bounds": ([2], [1])}, ValueError, "lower bound below its upper bound, got 2 and 1"),
        ({}, {"bounds": ([-1], [1])}, ValueError, "must be within 0 to inf"),
        ({}, {"bounds": ([1, 2], [3])}, ValueError, "lower bounds must be 1 numbers"),
        ({}, {"bounds": {"jnt_stifnes": (0, 2)}}, ValueError, "did you mean jnt_stiffness"),
        ({}, {"bounds": {"jnt_stiffness": 2}}, ValueError, "jnt_stiffness must have a pair"),
        ({}, {"initial_states": "free"}, ValueError, '"estimate" or "given", got \'free\''),
        ({}, {"tolerance": 0}, ValueError, "tolerance must be between 2.3e-16 and 1, got 0"),
        ({}, {"tolerance": np.nan}, ValueError, "tolerance must be between 2.3e-16 and 1, got nan"),
        ({}, {"window": 0}, ValueError, "window must be an integer"),
        ({}, {"max_evaluations": 0}, ValueError, "max_evaluations must be an integer"),
        ({}, {"logs": []}, ValueError, "there are no logs"),
        ({}, {"logs": [GOOD]}, TypeError, "log 0 must be a mujacobian.sysid.Log, got dict"),
        ({}, {"parameters": 3}, TypeError, "parameters must be mujacobian.Parameters, got int"),
    ],
)
def test_bad_input(log, options, error, message):
    options = {"parameters": slider()[0], "logs": Log(**GOOD | log)} | options
    with pytest.raises(error, match=message):
        identify(**options)


def test_unknown_field():
    with pytest.raises(ValueError, match=r"unknown field 'dof_dampign': did you mean dof_damping"):
        mujacobian.Parameters(slider()[0].model, ["dof_dampign"])


def test_unknown_element():
    with pytest.raises(ValueError, match=r"has no joint 'rial': did you mean rail\?"):
        mujacobian.Parameters(slider()[0].model, [("jnt_stiffness", "rial")])


def test_blocks_of_the_page(tmp_path, monkeypatch):
    """All code blocks of the page run as written, in order."""
    theirs = pytest.importorskip("mujoco.sysid")
    page = Path(__file__).parent.parent / "docs" / "sysid.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 12
    monkeypatch.chdir(tmp_path)  # some blocks write files
    names = {}
    for block in blocks if hasattr(theirs, "optimize") else blocks[:-1]:
        exec(block, names)
    truth = names["parameters"].values
    assert (np.abs(names["found"].values - truth) < 4 * names["found"].standard_errors).all()
    if "optimum" in names:
        np.testing.assert_allclose(names["optimum"].as_vector(), truth, rtol=0.01)


def test_bounds_by_name():
    parameters, controls, sensordata = slider()
    log = Log([1, 0], controls, sensordata)
    for name in ("jnt_stiffness", parameters.names[0]):
        found = identify(parameters, log, bounds={name: (0.5, 1.5)})
        np.testing.assert_allclose(found.values, parameters.values, rtol=FOUND_TOLERANCE)
        with pytest.raises(ValueError, match="is 1, not between 2 and 3"):
            identify(parameters, log, bounds={name: (2, 3)})


def test_no_parameters_or_too_few_numbers():
    parameters, controls, sensordata = slider()
    with pytest.raises(ValueError, match="no parameters"):
        identify(mujacobian.Parameters(parameters.model, []), Log([1, 0], controls, sensordata))
    sensordata[:] = np.nan
    sensordata[0, 0] = 1
    two = mujacobian.Parameters(parameters.model, ["jnt_stiffness", "dof_damping"])
    with pytest.raises(ValueError, match="1 measured numbers for 2 parameters"):
        identify(two, Log([1, 0], controls, sensordata))


@pytest.mark.parametrize(
    ("module", "missing", "line"),
    [
        ("sysid", "scipy.optimize", "pip install 'mujacobian[sysid]'"),
        ("mujoco_sysid", "mujoco.sysid", "pip install 'mujoco[sysid]'"),
    ],
)
def test_missing_package(module, missing, line):
    code = f"import sys; sys.modules['{missing}'] = None; import mujacobian.{module}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert line in run.stderr


def test_mujoco_sysid():
    """The residual is that of mujoco.sysid, the Jacobian is exact, the optimum is the same."""
    theirs = pytest.importorskip("mujoco.sysid")
    if not hasattr(theirs, "optimize"):
        pytest.skip("mujoco.sysid lacks its extras")
    from mujacobian.mujoco_sysid import exact_residual, parameter_dict

    parameters, (log, _) = arm(steps=100)
    model = parameters.model
    times = np.arange(len(log.controls)) * model.opt.timestep
    mapping = theirs.TimeSeries.compute_all_sensor_mapping(model)
    sequences = [
        theirs.ModelSequences(
            "arm",
            mujoco.MjSpec.from_string(identify_arm.ARM),
            "log",
            theirs.create_initial_state(model, np.zeros(model.nq)),
            theirs.TimeSeries(times, log.controls),
            # times between the steps, so that mujoco.sysid interpolates
            theirs.TimeSeries(times[2:] + 0.4e-3, log.sensordata[2:], mapping),
        )
    ]
    start = parameters.values * 1.2
    given = parameter_dict(parameters, parameters.values * 0.2, parameters.values * 5)
    residual, jacobian = exact_residual(parameters, models_sequences=sequences)
    plain = theirs.build_residual_fn(
        models_sequences=sequences,
        build_model=lambda params, _: parameters.apply(params.as_vector()),
    )
    made = residual(start, given)[0][0]
    np.testing.assert_allclose(made, plain(start, given)[0][0], rtol=0, atol=1e-12)

    slopes = jacobian(start, made)
    for column, slope in enumerate(slopes.T):
        step = DIFFERENCE * np.eye(len(start))[column]
        ahead, behind = (plain(start + s * step, given)[0][0] for s in (1, -1))
        difference = (ahead - behind) / (2 * DIFFERENCE)
        assert np.abs(slope - difference).max() <= DIFFERENCE_TOLERANCE * np.abs(slopes).max()

    given.update_from_vector(start)
    options = {"optimizer": "mujoco", "verbose": False}
    exact = theirs.optimize(given, residual, jacobian=jacobian, **options)[1].x
    differences = theirs.optimize(given, plain, **options)[1].x
    np.testing.assert_allclose(exact, differences, rtol=1e-4)

    other = mujoco.MjSpec.from_string(identify_arm.ARM.replace('mass="', 'mass="1', 1))
    loaded = copy.copy(sequences[0])
    loaded.name, loaded.spec, loaded.gt_model = "loaded", other, other.compile()
    with pytest.raises(ValueError, match='the logs "loaded" are of another model'):
        exact_residual(parameters, models_sequences=[*sequences, loaded])
    with pytest.raises(ValueError, match="modify_residual has no exact derivative"):
        exact_residual(parameters, models_sequences=sequences, modify_residual=print)
    with pytest.raises(ValueError, match="needs finite bounds"):
        parameter_dict(parameters)
