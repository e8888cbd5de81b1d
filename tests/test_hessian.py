"""Second derivatives of a step against differences of A and B, and their errors."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from mujacobian.errors import ArgumentError, ArgumentTypeError
from tests.oracle.second_order import (
    FIRST_STEP,
    cotangent,
    differences,
    joined,
    judge,
    judge_brackets,
    judge_columns,
)
from tests.scenes.cases import FOLDER, INTEGRATORS, random_state, sample
from tests.scenes.random_trees import random_tree
from tests.test_actuators import DYNAMICS, LAWS, MOTORS, NEWEST, PID, TRANSMISSIONS, state, world

# The differences of A and B are accurate to about 1e-11; masses that span six orders of magnitude
# cost two digits.
SMOOTH_TOLERANCE = 1e-8
CONSTRAINED_TOLERANCE = 1e-8
EQUALITY = {"tolerance": 1e-7, "step": 4e-3}  # larger steps leave the range of some impedances
EQUALITY_SHARE = 0.9  # of the columns
BRACKET_TOLERANCE = 1e-11  # of the antisymmetric part, relative to the largest entry

INTEGRATORS_COVERED = ("euler", "implicitfast", "implicit")
SMOOTH = (
    "hinge_chain",
    "slide_chain",
    "ball_chain",
    "free_body",
    "free_body_with_limbs",
    "free_body_damped",
    "free_body_welded_child",
    "many_free_bodies",
    "joints_sharing_a_body",
    "gravity_tilted",
    "no_gravity",
    "reference_poses",
    "static_and_massless_bodies",
    "two_robots",
    "armature",
    "joint_springs",
    "joint_dampers",
    "ball_and_free_springs",
    "gravcomp",
    "gravcomp_through_actuators",
    "fixed_tendon",
    "actuator_kinds",
    "actuator_ball_and_free",
    "ctrl_clamping",
    "force_clamping",
    "joint_force_clamping",
)

# Limits, dry friction and couplings of hinges and of tendons through hinges, on two trees.
ROWS = """
<mujoco>
  <option timestep=".004" tolerance="1e-15"><flag contact="disable" {flag}/></option>
  <worldbody>
    <body pos="0 0 1">
      <freejoint/>
      <geom size=".1" mass="2"/>
      <body pos=".1 0 0">
        <joint name="a" axis="0 1 0" range="-20 25" solimplimit=".4 .95 .2 .3 3" damping=".05"/>
        <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04"/>
        <body pos=".3 0 0">
          <joint name="b" axis="0 .4 1" frictionloss=".02"/>
          <geom type="box" size=".05 .03 .1" pos="0 .05 0"/>
          <body pos=".1 0 .1">
            <joint name="c" axis="0 1 0" range="-5 10" margin=".3" solimplimit="0 .9 .5 .5 2"/>
            <geom size=".05" pos="0 0 .1"/>
            <body pos=".1 0 .1">
              <joint name="d" axis="1 .3 0"/>
              <geom size=".05" pos="0 .1 .1"/>
            </body>
          </body>
        </body>
      </body>
    </body>
    <body pos="1 0 0"><joint name="e" axis="0 1 0"/><geom size=".1" pos=".1 0 .2"/></body>
  </worldbody>
  <tendon>
    <fixed name="t" range="-.1 .3" solimplimit=".2 .95 .8 .6 2" margin=".05">
      <joint joint="b" coef="1"/><joint joint="d" coef="-.5"/>
    </fixed>
    <fixed name="s" frictionloss=".1">
      <joint joint="e" coef="1"/><joint joint="d" coef="-.5"/>
    </fixed>
  </tendon>
  <equality>
    <joint joint1="b" joint2="d" polycoef=".1 .5 .3 -.2 .1" solimp=".3 .9 .9 .4 2"/>
    <joint joint1="e" polycoef=".3 0 0 0 0" solimp=".3 .9 .9 .4 2"/>
    <tendon tendon1="t" tendon2="s" polycoef="0 1 .5 .2 .1" solimp=".3 .9 .9 .4 2"/>
  </equality>
  <actuator>
    <position joint="a" kp="5" kv=".1"/>
    <general joint="d" gaintype="affine" gainprm="1 .5 .3" biastype="affine" biasprm="0 -1 -.1"/>
  </actuator>
