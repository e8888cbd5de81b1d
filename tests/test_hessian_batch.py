"""hessian_batch returns the same as hessian for every row, with any number of threads."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.errors import ArgumentError, ArgumentTypeError
from tests.scenes.cases import load
from tests.test_batch import SPEC, trajectory
from tests.test_hessian import ROWS, pendulum
from tests.test_misuse import full

BLOCKS = ("xx", "xu", "uu")


def inputs(model, knots=11):
    states, controls = trajectory(model, knots)
    d_states = np.random.default_rng(2).normal(size=(knots, 2 * model.nv + model.na))
    return states, controls, d_states


def assert_equal(found, expected):
    for name in BLOCKS:
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


@pytest.mark.parametrize("name", ["actuator_kinds", "two_robots", "ball_chain", "free_body"])
def test_rows_are_those_of_hessian(name):
    model = load(name)
    states, controls, d_states = inputs(model)
    given = [x.copy() for x in (states, controls, d_states)]
    count = mujacobian.fd_count()
    batch = mujacobian.hessian_batch(model, states, controls, d_states)
    data = mujoco.MjData(model)
    for k in range(len(states)):
        mujoco.mj_setState(model, data, states[k], SPEC)
        data.ctrl[:] = controls[k]
        one = mujacobian.hessian(model, data, d_states[k])
        for block in BLOCKS:
            assert getattr(batch, block)[k].tobytes() == getattr(one, block).tobytes()
    assert np.ptp(batch.xx, axis=0).any()
    assert mujacobian.fd_count() == count
    for before, after in zip(given, (states, controls, d_states), strict=True):
        assert (before == after).all()


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
def test_threads_do_not_matter(threads):
    model = load("actuator_kinds")
    given = inputs(model)
    batch = mujacobian.hessian_batch(model, *given, threads=threads)
    assert_equal(batch, mujacobian.hessian_batch(model, *given))


def test_empty_batches_and_models_without_controls():
    model = load("ball_chain")
    batch = mujacobian.hessian_batch(model, *inputs(model, 0))
    nx = 2 * model.nv
    assert batch.xx.shape == (0, nx, nx)
    assert batch.xu.shape == (0, nx, 0)
    assert batch.uu.shape == (0, 0, 0)


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_name_the_state(threads):
    model = load("actuator_kinds")
    states, controls, d_states = inputs(model)
    states[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"state 7: .*qpos"):
        mujacobian.hessian_batch(model, states, controls, d_states, threads=threads)
    model, data = pendulum(
        rest='<sensor><contact name="net" reduce="netforce" data="pos"/></sensor>'
    )
    states = np.tile(full(model, data), (11, 1))
    d_sensors = np.zeros((11, 3))
    d_sensors[5:] = 1
    given = states, np.zeros((11, 0)), np.ones((11, 2)), d_sensors
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='state 5: sensor "net"'):
        mujacobian.hessian_batch(model, *given, threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_solver_that_has_not_converged_warns(threads):
    model = mujoco.MjModel.from_xml_string(ROWS.format(flag=""))
    model.opt.iterations, model.opt.tolerance = 1, 0
    model.opt.solver = mujoco.mjtSolver.mjSOL_CG
    states, controls, d_states = inputs(model)
    with pytest.warns(mujacobian.SolverNotConvergedWarning):
        mujacobian.hessian_batch(model, states, controls, d_states, threads=threads)


def test_wrong_arguments():
    model = load("actuator_kinds")
    states, controls, d_states = inputs(model)
    n, nx = d_states.shape

    def call(**changes):
        given = {"states": states, "controls": controls, "d_states": d_states} | changes
        mujacobian.hessian_batch(model, **given)

    with pytest.raises(ArgumentError, match=r"states must have shape \(n, "):
        call(states=states[0])
    with pytest.raises(ArgumentError, match="controls must have as many rows as states"):
        call(controls=controls[1:])
    with pytest.raises(ArgumentError, match=rf"d_states must have shape \({n}, {nx}\)"):
        call(d_states=d_states[1:])
    wrong = d_states.copy()
    wrong[3, 1] = np.inf
    with pytest.raises(ArgumentError, match=r"d_states must be finite, but d_states\[3, 1\]"):
        call(d_states=wrong)
    with pytest.raises(ArgumentTypeError, match="d_states must be an array of numbers"):
        call(d_states=d_states + 1j)
    with pytest.raises(ArgumentTypeError, match="d_states must be an array of numbers"):
        call(d_states=None)
    with pytest.raises(ArgumentError, match=r"d_sensors must have shape"):
        call(d_sensors=np.zeros((n, model.nsensordata + 1)))
    with pytest.raises(ArgumentError, match="threads must be an integer of at least 1"):
        call(threads=0)
    with pytest.raises(ArgumentTypeError, match=r"model must be a mujoco\.MjModel"):
        mujacobian.hessian_batch(None, states, controls, d_states)
