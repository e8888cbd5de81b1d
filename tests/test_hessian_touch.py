"""Second derivatives of sensors that read forces of contacts, connects and welds."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.oracle.second_order import cotangent, judge, judge_columns
from tests.scenes.cases import INTEGRATORS, random_state, sample
from tests.scenes.contact_scenes import STATES
from tests.test_contacts import CONES
from tests.test_hessian_contacts import walker
from tests.test_hessian_sensors import weights
from tests.test_hvp import judge as judge_product

TOLERANCE = 1e-7  # of the largest entry; the differences settle at about 1e-10
LEAST_SHARE = 0.8  # of the columns; the others are near a kink
VELOCITIES = "" if mujoco.mj_version() < 3016000 else "linvel angvel"  # new in 3.16
FIELDS = f"found force torque dist pos normal tangent {VELOCITIES}"
SENSORS = {
    "touch": '<touch site="sole"/><touch site="heel"/>',
    "force": '<force site="sole"/><force site="thigh"/><force site="trunk"/>',
    "torque": '<torque site="sole"/><torque site="thigh"/><torque site="trunk"/>',
    "slots": f'<contact num="3" data="{FIELDS}"/>',
    "wrenches": '<contact body1="foot" num="2" data="force torque"/>',
    "frames": '<contact body2="foot" num="2" data="dist pos normal tangent"/>',
    "velocities": f'<contact body2="foot" num="2" data="pos {VELOCITIES}"/>',
    "nearest": f'<contact num="1" reduce="mindist" data="{FIELDS}"/>',
    "strongest": '<contact num="1" reduce="maxforce" data="force pos"/>',
    "net": '<contact reduce="netforce" data="found force"/>',
    "net of a foot": '<contact body2="foot" reduce="netforce" data="force"/>',
    "accelerometer": '<accelerometer site="sole"/><accelerometer site="trunk"/>',
}
TIED = """
<mujoco>
  <option timestep=".004" tolerance="1e-15"/>
  <worldbody>
    <body name="first" pos="0 0 1">
      <freejoint/>
      <geom type="box" size=".1 .05 .07"/>
      <site name="root" euler="10 20 30"/>
      <body name="arm" pos=".2 0 0">
        <joint axis="0 1 .3"/>
        <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04"/>
        <site name="elbow" pos=".1 0 0" euler="30 0 20"/>
        <body name="hand" pos=".3 .1 0">
          <joint type="ball"/>
          <geom size=".05" pos=".1 0 0"/>
          <site name="wrist" pos=".02 .03 .1"/>
        </body>
      </body>
    </body>
    <body name="second" pos=".8 .1 1">
      <joint axis="1 .2 0"/><joint type="slide" axis="0 .3 1"/>
      <geom type="box" size=".05 .1 .05" euler="0 20 0"/>
      <site name="other"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="hand" body2="second" anchor=".1 .02 .03" solimp=".3 .9 .9 .4 2"/>
    <weld body1="arm" body2="second" torquescale=".4" solimp=".3 .9 .9 .4 2"/>
    <connect body1="first" body2="hand" anchor="0 .1 0" solimp=".3 .9 .9 .4 2"/>
  </equality>
  <actuator><motor site="elbow" gear="1 2 0 0 0 1"/></actuator>
  <sensor>{sensors}</sensor>
</mujoco>"""


@pytest.mark.parametrize(("kind", "cone", "condim"), sample(6, SENSORS, CONES, STATES))
def test_contacts(kind, cone, condim):
    model, data = walker(cone, condim, sensors=SENSORS[kind])
    mujoco.mj_forward(model, data)
    assert data.sensordata.any()
    sensed = weights(model)
    assert judge_columns(model, data, sensed=sensed, tolerance=TOLERANCE) >= LEAST_SHARE
    judge_product(model, data, cotangent(model), sensed)
    nothing = np.zeros(2 * model.nv)
    assert abs(mujacobian.hessian(model, data, nothing, sensed).xx).max() > 0
    assert not mujacobian.support(model, order=2)


@pytest.mark.parametrize("integrator", ["implicitfast", "implicit", "euler_explicit", "rk4"])
@pytest.mark.parametrize("kind", ["touch", "torque", "slots"])
def test_integrators(kind, integrator):
    """Sensors read the same state with all integrators."""
    results = []
    for name in ("euler", integrator):
        model, data = walker("elliptic", 4, name, sensors=SENSORS[kind])
        nothing = np.zeros(2 * model.nv)
        results.append(mujacobian.hessian(model, data, nothing, weights(model)))
    for block in ("xx", "xu", "uu"):
        first, second = (getattr(result, block) for result in results)
        scale = max(abs(results[0].xx).max(), 1)
        np.testing.assert_allclose(second, first, rtol=0, atol=1e-11 * scale)
    judge_product(model, data, cotangent(model), weights(model))


@pytest.mark.parametrize("integrator", ["euler", "implicit"])
@pytest.mark.parametrize("kind", ["force", "torque"])
def test_connects_and_welds(kind, integrator):
    """The anchors are apart, and one connect is inside of the subtree of a sensor."""
    sites = ("root", "elbow", "wrist", "other")
    sensors = "".join(f'<{kind} site="{name}"/>' for name in sites)
    model = mujoco.MjModel.from_xml_string(TIED.format(sensors=sensors))
    INTEGRATORS[integrator](model)
    for seed in range(2):
        data = random_state(model, np.random.default_rng(seed), forces=True)
        mujoco.mj_forward(model, data)
        sensed = weights(model)
        assert data.nefc == 3 + 6 + 3
        judge(model, data, sensed=sensed, tolerance=TOLERANCE)
        judge_product(model, data, cotangent(model), sensed)


def test_the_torque_about_a_centroid_raises():
    sensors = '<contact name="s" reduce="netforce" data="force torque"/>'
    model, data = walker("elliptic", 3, sensors=sensors)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='sensor "s"') as raised:
        mujacobian.hessian(model, data, np.zeros(2 * model.nv), weights(model))
    assert "centroid" in raised.value.reason
    assert [u.element for u in mujacobian.support(model, order=2)] == ['sensor "s"']


def test_spatial_tendons_that_leave_the_subtree_raise():
    tendon = '<tendon><spatial><site site="wrist"/><site site="other"/></spatial></tendon>'
    text = TIED.format(sensors='<force name="s" site="elbow"/>')
    model = mujoco.MjModel.from_xml_string(text.replace("</mujoco>", f"{tendon}</mujoco>"))
    data = random_state(model, np.random.default_rng(0))
    assert np.isfinite(mujacobian.linearize(model, data).C).all()
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='sensor "s"') as raised:
        mujacobian.hessian(model, data, np.zeros(2 * model.nv), weights(model))
    assert "tendon" in raised.value.reason
    assert [u.element for u in mujacobian.support(model, order=2)] == ['sensor "s"']