</mujoco>"""

PENDULUM = """
<mujoco>
  <option {option}/>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <site name="base" pos=".4 0 .3"/>
    <body name="link" pos="0 0 1">
      <joint name="hinge" axis="0 1 0" {joint}/>
      <geom name="bob" size=".1" pos="0 0 -.5"/>
      <site name="bob" pos="0 0 -.5"/>
    </body>
  </worldbody>
  {rest}
</mujoco>"""


def load(name):
    return mujoco.MjModel.from_xml_path(str(FOLDER / f"{name}.xml"))


def pendulum(*, option="", joint="", rest="", qpos=0.3):
    model = mujoco.MjModel.from_xml_string(PENDULUM.format(option=option, joint=joint, rest=rest))
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    data.qvel[:] = 0.4
    return model, data


@pytest.mark.parametrize(("name", "integrator"), sample(3, SMOOTH, INTEGRATORS_COVERED))
def test_smooth_models(name, integrator):
    model = load(name)
    INTEGRATORS[integrator](model)
    data = random_state(model, np.random.default_rng(0))
    assert judge(model, data, tolerance=SMOOTH_TOLERANCE) > 0


@pytest.mark.parametrize("first", sample(20, range(0, 600, 30)))
def test_random_trees(first):
    """Columns near a kink, such as the dead band of a tendon, are left out."""
    shares = []
    for seed in range(first, first + 30):
        model, data = random_tree(seed)
        if not mujacobian.support(model, order=2):
            shares.append(
                judge_columns(model, data, tolerance=SMOOTH_TOLERANCE, seed=seed, step=FIRST_STEP)
            )
    assert len(shares) >= 10
    assert np.mean(shares) > 0.95


@pytest.mark.parametrize("integrator", INTEGRATORS_COVERED)
@pytest.mark.parametrize("flag", ["", 'eulerdamp="disable"'])
def test_constraint_rows(integrator, flag):
    model = mujoco.MjModel.from_xml_string(ROWS.format(flag=flag))
    INTEGRATORS[integrator](model)
    data = random_state(model, np.random.default_rng(2))
    mujoco.mj_forward(model, data)
    assert set(data.efc_type) == {0, 1, 2, 3, 4}
    assert judge(model, data, tolerance=CONSTRAINED_TOLERANCE) > 0


@pytest.mark.parametrize(
    ("law", "dynamics", "transmission"),
    sample(4, LAWS, DYNAMICS, ["hinge", "ball", "fixed tendon"]),
)
def test_actuator_laws(law, dynamics, transmission):
    actuator = f"<general {TRANSMISSIONS[transmission]} {LAWS[law]} {DYNAMICS[dynamics]}/>"
    model = world(actuator)
    for integrator in ("euler", "implicitfast"):
        INTEGRATORS[integrator](model)
        data = state(model, 0, act=0.2, ctrl=0.4)
        data.act[:], data.ctrl[:] = abs(data.act), abs(data.ctrl)  # muscles only pull
        judge(model, data, tolerance=SMOOTH_TOLERANCE)


@pytest.mark.parametrize(("kind", "transmission"), sample(3, MOTORS, ["hinge", "fixed tendon"]))
def test_motors(kind, transmission):
    motor = 'motorconst=".6" resistance="1.4"'
    model = world(f"<dcmotor {TRANSMISSIONS[transmission]} {motor} {MOTORS[kind]}/>")
    INTEGRATORS["implicitfast"](model)
    judge(model, state(model, 0, act=0.2, ctrl=0.3), tolerance=SMOOTH_TOLERANCE)


def test_a_motor_without_current_warms_up_with_the_square_of_its_rate():
    """The first derivative of the temperature with respect to the rate is zero at rest."""
    motor = 'motorconst=".6" resistance="1.4" thermal="2 3 6 .01 25 30"'
    model = world(f"<dcmotor {TRANSMISSIONS['hinge']} {motor}/>")
    data = mujoco.MjData(model)
    given = np.zeros(2 * model.nv + model.na)
    given[-1] = 1
    found = mujacobian.hessian(model, data, given)
    elbow = model.joint("elbow").dofadr[0]
    assert mujacobian.linearize(model, data).A[-1, model.nv + elbow] == 0
    assert found.xx[model.nv + elbow, model.nv + elbow] > 0
    expected = differences(model, data, given).hessian
    np.testing.assert_allclose(joined(found), expected, atol=1e-10 * abs(expected).max())


@pytest.mark.parametrize(("kind", "transmission"), sample(2, PID, ["hinge", "ball"]))
def test_pid(kind, transmission):
    if kind == "slew and integral" and not NEWEST:
        pytest.skip("the compiler of 3.15 refuses both states at once")
    model = world(f"<pid {TRANSMISSIONS[transmission]} {PID[kind]}/>")
    judge(model, state(model, 0, act=0.1, ctrl=0.3), tolerance=SMOOTH_TOLERANCE)


@pytest.mark.parametrize("integrator", INTEGRATORS_COVERED)
def test_applied_forces(integrator):
    """Wrenches on all bodies, and the blocks of qfrc_applied."""
    model = load("free_body_with_limbs")
    INTEGRATORS[integrator](model)
    rng = np.random.default_rng(4)
    data = random_state(model, rng)
    data.xfrc_applied[:] = rng.normal(size=(model.nbody, 6))
    data.qfrc_applied[:] = rng.normal(size=model.nv)
    assert judge(model, data, tolerance=SMOOTH_TOLERANCE, forces=True) > 0


@pytest.mark.parametrize("name", ["ball_chain", "free_body_with_limbs", "ball_and_free_springs"])
def test_the_antisymmetric_part_of_the_differences_is_that_of_lie_brackets(name):
    """(HES-3): the differences that the symmetric part is taken of are those of one function."""
    model = load(name)
    data = random_state(model, np.random.default_rng(0))
    judge_brackets(model, data, tolerance=BRACKET_TOLERANCE)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_the_result_is_symmetric_repeatable_and_linear_and_changes_nothing(integrator):
    model = load("actuator_ball_and_free")
    INTEGRATORS[integrator](model)
    data = random_state(model, np.random.default_rng(1))
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    before, after = np.empty((2, mujoco.mj_stateSize(model, spec)))
    mujoco.mj_getState(model, data, before, spec)
    count = mujacobian.fd_count()
    a, b = cotangent(model, 1), cotangent(model, 2)
    given = a.copy()
    first = joined(mujacobian.hessian(model, data, a, forces=True))
    second = joined(mujacobian.hessian(model, data, a, forces=True))
    assert (first == second).all()
    assert (first == first.T).all()
    assert (given == a).all()
    both = joined(mujacobian.hessian(model, data, a - 2 * b, forces=True))
    apart = first - 2 * joined(mujacobian.hessian(model, data, b, forces=True))
    np.testing.assert_allclose(both, apart, atol=1e-12 * abs(apart).max())
    mujoco.mj_getState(model, data, after, spec)
    assert (before == after).all()
    assert mujacobian.fd_count() == count


def test_hessian_into_writes_the_requested_blocks():
    model = load("actuator_ball_and_free")
    data = random_state(model, np.random.default_rng(1))
    given = cotangent(model)
    expected = mujacobian.hessian(model, data, given, forces=True)
    for name in ("xx", "xu", "uu", "xf", "uf", "ff"):
        block = np.full_like(getattr(expected, name), np.nan)
        mujacobian.hessian_into(model, data, given, **{name: block})
        np.testing.assert_allclose(block, getattr(expected, name), rtol=1e-12, atol=1e-15)
    inside = np.zeros_like(expected.xx)  # the cotangent may lie in an output
    inside[1] = given
    mujacobian.hessian_into(model, data, inside[1], inside)
    np.testing.assert_allclose(inside, expected.xx, rtol=1e-12, atol=1e-15)
    with pytest.raises(ArgumentError, match=r"d_state must be finite, but d_state\[0\] is nan"):
        mujacobian.hessian_into(model, data, np.full_like(given, np.nan), expected.xx)
    with pytest.raises(ArgumentError, match=r"xx must be a C-contiguous float64 array of shape"):
        mujacobian.hessian_into(model, data, given, expected.xx[1:])
    with pytest.raises(ArgumentTypeError, match="d_state"):
        mujacobian.hessian_into(model, data, None, expected.xx)


def test_forward_false_uses_the_evaluated_state():
    model = load("hinge_chain")
    data = random_state(model, np.random.default_rng(1))
    mujoco.mj_forward(model, data)
    given = cotangent(model)
    evaluated = mujacobian.hessian(model, data, given, forward=False)
    assert (evaluated.xx == mujacobian.hessian(model, data, given).xx).all()


@pytest.mark.parametrize("name", ["ball_and_free_springs", "free_body_with_limbs", "everything"])
def test_rest_positions_give_finite_numbers(name):
    """Rotations by zero, springs without displacement, bodies at rest."""
    model = load(name)
    if name == "everything":  # without the elements that are not supported
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
        model.tendon_stiffness[:] = model.tendon_damping[:] = 0
        model.tendon_stiffnesspoly[:] = 0
    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos_spring
    h = mujacobian.hessian(model, data, cotangent(model))
    assert np.isfinite(h.xx).all()
    assert abs(h.xx).max() > 0


def test_models_without_dofs_or_controls():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"
    )
    h = mujacobian.hessian(model, mujoco.MjData(model), [])
    assert h.xx.shape == h.xu.shape == h.uu.shape == (0, 0)


def test_wrong_arguments():
    model, data = pendulum()
    with pytest.raises(ArgumentError, match=r"d_state must have shape \(2,\), got \(3,\)"):
        mujacobian.hessian(model, data, [1, 2, 3])
    with pytest.raises(ArgumentError, match=r"d_state must be finite, but d_state\[1\] is nan"):
        mujacobian.hessian(model, data, [1, np.nan])
    with pytest.raises(ArgumentTypeError, match="d_state must be an array of numbers"):
        mujacobian.hessian(model, data, None)
    with pytest.raises(ArgumentTypeError, match=r"model must be a mujoco\.MjModel"):
        mujacobian.hessian(None, data, [1, 2])
    with pytest.raises(ArgumentError, match=r"d_sensors must have shape \(0,\), got \(1,\)"):
        mujacobian.hessian(model, data, [1, 2], [1])
    with pytest.raises(ArgumentError, match="order must be 1 or 2, got 3"):
        mujacobian.support(model, order=3)
    data.qvel[0] = np.nan
    with pytest.raises(mujacobian.MujacobianError, match="qvel"):
        mujacobian.hessian(model, data, [1, 2])


def test_active_rows_of_the_discrete_integrator_raise():
    option = 'integrator="discrete"'
    model, data = pendulum(option=option, joint='range="-60 10"', qpos=0.3)
    mujacobian.linearize(model, data)
    with pytest.raises(mujacobian.UnsupportedFeatureError) as raised:
        mujacobian.hessian(model, data, [1, 2])
    assert raised.value.element == f"option {option}"
    assert "second derivatives" in raised.value.reason


POINT_EQUALITIES = (
    "connect_bodies",
    "connect_sites",
    "connect_to_world",
    "connect_within_a_chain",
    "four_bar",
    "weld_bodies",
    "weld_mocap",
    "weld_sites",
    "weld_torquescale",
)


@pytest.mark.parametrize(("name", "integrator"), sample(3, POINT_EQUALITIES, INTEGRATORS_COVERED))
def test_connect_and_weld(name, integrator):
    model = reference.converge(load(f"constraints/{name}"))
    INTEGRATORS[integrator](model)
    data = random_state(model, np.random.default_rng(0))
    mujoco.mj_forward(model, data)
    assert data.ne > 0
    assert judge_columns(model, data, **EQUALITY) > EQUALITY_SHARE


GLUED = """
<mujoco>
  <option tolerance="1e-15"/>
  <worldbody>
    <body name="a"><freejoint/><geom size=".1 .2 .3" type="box" contype="0"/></body>
    <body name="b" pos=".5 0 0"><freejoint/><geom size=".1 .1 .3" type="box" contype="0"/></body>
  </worldbody>
  <equality><{kind} name="glue" body1="a" body2="b" {more} solimp=".5 .9 .5 .4 {power}"/></equality>
