"""Laws, activation dynamics, transmissions and limits of actuators against the reference."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, SMOOTH_TOLERANCE, judge, judge_constrained
from tests.scenes.cases import INTEGRATORS, random_state, sample

TRUSTED_SHARE = 0.9
NEWEST = tuple(int(x) for x in mujoco.__version__.split(".")[:2]) >= (4, 0)

# Two chains: one with slide, hinge and ball joints, the other a free body with a hinge.
WORLD = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep=".004" {option}>
    <flag contact="disable"/>
  </option>
  <worldbody>
    <site name="base" pos=".1 -.2 .9" euler=".2 .3 -.1"/>
    <body name="upper" pos="0 0 1">
      <joint name="slide" type="slide" axis=".2 0 1" damping=".3"/>
      <joint name="elbow" axis=".3 1 0" {joint}/>
      <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04"/>
      <site name="shaft" pos=".1 .05 .02" euler=".4 -.2 .3"/>
      <body name="hand" pos=".3 .1 0">
        <joint name="wrist" type="ball" damping=".05"/>
        <geom type="capsule" fromto="0 0 0 .1 .1 .2" size=".03"/>
        <site name="finger" pos=".08 .03 .1" euler="-.3 .5 .2"/>
        <body name="nail" pos=".1 .1 .2">
          <joint name="tip" axis="1 .5 0" damping=".1"/>
          <geom type="capsule" fromto="0 0 0 .1 -.1 .1" size=".02"/>
          <site name="end" pos=".1 0 .05" euler=".6 .1 -.4"/>
        </body>
      </body>
    </body>
    <body name="drone" pos=".5 .4 1.3">
      <freejoint name="float"/>
      <geom type="box" size=".1 .07 .05"/>
      <site name="hook" pos=".05 .02 -.05" euler=".1 -.6 .2"/>
      <body name="arm" pos=".1 0 0">
        <joint name="rotor" axis="0 .4 1" damping=".02"/>
        <geom type="capsule" fromto="0 0 0 .2 .05 0" size=".02"/>
        <site name="claw" pos=".2 .05 0" euler=".3 .2 .1"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="belt" {tendon}>
      <joint joint="elbow" coef=".7"/><joint joint="tip" coef="-.4"/>
    </fixed>
    <spatial name="rope"><site site="base"/><site site="finger"/><site site="claw"/></spatial>
  </tendon>
  <actuator>{actuators}</actuator>
</mujoco>"""


def world(actuators, *, option="", joint="", tendon=""):
    xml = WORLD.format(actuators=actuators, option=option, joint=joint, tendon=tendon)
    return mujoco.MjModel.from_xml_string(xml)


def state(model, seed, *, act=0.4, ctrl=1.0, speed=1.0):
    rng = np.random.default_rng(seed)
    data = random_state(model, rng)
    data.qvel *= speed
    data.ctrl[:] = rng.normal(size=model.nu) * ctrl
    data.act[:] = rng.normal(size=model.na) * act
    return data


def check(model, seeds=range(2), integrators=("euler", "implicitfast"), **kwargs):
    """Judge random states with the integrators."""
    for seed in seeds:
        for integrator in integrators:
            INTEGRATORS[integrator](model)
            data = state(model, seed, **kwargs)
            try:
                share, _ = judge(model, data)
            except AssertionError as error:
                raise AssertionError(f"{integrator}, seed {seed}: {error}") from None
            assert share >= TRUSTED_SHARE, f"{integrator}, seed {seed}: trusted {share:.3f}"


