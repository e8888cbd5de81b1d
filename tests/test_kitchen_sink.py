"""Two machines with one element of every kind, with every integrator: all blocks at once.

The first one has no constraint rows. It has all joints, all transmissions, gains, biases and
dynamics of actuators, tendons around geoms, a medium, and the sensors. The second one also stands
on the floor, with equalities, limits, dry friction, adhesion, and the sensors of their forces.
"""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.scenes import cases

SMOOTH_TOLERANCE = 1e-8
CONSTRAINED_TOLERANCE = 1e-6
TRUST_MARGIN = 5
SETTLED_MARGIN = 1000
LEAST_SHARE = 0.6
DIRECTIONS = 2  # directions of positions, velocities, activations, controls and forces each
FLOOR = 1e-3  # fraction of the largest entry of the rows with the same units
SENSED_FLOOR = 1e-6  # floor for a sensor that does not change at all

XML = """
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option timestep=".002" density="1.5" viscosity=".3" wind=".4 -.2 .1" magnetic=".3 -.5 .2"/>
  <default><geom contype="0" conaffinity="0" density="700"/></default>
  <worldbody>
    {floor}
    <site name="base" pos=".1 -.4 .9" euler=".2 .3 -.1"/>
    <geom name="drum" type="cylinder" size=".08 .3" pos=".3 -.4 .75" euler="1.5 .2 0"/>
    <camera name="guard" pos="0 -2 1" xyaxes="1 0 0 0 0 1" resolution="320 200"/>
    <body name="upper" pos="0 0 1" gravcomp=".4">
      <joint name="slide" type="slide" axis=".2 0 1" damping=".3 .1" stiffness="9 2"/>
      <joint name="elbow" axis=".3 1 0" armature=".02" actuatorgravcomp="true" {limit}/>
      <geom name="bone" type="capsule" fromto="0 0 0 .3 .1 0" size=".04" fluidshape="ellipsoid"/>
      <site name="shaft" pos=".1 .05 .02" euler=".4 -.2 .3"/>
      <body name="hand" pos=".3 .1 0">
        <joint name="wrist" type="ball" damping=".05" stiffness=".6"/>
        <geom name="ball" type="sphere" size=".05"/>
        <geom name="palm" type="box" size=".08 .05 .03" pos=".1 .1 .2"/>
        <site name="finger" pos=".08 .03 .1" euler="-.3 .5 .2"/>
        <site name="side" pos="0 0 .06"/>
        <body name="nail" pos=".1 .1 .2">
          <joint name="tip" axis="1 .5 0" damping=".1" frictionloss="{friction}"/>
          <geom name="claw" type="ellipsoid" size=".03 .05 .08" pos=".05 0 .05"
                fluidshape="ellipsoid"/>
          <site name="end" pos=".1 0 .05" euler=".6 .1 -.4"/>
        </body>
      </body>
    </body>
    <body name="drone" pos=".5 .4 {height}">
      <freejoint name="float"/>
      <geom name="hull" type="box" size=".12 .09 .05" {touch}/>
      <camera name="eye" pos=".1 0 .2" euler="1 .2 0"/>
      <site name="hook" pos=".05 .02 -.05" euler=".1 -.6 .2"/>
      <site name="zone" type="box" size=".2 .2 .1"/>
      <site name="lidar" pos="0 0 -.06" euler="3 .1 .2"/>
      <body name="arm" pos=".1 0 .1">
        <joint name="rotor" axis="0 .4 1" damping=".02"/>
        <geom name="blade" type="capsule" fromto="0 0 0 .2 .05 0" size=".02"/>
        <site name="tail" pos=".2 .05 0" euler=".3 .2 .1"/>
      </body>
    </body>
    {loop}
  </worldbody>
  <tendon>
    <fixed name="belt" stiffness="3" damping=".1" springlength=".1">
      <joint joint="elbow" coef=".7"/><joint joint="tip" coef="-.4"/>
    </fixed>
    <spatial name="rope" stiffness="2" damping=".2" springlength=".4" {taut}>
      <site site="base"/><geom geom="drum"/><site site="shaft"/><pulley divisor="2"/>
      <site site="shaft"/><geom geom="ball" sidesite="side"/><site site="finger"/>
      <site site="tail"/>
    </spatial>
    <spatial name="cord" armature=".03"><site site="shaft"/><site site="hook"/></spatial>
  </tendon>
  <actuator>
    <motor name="motor" joint="slide" gear="2" ctrlrange="-1 1"/>
    <position name="servo" joint="elbow" kp="6" kv=".5" forcerange="-2 2"/>
    <general name="ramp" joint="wrist" gear=".5 -1.2 .8" dyntype="integrator" gainprm="4"
             biastype="affine" biasprm="0 -4 -.3"/>
    <general name="lag" jointinparent="float" gear=".5 1 -2 .4 .3 .2" dyntype="filter"
             dynprm=".03" gaintype="affine" gainprm=".5 .3 -.2"/>
    <general name="exact" site="end" refsite="tail" gear="1 .5 -.3 .1 .2 .4" actearly="true"
             dyntype="filterexact" dynprm=".006" biastype="affine" biasprm=".2 -2 -.4"/>
    <general name="flesh" tendon="rope" gear="-.8" dyntype="muscle" dynprm=".01 .04 .6"
             gaintype="muscle" gainprm=".75 1.05 30 200 .5 1.6 1.5 1.3 1.2" biastype="muscle"
             biasprm=".75 1.05 30 200 .5 1.6 1.5 1.3 1.2" lengthrange="-2 2"/>
    <motor name="crank" cranksite="tail" slidersite="end" cranklength="2" gear=".9"/>
    <pid name="pid" tendon="belt" kp="5" kv=".6" ki="3" imax=".3"/>
    {newer}
    {glue}
  </actuator>
  {equality}
  <sensor>{sensors}</sensor>
</mujoco>"""

