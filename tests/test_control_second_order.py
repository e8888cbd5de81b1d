"""Planning with exact second derivatives: quadratic convergence, multipliers, fallbacks."""

import pickle
from dataclasses import replace
from itertools import pairwise

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import control
from mujacobian.errors import ArgumentError

HORIZON = 61
GRADIENT = 1e-9  # largest entry of the gradient at a solution
TOLERANCE = 1e-6  # of differences of optima
KEPT = 1e-12  # relative: the constraint solver starts from another acceleration
ARM = """
<mujoco>
  <option timestep=".02" integrator="implicitfast"/>
  <default><geom type="capsule" size=".03" contype="0" conaffinity="0"/></default>
  <worldbody>
    <body>
      <joint name="j0" axis="0 1 0" damping=".1"/>
      <geom fromto="0 0 0 .4 0 0" mass="1"/>
      <body pos=".4 0 0">
        <joint name="j1" axis="0 1 0" damping=".1"/>
        <geom fromto="0 0 0 .4 0 0" mass="1"/>
        <body pos=".4 0 0">
          <joint name="j2" axis="0 0 1" damping=".05"/>
          <geom fromto="0 0 0 .3 0 0" mass=".5"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="j0" gear="10" {0}/><motor joint="j1" gear="10" {0}/>
    <motor joint="j2" gear="5" {0}/>
  </actuator>
  <sensor>
    <jointpos name="p0" joint="j0"/><jointpos name="p1" joint="j1"/><jointpos name="p2" joint="j2"/>
    <jointvel name="v0" joint="j0"/><jointvel name="v1" joint="j1"/><jointvel name="v2" joint="j2"/>
  </sensor>
</mujoco>
"""
PUSHED = """
<mujoco>
  <option timestep=".005" cone="elliptic" integrator="{1}" tolerance="1e-12"/>
  <worldbody>
    <geom type="{2}" size="9 9 .1" pos="0 0 {3}"/>
    <body name="puck">
      <freejoint/>
      <geom type="{0}" size=".1 .1 .1" mass="1" friction=".4" solimp="0 .95 .01"/>
      <site name="puck" pos="0 .05 .02"/>
    </body>
  </worldbody>
  <actuator>
    <motor site="puck" gear="1 0 0 0 0 0"/><motor site="puck" gear="0 0 0 0 0 .2"/>
  </actuator>
  <sensor>
    <framepos name="place" objtype="site" objname="puck"/>
    <velocimeter name="speed" site="puck"/>
  </sensor>
</mujoco>
"""

# Sensors whose derivatives need calls of MuJoCo with the data
LIVE = """
<mujoco>
  <option timestep=".02"/>
  <default><geom contype="0" conaffinity="0"/><joint axis="0 1 0" damping=".1"/></default>
  <worldbody>
    <geom type="ellipsoid" pos=".6 0 .4" size=".2 .3 .25"/>
    <geom name="post" size=".05" pos="0 .4 .4"/>
    <body pos="0 0 .5">
      <joint name="a"/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
      <body pos="0 0 .4">
        <joint name="b"/><geom name="ball" size=".04" pos=".1 0 0"/>
        <site name="beam" euler="0 90 0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="a" gear="5"/><motor joint="b" gear="5"/></actuator>
  <sensor>{}</sensor>
</mujoco>
"""
LIVE_SENSORS = (
    '<rangefinder name="r" site="beam"/>',
    '<distance name="r" geom1="ball" geom2="post" cutoff="9"/>',
    '<fromto name="r" geom1="ball" geom2="post" cutoff="9"/>',
)


def arm(limits: str = "") -> tuple[mujoco.MjModel, control.Cost]:
    """Return an arm that must reach a pose at the end of the horizon, and its cost."""
    model = mujoco.MjModel.from_xml_string(ARM.format(limits))
    pose = control.stack(*(control.sensor(model, f"p{k}") for k in range(3)))
    speed = control.stack(*(control.sensor(model, f"v{k}") for k in range(3)))

    def at_end(times):
        goal = np.tile([1.2, -1.5, 0.8, 0.0, 0.0, 0.0], (len(times), 1))
        goal[times < (HORIZON - 1.5) * model.opt.timestep] = np.nan
        return goal * [10, 10, 10, 3, 3, 3]

    reach = control.Term("reach", control.stack(10 * pose, 3 * speed), weight=60, target=at_end)
    return model, control.Cost(model, [reach, control.Term("effort", control.controls(model))])


