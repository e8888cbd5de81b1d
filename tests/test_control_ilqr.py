"""Plans: known optima, exact derivatives, policies and errors."""

import dataclasses
import os
import re
import resource
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mujoco
import numpy as np
import pytest
from scipy.optimize import lsq_linear

import mujacobian
from mujacobian import control
from tests.scenes.control_models import (
    falling_cylinder,
    pendulum,
    quadratic_cost,
    random_state,
    slides,
    tumbler,
)

OPTIMUM = 1e-8
STATE = np.array([1.0, -0.5, 0.3, 0.0, 0.2, 0.0])


def condensed(model, T, state):
    """Return the matrix and constants of least squares that equal `quadratic_cost`."""
    lin = mujacobian.linearize(model, mujoco.MjData(model), sensors=False)
    nx, nu = 6, model.nu
    x, S = state.copy(), np.zeros((nx, (T - 1) * nu))
    rows, constants = [], []
    weight = np.sqrt(np.array([1.0] * 3 + [0.1] * 3) / T)
    target = np.array([0.3] * 3 + [0.0] * 3)
    for t in range(T):
        u = np.zeros((nu, (T - 1) * nu))
        held = min(t, T - 2)  # the last knot keeps the last control
        u[:, held * nu : (held + 1) * nu] = np.eye(nu)
        rows += [weight[:, None] * S, np.sqrt(0.05 / T) * u]
        constants += [weight * (x - target), np.zeros(nu)]
        x, S = lin.A @ x, lin.A @ S + lin.B @ u
    return np.vstack(rows), np.concatenate(constants)


def riccati(model, T):
    """Return the gains of the quadratic problem."""
    lin = mujacobian.linearize(model, mujoco.MjData(model), sensors=False)
    Q, R = np.diag([1.0] * 3 + [0.1] * 3), 0.05 * np.eye(model.nu)
    P, gains = Q, []
    for t in range(T - 2, -1, -1):
        effort = 2 * R if t == T - 2 else R  # the control acts at its own knot and at the last one
        K = -np.linalg.solve(effort + lin.B.T @ P @ lin.B, lin.B.T @ P @ lin.A)
        P = Q + lin.A.T @ P @ (lin.A + lin.B @ K)
        gains.append(K)
    return np.array(gains[::-1])


@pytest.mark.parametrize("regularization", ["none", "control", "state"])
def test_linear_quadratic_problems_are_solved(regularization):
    model = slides()
    planner = control.ILQR(
        model, quadratic_cost(model), 40, regularization=regularization, tolerance=1e-15
    )
    plan = planner.solve(STATE)
    rows, constants = condensed(model, 40, STATE)
    best = np.linalg.lstsq(rows, -constants, rcond=None)[0]
    assert plan.status == "converged"
    assert np.allclose(plan.controls.ravel(), best, atol=OPTIMUM, rtol=0)
    assert plan.cost == pytest.approx(0.5 * ((rows @ best + constants) ** 2).sum(), rel=1e-12)
    assert plan.cost < plan.initial_cost
    if regularization == "none":
        assert np.allclose(plan.gains, riccati(model, 40), atol=OPTIMUM, rtol=0)
        assert len(plan.history.cost) == 2  # one iteration, and one that detects convergence


def test_bounds_hold_and_the_bounded_optimum_is_found():
    model = slides(limits='ctrllimited="true" ctrlrange="-.4 .7"')
    plan = control.ILQR(model, quadratic_cost(model), 40, tolerance=1e-14).solve(STATE)
    rows, constants = condensed(model, 40, STATE)
    best = lsq_linear(rows, -constants, (-0.4, 0.7), method="bvls", tol=1e-15).x
    assert np.allclose(plan.controls.ravel(), best, atol=1e-6, rtol=0)
    found = 0.5 * ((rows @ plan.controls.ravel() + constants) ** 2).sum()
    assert found == pytest.approx(0.5 * ((rows @ best + constants) ** 2).sum(), rel=1e-10)
    assert ((plan.controls == -0.4) | (plan.controls == 0.7)).sum() > 5
    # the gains of controls at a bound are zero
    assert not plan.gains[plan.controls == 0.7].any()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "rk4"])
