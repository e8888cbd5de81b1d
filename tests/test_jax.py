"""mujacobian.jax: the gradients of mujacobian.rollout, under grad, jit and vmap."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.scenes.cases import random_state
from tests.scenes.rollout_cases import row, scene
from tests.test_hessian_sensors import machine

jax = pytest.importorskip("jax", reason="JAX is not installed")
bridge = pytest.importorskip("mujacobian.jax")
pytestmark = pytest.mark.usefixtures("double_precision")

STEPS = 20
TOLERANCE = 1e-12  # relative: the gradients are the same numbers


@pytest.fixture
def problem():
    """Return a model, a state, controls, cotangents, and the expected gradient."""
    model, data, controls = scene("hand", STEPS)
    trajectory = mujacobian.rollout(model, row(data), controls)
    rng = np.random.default_rng(1)
    weights = (
        rng.normal(size=trajectory.states.shape),
        rng.normal(size=trajectory.sensordata.shape),
    )
    return model, row(data), controls, weights, trajectory.gradient(*weights)


def loss_of(model, weights, **options):
    def loss(state, controls):
        states, sensordata = bridge.rollout(model, state, controls, **options)
        return (states * weights[0]).sum() + (sensordata * weights[1]).sum()

    return loss


def close(made, wanted):
    scale = np.abs(wanted).max()
    assert scale > 0
    np.testing.assert_allclose(np.asarray(made), wanted, rtol=0, atol=TOLERANCE * scale)


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("options", [{}, {"checkpoint": 6, "threads": 1}])
def test_grad(problem, compile, options):
    model, state, controls, weights, wanted = problem
    slope = jax.grad(loss_of(model, weights, **options), argnums=(0, 1))
    made = (jax.jit(slope) if compile else slope)(state, controls)
    close(made[0], wanted.state)
    close(made[1], wanted.controls)


def test_values(problem):
    model, state, controls, _, _ = problem
    trajectory = mujacobian.rollout(model, state, controls)
    states, sensordata = jax.jit(lambda u: bridge.rollout(model, state, u))(controls)
    assert np.asarray(states).tobytes() == trajectory.states.tobytes()
    assert np.asarray(sensordata).tobytes() == trajectory.sensordata.tobytes()


@pytest.mark.parametrize("compile", [False, True])
def test_vmap(problem, compile):
    """vmap works over controls, over controls and states, and twice."""
    model, state, controls, weights, _ = problem
    rng = np.random.default_rng(2)
    batch = controls + rng.normal(size=(3, *controls.shape)) * 0.01
    states = state + rng.normal(size=(2, len(state))) * 1e-3
    slope = jax.grad(loss_of(model, weights), argnums=(0, 1))
    over = jax.vmap(jax.vmap(slope, (None, 0)), (0, None))
    made = (jax.jit(over) if compile else over)(states, batch)
    assert made[1].shape == (2, *batch.shape)
    for i, x in enumerate(states):
        for k, u in enumerate(batch):
            wanted = mujacobian.rollout(model, x, u).gradient(*weights)
            close(made[0][i, k], wanted.state)
            close(made[1][i, k], wanted.controls)


def test_a_batch_in_front_is_a_vmap(problem):
    model, state, controls, weights, _ = problem
    batch = np.stack([controls, controls + 0.01])
    slope = jax.grad(lambda x, u: loss_of(model, weights)(x, u), argnums=(0, 1))
    made = slope(state, batch)
    wanted = mujacobian.rollout(model, state, batch).gradient(
        *(np.stack([weight] * 2) for weight in weights)
    )
    close(made[1], wanted.controls)
    close(made[0], wanted.state.sum(axis=0))


def test_forces_and_wrenches(problem):
    model, state, controls, weights, _ = problem
    rng = np.random.default_rng(3)
    forces = rng.normal(size=(STEPS, model.nv)) * 1e-3
    wrenches = rng.normal(size=(STEPS, model.nbody, 6)) * 1e-3

    def loss(f, w):
        states, _ = bridge.rollout(model, state, controls, forces=f, wrenches=w)
        return (states * weights[0]).sum()

    made = jax.jit(jax.grad(loss, argnums=(0, 1)))(forces, wrenches)
    trajectory = mujacobian.rollout(model, state, controls, forces=forces, wrenches=wrenches)
    wanted = trajectory.gradient(weights[0])
    close(made[0], wanted.forces)
    close(made[1], wanted.wrenches)


def test_parameters(problem):
    """Gradients of parameters are right for one rollout and for batches, shared or not."""
    model, state, controls, weights, _ = problem
    parameters = mujacobian.Parameters(model, ["body_mass", ("geom_friction", "ball")])

    def loss(values, u):
        states, _ = bridge.rollout(model, state, u, params=(parameters, values))
        return (states * weights[0]).sum()

    def wanted(values, u):
        trajectory = mujacobian.rollout(model, state, u, params=(parameters, values))
        return trajectory.gradient(weights[0]).params

    values = parameters.values * [[1.1], [0.9]]
    batch = np.stack([controls, controls + 0.01])
    slope = jax.grad(loss)
    close(slope(values[0], controls), wanted(values[0], controls))
    shared = jax.jit(jax.vmap(slope, (None, 0)))(values[0], batch)
    each = jax.jit(jax.vmap(slope))(values, batch)
    for k in range(2):
        close(shared[k], wanted(values[0], batch[k]))
        close(each[k], wanted(values[k], batch[k]))


def test_step_in_a_scan():
    model, data, controls = scene("pendulum", STEPS)
    state = row(data)

    def loss(u):
        last, _ = jax.lax.scan(lambda x, each: (bridge.step(model, x, each)[0], None), state, u)
        return last.sum()

    made = jax.jit(jax.grad(loss))(controls)
    d_states = np.zeros((STEPS + 1, 3))
    d_states[-1] = 1
    close(made, mujacobian.rollout(model, state, controls).gradient(d_states).controls)


def test_unread_sensors_are_not_asked_for():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom size='.1' pos='0 1 0'/></body></worldbody>"
        "<sensor><user name='encoder' dim='1'/></sensor></mujoco>"
    )
    made = jax.grad(lambda x: bridge.rollout(model, x, np.zeros((3, 0)))[0].sum())(np.ones(2))
    assert np.asarray(made).any()


def test_bad_input(problem):
    model, state, controls, _, _ = problem
    with pytest.raises(ValueError, match=r"controls must have shape \(T, 6\)"):
        bridge.rollout(model, state, controls[0])
    with pytest.raises(ValueError, match="state must have shape"):
        bridge.rollout(model, state[1:], controls)
    with pytest.raises(TypeError, match=r"state must .* use state\.astype\(float\)"):
        bridge.rollout(model, jax.numpy.asarray(state, dtype="float32"), controls)
    with pytest.raises(ValueError, match="checkpoint must be an integer"):
        bridge.rollout(model, state, controls, checkpoint=0)
    with jax.enable_x64(False), pytest.raises(RuntimeError, match="jax_enable_x64"):
        bridge.rollout(model, state, controls)
    with pytest.raises(Exception, match="diverges in step 0"):
        jax.block_until_ready(bridge.rollout(model, state, controls + 1e12))


@pytest.fixture
def curved():
    """Return a model with second derivatives, a state, controls and cotangents."""
    model = machine("framelinvel")
    state = row(random_state(model, np.random.default_rng(2), scale=0.1))
    rng = np.random.default_rng(1)
    controls = rng.normal(size=(3, model.nu))
    trajectory = mujacobian.rollout(model, state, controls)
    weights = (
        rng.normal(size=trajectory.states.shape),
        rng.normal(size=trajectory.sensordata.shape),
    )
    return model, state, controls, weights, trajectory


@pytest.mark.parametrize("compile", [False, True])
def test_hessian(curved, compile):
    """The rows of jax.hessian are the products of our Hessian with unit vectors."""
    model, state, controls, weights, trajectory = curved
    function = jax.hessian(loss_of(model, weights), argnums=(0, 1))
    made = (jax.jit(function) if compile else function)(state, controls)
    rows = [trajectory.hvp((along, None), *weights) for along in np.eye(len(state))]
    close(made[0][0], np.array([row.state for row in rows]))
    close(made[0][1], np.array([row.controls for row in rows]))
    columns = [trajectory.hvp((None, along), *weights) for along in np.eye(3)[..., None]]
    close(made[1][1][:, 0], np.array([column.controls for column in columns]))


def test_hessian_of_a_loss_that_is_not_linear(curved):
    model, state, controls, weights, trajectory = curved

    def loss(u):
        states, sensordata = bridge.rollout(model, state, u, checkpoint=2)
        return (weights[0] * states**2).sum() + (weights[1] * sensordata**2).sum()

    along = np.random.default_rng(3).normal(size=controls.shape)
    _, made = jax.jvp(jax.grad(loss), (controls,), (along,))
    direction = None, along
    moved, sensed = trajectory.jvp(direction)
    slopes = 2 * weights[0] * trajectory.states, 2 * weights[1] * trajectory.sensordata
    wanted = trajectory.hvp(direction, *slopes).controls
    wanted += trajectory.gradient(2 * weights[0] * moved, 2 * weights[1] * sensed).controls
    close(made, wanted)


def test_hessian_of_a_batch_of_steps(curved):
    model, state, controls, _, _ = curved

    def last(x, u):
        return bridge.step(model, x, u)[0].sum()

    made = jax.vmap(jax.hessian(last), (None, 0))(state, controls)
    for k, control in enumerate(controls):
        close(made[k], np.asarray(jax.hessian(last)(state, control)))


def test_second_derivatives_that_are_not_available(curved):
    model, state, controls, _, _ = curved

    def loss(u, f):
        return bridge.rollout(model, state, u, forces=f)[0].sum()

    forces = np.zeros((3, model.nv))
    assert np.asarray(jax.hessian(loss)(controls, forces)).any()  # the forces are constants
    with pytest.raises(Exception, match=r"forces.*second derivatives of rollouts"):
        jax.hessian(loss, argnums=1)(controls, forces)


@pytest.mark.parametrize("compile", [False, True])
def test_hessian_by_parameters(curved, compile):
    model, state, controls, weights, _ = curved
    parameters = mujacobian.Parameters(model, ["gravity", "dof_damping"])
    values = parameters.values

    def loss(p, u):
        states, sensordata = bridge.rollout(model, state, u, params=(parameters, p))
        return (states * weights[0]).sum() + (sensordata * weights[1]).sum()

    trajectory = mujacobian.rollout(model, state, controls, params=(parameters, values))
    function = jax.hessian(loss, argnums=(0, 1))
    made = (jax.jit(function) if compile else function)(values, controls)
    close(made[0][0], trajectory.hessian("params", *weights))
    rows = [trajectory.hvp((None, None, along), *weights) for along in np.eye(len(values))]
    close(made[0][1], np.array([row.controls for row in rows]))
