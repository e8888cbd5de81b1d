"""First states as unknowns: slopes, elimination, priors, windows and confidence intervals."""

import mujoco
import numpy as np
import pytest
from scipy.optimize import least_squares

import mujacobian
from benchmarks import sysid_coverage
from examples import identify_arm
from mujacobian.sysid import IdentificationWarning, Log, identify
from mujacobian.sysid.linear_fit import LinearFit
from mujacobian.sysid.problem import Problem
from mujacobian.sysid.unknowns import Unknowns

DIFFERENCE = 1e-6
DIFFERENCE_TOLERANCE = 1e-7  # relative to the largest number
DENSE_TOLERANCE = 1e-9  # relative tolerance of the same algebra in another order

TUMBLER = """
<mujoco>
  <option timestep=".01" integrator="implicitfast"/>
  <worldbody>
    <body name="tumbler">
      <freejoint/>
      <inertial mass="2" pos=".01 0 .02" diaginertia=".02 .03 .04"/>
      <body name="link" pos=".2 0 0">
        <joint name="hinge" axis="0 1 0" damping=".1" stiffness="2"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .2 0 .1" mass=".5"/>
      </body>
      <body name="ball" pos="0 .2 0">
        <joint name="ball" type="ball" damping=".05"/>
        <geom type="capsule" size=".03" fromto="0 0 0 0 .2 .1" mass=".5"/>
      </body>
    </body>
  </worldbody>
  <actuator><general joint="hinge" dyntype="filter" dynprm=".1" gainprm="1"/></actuator>
  <sensor>
    <framepos objtype="body" objname="link" noise=".01"/>
    <framequat objtype="body" objname="tumbler" noise=".01"/>
    <jointpos joint="hinge" noise=".01"/>
    <ballquat joint="ball" noise=".01"/>
  </sensor>
</mujoco>
"""
FIRST_NOISE = 0.05


def tumbler(steps=40, seed=0):
    """Return noisy logs of a free body with a hinge, a ball joint and a motor with activation."""
    model = mujoco.MjModel.from_xml_string(TUMBLER)
    parameters = mujacobian.Parameters(model, [("body_mass", "link"), ("dof_damping", "hinge")])
    rng = np.random.default_rng(seed)
    logs = []
    for _ in range(2):
        data = mujoco.MjData(model)
        data.qvel[:] = rng.normal(size=model.nv)
        mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1)
        true = np.concatenate([data.qpos, data.qvel, data.act])
        controls = rng.normal(size=(steps, model.nu))
        read = mujacobian.rollout(model, true, controls).sensordata
        read += np.repeat(model.sensor_noise, model.sensor_dim) * rng.normal(size=read.shape)
        mujoco.mj_integratePos(model, data.qpos, FIRST_NOISE * rng.normal(size=model.nv), 1)
        data.qvel[:] += FIRST_NOISE * rng.normal(size=model.nv)
        noise = np.full(2 * model.nv + model.na, FIRST_NOISE)
        measured = np.concatenate([data.qpos, data.qvel, data.act])
        logs.append(Log(measured, controls, read, first_state_noise=noise))
    return parameters, logs


def rows(problem, values, states):
    """Return the slopes and residuals of the windows' own blocks, before any elimination."""
    trial = problem.unknowns.trial(values)
    data = mujoco.MjData(trial.model)
    return [
        window.evaluate(trial, data, state)[0]
        for (window,), state in zip(problem.logs, states, strict=True)
    ]


def test_slopes_along_first_states():
    """Slopes along rotations, velocities and activations are right, including the prior."""
    parameters, logs = tumbler()
    made = mujacobian.rollout(parameters.model, logs[0].state, logs[0].controls)
    log = Log(
        logs[0].state,
        logs[0].controls,
        logs[0].sensordata,
        made.states + 0.01,
        first_state_noise=logs[0].first_state_noise,
    )
    problem = Problem(Unknowns(parameters), log, estimate=True)
    ((window,),) = problem.logs
    nx = len(window.first.unknown)
    rng = np.random.default_rng(1)
    state = window.first.moved(window.first.given, 0.3 * rng.normal(size=nx))
    before = state.copy()
    (here,) = rows(problem, parameters.values, [state])
    for k in range(nx):
        step = DIFFERENCE * np.eye(nx)[k]
        ahead, behind = (
            rows(problem, parameters.values, [window.first.moved(state, s * step)])[0][:, -1]
            for s in (1, -1)
        )
        difference = (ahead - behind) / (2 * DIFFERENCE)
        assert np.abs(difference).max() > 0
        off = np.abs(here[:, k] - difference).max()
        assert off <= DIFFERENCE_TOLERANCE * np.abs(here[:, :nx]).max()
    assert state.tobytes() == before.tobytes()
    assert here.tobytes() == rows(problem, parameters.values, [state])[0].tobytes()


