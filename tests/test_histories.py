"""Histories of delayed actuators and sensors: as a part of the state, and through several steps."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.test_delays import XML, scene

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION
STEP = 1e-5  # of central differences, whose error is about 1e-10


def buffers(model, data):
    """Yield the samples of each delayed actuator and sensor, the oldest first, and a setter."""
    actuators = [k for k in range(model.nactuator) if model.actuator_delay[k] > 0]
    readers = [
        k
        for k in range(model.nsensor)
        if model.sensor_delay[k] > 0 or model.sensor_interval[k, 0] > 0
    ]
    found = [
        (model.actuator_historyadr[k], model.actuator_history[k, 0], model.actuator_ctrlnum[k])
        for k in actuators
    ]
    found += [
        (model.sensor_historyadr[k], model.sensor_history[k, 0], model.sensor_dim[k])
        for k in readers
    ]
    for start, n, width in found:
        order = (int(data.history[start + 1]) + 1 + np.arange(n)) % n
        yield data.history[start + 2 + n : start + 2 + n + n * width].reshape(n, width), order


def whole_state(model, data):
    """Return (q, v, act, samples)."""
    samples = [values[order].ravel() for values, order in buffers(model, data)]
    return np.concatenate([data.qpos, data.qvel, data.act, *samples])


def stepped(model, data, change):
    """Return the whole state and the sensors after a step from a changed state and control."""
    made = mujoco.MjData(model)
    row = np.empty(mujoco.mj_stateSize(model, INTEGRATION))
    mujoco.mj_getState(model, data, row, INTEGRATION)
    mujoco.mj_setState(model, made, row, INTEGRATION)
    z, end = whole_state(model, made) + change[: -model.nu], model.nq + model.nv + model.na
    made.qpos[:], made.qvel[:], made.act[:] = np.split(z[:end], [model.nq, model.nq + model.nv])
    for values, order in buffers(model, made):
        values[order] = z[end : end + values.size].reshape(values.shape)
        end += values.size
    made.ctrl[:] += change[-model.nu :]
    mujoco.mj_step(model, made)
    return np.concatenate([whole_state(model, made), made.sensordata])


@pytest.mark.parametrize(
    ("integrator", "interp", "steps", "back"),
    [
        ("Euler", "zoh", 7, 0),
        ("implicitfast", "linear", 8, 0),
        ("discrete", "cubic", 9, 0),
        ("Euler", "cubic", 3, 0),
        ("Euler", "linear", 9, 0.03),  # the time is set back, and samples are inserted
        ("Euler", "linear", 9, 0.045),
        ("Euler", "linear", 9, 1),  # to a time before all samples
    ],
)
def test_a_step_is_exact_with_its_history(integrator, interp, steps, back):
    model, data = scene(integrator, interp, steps)
    data.time -= back
    before = data.history.copy()
    lin = mujacobian.linearize(model, data, history=True)
    assert mujacobian.linearize(model, data, history=True).A.tobytes() == lin.A.tobytes()
    assert (data.history == before).all()
    size = len(whole_state(model, data)) + model.nu
    columns = [
        (stepped(model, data, e) - stepped(model, data, -e)) / (2 * STEP)
        for e in STEP * np.eye(size)
    ]
    J = np.block([[lin.A, lin.B], [lin.C, lin.D]])
    np.testing.assert_allclose(J, np.array(columns).T, rtol=0, atol=1e-9)
    nx = 2 * model.nv + model.na
    assert lin.A[:nx, nx:].any() or back == 1  # the controls of earlier steps act
    A = mujacobian.linearize(model, data, sensors=False).A
    np.testing.assert_allclose(lin.A[:nx, :nx], A, atol=1e-14)


def composed(model, data, controls, d_states, d_sensors):
    """Return the gradient of a scalar from the linearizations with histories of all steps."""
    lins, nx = [], 2 * model.nv + model.na
    copied = mujoco.MjData(model)
    row = np.empty(mujoco.mj_stateSize(model, INTEGRATION))
    mujoco.mj_getState(model, data, row, INTEGRATION)
    mujoco.mj_setState(model, copied, row, INTEGRATION)
    for u in controls:
        copied.ctrl[:] = u
        lins.append(mujacobian.linearize(model, copied, history=True))
        mujoco.mj_step(model, copied)
    y, made = np.zeros(len(lins[0].A)), np.zeros_like(controls)
    y[:nx] = d_states[-1]
    for t, lin in reversed(list(enumerate(lins))):
        made[t] = lin.B.T @ y + lin.D.T @ d_sensors[t]
        y = lin.A.T @ y + lin.C.T @ d_sensors[t]
        y[:nx] += d_states[t]
    return y[:nx], made


def coupled(interp="linear", n=None):
    """Return a trajectory, and derivatives of a scalar by its states and sensors."""
    model, data = scene("Euler", interp)
    rng = np.random.default_rng(2)
    lead = () if n is None else (n,)
    controls = rng.uniform(-0.45, 0.45, (*lead, 14, model.nu))
    trajectory = mujacobian.rollout(model, data, controls)
    shapes = trajectory.states.shape, trajectory.sensordata.shape
    return model, data, controls, trajectory, *(rng.normal(size=shape) for shape in shapes)


@pytest.mark.parametrize("interp", ["zoh", "linear", "cubic"])
def test_gradients_of_rollouts_are_exact(interp):
    model, data, controls, trajectory, d_states, d_sensors = coupled(interp)
    gradient = trajectory.gradient(d_states, d_sensors)
    state, made = composed(model, data, controls, d_states, d_sensors)
    np.testing.assert_allclose(gradient.controls, made, atol=1e-12)
    np.testing.assert_allclose(gradient.state, state, atol=1e-12)
    assert gradient.controls.any(axis=0).all()
    assert not gradient.controls[-1, [1, 2, 3, 5, 6]].any()  # too late

    # forward mode and second order
    rng = np.random.default_rng(3)
    along = rng.normal(size=gradient.state.shape), rng.normal(size=controls.shape)
    states, sensors = trajectory.jvp(along)
    expected = gradient.state @ along[0] + (gradient.controls * along[1]).sum()
    assert (states * d_states).sum() + (sensors * d_sensors).sum() == pytest.approx(expected)
    jacobian = trajectory.jacobian("state")
    pulled = np.einsum("tik,ti->k", jacobian.states, d_states)
    pulled += np.einsum("tik,ti->k", jacobian.sensordata, d_sensors)
    np.testing.assert_allclose(pulled, gradient.state, atol=1e-12)
    sides = []
    for sign in (1, -1):
        moved = mujacobian.rollout(model, data, controls + sign * STEP * along[1])
        sides.append(moved.gradient(d_states, d_sensors).controls)
    product = trajectory.hvp((None, along[1]), d_states, d_sensors).controls
    assert product.any()
    np.testing.assert_allclose(product, (sides[0] - sides[1]) / (2 * STEP), atol=1e-8)


def test_batches_checkpoints_and_workers_agree():
    model, data, controls, trajectory, d_states, d_sensors = coupled(n=3)
    gradient = trajectory.gradient(d_states, d_sensors)
    along = None, np.ones_like(controls)
    product = trajectory.hvp(along, d_states)
    for options in ({"checkpoint": 4}, {"workers": map}):
        other = mujacobian.rollout(model, data, controls, **options)
        made = other.gradient(d_states, d_sensors)
        assert made.controls.tobytes() == gradient.controls.tobytes()
        assert other.hvp(along, d_states).controls.tobytes() == product.controls.tobytes()
    assert product.controls.any()
    one = mujacobian.rollout(model, data, controls[1])
    assert (one.gradient(d_states[1], d_sensors[1]).controls == gradient.controls[1]).all()
    one = mujacobian.rollout(model, data, controls[:, :0]).gradient()
    assert one.controls.shape == (3, 0, model.nu)


def test_a_window_cuts_histories():
    model, data, controls, trajectory, d_states, _ = coupled()
    window = 5
    gradient = trajectory.gradient(d_states, window=window).controls
    alone = mujacobian.rollout(model, data, controls[:window])
    expected = alone.gradient(d_states[: window + 1]).controls
    np.testing.assert_allclose(gradient[:window], expected, atol=1e-12)


@pytest.mark.usefixtures("double_precision")
def test_pytorch_and_jax_follow_histories():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import mujacobian.jax
    import mujacobian.torch

    model, data, controls, _, d_states, d_sensors = coupled()
    state = np.concatenate([data.qpos, data.qvel, data.act])
    gradient = mujacobian.rollout(model, state, controls).gradient(d_states, d_sensors)
    u = torch.tensor(controls, requires_grad=True)
    states, sensors = mujacobian.torch.rollout(model, torch.tensor(state), u)
    loss = (states * torch.tensor(d_states)).sum() + (sensors * torch.tensor(d_sensors)).sum()
    loss.backward()
    np.testing.assert_allclose(u.grad.numpy(), gradient.controls, atol=1e-12)

    def scalar(u):
        states, sensors = mujacobian.jax.rollout(model, state, u)
        return (states * d_states).sum() + (sensors * d_sensors).sum()

    made = jax.jit(jax.grad(scalar))(controls)
    np.testing.assert_allclose(made, gradient.controls, atol=1e-12)


def test_delayed_sensors_with_a_cutoff_raise_in_trajectories_that_use_them():
    xml = XML.replace('name="past"', 'name="past" cutoff=".1"').format(
        integrator="Euler", interp="zoh"
    )
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    trajectory = mujacobian.rollout(model, data, np.ones((3, model.nu)))
    assert trajectory.gradient(np.ones_like(trajectory.states)).state.any()
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"past.*cutoff"):
        trajectory.gradient(None, np.ones_like(trajectory.sensordata))
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"past.*cutoff"):
        mujacobian.linearize(model, data, history=True)
    assert mujacobian.linearize(model, data, history=True, sensors=False).C is None


def test_histories_are_not_differenced():
    model, data = scene()
    with pytest.raises(mujacobian.errors.ArgumentError, match="fallback"):
        mujacobian.linearize(model, data, history=True, fallback="fd")
