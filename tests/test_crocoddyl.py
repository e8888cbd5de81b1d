"""Our step inside Crocoddyl: the manifold, the derivatives, a solve."""

import mujoco
import numpy as np
import pytest

from mujacobian import control
from mujacobian.control import tasks

crocoddyl = pytest.importorskip("crocoddyl")

from mujacobian.control.crocoddyl import ActionModel, State  # noqa: E402

EPS = 1e-5
CENTERED = 1e-7  # error of centered differences with EPS, for numbers of order one

BODIES = """
<mujoco>
  <option timestep=".01" integrator="implicitfast"/>
  <worldbody>
    <body name="root"><freejoint/><geom type="box" size=".1 .2 .3"/>
      <body pos=".3 0 0"><joint name="ball" type="ball"/><geom type="capsule" size=".05 .2"/></body>
    </body>
  </worldbody>
  <actuator>
    <general joint="ball" gear="1 0 0" dyntype="filter" dynprm=".1"/>
    <motor joint="ball" gear="0 1 0"/>
  </actuator>
  <sensor><framepos name="place" objtype="body" objname="root"/></sensor>
</mujoco>
"""


def differences(function, n):
    """Return centered differences of a function of a tangent vector of n numbers."""
    columns = []
    for k in range(n):
        step = np.zeros(n)
        step[k] = EPS
        columns.append((function(step) - function(-step)) / (2 * EPS))
    return np.array(columns).T


@pytest.fixture
def model():
    return mujoco.MjModel.from_xml_string(BODIES)


def states(state, seed):
    rng = np.random.default_rng(seed)
    return [state.integrate(state.zero(), rng.uniform(-1, 1, state.ndx)) for _ in range(2)]


def test_diff_undoes_integrate(model):
    state = State(model)
    x, y = states(state, 0)
    np.testing.assert_allclose(state.integrate(x, state.diff(x, y)), y, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 0.0])
def test_jacobians_of_the_manifold(model, scale):
    """The Jacobians are right at large, small and zero rotations."""
    state = State(model)
    x, _ = states(state, 1)
    dx = scale * np.random.default_rng(2).uniform(-1, 1, state.ndx)
    y = state.integrate(x, dx)
    moved = state.integrate
    expected = {
        "diff, first": differences(lambda e: state.diff(moved(x, e), y), state.ndx),
        "diff, second": differences(lambda e: state.diff(x, moved(y, e)), state.ndx),
        "integrate, first": differences(lambda e: state.diff(y, moved(moved(x, e), dx)), state.ndx),
        "integrate, second": differences(lambda e: state.diff(y, moved(x, dx + e)), state.ndx),
    }
    given = [*state.Jdiff(x, y), *state.Jintegrate(x, dx)]
    for (name, wanted), J in zip(expected.items(), given, strict=True):
        np.testing.assert_allclose(J, wanted, atol=CENTERED, err_msg=name)


def test_derivatives_of_the_action(model):
    """Fx, Fu, Lx and Lu agree with differences of the results of calc."""
    place = control.sensor(model, "place")
    cost = control.Cost(
        model,
        [
            control.Term("place", place, control.L2(0.1), target=lambda t: np.outer(t, [1, 2, 3])),
            control.Term("effort", control.controls(model), weight=0.1),
        ],
    )
    action = ActionModel(model, cost, time=0.3)
    data = action.createData()
    x, _ = states(action.state, 3)
    u = np.array([0.3, -0.2])

    def step(dx, du):
        action.calc(data, action.state.integrate(x, dx), u + du)
        return np.append(action.state.diff(x, data.xnext), data.cost)

    nx, nu = action.state.ndx, action.nu
    action.calc(data, x, u)
    action.calcDiff(data, x, u)
    Fx, Fu, Lx, Lu = data.Fx.copy(), data.Fu.copy(), data.Lx.copy(), data.Lu.copy()
    # differences relative to x are mapped to the tangent space at x'
    action.calc(data, x, u)
    there = action.state.Jdiff(x, data.xnext, crocoddyl.Jcomponent.second)
    by_x = differences(lambda e: step(e, np.zeros(nu)), nx)
    by_u = differences(lambda e: step(np.zeros(nx), e), nu)
    np.testing.assert_allclose(there @ Fx, by_x[:-1], atol=CENTERED)
    np.testing.assert_allclose(there @ Fu, by_u[:-1], atol=CENTERED)
    np.testing.assert_allclose(Lx, by_x[-1], atol=CENTERED)
    np.testing.assert_allclose(Lu, by_u[-1], atol=CENTERED)
    assert np.abs(Lx).max() > 0.1


def test_terminal_action_has_no_control(model):
    cost = control.Cost(model, [control.Term("place", control.sensor(model, "place"))])
    action = ActionModel(model, cost)
    data = action.createData()
    x, _ = states(action.state, 4)
    action.calc(data, x)
    action.calcDiff(data, x)
    assert data.cost == pytest.approx(x[:3] @ x[:3] / 2)
    np.testing.assert_allclose(data.Lx[:3], x[:3], atol=1e-12)


def test_ranges_of_some_controls_are_kept():
    ranged = BODIES.replace('gear="0 1 0"', 'gear="0 1 0" ctrllimited="true" ctrlrange="-1 2"')
    model = mujoco.MjModel.from_xml_string(ranged)
    cost = control.Cost(model, [control.Term("place", control.sensor(model, "place"))])
    action = ActionModel(model, cost)
    assert action.has_control_limits
    assert action.u_lb.tolist() == [-np.inf, -1]
    assert action.u_ub.tolist() == [np.inf, 2]


def test_a_step_that_diverges_is_not_the_first_state(model):
    """MuJoCo resets a diverged state to the first state, which must not be the result."""
    cost = control.Cost(model, [control.Term("place", control.sensor(model, "place"))])
    action = ActionModel(model, cost)
    data = action.createData()
    x = action.state.zero()
    x[0] = 1e12
    action.calc(data, x, np.zeros(2))
    assert np.isnan(data.xnext).all()


def test_swing_up():
    """FDDP with our action swings a pole up, like our own planner."""
    task = tasks.load("cartpole")
    h = task.planned.opt.timestep
    actions = [ActionModel(task.planned, task.cost, time=k * h) for k in range(task.horizon)]
    start = np.array([0, 3.1, 0, 0])
    problem = crocoddyl.ShootingProblem(start, actions[:-1], actions[-1])
    solver = crocoddyl.SolverBoxFDDP(problem)
    controls = [np.zeros(1)] * (task.horizon - 1)
    solver.solve(problem.rollout(controls), controls, 100)
    angle = solver.xs[-1][1]
    assert abs(np.cos(angle) - 1) < 0.02
    assert np.abs(solver.us).max() <= 1
    own = task.planner().solve(start, iterations=100)
    assert solver.cost / task.horizon == pytest.approx(own.cost, rel=0.2)
