"""mujacobian.torch: gradcheck, batches, and the gradients of mujacobian.rollout."""

import mujoco
import numpy as np
import pytest

import mujacobian
from benchmarks.exact_planning import sliding_tip
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


SECOND = 1e-10  # relative: the numbers are the same up to the order of sums


def near(made, wanted):
    scale = np.abs(wanted).max()
    assert scale > 0
    np.testing.assert_allclose(made.detach().numpy(), wanted, rtol=0, atol=SECOND * scale)


def reverse_twice(function, argnums=0):
    return torch.func.jacrev(torch.func.grad(function, argnums), argnums)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("hessian", [torch.func.hessian, reverse_twice])
def test_hessian_of_a_step_in_contact(hessian):
    problem = sliding_tip("elliptic")
    model, data = problem.model, mujoco.MjData(problem.model)
    assert model.nq == model.nv, "tangent coordinates must be those of the state"
    data.qpos[:], data.ctrl[:] = problem.start[: model.nq], problem.guess[0]
    data.qvel[:] = -0.1, 0.2, 0.3
    mujoco.mj_forward(model, data)
    assert data.ncon == 2
    d_state = np.random.default_rng(1).normal(size=2 * model.nv)
    expected = mujacobian.hessian(model, data, d_state)
    count = mujacobian.fd_count()

    def weighted(x, u):
        return (bridge.step(model, x, u)[0] * tensor(d_state, False)).sum()

    given = tensor(row(data), False), tensor(data.ctrl, False)
    (xx, xu), (_, uu) = hessian(weighted, (0, 1))(*given)
    near(xx, expected.xx)
    near(xu, expected.xu)
    assert np.abs(uu.numpy() - expected.uu).max() <= SECOND * np.abs(expected.xx).max()
    assert mujacobian.fd_count() == count


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("hessian", [torch.func.hessian, reverse_twice])
def test_hessian_of_a_rollout(hessian):
    """The rows are products of our Hessian with unit vectors, for quaternions and sensors, too."""
    model = machine("framelinvel")
    state = row(random_state(model, np.random.default_rng(2), scale=0.1))
    rng = np.random.default_rng(1)
    controls = rng.normal(size=(3, model.nu))
    trajectory = mujacobian.rollout(model, state, controls)
    weights = [rng.normal(size=x.shape) for x in (trajectory.states, trajectory.sensordata)]

    def loss(x, u):
        made = bridge.rollout(model, x, u, checkpoint=2)
        return sum((y * tensor(w, False)).sum() for y, w in zip(made, weights, strict=True))

    made = hessian(loss, (0, 1))(tensor(state, False), tensor(controls, False))
    rows = [trajectory.hvp((along, None), *weights) for along in np.eye(len(state))]
    near(made[0][0], np.array([each.state for each in rows]))
    near(made[0][1], np.array([each.controls for each in rows]))
    near(made[1][0].permute(2, 0, 1), np.array([each.controls for each in rows]))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_vmap_is_a_batch():
    model = load("actuator_kinds")
    rng = np.random.default_rng(3)
    state = row(random_state(model, rng, scale=0.1))
    states = tensor(state + 1e-3 * rng.normal(size=(3, len(state))), False)
    controls = tensor(rng.normal(size=(model.nu, 3)), False)

    def size(x, u):
        return (bridge.step(model, x, u)[0] ** 2).sum()

    over = torch.func.vmap(lambda x, u: bridge.step(model, x, u)[0], (0, 1))
    expected = bridge.step(model, states, controls.T)[0]
    assert over(states, controls).numpy().tobytes() == expected.numpy().tobytes()
    made = torch.func.vmap(torch.func.hessian(size), (0, 1))(states, controls)
    for k in range(3):
        near(made[k], torch.func.hessian(size)(states[k], controls[:, k]).numpy())


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_forward_mode():
    model, data, controls = scene("pendulum", 5)
    given = tensor(row(data)), tensor(controls)
    function = lambda x, u: bridge.rollout(model, x, u)  # noqa: E731
    assert torch.autograd.gradcheck(function, given, check_forward_ad=True)
    # reverse mode of forward mode is the same Hessian
    last = lambda u: bridge.rollout(model, row(data), u)[0][-1].sum()  # noqa: E731
    u = tensor(controls, False)
    made = torch.func.jacrev(torch.func.jacfwd(last))(u)
    near(made, torch.func.hessian(last)(u).numpy())


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_transforms_without_derivatives_raise():
    model = load("actuator_kinds")
    state = row(random_state(model, np.random.default_rng(2), scale=0.1))
    forces, u = (tensor(np.ones((2, size)), False) for size in (model.nv, model.nu))

    def loss(controls, f):
        return (bridge.rollout(model, state, controls, forces=f)[0] ** 2).sum()

    assert torch.func.hessian(loss)(u, forces).any()  # the forces are constants
    cases = (
        (torch.func.hessian(loss, 1), "forces.*second derivatives"),
        (torch.func.jacfwd(torch.func.grad(loss, 1), 0), "forces.*second derivatives"),
        (torch.func.jacfwd(torch.func.jacfwd(loss)), "forward mode of forward mode"),
        (torch.func.jacrev(torch.func.hessian(loss)), "third derivatives"),
    )
    for function, reason in cases:
        with pytest.raises(mujacobian.UnsupportedFeatureError, match=reason):
            function(u, forces)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_second_derivatives_by_parameters():
    model = load("hinge_chain")
    model.dof_damping[:] = 0.1
    state = row(random_state(model, np.random.default_rng(2), scale=0.3))
    controls = np.zeros((3, model.nu))
    parameters = mujacobian.Parameters(model, ["body_mass", "dof_damping", "gravity"])
    values = parameters.values
    values[parameters.names.index("gravity[0]")] = 0.1

    def states(x, p):
        return bridge.rollout(model, x, controls, params=(parameters, p))[0][1:]

    assert torch.autograd.gradgradcheck(states, (tensor(state), tensor(values)))
    trajectory = mujacobian.rollout(model, state, controls, params=(parameters, values))
    weights = np.random.default_rng(1).normal(size=trajectory.states.shape)
    weights[0] = 0

    def loss(x, p):
        return (states(x, p) * tensor(weights[1:], False)).sum()

    given = tensor(state, False), tensor(values, False)
    made = torch.func.hessian(loss, (0, 1))(*given)
    near(made[1][1], trajectory.hessian("params", weights))
    rows = [trajectory.hvp((along, None, None), weights) for along in np.eye(len(state))]
    near(made[0][1], np.array([each.params for each in rows]))
    near(made[1][0].T, np.array([each.params for each in rows]))


