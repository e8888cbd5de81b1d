"""Products and smooth functions of rows: values, derivatives, curvature and errors."""

import pickle

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import control
from tests.scenes.control_models import pendulum, random_state, slides, tumbler
from tests.test_control_cost import TOLERANCE, differences, sensing

# Second derivatives by extrapolated differences of exact gradients of order 10
CURVATURE = 1e-7
FUNCTIONS = {
    "product": lambda a, b: a * b,
    "ratio": lambda a, b: a / (2 + b * b),
    "inverse": lambda a, b: 1 / (a + 3),
    "square": lambda a, b: np.square(a) - b**2,
    "cube": lambda a, b: a**3 + b,
    "root": lambda a, b: np.sqrt(a * a + b * b + 0.1),
    "fraction": lambda a, b: (a + 3) ** 1.5,
    "sine": lambda a, b: np.sin(2 * a) * np.cos(b - 0.3),
    "exponential": lambda a, b: np.exp(-0.5 * a) + np.log(b + 3),
    "saturation": lambda a, b: np.tanh(a) + np.arctan(3 * b),
    "nested": lambda a, b: np.exp(np.sin(a * b) * np.tanh(a + b)) * a,
    "array": lambda a, b: np.array([0.5]) * (a * b) + np.array([2.0]) / (b + 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_rows_are_those_of_numpy(name):
    model = slides()
    a, b, u = control.sensor(model, "p0"), control.sensor(model, "v1"), control.controls(model)
    rows = FUNCTIONS[name](a, b)
    cost = control.Cost(model, [control.Term("f", rows, control.Null())])
    rng = np.random.default_rng(0)
    s, c = rng.uniform(-1, 1, (5, 6)), rng.uniform(-1, 1, (5, 2))
    expected = FUNCTIONS[name](s[:, :1], s[:, 3:4])[:, 0]
    assert np.allclose(cost(s, c, np.zeros(5)), expected, rtol=1e-14)
    both = FUNCTIONS[name](u[0] + a, u[1] * b)
    cost = control.Cost(model, [control.Term("f", both, control.Null())])
    expected = FUNCTIONS[name](c[:, :1] + s[:, :1], c[:, 1:] * s[:, 3:4])[:, 0]
    assert np.allclose(cost(s, c, np.zeros(5)), expected, rtol=1e-14)


@pytest.mark.parametrize("norm", [control.Quadratic(), control.L2(0.3), control.Rectify(0.2)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_derivatives_by_sensors_and_controls(name, norm):
    model = slides()
    s, u = control.sensor(model, "p0"), control.controls(model)
    rows = control.stack(FUNCTIONS[name](s, u[0]), FUNCTIONS[name](u[1] * s, s - u[0]), s + 1)
    cost = control.Cost(model, [control.Term("f", rows, norm, 0.7)])
    rng = np.random.default_rng(1)
    y = rng.uniform(-0.8, 0.8, 8)
    C = np.eye(6)[None]  # with C = 1 and D = 0, z is (sensors, controls)
    D = np.zeros((1, 6, 2))

    def gradient(y):
        return cost.expand(y[None, :6], y[None, 6:], [0.0], C, D)[0][0]

    slope, hessian = (x[0] for x in cost.expand(y[None, :6], y[None, 6:], [0.0], C, D))
    value = differences(lambda y: cost(y[None, :6], y[None, 6:], [0.0])[0], y)
    assert np.allclose(slope, value, atol=TOLERANCE * max(1, abs(value).max()))
    assert slope[0] != 0
    assert slope[6:].any()
    # the Gauss-Newton Hessian plus the curvature of the functions is the second derivative
    arguments = y[None, :6], y[None, 6:], cost.offsets(np.zeros(1))
    curvature = cost.curve_rows(*arguments, cost.core_weights(np.array([[0.7]])))[0]
    expected = differences(gradient, y)
    assert np.allclose(hessian + curvature, expected, atol=CURVATURE * abs(expected).max())
    assert abs(curvature).max() > 1e-3


def test_gradient_through_a_simulated_state():
    model, _ = tumbler()
    tip, drift = control.sensor(model, "tip"), control.sensor(model, "drift")
    u = control.controls(model)
    rows = control.stack(
        np.ones(3) @ (tip * drift), np.exp(tip[2]) * u[0], np.sqrt(np.square(drift[0]) + 0.1)
    )
    cost = control.Cost(model, [control.Term("all", rows, control.L2(0.2))])
    state, c = random_state(model, 1), np.array([0.3, -0.2])
    data = mujoco.MjData(model)
    sense = sensing(model, data, state, c)

    def value(z):
        s, v = sense(z)
        return cost(s[None], v[None], [0.0])[0]

    zero = np.zeros(2 * model.nv + model.na + model.nu)
    s, v = sense(zero)
    lin = mujacobian.linearize(model, data)
    gradient, _ = cost.expand(s[None], v[None], [0.0], lin.C[None], lin.D[None])
    assert np.allclose(gradient[0], differences(value, zero), atol=TOLERANCE)
    assert abs(gradient).max() > 0.1


def nonlinear_pendulum():
    """Return a pendulum whose cost is made of products and functions, and its target cost."""
    model, _ = pendulum()
    tip, speed = control.sensor(model, "tip"), control.sensor(model, "speed")
    u = control.controls(model)
    terms = [
        control.Term("height", np.exp(-2 * tip[2]) * (1 + 0.1 * np.square(speed)), weight=0.3),
        control.Term("power", u * speed, weight=0.2),
        control.Term("angle", np.sin(3 * tip[0]) - 0.2, control.L2(0.2)),
        control.Term("effort", u, weight=0.05),
    ]
    return model, control.Cost(model, terms)


def test_the_exact_hessian_contains_the_curvature_of_functions():
    """Newton's method converges quadratically, and Gauss-Newton does not."""
    model, cost = nonlinear_pendulum()
    planner = control.ILQR(model, cost, 15, hessian="exact", tolerance=1e-14, mu=1e-6)
    plan = planner.solve(np.array([0.4, 0.0]), iterations=100)
    assert plan.status == "converged"
    assert not plan.approximated
    # near the solution: the error after one exact step is about the square of the error before it
    best = plan.controls
    errors = {}
    for hessian in ("gauss-newton", "exact"):
        near = control.ILQR(
            model, cost, 15, hessian=hessian, tolerance=0, regularization="none"
        ).solve(np.array([0.4, 0.0]), controls=best + 1e-4, iterations=1)
        errors[hessian] = abs(near.controls - best).max()
    assert errors["exact"] < 1e-6
    assert errors["gauss-newton"] > 10 * errors["exact"]


def test_sensitivities_contain_the_curvature_of_functions():
    model, cost = nonlinear_pendulum()
    planner = control.ILQR(model, cost, 15, hessian="auto", tolerance=1e-13)
    x, h = np.array([0.4, 0.0]), 1e-5
    plan = planner.solve(x, iterations=300)

    def controls(change):
        return planner.solve(x + change, controls=plan.controls, iterations=300).controls

    by_state = plan.sensitivity("state").controls
    for k, e in enumerate(np.eye(2) * h):
        assert np.allclose((controls(e) - controls(-e)) / (2 * h), by_state[:, :, k], atol=1e-4)
    assert abs(by_state).max() > 0.1


def test_where_functions_are_not_smooth_the_cost_is_not_finite():
    model = slides()
    p = control.sensor(model, "p0")
    for rows in (np.sqrt(p), np.log(p), 1 / p, p**-2, p**2.5):
        cost = control.Cost(model, [control.Term("f", rows)])
        assert not np.isfinite(cost(np.zeros((1, 6)), np.zeros((1, 2)), [0.0])[0])
        effort = control.Term("u", control.controls(model))
        planner = control.ILQR(model, control.Cost(model, [control.Term("f", rows), effort]), 5)
        with pytest.raises(control.DivergedError, match='term "f"'):
            planner.solve(np.zeros(6))
    assert control.Cost(model, [control.Term("f", p**3)])(
        np.zeros((1, 6)), np.zeros((1, 2)), [0.0]
    ) == [0.0]


def test_rows_that_cannot_be_combined_raise():
    model = slides()
    u, p = control.controls(model), control.sensor(model, "p0")
    with pytest.raises(TypeError, match=r"np\.floor cannot be applied to rows.*np\.sin"):
        np.floor(u)
    with pytest.raises(TypeError, match=r"np\.matmul cannot be applied"):
        u @ np.eye(2)
    with pytest.raises(ValueError, match="2 rows and 3 numbers"):
        u * control.stack(p, p, p)
    with pytest.raises(ValueError, match="rows of different models cannot be multiplied"):
        p * control.sensor(slides(2), "p0")
    for exponent in (0, [1, 2]):
        with pytest.raises(ValueError, match="exponent of rows must be a number, not 0"):
            p**exponent
    with pytest.raises(ValueError, match="exponent of rows must be finite"):
        p**np.inf
    with pytest.raises(TypeError, match="exponent of rows must be a number, got rows"):
        p**p
    with pytest.raises(ValueError, match='term "a" has rows of another model'):
        control.Cost(slides(2), [control.Term("a", np.sin(p))])
    with pytest.raises(ValueError, match="only affine rows"):
        assert (u * p).matrix is None
    assert (u**1).matrix.shape == (2, 8)


def test_common_parts_are_evaluated_once():
    model = slides()
    wave = np.sin(control.sensor(model, "p0"))
    for _ in range(40):  # without sharing, this would have 2^40 nodes
        wave = wave * wave + wave
    cost = control.Cost(model, [control.Term("f", wave), control.Term("g", 2 * wave)])
    assert len(cost._core_arguments["nodes"]) == 41
    assert cost.reads[:, 0].all()
    assert not cost.reads[:, 1:].any()


def test_costs_can_be_pickled():
    model, cost = nonlinear_pendulum()
    cost.weights[1] = 0.4
    copy = pickle.loads(pickle.dumps(cost))
    plans = [control.ILQR(model, each, 15).solve([0.4, 0.0]) for each in (cost, copy)]
    assert repr(copy) == repr(cost)
    assert np.array_equal(plans[0].controls, plans[1].controls)
    copy.weights[1] = 0.5
    assert cost.weights[1] == 0.4
