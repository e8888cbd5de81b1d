"""Sensors of forces and contacts against differences of the step."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.scenes import cases
from tests.test_sensors import CONSTRAINED_TOLERANCE, SMOOTH_TOLERANCE, judge

SITES = ("hip", "shank", "sole", "base", "hook")
WRENCHES = "".join(f'<force site="{s}"/><torque site="{s}"/>' for s in SITES)
WORLD_FORCE = '<force site="world"/>'
FIELDS = "found force torque dist pos normal tangent"
NEWER_FIELDS = f"{FIELDS} linvel angvel"

# a leg on a floating trunk, a pendulum on a static post, a free block
BODIES = """
    <site name="world" pos=".3 .2 .1" euler="10 20 30"/>
    <body name="trunk" pos="0 0 .75">
      <freejoint/>
      <geom name="hull" type="box" size=".2 .1 .05" pos=".02 0 .01" euler="10 20 30" mass="2"/>
      <site name="base" pos=".05 .02 .03" euler="30 10 -20"/>
      <body name="thigh" pos=".1 .02 0">
        <joint name="hip" type="ball" damping=".1"/>
        <geom name="thigh" type="capsule" fromto="0 0 0 0 .02 -.3" size=".03" mass=".7"/>
        <site name="hip" pos="0 .01 .02" euler="50 0 10"/>
        <body name="shank" pos="0 .02 -.3">
          <joint name="knee" axis="0 1 .2" stiffness="3" damping=".05"/>
          <joint name="spring" type="slide" axis="0 .1 1" stiffness="200" damping="2"/>
          <geom name="shank" type="capsule" fromto="0 0 0 .02 0 -.3" size=".02" mass=".4"/>
          <site name="shank" pos=".01 .02 -.05" euler="0 20 70"/>
          <body name="foot" pos=".02 0 -.3">
            <joint name="ankle" axis="0 1 0" stiffness="2" armature=".01"/>
            <geom name="sole" type="box" size=".08 .05 .02" pos=".02 0 -.02" mass=".2"/>
            <site name="sole" pos=".02 0 -.05" size=".15 .1 .05" type="box" euler="5 0 0"/>
            <site name="toe" type="sphere" pos=".1 0 -.04" size=".06"/>
          </body>
        </body>
      </body>
    </body>
    <body name="post" pos=".6 .3 .5" euler="0 0 20">
      <geom name="post" type="cylinder" size=".05 .5" mass="1" contype="0" conaffinity="0"/>
      <site name="hook" pos="0 0 .4" euler="40 0 0"/>
      <body name="bob" pos="0 0 .4">
        <joint name="swing" axis="1 .2 0"/>
        <geom name="bob" type="capsule" fromto="0 0 0 0 .1 -.3" size=".03" mass=".5"/>
        <geom name="ball" type="sphere" size=".06" pos="0 .1 -.2" mass=".1" conaffinity="0"/>
        <site name="tip" pos="0 .1 -.3"/>
        <site name="wheel" pos="0 .2 -.1"/>
      </body>
    </body>
    <body name="block" pos="-.5 .1 .098" euler="3 2 40">
      <freejoint/>
      <geom name="block" type="sphere" size=".1" mass="1.5"/>
      <site name="patch" type="box" size=".2 .2 .2"/>
    </body>
"""
FLOOR = """<geom name="floor" type="plane" size="3 3 .1" friction=".6 .02 .01"
  contype="1" conaffinity="0" GROUND/>"""
TENDONS = """
  <tendon>
    <spatial name="cord" stiffness="40" damping="2" springlength=".3" armature=".05">
      <site site="base"/><site site="shank"/><pulley divisor="2"/>
      <site site="hip"/><site site="tip"/><pulley divisor="3"/>
      <site site="world"/><site site="toe"/>
    </spatial>
    <spatial name="belt" stiffness="30" springlength=".2" LIMITED frictionloss="LOSS">
      <site site="base"/><geom geom="ball" sidesite="wheel"/><site site="hook"/><site site="hip"/>
    </spatial>
    <fixed name="mix" stiffness="2"><joint joint="knee" coef=".4"/></fixed>
  </tendon>
  <actuator>
    <motor tendon="cord" gear="2"/>
    <position tendon="cord" gear="-1.5" kp="5" kv=".3"/>
    <motor joint="knee" gear="3"/>
  </actuator>
"""


def build(
    sensors: str,
    integrator: str = "euler",
    *,
    floor: bool = False,
    cone: str = "elliptic",
    condim: int = 3,
    tendons: str = "",
    equality: str = "",
    ground: str = "",
) -> mujoco.MjModel:
    """Return the scene with the given sensors."""
    plane = FLOOR.replace("GROUND", f'condim="{condim}" {ground}') if floor else ""
    xml = f"""
    <mujoco>
      <option timestep=".002" cone="{cone}"/>
      <default><geom contype="0" conaffinity="1" condim="1"/></default>
      <worldbody>{plane}{BODIES}</worldbody>
      {tendons}
      <equality>{equality}</equality>
      <sensor>{sensors}</sensor>
    </mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    cases.INTEGRATORS[integrator](model)
    reference.converge(model)
    return model


