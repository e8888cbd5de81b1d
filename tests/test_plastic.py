"""Plastic springs (MuJoCo 4.0): the force acts about a rest position that is a state."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.oracle.judge import judge
from tests.scenes.cases import INTEGRATORS, random_state

pytestmark = pytest.mark.skipif(
    not hasattr(mujoco.MjData, "plastic"), reason="plastic springs are new in MuJoCo 4.0"
)

WIRE = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep=".003"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body pos="0 0 1">
      <joint name="hinge" axis=".1 1 0" stiffness="30 4 2" springyield=".1" springref=".2"/>
      <joint name="slide" type="slide" axis="0 0 1" stiffness="50" springyield=".02"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/><site name="a" pos=".3 .1 0"/>
      <body pos=".3 0 0">
        <joint name="ball" type="ball" stiffness="20 3 1" springyield=".2" damping=".1"/>
        <geom type="box" size=".1 .05 .03" pos=".1 0 0"/><site name="b" pos=".2 0 .05"/>
        <body pos=".2 0 0">
          <joint name="elastic" axis="0 1 0" stiffness="10" springref=".1"/>
          <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/><site name="c" pos=".2 0 0"/>
        </body>
      </body>
    </body>
    <site name="wall" pos="-.3 .2 1.3"/>
  </worldbody>
  <tendon>
    <spatial name="cable" stiffness="40" damping="2" springlength=".1 .5" springyield=".05">
      <site site="wall"/><site site="b"/><site site="c"/>
    </spatial>
    <spatial name="slack" stiffness="60" springlength="0 .1" springyield=".02">
      <site site="a"/><site site="b"/>
    </spatial>
    <fixed name="cord" stiffness="30 2" springlength=".1" springyield=".03">
      <joint joint="hinge" coef=".5"/><joint joint="elastic" coef="-.8"/>
    </fixed>
  </tendon>
</mujoco>"""


def deformed(model, rng):
    """Return a random state whose springs have yielded at random."""
    data = random_state(model, rng, scale=0.3)
    for joint in range(model.njnt):
        adr = model.jnt_plasticadr[joint]
        if adr < 0:
            continue
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_BALL:
            mujoco.mju_quatIntegrate(data.plastic[adr : adr + 4], rng.normal(size=3), 0.3)
        else:
            data.plastic[adr] += 0.2 * rng.normal()
    for tendon in range(model.ntendon):
        adr = model.tendon_plasticadr[tendon]
        data.plastic[adr : adr + 2] += 0.1 * rng.uniform()
    return data


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_springs_act_about_their_plastic_rest(integrator):
    model = mujoco.MjModel.from_xml_string(WIRE)
    assert np.count_nonzero(model.jnt_plasticadr >= 0) == 3
    assert (model.tendon_plasticadr >= 0).all()
    INTEGRATORS[integrator](model)
    rng = np.random.default_rng(0)
    for _ in range(3):
        data = deformed(model, rng)
        share, _ = judge(model, data)
        assert share == 1


def test_the_rest_position_matters():
    """The polynomial stiffness of the hinge differs between two rest positions."""
    model = mujoco.MjModel.from_xml_string(WIRE)
    data = mujoco.MjData(model)
    before = mujacobian.linearize(model, data).A
    data.plastic[model.jnt_plasticadr[0]] += 0.5
    assert abs(mujacobian.linearize(model, data).A - before).max() > 1e-3


def test_a_spring_that_yields_after_the_step_has_the_same_derivative():
    """The yield moves the rest position only after the positions were updated."""
    model = mujoco.MjModel.from_xml_string(WIRE)
    data = deformed(model, np.random.default_rng(1))
    kept = mujacobian.linearize(model, data).A
    model.jnt_springyield[:] = 1e9
    model.tendon_springyield[:] = 1e9
    np.testing.assert_array_equal(mujacobian.linearize(model, data).A, kept)