def test_steps_with_parameters_forces_mocap_and_substeps():
    """A step with substeps is a rollout with constant inputs."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body name='hand' mocap='true'><geom size='.02'/></body>"
        "<body name='ball' pos='.1 0 .5'><freejoint/><geom size='.1' mass='1'/></body></worldbody>"
        "<equality><weld body1='hand' body2='ball'/></equality>"
        "<sensor><framepos objtype='body' objname='ball'/></sensor></mujoco>"
    )
    parameters = mujacobian.Parameters(model, [("body_mass", "ball")])
    rng = np.random.default_rng(1)
    state = np.array([0.1, 0, 0.5, 1, 0.1, 0, 0, *rng.normal(size=6)])
    forces, mocap = rng.normal(size=model.nv), np.array([[0, 0.1, 0, 1, 0.2, 0, 0]])
    inputs = {"forces": forces, "mocap": mocap, "wrenches": rng.normal(size=(model.nbody, 6))}
    trajectory = mujacobian.rollout(
        model,
        state,
        np.zeros((3, 0)),
        params=parameters,
        **{name: np.stack([x] * 3) for name, x in inputs.items()},
    )
    weights = np.zeros_like(trajectory.states), np.zeros_like(trajectory.sensordata)
    weights[0][-1], weights[1][-1] = rng.normal(size=len(state)), rng.normal(size=3)
    expected = trajectory.gradient(*weights)
    given = {name: tensor(x) for name, x in inputs.items()}
    mass = tensor(parameters.values)
    last, sensordata = bridge.step(
        model, tensor(state), np.zeros(0), params=(parameters, mass), substeps=3, **given
    )
    assert last.detach().numpy().tobytes() == trajectory.states[-1].tobytes()
    assert sensordata.detach().numpy().tobytes() == trajectory.sensordata[-1].tobytes()
    loss = (last * tensor(weights[0][-1], False)).sum()
    (loss + (sensordata * tensor(weights[1][-1], False)).sum()).backward()
    near(mass.grad, expected.params)
    for name, x in given.items():
        near(x.grad, getattr(expected, name).sum(axis=0))
    with pytest.raises(ValueError, match="substeps must be an integer of at least 1"):
        bridge.step(model, state, np.zeros(0), substeps=0)
    with pytest.raises(ValueError, match="forces must have 1 or 2 axes"):
        bridge.step(model, state, np.zeros(0), forces=np.zeros((1, 1, model.nv)))
