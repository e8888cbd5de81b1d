"""Unsupported elements raise an error with their name, and only where they are active."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.reference import converge, jacobian, quiet
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained


def arm(*, option="", joint="", world="", rest="", asset=""):
    """Return the MJCF of a one-joint arm named "arm" with a ball-jointed "hand"."""
    return f"""
    <mujoco>
      <compiler angle="radian"/>
      <option {option}/>
      {asset}
      <worldbody>
        {world}
        <site name="base" pos="0 0 1.2"/>
        <body name="arm" pos="0 0 1">
          <joint name="elbow" axis="0 1 0" {joint}/>
          <geom name="link" type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
          <site name="tip" pos=".3 .05 .02"/>
          <body name="hand" pos=".3 0 0">
            <joint name="wrist" type="ball"/>
            <geom name="palm" size=".05" pos=".05 0 0" contype="0" conaffinity="0"/>
            <site name="finger" pos=".1 0 0"/>
          </body>
        </body>
      </worldbody>
      {rest}
    </mujoco>"""


def actuator(element, **options):
    return arm(rest=f"<actuator>{element}</actuator>", **options)


# name of the case: (MJCF, text that the message must contain)
STATIC = {
    "discrete noslip": (arm(option='integrator="discrete" noslip_iterations="2"'), "noslip"),
    "discrete motor": (
        actuator(
            '<dcmotor name="drive" joint="elbow" motorconst="1" resistance="1"/>',
            option='integrator="discrete"',
        ),
        "drive",
    ),
    "user dynamics": (
        actuator('<general name="custom" joint="elbow" dyntype="user" actdim="1"/>'),
        "custom",
    ),
    "user gain": (actuator('<general name="custom" joint="elbow" gaintype="user"/>'), "custom"),
    "user bias": (actuator('<general name="custom" joint="elbow" biastype="user"/>'), "custom"),
}


def forward(xml, *, qpos=None, qvel=None):
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    if qpos is not None:
        data.qpos[: len(qpos)] = qpos
    if qvel is not None:
        data.qvel[: len(qvel)] = qvel
    return model, data


def refuses(model, data, names):
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=names):
        mujacobian.linearize(model, data, sensors=False)
    A = np.full((2 * model.nv + model.na,) * 2, 7.0)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=names):
        mujacobian.transition(model, data, A)
    assert (A == 7.0).all(), "a refused call wrote to its output"


@pytest.mark.parametrize("case", STATIC)
def test_static_features_are_refused_by_name_and_listed(case):
    xml, names = STATIC[case]
    model, data = forward(xml, qpos=[0.3], qvel=[0.5, 0.1, 0.2, 0.3])
    data.ctrl[:] = 0.4
    refuses(model, data, names)
    listed = mujacobian.support(model)
    found = [entry for entry in listed if any(n in entry.element for n in names.split("|"))]
    assert found, [entry.element for entry in listed]
    assert all(entry.reason for entry in found)


def test_covered_models_are_listed_as_such():
    assert mujacobian.support(mujoco.MjModel.from_xml_string(arm())) == []


def test_sensors_are_listed():
    xml = arm(rest='<sensor><user name="encoder" dim="1"/></sensor>')
    model, data = forward(xml)
    assert [entry.element for entry in mujacobian.support(model) if "encoder" in entry.element]
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="encoder"):
        mujacobian.linearize(model, data)
    assert mujacobian.linearize(model, data, sensors=False).A.any()


def test_sensors_that_are_not_covered_are_refused_by_name():
    model, data = forward(arm(rest='<sensor><torque name="odd" site="base"/></sensor>'))
    assert [entry.element for entry in mujacobian.support(model)] == ['sensor "odd"']
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="odd"):
        mujacobian.linearize(model, data)
    assert mujacobian.linearize(model, data, sensors=False).A.any()


SIGNED_DISTANCES = """
<mujoco>
  <extension><plugin plugin="mujoco.sdf.torus"><instance name="ring">
    <config key="radius1" value=".2"/><config key="radius2" value=".05"/>
  </instance></plugin></extension>
  <asset><mesh name="ring"><plugin instance="ring"/></mesh></asset>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 {height}">
      <freejoint/>
      <geom name="ring" type="sdf" mesh="ring"><plugin instance="ring"/></geom>
    </body>
    <body pos=".2 0 {ball}"><freejoint/><geom name="ball" size=".1"/></body>
  </worldbody>