def test_derivatives_on_the_way_are_those_of_linearize(threads, integrator):
    """The model has contacts, a free joint and activations."""
    model, cost = tumbler()
    model = control.planning_model(model, integrator=integrator)
    differences = mujacobian.fd_count()
    planner = control.ILQR(model, cost, 25, threads=threads)
    state = random_state(model, 4)
    state[2] = 0.11
    plan = planner.improve(state)
    nominal = planner.linearization
    # the initial trajectory has zero controls
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.act[:] = np.split(state, [model.nq, model.nq + model.nv])
    touched = 0
    for t in range(25):
        before = data.qacc_warmstart.copy()
        lin = mujacobian.linearize(model, data)
        data.qacc_warmstart[:] = before
        for block in ("A", "B") if t < 24 else ():
            scale = abs(getattr(lin, block)).max()
            assert np.allclose(getattr(nominal, block)[t], getattr(lin, block), atol=1e-9 * scale)
        for block in ("C", "D"):
            ours, theirs = getattr(nominal, block)[t], getattr(lin, block)
            assert np.allclose(ours[:-1], theirs[:-1], atol=1e-9 * (1 + abs(theirs).max()))
            assert not ours[-1].any()  # the cost does not read the angle
        touched += data.ncon
        mujoco.mj_step(model, data)
    assert touched > 5
    assert plan.cost < plan.initial_cost
    assert mujacobian.fd_count() == differences


@pytest.mark.parametrize("height", [0.11, 0.5])
def test_small_steps_improve_as_the_backward_pass_expects(height):
    """This tests derivatives, feedback and the control of the last knot together."""
    model, cost = tumbler()
    state = random_state(model, 4)
    state[2] = height  # on the floor, and above it
    size = 1e-5
    plan = control.ILQR(model, cost, 25, step_sizes=(size,), mu=1e-3).improve(state)
    improvement = plan.initial_cost - plan.cost
    assert plan.history.step[0] == size
    assert improvement == pytest.approx(plan.history.expected[0], rel=1e-5)
    assert improvement > 1e-9


def test_former_name_of_central_differences_is_deprecated():
    model, cost = tumbler()
    with pytest.warns(DeprecationWarning, match="fd_centred is now fd_central"):
        planner = control.ILQR(model, cost, 12, derivatives="fd_centred")
    assert planner.derivatives == "fd_central"


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("derivatives", ["fd", "fd_central", "wasp", "isolation"])
def test_backends_agree_and_are_counted(derivatives, warm_start):
    model, cost = tumbler()
    exact = control.ILQR(model, cost, 12)
    other = control.ILQR(model, cost, 12, derivatives=derivatives, warm_start=warm_start)
    state = random_state(model, 2)
    state[2] = 0.5  # in the air, where differences are accurate
    count = mujacobian.fd_count()
    a, b = exact.improve(state), other.improve(state)
    assert mujacobian.fd_count() > count
    assert a.initial_cost == b.initial_cost
    # D of central differences has the wrong sign before MuJoCo 3.18
    is_wrong = derivatives == "fd_central" and mujoco.mj_version() < 3018000
    if not is_wrong:
        assert b.cost == pytest.approx(a.cost, rel=1e-5)
    for block in "ABC" if is_wrong else "ABCD":
        ours, theirs = getattr(exact.linearization, block), getattr(other.linearization, block)
        if block in "CD":  # without the angle, which the cost does not read
            ours, theirs = ours[:, :-1], theirs[:, :-1]
        assert np.allclose(ours, theirs, atol=1e-4 * (1 + abs(ours).max()))
        assert ours.any()


def test_wasp_keeps_and_corrects_what_it_knows():
    """A linear system needs no corrections, so there are few probes."""
    model = slides()
    exact = control.ILQR(model, quadratic_cost(model), 20)
    wasp = control.ILQR(model, quadratic_cost(model), 20, derivatives="wasp", threads=1)
    plan, counts = wasp.improve(STATE), []
    exact.improve(STATE)
    for _ in range(4):
        before = mujacobian.fd_count()
        plan = wasp.improve(np.concatenate([plan.states[1]]), plan)
        counts.append(mujacobian.fd_count() - before)
        for block in "ABCD":
            ours, theirs = getattr(exact.linearization, block), getattr(wasp.linearization, block)
            assert np.allclose(ours, theirs, atol=1e-7)
    assert counts == [20 * 3] * 4  # one probe of q, v and u at each knot


def test_threads_do_not_matter():
    model, cost = tumbler()
    plans = [
        control.ILQR(model, cost, 20, threads=threads).solve(random_state(model, 1), iterations=8)
        for threads in (1, 2, 5)
    ]
    for plan in plans[1:]:
        assert plan.controls.tobytes() == plans[0].controls.tobytes()
        assert plan.history.candidates.tolist() == plans[0].history.candidates.tolist()
    assert plans[0].cost < plans[0].initial_cost


