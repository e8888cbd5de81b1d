"""Identification from several starts, and results in files."""

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.errors import ArgumentError
from mujacobian.sysid import Calibration, Identification, IdentificationWarning, Log, identify
from mujacobian.sysid.lockstep import Lockstep
from tests.test_workers import same

# most starts end in local optima, about which `identify` warns
pytestmark = pytest.mark.filterwarnings("ignore::mujacobian.sysid.IdentificationWarning")

STEPS = 150
PENDULUM = """
<mujoco>
  <option timestep=".01"/>
  <worldbody>
    <body name="bob">
      <joint name="pivot" axis="0 1 0" damping=".05" stiffness="20"/>
      <geom size=".1" pos="0 0 -.5" mass="1"/>
    </body>
  </worldbody>
  <sensor><jointpos name="angle" joint="pivot" noise=".01"/></sensor>
</mujoco>
"""
BOUNDS = {"jnt_stiffness": (0, 300), "dof_damping": (0, 1)}


def problem():
    """Return a spring whose frequency has local optima, as it swings several times in the log."""
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    rng = np.random.default_rng(0)
    logs = []
    for angle in (0.5, -0.3):
        measured = mujacobian.rollout(model, [angle, 0], np.zeros((STEPS, 0))).sensordata
        noise = 0.01 * rng.normal(size=measured.shape)
        logs.append(Log([angle, 0], np.zeros((STEPS, 0)), measured + noise))
    return mujacobian.Parameters(model, ["jnt_stiffness", "dof_damping"]), logs


def found_from(starts, **options):
    parameters, logs = problem()
    options = {"start": [200, 0.5], "bounds": BOUNDS, "initial_states": "given", **options}
    return identify(parameters, logs, starts=starts, **options)


def test_several_starts_find_what_one_misses():
    with pytest.warns(IdentificationWarning, match="reduced chi-square"):
        alone = found_from(1)
    found = found_from(8)
    assert abs(alone.values[0] - 20) > 10
    assert np.allclose(found.values, [20, 0.05], atol=5 * found.standard_errors)
    assert found.cost == min(start.cost for start in found.starts) < alone.cost / 10
    assert len(found.starts) == 8
    assert found.starts[0].seed is None
    assert same(found.starts[0].initial, np.array([200, 0.5]))
    assert found.starts[0].cost == alone.cost
    assert [start.seed for start in found.starts[1:]] == [(0, k) for k in range(1, 8)]
    assert found.spread[0] > 10
    assert "best of 8 starts: number" in str(found)


def test_a_start_depends_on_its_seed_alone():
    three, five, other = found_from(3), found_from(5), found_from(3, seed=7)
    assert same(three.starts, five.starts[:3])
    assert other.starts[1].seed == (7, 1)
    assert not same(other.starts[1].initial, three.starts[1].initial)
    for start in five.starts:
        assert (start.initial >= [0, 0]).all()
        assert (start.initial <= [300, 1]).all()


def test_each_start_is_that_of_a_single_fit():
    """Starts that advance together do not disturb each other."""
    several = found_from(4, initial_states="estimate")
    for start in several.starts:
        single = found_from(1, start=start.initial, initial_states="estimate")
        assert same(single.values, start.values)
        assert same(single.cost, start.cost)


def test_starts_do_not_depend_on_workers():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        ways = ({"threads": 1}, {"threads": 2}, {"workers": map}, {"workers": pool.map})
        first, *others = (found_from(4, **way) for way in ways)
    for other in others:
        for name in ("values", "covariance", "residuals", "cost", "starts", "history"):
            assert same(getattr(first, name), getattr(other, name)), name


def test_one_call_of_the_workers_serves_all_starts():
    sizes = []

    def workers(function, requests):
        sizes.append(len(requests))
        return map(function, requests)

    found_from(3, workers=workers)
    assert max(sizes) == 6  # three starts with two logs each


