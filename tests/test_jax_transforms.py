"""Transforms of JAX that compose: forward and reverse mode, second derivatives, vmap, scan."""

import gc

import numpy as np
import pytest

import mujacobian
from tests.scenes.cases import load, random_state
from tests.scenes.rollout_cases import row, scene

jax = pytest.importorskip("jax", reason="JAX is not installed")
bridge = pytest.importorskip("mujacobian.jax")
pytestmark = pytest.mark.usefixtures("double_precision")

STEPS = 5
TOLERANCE = 1e-11  # relative: the same numbers in another order of sums


def near(made, wanted):
    scale = np.abs(wanted).max()
    assert scale > 0
    np.testing.assert_allclose(np.asarray(made), wanted, rtol=0, atol=TOLERANCE * scale)


@pytest.fixture
def problem():
    """Return a model with a free body, a state and controls."""
    model, data, controls = scene("hand", STEPS)
    return model, row(data), controls


@pytest.fixture
def curved():
    """Return a model with second derivatives, a state and controls."""
    model = load("actuator_kinds")
    state = row(random_state(model, np.random.default_rng(2), scale=0.1))
    return model, state, np.random.default_rng(3).normal(size=(3, model.nu))


@pytest.mark.parametrize("compile", [False, True])
def test_forward_mode_is_reverse_mode(problem, compile):
    model, state, controls = problem

    def last(x, u):
        states, sensordata = bridge.rollout(model, x, u)
        return states[-1], sensordata[-1]

    count = mujacobian.fd_count()
    forward, reverse = (jacobian(last, (0, 1)) for jacobian in (jax.jacfwd, jax.jacrev))
    if compile:
        forward, reverse = jax.jit(forward), jax.jit(reverse)
    made, wanted = forward(state, controls), reverse(state, controls)
    near(made[0][0], np.asarray(wanted[0][0]))
    near(made[0][1], np.asarray(wanted[0][1]))
    near(made[1][0], np.asarray(wanted[1][0]))
    assert not np.asarray(made[1][1]).any()  # these sensors do not depend on the controls
    assert not np.asarray(wanted[1][1]).any()
    assert mujacobian.fd_count() == count


def test_jit_of_vmap_of_grad(problem):
    model, state, controls = problem
    batch = np.stack([controls, controls + 0.01, controls - 0.01])

    def loss(u):
        return (bridge.rollout(model, state, u)[0] ** 2).sum()

    made = jax.jit(jax.vmap(jax.grad(loss)))(batch)
    for k, u in enumerate(batch):
        assert np.asarray(made[k]).tobytes() == np.asarray(jax.grad(loss)(u)).tobytes()
    nested = jax.vmap(jax.vmap(jax.grad(loss)))(np.stack([batch, batch]))
    assert np.asarray(nested[1]).tobytes() == np.asarray(made).tobytes()


def forward_over_reverse(function):
    return jax.jacfwd(jax.grad(function))


def reverse_over_reverse(function):
    return jax.jacrev(jax.grad(function))


def reverse_over_forward(function):
    return jax.jacrev(jax.jacfwd(function))


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("hessian", [reverse_over_reverse, reverse_over_forward])
def test_hessians_in_all_orders(curved, hessian, compile):
    model, state, controls = curved

    def loss(u):
        return (bridge.rollout(model, state, u)[0] ** 2).sum()

    second = hessian(loss)
    made = (jax.jit(second) if compile else second)(controls)
    near(made, np.asarray(forward_over_reverse(loss)(controls)))


def test_third_derivatives_and_forward_mode_twice_raise(curved):
    model, state, controls = curved

    def loss(u):
        return (bridge.rollout(model, state, u)[0] ** 2).sum()

    with pytest.raises(mujacobian.UnsupportedFeatureError, match="forward mode of forward mode"):
        jax.jacfwd(jax.jacfwd(loss))(controls)
    with pytest.raises(
        mujacobian.UnsupportedFeatureError, match=r"third derivatives|forward mode of forward mode"
    ):
        jax.jacrev(jax.hessian(loss))(controls)


def test_a_scan_of_steps_does_not_run_python(problem, monkeypatch):
    """The compiled program calls the core, and no function of this package."""
    model, state, controls = problem

    def loss(x, us):
        def step(x, u):
            x, y = bridge.step(model, x, u, substeps=2)
            return x, y.sum()

        x, sums = jax.lax.scan(step, x, us)
        return (x**2).sum() + sums.sum()

    slope = jax.jit(jax.value_and_grad(loss, (0, 1)))
    expected = jax.block_until_ready(slope(state, controls))

    def fail(*_args, **_options):
        raise AssertionError("the interpreter ran")

    for name in ("simulate", "push", "pull_back", "attempt_simulation", "attempt_gradient"):
        monkeypatch.setattr(mujacobian._host.HostRollout, name, fail)
    made = jax.block_until_ready(slope(state, controls))
    for x, y in zip(jax.tree.leaves(made), jax.tree.leaves(expected), strict=True):
        assert np.asarray(x).any()
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


def test_a_compiled_function_keeps_its_model():
    models = [load("hinge_chain")]
    size, nu = models[0].nq + models[0].nv, models[0].nu
    run = jax.jit(lambda u: bridge.rollout(models[0], np.full(size, 0.1), u)[0])
    expected = np.asarray(run(np.zeros((3, nu))))
    models.clear()
    gc.collect()
    assert np.asarray(run(np.zeros((3, nu)))).tobytes() == expected.tobytes()


def test_edits_of_the_model_count(problem):
    model, state, controls = problem
    run = jax.jit(lambda u: bridge.rollout(model, state, u)[0])
    before = np.asarray(run(controls))
    model.opt.gravity[2] = -5
    expected = mujacobian.rollout(model, state, controls).states
    assert np.asarray(run(controls)).tobytes() == expected.tobytes() != before.tobytes()


def test_errors_of_a_compiled_function(problem):
    model, state, controls = problem
    run = jax.jit(lambda u: bridge.rollout(model, state, u)[0])
    run(controls)
    bad = controls.copy()
    bad[1, 0] = np.nan
    with pytest.raises(Exception, match=r"controls must be finite, but controls\[0, 1, 0\] is nan"):
        jax.block_until_ready(run(bad))
    assert np.isfinite(np.asarray(run(controls))).all()


def test_steps_with_parameters_forces_and_substeps():
    model = load("hinge_chain")
    parameters = mujacobian.Parameters(model, ["body_mass"])
    state, rng = np.full(model.nq + model.nv, 0.1), np.random.default_rng(1)
    forces, controls = rng.normal(size=model.nv), np.zeros(model.nu)

    def last(p, f):
        x, y = bridge.step(model, state, controls, params=(parameters, p), forces=f, substeps=3)
        return x.sum() + y.sum()

    trajectory = mujacobian.rollout(
        model,
        state,
        np.zeros((3, model.nu)),
        forces=np.stack([forces] * 3),
        params=parameters,
    )
    weights = np.zeros_like(trajectory.states), np.zeros_like(trajectory.sensordata)
    weights[0][-1] = weights[1][-1] = 1
    expected = trajectory.gradient(*weights)
    made = jax.jit(jax.grad(last, (0, 1)))(parameters.values, forces)
    near(made[0], expected.params)
    near(made[1], expected.forces.sum(axis=0))
    with pytest.raises(ValueError, match="substeps must be an integer of at least 1"):
        bridge.step(model, state, controls, substeps=0)
    with pytest.raises(ValueError, match="forces must have 1 or 2 axes"):
        bridge.step(model, state, controls, forces=np.zeros((1, 1, model.nv)))