def test_the_swing_up_converges_between_its_bounds():
    model, cost = pendulum()
    plan = control.ILQR(model, cost, 120).solve([0.1, 0.0], iterations=300)
    assert plan.sensordata[-1, 2] > 0.45
    assert abs(plan.controls).max() == 1.0
    assert (np.diff(plan.history.cost) <= 0).all()
    assert plan.cost == pytest.approx(
        (plan.terms @ cost.weights).mean(), rel=1e-12
    )  # the mean over the knots


def test_plans_are_simulations_and_leave_the_caller_alone():
    model, cost = tumbler()
    data = mujoco.MjData(model)
    data.qvel[:] = 0.1
    data.time = 3.0
    before = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
    mujoco.mj_getState(model, data, before, mujoco.mjtState.mjSTATE_INTEGRATION)
    plan = control.ILQR(model, cost, 15).solve(data, iterations=5)
    after = np.empty_like(before)
    mujoco.mj_getState(model, data, after, mujoco.mjtState.mjSTATE_INTEGRATION)
    assert before.tobytes() == after.tobytes()
    assert np.allclose(plan.times, 3.0 + 0.01 * np.arange(15))
    for t in range(15):
        assert np.allclose(plan.states[t, : model.nq], data.qpos, atol=1e-12)
        data.ctrl[:] = plan.controls[min(t, 13)]
        mujoco.mj_step(model, data) if t < 14 else mujoco.mj_forward(model, data)
        assert np.allclose(plan.sensordata[t], data.sensordata, atol=1e-9)
    assert np.allclose(
        plan.cost, cost(plan.sensordata, plan.policy.controls, plan.times).mean(), rtol=1e-12
    )


def test_plans_begin_with_the_controls_of_the_state():
    model, cost = tumbler()
    data = mujoco.MjData(model)
    data.ctrl[:] = 3.0, 0.5
    plan = control.ILQR(model, cost, 10, step_sizes=(1e-12,)).improve(data)
    assert np.allclose(plan.controls, [1.0, 0.5], atol=1e-8)  # the first control has a range
    given = control.ILQR(model, cost, 10, step_sizes=(1e-12,)).solve(
        data, controls=np.full((9, 2), 0.25), iterations=1
    )
    assert np.allclose(given.controls, 0.25, atol=1e-8)


@pytest.mark.parametrize("timestep", [0.003, 0.01, 0.1])
def test_controls_to_begin_with_are_those_of_their_knots(timestep):
    """Times of a simulation are sums, which are rounded differently from times of knots."""
    model = slides()
    model.opt.timestep = timestep
    given = np.random.default_rng(0).normal(size=(199, 2))
    planner = control.ILQR(model, quadratic_cost(model), 200, step_sizes=(1e-12,))
    plan = planner.solve(np.zeros(6), controls=given, iterations=1)
    assert np.allclose(plan.controls, given, atol=1e-8)


def test_a_plan_that_costs_nothing_has_converged():
    model = slides()
    p, u = control.sensor(model, "p0"), control.controls(model)
    cost = control.Cost(model, [control.Term("p", p), control.Term("u", u)])
    plan = control.ILQR(model, cost, 10).solve(np.zeros(6))
    assert plan.status == "converged"
    assert plan.cost == 0
    assert len(plan.history.cost) == 1


def test_user_residuals_plan_as_sensors_do():
    model = slides()
    u = control.controls(model)

    def value(times, states, controls):
        return states[:, :3] - 0.3

    def jacobian(times, states, controls):
        rx = np.broadcast_to(np.eye(3, 6), (len(times), 3, 6))
        return rx, np.zeros((len(times), 3, 2))

    p = control.stack(*(control.sensor(model, f"p{k}") for k in range(3)))
    effort, norm = control.Term("effort", u, weight=0.05), control.L2(0.2)
    mine = control.Cost(
        model, [control.Term("p", control.UserResidual(3, value, jacobian), norm), effort]
    )
    theirs = control.Cost(model, [control.Term("p", p - 0.3, norm), effort])
    a, b = (control.ILQR(model, cost, 30).solve(STATE) for cost in (mine, theirs))
    assert a.cost == pytest.approx(b.cost, rel=1e-9)
    assert np.allclose(a.controls, b.controls, atol=1e-6)
    assert np.allclose(a.terms, b.terms, atol=1e-6)
    assert a.cost < 0.9 * a.initial_cost


