"""Sensitivities of optimal plans with respect to model parameters, against solved variants."""

import mujoco
import numpy as np
import pytest

import mujacobian
from benchmarks.exact_planning import sliding_tip
from mujacobian import control
from mujacobian.errors import ArgumentError
from tests.test_control_second_order import ARM, TOLERANCE, differences, solve


def changed_plans(planner, plan, params, k):
    """Return a function of h with the plan of the model with another value of parameter k."""

    def vary(h):
        values = params.values
        values[k] += h * abs(values[k])
        model = params.apply(values)
        cost = control.Cost(model, planner.cost.terms)
        other = control.ILQR(model, cost, planner.horizon, hessian="auto", tolerance=1e-15)
        # a plan that begins with given states has only one attempt, which stays near them
        given = {"controls": plan.controls, "states": plan.states}
        again = other.solve(plan.states[0], **given, iterations=50)
        # rounding may end the last search, since the tolerance is that of rounding
        assert again.status in ("converged", "no improvement")
        return again.controls, again.states

    return vary


def compare_parameters(planner, plan, items, sizes=(1e-3, 5e-4)):
    params = mujacobian.Parameters(planner.model, items)
    count = mujacobian.fd_count()
    found = plan.sensitivity("params", params=params)
    assert mujacobian.fd_count() == count
    assert found.names == params.names
    assert found.controls.shape == (*plan.controls.shape, len(params))
    assert not found.states[0].any()
    # a contact without torsion and rolling reads one coefficient of friction
    assert found.controls.any(axis=(0, 1)).sum() == 2
    for k, value in enumerate(params.values):
        vary = changed_plans(planner, plan, params, k)
        controls, states = differences(planner, plan, vary, sizes)
        for wanted, each in ((controls, found.controls), (states, found.states)):
            made = each[..., k] * abs(value)
            scale = abs(made).max()
            np.testing.assert_allclose(made, wanted, rtol=0, atol=TOLERANCE * scale)


@pytest.mark.parametrize("limits", ["", 'ctrllimited="true" ctrlrange="-.6 .6"'])
def test_an_arm_with_and_without_bounds(limits):
    planner, plan = solve("auto", limits)
    compare_parameters(planner, plan, [("body_mass", [2]), ("dof_damping", "j1")])


@pytest.mark.parametrize(
    ("has_product", "integrator"), [(False, "implicitfast"), (True, "implicitfast"), (False, "RK4")]
)
def test_curved_sensors(has_product, integrator):
    """The cost reads the position and the acceleration of the tip, which depends on the mass."""
    sensors = (
        '<sensor><framepos name="tip" objtype="site" objname="tip"/>'
        '<framelinacc name="shock" objtype="site" objname="tip"/>'
    )
    xml = ARM.format("").replace("implicitfast", integrator)
    xml = xml.replace(
        '<geom fromto="0 0 0 .3 0 0" mass=".5"/>',
        '<geom fromto="0 0 0 .3 0 0" mass=".5"/><site name="tip" pos=".3 0 0"/>',
    )
    model = mujoco.MjModel.from_xml_string(xml.replace("<sensor>", sensors))
    reach = control.Term("reach", control.sensor(model, "tip") - [0.5, 0.2, 0.4], control.L2(0.1))
    shock = control.Term("shock", control.sensor(model, "shock"), weight=1e-4)
    effort = control.Term("effort", control.controls(model), weight=0.01)
    terms = [reach, shock, effort]
    if has_product:  # its second derivative by the sensors enters, too
        product = np.sin(control.sensor(model, "shock")[2] / 5) * control.sensor(model, "tip")
        terms.append(control.Term("product", product - 0.3, control.L2(0.2), 0.1))
    cost = control.Cost(model, terms)
    planner = control.ILQR(model, cost, 21, hessian="auto", tolerance=1e-15)
    plan = planner.solve([0.2, 0.3, 0.1, 0, 0, 0], iterations=200)
    compare_parameters(planner, plan, [("body_mass", [3]), ("dof_damping", "j0")])


def test_a_sliding_contact():
    problem = sliding_tip("elliptic")
    model, controls = problem.model, problem.guess[:20]
    model.geom_friction[-1, 0] *= 1.1  # the larger coefficient counts
    names = [model.joint(j).name for j in range(model.njnt)]
    q, v = (control.stack(*(control.sensor(model, f"{k}_{n}") for n in names)) for k in "qv")
    terms = [
        control.Term("pose", q, control.L2(0.3), 1.0, problem.goal[: model.nq]),
        control.Term("still", v, weight=0.01),
        control.Term("effort", control.controls(model), weight=0.02),
    ]
    planner = control.ILQR(model, control.Cost(model, terms), 21, hessian="auto", tolerance=1e-15)
    plan = planner.solve(problem.start, controls=controls, iterations=300)
    mass, geom = model.body("tip").id, model.ngeom - 1
    items = [("body_mass", [mass]), ("geom_friction", [geom])]
    compare_parameters(planner, plan, items, (1e-4, 5e-5))


def test_wrong_arguments():
    planner, plan = solve("auto")
    params = mujacobian.Parameters(planner.model, ["body_mass"])
    with pytest.raises(ArgumentError, match=r'of="params" needs params'):
        plan.sensitivity("params")
    with pytest.raises(ArgumentError, match=r'params are only for of="params"'):
        plan.sensitivity("state", params=params)
    other = mujoco.MjModel.from_xml_string("<mujoco/>")
    with pytest.raises(ArgumentError, match="do not belong together"):
        plan.sensitivity("params", params=mujacobian.Parameters(other, ["gravity"]))
    frames = mujacobian.Parameters(planner.model, ["body_pos"])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="body_position"):
        plan.sensitivity("params", params=frames)