def gradient(planner: control.ILQR, plan: control.Plan) -> np.ndarray:
    """Return the derivative of the cost with respect to the controls, `(T - 1, nu)`."""
    passes = planner._passes
    passes.begin(planner.start_of(plan.states[0]))
    knots, _ = passes.follow(plan.policy, -1, np.inf)
    np.testing.assert_allclose(knots.controls[:-1], plan.controls, rtol=0, atol=1e-12)
    e, nx = passes.expansion, planner.cost.nx
    costate, out = e.gradient[-1, :nx], []
    for t in range(planner.horizon - 2, -1, -1):
        out.append(e.gradient[t, nx:] + e.B[t].T @ costate)
        costate = e.gradient[t, :nx] + e.A[t].T @ costate
    out[0] += e.gradient[-1, nx:]  # the last knot keeps the last control
    return np.array(out[::-1])


def solve(hessian: str, limits: str = "") -> tuple[control.ILQR, control.Plan]:
    model, cost = arm(limits)
    planner = control.ILQR(model, cost, HORIZON, hessian=hessian, tolerance=1e-15)
    return planner, planner.solve(np.zeros(6), iterations=200)


@pytest.fixture(scope="module")
def approximate():
    return solve("gauss-newton")


def last_iterations(plan):
    """Return the number of iterations in which the cost decreases by the last percent."""
    return int((plan.history.cost < 1.01 * plan.cost).sum())


@pytest.mark.parametrize("hessian", ["exact", "auto"])
def test_the_exact_hessian_converges_in_fewer_iterations(hessian, approximate):
    before = mujacobian.fd_count()
    planner, plan = solve(hessian)
    _, slow = approximate
    assert plan.status == "converged"
    assert plan.approximated == ""
    assert abs(gradient(planner, plan)).max() < GRADIENT
    assert len(plan.history.cost) < len(slow.history.cost)
    assert 2 * last_iterations(plan) < last_iterations(slow)
    assert mujacobian.fd_count() == before


def test_digits_double():
    _, plan = solve("auto")
    expected = plan.history.expected[plan.history.exact == 1] / plan.cost
    small = expected[expected < 1e-4]  # the decrease is the square of the error
    assert len(small) >= 3
    for now, then in pairwise(small):
        assert np.log(then) < 1.6 * np.log(now)


def test_auto_begins_with_gauss_newton():
    _, plan = solve("auto")
    exact = plan.history.exact
    assert exact[0] == 0
    assert exact[-1] == 1
    assert plan.timings.curvature > 0


def test_the_default_uses_no_curvature(approximate):
    planner, plan = approximate
    assert not plan.history.exact.any()
    assert plan.timings.curvature == 0
    assert "gauss-newton" in repr(planner)


def test_bounds_stay_active():
    limits = 'ctrllimited="true" ctrlrange="-.6 .6"'
    planner, plan = solve("auto", limits)
    u = plan.controls
    assert plan.status == "converged"
    assert (abs(u) <= 0.6).all()
    assert (abs(u) == 0.6).any()
    assert plan.history.exact.any()
    # the gradient points outward at a bound, and is zero between bounds
    slope = gradient(planner, plan)
    assert (slope[u == 0.6] <= 0).all()
    assert (slope[u == -0.6] >= 0).all()
    assert abs(slope[abs(u) < 0.6]).max() < GRADIENT


def test_the_curvature_is_the_hessian_of_the_steps(approximate):
    planner, plan = approximate
    model, passes = planner.model, planner._passes
    passes.begin(planner.start_of(plan.states[0]))
    knots, _ = passes.follow(plan.policy, -1, np.inf)
    nx, nz = planner.cost.nx, planner.cost.nx + model.nu
    values = np.random.default_rng(0).standard_normal((HORIZON, nx))
    assert passes.curve(knots, values) == ""
    added = (passes.curved - passes.expansion.hessian)[:, :nz, :nz]
    data = mujoco.MjData(model)
    for t in (0, 17, HORIZON - 2):
        data.qpos[:], data.qvel[:], data.ctrl[:] = *np.split(plan.states[t], 2), plan.controls[t]
        h = mujacobian.hessian(model, data, values[t + 1])
        wanted = np.block([[h.xx, h.xu], [h.xu.T, h.uu]])
        np.testing.assert_allclose(added[t], wanted, rtol=0, atol=1e-10 * abs(wanted).max())
        assert abs(wanted).max() > 0
    # no step begins at the last knot, and the sensors are linear
    assert not added[-1].any()


