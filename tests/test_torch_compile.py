"""torch.compile of rollouts and steps: one graph, no warnings, the same numbers."""

import copy
import gc
import warnings

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.scenes.cases import load
from tests.scenes.rollout_cases import row, scene

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
bridge = pytest.importorskip("mujacobian.torch")

STEPS = 4


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def tensor(values, grad=True):
    return torch.tensor(np.asarray(values), dtype=torch.float64, requires_grad=grad)


@pytest.fixture
def problem():
    """Return a model, and tensors of a batch of states and controls."""
    model, data, controls = scene("hand", STEPS)
    rng = np.random.default_rng(1)
    states = row(data) + 1e-3 * rng.normal(size=(2, len(row(data))))
    return model, tensor(states), tensor(np.stack([controls, controls + 0.01]))


def gradients(function, *given):
    return [x.numpy().tobytes() for x in torch.autograd.grad(function(*given), given)]


def closed_loop(model, x, u):
    """Return a number that depends on a rollout and on steps with feedback."""
    states, sensordata = bridge.rollout(model, x, u)
    x = states[..., -1, :]
    for _ in range(2):
        x, _ = bridge.step(model, x, torch.tanh(x[..., : model.nu]), substeps=2)
    return (x**2).sum() + sensordata.sum()


@pytest.mark.parametrize("batch", [True, False])
def test_one_graph_without_warnings(problem, batch):
    model, x, u = problem
    if not batch:
        x, u = tensor(x[0].detach()), tensor(u[0].detach())

    def loss(x, u):
        return closed_loop(model, x, u)

    expected = gradients(loss, x, u)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        assert gradients(compiled, x, u) == expected
        assert gradients(compiled, x, u) == expected


def test_another_model_is_compiled_again(problem):
    model, x, u = problem
    other = copy.copy(model)
    other.opt.timestep *= 2
    compiled = torch.compile(closed_loop, fullgraph=True, backend="aot_eager")
    for each in (model, other, model):
        expected = gradients(lambda x, u, each=each: closed_loop(each, x, u), x, u)
        assert gradients(lambda x, u, each=each: compiled(each, x, u), x, u) == expected


def test_edits_of_the_model_count(problem):
    model, x, u = problem
    compiled = torch.compile(closed_loop, fullgraph=True, backend="aot_eager")
    before = compiled(model, x, u)
    model.opt.gravity[2] = -5
    assert compiled(model, x, u) == closed_loop(model, x, u) != before


def test_parameters_and_forces():
    model = load("hinge_chain")
    parameters = mujacobian.Parameters(model, ["body_mass"])
    state = np.full(model.nq + model.nv, 0.1)

    def loss(p, f):
        x, _ = bridge.step(
            model, state, np.zeros(model.nu), params=(parameters, p), forces=f, substeps=3
        )
        return (x**2).sum()

    given = tensor(parameters.values), tensor(np.ones(model.nv))
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    assert gradients(compiled, *given) == gradients(loss, *given)


def test_operators_have_the_rules_that_pytorch_checks(problem):
    model, x, u = problem
    token = mujacobian.torch._torch_ops.token(model, 0, None, 0, None, 1, None)
    arguments = token, "state,controls", [x, u]
    torch.library.opcheck(torch.ops.mujacobian.record.default, arguments)


def test_vmap_of_the_operator(problem):
    model, x, u = problem
    token = mujacobian.torch._torch_ops.token(model, 0, None, 0, None, 1, None)

    def states(x, u):
        return torch.ops.mujacobian.record(token, "state,controls", [x, u])[0]

    made = torch.func.vmap(states, (0, None))(x, u[0])
    expected = bridge.rollout(model, x, u[0])[0]
    assert made.detach().numpy().tobytes() == expected.detach().numpy().tobytes()


def test_a_wrong_shape_and_an_mjdata_raise(problem):
    model, x, u = problem
    compiled = torch.compile(
        lambda x, u: bridge.rollout(model, x, u)[0], fullgraph=True, backend="aot_eager"
    )
    with pytest.raises(Exception, match="controls must have shape"):
        compiled(x, u[..., 1:])
    data = mujoco.MjData(model)
    with pytest.raises(Exception, match="state must be a tensor"):
        torch.compile(lambda u: bridge.rollout(model, data, u)[0], fullgraph=True)(u)


def test_a_handle_does_not_keep_the_model():
    from mujacobian._handle import handle, of_token

    model = load("hinge_chain")
    token = handle(model, None, None, None, None).token
    assert of_token(token).host().model is model
    del model
    gc.collect()
    with pytest.raises(mujacobian.errors.MujacobianError, match="does not exist anymore"):
        of_token(token)
