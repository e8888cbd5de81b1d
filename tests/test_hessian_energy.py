"""Second derivatives of energies and of limits, against differences of C and D."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.oracle.second_order import cotangent, judge, judge_columns
from tests.scenes.cases import INTEGRATORS, random_state, sample
from tests.test_hessian import ROWS
from tests.test_hessian_sensors import INTEGRATORS_COVERED, weights
from tests.test_hvp import judge as judge_product
from tests.test_sensors import BODIES

TOLERANCE = 1e-8
ROW_TOLERANCE = 1e-7  # differences of stiff rows settle at about 1e-10 of the largest entry
LEAST_SHARE = 0.8  # of the columns; the others are near a kink

LIMITED = """
<mujoco>
  <option timestep=".004" tolerance="1e-15"><flag contact="disable"/></option>
  <worldbody>
    <site name="post" pos=".3 .1 .8"/>
    <body pos="0 0 1">
      <joint name="a" axis="0 1 .2" range="-20 5" solimplimit=".4 .95 .2 .3 3"/>
      <geom size=".1" pos=".1 0 0"/>
      <body pos=".3 0 0">
        <joint name="ball" type="ball" range="0 15" solimplimit=".3 .9 .3 .4 2" damping=".1"/>
        <geom size=".07" pos=".1 .1 0"/>
        <site name="hand" pos=".1 .1 .05"/>
      </body>
    </body>
    <body pos="1 0 0">
      <joint name="e" type="slide" axis="1 .2 0" range="-.1 .1" margin=".2"
             solimplimit="0 .9 .5 .5 2"/>
      <geom size=".1" pos=".1 0 .2"/>
      <site name="hook" pos="0 0 .3"/>
      <body><joint name="f" axis="0 1 0"/><geom size=".1" pos=".1 0 .2"/></body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="rope" range="0 .6" margin=".1" solimplimit=".2 .95 .8 .6 2">
      <site site="hand"/><site site="hook"/>
    </spatial>
    <fixed name="mix" range="-.05 .02" solimplimit=".2 .95 .8 .6 2">
      <joint joint="e" coef="-.5"/><joint joint="f" coef=".8"/>
    </fixed>
  </tendon>
  <actuator><motor joint="a"/></actuator>
  <sensor>{sensors}</sensor>
</mujoco>"""


def machine(rest="", flag=""):
    """Return all kinds of joints with springs, a spatial tendon with a dead band, and armature."""
    bodies = BODIES.replace("LIMITED", "false").replace(
        '<freejoint name="root"/>', '<joint name="root" type="free" stiffness="1.5"/>'
    )
    return mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option timestep=".003"><flag constraint="disable" {flag}/></option>
        <worldbody>{bodies}</worldbody>
        <tendon>
          <spatial name="cord" stiffness="4" armature=".2" springlength=".2 .3">
            <site site="anchor"/><site site="beacon"/>
          </spatial>
          <spatial name="slack" stiffness="4" springlength="0 9">
            <site site="imu"/><site site="mount"/>
          </spatial>
          <fixed name="mix" stiffness="3" armature=".1">
            <joint joint="elbow" coef=".4"/><joint joint="wrist" coef="-.7"/>
          </fixed>
        </tendon>
        <actuator><motor joint="elbow"/></actuator>
        <sensor><e_potential/><e_kinetic/></sensor>{rest}
      </mujoco>""")


@pytest.mark.parametrize("integrator", INTEGRATORS_COVERED)
def test_energies(integrator):
    model = machine()
    INTEGRATORS[integrator](model)
    for seed, sensed in enumerate([[1.3, 0], [0, -0.7], [1, 1]]):
        data = random_state(model, np.random.default_rng(seed))
        judge(model, data, sensed=np.array(sensed), tolerance=TOLERANCE, forces=True)
        judge_product(model, data, cotangent(model), np.array(sensed))


@pytest.mark.parametrize("flag", ['gravity="disable"', 'spring="disable"'])
def test_energies_without_gravity_or_springs(flag):
    model = machine(flag=flag)
    data = random_state(model, np.random.default_rng(5))
    judge(model, data, sensed=np.array([1.0, 0]), tolerance=TOLERANCE)


def test_the_kinetic_energy_has_the_inertia_as_its_second_derivative():
    model = machine()
    data = random_state(model, np.random.default_rng(2))
    found = mujacobian.hessian(model, data, np.zeros(2 * model.nv), [0, 1]).xx
    inertia = np.empty((model.nv, model.nv))
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, inertia)
    np.testing.assert_allclose(found[model.nv :, model.nv :], inertia, atol=1e-12)


def test_energies_at_rest():
    """Rotations of springs by zero."""
    model = machine()
    judge(model, mujoco.MjData(model), sensed=np.array([1.0, 1.0]), tolerance=TOLERANCE)


def limited(quantity, integrator="euler"):
    joints = "".join(f'<jointlimit{quantity} joint="{j}"/>' for j in ("a", "ball", "e"))
    tendons = "".join(f'<tendonlimit{quantity} tendon="{t}"/>' for t in ("rope", "mix"))
    model = mujoco.MjModel.from_xml_string(LIMITED.format(sensors=joints + tendons))
    INTEGRATORS[integrator](model)
    return model


@pytest.mark.parametrize(
    ("quantity", "integrator"), sample(3, ("pos", "vel", "frc"), INTEGRATORS_COVERED)
)
def test_limits(quantity, integrator):
    """Limits of joints, of a ball joint, of a spatial and a fixed tendon; all act in some state."""
    model = limited(quantity, integrator)
    acting = np.zeros(model.nsensordata, bool)
    for seed, (a, f) in enumerate(((0.3, 0.8), (0.9, 0.8))):
        data = random_state(model, np.random.default_rng(seed))
        data.qpos[0], data.qpos[-1] = a, f
        data.qvel *= 0.1
        mujoco.mj_forward(model, data)
        acting |= data.sensordata != 0
        sensed = weights(model)
        share = judge_columns(model, data, sensed=sensed, tolerance=ROW_TOLERANCE)
        assert share >= LEAST_SHARE
        judge_product(model, data, cotangent(model), sensed)
    assert acting.all()


@pytest.mark.parametrize("quantity", ["pos", "vel", "frc"])
def test_limits_that_do_not_act_are_constant(quantity):
    model = limited(quantity)
    model.jnt_limited[:] = 0
    model.tendon_limited[:] = 0
    data = random_state(model, np.random.default_rng(0))
    found = mujacobian.hessian(model, data, np.zeros(2 * model.nv), weights(model))
    assert not found.xx.any()
    assert mujacobian.hessian(model, data, np.ones(2 * model.nv)).xx.any()


def test_forces_of_limits_beside_other_rows():
    """Couplings and dry friction act in the same component."""
    sensors = '<jointlimitfrc joint="a"/><jointlimitfrc joint="c"/><tendonlimitfrc tendon="t"/>'
    model = mujoco.MjModel.from_xml_string(
        ROWS.format(flag="").replace("</mujoco>", f"<sensor>{sensors}</sensor></mujoco>")
    )
    acting = 0
    for seed in range(3):
        data = random_state(model, np.random.default_rng(seed))
        mujoco.mj_forward(model, data)
        sensed = weights(model)
        if not data.sensordata.any():
            continue
        acting += 1
        assert judge_columns(model, data, sensed=sensed, tolerance=ROW_TOLERANCE) >= LEAST_SHARE
        judge_product(model, data, cotangent(model), sensed)
    assert acting >= 2
