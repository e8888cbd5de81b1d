"""mujacobian.torch: gradcheck, batches, and the gradients of mujacobian.rollout."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.reference import converge
from tests.scenes.cases import load, random_state
from tests.scenes.rollout_cases import row, scene
from tests.test_hessian_sensors import machine

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
bridge = pytest.importorskip("mujacobian.torch")

STEPS = 20


def tensor(values, grad=True):
    return torch.tensor(np.asarray(values), dtype=torch.float64, requires_grad=grad)


@pytest.fixture
def ball():
    """Return a model and a state of it with a free body in contact, and controls."""
    model, data, controls = scene("hand", STEPS)
    converge(model)
    data.qpos[-5] -= 0.0165
    mujoco.mj_forward(model, data)
    assert data.ncon, "the ball must touch"
    return model, row(data), controls


@pytest.mark.parametrize("batch", [(), (2,)])
def test_gradcheck_of_a_step(ball, batch):
    model, state, controls = ball
    spread = np.random.default_rng(1).normal(size=(*batch, len(state))) * 1e-4
    given = tensor(state + spread), tensor(np.broadcast_to(controls[0], (*batch, model.nu)))
    next_state, sensordata = bridge.step(model, *given)
    assert next_state.shape == (*batch, len(state))
    assert sensordata.shape == (*batch, model.nsensordata)
    assert torch.autograd.gradcheck(lambda x, u: bridge.step(model, x, u), given)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_gradcheck_of_a_rollout(batch):
    """The loss excludes the first state, which is not normalized, while its gradient is."""
    model = load("everything")
    state = row(random_state(model, np.random.default_rng(2), scale=0.1))
    rng = np.random.default_rng(3)
    given = (
        tensor(state + rng.normal(size=(*batch, len(state))) * 1e-2),
        tensor(rng.normal(size=(*batch, 3, model.nu)) * 0.3),
        tensor(rng.normal(size=(3, model.nv))),
        tensor(rng.normal(size=(3, model.nbody, 6))),
    )

    def states(x, u, f, w):
        return bridge.rollout(model, x, u, forces=f, wrenches=w, checkpoint=2)[0][..., 1:, :]

    assert torch.autograd.gradcheck(states, given)


def test_gradcheck_of_sensors_and_activations():
    model, data, controls = scene("pendulum", 5)
    given = tensor(row(data)), tensor(controls)
    assert torch.autograd.gradcheck(lambda x, u: bridge.rollout(model, x, u), given)


def test_gradcheck_of_parameters():
    model, data, controls = scene("pendulum", 5)
    parameters = mujacobian.Parameters(model, ["body_mass", "dof_damping", "gravity"])

    def states(p):
        return bridge.rollout(model, data, controls, params=(parameters, p))[0]

    assert torch.autograd.gradcheck(states, tensor(parameters.values))


def test_gradients_are_those_of_rollout(ball):
    """All inputs have gradients, including inputs that a batch shares."""
    model, state, controls = ball
    batch = np.stack([controls, controls + 0.01, controls - 0.01])
    trajectory = mujacobian.rollout(model, state, batch)
    rng = np.random.default_rng(4)
    d_states = rng.normal(size=trajectory.states.shape)
    d_sensors = rng.normal(size=trajectory.sensordata.shape)
    wanted = trajectory.gradient(d_states, d_sensors)
    x, u = tensor(state), tensor(batch)
    states, sensordata = bridge.rollout(model, x, u)
    assert states.detach().numpy().tobytes() == trajectory.states.tobytes()
    loss = (states * tensor(d_states, False)).sum() + (sensordata * tensor(d_sensors, False)).sum()
    loss.backward()
    assert u.grad.numpy().tobytes() == wanted.controls.tobytes()
    assert x.grad.numpy().tobytes() == wanted.state.sum(axis=0).tobytes()


def test_steps_chained_are_a_rollout():
    model, data, controls = scene("pendulum", STEPS)
    x, u = tensor(row(data)), tensor(controls)
    state = x
    for t in range(STEPS):
        state, _ = bridge.step(model, state, u[t])
    state.sum().backward()
    y, v = tensor(row(data)), tensor(controls)
    bridge.rollout(model, y, v)[0][-1].sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-13, atol=0)
    torch.testing.assert_close(u.grad, v.grad, rtol=1e-13, atol=1e-15)


def test_a_state_may_be_data_and_inputs_may_be_arrays():
    model, data, controls = scene("pendulum", STEPS)
    u = tensor(controls)
    states, _ = bridge.rollout(model, data, u)
    states[-1, 0].backward()
    assert u.grad.any()
    assert not bridge.rollout(model, row(data), controls)[0].requires_grad


def test_unread_sensors_are_not_asked_for():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom size='.1' pos='0 1 0'/></body></worldbody>"
        "<sensor><user name='encoder' dim='1'/></sensor></mujoco>"
    )
    x = tensor([0.1, 0.2])
    states, sensordata = bridge.rollout(model, x, np.zeros((3, 0)))
    states.sum().backward(retain_graph=True)
    assert x.grad.any()
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="encoder"):
        sensordata.sum().backward()


def test_edits_by_the_caller_do_not_affect_the_gradient():
    model, data, controls = scene("hand", STEPS)
    gradients = []
    for spoil in (False, True):
        x = tensor(row(data))
        states, _ = bridge.rollout(model, x, controls)
        loss = states.sum()
        if spoil:
            states.detach().zero_()
        loss.backward()
        gradients.append(x.grad.numpy().tobytes())
    assert gradients[0] == gradients[1]


@pytest.mark.parametrize("name", ["state", "controls", "forces"])
def test_single_precision_is_refused(name):
    model, data, controls = scene("pendulum", STEPS)
    given = {"state": row(data), "controls": controls, "forces": np.zeros((STEPS, 1))}
    given[name] = torch.tensor(given[name], dtype=torch.float32)
    for function in (bridge.rollout, mujacobian.rollout):
        with pytest.raises(TypeError, match=rf"{name} must .* use {name}\.double\(\)"):
            function(model, **given)


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("name", ["actuator_ball_and_free", "actuator_kinds"])
def test_gradgradcheck(name, batch):
    """The loss excludes the first state, as in `test_gradcheck_of_a_rollout`."""
    model = load(name)
    state = row(random_state(model, np.random.default_rng(2), scale=0.1))
    rng = np.random.default_rng(3)
    given = (
        tensor(state + rng.normal(size=(*batch, len(state))) * 1e-2),
        tensor(rng.normal(size=(*batch, 2, model.nu)) * 0.3),
    )

    def states(x, u):
        return bridge.rollout(model, x, u, checkpoint=1)[0][..., 1:, :]

    assert torch.autograd.gradgradcheck(states, given)
    assert torch.autograd.gradgradcheck(lambda x, u: bridge.step(model, x, u[..., 0, :])[0], given)


def test_gradgradcheck_of_sensors():
    model = machine("framelinvel")
    state = row(random_state(model, np.random.default_rng(2), scale=0.1))
    controls = np.random.default_rng(3).normal(size=(2, model.nu))

    def height(x, u):
        return bridge.rollout(model, x, u)[1][..., 2::3].sum(dim=0)

    assert torch.autograd.gradgradcheck(height, (tensor(state), tensor(controls)))


def test_a_shared_state_has_the_sum_of_the_second_derivatives():
    model = load("actuator_kinds")
    state = row(random_state(model, np.random.default_rng(2), scale=0.1))
    controls = np.random.default_rng(3).normal(size=(3, 4, model.nu))

    def loss(x, u):
        return (bridge.rollout(model, x, u)[0] ** 2).sum()

    whole = torch.autograd.functional.hessian(lambda x: loss(x, tensor(controls)), tensor(state))
    parts = [
        torch.autograd.functional.hessian(lambda x, u=u: loss(x, tensor(u)), tensor(state))
        for u in controls
    ]
    torch.testing.assert_close(whole, sum(parts), rtol=1e-10, atol=1e-10)


def test_second_derivatives_by_other_inputs_raise():
    model = load("actuator_kinds")
    state = row(random_state(model, np.random.default_rng(2), scale=0.1))
    forces = tensor(np.ones((2, model.nv)))
    states, _ = bridge.rollout(model, tensor(state), np.zeros((2, model.nu)), forces=forces)
    (gradient,) = torch.autograd.grad((states**2).sum(), forces, create_graph=True)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="forces"):
        gradient.sum().backward()


def test_nan_and_wrong_shapes():
    model, data, controls = scene("pendulum", STEPS)
    x = tensor(row(data))
    states, _ = bridge.rollout(model, x, controls)
    with pytest.raises(ValueError, match="d_states must be finite"):
        (states.sum() * float("nan")).backward()
    with pytest.raises(ValueError, match="controls must have shape"):
        bridge.rollout(model, x, controls[:, :0])
