"""Logs with time stamps, calibration of sensors, priors and robust losses."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.sysid import Calibration, IdentificationWarning, Log, identify
from mujacobian.sysid.problem import Problem
from mujacobian.sysid.unknowns import Unknowns

DIFFERENCE = 1e-6
DIFFERENCE_TOLERANCE = 1e-7  # relative to the largest number of a column

ARM = """
<mujoco>
  <option timestep=".002" integrator="implicitfast"/>
  <worldbody>
    <body name="arm">
      <joint name="elbow" axis="0 1 0" damping=".3" armature=".01"/>
      <geom name="arm" type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="1.5"/>
      <site name="imu" pos=".3 0 0"/>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="elbow"/></actuator>
  <sensor>
    <jointpos name="angle" joint="elbow" noise=".002"/>
    <gyro name="gyro" site="imu" noise=".02"/>
    <framequat name="attitude" objtype="site" objname="imu" noise=".01"/>
  </sensor>
</mujoco>
"""
TRUE_BIAS, TRUE_DELAY, TRUE_GAIN = 0.1, 0.0073, 1.05


def arm():
    model = mujoco.MjModel.from_xml_string(ARM)
    return mujacobian.Parameters(model, [("body_mass", "arm"), ("dof_damping", "elbow")])


def calibration(model):
    items = [("sensor_bias", "gyro"), ("sensor_gain", ["angle"]), ("sensor_delay", "gyro")]
    return Calibration(model, items, longest_delay=0.02)


def record(seed=0, *, seconds=2.0, rate=200.0, jitter=0.001):
    """Return commands at 100 Hz and jittered readings of a sensor with bias, gain and delay."""
    model = mujoco.MjModel.from_xml_string(ARM)
    rng = np.random.default_rng(seed)
    h, steps = model.opt.timestep, round(seconds / model.opt.timestep)
    stamps = np.arange(0, seconds, 0.01)
    commands = 3 + 2 * np.sin(5 * stamps + rng.uniform(0, 6))[:, None]
    held = commands[np.arange(steps) * 2 // 10]
    first = 0.1 * rng.normal(size=2)
    sensed = mujacobian.rollout(model, first, held).sensordata
    times = np.arange(0.001, seconds - 0.01, 1 / rate)
    times = times + jitter * rng.uniform(0, 1, size=len(times))
    grid = h * np.arange(steps)

    def at(times, columns):
        return np.stack([np.interp(times, grid, sensed[:, k]) for k in columns], axis=1)

    angle = TRUE_GAIN * at(times, [0])
    gyro = at(times - TRUE_DELAY, [1, 2, 3]) + np.array([0, TRUE_BIAS, 0])
    read = np.hstack([angle, gyro, at(times, [4, 5, 6, 7])])
    read[:, 4:] = np.nan
    read += np.repeat(model.sensor_noise, model.sensor_dim) * rng.normal(size=read.shape)
    return stamps, commands, times, read


def test_slopes_of_calibration():
    """Slopes of readings agree with differences, also between steps and in windows."""
    parameters = arm()
    stamps, commands, times, read = record()
    unknowns = Unknowns(parameters, calibration(parameters.model))
    log = Log.from_timeseries(parameters.model, (stamps, commands), (times, read))
    problem = Problem(unknowns, log, estimate=True, window=100)
    values = unknowns.values + np.array([0.1, 0.05, 0.1, 0.2, 0.3, 0.2, 0.0101])
    assert unknowns.names[-1] == 'sensor_delay["gyro"]'
    data = mujoco.MjData(parameters.model)
    for window in problem.logs[0]:
        state = window.first.given

        def residuals(at, window=window, state=state):
            return window.evaluate(unknowns.trial(at), data, state)[0]

        here, m = residuals(values), len(window.first.unknown)
        assert residuals(values).tobytes() == here.tobytes()
        for k, step in enumerate(DIFFERENCE * np.eye(len(values))):
            difference = (residuals(values + step) - residuals(values - step))[:, -1]
            difference /= 2 * DIFFERENCE
            assert np.abs(difference).max() > 0
            off = np.abs(here[:, m + k] - difference).max()
            assert off <= DIFFERENCE_TOLERANCE * max(1, np.abs(difference).max())


@pytest.mark.parametrize("window", [None, 200])
def test_bias_gain_and_delay_are_found(window):
    parameters = arm()
    chosen = calibration(parameters.model)
    logs = [
        Log.from_timeseries(parameters.model, (stamps, commands), (times, read))
        for stamps, commands, times, read in (record(seed) for seed in (0, 1))
    ]
    found = identify(parameters, logs, calibration=chosen, window=window)
    truth = [*parameters.values, 0, TRUE_BIAS, 0, TRUE_GAIN, TRUE_DELAY]
    off = np.abs(found.values - truth) / found.standard_errors
    assert off.max() < 4
    assert found.standard_errors[-1] < 1e-3
    assert found.warnings == ()
    assert found.names == (*parameters.names, *chosen.names)
    assert 'sensor_delay["gyro"]' in str(found)
    with pytest.warns(IdentificationWarning, match="chi-square"):
        identify(parameters, logs, window=window)


def test_csv_is_the_time_series(tmp_path):
    """A file gives the same log as arrays, with other names, missing cells and skipped columns."""
    parameters = arm()
    stamps, commands, times, read = record()
    wanted = Log.from_timeseries(parameters.model, (stamps, commands), (times, read))
    lines = ["t,torque,angle,gyro[0],gyro[1],gyro[2],comment"]
    rows = [
        (t, f"{t!r},{c[0]!r},,,,,0")
        for t, c in zip(stamps.tolist(), commands.tolist(), strict=True)
    ]
    for t, row in zip(times.tolist(), read.tolist(), strict=True):
        rows.append((t, f"{t!r},," + ",".join(map(repr, row[:4])) + ",nan"))
    path = tmp_path / "log.csv"
    path.write_text("\n".join([*lines, *(row for _, row in sorted(rows))]) + "\n")
    columns = {"torque": "motor", "comment": None}
    made = Log.from_csv(parameters.model, path, time="t", columns=columns)
    assert made.controls.tobytes() == wanted.controls.tobytes()
    assert np.array_equal(made.state, wanted.state)
    assert np.array_equal(made.sensordata, wanted.sensordata, equal_nan=True)
    assert np.array_equal(made.sensor_times, wanted.sensor_times)

    for problem, match in (
        ({"columns": {"comment": None}}, "no actuator or sensor 'torque'"),
        ({"columns": {"torq": "motor"}}, "did you mean torque"),
        ({"columns": {"torque": "moter", "comment": None}}, "did you mean motor"),
        ({"time": "time", "columns": columns}, "no column 'time'"),
    ):
        with pytest.raises(ValueError, match=match):
            Log.from_csv(parameters.model, path, **{"time": "t"} | problem)
    path.write_text("time,motor,angle\n0,1,2\n0,1,x\n")
    with pytest.raises(ValueError, match=r"line 3, column 'angle': 'x' is not a number"):
        Log.from_csv(parameters.model, path)
    path.write_text("time,motor,angle\n0,1,2\n0,1,2\n")
    with pytest.raises(ValueError, match="must increase, but row 1 has 0 after 0"):
        Log.from_csv(parameters.model, path)


def test_series_of_mujoco_sysid():
    """Columns are assigned by the signal mapping, in any order."""
    sysid = pytest.importorskip("mujoco.sysid")
    if not hasattr(sysid, "TimeSeries"):
        pytest.skip("mujoco.sysid needs its extras: pip install 'mujoco[sysid]'")
    parameters = arm()
    model = parameters.model
    stamps, commands, times, read = record()
    wanted = Log.from_timeseries(model, (stamps, commands), (times, read))
    signals = sysid.TimeSeries.compute_all_sensor_mapping(model)
    kind = signals["gyro"][0]
    mapping = {"gyro": (kind, np.arange(3)), "angle": (kind, np.array([3]))}
    made = Log.from_timeseries(
        model,
        sysid.TimeSeries(stamps, commands, sysid.TimeSeries.compute_all_control_mapping(model)),
        sysid.TimeSeries(times, read[:, [1, 2, 3, 0]], mapping),
    )
    assert made.controls.tobytes() == wanted.controls.tobytes()
    assert np.array_equal(made.sensordata, wanted.sensordata, equal_nan=True)


def test_readings_at_steps_need_no_times():
    """Time stamps at the steps give the residuals of a log without time stamps."""
    parameters = arm()
    controls = np.ones((50, 1))
    read = mujacobian.rollout(parameters.model, [0.1, 0], controls).sensordata + 0.01
    times = parameters.model.opt.timestep * np.arange(50)
    plain = Log([0.1, 0], controls, read)
    stamped = Log([0.1, 0], controls, read, sensor_times=times)
    values = parameters.values * 1.1
    rows = [
        np.concatenate(Problem(Unknowns(parameters), log).evaluate(values).residuals())
        for log in (plain, stamped)
    ]
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="must end at the last step"):
        identify(parameters, Log([0.1, 0], controls, read[:2], sensor_times=[0, 0.2]))


def test_priors():
    """A prior counts as a measurement, and determines a parameter that the logs do not."""
    parameters = arm()
    model = parameters.model
    both = mujacobian.Parameters(model, [("body_mass", "arm"), "gravity", "dof_damping"])
    controls = np.ones((300, 1))
    read = mujacobian.rollout(model, [0.1, 0], controls).sensordata
    rng = np.random.default_rng(0)
    read += np.repeat(model.sensor_noise, model.sensor_dim) * rng.normal(size=read.shape)
    read[:, 4:] = np.nan
    log = Log([0.1, 0], controls, read)
    priors = {"gravity": (0, 0.5), "gravity[2]": (-9.81, 0.01)}
    found = identify(both, log, priors=priors)
    assert found.undetermined == ()
    np.testing.assert_allclose(found.standard_errors[2], 0.5, rtol=0.1)  # gravity along the axis
    assert found.standard_errors[3] <= 0.011
    with pytest.raises(ValueError, match="did you mean gravity"):
        identify(both, log, priors={"gravty": (0, 1)})
    with pytest.raises(ValueError, match="a positive standard deviation"):
        identify(both, log, priors={"gravity": (0, 0)})


REPETITIONS = 40


@pytest.mark.parametrize("loss", ["huber", "cauchy"])
def test_robust_losses(loss):
    """With outliers, intervals of robust losses contain the truth and are narrower."""
    parameters = arm()
    model = parameters.model
    controls = 3 + 2 * np.sin(0.02 * np.arange(300))[:, None]
    exact = mujacobian.rollout(model, [0.1, 0], controls).sensordata
    noise = np.repeat(model.sensor_noise, model.sensor_dim)
    scores, narrower = [], []
    for seed in range(REPETITIONS):
        rng = np.random.default_rng(seed)
        read = exact + noise * rng.normal(size=exact.shape)
        wrong = rng.random(read.shape) < 0.03
        read[wrong] += (30 * noise * rng.normal(size=exact.shape))[wrong]
        read[:, 4:] = np.nan
        log = Log([0.1, 0], controls, read)
        found = identify(parameters, log, loss=loss)
        assert found.converged
        scores.append((found.values - parameters.values) / found.standard_errors)
        if seed == 0:
            with pytest.warns(IdentificationWarning, match="chi-square"):
                squares = identify(parameters, log)
            narrower = found.standard_errors / squares.standard_errors
    assert narrower.max() < 0.5
    # 80 scores: their mean square is 1 with a standard deviation of 0.16
    assert 0.6 < np.mean(np.square(scores)) < 1.5


def test_bad_arguments():
    parameters = arm()
    model = parameters.model
    log = Log([0, 0], np.ones((20, 1)), np.zeros((20, 8)))
    for items, match in (
        (["sensor_biass"], "did you mean sensor_bias"),
        ([("sensor_bias", "gyr")], "did you mean gyro"),
        ([("sensor_gain", "attitude")], "only a delay"),
        (["sensor_delay", ("sensor_delay", "gyro")], "asked for twice"),
    ):
        with pytest.raises(ValueError, match=match):
            Calibration(model, items)
    with pytest.raises(ValueError, match="longest_delay must be positive"):
        Calibration(model, [], longest_delay=0)
    with pytest.raises(TypeError, match=r"must be mujacobian\.sysid\.Calibration"):
        identify(parameters, log, calibration=["sensor_bias"])
    with pytest.raises(ValueError, match="loss must be one of squares, huber, cauchy"):
        identify(parameters, log, loss="l1")
    with pytest.raises(ValueError, match="loss_scale needs a robust loss"):
        identify(parameters, log, loss_scale=2)
    late = Calibration(model, ["sensor_delay"])
    with pytest.raises(ValueError, match="no measurement after the longest delay"):
        identify(parameters, log, calibration=late)
