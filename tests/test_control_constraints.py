"""Constraints of plans: the augmented Lagrangian, its convergence, and three problems."""

import copy
import pickle

import mujoco
import numpy as np
import pytest

import mujacobian
from benchmarks import planners
from mujacobian import _core, control, optimize
from mujacobian.control import tasks
from mujacobian.control.lagrangian import (
    FARTHEST,
    GROWTH,
    LARGEST_GROWTH,
    PATIENCE,
    Lagrangian,
)
from mujacobian.control.layer import HostPlan
from tests.scenes.control_models import pendulum, quadratic_cost, slides

T = 20
# violations of plans that the issue asks for, which is also the default tolerance
VIOLATION = 1e-4
# controls of linear problems: the violation that is left, times the stiffness of the problem
SAME_PLAN = 1e-5
# central differences with a step of 1e-4 of plans that are known to about 1e-9
SLOPE = 1e-4


def problem(constraints, **options):
    """Return springs with motors, their cost with these constraints, and a planner."""
    model = slides()
    p = control.stack(*(control.sensor(model, f"p{k}") for k in range(3)))
    v = control.stack(*(control.sensor(model, f"v{k}") for k in range(3)))
    terms = quadratic_cost(model).terms
    cost = control.Cost(model, terms, constraints(p, v, control.controls(model)))
    return model, cost, control.ILQR(model, cost, T, **{"tolerance": 1e-12, **options})


def swinging_pair():
    """Return two links with motors, an accelerometer at the tip, and their cost."""
    model = mujoco.MjModel.from_xml_string(
        """
        <mujoco>
          <option timestep=".02" integrator="implicitfast"/>
          <default><geom type="capsule" size=".03" contype="0" conaffinity="0"/></default>
          <worldbody>
            <body>
              <joint name="j0" axis="0 1 0" damping=".2"/>
              <geom fromto="0 0 0 0 0 -.4" mass="1"/>
              <body pos="0 0 -.4">
                <joint name="j1" axis="0 1 0" damping=".1"/>
                <geom fromto="0 0 0 0 0 -.3" mass=".5"/>
                <site name="tip" pos="0 0 -.3"/>
              </body>
            </body>
          </worldbody>
          <actuator><motor joint="j0"/><motor joint="j1"/></actuator>
          <sensor>
            <accelerometer name="acceleration" site="tip"/>
            <framepos name="tip" objtype="site" objname="tip"/>
            <framelinvel name="speed" objtype="site" objname="tip"/>
          </sensor>
        </mujoco>
        """
    )
    terms = [
        control.Term("reach", control.sensor(model, "tip") - [0.5, 0, -0.3]),
        control.Term("still", control.sensor(model, "speed"), weight=0.05),
        control.Term("effort", control.controls(model), weight=0.02),
    ]
    return model, control.Cost(model, terms)


def start():
    return np.array([0.1, -0.2, 0.3, 0, 0, 0])


def simulated_sensors(model):
    """Return the sensors of the linear model as s + S u: `(T, ns)` and `(T, ns, controls)`."""

    def simulate(u):
        data, rows = mujoco.MjData(model), []
        data.qpos[:], data.qvel[:] = start()[:3], start()[3:]
        for knot in range(T):
            data.ctrl[:] = u.reshape(T - 1, -1)[min(knot, T - 2)]
            mujoco.mj_step(model, data)
            rows.append(data.sensordata.copy())
        return np.array(rows)

    units = np.eye((T - 1) * model.nu)
    zero = simulate(0 * units[0])
    return zero, np.stack([simulate(unit) - zero for unit in units], axis=-1)