def state(model: mujoco.MjModel, seed: int) -> mujoco.MjData:
    """Return a state in motion, with forces on some bodies and the leg near the ground."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.4 * rng.standard_normal(model.nv)
    mujoco.mj_integratePos(model, data.qpos, 0.1 * rng.standard_normal(model.nv), 1.0)
    data.qpos[model.joint("ankle").qposadr] += 0.1
    data.ctrl[:] = rng.standard_normal(model.nu)
    data.qfrc_applied[:] = 0.2 * rng.standard_normal(model.nv)
    data.xfrc_applied[1:4] = 0.5 * rng.standard_normal((3, 6))
    mujoco.mj_kinematics(model, data)
    # both the leg and the block press on the floor
    lowest = lower_corner(model, data)
    data.qpos[2] -= lowest + 0.01
    block = model.body("block").jntadr[0]
    data.qpos[model.jnt_qposadr[block] + 2] = 0.098
    return data


def lower_corner(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Return the height of the lowest corner of the sole."""
    geom = model.geom("sole").id
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1) * model.geom_size[geom][:, None]
    return float((data.geom_xmat[geom].reshape(3, 3) @ corners)[2].min() + data.geom_xpos[geom][2])


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "rk4"])
@pytest.mark.parametrize("tendons", [False, True])
def test_forces_between_bodies(integrator: str, tendons: bool) -> None:
    ropes = TENDONS.replace("LIMITED", "").replace("LOSS", "0")
    if integrator == "rk4":
        ropes = ropes.replace('armature=".05"', "")
    model = build(WRENCHES + WORLD_FORCE, integrator, tendons=ropes if tendons else "")
    judge(model, state(model, 1), SMOOTH_TOLERANCE)


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
@pytest.mark.parametrize(("cone", "condim"), [("elliptic", 3), ("pyramidal", 4), ("elliptic", 6)])
def test_forces_between_bodies_in_contact(integrator: str, cone: str, condim: int) -> None:
    model = build(WRENCHES + WORLD_FORCE, integrator, floor=True, cone=cone, condim=condim)
    judge(model, state(model, 2), CONSTRAINED_TOLERANCE)


HOLDS = {
    "connect": '<connect body1="foot" body2="bob" anchor=".1 .02 .03"/>',
    "connect sites": '<connect site1="toe" site2="base"/>',
    "weld": '<weld body1="foot" body2="bob" anchor=".1 .02 .03" torquescale="2"/>',
    "weld to the world": '<weld body1="shank" body2="world" anchor=".1 .02 .03"/>',
    "weld sites": '<weld site1="hip" site2="base" torquescale=".5"/>',
}


@pytest.mark.parametrize("hold", HOLDS)
def test_forces_between_bodies_held_together(hold: str) -> None:
    model = build(WRENCHES + WORLD_FORCE, equality=HOLDS[hold])
    judge(model, state(model, 3), CONSTRAINED_TOLERANCE)


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
def test_forces_of_tendons_with_rows(integrator: str) -> None:
    ropes = TENDONS.replace("LIMITED", 'limited="true" range="0 1.2"').replace("LOSS", ".3")
    coupling = '<tendon tendon1="cord" tendon2="belt" polycoef="-.3 .5 .2 0 0"/>'
    model = build(WRENCHES + WORLD_FORCE, integrator, tendons=ropes, equality=coupling)
    judge(model, state(model, 4), CONSTRAINED_TOLERANCE)


def contact_sensors(fields: str) -> str:
    """Return contact sensors of every reduction and matching, and touch sensors."""
    match = (
        'geom1="floor" geom2="sole"',
        'geom1="sole" geom2="floor"',
        'body1="block"',
        'subtree2="trunk"',
        'subtree1="shank" geom2="floor"',
        'site="sole"',
        'site="patch" body2="block"',
        "",
    )
    every = [
        f'<contact {m} num="3" data="{fields}" reduce="{r}"/>'
        for m in match
        for r in ("none", "mindist", "maxforce")
    ]
    every += [f'<contact {m} data="{FIELDS}" reduce="netforce"/>' for m in match]
    every += [f'<touch site="{s}"/>' for s in ("sole", "toe", "patch", "hip")]
    return "".join(every)


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
@pytest.mark.parametrize(("cone", "condim"), [("elliptic", 3), ("pyramidal", 4), ("elliptic", 6)])
def test_contacts(integrator: str, cone: str, condim: int) -> None:
    fields = FIELDS if mujoco.mj_version() < 3016000 else NEWER_FIELDS
    model = build(contact_sensors(fields), integrator, floor=True, cone=cone, condim=condim)
    data = state(model, 5)
    mujoco.mj_forward(model, data)
    assert data.ncon >= 3
    touched = data.sensordata[-4:] > 0
    assert touched.tolist() == [True, False, True, False]
    judge(model, data, CONSTRAINED_TOLERANCE)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_adhesion_is_part_of_the_forces(cone: str, exact: bool) -> None:
    """With the flag diagexact, the reference acceleration of adhesion depends on the position."""
    model = build(contact_sensors(FIELDS) + WRENCHES, floor=True, cone=cone, ground='adhesion="7"')
    if exact:
        model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_DIAGEXACT)
    judge(model, state(model, 6), CONSTRAINED_TOLERANCE)