def test_line_searches_avoid_where_user_residuals_are_not_finite():
    """The full step leaves the domain of the barrier log(1 - u)."""
    model = slides()

    def value(times, states, controls):
        with np.errstate(invalid="ignore", divide="ignore"):
            return 3 + np.log(1 - controls[:, :1])

    def jacobian(times, states, controls):
        ru = np.zeros((len(times), 1, 2))
        ru[:, 0, 0] = -1 / (1 - controls[:, 0])
        return np.zeros((len(times), 1, 6)), ru

    wall = control.UserResidual(1, value, jacobian)
    cost = control.Cost(model, [control.Term("wall", wall)])
    planner = control.ILQR(model, cost, 10, mu=1e-6)
    plan = planner.solve(np.zeros(6), iterations=200)
    assert plan.history.candidates[0] > 1
    assert np.allclose(plan.controls[:, 0], 1 - np.exp(-3), atol=1e-3)
    with pytest.raises(control.DivergedError, match='knot 4 of 10 the term "wall" is inf'):
        planner.solve(np.zeros(6), controls=np.repeat([0.5, 1.5], [4, 5])[:, None] * [1, 1])


def test_user_residuals_receive_only_simulated_knots():
    """After an infinite cost of sensors, the trajectory is not simulated."""
    model = slides()
    seen = []

    def value(times, states, controls):
        seen.append(states.copy())
        return states[:, :1]

    def jacobian(times, states, controls):
        return np.tile(np.eye(1, 6), (len(times), 1, 1)), np.zeros((len(times), 1, 2))

    high = control.Term(
        "high",
        1e6 * control.sensor(model, "p1"),
        control.Cosh(1e-3),
        knots=np.arange(10.0),
    )
    own = control.Term("own", control.UserResidual(1, value, jacobian))
    with pytest.raises(control.DivergedError, match='knot 1 of 10 the term "high" is inf'):
        control.ILQR(model, control.Cost(model, [own, high]), 10).solve([0, 1, 0, 0, 0, 0])
    assert [abs(states).max() for states in seen] == [1.0]
    # the first term has no weight; the others are finite, but their sum is not
    p = control.sensor(model, "p0")
    terms = [control.Term(f"p{k}", 1e154 * p, weight=k) for k in range(4)]
    terms[0] = dataclasses.replace(high, name="p0", weight=0.0)
    with pytest.raises(control.DivergedError, match='knot 0 of 10 the term "p1" is 5e'):
        control.ILQR(model, control.Cost(model, terms), 10).solve([1.0, 1, 0, 0, 0, 0])
    assert len(seen[0]) == 2


def test_terms_without_weight_may_be_infinite():
    model = slides()
    high = control.Term("high", 1e6 * control.sensor(model, "p0"), control.Cosh(1e-3), weight=0.0)
    cost = control.Cost(model, [high, control.Term("u", control.controls(model) - 1)])
    plan = control.ILQR(model, cost, 10).solve(np.ones(6))
    assert plan.cost == pytest.approx(0, abs=1e-12)
    assert np.isinf(plan.terms[:, 0]).all()
    assert np.allclose(cost(plan.sensordata, plan.policy.controls, plan.times), 0)


def test_threads_that_share_a_planner_wait_for_one_another():
    model, cost = tumbler()
    planner = control.ILQR(model, cost, 12, threads=2)
    alone = planner.solve(random_state(model, 1), iterations=3)
    with ThreadPoolExecutor(3) as pool:
        made = pool.map(lambda k: planner.solve(random_state(model, k), iterations=3), [1, 2, 3, 1])
    first, *_, last = made
    assert first.controls.tobytes() == last.controls.tobytes() == alone.controls.tobytes()


def test_a_planner_does_not_survive_a_fork(monkeypatch):
    planner = control.ILQR(slides(), quadratic_cost(slides()), 10)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(mujacobian.MujacobianError, match="make a planner in each process"):
        planner.solve(STATE)