@pytest.mark.parametrize("hessian", ["gauss-newton", "exact", "auto"])
def test_a_terminal_equality_has_the_solution_of_its_linear_conditions(hessian):
    model, _, planner = problem(
        lambda p, v, u: [
            control.Constraint("arrive", p[:2], lower=[0.2, -0.1], upper=[0.2, -0.1], knots="last"),
            control.Constraint("stop", v[0], lower=0, upper=0, knots="last"),
        ],
        hessian=hessian,
    )
    plan = planner.solve(start(), iterations=200)
    assert plan.status == "converged"
    assert max(plan.violations.values()) < VIOLATION
    # the same problem by its optimality conditions
    s0, S = simulated_sensors(model)
    count = S.shape[2]
    p, v = S[:, 0::2], S[:, 1::2]
    P, V = p.reshape(-1, count), v.reshape(-1, count)
    hold = np.zeros((T, T - 1))
    hold[np.arange(T), np.minimum(np.arange(T), T - 2)] = 1
    U = np.kron(hold, np.eye(model.nu))
    H = (P.T @ P + 0.1 * V.T @ V + 0.05 * U.T @ U) / T
    h = (P.T @ (s0[:, 0::2] - 0.3).ravel() + 0.1 * V.T @ s0[:, 1::2].ravel()) / T
    G = np.stack([S[-1, 0], S[-1, 2], S[-1, 1]])
    b = np.array([0.2, -0.1, 0]) - s0[-1, [0, 2, 1]]
    matrix = np.block([[H, G.T], [G, np.zeros((3, 3))]])
    solution = np.linalg.solve(matrix, np.concatenate([-h, b]))
    assert np.allclose(plan.controls.ravel(), solution[:count], atol=SAME_PLAN)
    made = [*plan.multipliers["arrive"][-1], *plan.multipliers["stop"][-1]]
    assert np.allclose(made, solution[count:], atol=SAME_PLAN)
    assert abs(solution[count:]).min() > 1e-3
    assert not plan.multipliers["arrive"][:-1].any()


def test_inequalities_satisfy_their_conditions():
    limit = 0.12
    _, cost, planner = problem(
        lambda p, v, u: [control.Constraint("slow", v[:2], lower=-limit, upper=limit)]
    )
    free = control.ILQR(planner.model, control.Cost(planner.model, cost.terms), T).solve(start())
    speed = free.sensordata[:, [1, 3]]
    assert speed.max() > limit + 0.02
    plan = planner.solve(start(), iterations=200)
    assert plan.status == "converged"
    speed, multipliers = plan.sensordata[:, [1, 3]], plan.multipliers["slow"]
    assert plan.violations["slow"] == pytest.approx(max(abs(speed).max() - limit, 0), abs=1e-15)
    assert plan.violations["slow"] < VIOLATION
    assert (abs(speed) > limit - VIOLATION)[multipliers != 0].all()
    assert (multipliers * speed >= 0).all()
    assert (multipliers != 0).any()
    assert plan.cost > free.cost
    # the cost of the plan is that of its knots, without the constraints
    controls = np.concatenate([plan.controls, plan.controls[-1:]])
    assert cost(plan.sensordata, controls, plan.times).mean() == pytest.approx(plan.cost, rel=1e-12)


def test_multipliers_are_derivatives_of_the_cost_by_the_bounds():
    step, costs = 1e-4, []
    for bound in (0.2 - step, 0.2, 0.2 + step):
        _, _, planner = problem(
            lambda p, v, u, bound=bound: [
                control.Constraint("top", p[0], upper=bound, tolerance=1e-9, knots="last")
            ]
        )
        plan = planner.solve(start())
        costs.append(plan.cost)
        if bound == 0.2:
            multiplier = plan.multipliers["top"][-1, 0]
    assert multiplier > 1e-3
    assert (costs[2] - costs[0]) / (2 * step) == pytest.approx(-multiplier, rel=SLOPE)


