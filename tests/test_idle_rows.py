"""Rows of contacts that cannot push their bodies do not affect the derivative."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained

# A turret on a vertical axis that penetrates the floor, as in Menagerie's ur10e: J of its contact
# is zero, R is 2e-15 and the force is 1e16.
TURRET = """
<mujoco>
  <option integrator="{integrator}" cone="{cone}"/>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 .1" {pose}/>
    <body {pose}>
      <body name="turret" pos="0 0 .1">
        <joint name="pan" axis="0 0 1" damping="1"/>
        <geom name="drum" type="capsule" size=".06" fromto="0 0 -.05 0 0 .1"/>
        <body pos="0 0 .1">
          <joint name="lift" axis="0 1 0" damping="1"/>
          <geom name="arm" type="capsule" size=".04" fromto="0 0 0 .5 0 0"/>
        </body>
      </body>
    </body>
    <body name="ball" pos=".5 .3 .049"><freejoint/><geom size=".05"/></body>
  </worldbody>
  <sensor>
    <jointvel joint="pan"/><framelinacc objtype="body" objname="ball"/>
  </sensor>
</mujoco>
"""
# MuJoCo's test model frame1: a ball that turns about its center, in a fixed one and beside others.
NESTED = """
<mujoco>
  <worldbody>
    <frame pos=".1 .2 .3">
      <geom size=".1"/>
      <body><joint/><geom size=".1"/></body>
      <body>
        <frame pos=".01 .02 .03"><geom size=".1"/><body><geom size=".1"/></body></frame>
      </body>
    </frame>
  </worldbody>
</mujoco>
"""
# A slide across the top of a fixed ball: J is zero, but its derivative is not.
SUMMIT = """
<mujoco>
  <worldbody>
    <geom name="hill" size=".5"/>
    <body name="rider" pos="0 0 .599">
      <joint type="slide" axis="1 0 0"/><geom size=".1" condim="1"/>
    </body>
  </worldbody>
</mujoco>
"""
# Two links whose capsules share an end at the joint between them, as in dm_control's ant: the
# contact point is a pivot of both bodies, and its normal is a fallback.
LINKS = """
<mujoco>
  <option integrator="{integrator}" cone="{cone}"/>
  <worldbody>
    <body>
      <freejoint/><geom name="trunk" type="box" size=".1 .1 .1"/>
      <body name="upper">
        <geom name="thigh" type="capsule" size=".08" fromto="0 0 0 .2 .2 0"/>
        <body name="lower" pos=".2 .2 0">
          <joint {joint}/><geom name="shin" type="capsule" size="{size}" fromto="0 0 0 .2 .1 -.3"/>
        </body>
      </body>
    </body>
  </worldbody>
  <contact><pair geom1="thigh" geom2="shin" condim="{condim}"/></contact>
</mujoco>
"""


def links(integrator="Euler", cone="pyramidal", joint='axis="1 2 3"', size=".08", condim=3, seed=0):
    text = LINKS.format(integrator=integrator, cone=cone, joint=joint, size=size, condim=condim)
    model = reference.converge(mujoco.MjModel.from_xml_string(text))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    mujoco.mj_integratePos(model, data.qpos, 0.3 * rng.standard_normal(model.nv), 1)
    data.qvel[:] = 0.3 * rng.standard_normal(model.nv)
    mujoco.mj_forward(model, data)
    return model, data


def turret(integrator="Euler", cone="pyramidal", pose=""):
    text = TURRET.format(integrator=integrator, cone=cone, pose=pose)
    model = reference.converge(mujoco.MjModel.from_xml_string(text))
    data = mujoco.MjData(model)
    data.qpos[:2] = 0.3, 0.2
    data.qvel[:] = np.linspace(0.1, 0.3, model.nv)
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit", "RK4"])
def test_a_contact_that_cannot_push_is_left_out(integrator, cone):
    model, data = turret(integrator, cone)
    assert abs(data.efc_force).max() > 1e15
    assert judge_constrained(model, data, CONTACT_TOLERANCE) > 0.8
    assert mujacobian.linearize(model, data).A[model.nv + 1, 1] != 0


def test_products_agree_with_the_jacobian():
    model, data = turret()
    lin = mujacobian.linearize(model, data)
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 2 * model.nv))
    forward, _ = mujacobian.jvp(model, data, x)
    assert forward == pytest.approx(lin.A @ x, rel=1e-12, abs=1e-12)
    assert mujacobian.vjp(model, data, y).state == pytest.approx(y @ lin.A, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("field", ["body_pos", "geom_pos", "geom_size"])
def test_parameters_that_move_such_a_contact_are_refused(field):
    model, data = turret()
    name = "turret" if field.startswith("body") else "drum"
    params = mujacobian.Parameters(model, [(field, name)])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r'geom "drum".*cannot push'):
        mujacobian.vjp(model, data, np.ones(2 * model.nv), params=params)


def test_masses_are_parameters_as_ever():
    model, data = turret()
    params = mujacobian.Parameters(model, ["body_mass"])
    gradient = mujacobian.vjp(model, data, np.ones(2 * model.nv), params=params).params
    assert np.isfinite(gradient).all()
    assert gradient.any()


def test_rounding_that_huge_forces_make_visible_is_refused():
    model, data = turret(pose='axisangle="1 2 3 .7"')
    assert abs(data.qfrc_constraint[0]) > 1e-6
    with pytest.raises(mujacobian.MujacobianError, match="rounding of huge constraint forces"):
        mujacobian.linearize(model, data)


def test_rounding_of_huge_forces_is_invisible_where_a_stiff_contact_holds_the_joint():
    """MuJoCo's J of the central contact is rounding; friction at the other one moves the joint."""
    model = reference.converge(mujoco.MjModel.from_xml_string(NESTED))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == 3
    assert abs(data.efc_force).max() > 1e17
    assert judge_constrained(model, data, CONTACT_TOLERANCE, forces=False) == 1


def test_a_row_that_is_zero_only_here_is_not_left_out():
    model = reference.converge(mujoco.MjModel.from_xml_string(SUMMIT))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    A = mujacobian.linearize(model, data).A
    expected = np.empty_like(A)
    mujoco.mjd_transitionFD(model, data, 1e-7, True, expected, None, None, None)
    assert abs(expected[1, 0]) > 1e-3
    assert pytest.approx(expected, rel=1e-6) == A


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
@pytest.mark.parametrize("joint", ['axis="1 2 3"', 'type="ball"'])
def test_a_pivot_at_the_joint_of_two_capsules_is_left_out(joint, integrator, cone):
    for condim in (1, 3):
        model, data = links(integrator, cone, joint, condim=condim)
        assert data.ncon == 1
        assert judge_constrained(model, data, CONTACT_TOLERANCE) > 0.8


@pytest.mark.parametrize(
    "changed",
    [
        {"size": ".07"},
        {"condim": 4},
        {"joint": 'type="slide" axis="1 2 3"'},
        {"joint": 'axis="1 2 3" pos="0 0 .1"'},
    ],
    ids=str,
)
def test_other_coincident_centers_raise(changed):
    model, data = links(**changed)
    data.qpos[7] = 0  # the centers coincide in this position only, or in every one
    mujoco.mj_forward(model, data)
    assert data.ncon
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"thigh.*shin.*centers.*coincide"):
        mujacobian.linearize(model, data)
