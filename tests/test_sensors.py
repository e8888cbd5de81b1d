"""C, D and Df: every sensor against differences of the step, in moving and static frames."""

from collections.abc import Iterator

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.scenes import cases
from tests.test_inverse import judge_inverse
from tests.test_plastic import WIRE, deformed

SMOOTH_TOLERANCE = 1e-8
CONSTRAINED_TOLERANCE = 1e-6
TRUST_MARGIN = 5  # an entry is compared if the reference is this much better than the tolerance
SETTLED_MARGIN = 1000
LEAST_SHARE = 0.6  # share of the nonzero entries that must be compared
ZERO = 1e-12
COLUMN_FLOOR = 1e-3
FLOOR = 1e-6  # floor for a sensor that does not change at all

INTEGRATORS = ("euler", "implicitfast")

BODIES = """
    <body name="base" pos="0 0 1">
      <freejoint name="root"/>
      <geom name="trunk" type="box" size=".2 .1 .05" pos=".02 0 .01" euler="10 20 30" mass="2"/>
      <camera name="eye" pos=".1 .2 .3" euler="20 -30 40"/>
      <camera name="track" mode="track" pos="1 .2 .3" euler="20 -30 40"/>
      <camera name="trackcom" mode="trackcom" pos=".5 .2 .3"/>
      <camera name="target" mode="targetbody" target="tip" pos=".1 .9 .3"/>
      <camera name="targetcom" mode="targetbodycom" target="arm" pos=".4 .9 .3"/>
      <site name="imu" pos=".05 .02 .03" euler="30 10 -20"/>
      <site name="anchor" pos="0 .1 0"/>
      <body name="arm" pos=".2 0 0" euler="0 30 0">
        <joint name="shoulder" type="ball" pos="0 0 .02" stiffness="2" damping=".1"/>
        <geom name="upper" type="capsule" fromto="0 0 0 .3 0 .05" size=".03" mass=".7"/>
        <body name="forearm" pos=".3 0 .05">
          <joint name="elbow" axis="0 1 .3" pos=".01 .02 0" stiffness="3" springref="20"
                 damping=".05" range="-20 15" limited="LIMITED" margin=".05"/>
          <joint name="extend" type="slide" axis="1 .2 0" stiffness="5" damping=".2"
                 range="-.03 .05" limited="LIMITED"/>
          <joint name="twist" axis="1 0 .1" armature=".02"/>
          <geom name="lower" type="capsule" fromto="0 0 0 .25 .05 0" size=".02" mass=".4"
                contype="1" conaffinity="1"/>
          <body name="bracket" pos=".1 0 .05" euler="0 0 40">
            <geom type="sphere" size=".02" mass=".1"/>
            <site name="mount" pos=".01 .02 .03" euler="50 0 10"/>
            <camera name="wrist" pos="0 .02 .05" euler="10 60 0" sensorsize=".01 .008"
                    resolution="640 480" focal=".02 .02"/>
            <body name="tip" pos=".2 0 0">
              <joint name="wrist" axis="0 0 1" frictionloss="0"/>
              <geom name="nail" type="ellipsoid" size=".02 .03 .04" pos=".03 0 0" mass=".2"
                    contype="1" conaffinity="1"/>
              <site name="touch" pos=".05 .01 .02" euler="0 20 70"/>
            </body>
          </body>
        </body>
      </body>
    </body>
    <body name="drone" pos="1 .3 .8">
      <joint name="lift" type="slide" axis="0 .2 1"/>
      <joint name="pan" axis="0 0 1" pos=".1 0 0"/>
      <joint name="gimbal" type="ball" range="0 40" limited="LIMITED"/>
      <geom name="shell" type="box" size=".1 .1 .05" mass=".5" euler="0 10 20"/>
      <site name="beacon" pos=".1 0 .05" euler="15 25 35"/>
    </body>
    <body name="pole" pos="-1 0 .5" euler="0 0 30">
      <geom name="mast" type="cylinder" size=".05 .5" mass="1" contype="0" conaffinity="0"/>
      <site name="lamp" pos="0 0 .5" euler="40 0 0"/>
      <camera name="guard" pos="0 0 .6" euler="0 80 0" resolution="320 200" fovy="60"/>
    </body>
    <body name="puppet" mocap="true" pos="0 1 1"><site name="held" pos=".1 0 0"/></body>
"""