def test_plans_do_not_depend_on_threads_or_on_the_way_they_begin():
    def constraints(p, v, u):
        return [control.Constraint("slow", v[0], upper=0.1), control.Constraint("u", u, upper=1)]

    made = []
    for threads in (1, 3):
        _, cost, planner = problem(constraints, threads=threads)
        made.append(planner.solve(start()))
    assert np.array_equal(made[0].controls, made[1].controls)
    assert made[0].status == "converged"
    # from states with gaps, and from a cost that was pickled
    again = pickle.loads(pickle.dumps(cost))
    planner = control.ILQR(planner.model, again, T, tolerance=1e-12)
    states = np.linspace(start(), np.zeros(6), T)
    gaps = planner.solve(start(), states=states)
    assert gaps.status == "converged"
    assert np.allclose(gaps.controls, made[0].controls, atol=1e-3)
    assert made[0].controls.max() == pytest.approx(1, abs=VIOLATION)
    kept = pickle.loads(pickle.dumps(gaps))
    assert np.array_equal(kept.multipliers["u"], gaps.multipliers["u"])
    assert kept.violations == gaps.violations


def test_bounds_of_controls_and_functions_of_rows_can_be_combined():
    """The power of a motor is a product of rows, and the motor has bounds as well."""
    _, _, planner = problem(
        lambda p, v, u: [control.Constraint("power", u[0] * v[0], lower=-0.02, upper=0.02)],
        lower=[-0.5, -3],
        upper=[0.5, 3],
        hessian="auto",
    )
    plan = planner.solve(start())
    assert plan.status == "converged"
    power = np.append(plan.controls[:, 0], plan.controls[-1, 0]) * plan.sensordata[:, 1]
    assert abs(power).max() == pytest.approx(0.02, abs=VIOLATION)
    assert abs(plan.controls[:, 0]).max() == 0.5


def test_constraints_hold_only_at_their_knots_and_between_bounds_of_their_times():
    def later(times):
        return times >= 0.5

    def moving(times):
        return 0.1 + 0.2 * times

    def constraints(p, v, u):
        place = np.zeros(T)
        place[5] = 1
        return [
            control.Constraint("later", p[0], upper=moving, knots=later),
            control.Constraint("once", p[1], lower=-0.1, upper=-0.1, knots=place),
        ]

    _, _, planner = problem(constraints)
    plan = planner.solve(start())
    assert plan.status == "converged"
    p, times = plan.sensordata[:, 0], plan.times
    assert (p[times >= 0.5] < moving(times[times >= 0.5]) + VIOLATION).all()
    assert not plan.multipliers["later"][times < 0.5].any()
    assert plan.sensordata[5, 2] == pytest.approx(-0.1, abs=VIOLATION)
    assert np.flatnonzero(plan.multipliers["once"]).tolist() == [5]


def test_infeasible_problems_end_with_a_status():
    _, _, planner = problem(
        lambda p, v, u: [
            control.Constraint("left", p[0], upper=-0.1, knots="last"),
            control.Constraint("right", p[0], lower=0.1, knots="last"),
        ]
    )
    plan = planner.solve(start(), iterations=1000)
    assert plan.status.startswith('infeasible: constraint "')
    assert len(plan.history.cost) < 500
    assert max(plan.violations.values()) >= 0.1
    assert np.isfinite(plan.multipliers["left"]).all()
    # a limit of iterations comes first
    assert planner.solve(start(), iterations=3).status == "iterations"


def test_a_plan_that_violates_a_constraint_has_not_converged():
    _, _, planner = problem(lambda p, v, u: [control.Constraint("slow", v[0], upper=0.05)])
    plan = None
    for _ in range(3):
        plan = planner.improve(start(), plan)
        assert plan.violations["slow"] < VIOLATION or plan.status != "converged"
    for _ in range(200):
        plan = planner.improve(start(), plan)
    assert plan.violations["slow"] < VIOLATION


def test_rows_that_are_not_finite_are_named():
    _, _, planner = problem(lambda p, v, u: [control.Constraint("root", np.sqrt(p[1]), upper=1)])
    with pytest.raises(control.DivergedError, match='at knot 0 of 20 the constraint "root" is nan'):
        planner.solve(start())