TRANSMISSIONS = {
    "hinge": 'joint="elbow" gear="1.7"',
    "ball": 'joint="wrist" gear=".5 -1.2 .8"',
    "ball in parent": 'jointinparent="wrist" gear=".5 -1.2 .8"',
    "free": 'joint="float" gear=".5 1 -2 .4 .3 .2"',
    "free in parent": 'jointinparent="float" gear=".5 1 -2 .4 .3 .2"',
    "fixed tendon": 'tendon="belt" gear="1.3"',
    "spatial tendon": 'tendon="rope" gear="-.8"',
    "site": 'site="end" gear="1 .5 -.3 .1 .2 .4"',
    "refsite in world": 'site="end" refsite="base" gear="1 .5 -.3 .1 .2 .4"',
    "refsite on ancestor": 'site="end" refsite="shaft" gear="1 .5 -.3 .1 .2 .4"',
    "refsite on descendant": 'site="shaft" refsite="end" gear="1 .5 -.3 .1 .2 .4"',
    "refsite on other tree": 'site="end" refsite="claw" gear="1 .5 -.3 .1 .2 .4"',
    "refsite translation": 'site="finger" refsite="claw" gear="1 .5 -.3 0 0 0"',
    "refsite rotation": 'site="finger" refsite="claw" gear="0 0 0 .5 -.8 .3"',
    "crank": 'cranksite="end" slidersite="shaft" cranklength="1.1" gear=".9"',
    "crank on other tree": 'cranksite="claw" slidersite="end" cranklength="2" gear=".9"',
    "crank too short": 'cranksite="end" slidersite="base" cranklength=".05" gear=".9"',
}

# fixed and affine gains and biases; the length range of the muscle covers all lengths here
LAWS = {
    "motor": 'gainprm="1.5"',
    "servo": 'gainprm="6" biastype="affine" biasprm="0 -6 -.7"',
    "affine": 'gaintype="affine" gainprm=".5 .3 -.2" biastype="affine" biasprm=".2 -2 -.4"',
    "muscle": 'gaintype="muscle" gainprm=".75 1.05 30 200 .5 1.6 1.5 1.3 1.2" biastype="muscle" '
    'biasprm=".75 1.05 30 200 .5 1.6 1.5 1.3 1.2" lengthrange="-2 2"',
}

DYNAMICS = {
    "none": "",
    "integrator": 'dyntype="integrator" actlimited="true" actrange="-.6 .6"',
    "filter": 'dyntype="filter" dynprm=".03"',
    "filterexact": 'dyntype="filterexact" dynprm=".006" actlimited="true" actrange="-.6 .6"',
    "muscle": 'dyntype="muscle" dynprm=".01 .04"',
    "muscle smooth": 'dyntype="muscle" dynprm=".01 .04 .6"',
    "integrator early": 'dyntype="integrator" actearly="true"',
    "filterexact early": 'dyntype="filterexact" dynprm=".006" actearly="true"',
    "muscle early": 'dyntype="muscle" dynprm=".01 .04 .3" actearly="true"',
}


@pytest.mark.parametrize(("transmission", "law"), sample(2, TRANSMISSIONS, ["affine", "servo"]))
def test_transmissions(transmission, law):
    check(world(f"<general {TRANSMISSIONS[transmission]} {LAWS[law]}/>"))


@pytest.mark.parametrize("transmission", ["ball", "ball in parent", "refsite rotation"])
@pytest.mark.parametrize("dynamics", ["none", "integrator early"])
def test_setpoints_of_rotations_wrap(transmission, dynamics):
    """A setpoint several turns away is equivalent to the nearest one."""
    servo = f"{TRANSMISSIONS[transmission]} {LAWS['servo']} {DYNAMICS[dynamics]}"
    check(world(f"<general {servo}/>"), act=20.0, ctrl=20.0)


@pytest.mark.parametrize(("law", "dynamics"), sample(4, LAWS, DYNAMICS))
def test_laws_and_dynamics(law, dynamics):
    actuators = "".join(
        f'<general {TRANSMISSIONS[trn]} {LAWS[law]} {DYNAMICS[dynamics]} ctrlrange="-1 1"/>'
        for trn in ("fixed tendon", "refsite on other tree")
    )
    check(world(actuators))


PID = {
    "position": 'kp="5" kv=".6"',
    "all inputs": 'kp="5" kv=".6" input="pos vel ff"',
    "integral": 'kp="5" kv=".6" ki="3" input="pos vel"',
    "integral limited": 'kp="5" kv=".6" ki="3" imax=".3"',
    "slew": 'kp="5" kv=".6" slewmax="20"',
    "slew and integral": 'kp="5" kv=".6" ki="3" imax=".5" slewmax="300"',
}


@pytest.mark.parametrize(
    ("kind", "transmission"),
    sample(4, PID, ["hinge", "ball", "refsite rotation", "spatial tendon"]),
)
def test_pid(kind, transmission):
    if kind == "slew and integral" and not NEWEST:
        pytest.skip("the compiler of 3.15 refuses both states at once")
    check(world(f"<pid {TRANSMISSIONS[transmission]} {PID[kind]}/>"))


