"""Newton's method for rollouts: superlinear convergence, optima of the planner, errors."""

import mujoco
import numpy as np
import pytest

import mujacobian
from benchmarks.exact_planning import CART, sliding_tip, with_sensors
from mujacobian import control, optimize
from mujacobian.errors import ArgumentError, ArgumentTypeError, NotFiniteError

GRADIENT = 1e-9  # relative norm of the gradient at a solution
SUPERLINEAR = 1.3  # order of convergence, at least; inexact products make it less than 2


@pytest.fixture(scope="module")
def cart():
    """Return a cart-pole, a tilted first state, and the cost of upright rest at another place."""
    model = with_sensors(CART)
    q, v = (
        control.stack(*(control.sensor(model, f"{kind}_{joint}") for joint in "sh"))
        for kind in "qv"
    )
    terms = [
        control.Term("pose", q, target=(0.5, np.pi)),
        control.Term("still", v, control.L2(0.1), weight=0.1),
        control.Term("effort", control.controls(model), weight=0.1),
    ]
    return model, np.array([0, np.pi - 0.4, 0, 0]), control.Cost(model, terms)


def require_superlinear(found):
    """Require that the last step squares the error, almost."""
    assert found.status == "converged"
    sizes = found.norms / found.norms[0]
    assert sizes[-1] < GRADIENT
    assert np.log(sizes[-1]) < SUPERLINEAR * np.log(sizes[-2])


def test_cart_pole(cart):
    model, state, cost = cart
    controls = np.zeros((40, 1))
    before = mujacobian.fd_count()
    found = optimize.minimize(model, state, controls, cost, threads=1)
    require_superlinear(found)
    assert mujacobian.fd_count() == before
    assert not controls.any()
    again = optimize.minimize(model, state, controls, cost, threads=2)
    assert again.controls.tobytes() == found.controls.tobytes()
    times = model.opt.timestep * np.arange(40)
    trajectory = mujacobian.rollout(model, state, found.controls)
    assert trajectory.states.tobytes() == found.trajectory.states.tobytes()
    assert found.value == cost(trajectory.sensordata, found.controls, times).mean()
    assert found.value == found.values[-1] < found.values[0]
    assert np.linalg.norm(found.gradient) == found.norms[-1]
    assert "converged" in repr(found)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_sliding_contact(cone):
    problem = sliding_tip(cone)
    cost = problem.planner("auto").cost
    controls = np.vstack([problem.guess, problem.guess[-1:]])
    found = optimize.minimize(problem.model, problem.start, controls, cost, threads=1)
    require_superlinear(found)
    data = mujoco.MjData(problem.model)
    for state in found.trajectory.states[::10]:
        data.qpos[:] = state[: problem.model.nq]
        mujoco.mj_forward(problem.model, data)
        assert data.ncon


def test_the_optimum_is_that_of_the_planner(cart):
    """The planner holds its last control, so the cost must not depend on that of the last step."""
    model, state, cost = cart
    terms = list(cost.terms)
    end = 38.5 * model.opt.timestep
    terms[2] = control.Term(
        "effort", control.controls(model), weight=0.1, target=lambda t: np.where(t < end, 0, np.nan)
    )
    cost = control.Cost(model, terms)
    plan = control.ILQR(model, cost, 40, hessian="auto", tolerance=1e-14).solve(state)
    # the last control has no influence
    found = optimize.minimize(model, state, np.zeros((40, 1)), cost, threads=1)
    np.testing.assert_allclose(found.controls[:-1], plan.controls, rtol=0, atol=1e-7)
    assert found.value == pytest.approx(plan.cost, rel=1e-12)


def test_own_loss(cart):
    """The loss has terms of the last state, and of controls that are not quadratic."""
    model, state, _ = cart
    goal, weights = np.array([0.3, np.pi, 0, 0]), np.array([5, 5, 1, 1.0])

    def value(x, y, u):
        return (weights * (x[-1] - goal) ** 2).sum() / 2 + 0.01 * (u**4 + u**2).sum()

    def gradient(x, y, u):
        d_states = np.zeros_like(x)
        d_states[-1] = weights * (x[-1] - goal)
        return d_states, None, 0.04 * u**3 + 0.02 * u

    def product(x, y, u, moved):
        assert moved[1] is None
        d_states = np.zeros_like(x)
        d_states[-1] = weights * moved[0][-1]
        return d_states, None, (0.12 * u**2 + 0.02) * moved[2]

    loss = optimize.Loss(value, gradient, product)
    found = optimize.minimize(model, state, np.zeros((30, 1)), loss)
    require_superlinear(found)
    assert found.value == value(found.trajectory.states, None, found.controls)
    # the norm of the gradient cannot become much smaller
    again = optimize.minimize(model, state, found.controls, loss, tolerance=1e-15)
    assert again.status == "no improvement"
    np.testing.assert_allclose(again.controls, found.controls, rtol=0, atol=1e-10)