</mujoco>"""


@pytest.mark.parametrize("power", [2, 3])
@pytest.mark.parametrize("kind", ["weld", "connect"])
def test_equalities_that_are_satisfied_exactly(kind, power):
    """The norm of the positions has no derivative at zero, but the impedance has."""
    more = 'anchor=".2 .1 .3"' if kind == "connect" else ""
    model = mujoco.MjModel.from_xml_string(GLUED.format(kind=kind, more=more, power=power))
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv)
    mujoco.mj_forward(model, data)
    assert not data.efc_pos.any()
    share = judge_columns(model, data, **EQUALITY)
    assert share > EQUALITY_SHARE or power == 3  # |pos| has no third derivative
    model.eq_solimp[0, 4] = 1.5
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="power below 2"):
        mujacobian.hessian(model, data, np.ones(2 * model.nv))


def test_limits_of_ball_joints():
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <option tolerance="1e-15"/>
        <worldbody>
          <body>
            <joint axis="0 1 0"/>
            <geom size=".1" pos=".1 .2 0"/>
            <body pos=".3 0 0">
              <joint name="ball" type="ball" range="0 30" margin=".1" solimplimit=".3 .9 .5 .4 3"/>
              <geom type="capsule" fromto="0 0 0 .1 .2 .3" size=".05"/>
            </body>
          </body>
        </worldbody>
      </mujoco>""")
    data = mujoco.MjData(model)
    assert mujacobian.support(model, order=2) == []
    mujoco.mj_integratePos(model, data.qpos, np.array([0.1, 0.6, 0.2, 0.1]), 1.0)
    data.qvel[:] = 0.3, 1, 0.2, -0.4
    mujoco.mj_forward(model, data)
    assert data.nefc == 1
    assert data.efc_force[0] > 0
    assert judge_columns(model, data, **EQUALITY) > EQUALITY_SHARE


