"""Single precision at the surface: the same rule for NumPy, PyTorch and JAX."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import single
from mujacobian.errors import ArgumentTypeError
from tests.scenes.cases import load

STEPS = 5


def inputs():
    model = load("hinge_chain")
    rng = np.random.default_rng(0)
    state = 0.1 * rng.normal(size=model.nq + model.nv).astype(np.float32)
    return model, state, 0.1 * rng.normal(size=(STEPS, model.nu)).astype(np.float32)


def rounded(array):
    """Return what the rule promises: the double result, rounded once."""
    return np.asarray(array).astype(np.float32)


def test_numpy_results_are_rounded_double_results():
    model, state, controls = inputs()
    trajectory = mujacobian.rollout(model, state, controls)
    d_states = np.random.default_rng(1).normal(size=trajectory.states.shape).astype(np.float32)
    kept = d_states.copy()
    made = single(trajectory.gradient)(d_states, tangent=False)
    wanted = trajectory.gradient(d_states.astype(float))
    assert isinstance(made, mujacobian.Gradient)
    assert made.forces is None
    for name in ("state", "controls", "norms"):
        ours, theirs = getattr(made, name), getattr(wanted, name)
        assert theirs.dtype == np.float64
        assert ours.tobytes() == rounded(theirs).tobytes()
    assert np.abs(made.state).max() > 0
    assert np.array_equal(d_states, kept)
    assert d_states.dtype == np.float32


def test_linearizations_and_tuples():
    model, state, controls = inputs()
    data = mujoco.MjData(model)
    data.qpos, data.qvel = np.split(state.astype(float), [model.nq])
    made, wanted = single(mujacobian.linearize)(model, data), mujacobian.linearize(model, data)
    assert made.A.dtype == np.float32
    assert made.A.tobytes() == rounded(wanted.A).tobytes()
    trajectory = mujacobian.rollout(model, state, controls)
    states, sensordata = single(trajectory.jvp)((None, np.ones_like(controls)))
    assert states.dtype == sensordata.dtype == np.float32


def test_a_trajectory_stays_in_double():
    model, state, controls = inputs()
    with pytest.raises(ArgumentTypeError, match="a Trajectory needs double precision: wrap its"):
        single(mujacobian.rollout)(model, state, controls)


def test_names_are_kept():
    assert single(mujacobian.linearize).__name__ == "linearize"


def test_torch():
    torch = pytest.importorskip("torch")
    import mujacobian.torch as bridge

    model, state, controls = inputs()
    x, u = torch.tensor(state), torch.tensor(controls, requires_grad=True)
    with pytest.raises(ArgumentTypeError, match="must have double precision"):
        bridge.rollout(model, x, u)
    states, sensordata = single(bridge.rollout)(model, x, u)
    assert states.dtype == sensordata.dtype == torch.float32
    states[-1].sum().backward()
    assert u.grad.dtype == torch.float32
    trajectory = mujacobian.rollout(model, state, controls)
    d_states = np.zeros_like(trajectory.states)
    d_states[-1] = 1
    assert states.detach().numpy().tobytes() == rounded(trajectory.states).tobytes()
    wanted = trajectory.gradient(d_states).controls
    np.testing.assert_allclose(u.grad.numpy(), wanted, rtol=1e-6, atol=1e-7 * np.abs(wanted).max())

    parameters = mujacobian.Parameters(model, ["body_mass"])
    values = torch.tensor(parameters.values, dtype=torch.float32, requires_grad=True)
    after, _ = single(bridge.step)(model, x, u[0].detach(), params=(parameters, values))
    after.sum().backward()
    assert values.grad.dtype == torch.float32

    def last(controls):
        return single(bridge.rollout)(model, x, controls)[0][-1].sum()

    batch = torch.func.vmap(torch.func.grad(last))(torch.stack([u.detach(), 2 * u.detach()]))
    assert batch.dtype == torch.float32
    np.testing.assert_allclose(batch[0].numpy(), u.grad.numpy(), rtol=1e-6)


def test_torch_compile():
    torch = pytest.importorskip("torch")
    import mujacobian.torch as bridge

    model, state, controls = inputs()
    simulate = single(bridge.rollout)

    def last(x, u):
        return simulate(model, x, u)[0][-1].sum()

    x, u = torch.tensor(state), torch.tensor(controls)
    compiled = torch.compile(last, fullgraph=True, backend="aot_eager")
    assert compiled(x, u) == last(x, u)
    assert compiled(x, u).dtype == torch.float32


def test_jax(double_precision):
    import jax

    import mujacobian.jax as bridge

    model, state, controls = inputs()

    def last(controls):
        return single(bridge.rollout)(model, jax.numpy.asarray(state), controls)[0][-1].sum()

    u = jax.numpy.asarray(controls)
    assert u.dtype == np.float32
    states, _ = single(bridge.rollout)(model, jax.numpy.asarray(state), u)
    assert states.dtype == np.float32
    trajectory = mujacobian.rollout(model, state, controls)
    assert np.asarray(states).tobytes() == rounded(trajectory.states).tobytes()
    gradient = jax.jit(jax.grad(last))(u)
    assert gradient.dtype == np.float32
    d_states = np.zeros_like(trajectory.states)
    d_states[-1] = 1
    wanted = trajectory.gradient(d_states).controls
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-7 * np.abs(wanted).max())
    assert jax.vmap(jax.grad(last))(jax.numpy.stack([u, u])).dtype == np.float32