@pytest.mark.parametrize(
    ("geom", "integrator", "ground", "height"),
    [
        ("sphere", "Euler", "plane", 0),
        ("sphere", "implicitfast", "plane", 0),
        ("ellipsoid", "Euler", "box", -0.1),
        ("sphere", "RK4", "plane", 0),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_kept_steps_have_the_curvature_of_new_evaluations(
    geom, integrator, ground, height, threads
):
    """Steps with a converged collider or with stages (RK4) are not kept."""
    model = mujoco.MjModel.from_xml_string(PUSHED.format(geom, integrator, ground, height))
    ends = control.stack(control.sensor(model, "place"), control.sensor(model, "speed"))
    cost = control.Cost(
        model, [control.Term("rest", ends), control.Term("u", control.controls(model))]
    )
    planner = control.ILQR(model, cost, 12, threads=threads)
    data = mujoco.MjData(model)
    data.qpos[2], data.ctrl[:] = 0.099, (2.0, 0.5)
    assert_kept_steps_change_nothing(planner, data)
    assert abs(data.qvel).max() == 0


@pytest.mark.parametrize("sensor", LIVE_SENSORS)
def test_kept_steps_do_not_read_the_geoms_of_another_state(sensor):
    model = mujoco.MjModel.from_xml_string(LIVE.format(sensor))
    terms = [
        control.Term("r", control.sensor(model, "r"), target=0.05),
        control.Term("u", control.controls(model), weight=0.01),
    ]
    planner = control.ILQR(model, control.Cost(model, terms), 12, threads=1)
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = (0.3, 0.2), (2.0, 0.5)
    assert_kept_steps_change_nothing(planner, data)


def assert_kept_steps_change_nothing(planner, data):
    """Compare the curvature of kept steps with that of new evaluations, in two ways."""
    passes, start = planner._passes, planner.start_of(data)
    values = np.random.default_rng(0).standard_normal((12, planner.cost.nx))

    def curve(keeps, expands):
        passes.begin(start)
        passes.keeps = keeps
        knots, _ = passes.follow(planner._optimization.open_loop(start, None), -1, np.inf)
        if expands:
            passes.expand(knots)
        assert passes.curve(knots, values) == ""
        return passes.curved - passes.expansion.hessian

    wanted = curve(False, False)
    assert abs(wanted[0]).max() > 1e-3
    for expands in (False, True):
        found = curve(True, expands)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=KEPT * abs(wanted).max())
        np.testing.assert_array_equal(curve(True, expands), found)


def test_the_curvature_of_sensors_is_part_of_the_cost():
    """Without multipliers of the step, the Hessian is that of the cost of the knot."""
    xml = ARM.format("").replace(
        '<geom fromto="0 0 0 .3 0 0" mass=".5"/>',
        '<geom fromto="0 0 0 .3 0 0" mass=".5"/><site name="tip" pos=".3 0 0"/>',
    )
    xml = xml.replace("<sensor>", '<sensor><framepos name="tip" objtype="site" objname="tip"/>')
    model = mujoco.MjModel.from_xml_string(xml)
    reach = control.Term("reach", control.sensor(model, "tip") - [0.3, 0.2, 0.1], control.L2(0.1))
    planner = control.ILQR(model, control.Cost(model, [reach]), 2)
    state = np.random.default_rng(1).standard_normal(6)

    def expand(first):
        """Return the gradient and the Hessian of the first knot, with curvature."""
        plan = planner.improve(first)
        passes = planner._passes
        passes.begin(planner.start_of(first))
        knots, _ = passes.follow(plan.policy, -1, np.inf)
        assert passes.curve(knots, np.zeros((2, 6))) == ""
        return passes.expansion.gradient[0, :6].copy(), passes.curved[0, :6, :6].copy()

    h, columns = 1e-5, []
    for step in np.eye(6):
        columns.append((expand(state + h * step)[0] - expand(state - h * step)[0]) / (2 * h))
    wanted, found = np.array(columns), expand(state)[1]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7 * abs(wanted).max())
    approximate = planner._passes.expansion.hessian[0, :6, :6]
    assert abs(approximate - wanted).max() > 0.1 * abs(wanted).max()