</mujoco>"""


def test_signed_distances_are_refused_where_they_touch():
    model, data = forward(SIGNED_DISTANCES.format(height=0.5, ball=1.5))
    assert mujacobian.linearize(model, data, sensors=False).A.any()
    model, data = forward(SIGNED_DISTANCES.format(height=0.5, ball=0.64))
    mujoco.mj_forward(model, data)
    assert data.ncon
    refuses(model, data, r'geom "ball" and geom "ring".*is an SDF, and MuJoCo\'s descent')


def test_signed_distances_touch_planes_with_vertices_of_their_mesh():
    model, data = forward(SIGNED_DISTANCES.format(height=0.035, ball=1.5))
    converge(model)
    data.qvel[:] = 0.1
    mujoco.mju_euler2Quat(data.qpos[3:7], np.array([0.02, 0.01, 0.3]), "xyz")
    assert judge_constrained(model, data, CONTACT_TOLERANCE) > 0.8
    assert (model.geom_type[data.contact.geom] == [0, int(mujoco.mjtGeom.mjGEOM_SDF)]).all()


def test_unnamed_elements_are_named_by_their_number():
    xml = actuator('<motor joint="elbow"/><general joint="elbow" gaintype="user"/>')
    model, data = forward(xml)
    refuses(model, data, r"actuator.*1")


def test_a_disabled_actuator_is_not_refused():
    motor = '<general name="custom" joint="elbow" gaintype="user" group="2"/>'
    xml = arm(option='actuatorgroupdisable="2"', rest=f"<actuator>{motor}</actuator>")
    model, data = forward(xml)
    lin = mujacobian.linearize(model, data)
    assert lin.A.any()
    assert not lin.B.any()


def test_fluid_without_any_medium_is_covered():
    model, data = forward(arm(option='wind="1 2 3"'))
    assert mujacobian.linearize(model, data).A.any()


# active rows: (MJCF, first coordinates)
ROWS = {
    "contact": (arm(world='<geom name="floor" type="plane" size="1 1 1" pos="0 0 1"/>'), [0.0]),
    "joint limit": (arm(joint='range="-.5 .5"'), [0.7]),
    "friction loss": (arm(joint='frictionloss=".1"'), [0.0]),
    "equality": (
        arm(
            rest='<equality><connect name="pin" body1="hand" body2="world" anchor=".1 0 0"/>'
            "</equality>"
        ),
        [0.0],
    ),
    "tendon limit": (
        arm(
            rest='<tendon><spatial name="rope" range="0 .1">'
            '<site site="base"/><site site="tip"/></spatial></tendon>'
        ),
        [0.2],
    ),
    "tendon friction": (
        arm(
            rest='<tendon><fixed name="cord" frictionloss=".1">'
            '<joint joint="elbow" coef="1"/></fixed></tendon>'
        ),
        [0.2],
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_active_constraint_rows_are_covered(case):
    xml, qpos = ROWS[case]
    model, data = forward(xml, qpos=qpos)
    mujoco.mj_forward(model, data)
    assert data.nefc > 0
    assert mujacobian.linearize(model, data).A.any()


PILE = """
<mujoco>
  <worldbody>
    <geom name="lower" {lower}/>
    <body name="top" pos=".02 .01 {height}"><freejoint/><geom name="upper" {upper}/></body>
  </worldbody>
