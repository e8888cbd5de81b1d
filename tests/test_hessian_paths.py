"""Second derivatives of forces whose moment arms depend on the position."""

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
from tests.test_actuators import DYNAMICS, LAWS, MOTORS, PID, TRANSMISSIONS, state, world
from tests.test_hessian import BRACKET_TOLERANCE, INTEGRATORS_COVERED, SMOOTH_TOLERANCE, load
from tests.test_hvp import judge as judge_product
from tests.test_wrapping import BRANCHES, CONSTRAINED, GEOMS, WRAPS, arm, wrapped_states

ROWS = {"tolerance": 1e-7, "step": 1e-3}  # limits and couplings of tendons
BRACKET_STEP = 0.06  # smaller steps lose digits to rounding
TRUSTED_SHARE = 0.85  # of the columns: the others are near a kink of an impedance or a wrap
MOVING = [name for name in TRANSMISSIONS if name not in ("hinge", "ball", "free", "fixed tendon")]
MODELS = (
    "actuator_site",
    "actuator_site_free_body",
    "actuator_tendon",
    "spatial_tendon",
    "spatial_tendon_across_branches",
    "spatial_tendon_across_trees",
)


def check(model, data, **kwargs):
    """Judge a state, with the product with a direction."""
    assert judge(model, data, tolerance=SMOOTH_TOLERANCE, **kwargs) > 0
    judge_product(model, data, cotangent(model))