def test_sleeping_trees_raise():
    model, data = pendulum(rest='<option><flag sleep="enable" gravity="disable"/></option>')
    data.qvel[:] = 0
    while data.ntree_awake:
        assert data.time < 10
        mujoco.mj_step(model, data)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='body "link"'):
        mujacobian.hessian(model, data, [1, 2])
    assert [u.element for u in mujacobian.support(model, order=2)] == ["flag sleep"]
    assert mujacobian.support(model) == []


def test_callbacks_raise():
    model, data = pendulum()
    mujoco.set_mjcb_passive(lambda m, d: None)
    try:
        with pytest.raises(mujacobian.UnsupportedFeatureError, match="mjcb_passive"):
            mujacobian.hessian(model, data, [1, 2])
    finally:
        mujoco.set_mjcb_passive(None)


@pytest.mark.parametrize(
    ("option", "flag", "elements"),
    [
        ('integrator="discrete"', "", ['option integrator="discrete"']),
        ('noslip_iterations="3"', "", ['sensor "pad"', 'sensor "f"', 'sensor "imu"']),
        ("", '<flag diagexact="enable"/>', ['sensor "pad"', 'sensor "f"']),
    ],
)
def test_support_lists_elements_without_second_derivative(option, flag, elements):
    sensors = """<jointpos joint="hinge"/><touch name="pad" site="bob"/><force name="f" site="bob"/>
      <accelerometer name="imu" site="bob"/>"""
    rest = f"<option>{flag}</option><sensor>{sensors}</sensor>"
    model, _ = pendulum(option=option, rest=rest)
    assert mujacobian.support(model) == []
    assert [u.element for u in mujacobian.support(model, order=2)] == elements


def test_a_contact_without_force_contributes_nothing():
    model, data = pendulum()
    model.geom_condim[:] = 1
    model.body_pos[1, 2] = 0.1 + 0.5 * np.cos(0.3) - 0.001
    data.qvel[:] = 5  # upwards
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    assert data.qfrc_constraint[0] == 0
    found = mujacobian.hessian(model, data, [1, 2]).xx
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    expected = mujacobian.hessian(model, data, [1, 2]).xx
    np.testing.assert_allclose(found, expected, atol=1e-15)