def lagrangian(*constraints):
    """Return a Lagrangian of constraints on the position p0 at knots 0, 1, 2, 3 s."""
    model = slides()
    terms = quadratic_cost(model).terms
    p = control.sensor(model, "p0")
    cost = control.Cost(model, terms, [control.Constraint("c", p, **each) for each in constraints])
    return Lagrangian(cost, np.arange(4.0))


def test_multipliers_follow_their_formula():
    L = lagrangian({"lower": -1, "upper": 1, "tolerance": 0.1})
    L.penalties[:] = 2
    L.multipliers[:, 0] = [3, 3, -3, 0]
    # y = g + 1.5: 3, 0.5; y = g - 1.5: -2.5; y = g: 1.1
    residuals = L.residuals(np.array([[1.5], [-1.0], [-1.0], [1.1]]))
    assert residuals.multipliers[:, 0] == pytest.approx([4, 0, -3, 0.2])
    assert residuals.violations == pytest.approx([0.5])
    assert residuals.optimality == pytest.approx([1.5])
    L.update(residuals)
    assert L.multipliers[:, 0] == pytest.approx([4, 0, -3, 0.2])
    # penalties grow if a residual is above its tolerance and has not decreased enough
    for before, now, has_converged, factor in (
        (1.0, 0.05, True, 1),
        (1.0, 0.2, True, 1),
        (1.0, 0.5, True, GROWTH),
        (1.0, 0.5, False, 1),
        (1.0, 0.95, False, GROWTH),
    ):
        L.penalties[:] = 2
        L.raise_penalties(np.array([before]), np.array([now]), has_converged=has_converged)
        assert L.penalties == pytest.approx([2 * factor])
    # multipliers are limited
    L.penalties[:] = 2
    L.update(L.residuals(np.full((4, 1), 1e9)))
    assert L.multipliers == pytest.approx(2 * 0.1 * FARTHEST)


def test_a_plan_is_given_up_after_rounds_with_the_largest_penalty():
    L = lagrangian({"upper": 1, "tolerance": 0.1})
    L.penalties[:] = 2
    residual, rounds = np.array([0.5]), 0
    while not L.hopeless(residual):
        L.raise_penalties(residual, residual, has_converged=True)
        rounds += 1
    assert L.penalties == pytest.approx(2 * LARGEST_GROWTH)
    assert rounds == np.ceil(np.log(LARGEST_GROWTH) / np.log(GROWTH)) + PATIENCE
    # progress is a reason to continue
    L.raise_penalties(residual, 0.2 * residual, has_converged=True)
    assert not L.hopeless(residual)


def test_multipliers_move_along_with_the_horizon():
    def later(times):
        return times > 1.5

    for knots, expected in (
        ("all", [2, 3, 4, 4]),
        ("last", [0, 0, 0, 4]),
        ([1, 0, 1, 1], [1, 0, 3, 4]),
        (later, [0, 0, 4, 4]),
    ):
        L = lagrangian({"upper": 1, "knots": knots})
        before = {"c": np.array([[1.0], [2.0], [3.0], [4.0]])}
        assert L.resume(np.arange(4.0) - 1, before, {"c": 7.0})
        assert L.multipliers[:, 0].tolist() == expected
        assert L.penalties == 7
    assert not L.resume(np.arange(4.0), {}, {})


def test_a_loop_keeps_its_multipliers():
    model, _, planner = problem(lambda p, v, u: [control.Constraint("slow", v[0], upper=0.1)])
    plan = planner.solve(start(), iterations=200)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.time = plan.states[1][:3], plan.states[1][3:], plan.times[1]
    moved = planner.improve(data, plan)
    assert moved.penalties == plan.penalties
    assert np.allclose(moved.multipliers["slow"][:-3], plan.multipliers["slow"][1:-2], atol=0.05)
    assert plan.multipliers["slow"].max() > 0.05
    result = control.MPC(model, planner).run(data, 1.0, plan=plan, progress=False)
    assert result.sensordata[:, 1].max() < 0.1 + 1e-3
    assert result.sensordata[:, 1].max() > 0.09