</mujoco>"""
PLAIN = """<asset><hfield name="plain" nrow="3" ncol="3" size="1 1 .2 .1"
  elevation="0 0 0 0 0 0 0 0 1"/></asset>"""


def standing_on_a_plain():
    """Return a cylinder flat on a flat height field: any point of its cap may be the contact."""
    lower, upper = 'type="hfield" hfield="plain"', 'type="cylinder" size=".1 .1"'
    text = PILE.format(lower=lower, upper=upper, height=0.099)
    return forward(text.replace("<worldbody>", PLAIN + "<worldbody>"))


def test_contacts_without_a_feature_are_refused_with_the_names_of_both_geoms():
    model, data = standing_on_a_plain()
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    for name in ("lower", "upper"):
        refuses(model, data, name)
    data.qpos[2] += 1.0
    assert mujacobian.linearize(model, data).A.any(), "apart, there is nothing to refuse"


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_a_contact_without_force_needs_no_feature(cone):
    """The cylinder leaves the height field so fast that their contacts do not push."""
    model, data = standing_on_a_plain()
    model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}")
    converge(model)
    data.qvel[2] = 5.0
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    assert not data.efc_force.any()
    lin = mujacobian.linearize(model, data)
    expected = jacobian(model, data)
    assert np.abs(lin.A - expected.A).max() < 1e-8
    rows = mujacobian.diagnose(model, data).rows
    assert any(row.feature.startswith("unknown") for row in rows)


def test_the_legacy_collider_is_refused():
    cylinder = 'type="cylinder" size=".1 .1"'
    model, data = forward(PILE.format(lower=cylinder, upper=cylinder, height=0.199))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_NATIVECCD
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    refuses(model, data, "legacy collider")


def test_a_refused_contact_does_not_matter_when_contacts_are_disabled():
    model, data = standing_on_a_plain()
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert mujacobian.linearize(model, data).A.any()


def test_a_joint_inside_its_limits_is_covered():
    model, data = forward(arm(joint='range="-.5 .5"'), qpos=[0.2])
    assert mujacobian.linearize(model, data).A.any()


@pytest.mark.parametrize(
    ("bit", "name"), [(64, "ipc"), (128, "speculative"), (4096, "enable flag")]
)
def test_newer_flags_are_refused(bit, name):
    model, data = forward(arm())
    model.opt.enableflags |= bit
    refuses(model, data, name)


def test_flex_is_refused():
    xml = """
    <mujoco>
      <worldbody>
        <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".01" mass="1">
          <contact selfcollide="none" contype="0" conaffinity="0"/>
          <elasticity young="1e3" thickness=".01"/>
        </flexcomp>
      </worldbody>
    </mujoco>"""
    with quiet():
        model, data = forward(xml)
    refuses(model, data, "cloth|flex")
    assert mujacobian.support(model)


RIGID = """
<mujoco>
  <option timestep=".005"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="raft" pos="0 0 .5">
      <freejoint/>
      <geom type="box" size=".1 .1 .02" mass="1" contype="0" conaffinity="0"/>
      <flexcomp name="skin" type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".03" dim="2"
          rigid="true" mass="1"/>
    </body>
  </worldbody>
  <sensor><framepos objtype="body" objname="raft"/><e_potential/>
    <contact name="skin" body1="raft" data="force"/></sensor>
</mujoco>"""


def test_a_rigid_flex_is_exact_until_it_makes_a_contact():
    model, data = forward(RIGID, qvel=[0.1, 0.2, 0.3, 1, 2, 3])
    assert mujacobian.support(model) == []
    lin = mujacobian.linearize(model, data)
    found = jacobian(model, data)
    assert abs(lin.A - found.A).max() < 1e-8
    assert abs(lin.C - found.C).max() < 1e-8
    data.qpos[2] = 0.02
    mujoco.mj_forward(model, data)
    assert data.ncon
    assert data.nefc
    refuses(model, data, "skin")
    lin = mujacobian.linearize(model, data, fallback="fd")
    assert '"skin"' in lin.differenced[0].element
    # without constraint rows, the contact exerts no force, but a sensor may report it
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data.qpos[2] = 0.02
    mujacobian.linearize(model, data, sensors=False)


@pytest.mark.parametrize("callback", ["control", "passive", "act_dyn", "act_gain", "act_bias"])
def test_callbacks_are_refused(callback):
    model, data = forward(actuator('<motor name="motor" joint="elbow"/>'))
    install = getattr(mujoco, f"set_mjcb_{callback}")
    install((lambda m, d: None) if callback in ("control", "passive") else (lambda m, d, i: 0.0))
    try:
        refuses(model, data, callback)
    finally:
        install(None)
    assert mujacobian.linearize(model, data).A.any()
