"""Tendons that wrap around spheres and cylinders, in all uses of a tendon."""

import zlib

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import ROW_TOLERANCE, judge, judge_constrained
from tests.scenes.cases import INTEGRATORS, random_state

TRUSTED_SHARE = 0.95  # a column on a kink (a wrap that begins or ends there) is left out
STATES = 2
GEOMS = ("sphere", "cylinder")
# position of the side site, and height of the tendon's ends above the geom
WRAPS = {"no side": ("", 0.0), "side": ("0 .4 .1", 0.1), "inside": ("0 .1 .05", 0.5)}

ARM = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep=".002"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="base" pos="0 0 1">
      <joint name="base" axis=".2 1 .3"/><joint name="rail" type="slide" axis="1 .1 0"/>
      <geom size=".08" mass="1"/><site name="a" pos="-.5 .05 {height}"/>
      <body name="mid">
        <joint type="ball" damping=".1"/>
        <geom name="drum" type="{geom}" size=".25 .5" mass="2" euler=".3 .2 0"/>
        <site name="side" pos="{side}"/>
        <body name="end" pos=".3 0 0">
          <joint axis="0 .3 1"/>
          <geom size=".1" mass=".7" pos=".2 .1 0"/><site name="b" pos=".2 -.05 {height}"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="cable" {tendon}>
      <site site="a"/><geom geom="drum" {sidesite}/><site site="b"/>
    </spatial>
    <fixed name="other"><joint joint="base" coef=".4"/><joint joint="rail" coef="-.3"/></fixed>
  </tendon>
  {rest}
</mujoco>"""

# The three bodies of a wrap are free; a second branch passes over two geoms, one in another tree.
BRANCHES = """
<mujoco>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="wall" pos="-.8 .1 .1"/>
    <body pos="-.4 .2 .05">
      <freejoint/><geom name="ball" size=".15" mass="1"/><site name="ball side" pos="0 0 .3"/>
    </body>
    <body pos=".4 .1 0">
      <joint type="ball"/><joint type="slide" axis="1 0 0"/>
      <geom name="drum" type="cylinder" size=".12 .3" mass="1"/>
      <site name="drum side" pos="-.3 0 0"/><site name="on drum" pos="0 .4 .1"/>
    </body>
    <body pos=".9 0 .05">
      <freejoint/><geom size=".1" mass=".8"/><site name="far" pos=".05 0 .02"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="cable" stiffness="30" damping="2" springlength=".4">
      <site site="wall"/><geom geom="ball"/><site site="on drum"/>
      <pulley divisor="3"/>
      <site site="wall"/><geom geom="ball" sidesite="ball side"/><site site="on drum"/>
      <geom geom="drum" sidesite="drum side"/><site site="far"/>
    </spatial>
  </tendon>
</mujoco>"""


def arm(geom, wrap, *, tendon="", rest=""):
    side, height = WRAPS[wrap]
    return mujoco.MjModel.from_xml_string(
        ARM.format(
            geom=geom,
            side=side or "0 0 0",
            sidesite='sidesite="side"' if side else "",
            height=height,
            tendon=tendon,
            rest=rest,
        )
    )


def touches(data):
    """Return the number of points where tendons touch geoms."""
    used = int(data.ten_wrapnum.sum())  # the path of the only spatial tendon
    return int(np.count_nonzero(data.wrap_obj.ravel()[:used] >= 0))


def wrapped_states(model, *, scale=0.15, least=2):
    """Yield random states in which the tendon touches at `least` points."""
    rng = np.random.default_rng(zlib.crc32(b"wrap"))
    found = 0
    for _ in range(400):
        data = random_state(model, rng, forces=found == 0, scale=scale)
        mujoco.mj_forward(model, data)
        if touches(data) >= least:
            found += 1
            yield data
        if found == STATES:
            return
    raise AssertionError("no state wraps")


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("geom", GEOMS)
def test_springs_and_dampers(geom, wrap, integrator):
    model = arm(geom, wrap, tendon='stiffness="50" damping="4" springlength=".5"')
    INTEGRATORS[integrator](model)
    for data in wrapped_states(model):
        share, _ = judge(model, data)
        assert share >= TRUSTED_SHARE


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("geom", GEOMS)
def test_actuators(geom, wrap):
    """A servo with velocity feedback: its damping is in the matrix of implicit integrators."""
    servo = '<actuator><position tendon="cable" kp="30" kv="3" gear="1.5"/></actuator>'
    model = arm(geom, wrap, rest=servo)
    INTEGRATORS["implicitfast"](model)
    for data in wrapped_states(model):
        share, _ = judge(model, data)
        assert share >= TRUSTED_SHARE


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_branches_over_several_geoms(integrator):
    model = mujoco.MjModel.from_xml_string(BRANCHES)
    INTEGRATORS[integrator](model)
    for data in wrapped_states(model, scale=0.1, least=6):
        share, _ = judge(model, data)
        assert share >= TRUSTED_SHARE


CONSTRAINED = {
    "limit": ('limited="true" range=".1 .5"', ""),
    "friction": ('frictionloss=".3" damping=".5"', ""),
    "equality": (
        "",
        '<equality><tendon tendon1="cable" polycoef=".1 0 0 0 0"/></equality>',
    ),
    "follower": (
        "",
        '<equality><tendon tendon1="other" tendon2="cable" polycoef=".1 .7 .5 .2 0"/></equality>',
    ),
}


@pytest.mark.parametrize("role", CONSTRAINED)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("geom", GEOMS)
def test_constrained(geom, wrap, role):
    tendon, rest = CONSTRAINED[role]
    model = reference.converge(arm(geom, wrap, tendon=tendon, rest=rest))
    INTEGRATORS["implicitfast"](model)
    for data in wrapped_states(model):
        share = judge_constrained(model, data, ROW_TOLERANCE, forces=False)
        assert share >= TRUSTED_SHARE


@pytest.mark.parametrize("geom", GEOMS)
def test_a_tendon_clear_of_its_geom_is_straight(geom):
    model = arm(geom, "no side", tendon='stiffness="50" springlength=".1"')
    data = mujoco.MjData(model)
    model.site("a").pos[1:] = model.site("b").pos[1:] = 0.8
    mujoco.mj_forward(model, data)
    assert touches(data) == 0
    judge(model, data)


def test_armature_of_a_wrapping_tendon_is_refused_as_in_mujoco():
    model = arm("sphere", "no side")
    model.tendon_armature[0] = 1  # the compiler rejects it in XML
    data = mujoco.MjData(model)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="cable"):
        mujacobian.linearize(model, data)


def test_sites_opposite_one_another_around_a_sphere_raise():
    """MuJoCo's test model tendon_wrap_sphere begins in such a state."""
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <worldbody>
          <site name="top" pos="0 0 1"/>
          <geom name="ball" size=".1" pos="0 0 .5"/>
          <body pos="0 0 .1"><freejoint/><geom size=".05"/><site name="low" pos="0 0 .05"/></body>
        </worldbody>
        <tendon>
          <spatial name="rope" range="0 .8">
            <site site="top"/><geom geom="ball"/><site site="low"/>
          </spatial>
        </tendon>
      </mujoco>""")
    data = mujoco.MjData(model)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"rope.*one line.*not unique"):
        mujacobian.linearize(model, data)
    data.qpos[0] = 1e-3
    assert mujacobian.linearize(model, data).A.any()