MOTORS = {
    "voltage": "",
    "no input": 'input="none"',
    "current": 'inductance="0 .01"',
    "current rate": 'inductance="0 .01" saturation="0 0 5"',
    "warm": 'thermal="2 3 6 .01 25 30"',
    "warm current": 'thermal="2 3 6 .01 25 30" inductance="0 .01"',
    "cogging": 'cogging=".2 6 .3"',
    "friction": 'lugre="20 .3 .2 .4 .5"',
    "position": 'input="pos vel ff" controller="3 0 .4"',
    "supply limit": 'input="pos" controller="3 0 .4 0 0 1"',
    "supply limit and current": 'input="pos" controller="3 0 .4 0 0 1" inductance="0 .01"',
    "position and voltage": 'input="pos voltage" controller="3 0 .4"',
    "slew": 'input="pos" controller="3 0 .4 30"',
    "integral": 'input="pos" controller="3 2 .4 0 .5"',
    "everything": 'input="pos vel" controller="3 2 .4 100 .5" thermal="2 3 6 .01 25 30" '
    'inductance="0 .01" lugre="20 .3 .2 .4 .5" cogging=".2 6 .3"',
}


@pytest.mark.parametrize(
    ("kind", "transmission"), sample(3, MOTORS, ["hinge", "fixed tendon", "refsite on other tree"])
)
def test_motors(kind, transmission):
    motor = 'motorconst=".6" resistance="1.4"'
    check(world(f"<dcmotor {TRANSMISSIONS[transmission]} {motor} {MOTORS[kind]}/>"))


ORIENTATIONS = {
    "ball": 'joint="wrist" kp="4" kv=".5"',
    "site": 'site="end" refsite="claw" kp="4" kv=".5"',
    "site on one chain": 'site="end" refsite="shaft" kp="4" kv=".5"',
    "quaternion": 'joint="wrist" kp="4" kv=".5" input="quat"',
    "limited": 'site="end" refsite="claw" kp="4" forcerange="0 1"',
    "limited ball": 'joint="wrist" kp="4" forcerange="0 1"',
}


@pytest.mark.parametrize("kind", ORIENTATIONS)
def test_orientation_servos(kind):
    check(world(f"<orientation {ORIENTATIONS[kind]}/>"))


OTHERS = {
    "transmissions": "".join(
        f"<general {trn} {LAWS['affine']}/>"
        for trn in (TRANSMISSIONS["crank on other tree"], TRANSMISSIONS["free in parent"])
    ),
    "dynamics": f"""<general joint="elbow" {LAWS["servo"]} {DYNAMICS["integrator"]}/>
      <general {TRANSMISSIONS["refsite rotation"]} {LAWS["servo"]} {DYNAMICS["integrator early"]}/>
      <general tendon="rope" {LAWS["muscle"]} {DYNAMICS["muscle smooth"]}/>
      <general joint="tip" {LAWS["affine"]} {DYNAMICS["filterexact early"]}/>""",
    "motor": f"""<dcmotor {TRANSMISSIONS["refsite on other tree"]} motorconst=".6" resistance="1.4"
      {MOTORS["everything"]}/>""",
    "pid": f"<pid {TRANSMISSIONS['ball']} {PID['integral limited']}/>"
    f"<pid {TRANSMISSIONS['hinge']} {PID['slew']}/>",
    "orientation": f"""<orientation {ORIENTATIONS["site"]}/>
      <general joint="wrist" gaintype="so3" biastype="so3" gainprm="4" biasprm="0 -4 -.5"
        dyntype="integrator"/>""",
}


@pytest.mark.parametrize("integrator", ["implicit", "rk4"])
@pytest.mark.parametrize("kind", OTHERS)
def test_other_integrators(kind, integrator):
    check(world(OTHERS[kind]), seeds=[3], integrators=[integrator])


@pytest.mark.parametrize("kind", ["transmissions", "dynamics", "pid"])
def test_stiffness_in_the_metric_of_the_discrete_integrator(kind):
    check(world(OTHERS[kind]), integrators=["discrete"])


@pytest.mark.parametrize("early", ["", 'actearly="true"'])
def test_integrated_orientation_servos(early):
    """The setpoint is an activation; beyond half a turn it is moved back by a turn."""
    servo = f"""<general site="end" refsite="claw" gaintype="so3" biastype="so3" gainprm="4"
      biasprm="0 -4 -.5" dyntype="integrator" {early}/>"""
    check(world(servo))
    check(world(servo), act=4.0)