@pytest.mark.skipif(
    sys.platform != "linux" or "LD_PRELOAD" in os.environ,
    reason="limits memory as Linux does, which sanitizers do not like",
)
def test_threads_are_as_many_as_the_system_gives():
    """The process continues if a thread cannot be created, here because its stack is too large."""
    code = """
        import resource
        from tests.scenes.control_models import quadratic_cost, slides
        from mujacobian import control
        model = slides()
        state = [1.0, -0.5, 0.3, 0.0, 0.2, 0.0]
        few = control.ILQR(model, quadratic_cost(model), 10, threads=1).solve(state)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, used + 2**30))
        many = control.ILQR(model, quadratic_cost(model), 10, threads=500).solve(state)
        assert many.controls.tobytes() == few.controls.tobytes()
    """
    code, root = textwrap.dedent(code), Path(__file__).parent.parent
    stack = resource.RLIMIT_STACK, (2**29, resource.getrlimit(resource.RLIMIT_STACK)[1])
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        check=True,
        preexec_fn=lambda: resource.setrlimit(*stack),
    )


def test_a_plan_is_shifted_to_start_the_next():
    model, cost = tumbler()
    planner = control.ILQR(model, cost, 20)
    plan = planner.solve(random_state(model, 1), iterations=10)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.act[:] = np.split(
        plan.states[0], [model.nq, model.nq + model.nv]
    )
    for t in range(3):
        data.ctrl[:] = plan.controls[t]
        mujoco.mj_step(model, data)
    following = planner.improve(data, plan)
    # the initial trajectory is the old one, as far as it reaches
    shared = (plan.terms[3:] @ cost.weights).sum() / 20
    assert following.initial_cost > shared
    assert following.times[0] == pytest.approx(plan.times[3])
    start = control.ILQR(model, cost, 20, step_sizes=(1e-12,)).improve(data, plan)
    assert np.allclose(start.states[:17], plan.states[3:], atol=1e-8)
    assert np.allclose(start.controls[:16], plan.controls[3:], atol=1e-8)
    assert np.allclose(
        start.controls[16], plan.controls[-1], atol=1e-8
    )  # then the control is constant


def test_policies_interpolate_along_the_shortest_way():
    model, _ = tumbler()
    rng = np.random.default_rng(0)
    states = np.stack([random_state(model, k) for k in range(3)])
    nx = 2 * model.nv + model.na
    controls, gains = rng.uniform(-0.2, 0.2, (3, 2)), rng.normal(size=(3, 2, nx)) * 0.1
    policy = control.Policy(
        model,
        np.array([1.0, 2.0, 4.0]),
        states,
        controls,
        gains,
        np.array([-1.0, -np.inf]),
        np.array([1.0, np.inf]),
    )
    part, x = 0.75, random_state(model, 9)  # at 3.5 s, between the second and the third knot
    dq, reference = np.empty(model.nv), states[1, : model.nq].copy()
    mujoco.mj_differentiatePos(model, dq, 1.0, states[1, : model.nq], states[2, : model.nq])
    mujoco.mj_integratePos(model, reference, dq, part)
    dx = np.empty(nx)
    mujoco.mj_differentiatePos(model, dx[: model.nv], 1.0, reference, x[: model.nq])
    rest = states[1, model.nq :] + part * (states[2] - states[1])[model.nq :]
    dx[model.nv :] = x[model.nq :] - rest
    gain = (1 - part) * gains[1] + part * gains[2]
    expected = (1 - part) * controls[1] + part * controls[2] + gain @ dx
    assert np.allclose(policy(3.5, x), np.clip(expected, [-1, -np.inf], [1, np.inf]))
    assert np.allclose(policy(3.5, x, feedback=0.0), controls[1] / 4 + 0.75 * controls[2])
    # a quaternion and its negative are the same rotation
    x[3:7] *= -1
    assert np.allclose(policy(3.5, x), np.clip(expected, [-1, -np.inf], [1, np.inf]))
    # at knots, and before and after the trajectory
    for time, knot in ((1.0, 0), (0.0, 0), (2.0, 1), (4.0, 2), (9.0, 2)):
        assert np.allclose(policy(time, states[knot]), controls[knot])
    many = policy([1.0, 3.5, 9.0], np.stack([states[0], x, states[2]]))
    assert np.allclose(many[1], policy(3.5, x))
    held = dataclasses.replace(policy, is_linear=False)
    assert np.allclose(held(3.999, states[1]), controls[1])
    assert np.allclose(held(np.nextafter(4.0, 0), states[2]), controls[2])
    empty = {name: getattr(policy, name)[:0] for name in ("times", "states", "controls", "gains")}
    with pytest.raises(ValueError, match="at least one knot"):
        dataclasses.replace(policy, **empty)(0.0, x)


