"""Terms of single knots: terminal terms and weights per knot."""

import mujoco
import numpy as np
import pytest

from mujacobian import control
from tests.scenes.control_models import pendulum, slides

T = 20
# plans with the same problem in other words differ by rounding, amplified by the backward pass
SAME_PLAN = 1e-9
# error of differences of optimal controls, whose optima are known to about 1e-9
SLOPE = 1e-5


def problem(terms):
    """Return the model, the rows of positions and velocities, and a planner of these terms."""
    model = slides(limits="")
    p = control.stack(*(control.sensor(model, f"p{k}") for k in range(3)))
    cost = control.Cost(model, terms(p, control.controls(model)))
    return model, cost, control.ILQR(model, cost, T, tolerance=1e-12)


def last_only(times):
    """Return the target 0.3 at the last of T knots, and no target before."""
    return np.where(times[:, None] > 0.05 * (T - 1.5), 0.3, np.nan) * np.ones(3)


def start(model):
    return np.concatenate([[0.1, -0.2, 0.3], np.zeros(model.nv)])


def test_a_terminal_term_counts_once_at_the_last_knot():
    model, cost, planner = problem(
        lambda p, u: [
            control.Term("arrive", p, control.L2(0.1), 0.7, target=0.3, knots="last"),
            control.Term("effort", u, weight=1e-3),
        ]
    )
    _, _, duplicate = problem(
        lambda p, u: [
            control.Term("arrive", p, control.L2(0.1), 0.7 * T, target=last_only),
            control.Term("effort", u, weight=1e-3),
        ]
    )
    plan, other = (each.solve(start(model), iterations=300) for each in (planner, duplicate))
    assert np.allclose(plan.controls, other.controls, atol=SAME_PLAN)
    assert plan.cost == pytest.approx(other.cost, rel=1e-12)
    assert abs(plan.controls).max() > 0.1
    # the cost of the plan is the mean of the cost of its knots
    controls = np.concatenate([plan.controls, plan.controls[-1:]])
    every = cost(plan.sensordata, controls, plan.times)
    assert every.mean() == pytest.approx(plan.cost, rel=1e-12)
    assert every[-1] > T * 0.7 * plan.terms[-1, 0] * 0.99
    assert every[:-1] == pytest.approx(1e-3 * plan.terms[:-1, 1])


def test_factors_per_knot_are_those_of_an_array_and_of_a_function():
    factors = np.linspace(0, 2, T) ** 2
    plans = []
    for knots in (factors, lambda times: np.interp(times, 0.05 * np.arange(T), factors)):
        model, cost, planner = problem(
            lambda p, u, knots=knots: [
                control.Term("near", p - 0.3, weight=0.5, knots=knots),
                control.Term("effort", u, weight=1e-3),
            ]
        )
        plans.append(planner.solve(start(model), iterations=300))
        controls = np.concatenate([plans[-1].controls, plans[-1].controls[-1:]])
        expected = 0.5 * factors * plans[-1].terms[:, 0] + 1e-3 * plans[-1].terms[:, 1]
        assert np.allclose(cost(plans[-1].sensordata, controls, plans[-1].times), expected)
        assert plans[-1].cost == pytest.approx(expected.mean())
    assert np.allclose(plans[0].controls, plans[1].controls, atol=SAME_PLAN)


def test_the_expansion_has_the_factors():
    _, cost, _ = problem(
        lambda p, u: [
            control.Term("arrive", p - 0.3, weight=0.5, knots="last"),
            control.Term("middle", p - 0.1, weight=2.0, knots=[0, 3, 0]),
        ]
    )
    rng = np.random.default_rng(0)
    s, u, times = rng.normal(size=(3, 6)), np.zeros((3, 2)), np.arange(3.0)
    C, D = rng.normal(size=(3, 6, 6)), np.zeros((3, 6, 2))
    gradient, hessian = cost.expand(s, u, times, C, D)
    places = [0, 2, 4]
    assert not gradient[0].any()
    assert not hessian[0].any()
    for k, weight, target in ((1, 2.0 * 3, 0.1), (2, 0.5 * 3, 0.3)):
        R = C[k, places]
        assert np.allclose(gradient[k, :6], weight * R.T @ (s[k, places] - target))
        assert np.allclose(hessian[k, :6, :6], weight * R.T @ R)


def test_users_have_factors_too():
    model = slides()
    own = control.UserResidual(
        1,
        lambda t, x, u: x[:, :1],
        lambda t, x, u: (np.eye(1, 6)[None].repeat(len(t), 0), np.zeros((len(t), 1, 2))),
    )
    plans = []
    for residual in (own, control.sensor(model, "p0")):
        cost = control.Cost(
            model,
            [
                control.Term("arrive", residual, weight=2.0, target=0.3, knots="last"),
                control.Term("effort", control.controls(model), weight=1e-3),
            ],
        )
        plans.append(control.ILQR(model, cost, T).solve(start(model), iterations=50))
    assert np.allclose(plans[0].controls, plans[1].controls, atol=SAME_PLAN)
    assert plans[0].cost == pytest.approx(plans[1].cost, rel=1e-9)