def test_current_without_actearly():
    """Motors of MuJoCo use the current at the end of the step unless `actearly` is off."""
    model = world('<dcmotor joint="elbow" motorconst=".6" resistance="1.4" inductance="0 .01"/>')
    model.actuator_actearly[:] = False
    check(model)


# attributes of actuators, attributes of motors, attributes of their transmissions
LIMITED = {
    "ctrlrange": ('ctrlrange="-.5 .5"', 'ctrlrange="-.5 .5"', {}),
    "forcerange": ('forcerange="-.4 .4"', 'saturation=".4"', {}),
    "joint": ("", "", {"joint": 'actuatorfrcrange="-.4 .4"'}),
    "tendon": ("", "", {"tendon": 'actuatorfrcrange="-.4 .4"'}),
    "tendon and forcerange": (
        'forcerange="-.3 .3"',
        'saturation=".3"',
        {"tendon": 'actuatorfrcrange="-.5 .5"'},
    ),
}


@pytest.mark.parametrize("limit", LIMITED)
def test_limits(limit):
    """Four actuators on one tendon and four on one joint, with activations and friction."""
    attributes, of_motor, places = LIMITED[limit]
    actuators = "".join(
        f"""<general {trn} {LAWS["affine"]} {DYNAMICS["filter"]} {attributes}/>
        <general {trn} {LAWS["servo"]} {DYNAMICS["integrator early"]} {attributes}/>
        <general {trn} {LAWS["muscle"]} {DYNAMICS["muscle"]} {attributes}/>
        <dcmotor {trn} motorconst=".6" resistance="1.4" lugre="20 .3 .2 .4 .5" {of_motor}/>"""
        for trn in (TRANSMISSIONS["fixed tendon"], TRANSMISSIONS["hinge"])
    )
    check(world(actuators, **places))


@pytest.mark.parametrize("kind", ORIENTATIONS)
def test_sensors_of_orientation_servos(kind):
    """The servo has three values each: rotation vector, rates about the axes, torque."""
    xml = WORLD.format(
        actuators=f'<orientation name="a" {ORIENTATIONS[kind]}/>', option="", joint="", tendon=""
    )
    sensors = "".join(f'<actuator{quantity} actuator="a"/>' for quantity in ("pos", "vel", "frc"))
    xml = xml.replace("</mujoco>", f"<sensor>{sensors}</sensor></mujoco>")
    model = mujoco.MjModel.from_xml_string(xml)
    assert model.nsensordata == 9
    for seed in range(3):
        data = state(model, seed)
        lin = mujacobian.linearize(model, data)
        assert lin.C.any(axis=1).all()
        ref = reference.jacobian(model, data)
        J, expected, err = np.hstack([lin.C, lin.D]), ref.J[ref.nx :], ref.err[ref.nx :]
        scale = abs(expected).max(axis=1, keepdims=True)
        trusted = err <= SMOOTH_TOLERANCE * scale
        assert np.where(trusted, abs(J - expected) / scale, 0).max() <= SMOOTH_TOLERANCE
        assert trusted.mean() >= TRUSTED_SHARE


@pytest.mark.parametrize("tendon", ["", 'actuatorfrcrange="-.4 .4"'])
def test_sensors_of_actuators(tendon):
    """Forces, lengths and rates depend on activations, friction of motors and limits."""
    actuators = f"""
      <general name="a" {TRANSMISSIONS["fixed tendon"]} {LAWS["muscle"]}
        {DYNAMICS["muscle smooth"]}/>
      <dcmotor name="b" {TRANSMISSIONS["fixed tendon"]} motorconst=".6" resistance="1.4"
        {MOTORS["everything"]}/>
      <general name="c" {TRANSMISSIONS["refsite on other tree"]} {LAWS["servo"]}
        {DYNAMICS["integrator early"]}/>
      <general name="d" {TRANSMISSIONS["crank"]} {LAWS["affine"]} forcerange="-.1 .1"/>"""
    sensors = "".join(
        f'<actuator{kind} actuator="{name}"/>' for name in "abcd" for kind in ("frc", "pos", "vel")
    )
    sensors += '<jointactuatorfrc joint="elbow"/><tendonactuatorfrc tendon="belt"/>'
    xml = WORLD.format(actuators=actuators, option="", joint="", tendon=tendon)
    xml = xml.replace("</mujoco>", f"<sensor>{sensors}</sensor></mujoco>")
    model = mujoco.MjModel.from_xml_string(xml)
    for seed in range(2):
        data = state(model, seed)
        lin = mujacobian.linearize(model, data)
        ref = reference.jacobian(model, data)
        J = np.block([[lin.A, lin.B], [lin.C, lin.D]])
        result = reference.compare(J, ref.J, ref.err, ref.blocks)
        assert result.error <= SMOOTH_TOLERANCE
        assert result.share >= TRUSTED_SHARE