def test_elimination_is_the_dense_problem():
    """The reduced problem has the covariance and the gradient of the one with all unknowns."""
    parameters, logs = tumbler()
    problem = Problem(Unknowns(parameters), logs, 1e-14, estimate=True)
    made = problem.evaluate(parameters.values * 1.1)
    states = [point.state for (point,) in made.points]
    blocks = rows(problem, made.values, states)
    n, nx = len(parameters), blocks[0].shape[1] - 1 - len(parameters)
    J = np.zeros((sum(map(len, blocks)), 2 * nx + n))
    J[: len(blocks[0]), :nx], J[len(blocks[0]) :, nx : 2 * nx] = (block[:, :nx] for block in blocks)
    J[:, 2 * nx :] = np.vstack(blocks)[:, nx:-1]
    r = np.vstack(blocks)[:, -1]
    dense = np.linalg.inv(J.T @ J)[2 * nx :, 2 * nx :]
    np.testing.assert_allclose(made.fit.covariance(), dense, rtol=DENSE_TOLERANCE)
    assert made.squares == pytest.approx(r @ r, rel=1e-12)
    assert made.first_state_rank == 2 * nx
    assert problem.degrees_of_freedom(made) == len(r) - J.shape[1]

    gradient = 2 * made.slopes.T @ made.residual
    for k in range(n):
        step = DIFFERENCE * np.eye(n)[k]
        ahead, behind = (
            Problem(Unknowns(parameters), logs, 1e-14, estimate=True)
            .evaluate(made.values + s * step)
            .squares
            for s in (1, -1)
        )
        difference = (ahead - behind) / (2 * DIFFERENCE)
        assert abs(gradient[k] - difference) < 1e-5 * np.abs(gradient).max()


def test_same_optimum_as_all_unknowns_at_once():
    parameters, (log, _) = tumbler(steps=20)
    found = identify(parameters, log, start=parameters.values * 1.2, tolerance=1e-12)
    problem = Problem(Unknowns(parameters), log, estimate=True)
    first, n = problem.logs[0][0].first, len(parameters)

    def residuals(unknowns):
        state = first.moved(first.given, unknowns[n:])
        return rows(problem, unknowns[:n], [state])[0][:, -1]

    start = np.concatenate([parameters.values * 1.2, np.zeros(len(first.unknown))])
    wanted = least_squares(residuals, start, "3-point", x_scale="jac", ftol=1e-12, xtol=1e-12)
    assert found.cost == pytest.approx(wanted.cost, rel=1e-9)
    off = np.abs(found.values - wanted.x[:n]) / found.standard_errors
    assert off.max() < 1e-3
    state = first.moved(first.given, wanted.x[n:])
    np.testing.assert_allclose(found.first_states[0][0], state, atol=1e-5)
    assert found.warnings == ()


def test_noise_of_first_states():
    """Zero is "given", inf is free, and every prior between them narrows the intervals."""
    parameters, (log, _) = tumbler()
    nx = len(log.first_state_noise)

    def errors(noise, initial_states="estimate"):
        one = Log(log.state, log.controls, log.sensordata, first_state_noise=noise)
        return identify(parameters, one, initial_states=initial_states)

    with pytest.warns(IdentificationWarning, match="initial_states"):
        given = errors(None, "given")
    with pytest.warns(IdentificationWarning, match="chi-square"):
        held = errors(np.zeros(nx))
    assert given.values.tobytes() == held.values.tobytes()
    assert given.first_states[0].tobytes() == held.first_states[0].tobytes()
    free, default = errors(np.full(nx, np.inf)), errors(None)
    assert free.values.tobytes() == default.values.tobytes()
    prior = errors(log.first_state_noise)
    assert (prior.standard_errors < free.standard_errors).all()
    assert prior.degrees_of_freedom == free.degrees_of_freedom + nx


def test_first_states_that_no_sensor_measures():
    """Unobserved coordinates keep their given values, and do not count as degrees of freedom."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody>
        <body><joint name="seen" type="slide" stiffness="9" damping=".2"/><geom size=".1"/></body>
        <body pos="0 1 0"><joint name="unseen" type="slide"/><geom size=".1"/></body>
        </worldbody><sensor><jointpos joint="seen" noise=".01"/></sensor></mujoco>"""
    )
    rng = np.random.default_rng(0)
    controls, true = np.zeros((600, 0)), [0.5, 0.3, 0.1, 0.2]
    read = mujacobian.rollout(model, true, controls).sensordata
    parameters = mujacobian.Parameters(model, [("dof_damping", "seen"), ("jnt_stiffness", "seen")])
    log = Log([0.4, 0.3, 0, 0.2], controls, read + 0.01 * rng.normal(size=read.shape))
    found = identify(parameters, log, start=[0.1, 8])
    assert found.degrees_of_freedom == 600 - 2 - 2
    np.testing.assert_array_equal(found.first_states[0][0, [1, 3]], [0.3, 0.2])
    assert (np.abs(found.values - parameters.values) < 4 * found.standard_errors).all()
    assert (found.standard_errors < 0.2 * parameters.values).all()


