"""Forces of a medium: inertia boxes and ellipsoids, with wind, in every integrator."""

import zlib

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, ROW_TOLERANCE, judge, judge_constrained
from tests.scenes.cases import INTEGRATORS, random_state

TRUSTED_SHARE = 0.9
STATES = 1

# A chain with all kinds of joints and geoms, a free body with a welded child, a bare one, and a
# body on three slides whose inertia is diagonal while its drag is not.
SCENE = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep=".002" {medium}/>
  <default><geom contype="0" conaffinity="0" {shape}/></default>
  <worldbody>
    <body pos="0 0 1">
      <joint axis=".2 1 .3" pos=".1 .1 0" damping=".01"/><joint type="slide" axis="1 .1 0"/>
      <geom type="ellipsoid" size=".08 .12 .2"/>
      <body pos="0 .1 0">
        <joint type="ball" pos="0 .02 0"/>
        <geom type="capsule" size=".05 .1" euler=".3 .5 .7" pos=".1 0 .05"/>
        <body pos=".3 0 0">
          <joint axis="0 .3 1"/>
          <geom type="box" size=".1 .05 .02" pos=".2 .1 0"/>
          <geom type="cylinder" size=".1 .05" pos="-.2 .1 0" {other}/>
        </body>
        <body pos="-.2 0 .1">
          <joint axis="1 0 1"/><geom size=".06" pos=".1 0 0"/>
        </body>
      </body>
    </body>
    <body pos="2 0 0">
      <freejoint/><geom type="box" size=".1 .2 .05" pos=".02 .05 0"/>
      <body pos=".2 .1 0"><geom type="ellipsoid" size=".05 .1 .07" euler=".4 0 .2"/></body>
    </body>
    <body pos="3 0 0"><freejoint/><geom type="box" size=".1 .2 .05"/></body>
    <body pos="4 0 0">
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
      <joint type="slide" axis="0 0 1"/>
      <inertial pos="0 0 0" mass="2" diaginertia=".02 .03 .04"/>
      <geom type="ellipsoid" euler=".3 .2 .6" size=".1 .2 .05"/>
    </body>
  </worldbody>
</mujoco>"""

SWIMMER = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep=".002" density="900" viscosity="2" wind=".2 0 .1"/>
  <worldbody>
    <geom type="plane" size="2 2 .1"/>
    <body pos="0 0 .1">
      <freejoint/><geom type="capsule" size=".05 .15" euler="0 1.5 0" {shape}/>
      <body pos=".2 0 0">
        <joint axis="0 1 0" limited="true" range="-.5 .1" damping=".05"/>
        <geom type="capsule" fromto=".02 0 0 .2 0 0" size=".04" {shape}/>
      </body>
    </body>
  </worldbody>
</mujoco>"""

MEDIA = {
    "air": 'density="1.2" viscosity="1.8e-5" wind="3 -5 2"',
    "water": 'density="1000" viscosity="9e-4"',
    "oil": 'viscosity="3" wind=".3 -.5 .2"',
}
HEAVY = 'density="1200" viscosity="3" wind=".3 -.5 .2"'
SHAPES = {
    "boxes": ("", ""),
    "ellipsoids": ('fluidshape="ellipsoid"', ""),
    "coefficients": ('fluidshape="ellipsoid" fluidcoef=".4 .3 1.2 .8 .9"', 'fluidshape="none"'),
}
ELLIPSOID = 'fluidshape="ellipsoid"'


def scene(medium, shape):
    shape, other = SHAPES[shape]
    xml = SCENE.format(medium=MEDIA.get(medium, HEAVY), shape=shape, other=other)
    return mujoco.MjModel.from_xml_string(xml)


def check(model):
    rng = np.random.default_rng(zlib.crc32(b"fluid"))
    for k in range(STATES):
        data = random_state(model, rng, forces=k == 0, scale=0.3)
        share, _ = judge(model, data)
        assert share >= TRUSTED_SHARE


@pytest.mark.parametrize(
    ("medium", "integrator"),
    [*(("heavy", name) for name in INTEGRATORS), *((name, "implicitfast") for name in MEDIA)],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_media_and_shapes(shape, medium, integrator):
    model = scene(medium, shape)
    assert model.M_rownnz[-3:].tolist() == [1, 1, 1], "the inertia of the slides is diagonal"
    INTEGRATORS[integrator](model)
    check(model)


@pytest.mark.parametrize("scale", [0.2, 0.03])
def test_small_ellipsoids(scale):
    """Products of eight lengths are tiny, and must not be treated as zero."""
    model = scene("heavy", "coefficients")
    model.geom_size[:] *= scale
    model.geom_fluid[:, 6:9] *= scale**3
    model.geom_fluid[:, 9:12] *= scale**5
    INTEGRATORS["implicitfast"](model)
    check(model)


def test_interaction_coefficient_that_is_not_a_flag():
    """It scales the force, but not the derivative that the integrator uses."""
    model = scene("heavy", "ellipsoids")
    model.geom_fluid[:, 0] = 0.6
    INTEGRATORS["implicitfast"](model)
    check(model)


@pytest.mark.parametrize("flags", ["spring", "damper", "spring damper"])
def test_disable_flags(flags):
    model = scene("heavy", "ellipsoids")
    INTEGRATORS["implicitfast"](model)
    for flag in flags.split():
        model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag.upper()}"))
    check(model)


@pytest.mark.parametrize("shape", SHAPES)
def test_at_rest_the_drag_is_viscous(shape):
    """All quadratic terms vanish, and their derivatives must not be infinite or NaN."""
    model = scene("heavy", shape)
    model.opt.wind[:] = 0
    data = mujoco.MjData(model)
    INTEGRATORS["implicitfast"](model)
    assert np.isfinite(mujacobian.linearize(model, data).A).all()
    INTEGRATORS["euler"](model)
    still = mujacobian.linearize(model, data).A
    model.opt.density = 0
    np.testing.assert_array_equal(still, mujacobian.linearize(model, data).A)


@pytest.mark.parametrize("integrator", ["implicitfast", "implicit"])
@pytest.mark.parametrize("shape", ["", ELLIPSOID])
def test_with_contacts_and_limits(shape, integrator):
    model = reference.converge(mujoco.MjModel.from_xml_string(SWIMMER.format(shape=shape)))
    INTEGRATORS[integrator](model)
    data = mujoco.MjData(model)
    data.qvel[:] = [0.3, -0.2, -0.1, 0.4, -0.3, 0.5, 1.0]
    seen = set()
    for _ in range(4):
        for _ in range(60):
            mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        if data.nefc == 0:
            continue
        seen |= set(data.efc_type.tolist())
        tolerance = CONTACT_TOLERANCE if data.ncon else ROW_TOLERANCE
        judge_constrained(model, data, tolerance, forces=False)
    assert seen