def resolved(planner, plan, state, change):
    """Return controls and states of the plan from `state`, with a change of cost or state."""
    change()
    again = planner.solve(state, controls=plan.controls, iterations=50)
    assert again.status == "converged"
    return again.controls, again.states


def differences(planner, plan, vary, sizes=(1e-3, 5e-4)):
    """Return extrapolated central differences of the optimum; `vary(h)` returns a plan."""
    found = []
    for h in sizes:
        (ua, xa), (ub, xb) = vary(h), vary(-h)
        found.append([(ua - ub) / (2 * h), (xa - xb) / (2 * h)])
    return [(4 * fine - coarse) / 3 for coarse, fine in zip(*found, strict=True)]


@pytest.mark.parametrize("limits", ["", 'ctrllimited="true" ctrlrange="-.6 .6"'])
def test_sensitivities_are_differences_of_optima(limits):
    planner, plan = solve("auto", limits)
    cost, origin = planner.cost, plan.states[0].copy()
    is_inside = (abs(plan.controls) < 0.599) | (not limits)

    def compare(sensitivity, k, vary):
        controls, states = differences(planner, plan, vary)
        wanted = sensitivity.controls[..., k]
        scale = abs(wanted).max()
        assert scale > 1e-6
        np.testing.assert_allclose(
            controls[is_inside], wanted[is_inside], rtol=0, atol=TOLERANCE * scale
        )
        wanted = sensitivity.states[..., k]
        np.testing.assert_allclose(states, wanted, rtol=0, atol=TOLERANCE * abs(wanted).max())
        if limits:
            assert not sensitivity.controls[~is_inside, k].any()

    found = plan.sensitivity("state")
    for k in (0, 4):
        step = np.eye(6)[k]
        compare(
            found, k, lambda h, step=step: resolved(planner, plan, origin + h * step, lambda: None)
        )
    found = plan.sensitivity("weights")
    assert found.names == ("reach", "effort")
    initial = cost.weights.copy()

    def set_weights(weights):
        cost.weights[:] = weights

    compare(
        found,
        1,
        lambda h: resolved(planner, plan, origin, lambda: set_weights(initial + np.array([0, h]))),
    )
    set_weights(initial)
    # targets are switched on at the last knot only
    found = plan.sensitivity("targets")
    assert found.names == (*(f"reach[{k}]" for k in range(6)), *(f"effort[{k}]" for k in range(3)))
    reach = cost.terms[0]

    def set_target(h):
        cost.terms[0] = replace(reach, target=lambda times: reach.target(times) + h * np.eye(6)[1])

    compare(found, 1, lambda h: resolved(planner, plan, origin, lambda: set_target(h)))


def test_a_plan_that_has_not_converged_has_no_sensitivity():
    model, cost = arm()
    planner = control.ILQR(model, cost, HORIZON)
    plan = planner.solve(np.zeros(6), iterations=3)
    with pytest.raises(mujacobian.MujacobianError, match="has not converged"):
        plan.sensitivity("state")
    with pytest.raises(ArgumentError, match="of must be one of state, weights, targets, params"):
        plan.sensitivity("mass")
    with pytest.raises(mujacobian.MujacobianError, match="lost its planner"):
        pickle.loads(pickle.dumps(plan)).sensitivity("state")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hessian": "newton"}, "hessian must be one of gauss-newton, exact, auto, got 'newton'"),
        (
            {"hessian": "auto", "derivatives": "fd"},
            'hessian="auto" needs derivatives="analytic", got "fd"',
        ),
    ],
)
def test_bad_arguments(options, message):
    model, cost = arm()
    with pytest.raises(ArgumentError, match=message):
        control.ILQR(model, cost, HORIZON, **options)