def test_contacts_without_rows_have_places() -> None:
    model = build(contact_sensors(FIELDS), floor=True, ground='gap=".1"')
    data = state(model, 7)
    data.qpos[2] += 0.02
    mujoco.mj_forward(model, data)
    assert any(c.efc_address < 0 for c in data.contact)
    judge(model, data, CONSTRAINED_TOLERANCE)


def test_membership_in_a_site_is_constant() -> None:
    sensors = '<insidesite site="patch" objtype="body" objname="block"/>'
    model = build(sensors)
    lin = mujacobian.linearize(model, state(model, 8))
    assert not lin.C.any()


def test_the_torque_of_the_world_is_refused() -> None:
    model = build('<torque name="everything" site="world"/>')
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="everything"):
        mujacobian.linearize(model, mujoco.MjData(model))


TARGETS = {
    "plane": 'type="plane" size="1 1 .1"',
    "sphere": 'type="sphere" size=".9"',
    "capsule side": 'type="capsule" size=".6 1.2" euler="80 0 20"',
    "capsule end": 'type="capsule" size=".6 1.2" euler="10 0 20"',
    "ellipsoid": 'type="ellipsoid" size=".6 .9 1.2" euler="20 30 40"',
    "cylinder side": 'type="cylinder" size=".6 1.2" euler="80 0 20"',
    "cylinder cap": 'type="cylinder" size=".6 1.2" euler="10 0 20"',
    "box": 'type="box" size=".6 .9 1.2" euler="20 30 40"',
    "mesh": 'type="mesh" mesh="hull" euler="10 20 30"',
    "height field": 'type="hfield" hfield="hills"',
    "nothing": 'type="sphere" size=".1" pos="0 0 15"',
}
RAY_FIELDS = "dist dir origin point normal depth"


def look_at(target: str, sensors: str, eye: str) -> mujoco.MjModel:
    """Return a drone over a target, with a sensor on its arm that points down."""
    moving = "" if target in ("plane", "height field") else "<freejoint/>"
    return mujoco.MjModel.from_xml_string(f"""
    <mujoco>
      <option><flag contact="disable"/></option>
      <asset>
        <mesh name="hull" scale="3 3 3" vertex=".3 0 0 -.2 .3 0 -.2 -.3 0 0 .05 .4 0 0 -.3"/>
        <hfield name="hills" nrow="3" ncol="3" size="1 1 .3 .1"
                elevation="0 .3 .1 .5 .2 .9 .4 .1 .6"/>
      </asset>
      <worldbody>
        <body name="target" pos=".02 .03 0">
          {moving}<geom {TARGETS[target]} mass="1"/>
        </body>
        <body name="drone" pos="0 0 4.5">
          <freejoint name="drone"/><geom size=".05" mass="1"/>
          <body pos=".05 0 0">
            <joint axis="0 1 0"/><geom size=".02" mass=".1" pos="0 0 .2"/>
            {eye}
          </body>
        </body>
      </worldbody>
      <sensor>{sensors}</sensor>
    </mujoco>""")


@pytest.mark.parametrize("target", TARGETS)
def test_rangefinders(target: str) -> None:
    sensors = f"""
        <rangefinder site="eye"/>
        <rangefinder site="eye" data="{RAY_FIELDS}"/>
        <rangefinder site="eye" cutoff=".1"/>"""
    model = look_at(target, sensors, '<site name="eye" pos="0 .02 -.1" euler="183 4 20"/>')
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    hit = data.sensordata[0] > 0
    assert hit == (target != "nothing")
    if hit:  # so close that the steps of the reference stay on the surface
        data.joint("drone").qpos[2] += 0.3 - data.sensordata[0]
    judge(model, data, SMOOTH_TOLERANCE)


LENSES = {
    "fovy": 'fovy="4"',
    "intrinsics": 'focal=".2 .15" sensorsize=".01 .008" principal=".0005 -.001"',
    "orthographic": 'projection="orthographic" fovy=".1"',
    "following": 'fovy="4" mode="targetbody" target="target"',
}


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("target", ["plane", "ellipsoid", "box", "nothing"])
def test_rangefinders_of_cameras(target: str, lens: str) -> None:
    """A depth image has one ray per pixel, fixed to the camera."""
    eye = f'<camera name="eye" pos="0 .02 -.1" euler="3 4 20" resolution="3 2" {LENSES[lens]}/>'
    sensors = f"""<rangefinder camera="eye" data="{RAY_FIELDS}"/>
        <rangefinder camera="eye" data="depth"/>"""
    model = look_at(target, sensors, eye)
    assert list(model.sensor_dim) == [6 * 14, 6]
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    distances = data.sensordata[: 6 * 14 : 14]
    assert (distances > 0).all() == (target != "nothing")
    if lens != "following":
        data.joint("drone").qpos[2] += 0.6 - distances.max()
    judge(model, data, SMOOTH_TOLERANCE)
