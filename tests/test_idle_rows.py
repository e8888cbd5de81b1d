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
