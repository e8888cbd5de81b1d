"""Second derivatives of the armature of tendons, and of forces that a tendon scales."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.second_order import (
    cotangent,
    joined,
    judge,
    judge_brackets,
    judge_columns,
)
from tests.scenes.cases import INTEGRATORS, random_state, sample
from tests.test_hessian import BRACKET_TOLERANCE, INTEGRATORS_COVERED, SMOOTH_TOLERANCE, load
from tests.test_hvp import judge as judge_product

ROWS = {"tolerance": 1e-7, "step": 1e-3}  # limits and contacts next to a tendon
TRUSTED_SHARE = 0.85  # of the columns: the others are near a kink
BRACKET_STEP = 0.06  # smaller steps lose digits to rounding
ALL_INTEGRATORS = (*INTEGRATORS_COVERED, "euler_explicit", "rk4")

# Two tendons over a free body, a ball joint and hinges of two branches, one with a pulley.
ROPES = """
<mujoco>
  <option timestep=".004" tolerance="1e-15"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="anchor" pos=".3 .2 1.6"/>
    <body name="base" pos="0 0 1">
      <freejoint/>
      <geom type="box" size=".1 .2 .1" mass="2"/>
      <site name="base" pos=".05 .1 .1"/>
      <body pos=".1 .2 0">
        <joint name="left" axis="0 1 .3" damping=".1" range="-20 5" {limit}/>
        <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04"/>
        <site name="left" pos=".25 .05 .05"/>
      </body>
      <body pos=".1 -.2 0">
        <joint name="right" type="ball" damping=".05"/>
        <geom type="box" size=".05 .03 .1" pos="0 -.1 .05"/>
        <site name="right" pos=".05 -.15 .1"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="rope" armature=".3">
      <site site="anchor"/><site site="left"/><site site="base"/><site site="right"/>
    </spatial>
    <spatial name="tackle" armature=".2" stiffness="5" damping=".3">
      <site site="left"/><site site="right"/><pulley divisor="2"/>
      <site site="anchor"/><site site="right"/>
    </spatial>
  </tendon>
  <actuator>
    <motor joint="left"/><general tendon="tackle" gear="1.3" gainprm="2" armature=".15"/>
  </actuator>
</mujoco>"""


def ropes(**elements):
    return mujoco.MjModel.from_xml_string(ROPES.format(**{"limit": ""} | elements))


def check(model, data):
    """Judge a state, with the product with a direction."""
    assert judge(model, data, tolerance=SMOOTH_TOLERANCE) > 0
    judge_product(model, data, cotangent(model))


@pytest.mark.parametrize(
    ("name", "integrator"),
    sample(2, ("spatial_tendon_armature", "tendon_armature_across_trees"), ALL_INTEGRATORS),
)
def test_armature(name, integrator):
    model = load(name)
    INTEGRATORS[integrator](model)
    check(model, random_state(model, np.random.default_rng(0)))


@pytest.mark.parametrize("integrator", ALL_INTEGRATORS)
def test_armature_over_pulleys_and_free_bodies(integrator):
    model = ropes()
    INTEGRATORS[integrator](model)
    data = random_state(model, np.random.default_rng(1))
    check(model, data)
    assert not mujacobian.support(model, order=2)


def test_armature_changes_the_result():
    """The moment arms of a tendon at high speed: the bias force is not negligible."""
    model = load("spatial_tendon_armature")
    data = random_state(model, np.random.default_rng(3))
    data.qvel *= 5
    given = cotangent(model)
    heavy = joined(mujacobian.hessian(model, data, given))
    model.tendon_armature[:] = 0
    light = joined(mujacobian.hessian(model, data, given))
    assert abs(heavy - light).max() > 0.1 * abs(light).max()
    model.tendon_armature[:] = 0.5
    check(model, data)


@pytest.mark.parametrize("integrator", [*INTEGRATORS_COVERED, "euler_explicit"])
def test_armature_with_an_active_limit(integrator):
    """Both systems of the integrator contain the inertia of the tendon."""
    model = reference.converge(ropes(limit='solimplimit=".4 .95 .2 .3 3"'))
    INTEGRATORS[integrator](model)
    data = random_state(model, np.random.default_rng(2))
    data.joint("left").qpos[:] = 0.15
    mujoco.mj_forward(model, data)
    assert data.nefc == 1
    assert abs(data.efc_force).min() > 0
    assert judge_columns(model, data, **ROWS) > TRUSTED_SHARE
    judge_product(model, data, cotangent(model))


def test_brackets_of_armature():
    model = ropes()
    data = random_state(model, np.random.default_rng(4))
    judge_brackets(model, data, tolerance=BRACKET_TOLERANCE, step=BRACKET_STEP)


# Two tendons that share their force range among actuators with curved laws; one force is at its own
# range, one actuator has an activation.
WINCHES = """
<mujoco>
  <option timestep=".004"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="anchor" pos="0 .2 1.4"/>
    <body pos="0 0 1">
      <joint name="a" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".05"/>
      <body pos=".3 0 0">
        <joint name="b" type="ball"/>
        <geom type="box" size=".05 .03 .1" pos="0 .05 0"/>
        <site name="lower" pos=".05 .1 .15"/>
      </body>
    </body>
    <body pos="1 0 0"><joint name="c" axis="0 1 0"/><geom size=".1" pos=".1 0 .2"/></body>
  </worldbody>
  <tendon>
    <fixed name="belt" actuatorfrcrange="-1.5 2">
      <joint joint="a" coef="1"/><joint joint="c" coef="-.5"/>
    </fixed>
    <spatial name="rope" actuatorfrcrange="-3 2.5">
      <site site="anchor"/><site site="lower"/>
    </spatial>
  </tendon>
  <actuator>
    <motor tendon="belt" gear="2"/>
    <general name="bent" tendon="belt" gaintype="affine" gainprm="2 .5 .3" biastype="affine"
             biasprm="0 -1 -.4"/>
    <motor name="held" tendon="belt" gear="-.7" forcelimited="true" forcerange="-.2 .2"/>
    <general tendon="rope" gear="-1.5" dyntype="filter" dynprm=".1" gainprm="3"/>
    <general tendon="rope" gear="1.2" gaintype="affine" gainprm="2 .5 .3" biastype="affine"
             biasprm="0 -1 -.4"/>
  </actuator>
  <sensor>
    <jointactuatorfrc joint="a"/>
    <tendonactuatorfrc tendon="rope"/>
    <tendonactuatorfrc tendon="belt"/>
    <actuatorfrc actuator="held"/>
    <actuatorfrc actuator="bent"/>
  </sensor>