def test_a_loop_reports_its_largest_violations():
    def constraints(p, v, u):
        return [
            control.Constraint("slow", v[:2], lower=[-1, -0.1], upper=lambda t: 0.1 + 0.01 * t),
            control.Constraint("stop", v, lower=0, upper=0, knots="last"),
            control.Constraint("late", p[0], upper=-1, knots=lambda t: t > 0.25),
            control.Constraint("first", p[1], lower=1, knots=np.arange(T) < 1),
            control.Constraint("never", p[1], lower=1, knots=np.arange(T) > 0),
            control.Constraint("free", p, upper=9),
        ]

    model, cost, planner = problem(constraints)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = start()[:3], [0.3, -0.2, 0]
    mpc = control.MPC(model, planner)
    result = mpc.run(data, 0.5, progress=False, callback=lambda interval: interval.data.time > 0.4)
    t, p, v = result.times, result.sensordata[:, 0::2], result.sensordata[:, 1::2]
    assert len(t) < round(0.5 / model.opt.timestep)
    assert result.violations == {
        "slow": max((v[:, :2].max(axis=1) - 0.1 - 0.01 * t).max(), (-0.1 - v[:, 1]).max()),
        "stop": 0.0,
        "late": (p[t > 0.25, 0] + 1).max(),
        "first": (1 - p[:, 1]).max(),
        "never": 0.0,
        "free": 0.0,
    }
    assert result.violations["slow"] > 0.1
    assert f"constraint slow: largest violation {result.violations['slow']:.3g}" in str(result)
    assert result.to_dict()["violations"] == result.violations
    # without constraints
    planner = control.ILQR(model, control.Cost(model, cost.terms), T)
    result = control.MPC(model, planner).run(data, 0.1, progress=False)
    assert result.violations == {}
    assert "constraint" not in str(result)


def test_the_norm_of_an_excess_has_its_derivatives():
    rows = np.array([[-0.5, 0.3, 0.0, np.nan]])
    value, bend = np.empty(1), np.empty(1)
    for curvature_at_zero in (0.0, 1.0):
        slope, curvature = np.empty(rows.shape), np.empty(rows.shape)
        _core.norm_into("excess", curvature_at_zero, 0, rows, value, slope, curvature, bend)
        assert value == pytest.approx(0.045)
        assert slope[0].tolist() == [0, 0.3, 0, 0]
        assert curvature[0].tolist() == [0, 1, curvature_at_zero, 0]


def test_sensitivity_holds_active_rows():
    _, _, planner = problem(
        lambda p, v, u: [
            control.Constraint("slow", v[0], upper=0.1, tolerance=1e-10),
            control.Constraint("arrive", p[1], lower=0.1, upper=0.1, tolerance=1e-10, knots="last"),
        ],
        hessian="auto",
        tolerance=1e-14,
    )
    plan = planner.solve(start(), iterations=500)
    assert plan.status == "converged"
    is_active = plan.multipliers["slow"][:, 0] > 0
    assert 2 <= is_active.sum() < T
    made, step = plan.sensitivity("state"), 1e-4
    for k in (0, 1, 3):  # without the mass that has no motor
        x = [planner.solve(start() + s * np.eye(6)[k], iterations=500) for s in (step, -step)]
        difference = (x[0].controls - x[1].controls) / (2 * step)
        assert np.allclose(made.controls[:, :, k], difference, atol=SLOPE)
        assert abs(difference).max() > 0.1
    assert abs(made.states[is_active, 3]).max() < 1e-8  # v0 stays at its bound
    assert abs(made.states[-1, 1]).max() < 1e-8