TENDONS = """
  <tendon>
    <spatial name="cord" stiffness="4" damping=".2" springlength=".3" TENDONLIMIT armature=".05"
             actuatorfrclimited="true" actuatorfrcrange="-1 1">
      <site site="anchor"/><site site="mount"/><pulley divisor="2"/>
      <site site="imu"/><site site="touch"/>
    </spatial>
    <fixed name="mix"><joint joint="elbow" coef=".4"/><joint joint="wrist" coef="-.7"/></fixed>
  </tendon>
  <actuator>
    <motor name="motor" joint="elbow" gear="3"/>
    <position name="servo" joint="wrist" kp="5" kv=".3" forcelimited="true" forcerange="-1.5 1.5"/>
    <general name="winch" tendon="cord" gear="2" gaintype="affine" gainprm="1 .5 .2"
             biastype="affine" biasprm=".1 -2 -.3"/>
    <motor name="second" tendon="cord" gear="-1.5" ctrllimited="true" ctrlrange="-1 1"/>
    <motor name="pull" tendon="mix" gear="1.2"/>
    <general name="aim" joint="gimbal" gear=".3 .5 1" gainprm="2" biastype="affine"
             biasprm="0 -1.5 -.1"/>
    <general name="thrust" site="beacon" gear="0 0 1 .1 0 0" biastype="affine" biasprm="0 0 -.3"/>
    <motor name="idle" joint="twist" group="3"/>
  </actuator>
"""

OBJECTS = [
    ("xbody", "tip"),
    ("body", "base"),
    ("body", "tip"),
    ("geom", "lower"),
    ("site", "touch"),
    ("camera", "wrist"),
    ("camera", "track"),
    ("camera", "trackcom"),
    ("camera", "target"),
    ("camera", "targetcom"),
    ("site", "lamp"),
    ("xbody", "puppet"),
]
REFERENCES = [None, ("xbody", "arm"), ("site", "beacon"), ("camera", "targetcom"), ("site", "held")]
POSITIONS = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis")
VELOCITIES = ("framelinvel", "frameangvel")
ACCELERATIONS = ("framelinacc", "frameangacc")


def frame_sensors() -> Iterator[str]:
    """Return every frame sensor of every object, each with some of the references in turn."""
    turn = 0
    for kind, name in OBJECTS:
        thing = f'objtype="{kind}" objname="{name}"'
        for sensor in POSITIONS + VELOCITIES:
            for ref in (None, REFERENCES[1 + turn % (len(REFERENCES) - 1)]):
                about = "" if ref is None else f'reftype="{ref[0]}" refname="{ref[1]}"'
                yield f"<{sensor} {thing} {about}/>"
            turn += 1
        for sensor in ACCELERATIONS:
            yield f"<{sensor} {thing}/>"


def other_sensors() -> Iterator[str]:
    for site in ("imu", "touch", "beacon", "lamp"):
        for sensor in ("gyro", "velocimeter", "accelerometer", "magnetometer"):
            yield f'<{sensor} site="{site}"/>'
    for body in ("world", "base", "bracket", "drone", "pole"):
        for sensor in ("subtreecom", "subtreelinvel", "subtreeangmom"):
            yield f'<{sensor} body="{body}"/>'
    for camera in ("eye", "wrist", "track", "target", "guard"):
        for site in ("touch", "beacon"):
            yield f'<camprojection site="{site}" camera="{camera}"/>'
    for tendon in ("cord", "mix"):
        for sensor in ("tendonpos", "tendonvel", "tendonactuatorfrc"):
            yield f'<{sensor} tendon="{tendon}"/>'
    for name in ("motor", "servo", "winch", "second", "pull", "aim", "thrust", "idle"):
        for sensor in ("actuatorpos", "actuatorvel", "actuatorfrc"):
            yield f'<{sensor} actuator="{name}"/>'
    for joint in ("elbow", "extend", "wrist", "twist"):
        for sensor in ("jointpos", "jointvel", "jointactuatorfrc"):
            yield f'<{sensor} joint="{joint}"/>'
    for joint in ("shoulder", "gimbal"):
        yield f'<ballquat joint="{joint}"/><ballangvel joint="{joint}"/>'
    yield "<e_potential/><e_kinetic/><clock/>"


def limit_sensors() -> Iterator[str]:
    for what in ("pos", "vel", "frc"):
        for joint in ("elbow", "extend", "gimbal"):
            yield f'<jointlimit{what} joint="{joint}"/>'
        yield f'<tendonlimit{what} tendon="cord"/>'