def test_planning_models_differ_as_asked():
    model, _ = tumbler()
    before = model.geom_solimp.copy()
    planned = control.planning_model(model, timestep=0.02, integrator="euler")
    assert planned.opt.timestep == 0.02
    assert int(planned.opt.integrator) == int(mujoco.mjtIntegrator.mjINT_EULER)
    assert not planned.geom_solimp[:, 0].any()
    assert not planned.jnt_solimp[:, 0].any()
    assert model.geom_solimp.tobytes() == before.tobytes()
    assert model.opt.timestep == 0.01
    same = control.planning_model(model, differentiable=False)
    assert same.geom_solimp.tobytes() == before.tobytes()
    # contacts are as wide as 0.5 m/s times the time step, unless they were wider
    assert (before[:, 2] == 0.001).all()
    assert (planned.geom_solimp[:, 2] == 0.01).all()
    assert (planned.jnt_solimp[:, 2] == 0.001).all()
    wide = control.planning_model(planned, timestep=0.002, width=0.003)
    assert (wide.geom_solimp[:, 2] == 0.01).all()
    given = control.planning_model(model, differentiable=False, width=0.003)
    assert (given.geom_solimp[:, 2] == 0.003).all()
    assert given.geom_solimp[:, 0].all()
    for width in (-1, np.nan):
        with pytest.raises(ValueError, match="width must be"):
            control.planning_model(model, width=width)
    with pytest.raises(ValueError, match="must be one of euler, implicit"):
        control.planning_model(model, integrator="verlet")
    with pytest.raises(ValueError, match="between 0 and 1 s"):
        control.planning_model(model, timestep=-1)


@pytest.mark.parametrize("limits", [("", 'forcerange="-40 40"'), ('actuatorfrcrange="-40 40"', "")])
def test_stiff_servos_reach_without_limits_of_their_forces(limits):
    """The servos are at their limits during most of the motion, where they have no gradient."""
    spec = mujoco.MjSpec.from_string(
        f"""
        <mujoco>
          <option timestep=".002" integrator="implicitfast"/>
          <default>
            <joint axis="0 0 1" damping="1" armature=".1" {limits[0]}/>
            <geom type="capsule" size=".03" mass="1" contype="0" conaffinity="0"/>
            <position kp="4500" kv="450" {limits[1]}/>
          </default>
          <worldbody>
            <body><joint name="j0"/><geom fromto="0 0 0 .4 0 0"/>
              <body pos=".4 0 0"><joint name="j1"/><geom fromto="0 0 0 .3 0 0"/>
                <site name="tip" pos=".3 0 0"/></body></body>
          </worldbody>
          <actuator><position joint="j0"/><position joint="j1"/></actuator>
        </mujoco>
        """
    )
    rows, target = control.residuals(spec), np.array([0.1, 0.5, 0.0])
    tip, speeds, forces = rows.position("tip"), rows.joint_velocities(), rows.joint_torques()
    model = spec.compile()
    terms = [
        control.Term("reach", tip - target, control.L2(0.05), 5.0),
        control.Term("still", speeds, weight=0.02),
        control.Term("force", forces / 40, weight=0.01),
    ]
    cost = control.Cost(model, terms)

    def reach(**options):
        planned, data = (
            control.planning_model(model, timestep=0.02, **options),
            mujoco.MjData(model),
        )
        planner = control.ILQR(planned, cost, 40)
        control.MPC(model, planner).run(data, 1.5, progress=False)
        return np.linalg.norm(data.site("tip").xpos - target)

    with pytest.warns(RuntimeWarning, match=r"\d\d% of the actuator forces .* force_limits=False"):
        assert reach() > 0.05
    assert reach(force_limits=False) < 0.005
    # the model keeps its limits, and without them the control has an influence
    data = mujoco.MjData(model)
    data.ctrl[:] = 0.5
    limited = mujacobian.linearize(model, data)
    free = mujacobian.linearize(control.planning_model(model, force_limits=False), data)
    assert not limited.B.any()
    assert abs(free.B[2:]).max() > 1


