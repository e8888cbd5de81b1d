"""Costs: values, derivatives, targets and errors."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import _core, control
from tests.scenes.control_models import quadratic_cost, random_state, slides, tumbler

NORMS = [
    control.Null(),
    control.Quadratic(),
    control.L2(0.3),
    control.L22(0.2, 2.0),
    control.L22(0.2, 3.5),
    control.Cosh(0.7),
    control.Power(2.0),
    control.Power(3.5),
    control.SmoothAbs(0.2),
    control.SmoothAbs2(0.2, 2.0),
    control.SmoothAbs2(0.3, 4.0),
    control.Rectify(0.1),
]
# error of extrapolated differences of smooth functions of order 1
TOLERANCE = 1e-8


def by_hand(norm, r):
    """Return the value by the formulas of the documentation."""
    p, q = norm.parameters
    c = (r * r).sum()
    return {
        "null": lambda: r.sum(),
        "quadratic": lambda: c / 2,
        "l2": lambda: np.sqrt(c + p * p) - p,
        "l22": lambda: (c ** (q / 2) + p**q) ** (1 / q) - p,
        "cosh": lambda: (p * p * (np.cosh(r / p) - 1)).sum(),
        "power": lambda: (abs(r) ** p).sum(),
        "smooth_abs": lambda: (np.sqrt(r * r + p * p) - p).sum(),
        "smooth_abs2": lambda: ((abs(r) ** q + p**q) ** (1 / q) - p).sum(),
        "rectify": lambda: (p * np.log1p(np.exp(r / p))).sum(),
    }[norm.kind]()


def evaluate(norm, r):
    """Return the value, gradient and Hessian of the core."""
    r = np.atleast_2d(r)
    value, bend = np.empty(1), np.empty(1)
    slope, curvature = np.empty(r.shape), np.empty(r.shape)
    _core.norm_into(norm.kind, *norm.parameters, r, value, slope, curvature, bend)
    return value[0], slope[0], np.diag(curvature[0]) + bend[0] * np.outer(r, r)


def differences(f, x, h=1e-3):
    """Return derivatives of f, extrapolated from central differences."""

    def central(step):
        return np.stack(
            [
                (np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2 * step)
                for e in np.eye(len(x)) * step
            ],
            axis=-1,
        )

    a, b, c = central(h), central(h / 2), central(h / 4)
    once, twice = (4 * b - a) / 3, (4 * c - b) / 3
    return (16 * twice - once) / 15


def sensing(model, data, state, controls):
    """Return the function of (dx, du) to sensordata and controls around a state; it uses data."""
    nv, na = model.nv, model.na

    def sense(z):
        data.qpos[:], data.qvel[:], data.act[:] = np.split(state, [model.nq, model.nq + nv])
        mujoco.mj_integratePos(model, data.qpos, z[:nv], 1.0)
        data.qvel += z[nv : 2 * nv]
        data.act += z[2 * nv : 2 * nv + na]
        data.ctrl[:] = controls + z[2 * nv + na :]
        mujoco.mj_forward(model, data)
        return data.sensordata.copy(), data.ctrl.copy()

    return sense


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_norms_are_their_formulas_and_have_their_derivatives(norm):
    rng = np.random.default_rng(0)
    for r in rng.uniform(-1, 1, (5, 4)):
        value, gradient, hessian = evaluate(norm, r)
        assert value == pytest.approx(by_hand(norm, r), abs=1e-14)
        assert np.allclose(gradient, differences(lambda x: evaluate(norm, x)[0], r), atol=TOLERANCE)
        assert np.allclose(hessian, differences(lambda x: evaluate(norm, x)[1], r), atol=TOLERANCE)
        assert gradient.any()


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_norms_are_finite_at_zero_and_far_away(norm):
    for r in (np.zeros(3), np.array([1e3, -1e3, 0.0])):
        if isinstance(norm, control.Cosh):
            r = r / 10
        value, gradient, hessian = evaluate(norm, r)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
        assert np.isfinite(hessian).all()
    assert evaluate(control.Cosh(1.0), np.array([1e-9]))[0] == pytest.approx(5e-19, rel=1e-12)
    tiny = np.array([1e-155, 0.0])  # its square is not 0, but the inverse of the square is infinite
    assert np.isfinite(evaluate(control.L22(0.2, 3.5), tiny)[2]).all()


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_gradient_of_a_cost_is_that_of_the_simulated_sensors(norm):
    """The model has a free joint, contacts and activations."""
    model, _ = tumbler()
    rows = control.stack(
        control.sensor(model, "tip") + 0.2,
        control.sensor(model, "turn") * [1, 2, 3, 4],
        np.array([[1, 2, 0.5], [0, 1, -1]]) @ control.sensor(model, "drift"),
        control.controls(model) - 0.4,
    )
    cost = control.Cost(
        model, [control.Term("all", rows, norm, 0.7), control.Term("u", control.controls(model))]
    )
    state, u = random_state(model, 1), np.array([0.3, -0.2])
    data = mujoco.MjData(model)
    sense = sensing(model, data, state, u)

    def value(z):
        s, c = sense(z)
        return cost(s[None], c[None], [0.0])[0]

    nv, na = model.nv, model.na
    zero = np.zeros(2 * nv + na + model.nu)
    s, c = sense(zero)
    lin = mujacobian.linearize(model, data)
    gradient, hessian = cost.expand(s[None], c[None], [0.0], lin.C[None], lin.D[None])
    assert np.allclose(gradient[0], differences(value, zero), atol=TOLERANCE)

    # Gauss-Newton: J^T H J with the Jacobian J of the rows and the Hessian H of the norm
    jacobian = rows.matrix @ np.block([[lin.C, lin.D], [np.zeros((2, 2 * nv + na)), np.eye(2)]])
    r = rows.matrix @ np.concatenate([s, c]) + rows.constant
    expected = 0.7 * jacobian.T @ evaluate(norm, r)[2] @ jacobian
    expected[-2:, -2:] += np.eye(2)
    assert np.allclose(hessian[0], expected, atol=1e-12 * abs(expected).max())


def test_rows_are_affine_expressions():
    model = slides()
    p, v, u = control.sensor(model, "p0"), control.sensor(model, "v1"), control.controls(model)
    s, c = np.arange(1.0, 7.0), np.array([10.0, 20.0])
    both = np.concatenate([s, c])
    cases = [
        (2 * p - 1, 2 * s[:1] - 1),
        (1 - p / 4, 1 - s[:1] / 4),
        (p + v + [1, 2, 3], s[0] + s[3] + np.array([1, 2, 3])),
        (u[::-1] * np.array([1, -1]), c[::-1] * [1, -1]),
        (np.array([3, 4]) * u - u, np.array([2, 3]) * c),
        (np.array([[1, 2]]) @ u, np.array([50.0])),
        (control.stack(p, u[[1, 0]], -v), np.array([1, 20, 10, -4.0])),
        (u + p, c + 1),
        (u[-1], c[-1:]),
    ]
    for rows, expected in cases:
        assert np.allclose(rows.matrix @ both + rows.constant, expected)


def test_rows_that_do_not_fit_raise():
    model = slides()
    u, p = control.controls(model), control.sensor(model, "p0")
    with pytest.raises(ValueError, match="2 rows and 3 numbers"):
        u + np.ones(3)
    with pytest.raises(ValueError, match="rows of different models"):
        p + control.sensor(slides(2), "p0")
    with pytest.raises(ValueError, match="rows of different models cannot be stacked"):
        control.stack(p, control.sensor(slides(2), "p0"))
    with pytest.raises(ValueError, match=r"shape \(n, 2\)"):
        np.ones((2, 3)) @ u
    with pytest.raises(ValueError, match=r'no sensor "p9": did you mean p'):
        control.sensor(model, "p9")
    with pytest.raises(ValueError, match="must be finite"):
        u * np.nan


def test_targets_depend_on_time_and_rows_can_be_switched_off():
    model = slides()
    u = control.controls(model)

    def wave(times):
        target = np.stack([times, -times], axis=1)
        target[times > 1, 1] = np.nan
        return target

    times, controls, sensors = np.array([0.5, 2.0]), np.array([[1.0, 1], [1, 1]]), np.zeros((2, 6))
    for norm in (control.Quadratic(), control.L2(0.1), control.Rectify(0.1), control.Cosh(1.0)):
        cost = control.Cost(model, [control.Term("wave", u, norm, target=wave)])
        values = cost(sensors, controls, times)
        assert values[0] == pytest.approx(by_hand(norm, np.array([0.5, 1.5])))
        assert values[1] == pytest.approx(by_hand(norm, np.array([-1.0])))
        gradient, hessian = cost.expand(
            sensors, controls, times, np.zeros((2, 6, 6)), np.zeros((2, 6, 2))
        )
        assert gradient[0, -1] != 0
        assert gradient[1, -1] == 0
        assert not hessian[1, -1].any()


def test_one_target_is_for_all_rows():
    model = slides()
    u, times = control.controls(model), np.array([0.5, 2.0])
    sensors, controls = np.zeros((2, 6)), np.array([[1.0, 2], [3, 4]])
    for target, wanted in ((3.0, [2.5, 0.5]), (lambda t: 2 * t, [0.5, 0.5])):
        cost = control.Cost(model, [control.Term("u", u, target=target)])
        assert np.allclose(cost(sensors, controls, times), wanted)


def test_user_residuals_are_as_good_as_sensors():
    model, _ = tumbler()
    nx, nu = 2 * model.nv + model.na, model.nu
    norm = control.L22(0.3, 3.0)
    seen = []

    def value(times, states, controls):
        seen.append(len(times))
        return np.stack([states[:, 7], controls[:, 0] ** 2 + times], axis=1)

    def jacobian(times, states, controls):
        rx, ru = np.zeros((len(times), 2, nx)), np.zeros((len(times), 2, nu))
        rx[:, 0, 6] = 1  # the dof of the arm follows those of the free joint
        ru[:, 1, 0] = 2 * controls[:, 0]
        return rx, ru

    residual = control.UserResidual(2, value, jacobian, check=False)
    own = control.Term("own", residual, norm, 0.4, target=[0.1, 0])
    rng = np.random.default_rng(3)
    states = np.stack([random_state(model, k) for k in range(4)])
    controls, times = rng.uniform(-1, 1, (4, 2)), np.arange(4.0)
    sensors = np.zeros((4, model.nsensordata))
    sensors[:, -1] = states[:, 7]
    cost = control.Cost(model, [own])
    C = np.zeros((4, model.nsensordata, nx))
    C[:, -1, 6] = 1
    r = np.stack([states[:, 7] - 0.1, controls[:, 0] ** 2 + times], axis=1)
    assert np.allclose(
        cost(sensors, controls, times, states), [0.4 * by_hand(norm, row) for row in r]
    )
    gradient, hessian = cost.expand(
        sensors, controls, times, C, np.zeros((4, len(sensors[0]), nu)), states
    )
    for k in range(4):
        _, slope, curvature = evaluate(norm, r[k])
        J = np.zeros((2, nx + nu))
        J[0, 6], J[1, nx] = 1, 2 * controls[k, 0]
        assert np.allclose(gradient[k], 0.4 * J.T @ slope)
        assert np.allclose(hessian[k], 0.4 * J.T @ curvature @ J)
    assert set(seen) == {4}
    with pytest.raises(ValueError, match="states are needed"):
        cost(sensors, controls, times)


def test_invalid_costs_raise():
    model = slides()
    u = control.controls(model)
    with pytest.raises(ValueError, match="at least one term"):
        control.Cost(model, [])
    with pytest.raises(TypeError, match=r"terms must be control\.Term, got Rows"):
        control.Cost(model, [u])
    with pytest.raises(ValueError, match="names of terms must differ"):
        control.Cost(model, [control.Term("a", u), control.Term("a", u)])
    with pytest.raises(ValueError, match='term "a": weight must be at least 0'):
        control.Term("a", u, weight=-1)
    with pytest.raises(TypeError, match="residual must be Rows or UserResidual"):
        control.Term("a", np.zeros(3))
    with pytest.raises(TypeError, match="norm must be Norm"):
        control.Term("a", u, norm=2)
    with pytest.raises(ValueError, match=r"target must have shape \(2,\)"):
        control.Term("a", u, target=[1, 2, 3])
    with pytest.raises(ValueError, match=r"target must have shape \(1, 2\), got \(1, 3\)"):
        control.Cost(model, [control.Term("a", u, target=lambda t: np.zeros((len(t), 3)))])(
            np.zeros((1, 6)), np.zeros((1, 2)), [0.0]
        )
    with pytest.raises(ValueError, match="rows of another model"):
        control.Cost(slides(2), [control.Term("a", u)])
    with pytest.raises(ValueError, match="above 0"):
        control.L2(0.0)
    with pytest.raises(ValueError, match="use SmoothAbs2"):
        control.Power(1.0)
    cost = quadratic_cost(model)
    cost.weights[1] = -1
    with pytest.raises(ValueError, match='weight of term "velocity"'):
        cost.knot_weights(np.zeros(1))