def test_priors_give_starts_where_bounds_are_infinite():
    found = found_from(
        6, bounds=None, priors={"jnt_stiffness": (30, 10), "dof_damping": (0.1, 0.1)}
    )
    drawn = np.array([start.initial for start in found.starts[1:]])
    assert (np.abs(drawn[:, 0] - 30) < 40).all()
    assert (drawn[:, 1] >= 0).all()
    with pytest.raises(
        ArgumentError, match=r'starts: jnt_stiffness\["pivot"\] has neither a prior'
    ):
        found_from(2, bounds=None)


def test_a_lonely_optimum_is_reported():
    with pytest.warns(IdentificationWarning, match="only one of 2 starts reaches the least cost"):
        found_from(2, seed=1)


def test_a_start_that_diverges_does_not_end_the_others():
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    parameters = mujacobian.Parameters(model, ["jnt_stiffness"])
    _, logs = problem()
    bounds = {"jnt_stiffness": (10, 1e7)}  # far too stiff for the step
    options = {"initial_states": "given", "bounds": bounds}
    with pytest.warns(IdentificationWarning, match="only one of 3"):
        found = identify(parameters, logs, starts=3, start=[25], **options)
    assert abs(found.values[0] - 20) < 1
    failed = found.starts[1]
    assert np.isinf(failed.cost)
    assert np.isnan(failed.values).all()
    assert not failed.converged
    assert "diverges" in failed.message
    assert "2 diverged" in str(found)
    with pytest.raises(mujacobian.MujacobianError, match="diverges"):
        identify(parameters, logs, starts=2, start=[9e6], **options)


def test_an_interrupted_simulation_ends_all_starts():
    class Broken:
        def outcomes(self, tasks):
            raise KeyboardInterrupt

    lockstep = Lockstep()
    broken = Broken()
    with pytest.raises(KeyboardInterrupt):
        lockstep.run([lambda: lockstep.outcomes(broken, [])] * 3)


def test_saved_results_are_the_same(tmp_path):
    parameters, logs = problem()
    calibration = Calibration(parameters.model, ["sensor_bias"])
    found = identify(parameters, logs, calibration=calibration, window=60)
    path = tmp_path / "found.json"
    found.save(path)
    again = Identification.load(path, problem()[0])
    for name in vars(found):
        if name not in ("parameters", "model"):
            assert same(getattr(found, name), getattr(again, name)), name
            assert type(getattr(found, name)) is type(getattr(again, name)), name
    assert str(again) == str(found)
    assert again.model.jnt_stiffness[0] == found.model.jnt_stiffness[0] != 20
    assert same(again.intervals(), found.intervals())


def test_undetermined_parameters_and_starts_survive_a_file(tmp_path):
    parameters = mujacobian.Parameters(
        problem()[0].model, ["jnt_stiffness", "body_mass", "gravity"]
    )
    with pytest.warns(IdentificationWarning):
        found = identify(parameters, problem()[1], initial_states="given")
    assert np.isinf(found.standard_errors).any()
    several = found_from(3)
    for each, of in ((found, parameters), (several, problem()[0])):
        each.save(tmp_path / "found.json")
        again = Identification.load(tmp_path / "found.json", of)
        assert same(each.standard_errors, again.standard_errors)
        assert same(each.starts, again.starts)


def test_files_of_other_things_are_refused(tmp_path):
    parameters, logs = problem()
    path = tmp_path / "found.json"
    with pytest.raises(mujacobian.MujacobianError, match="no such file"):
        Identification.load(path, parameters)
    for text in ("{", "[1]", json.dumps({"format": "other"})):
        path.write_text(text)
        with pytest.raises(mujacobian.MujacobianError, match="not a saved identification"):
            Identification.load(path, parameters)
    identify(parameters, logs).save(path)
    others = mujacobian.Parameters(parameters.model, ["dof_damping"])
    with pytest.raises(ArgumentError, match="was saved with other parameters: jnt_stiffness"):
        Identification.load(path, others)