def build(
    sensors: str, integrator: str, *, limited: bool = False, floor: str = ""
) -> mujoco.MjModel:
    """Return the machine with the given sensors."""
    xml = f"""
    <mujoco>
      <option timestep=".002" magnetic=".3 -.5 .2">
        <flag contact="{"enable" if floor else "disable"}"/>
      </option>
      <compiler autolimits="false"/>
      <default><geom contype="0" conaffinity="0"/></default>
      <worldbody>{floor}{BODIES}</worldbody>
      {TENDONS}
      <sensor>{sensors}</sensor>
    </mujoco>"""
    xml = xml.replace("LIMITED", "true" if limited else "false")
    limit = 'limited="true" range=".1 .45"' if limited else ""
    model = mujoco.MjModel.from_xml_string(xml.replace("TENDONLIMIT", limit))
    cases.INTEGRATORS[integrator](model)
    return model


def judge(model: mujoco.MjModel, data: mujoco.MjData, tolerance: float) -> None:
    """Check C, D and Df at one state, sensor by sensor."""
    constrained = tolerance == CONSTRAINED_TOLERANCE
    mujoco.mj_forward(model, data)
    assert bool(data.nefc) == constrained
    before = cases.snapshot(model, data)
    lin = mujacobian.linearize(model, data, forces=True)
    again = mujacobian.linearize(model, data, forces=True)
    assert cases.snapshot(model, data) == before, "the caller's state changed"
    J, repeated = (np.hstack([x.C, x.D, x.Df]) for x in (lin, again))
    assert J.tobytes() == repeated.tobytes(), "not repeatable"

    settled = tolerance / SETTLED_MARGIN if constrained else reference.SETTLED
    ref = reference.jacobian(model, data, forces=True, constrained=constrained, settled=settled)
    expected, err = ref.J[ref.nx :], ref.err[ref.nx :]
    assert J.shape == expected.shape
    judged = moving = 0
    for k in range(model.nsensor):
        rows = slice(model.sensor_adr[k], model.sensor_adr[k] + model.sensor_dim[k])
        # errors are relative to the largest entry of the column, or a share of that of the sensor
        size = abs(expected[rows])
        scale = np.maximum(size.max(axis=0), max(COLUMN_FLOOR * size.max(), FLOOR))
        trusted = err[rows] <= tolerance / TRUST_MARGIN * scale
        error = np.where(trusted, abs(J[rows] - expected[rows]) / scale, 0.0)
        worst = np.unravel_index(error.argmax(), error.shape)
        assert error.max() <= tolerance, (
            f"{describe(model, k)}: {error.max():.1e} at {worst}, "
            f"{J[rows][worst]:.12g} given, {expected[rows][worst]:.12g} expected"
        )
        judged += (trusted & (abs(J[rows]) > ZERO)).sum()
        moving += (abs(J[rows]) > ZERO).sum()
    assert judged >= LEAST_SHARE * moving, f"{judged} of {moving} entries are trusted"


def describe(model: mujoco.MjModel, k: int) -> str:
    kind = mujoco.mjtSensor(model.sensor_type[k]).name
    names = []
    for types, ids in (
        (model.sensor_objtype, model.sensor_objid),
        (model.sensor_reftype, model.sensor_refid),
    ):
        if ids[k] >= 0:
            names.append(mujoco.mj_id2name(model, types[k], ids[k]))
    return f"{kind} {' about '.join(map(str, names))}"


def state(model: mujoco.MjModel, seed: int, scale: float = 0.3) -> mujoco.MjData:
    return cases.random_state(model, np.random.default_rng(seed), forces=True, scale=scale)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_frames(integrator: str) -> None:
    model = build("".join(frame_sensors()), integrator)
    judge(model, state(model, 1), SMOOTH_TOLERANCE)


@pytest.mark.parametrize("integrator", [*INTEGRATORS, "implicit", "rk4"])
@pytest.mark.parametrize("seed", [2, 3])
def test_other_sensors(integrator: str, seed: int) -> None:
    model = build("".join(other_sensors()), integrator)
    judge(model, state(model, seed), SMOOTH_TOLERANCE)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_rows_that_come_and_go(integrator: str) -> None:
    """Limits without a row read zero; two of the five rows here have no force."""
    sensors = [*limit_sensors(), *other_sensors()]
    model = build("".join(sensors), integrator, limited=True)
    reference.converge(model)
    judge(model, state(model, 4), CONSTRAINED_TOLERANCE)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("exact", [False, True])