@pytest.mark.parametrize(
    "bounds",
    [{"lower": [-0.2, -1], "upper": [0.2, 1]}, {"lower": -0.3, "upper": -0.3, "knots": "last"}],
    ids=["inequality", "equality"],
)
def test_sensitivity_contains_the_curvature_of_constraints(bounds):
    """The tip of a pendulum is a nonlinear function of its angle."""
    model, cost = pendulum()
    tip, x = control.sensor(model, "tip"), np.array([0.3, 0.0])
    rows = tip[2] if "knots" in bounds else tip[:2]
    constraint = control.Constraint("tip", rows, tolerance=1e-10, **bounds)
    cost = control.Cost(model, cost.terms, [constraint])
    planner = control.ILQR(model, cost, 40, hessian="auto", tolerance=1e-14)
    plan = planner.solve(x)
    assert plan.status == "converged"
    assert abs(plan.multipliers["tip"]).max() > 0.1
    made, step, moved = plan.sensitivity("state").controls[:, :, 0], 1e-5, []
    for s in (step, -step):
        moved.append(planner.solve(np.array([x[0] + s, 0.0]), controls=plan.controls).controls)
    difference = (moved[0] - moved[1]) / (2 * step)
    assert abs(difference).max() > 1
    assert np.allclose(made, difference, atol=SLOPE)


@pytest.mark.parametrize("is_equality", [False, True])
def test_sensitivity_to_parameters_with_active_constraints(is_equality):
    """The row and its curvature depend on the masses, also at a fixed trajectory."""
    model, cost = swinging_pair()
    pull, tip = control.sensor(model, "acceleration"), control.sensor(model, "tip")
    rows = pull[0] * tip[0] + 0.2 * control.controls(model)[0]
    equality = {"lower": 2.0, "upper": 2.0, "knots": np.arange(30) == 24}
    bounds = equality if is_equality else {"upper": 2.0}
    constraint = control.Constraint("pull", rows, tolerance=1e-10, **bounds)

    def plan_of(model, controls=None):
        constrained = control.Cost(model, cost.terms, [constraint])
        planner = control.ILQR(model, constrained, 30, hessian="auto", tolerance=1e-14)
        made = planner.solve([0.5, 0, 0, 0], controls=controls, iterations=500)
        assert made.status in ("converged", "no improvement")
        return made

    plan = plan_of(model)
    assert abs(plan.multipliers["pull"]).max() > 1e-4
    params = mujacobian.Parameters(model, ["body_mass", ("dof_damping", [0])])
    count = mujacobian.fd_count()
    made = plan.sensitivity("params", params=params)
    assert mujacobian.fd_count() == count
    for k, value in enumerate(params.values):
        moved, step = [], 1e-3 * value
        for s in (step, -step):
            values = params.values
            values[k] += s
            moved.append(plan_of(params.apply(values), plan.controls).controls)
        difference = (moved[0] - moved[1]) / (2 * step)
        assert abs(difference).max() > 1e-2
        assert np.allclose(made.controls[..., k], difference, atol=SLOPE * abs(difference).max())


def test_functions_that_do_not_keep_constraints_raise():
    model, cost, planner = problem(lambda p, v, u: [control.Constraint("slow", v[0], upper=0.2)])
    with pytest.raises(ValueError, match='constraint "slow": a differentiable plan cannot keep'):
        HostPlan(planner, 100)
    with pytest.raises(ValueError, match=r'constraint "slow": optimize.minimize cannot keep'):
        optimize.minimize(model, start(), np.zeros((T, model.nu)), cost)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 1.0}, "rows must be Rows"),
        ({"upper": None}, "lower or upper must be given"),
        ({"upper": np.nan}, "upper must not be NaN"),
        ({"lower": [0, np.nan]}, "lower must not be NaN"),
        ({"lower": 2}, "row 0 cannot be between 2.0 and 1.0: lower must not be above upper"),
        ({"lower": np.inf, "upper": np.inf}, "row 0 cannot be between inf and inf"),
        ({"upper": [1, 2, 3]}, r"upper must have shape \(2,\), got \(3,\)"),
        ({"tolerance": 0}, "tolerance must be a number above 0"),
        ({"tolerance": np.nan}, "tolerance must be a number above 0"),
        ({"knots": "first"}, 'knots must be "all", "last"'),
        ({"knots": [1, np.nan]}, "the factors of knots must be at least 0"),
    ],
)
def test_wrong_constraints_are_named(change, message):
    model = slides()
    rows = control.stack(control.sensor(model, "p0"), control.sensor(model, "p1"))
    given = {"rows": rows, "upper": 1.0} | change
    with pytest.raises((ValueError, TypeError), match=f'constraint "c": {message}'):
        control.Constraint("c", **given)