def test_invalid_arguments_raise():
    model = slides()
    cost = quadratic_cost(model)
    with pytest.raises(ValueError, match=r"derivatives must be one of analytic, fd.*got 'magic'"):
        control.ILQR(model, cost, 10, derivatives="magic")
    with pytest.raises(ValueError, match="at least 2 knots"):
        control.ILQR(model, cost, 1)
    idle = slides(motors=0)
    with pytest.raises(ValueError, match="no actuators"):
        control.ILQR(idle, control.Cost(idle, [control.Term("p", control.sensor(idle, "p0"))]), 10)
    with pytest.raises(control.InfeasibleBoundsError, match=r"control 1 cannot be between 2.0 and"):
        control.ILQR(model, cost, 10, lower=[0, 2], upper=[1, 1])
    for lower, upper in (([np.inf, 0], [np.inf, 1]), ([-np.inf, 0], [-np.inf, 1])):
        with pytest.raises(control.InfeasibleBoundsError, match="control 0 cannot be between"):
            control.ILQR(model, cost, 10, lower=lower, upper=upper)
    with pytest.raises(TypeError, match=r"cost must be a control\.Cost, got list"):
        control.ILQR(model, cost.terms, 10)
    with pytest.raises(ValueError, match="step_sizes must be finite"):
        control.ILQR(model, cost, 10, step_sizes=(np.nan,))
    for name in ("eps", "tolerance", "acceptance"):
        for wrong in (-1.0, np.nan):
            with pytest.raises(ValueError, match=f"{name} must be"):
                control.ILQR(model, cost, 10, **{name: wrong})
    with pytest.raises(TypeError, match="mu must be an array of numbers"):
        control.ILQR(model, cost, 10, mu="large")
    with pytest.raises(TypeError, match="timestep must be an array of numbers"):
        control.planning_model(model, timestep="short")
    with pytest.raises(ValueError, match=r"width must be one number, got an array of shape \(2,\)"):
        control.planning_model(model, width=[0.1, 0.2])
    with pytest.raises(ValueError, match="lower must be 2 numbers"):
        control.ILQR(model, cost, 10, lower=[0])
    with pytest.raises(ValueError, match="the cost is of another model"):
        control.ILQR(model, quadratic_cost(slides(3, 1)), 10)
    with pytest.raises(ValueError, match="mu must be at least 0"):
        control.ILQR(model, cost, 10, mu=-1)
    planner = control.ILQR(model, cost, 10)
    with pytest.raises(ValueError, match="at one state"):
        planner.solve(np.zeros((2, 6)))
    data = mujoco.MjData(model)
    data.qvel[1] = np.nan
    for plan_from in (planner.solve, planner.improve):
        with pytest.raises(ValueError, match=r"state must be finite, but qvel\[1\] is nan"):
            plan_from(data)
    with pytest.raises(TypeError, match=r"plan must be a control\.Plan, got float"):
        planner.improve(STATE, 1.0)
    other = slides(2, 1)
    foreign = control.ILQR(other, quadratic_cost(other), 10).solve(np.zeros(4))
    with pytest.raises(ValueError, match="the plan is of another model: it has 4 numbers per st"):
        planner.improve(STATE, foreign)
    with pytest.raises(ValueError, match=r"controls must have shape \(9, 2\)"):
        planner.solve(STATE, controls=np.zeros((10, 2)))
    with pytest.raises(ValueError, match="iterations"):
        planner.solve(STATE, iterations=0)


def test_a_diverging_plan_says_what_to_do():
    model = mujoco.MjModel.from_xml_string(
        """
        <mujoco><option timestep=".5" gravity="0 0 0"><flag eulerdamp="disable"/></option>
          <worldbody><body><joint name="j" type="slide" damping="-50"/><geom size=".1"/></body>
          </worldbody>
          <actuator><motor joint="j" ctrlrange="-1 1"/></actuator>
          <sensor><jointpos name="p" joint="j"/></sensor></mujoco>
        """
    )
    cost = control.Cost(model, [control.Term("p", control.sensor(model, "p"))])
    with pytest.raises(control.DivergedError, match=r"diverges at knot .*smaller timestep"):
        control.ILQR(model, cost, 40).solve([1.0, 1.0])
    assert issubclass(control.DivergedError, mujacobian.MujacobianError)


def test_a_plan_that_diverges_from_a_new_state_is_begun_anew():
    model = slides()
    planner = control.ILQR(model, quadratic_cost(model), 20)
    plan = planner.solve(STATE)
    policy = dataclasses.replace(plan.policy, controls=np.full((20, 2), 1e30))
    again = planner.improve(STATE, dataclasses.replace(plan, policy=policy))
    assert again.initial_cost == plan.initial_cost
    assert again.cost < again.initial_cost