# the discrete integrator does not support these
NEWER = """
  <dcmotor name="dc" joint="rotor" motorconst=".6" resistance="1.4" inductance="0 .01"/>
  <orientation name="gaze" joint="wrist" kp="2" kv=".3"/>"""

CONSTRAINED = {
    "floor": '<geom name="floor" type="plane" size="3 3 .1" contype="1" conaffinity="1"/>',
    "limit": 'range="-.02 .02"',
    "friction": ".05",
    "height": ".05",
    "touch": 'contype="1" conaffinity="1"',
    "taut": 'range="0 .2" frictionloss=".02"',
    "loop": """<body name="link" pos="1 1 1"><joint name="swing" axis="0 1 0"/>
      <geom type="capsule" size=".02" fromto="0 0 0 .2 0 0"/><body name="rod" pos=".2 0 0">
      <joint name="knee" axis="0 1 .1"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 -.2"/>
      </body></body><body name="bob" pos="1.3 1 1"><freejoint/><geom size=".05"/></body>""",
    "glue": '<adhesion name="glue" body="drone" gain="3" ctrlrange="0 1"/>',
    "equality": """<equality>
      <connect body1="rod" anchor="0 .01 -.2"/><weld body1="bob" body2="link"/>
      <joint joint1="rotor" joint2="swing" polycoef="0 .3 .1 0 0"/>
      <tendon tendon1="belt" polycoef=".05 0 0 0 0"/></equality>""",
}
SMOOTH = {key: "" for key in CONSTRAINED} | {"friction": "0", "height": "1.3"}


def smooth_sensors() -> str:
    def of(kinds: str, attributes: str) -> str:
        return "".join(f"<{kind} {attributes}/>" for kind in kinds.split())

    things = ("xbody", "nail"), ("site", "tail"), ("camera", "eye"), ("geom", "claw")
    frames = "framepos framequat framexaxis frameyaxis framezaxis framelinvel frameangvel"
    text = of("gyro velocimeter accelerometer magnetometer", 'site="end"')
    text += of("rangefinder", 'site="lidar"') + of("camprojection", 'site="end" camera="guard"')
    for joint in ("slide", "elbow", "tip"):
        text += of("jointpos jointvel jointactuatorfrc", f'joint="{joint}"')
    for tendon in ("belt", "rope"):
        text += of("tendonpos tendonvel tendonactuatorfrc", f'tendon="{tendon}"')
    for name in ("servo", "lag", "exact", "flesh", "crank", "pid"):
        text += of("actuatorpos actuatorvel actuatorfrc", f'actuator="{name}"')
    for kind, name in things:
        text += of(f"{frames} framelinacc frameangacc", f'objtype="{kind}" objname="{name}"')
    text += of(frames, 'objtype="body" objname="hand" reftype="site" refname="hook"')
    text += of("ballquat ballangvel", 'joint="wrist"')
    text += of("subtreecom subtreelinvel subtreeangmom", 'body="upper"')
    text += of("distance normal fromto", 'body1="hand" body2="drone" cutoff="5"')
    text += of("insidesite", 'site="zone" objtype="body" objname="arm"')
    return text + "<e_potential/><e_kinetic/><clock/>"


def force_sensors() -> str:
    text = "".join(
        f'<jointlimit{kind} joint="elbow"/><tendonlimit{kind} tendon="rope"/>'
        for kind in ("pos", "vel", "frc")
    )
    fields = "found force torque dist pos normal tangent"
    text += f'<contact geom1="hull" geom2="floor" num="2" data="{fields}"/><touch site="zone"/>'
    return text + "".join(
        f'<force site="{site}"/><torque site="{site}"/>' for site in ("finger", "hook")
    )


def build(integrator: str, *, constrained: bool) -> mujoco.MjModel:
    discrete = integrator == "discrete"
    sensors = smooth_sensors()
    if not discrete:
        sensors += "".join(f'<actuator{kind} actuator="gaze"/>' for kind in ("pos", "vel", "frc"))
    if constrained:
        sensors += force_sensors()
    parts = CONSTRAINED if constrained else SMOOTH
    model = mujoco.MjModel.from_xml_string(
        XML.format(**parts, newer="" if discrete else NEWER, sensors=sensors)
    )
    if constrained:
        reference.converge(model)
    cases.INTEGRATORS[integrator](model)
    return model