</mujoco>"""


def winches(scale=1.0):
    model = mujoco.MjModel.from_xml_string(WINCHES)
    data = random_state(model, np.random.default_rng(0))
    data.ctrl[:] = np.array([2, 1.2, 0.9, 3, 4]) * scale
    data.act[:] = 2 * scale
    mujoco.mj_forward(model, data)
    assert abs(data.actuator_force[:3].sum()) < abs(data.ctrl[:3].sum())
    return model, data


@pytest.mark.parametrize("scale", [1.0, -1.0])
@pytest.mark.parametrize("integrator", ALL_INTEGRATORS)
def test_forces_beyond_the_range_of_a_tendon(integrator, scale):
    model, data = winches(scale)
    INTEGRATORS[integrator](model)
    check(model, data)


def test_the_scale_of_a_tendon_is_curved():
    """Constant moments and linear laws: the quotient alone has a second derivative."""
    model = load("tendon_force_scaling")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 1)
    found = mujacobian.hessian(model, data, cotangent(model))
    assert abs(found.uu[0, 1]) > 1e-3 * abs(found.xx).max()
    check(model, data)


def test_sensors_of_scaled_forces():
    model, data = winches()
    assert mujacobian.support(model, order=2) == []
    given = 1e-3 * cotangent(model)  # small, so that the sensors dominate
    for scale in (1.0, 0.01):
        data.ctrl[:] *= scale
        data.act[:] *= scale
        for sensed in np.eye(model.nsensordata):
            judge(model, data, tolerance=SMOOTH_TOLERANCE, sensed=sensed)
            judge_product(model, data, given, sensed)


def test_sensors_of_forces_without_gear():
    model = mujoco.MjModel.from_xml_string(WINCHES.replace('gear="-1.5"', 'gear="0"'))
    data = random_state(model, np.random.default_rng(0))
    judge(model, data, tolerance=SMOOTH_TOLERANCE, sensed=np.arange(1.0, 6.0))


def test_a_force_sensor_raises_if_a_tendon_leaves_its_subtree():
    sensors = '<sensor><force name="cut" site="left"/></sensor></mujoco>'
    model = mujoco.MjModel.from_xml_string(ROPES.format(limit="").replace("</mujoco>", sensors))
    data = random_state(model, np.random.default_rng(1))
    mujacobian.linearize(model, data)
    assert [u.element for u in mujacobian.support(model, order=2)] == ['sensor "cut"']
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r'sensor "cut".*tendons'):
        mujacobian.hessian(model, data, cotangent(model), [1, 0, 0])
