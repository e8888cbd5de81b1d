"""Plans and loops where sensors or steps have no exact derivative: nothing freezes."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import control

CHANGE = 1e-6  # relative error of the cost of small steps, which second derivatives cause


def spheres(is_solid):
    """Return a ball and a post at the same place, where neither contact nor distance is smooth."""
    return mujoco.MjModel.from_xml_string(
        f"""
        <mujoco>
          <option timestep=".01" gravity="0 0 0"/>
          <worldbody>
            <geom name="post" size=".1" contype="{int(is_solid)}"/>
            <body><joint name="x" type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
              <geom name="ball" size=".1" mass="1" contype="{int(is_solid)}"/></body>
          </worldbody>
          <actuator><motor joint="x" ctrlrange="-50 50"/></actuator>
          <sensor><distance name="gap" geom1="post" geom2="ball" cutoff="1"/>
            <jointpos name="x" joint="x"/></sensor>
        </mujoco>
        """
    )


def to_the_right(model, *more):
    """Return the cost of a ball that should move to the right."""
    terms = [
        control.Term("x", control.sensor(model, "x") - 0.3),
        control.Term("effort", control.controls(model), weight=1e-4),
    ]
    return control.Cost(model, [*terms, *more])


MIXTURES = {
    "sum": lambda gap, x: gap + x,
    "product": lambda gap, x: (x + 1) * gap,
    "function of a product": lambda gap, x: x * np.exp(np.sin(gap * x)),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mixture", MIXTURES)
def test_sensors_without_a_derivative_are_left_out(threads, mixture):
    model = spheres(is_solid=False)
    gap, x = control.sensor(model, "gap"), control.sensor(model, "x")
    # the whole row of the second term is left out, although one of its sensors has a derivative
    mixed = control.Term("mixed", MIXTURES[mixture](gap, x))
    size = 1e-6
    planner = control.ILQR(
        model, to_the_right(model, mixed), 12, threads=threads, step_sizes=(size,)
    )
    plan = planner.improve(np.zeros(4))
    assert plan.refused == ""
    assert len(plan.omitted) == 12
    assert plan.omitted[3].startswith('knot 3: sensor "gap" has no exact derivative here: ')
    assert "12 sensors left out" in repr(plan)
    assert not planner.linearization.C[:, 0].any()
    # the step is that of the cost without the row
    without = control.ILQR(model, to_the_right(model), 12, step_sizes=(size,)).improve(np.zeros(4))
    assert without.omitted == ()
    assert without.controls.any()
    assert np.array_equal(plan.controls, without.controls)
    assert plan.cost == pytest.approx(without.cost + plan.terms[:, 2].mean(), rel=CHANGE)
    # with finite differences, or where there is a derivative, nothing is left out
    planner.fallback = "fd"
    assert planner.improve(np.zeros(4)).omitted == ()
    planner.fallback = None
    assert planner.improve([0.05, 0, 0, 0]).omitted == ()


@pytest.mark.parametrize("mixture", MIXTURES)
def test_exact_hessians_leave_out_the_same_rows(mixture):
    model = spheres(is_solid=False)
    sensors = control.sensor(model, "gap"), control.sensor(model, "x")
    gap = control.Term("gap", MIXTURES[mixture](*sensors))
    plans = [
        control.ILQR(model, to_the_right(model, *more), 12, hessian="exact").solve(
            np.zeros(4), iterations=1
        )
        for more in ((gap,), ())
    ]
    assert plans[0].omitted
    assert plans[0].approximated == ""
    assert plans[0].history.exact.all()
    assert np.array_equal(plans[0].gains, plans[1].gains)


def test_sensitivities_need_all_sensors():
    model = spheres(is_solid=False)
    still = control.Term("still", control.sensor(model, "x"))
    gap = control.Term("gap", control.sensor(model, "gap"))
    plan = control.ILQR(model, control.Cost(model, [still, gap]), 5).solve(np.zeros(4))
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='knot 0: sensor "gap"'):
        plan.sensitivity()


def test_a_sensor_without_a_derivative_does_not_hold_the_loop():
    """The state would not change if each plan were refused at its first knot."""
    model = spheres(is_solid=False)
    cost = to_the_right(model, control.Term("gap", control.sensor(model, "gap"), weight=0.01))
    mpc = control.MPC(model, control.ILQR(model, cost, 12))
    with pytest.warns(RuntimeWarning, match=r"1 of 30 plans left out a sensor .* knot 0: sensor"):
        result = mpc.run(mujoco.MjData(model), 0.3, progress=False)
    assert result.omitted[0]
    assert not any(result.omitted[1:])
    assert result.to_dict()["plans_with_omitted_sensors"] == 1
    assert "1 plans left out sensors" in repr(result)
    assert result.states[-1, 0] > 0.2


@pytest.mark.parametrize("hessian", ["gauss-newton", "exact"])
def test_knots_after_a_refused_one_are_improved(hessian):
    """The contact has no derivative at the first knot; then the spheres separate."""
    model = spheres(is_solid=True)
    planner = control.ILQR(model, to_the_right(model), 12, regularization="none", hessian=hessian)
    plan = planner.improve(np.zeros(4))
    assert plan.refused.startswith("knot 0: contact between")
    assert plan.status == "iterations"
    assert plan.controls[0, 0] == 0
    assert (plan.controls[1:, 0] != 0).all()
    # the same as a plan from the second knot
    after = control.ILQR(model, to_the_right(model), 11, regularization="none", hessian=hessian)
    rest = after.improve(plan.states[1])
    assert rest.refused == ""
    assert np.allclose(plan.gains[1:], rest.gains, rtol=1e-9, atol=0)
    assert np.allclose(plan.controls[1:], rest.controls, rtol=1e-9, atol=0)


def crossing_capsules():
    """Return two links in a plane whose axes cross, where the contact has no normal of its own."""
    return mujoco.MjModel.from_xml_string(
        """
        <mujoco>
          <option timestep=".01" integrator="implicitfast" gravity="0 0 0"/>
          <default><joint axis="0 1 0" damping=".1"/><geom type="capsule" size=".04"/></default>
          <worldbody>
            <body><joint name="a"/><geom fromto="0 0 0 .5 0 0"/>
              <body pos=".5 0 0"><joint name="b"/><geom fromto="0 0 0 .1 0 .3"/>
                <body pos=".1 0 .3"><joint name="c"/><geom fromto="0 0 0 .5 0 0"/></body>
              </body></body>
          </worldbody>
          <actuator><motor joint="a" ctrlrange="-5 5"/><motor joint="b" ctrlrange="-5 5"/>
            <motor joint="c" ctrlrange="-5 5"/></actuator>
          <sensor><jointpos name="c" joint="c"/></sensor>
        </mujoco>
        """
    )


def test_capsules_that_cross_do_not_end_a_solve():
    """A planar hopper whose links cross in soft contacts ended a solve with an exception."""
    model = crossing_capsules()
    data = mujoco.MjData(model)
    data.qpos[2] = 2.2
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="centers of its geoms coincide"):
        mujacobian.linearize(model, data)
    away = control.Term("away", control.sensor(model, "c"))
    effort = control.Term("effort", control.controls(model), weight=1e-4)
    planner = control.ILQR(model, control.Cost(model, [away, effort]), 40)
    plan = planner.solve(data)  # friction holds the links at all knots
    assert plan.status.startswith("refused: knot 0: contact between geom 0 and geom 2")
    assert plan.cost == plan.initial_cost
    # without friction, the contact does not act in the plane
    model.geom_condim[:] = 1
    assert mujacobian.linearize(model, data).B.any()
    free = control.ILQR(model, control.Cost(model, [away, effort]), 40).solve(data)
    assert free.refused == ""
    assert free.cost < 0.9 * free.initial_cost