SWINGING = """
<mujoco>
  <option timestep=".002" integrator="implicitfast"/>
  <default><joint axis="0 1 0" damping=".2" armature=".01"/></default>
  <worldbody>
    <body name="upper"><joint name="shoulder"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="1.7"/>
      <body name="fore" pos=".4 0 0"><joint name="elbow"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".025" mass=".7"/></body></body>
  </worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/></actuator>
  <sensor>
    <jointpos joint="shoulder" noise=".002"/><jointpos joint="elbow" noise=".002"/>
    <jointvel joint="shoulder" noise=".05"/><jointvel joint="elbow" noise=".05"/>
  </sensor>
</mujoco>
"""


def test_windows():
    """A whole log of an arm that swings over causes a warning; with windows it is identified."""
    model = mujoco.MjModel.from_xml_string(SWINGING)
    time = np.arange(2000) * model.opt.timestep
    controls = np.stack([9 * np.sin(2 * time) + 4 * np.sin(5.3 * time), 3 * np.sin(3 * time)], 1)
    read = mujacobian.rollout(model, np.zeros(4), controls).sensordata
    read += np.repeat(model.sensor_noise, model.sensor_dim) * np.random.default_rng(0).normal(
        size=read.shape
    )
    read[np.arange(len(read)) % 5 > 0] = np.nan
    log = Log(np.zeros(4), controls, read)
    parameters = mujacobian.Parameters(model, [("body_mass", ["upper", "fore"]), "dof_damping"])
    start = parameters.values * [0.8, 1.2, 0.6, 1.5]
    with pytest.warns(IdentificationWarning, match="use window="):
        stuck = identify(parameters, log, start=start, max_evaluations=30)
    assert stuck.reduced_chi_square > 1000

    found = identify(parameters, log, start=start, window=150)
    assert found.warnings == ()
    assert found.converged
    assert found.first_states[0].shape == (14, 4)
    assert len(found.residuals[0]) == (~np.isnan(read)).sum()
    assert (np.abs(found.values - parameters.values) < 4 * found.standard_errors).all()
    # from there, a fit of the whole log converges and is more informative
    whole = identify(parameters, log, start=found.values)
    assert whole.warnings == ()
    assert (whole.standard_errors < found.standard_errors).all()
    assert (np.abs(whole.values - parameters.values) < 4 * whole.standard_errors).all()


def test_windows_need_a_plain_state():
    delayed = identify_arm.ARM.replace(
        '<motor joint="wrist"/>', '<motor joint="wrist" delay=".004" nsample="4"/>'
    )
    model = mujoco.MjModel.from_xml_string(delayed)
    parameters = mujacobian.Parameters(model, ["dof_damping"])
    log = Log(np.zeros(6), np.zeros((20, 3)), np.zeros((20, 6)))
    with pytest.raises(ValueError, match="a state beyond qpos, qvel and act"):
        identify(parameters, log, window=10)


def test_linear_fit_without_rank():
    """Undetermined directions do not enter the step, and have no variance."""
    rng = np.random.default_rng(0)
    J = rng.normal(size=(20, 6)) * [1, 1e6, 1e-6, 1, 0, 0]
    J[:, 2] = J[:, 1] * 1e-9
    fit = LinearFit(J, rng.normal(size=20))
    assert fit.rank == 3
    assert fit.undetermined() == [[1, 2], [4], [5]]
    lost = [False, True, True, False, True, True]
    np.testing.assert_array_equal(np.isinf(np.diag(fit.covariance())), lost)
    kept = np.linalg.inv(J[:, [0, 1, 3]].T @ J[:, [0, 1, 3]])
    np.testing.assert_allclose(fit.covariance()[np.ix_([0, 3], [0, 3])], kept[::2, ::2], rtol=1e-9)
    assert np.abs(J.T @ fit.eliminate(np.eye(20))).max() < 1e-9 * np.abs(J).max()


REPETITIONS = 30


def test_coverage():
    """Intervals contain the true value at their rate; with given first states they do not."""
    low, high = sysid_coverage.acceptance(REPETITIONS)
    assert low >= 0.75 * REPETITIONS
    short = {"seed": 1, "logs": 2, "steps": 100}
    study = sysid_coverage.simulate("estimate", REPETITIONS, **short)
    covered = study.coverage() * REPETITIONS
    assert ((low <= covered) & (covered <= high)).all()
    assert 0.8 < np.sqrt((study.scores() ** 2).mean()) < 1.2
    wrong = sysid_coverage.simulate("given", 5, **short)
    assert wrong.coverage().mean() < 0.5
    assert all("initial_states" in fit.warnings[0] for fit in wrong.found)