def test_limits_are_reported(cart):
    model, state, cost = cart
    assert optimize.minimize(model, state, np.zeros((40, 1)), cost, iterations=2).status == (
        "iterations"
    )
    zero = optimize.Loss(
        lambda x, y, u: 1.0, lambda x, y, u: (None, None, None), lambda x, y, u, moved: moved
    )
    flat = optimize.minimize(model, state, np.ones((5, 1)), zero)
    assert flat.status == "converged"
    assert (flat.controls == 1).all()


def test_steps_that_diverge_are_rejected(cart):
    """The loss has no minimum, so the steps grow until MuJoCo resets the simulation."""
    model, state, _ = cart
    linear = optimize.Loss(
        lambda x, y, u: -u.sum(),
        lambda x, y, u: (None, None, -np.ones_like(u)),
        lambda x, y, u, moved: (None, None, 0 * u),
    )
    found = optimize.minimize(model, state, np.zeros((5, 1)), linear, iterations=80)
    assert found.status != "converged"
    assert np.isfinite(found.trajectory.states).all()
    assert found.controls.min() > 1e3
    with pytest.raises(mujacobian.MujacobianError, match="diverges in step"):
        mujacobian.rollout(model, state, 1e3 * found.controls)


def test_bad_arguments(cart):
    model, state, cost = cart
    u = np.zeros((5, 1))
    with pytest.raises(ArgumentError, match=r"controls must have shape \(T, 1\), got \(5,\)"):
        optimize.minimize(model, state, u[:, 0], cost)
    with pytest.raises(ArgumentError, match="controls must be finite"):
        optimize.minimize(model, state, u + np.nan, cost)
    with pytest.raises(ArgumentError, match="state must have shape"):
        optimize.minimize(model, state[1:], u, cost)
    with pytest.raises(ArgumentError, match="one state, got a batch"):
        optimize.minimize(model, np.stack([state, state]), u, cost)
    with pytest.raises(ArgumentError, match="tolerance must be positive"):
        optimize.minimize(model, state, u, cost, tolerance=0)
    with pytest.raises(ArgumentError, match="iterations must be an integer"):
        optimize.minimize(model, state, u, cost, iterations=0)
    with pytest.raises(ArgumentTypeError, match=r"loss must be a control\.Cost"):
        optimize.minimize(model, state, u, lambda x: 0)
    with pytest.raises(ArgumentError, match="another model"):
        optimize.minimize(sliding_tip("elliptic").model, state, u.repeat(3, 1), cost)
    with pytest.raises(mujacobian.MujacobianError, match="diverges in step 0"):
        optimize.minimize(model, state, u + 1e12, cost)
    still = mujoco.MjModel.from_xml_string("<mujoco/>")
    with pytest.raises(ArgumentError, match="no actuators"):
        optimize.minimize(still, np.zeros(0), np.zeros((5, 0)), cost)
    own = control.UserResidual(1, lambda t, x, u: u, lambda t, x, u: (None, None))
    user = control.Cost(model, [control.Term("own", own)])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='term "own"'):
        optimize.minimize(model, state, u, user)


def test_bad_results_of_a_loss(cart):
    model, state, _ = cart
    u = np.zeros((5, 1))
    good = lambda x, y, u: (None, None, u)  # noqa: E731
    with pytest.raises(NotFiniteError, match="loss must be a number, got nan"):
        optimize.minimize(model, state, u, optimize.Loss(lambda x, y, u: np.nan, good, None))
    with pytest.raises(ArgumentTypeError, match="gradient of the loss must be a triple"):
        optimize.minimize(
            model, state, u, optimize.Loss(lambda x, y, u: 0.0, lambda x, y, u: u, None)
        )
    bad = optimize.Loss(lambda x, y, u: 0.0, lambda x, y, u: (None, None, u[1:]), None)
    with pytest.raises(ArgumentError, match=r"gradient of the loss by controls must have shape"):
        optimize.minimize(model, state, u, bad)