def state(model: mujoco.MjModel, seed: int, scale: float) -> mujoco.MjData:
    rng = np.random.default_rng(seed)
    data = cases.random_state(model, rng, forces=True, scale=scale)
    data.qvel *= scale
    data.act[:] = 0.3 + 0.1 * rng.normal(size=model.na)
    data.ctrl[:] = 0.3 + 0.1 * rng.normal(size=model.nu)
    return data


def directions(model: mujoco.MjModel, rng: np.random.Generator) -> np.ndarray:
    """Return random directions of every kind of input."""
    sizes = [model.nv, model.nv, model.na, model.nu, model.nv]
    ends = np.cumsum(sizes)
    rows = np.zeros((DIRECTIONS * len(sizes), ends[-1]))
    for k, (size, end) in enumerate(zip(sizes, ends, strict=True)):
        block = slice(DIRECTIONS * k, DIRECTIONS * (k + 1))
        rows[block, end - size : end] = rng.normal(size=(DIRECTIONS, size))
    return rows


def judge(model: mujoco.MjModel, data: mujoco.MjData, tolerance: float) -> None:
    """Check all blocks along random directions, every sensor with its own scale."""
    constrained = tolerance == CONSTRAINED_TOLERANCE
    before = cases.snapshot(model, data)
    lin = mujacobian.linearize(model, data, forces=True)
    assert cases.snapshot(model, data) == before, "the caller's state changed"
    along = directions(model, np.random.default_rng(1))
    J = np.block([[lin.A, lin.B, lin.Bf], [lin.C, lin.D, lin.Df]]) @ along.T
    settled = tolerance / SETTLED_MARGIN if constrained else reference.SETTLED
    ref = reference.directional(model, data, along, constrained=constrained, settled=settled)

    parts = list(zip(ref.blocks[:3], ref.blocks[1:4], strict=True))
    for adr, dim in zip(model.sensor_adr, model.sensor_dim, strict=True):
        parts.append((ref.nx + adr, ref.nx + adr + dim))
    judged = moving = 0
    for k, (lo, hi) in enumerate(parts):
        size = abs(ref.J[lo:hi])
        scale = np.maximum(size.max(axis=0), max(FLOOR * size.max(), SENSED_FLOOR))
        trusted = ref.err[lo:hi] <= tolerance / TRUST_MARGIN * scale
        error = np.where(trusted, abs(J[lo:hi] - ref.J[lo:hi]) / scale, 0.0)
        what = mujoco.mjtSensor(model.sensor_type[k - 3]).name if k >= 3 else ("q", "v", "act")[k]
        assert error.max() <= tolerance, f"{what} {k - 3}: {error.max():.1e}"
        judged += (trusted & (size > 0)).sum()
        moving += (size > 0).sum()
    assert judged >= LEAST_SHARE * moving, f"{judged} of {moving} entries are trusted"


@pytest.mark.parametrize("integrator", cases.INTEGRATORS)
def test_without_constraints(integrator: str) -> None:
    model = build(integrator, constrained=False)
    data = state(model, 1, 0.3)
    mujoco.mj_forward(model, data)
    assert data.nefc == 0
    judge(model, data, SMOOTH_TOLERANCE)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("integrator", cases.INTEGRATORS)
def test_with_constraints(integrator: str, cone: str) -> None:
    model = build(integrator, constrained=True)
    model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}")
    data = state(model, 2, 0.02)
    data.joint("elbow").qpos[:] = 0.025
    data.joint("float").qpos[2] = 0.048
    mujoco.mj_forward(model, data)
    assert set(data.efc_type) >= {0, 1, 2, 3, 4}
    assert data.ncon
    judge(model, data, CONSTRAINED_TOLERANCE)


def test_nothing_is_left_out() -> None:
    """The two machines have everything that MuJoCo has, except for unsupported features."""
    smooth, constrained = (build("euler", constrained=flag) for flag in (False, True))
    refused = (
        "USER",
        "PLUGIN",
        "TACTILE",
        "UNDEFINED",
        "FLEX",
        "FLEXVERT",
        "FLEXSTRAIN",
        "DISTANCE",
    )
    for enum, field in (
        ("mjtSensor", "sensor_type"),
        ("mjtJoint", "jnt_type"),
        ("mjtEq", "eq_type"),
        ("mjtTrn", "actuator_trntype"),
        ("mjtDyn", "actuator_dyntype"),
        ("mjtGain", "actuator_gaintype"),
        ("mjtBias", "actuator_biastype"),
    ):
        values = {int(x) for model in (smooth, constrained) for x in getattr(model, field)}
        members = getattr(mujoco, enum).__members__.items()
        missing = [
            name for name, x in members if int(x) not in values and not name.endswith(refused)
        ]
        assert not missing, f"{enum}: {missing}"