def test_unsupported_features_raise():
    model = mujoco.MjModel.from_xml_string(
        """
        <mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
          <actuator><motor joint="j"/></actuator>
          <sensor><user name="mine" dim="2" datatype="real" needstage="pos"/></sensor></mujoco>
        """
    )
    cost = control.Cost(model, [control.Term("mine", control.sensor(model, "mine")[1])])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='sensor "mine"'):
        control.ILQR(model, cost, 10)
    assert control.ILQR(model, cost, 10, derivatives="fd").improve([0.0, 0.0]).cost == 0
    # a sensor that the cost does not read does not matter
    cost = control.Cost(model, [control.Term("u", control.controls(model) - 1)])
    assert control.ILQR(model, cost, 10).solve([0.0, 0.0]).cost == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("threads", [1, 2])
def test_unsupported_knots_shorten_the_horizon_of_a_loop_and_end_a_solve(threads):
    model, cost = falling_cylinder()
    planner = control.ILQR(model, cost, 12, threads=threads, regularization="none")
    solved = planner.solve(np.zeros(4))
    assert re.match(r'refused: knot \d+: .*"field".*"can".*', solved.status)
    assert solved.status.endswith(solved.refused)
    assert solved.cost < solved.initial_cost
    plan = planner.improve(np.zeros(4))
    assert solved.cost <= plan.cost
    reach = int(plan.refused.split(":")[0].removeprefix("knot "))
    assert 3 < reach < 12
    # same as a plan with the shorter horizon, except for the control of its last knot
    assert plan.controls[: reach - 1].any()
    assert not plan.controls[reach - 1 :].any()
    assert plan.gains[: reach - 1].any()
    assert not plan.gains[reach - 1 :].any()
    assert plan.cost < plan.initial_cost
    # on the ground from the beginning, no knot can be improved
    data = mujoco.MjData(model)
    data.qpos[1] = -0.011
    held = planner.improve(data)
    assert re.match(r'refused: knot 0: .*"field".*"can".*', held.status)
    assert not held.controls.any()
    assert control.ILQR(model, cost, 12, derivatives="fd").solve(np.zeros(4)).refused == ""


def test_errors_of_mujoco_on_the_way_are_raised():
    model, cost = tumbler()
    model = control.planning_model(model, integrator="rk4")
    for derivatives in ("fd", "wasp"):
        planner = control.ILQR(model, cost, 5, derivatives=derivatives)
        with pytest.raises(mujacobian.MujacobianError, match=r"knot 0: .*RK4"):
            planner.improve(random_state(model, 1))


PUSH = """
<mujoco>
  <option timestep=".005" integrator="implicitfast" cone="elliptic"/>
  <worldbody>
    <geom type="plane" size="2 2 .1" friction=".6"/>
    <body name="stick" pos="-.25 0 .05">
      <joint name="x" type="slide" axis="1 0 0" damping="2"/>
      <joint name="y" type="slide" axis="0 1 0" damping="2"/>
      <geom type="cylinder" size=".03 .05" mass=".5" contype="2" conaffinity="2"/>
    </body>
    <body name="box" pos="0 0 .05"><freejoint/>
      <geom type="box" size=".08 .08 .05" mass=".4" friction=".6" contype="3" conaffinity="3"/>
    </body>
  </worldbody>
  <actuator><motor joint="x" ctrlrange="-10 10"/><motor joint="y" ctrlrange="-10 10"/></actuator>
  <sensor><framepos name="box" objtype="body" objname="box"/>
    <framepos name="stick" objtype="body" objname="stick"/></sensor>
</mujoco>"""


@pytest.mark.filterwarnings("ignore::mujacobian.ColliderNotConvergedWarning")
def test_pushing_a_box_with_a_cylinder_converges():
    """The cylinder touches the box upright, and the landscape has kinks near the best plan."""
    model = mujoco.MjModel.from_xml_string(PUSH)
    box, stick = (control.sensor(model, name) for name in ("box", "stick"))

    def last(times):
        target = np.full((len(times), 3), np.nan)
        target[-1] = 0.35, 0.15, 0.05
        return target

    terms = [
        control.Term("goal", box, weight=200.0, target=last),
        control.Term("gap", stick - box, control.SmoothAbs(0.01), weight=0.3),
        control.Term("effort", control.controls(model), weight=1e-3),
    ]
    planner = control.ILQR(model, control.Cost(model, terms), 60)
    plan = planner.solve(mujoco.MjData(model))
    assert plan.status == "converged"
    assert plan.refused == ""
    assert plan.cost < 0.5 * plan.initial_cost
    # a line search that failed is not repeated with the same regularization
    failed = plan.history.step == 0
    again = failed[1:] & failed[:-1]
    assert again.any()
    assert (np.diff(plan.history.regularization)[again] != 0).all()