def test_a_terminal_residual_may_be_infinite_before_the_end():
    model = slides()
    own = control.UserResidual(
        1,
        lambda t, x, u: np.where(t[:, None] < 0.05 * (T - 1.5), np.inf, x[:, :1] - 0.3),
        lambda t, x, u: (np.eye(1, 6)[None].repeat(len(t), 0), np.zeros((len(t), 1, 2))),
    )
    cost = control.Cost(
        model,
        [
            control.Term("arrive", own, weight=2.0, knots="last"),
            control.Term("effort", control.controls(model), weight=1e-3),
        ],
    )
    plan = control.ILQR(model, cost, T).solve(start(model), iterations=50)
    assert plan.status == "converged"
    assert plan.cost < 0.5 * plan.initial_cost
    assert np.isinf(plan.terms[:-1, 0]).all()


def test_a_run_counts_each_step_as_the_first_knot_of_a_plan():
    model, _ = pendulum()
    tip, effort = control.sensor(model, "tip"), control.controls(model)
    cost = control.Cost(
        model,
        [
            control.Term("tip", tip - [0, 0, 0.5], control.L2(0.2), knots=[3.0] + [1.0] * 19),
            control.Term("arrive", tip - [0, 0, 0.5], knots="last"),
            control.Term("ramp", tip, weight=0.1, knots=lambda times: 1 + times),
            control.Term("effort", effort, weight=0.01),
        ],
    )
    mpc = control.MPC(model, control.ILQR(model, cost, 20))
    result = mpc.run(mujoco.MjData(model), seconds=0.4, progress=False)
    weights = np.stack(
        [np.full(20, 3.0), np.zeros(20), 0.1 * (1 + result.times), np.full(20, 0.01)], axis=1
    )
    assert np.allclose(result.weighted, result.terms * weights)
    assert np.allclose(result.costs, result.weighted.sum(axis=1))
    assert result.terms[:, 1].all()


def test_sensitivities_by_weights_and_targets_are_those_of_terminal_terms():
    """The controls of plans with other weights and targets differ as predicted."""

    def solved(weight, target):
        model, _, planner = problem(
            lambda p, u: [
                control.Term("arrive", p, control.L2(0.3), weight, target, knots="last"),
                control.Term("effort", u, weight=0.02, knots=np.linspace(1, 2, T)),
            ]
        )
        return planner.solve(start(model), iterations=300)

    plan, h = solved(0.7, [0.3, 0.2, 0.1]), 1e-4
    by_weight = plan.sensitivity("weights").controls[:, :, 0]
    assert abs(by_weight).max() > 1e-2
    found = solved(0.7 + h, [0.3, 0.2, 0.1]).controls - solved(0.7 - h, [0.3, 0.2, 0.1]).controls
    assert np.allclose(found / (2 * h), by_weight, atol=SLOPE)
    by_target = plan.sensitivity("targets").controls[:, :, 1]
    assert abs(by_target).max() > 1e-2
    found = solved(0.7, [0.3, 0.2 + h, 0.1]).controls - solved(0.7, [0.3, 0.2 - h, 0.1]).controls
    assert np.allclose(found / (2 * h), by_target, atol=SLOPE)


def test_invalid_knots_raise():
    model = slides()
    u = control.controls(model)
    with pytest.raises(ValueError, match=r"weight must be one number.*use knots"):
        control.Term("a", u, weight=np.ones(20))
    with pytest.raises(ValueError, match='knots must be "all", "last"'):
        control.Term("a", u, knots="end")
    with pytest.raises(ValueError, match=r"must be at least 0, but number 1 is -1"):
        control.Term("a", u, knots=[1, -1])
    with pytest.raises(ValueError, match="must be at least 0, but number 0 is nan"):
        control.Term("a", u, knots=[np.nan])
    for bad in ([], 3.0, [[1.0]]):
        with pytest.raises(ValueError, match="factors of knots must have"):
            control.Term("a", u, knots=bad)
    cost = control.Cost(model, [control.Term("a", u, knots=[1, 2, 3])])
    with pytest.raises(ValueError, match=r'term "a".*must have shape \(4,\), got \(3,\)'):
        control.ILQR(model, cost, 4).solve(np.zeros(6))
    wrong = control.Cost(model, [control.Term("a", u, knots=lambda t: np.ones((len(t), 2)))])
    with pytest.raises(ValueError, match=r"must have shape \(4,\), got \(4, 2\)"):
        control.ILQR(model, wrong, 4).solve(np.zeros(6))