def test_wrong_lists_of_constraints_are_named():
    model = slides()
    terms, p = quadratic_cost(model).terms, control.sensor(model, "p0")
    with pytest.raises(TypeError, match=r"constraints must be control.Constraint, got Term"):
        control.Cost(model, terms, [terms[0]])
    with pytest.raises(ValueError, match="names of constraints must differ, got a, a"):
        control.Cost(model, terms, [control.Constraint("a", p, upper=k) for k in range(2)])
    other = control.sensor(slides(2), "p0")
    with pytest.raises(ValueError, match='constraint "a" has rows of another model'):
        control.Cost(model, terms, [control.Constraint("a", other, upper=0)])
    for wrong, message in (
        ({"knots": np.ones(3)}, r'constraint "a": the factors of knots must have shape \(20,\)'),
        ({"lower": lambda t: np.zeros(3)}, 'constraint "a": lower must have shape'),
        ({"lower": lambda t: 9 - t}, 'constraint "a": row 0 cannot be between 9.0 and 1.0'),
    ):
        cost = control.Cost(model, terms, [control.Constraint("a", p, **{"upper": 1} | wrong)])
        with pytest.raises(ValueError, match=message):
            control.ILQR(model, cost, T).solve(start())


def test_a_cart_swings_its_pole_up_on_a_short_track():
    task = tasks.load("cartpole")
    place, model = control.sensor(task.planned, "place"), task.planned
    track = control.Constraint("track", place, lower=-0.5, upper=0.5)
    cost = control.Cost(model, task.cost.terms, [track])
    plan = control.ILQR(model, cost, task.horizon).solve(task.start(None))
    assert plan.status == "converged"
    assert plan.violations["track"] < VIOLATION
    assert abs(plan.states[:, 0]).max() == pytest.approx(0.5, abs=VIOLATION)
    free = control.ILQR(model, task.cost, task.horizon).solve(task.start(None))
    assert abs(free.states[:, 0]).max() > 1
    # in a closed loop, also in states that the plans did not predict
    planner, data = control.ILQR(model, cost, task.horizon), task.start(None)
    result = control.MPC(task.model, planner, steps_per_plan=2).run(
        data, 2.0, plan=planner.solve(data), progress=False
    )
    assert task.judge(result).success
    assert abs(result.states[:, 0]).max() < 0.52


def test_an_arm_reaches_around_an_obstacle_with_a_margin_of_a_millimeter():
    task, names = tasks.load("arm"), ("upper_clearance", "fore_clearance", "hand_clearance")
    model = copy.copy(task.planned)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT  # the constraint replaces them
    clearance = control.stack(*(control.sensor(model, name) for name in names))
    terms = [term for term in task.cost.terms if term.name != "clear"]
    free = control.ILQR(model, control.Cost(model, terms), task.horizon).solve(task.start(None))
    places = [model.sensor(name).adr[0] for name in names]
    assert free.sensordata[:, places].min() < -0.02
    cost = control.Cost(model, terms, [control.Constraint("clear", clearance, lower=1e-3)])
    plan = control.ILQR(model, cost, task.horizon).solve(task.start(None))
    assert plan.status == "converged"
    assert plan.violations["clear"] < VIOLATION
    assert plan.sensordata[:, places].min() == pytest.approx(1e-3, abs=VIOLATION)
    tip = plan.sensordata[-1, model.sensor("tip").adr[0] :][:3]
    assert np.linalg.norm(tip - model.site("target").pos) < 0.01