def test_limits_that_press(integrator: str, exact: bool) -> None:
    model = build("".join(limit_sensors()), integrator, limited=True)
    if exact:
        model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_DIAGEXACT
    reference.converge(model)
    data = state(model, 6, scale=0.1)
    data.qvel *= 0.1
    data.joint("elbow").qpos[:] = 0.3
    data.joint("extend").qpos[:] = -0.031
    angle = np.array([0.5, 0.6, -0.3])
    mujoco.mju_axisAngle2Quat(
        data.joint("gimbal").qpos, angle / np.linalg.norm(angle), np.linalg.norm(angle)
    )
    for name, push in (("elbow", 40.0), ("extend", -400.0), ("gimbal", 30 * angle)):
        data.joint(name).qfrc_applied[:] = push
    mujoco.mj_forward(model, data)
    assert sorted(data.efc_type) == [3, 3, 3, 4]
    assert (data.efc_force != 0).all(), "not all limits press"
    judge(model, data, CONSTRAINED_TOLERANCE)


FLOOR_GEOM = '<geom name="floor" type="plane" size="5 5 .1" contype="1" conaffinity="1"/>'


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contacts(integrator: str, cone: str) -> None:
    """Inertial units and acceleration sensors are on bodies that lie on the floor."""
    chosen = [x for x in [*other_sensors(), *frame_sensors()] if "acc" in x or "site=" in x]
    model = build("".join(chosen), integrator, floor=FLOOR_GEOM)
    model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}")
    reference.converge(model)
    data = mujoco.MjData(model)
    data.qpos[2] = 0.4
    while data.time < 0.35 or (data.ncon == 0 and data.time < 2):
        mujoco.mj_step(model, data)
    judge(model, data, CONSTRAINED_TOLERANCE)


ARM = """
<mujoco>
  <worldbody>
    <body gravcomp=".7">
      <joint name="a" axis="0 1 0" actuatorgravcomp="true" {limit}/>
      <geom type="capsule" fromto="0 0 0 .4 .1 0" size=".03"/>
      <body pos=".4 .1 0" gravcomp="1.2">
        <joint name="b" axis="0 .8 .6" actuatorgravcomp="true"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
        <site name="tip" pos=".3 0 0"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="t" {range}><joint joint="a" coef=".5"/><joint joint="b" coef="1"/></fixed>
  </tendon>
  <actuator>
    <position name="p" joint="a" kp="30" kv="2"/>
    <motor name="q" site="tip" gear="1 2 3 0 0 0"/>
    <motor name="r" tendon="t" gear="2"/>
    <position name="s" tendon="t" gear="3" kp="4" forcelimited="true" forcerange="-.3 .3"/>
  </actuator>
  <sensor>
    <jointactuatorfrc joint="a"/><jointactuatorfrc joint="b"/><tendonactuatorfrc tendon="t"/>
    <actuatorfrc actuator="p"/><actuatorfrc actuator="q"/>
    <actuatorfrc actuator="r"/><actuatorfrc actuator="s"/>
  </sensor>
</mujoco>
"""


@pytest.mark.parametrize("limit", ["", 'actuatorfrcrange="-.1 .1"'])
@pytest.mark.parametrize("span", ["", 'actuatorfrcrange="-.4 .4"'])
def test_forces_of_actuators(limit: str, span: str) -> None:
    """The test covers limits of the joint and the tendon, and gravity compensation."""
    xml = ARM.format(limit=limit, range=span)
    model = mujoco.MjModel.from_xml_string(xml)
    data = state(model, 7)
    mujoco.mj_forward(model, data)
    judge(model, data, SMOOTH_TOLERANCE)
    lin = mujacobian.linearize(model, data, forces=True)
    assert lin.C[0].any() == (not limit)
    assert lin.C[1].any()
    assert not lin.Df.any()


def test_without_actuation_forces_are_constant() -> None:
    xml = ARM.format(limit="", range="")
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    lin = mujacobian.linearize(model, state(model, 7))
    assert not lin.C.any()
    assert not lin.D.any()


@pytest.mark.parametrize("limited", [False, True])
def test_inverse_dynamics(limited: bool) -> None:
    """Sensors of mj_inverse are at a given acceleration; those of actuators are not evaluated."""
    sensors = [*(limit_sensors() if limited else ()), *other_sensors()]
    model = build("".join(sensors), "euler", limited=limited)
    reference.converge(model)
    data = state(model, 12, scale=0.1)
    data.xfrc_applied[:] = 0
    mujoco.mj_forward(model, data)
    data.qacc += 1
    assert judge_inverse(model, data, actuation=True) >= 0.85