@pytest.mark.parametrize("flag", ["group", "actuation", "clampctrl"])
def test_switches(flag):
    """A disabled group holds its activations, except that bristles follow the motion."""
    actuators = f"""
      <general joint="elbow" group="2" {LAWS["servo"]} {DYNAMICS["integrator"]}/>
      <general joint="wrist" gear="1 2 3" {LAWS["servo"]} {DYNAMICS["integrator"]} group="2"/>
      <general joint="tip" {LAWS["affine"]} {DYNAMICS["filterexact"]} ctrlrange="-.1 .1"/>
      <dcmotor joint="elbow" motorconst=".6" resistance="1.4" lugre="9 .3 .2 .4 9" group="2"/>
      <orientation joint="wrist" kp="3" kv=".2" group="2"/>"""
    model = world(actuators)
    if flag == "group":
        model.opt.disableactuator = 1 << 2
    else:
        model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag.upper()}"))
    check(model)
    if flag == "group":
        check(model, integrators=["rk4"])


def test_an_actuator_that_moves_nothing_keeps_its_activation_rows():
    model = world(
        f"""<general site="base" gear="1 0 0 0 0 0" {DYNAMICS["filter"]}/>
        <adhesion body="hand" ctrlrange="0 1"/>
        <general body="hand" {DYNAMICS["integrator"]}/>"""
    )
    INTEGRATORS["euler"](model)
    data = state(model, 0)
    judge_rows = mujacobian.linearize(model, data, sensors=False)
    ref = reference.jacobian(model, data)
    act = slice(2 * model.nv, None)
    np.testing.assert_allclose(judge_rows.A[act], ref.A[act], atol=1e-12)
    np.testing.assert_allclose(judge_rows.B, ref.B, atol=1e-12)
    assert judge_rows.B.any()


ADHESION = """
<mujoco>
  <option timestep=".002" cone="{cone}" integrator="{integrator}"/>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 1" margin=".01" gap="{gap}"/>
    <body name="block" pos="0 0 .099">
      <freejoint/>
      <geom type="box" size=".15 .12 .1" euler="3 -4 10"/>
      <body name="ball" pos=".35 .05 0">
        <joint axis="0 1 0" pos="-.2 0 0"/><joint axis="1 0 .2" pos="0 0 -.1"/>
        <geom size=".095"/>
      </body>
    </body>
    <body name="stone" pos="0 -.05 .265" euler="10 0 20">
      <freejoint/>
      <geom type="capsule" size=".06" fromto="-.1 0 0 .1 0 0" margin=".01" gap="{gap}"/>
    </body>
  </worldbody>
  <actuator>
    <adhesion body="block" ctrlrange="0 2" gain="4"/>
    <general body="stone" gainprm="3" biastype="affine" biasprm="1 0 -.3" dyntype="filter"
      dynprm=".05"/>
    <general body="ball" gaintype="affine" gainprm="3 0 -.5"/>
  </actuator>
</mujoco>"""


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
@pytest.mark.parametrize("gap", [0, 0.05])
def test_adhesion(cone, integrator, gap):
    """Adhesion acts along the normals of all contacts, including those in the gap."""
    xml = ADHESION.format(cone=cone, integrator=integrator, gap=gap)
    model = reference.converge(mujoco.MjModel.from_xml_string(xml))
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(1).normal(size=model.nv) * 0.1
    data.ctrl[:] = (0.7, 0.4, 0.6)
    for _ in range(20):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    assert data.contact.exclude.any() == (gap > 0)
    share = judge_constrained(model, data, CONTACT_TOLERANCE)
    assert share >= TRUSTED_SHARE