def test_an_equality_through_contacts_is_not_given_up():
    """Line searches fail at contacts, and the constraint of the hopper holds in most plans."""
    problem = planners.hopper()
    place = control.sensor(problem.model, "position")[0]
    arrive = control.Constraint("arrive", place, lower=0.6, upper=0.6, knots="last")
    cost = control.Cost(problem.model, problem.cost.terms, [arrive])
    planner = control.ILQR(problem.model, cost, problem.horizon)
    starts = [planners.random_controls(problem, seed) for seed in range(4)]
    plans = [planner.solve(problem.data, controls=controls) for controls in starts]
    assert not any(plan.status.startswith("infeasible") for plan in plans)
    assert np.median([plan.violations["arrive"] for plan in plans]) < VIOLATION


BOX = """
<mujoco>
  <option timestep=".02" cone="elliptic" integrator="implicitfast"/>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 .1"/>
    <body name="box" pos=".16 0 .1">
      <joint name="box_x" type="slide" axis="1 0 0" damping="2"/>
      <joint name="box_z" type="slide" axis="0 0 1" damping="1"/>
      <geom name="box" type="box" size=".1 .1 .1" mass="1" contype="2" conaffinity="3"
        friction=".3"/>
    </body>
    <body name="finger" pos=".003 0 .1">
      <joint name="finger_x" type="slide" axis="1 0 0" damping="5"/>
      <joint name="finger_z" type="slide" axis="0 0 1" damping="5"/>
      <geom name="finger" type="sphere" size=".06" mass=".2" contype="2" conaffinity="2"
        friction="1" priority="1"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="finger_x" ctrlrange="-20 20"/>
    <motor joint="finger_z" ctrlrange="-20 20"/>
  </actuator>
</mujoco>
"""


def test_a_finger_pushes_a_box_within_a_friction_cone():
    """The cost asks the finger to slide up, and the cone of 0.3 is that of a slippery box."""
    spec, friction, horizon = mujoco.MjSpec.from_string(BOX), 0.3, 40
    rows = control.residuals(spec)
    force = rows.contact_force("finger", kind="geom")
    terms = [
        control.Term("place", rows.position("box", kind="body")[0] - 0.4, weight=10),
        control.Term("lift", rows.position("finger", kind="body")[2] - 0.2, weight=10),
        control.Term("still", rows.joint_velocities(), weight=0.02),
        control.Term("effort", rows.controls(), weight=1e-3),
    ]
    normal, shear = -force[0], force[2]
    cone = control.stack(shear - friction * normal, -shear - friction * normal)
    model = spec.compile()
    planned = control.planning_model(model, timestep=0.02)
    pushing = np.tile([6.0, 0.0], (horizon - 1, 1))

    def solve(constraints):
        cost = control.Cost(model, terms, constraints)
        planner = control.ILQR(planned, cost, horizon, hessian="auto")
        return planner.solve(mujoco.MjData(model), controls=pushing)

    def excess(plan):
        first = model.sensor("contact_force:finger").adr[0]
        measured = -plan.sensordata[:, first : first + 3]
        return (abs(measured[:, 2]) + friction * measured[:, 0]).max()

    assert excess(solve([])) > 1
    plan = solve([control.Constraint("cone", cone, upper=0)])
    assert plan.status == "converged"
    assert plan.violations["cone"] < VIOLATION
    assert excess(plan) == pytest.approx(plan.violations["cone"], abs=1e-12)
    assert plan.states[-1, 0] > 0.15  # the box has moved