@pytest.mark.parametrize(("name", "integrator"), sample(3, MODELS, INTEGRATORS_COVERED))
def test_models(name, integrator):
    model = load(name)
    INTEGRATORS[integrator](model)
    check(model, random_state(model, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("transmission", "law", "integrator"), sample(5, MOVING, LAWS, INTEGRATORS_COVERED)
)
def test_transmissions(transmission, law, integrator):
    model = world(f"<general {TRANSMISSIONS[transmission]} {LAWS[law]}/>")
    INTEGRATORS[integrator](model)
    data = state(model, 0, ctrl=0.4)
    data.ctrl[:] = abs(data.ctrl)  # muscles only pull
    check(model, data)


@pytest.mark.parametrize(
    ("transmission", "dynamics"),
    sample(3, ["spatial tendon", "refsite on other tree", "crank"], DYNAMICS),
)
def test_activations(transmission, dynamics):
    model = world(f"<general {TRANSMISSIONS[transmission]} {LAWS['muscle']} {DYNAMICS[dynamics]}/>")
    data = state(model, 0, act=0.2, ctrl=0.4)
    data.act[:], data.ctrl[:] = abs(data.act), abs(data.ctrl)
    check(model, data)


@pytest.mark.parametrize("transmission", ["spatial tendon", "refsite rotation", "crank"])
def test_activations_that_depend_on_the_length_and_the_rate(transmission):
    """The integral of a servo, and the temperature of a motor."""
    model = world(f"<pid {TRANSMISSIONS[transmission]} {PID['integral']}/>")
    check(model, state(model, 0, act=0.1, ctrl=0.3))
    motor = 'motorconst=".6" resistance="1.4"'
    if transmission != "refsite rotation":
        model = world(f"<dcmotor {TRANSMISSIONS[transmission]} {motor} {MOTORS['everything']}/>")
        check(model, state(model, 0, act=0.2, ctrl=0.3))


def test_saturated_joints_do_not_feel_a_site():
    """The rows of a joint at its force range are constant, the other rows of the path are not."""
    model = world(
        f"<general {TRANSMISSIONS['site']} {LAWS['motor']}/>",
        joint='actuatorfrclimited="true" actuatorfrcrange="-.01 .01"',
    )
    data = state(model, 0)
    data.ctrl[:] = 2
    mujoco.mj_forward(model, data)
    assert abs(data.qfrc_actuator[1]) == pytest.approx(0.01)
    check(model, data)


@pytest.mark.parametrize("integrator", INTEGRATORS_COVERED)
@pytest.mark.parametrize(("geom", "wrap"), sample(3, GEOMS, WRAPS))
def test_wraps(geom, wrap, integrator):
    servo = '<actuator><position tendon="cable" kp="30" kv="3" gear="1.5"/></actuator>'
    model = arm(geom, wrap, tendon='stiffness="50" damping="4" springlength=".5"', rest=servo)
    INTEGRATORS[integrator](model)
    for data in wrapped_states(model):
        assert judge_columns(model, data, tolerance=SMOOTH_TOLERANCE, step=2e-3) > TRUSTED_SHARE
        judge_product(model, data, cotangent(model))


@pytest.mark.parametrize("integrator", INTEGRATORS_COVERED)
def test_branches_over_several_geoms(integrator):
    model = mujoco.MjModel.from_xml_string(BRANCHES)
    INTEGRATORS[integrator](model)
    for data in wrapped_states(model, scale=0.1, least=6):
        assert judge_columns(model, data, tolerance=SMOOTH_TOLERANCE, step=2e-3) > TRUSTED_SHARE


@pytest.mark.parametrize(("geom", "wrap", "role"), sample(3, GEOMS, WRAPS, CONSTRAINED))
def test_constrained_wraps(geom, wrap, role):
    tendon, rest = CONSTRAINED[role]
    model = reference.converge(arm(geom, wrap, tendon=tendon, rest=rest))
    INTEGRATORS["implicitfast"](model)
    for data in wrapped_states(model):
        assert data.nefc > 0
        assert judge_columns(model, data, **ROWS) > TRUSTED_SHARE
        judge_product(model, data, cotangent(model))


SLIDING = """
<mujoco>
  <option tolerance="1e-15"/>
  <worldbody>
    <site name="a" pos=".3 0 1"/>
    <body><joint axis="0 1 0"/><geom size=".1" pos="0 0 .5"/><site name="b" pos="0 .1 .5"/></body>
  </worldbody>
  <tendon>
    <spatial name="rope" frictionloss="{loss}"><site site="a"/><site site="b"/></spatial>
  </tendon>
</mujoco>"""


@pytest.mark.parametrize(("loss", "slides"), [(0.3, True), (1e4, False)])
def test_dry_friction_slides_or_sticks(loss, slides):
    model = mujoco.MjModel.from_xml_string(SLIDING.format(loss=loss))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = 0.4, 0.7
    mujoco.mj_forward(model, data)
    assert (abs(data.efc_force[0]) == pytest.approx(loss)) == slides
    check(model, data)


@pytest.mark.parametrize("name", ["actuator_site", "spatial_tendon_across_trees"])
def test_the_antisymmetric_part_of_the_differences_is_that_of_lie_brackets(name):
    model = load(name)
    data = random_state(model, np.random.default_rng(0))
    judge_brackets(model, data, tolerance=BRACKET_TOLERANCE, step=BRACKET_STEP)


SENSORS = {
    "tendon": '<tendonpos tendon="rope"/><tendonvel tendon="rope"/>',
    "actuator": '<actuatorpos actuator="a"/><actuatorvel actuator="a"/><actuatorfrc actuator="a"/>',
    "joint": '<jointactuatorfrc joint="elbow"/><jointactuatorfrc joint="tip"/>',
}


@pytest.mark.parametrize("kind", SENSORS)
@pytest.mark.parametrize("transmission", ["spatial tendon", "refsite on other tree", "crank"])
def test_sensors(kind, transmission):
    actuator = f'<general name="a" {TRANSMISSIONS[transmission]} {LAWS["affine"]}/>'
    model = world(f"{actuator}</actuator><sensor>{SENSORS[kind]}</sensor><actuator>")
    data = state(model, 0, ctrl=0.4)
    weights = np.random.default_rng(3).normal(size=model.nsensordata)
    judge(model, data, tolerance=SMOOTH_TOLERANCE, sensed=weights)


def test_limits_of_spatial_tendons_have_sensors():
    sensors = '<sensor><tendonlimitpos tendon="cable"/><tendonlimitvel tendon="cable"/></sensor>'
    model = arm("sphere", "no side", tendon='range="0 .2" limited="true"', rest=sensors)
    model = reference.converge(model)
    weights = np.array([0.7, -0.4])
    for data in wrapped_states(model):
        assert data.nefc == 1
        judge(model, data, tolerance=1e-7, sensed=weights)


@pytest.mark.parametrize("kind", ["actuatorpos", "actuatorvel"])
def test_sensors_of_disabled_actuators_on_two_trees(kind):
    """Nothing couples the trees but the sensor."""
    motor = f'<general name="a" group="1" {TRANSMISSIONS["refsite on other tree"]}/>'
    sensor = f'<{kind} actuator="a"/>'
    model = world(f"{motor}</actuator><sensor>{sensor}</sensor><actuator>")
    model.opt.disableactuator = 2
    data = state(model, 0)
    judge(model, data, tolerance=SMOOTH_TOLERANCE, sensed=np.ones(1))
    judge_product(model, data, 1e-3 * cotangent(model), np.ones(1))


def test_what_is_missing_raises_with_its_name():
    model = world('<orientation name="turn" joint="wrist" kp="3"/>')
    assert [u.element for u in mujacobian.support(model, order=2)] == ['actuator "turn"']
    assert mujacobian.support(model) == []
    with pytest.raises(mujacobian.UnsupportedFeatureError) as raised:
        mujacobian.hessian(model, state(model, 0), cotangent(model))
    assert raised.value.element == 'actuator "turn"'


STICKY = """
<mujoco>
  <option timestep=".004" tolerance="1e-15" integrator="{integrator}"/>
  <default><geom solimp=".5 .95 .02 .4 3" margin=".01" gap=".005"/></default>
  <worldbody>
    <geom type="plane" size="3 3 .1" euler="2 3 1"/>
    <body pos="0 0 .2">
      <freejoint/>
      <geom type="capsule" fromto="-.1 0 0 .1 .05 .02" size=".05" mass="1"/>
      <body name="foot" pos=".1 0 -.1">
        <joint axis="0 1 .3" damping=".2"/>
        <geom type="{shape}" size=".05 .04 .06" mass=".4"/>
        <body pos=".1 .02 0"><joint type="ball"/><geom size=".05" mass=".2"/></body>
      </body>
    </body>
  </worldbody>
  <actuator><adhesion name="glue" body="foot" ctrlrange="0 1" gain="300"/></actuator>
</mujoco>"""


@pytest.mark.parametrize("shape", ["sphere", "ellipsoid", "box"])
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_adhesion(shape, integrator):
    model = mujoco.MjModel.from_xml_string(STICKY.format(shape=shape, integrator=integrator))
    model = reference.converge(model)
    data = mujoco.MjData(model)
    turns = np.array([0, 0, 0, 0.3, 0.2, 0.1, 0.3, 0.1, 0.2, 0.3])
    mujoco.mj_integratePos(model, data.qpos, turns, 1.0)
    data.ctrl[:] = 0.7
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv) * 0.2
    for data.qpos[2] in np.arange(0.4, 0, -1e-3):  # until the foot touches the floor
        mujoco.mj_forward(model, data)
        if data.actuator_moment.any():
            break
    assert mujacobian.support(model, order=2) == []
    found = joined(mujacobian.hessian(model, data, cotangent(model)))
    share = judge_columns(model, data, tolerance=1e-5 if shape == "ellipsoid" else 1e-7)
    assert share > 0.5
    judge_product(model, data, cotangent(model))
    data.ctrl[:] = 0.6
    other = joined(mujacobian.hessian(model, data, cotangent(model)))
    assert abs(found - other).max() > 1e-3 * abs(found).max()