def test_cutoffs() -> None:
    """A clipped value is constant; quaternions and axes have no cutoff."""
    plain = ['<gyro site="touch"/>', '<framequat objtype="site" objname="touch"/>', "<e_kinetic/>"]
    model = build("".join(plain), "euler")
    data = state(model, 8)
    mujoco.mj_forward(model, data)
    free = mujacobian.linearize(model, data).C
    size = abs(data.sensordata[:3])
    model.sensor_cutoff[:] = np.median(size)
    mujoco.mj_forward(model, data)
    cut = mujacobian.linearize(model, data).C
    clipped = np.append(size >= np.median(size), [False] * 5)
    clipped[7] = data.sensordata[7] >= np.median(size)
    assert clipped[:3].any()
    assert not clipped[:3].all()
    assert not cut[clipped].any()
    np.testing.assert_array_equal(cut[~clipped], free[~clipped])


def test_disabled_sensors_keep_their_values() -> None:
    model = build('<gyro site="touch"/>', "euler")
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SENSOR
    assert not mujacobian.linearize(model, state(model, 9)).C.any()


@pytest.mark.parametrize("limited", [False, True])
def test_batch_equals_single_calls(limited: bool) -> None:
    sensors = [*(limit_sensors() if limited else ()), *other_sensors()]
    model = build("".join(sensors), "implicitfast", limited=limited)
    reference.converge(model)
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states, controls, single = [], [], []
    for seed in range(4):
        data = cases.random_state(model, np.random.default_rng(seed), scale=0.2)
        data.mocap_pos[:], data.mocap_quat[:] = model.body_pos[-1], model.body_quat[-1]
        row = np.empty(mujoco.mj_stateSize(model, spec))
        mujoco.mj_getState(model, data, row, spec)
        states.append(row), controls.append(data.ctrl.copy())
        single.append(mujacobian.linearize(model, data))
    batch = mujacobian.linearize_batch(model, np.array(states), np.array(controls), threads=2)
    for k, lin in enumerate(single):
        np.testing.assert_allclose(batch.C[k], lin.C, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(batch.D[k], lin.D, rtol=1e-9, atol=1e-9)


def test_blocks_are_independent() -> None:
    """D alone, or without A and B, is the same D."""
    model = build("".join(other_sensors()), "euler")
    data = state(model, 10)
    lin = mujacobian.linearize(model, data)
    C, D = np.full_like(lin.C, np.nan), np.full_like(lin.D, np.nan)
    mujacobian.transition(model, data, D=D)
    np.testing.assert_allclose(D, lin.D, rtol=1e-12, atol=1e-12)
    mujacobian.transition(model, data, C=C)
    np.testing.assert_allclose(C, lin.C, rtol=1e-12, atol=1e-12)


WRAPPED = """
<mujoco>
  <worldbody>
    <geom name="pin" type="cylinder" size=".05 .2"/>
    <site name="start" pos="-.3 0 .02"/>
    <body pos=".3 0 0">
      <joint axis="0 1 .2"/><geom size=".05"/><site name="end" pos="0 0 .1"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="rope"><site site="start"/><geom geom="pin"/><site site="end"/></spatial>
  </tendon>
  <sensor><tendonpos tendon="rope"/><tendonvel tendon="rope"/></sensor>
</mujoco>
"""


def test_wrapped_tendon() -> None:
    model = mujoco.MjModel.from_xml_string(WRAPPED)
    data = mujoco.MjData(model)
    data.qpos[0], data.qvel[0] = 0.1, 0.7
    mujoco.mj_forward(model, data)
    assert data.ten_wrapnum[0] == 4
    judge(model, data, SMOOTH_TOLERANCE)


@pytest.mark.parametrize("name", ["ball_and_free_springs", "joint_springs", "spatial_tendon"])
@pytest.mark.parametrize("flag", [0, mujoco.mjtDisableBit.mjDSBL_GRAVITY])
def test_energies(name: str, flag: int) -> None:
    """The model has polynomial springs, springs of free joints and balls, armature of tendons."""
    spec = mujoco.MjSpec.from_file(str(cases.FOLDER / f"{name}.xml"))
    for kind in (mujoco.mjtSensor.mjSENS_E_POTENTIAL, mujoco.mjtSensor.mjSENS_E_KINETIC):
        spec.add_sensor(type=kind)
    model = spec.compile()
    model.opt.disableflags |= flag
    data = state(model, 11)
    judge(model, data, SMOOTH_TOLERANCE)
    assert mujacobian.linearize(model, data).C.any(axis=1).all()


@pytest.mark.skipif(not hasattr(mujoco.MjData, "plastic"), reason="new in MuJoCo 4.0")
def test_energy_of_springs_that_have_yielded() -> None:
    model = mujoco.MjModel.from_xml_string(
        WIRE.replace("</mujoco>", "<sensor><e_potential/></sensor></mujoco>")
    )
    judge(model, deformed(model, np.random.default_rng(0)), SMOOTH_TOLERANCE)
