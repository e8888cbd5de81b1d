"""Derivatives of one step with respect to physical parameters, against differences of the model."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import _core
from mujacobian._parameters.fields import FIELDS

INTEGRATORS = ("Euler", "implicit", "implicitfast", "RK4", "discrete")

ARM = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <body name="upper">
      <joint name="ball" type="ball" damping="0.02" stiffness="0.5"/>
      <geom name="upper" type="capsule" size=".03" fromto="0 0 0 .3 0 .05" mass=".8"/>
      <body name="lower" pos=".3 0 .05">
        <joint name="elbow" axis="0 1 0" damping=".1" stiffness="1.5" springref=".2" armature=".01"
               frictionloss=".05"/>
        <geom name="lower" type="box" size=".15 .02 .03" pos=".15 .01 0" mass=".5"/>
        <site name="tip" pos=".3 0 0"/>
        <body name="slider" pos=".2 0 0">
          <joint name="slide" type="slide" axis="1 0 .3" damping=".3" armature=".02"
                 frictionloss=".4"/>
          <geom name="slider" size=".03" pos="0 .02 .01" mass=".2"/>
        </body>
      </body>
    </body>
    <site name="anchor" pos="0 0 .4"/>
  </worldbody>
  <tendon>
    <spatial name="rope" stiffness="8" damping=".4" springlength=".1 .2" frictionloss=".1">
      <site site="anchor"/><site site="tip"/>
    </spatial>
    <fixed name="link" stiffness="3" damping=".1">
      <joint joint="elbow" coef="1"/><joint joint="slide" coef="-2"/>
    </fixed>
  </tendon>
  <actuator>
    <position name="servo" joint="elbow" kp="4" kv=".5"/>
    <motor name="motor" joint="slide" gear="2"/>
    <general name="affine" tendon="rope" gaintype="affine" gainprm="1 .5 -.2" biastype="affine"
             biasprm=".1 -.4 -.3" gear="1.5"/>
    <general name="filter" joint="slide" dyntype="filter" dynprm=".1" gainprm="3"/>
  </actuator>
</mujoco>
"""

FREE = """
<mujoco>
  <worldbody>
    <body name="rock" pos="0 0 1">
      <freejoint/>
      <geom type="box" size=".1 .2 .05" pos=".03 0 .02" mass="1.2"/>
      <body name="lump" pos=".1 .1 0"><geom size=".05" mass=".3"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def contact_scene(cone: str, condim: int, solref: str = "0.02 1", floor: str = "0.03 .9") -> str:
    """Return a ball, a box and a capsule pressed into a floor while they slide and spin."""
    return f"""
<mujoco>
  <option cone="{cone}" impratio="3" timestep="0.003"/>
  <default><geom condim="{condim}" solref="{solref}" solimp=".8 .95 .02 .4 3"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" friction=".3 .02 .004"
          solref="{floor}"/>
    <body name="ball" pos="0 0 .099"><freejoint/>
      <geom name="ball" size=".1" friction=".7 .03 .006" mass=".6"/></body>
    <body name="capsule" pos="1 0 .048"><freejoint/>
      <geom name="capsule" type="capsule" size=".05 .1" euler="90 0 0" friction=".5 .01 .003"
            solmix="3" mass=".4"/></body>
    <body name="leg" pos="2 0 .3">
      <joint name="lift" type="slide" axis="0 0 1"/>
      <joint name="swing" axis="0 1 0" damping=".1" frictionloss=".2"/>
      <geom name="leg" type="capsule" size=".04" fromto="0 0 0 .1 0 -.262" friction=".9 .02 .001"
            mass=".7"/>
    </body>
  </worldbody>
</mujoco>
"""


def load(xml: str, integrator: str) -> mujoco.MjModel:
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    model.opt.tolerance = 0  # the error of the solver is then a smooth function of parameters
    model.opt.iterations = 50
    return model


def disturbed(model: mujoco.MjModel, seed: int, speed: float = 1.0) -> mujoco.MjData:
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    data.qvel[:] = speed * rng.standard_normal(model.nv)
    data.ctrl[:] = 0.7 * rng.standard_normal(model.nu)
    data.act[:] = 0.5 * rng.standard_normal(model.na)
    return data


def step_from(model: mujoco.MjModel, data: mujoco.MjData, after: mujoco.MjData) -> None:
    """Take one step of another model from the state of `data`, in `after`."""
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    mujoco.mj_setState(model, after, state, spec)
    mujoco.mj_step(model, after)


def difference(model: mujoco.MjModel, a: mujoco.MjData, b: mujoco.MjData) -> np.ndarray:
    turn = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, turn, 1.0, a.qpos, b.qpos)
    return np.concatenate([turn, b.qvel - a.qvel, b.act - a.act, b.sensordata - a.sensordata])


def differences(
    parameters: mujacobian.Parameters, data: mujoco.MjData
) -> tuple[np.ndarray, np.ndarray]:
    """Return fourth-order central differences of the model, and the difference of two of them."""
    values = parameters.values
    behind, ahead = mujoco.MjData(parameters.model), mujoco.MjData(parameters.model)
    columns, spreads = [], []
    for k, value in enumerate(values):
        estimates = []
        size = abs(value) if parameters.lower[k] == 0 else max(abs(value), 0.02)
        for h in (2e-3 * size, 1e-3 * size):

            def slope(h: float, k: int = k) -> np.ndarray:
                for step, after in ((-h, behind), (h, ahead)):
                    moved = values.copy()
                    moved[k] += step
                    step_from(parameters.apply(moved), data, after)
                return difference(parameters.model, behind, ahead) / (2 * h)

            estimates.append((4 * slope(h) - slope(2 * h)) / 3)
        columns.append(estimates[1])
        spreads.append(np.abs(estimates[1] - estimates[0]))
    return np.array(columns).T, np.array(spreads).T


def analytic(
    parameters: mujacobian.Parameters, data: mujoco.MjData, *, sensors: bool = False
) -> np.ndarray:
    """Return d(next state)/d(parameters) by forward products; backward ones are its transpose."""
    model = parameters.model
    nx, ns = 2 * model.nv + model.na, model.nsensordata if sensors else 0
    raw = np.empty((nx + ns, len(parameters.core)))
    for k in range(raw.shape[1]):
        unit = np.zeros(raw.shape[1])
        unit[k] = 1
        column, sensed = np.empty(nx), np.empty(ns) if sensors else None
        _core.jvp_into(
            model, data, None, None, None, parameters.core, unit, False, column, sensed, True
        )
        raw[:nx, k] = column
        if sensors:
            raw[nx:, k] = sensed
    for cotangent in np.eye(nx + ns):
        gradient = np.zeros(raw.shape[1])
        given = cotangent[:nx], cotangent[nx:] if sensors else None
        _core.vjp_into(
            model, data, *given, parameters.core, None, None, None, gradient, False, True
        )
        np.testing.assert_allclose(gradient, cotangent @ raw, rtol=1e-9, atol=1e-11)
    return raw @ parameters.jacobian(parameters.values)


def judge(
    parameters: mujacobian.Parameters,
    data: mujoco.MjData,
    share: float = 0.9,
    *,
    sensors: bool = False,
) -> None:
    """Assert that columns with converged differences agree to 1e-6 of their largest entry."""
    got = analytic(parameters, data, sensors=sensors)
    expected, spread = (x[: len(got)] for x in differences(parameters, data))
    trusted = 0
    rounding = max(1e-4, 1e-5 * np.abs(expected).max())  # columns below it are rounding
    for k, name in enumerate(parameters.names):
        scale = max(np.abs(expected[:, k]).max(), rounding)
        if spread[:, k].max() > 3e-7 * scale:
            continue
        trusted += 1
        error = np.abs(got[:, k] - expected[:, k]).max() / scale
        assert error <= 1e-6, f"{name}: {error:.1e}"
    assert trusted >= share * len(parameters), f"{trusted} of {len(parameters)} trusted"


def test_fields_of_the_core_are_fields_of_mjmodel() -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    names = [row[0] for row in _core.parameter_kinds()]
    assert len(set(names)) == len(names)
    for name, field in FIELDS.items():
        if field.kind:
            array = model.opt.gravity[None] if name == "gravity" else getattr(model, name)
            assert field.kind in names
            assert array.ndim == (2 if field.components else 1), name
            assert array.ndim == 1 or len(field.components) <= array.shape[1], name


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("seed", range(2))
def test_inertia_and_forces(integrator: str, seed: int) -> None:
    model = load(ARM, integrator)
    parameters = mujacobian.Parameters(
        model,
        ["body_mass", "body_ipos", "body_inertia", "gravity", "dof_damping", "dof_frictionloss",
         ("dof_armature", ["elbow", "slide"]), ("jnt_stiffness", ["ball", "elbow"]),
         ("qpos_spring", "elbow"), "actuator_gainprm", "actuator_biasprm", "tendon_stiffness",
         "tendon_damping", "tendon_lengthspring", "tendon_frictionloss"],
    )  # fmt: skip
    data = disturbed(model, seed)
    for _ in range(20):
        mujoco.mj_step(model, data)
    judge(parameters, data, share=0.75)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_log_cholesky(integrator: str) -> None:
    model = load(ARM, integrator)
    parameters = mujacobian.Parameters(model, ["body_log_cholesky"])
    restored = parameters.apply(parameters.values)
    np.testing.assert_allclose(restored.body_mass, model.body_mass, rtol=1e-12)
    np.testing.assert_allclose(restored.body_ipos, model.body_ipos, atol=1e-12)
    judge(parameters, disturbed(model, 4))


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_geometry_in_contact(cone: str, integrator: str) -> None:
    """A two-link leg and free bodies are pushed into the floor and into one another."""
    xml = contact_scene(cone, 4).replace(
        'mass=".7"/>',
        """mass=".7"/>
      <body name="foot" pos=".1 0 -.26" quat=".9 .1 .2 0">
        <joint name="ankle" axis="0 1 .2" pos=".01 0 0" damping=".05" armature=".01"/>
        <geom name="foot" type="box" size=".06 .03 .02" pos=".02 0 -.02" mass=".2"/>
        <geom name="toe" size=".03" pos=".09 .01 -.01" mass=".05"/>
      </body>""",
    )
    model = load(xml.replace('fromto="0 0 0 .1 0 -.262"', 'fromto="0 0 0 .1 0 -.2"'), integrator)
    frames = [("body_pos", ["leg", "foot"]), ("body_quat", ["leg", "foot"]), ("jnt_pos", "ankle"),
              ("jnt_axis", "ankle")]  # fmt: skip
    geoms = [("geom_pos", ["toe", "foot", "leg", "floor"]), ("geom_quat", ["foot", "floor"]),
             "geom_size"]  # fmt: skip
    others = ["body_mass", ("body_inertia", "foot"), ("dof_damping", "ankle"),
              ("dof_armature", "ankle")]  # fmt: skip
    seen = others if integrator == "discrete" else geoms
    parameters = mujacobian.Parameters(model, [*frames, *seen])
    for seed in range(2):
        data = disturbed(model, seed, speed=0.3)
        for _ in range(4 * seed):
            mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        assert data.ncon >= 4
        judge(parameters, data, share=0.6)


SIZED = """
<mujoco>
  <option cone="elliptic" timestep="0.003"/>
  <default><geom solref=".03 1" solimp=".8 .95 .02"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="box" pos="0 0 .05" euler="4 7 10"><freejoint/>
      <geom name="box" type="box" size=".1 .08 .06" mass=".5"/></body>
    <body name="can" pos="1 0 .098" euler="3 8 0"><freejoint/>
      <geom name="can" type="cylinder" size=".06 .1" mass=".5"/></body>
    <body name="rod" pos="2 0 .06" euler="80 0 0"><freejoint/>
      <geom name="rod" type="capsule" size=".05 .1" mass=".4"/></body>
    <geom name="stone" type="box" size=".2 .2 .1" pos="3 0 .1"/>
    <body name="ball" pos="3.22 .05 .25"><freejoint/><geom name="ball" size=".06" mass=".3"/></body>
    <body name="marble" pos="3 0 .247"><freejoint/><geom name="marble" size=".05" mass=".3"/></body>
    <body name="pin" pos="3 .15 .268" euler="90 5 0"><freejoint/>
      <geom name="pin" type="capsule" size=".04 .1" mass=".3"/></body>
    <geom name="bar" type="capsule" size=".04 .2" pos="4 0 .2" euler="0 90 0"/>
    <body name="stick" pos="4.05 .02 .27" euler="80 20 0"><freejoint/>
      <geom name="stick" type="capsule" size=".04 .15" mass=".2"/></body>
    <body name="end" pos="4.26 .01 .215"><freejoint/><geom name="end" size=".03" mass=".1"/></body>
    <geom name="pole" type="cylinder" size=".05 .3" pos="6 0 .4"/>
    <body name="bob" pos="6.095 0 .4"><freejoint/><geom name="bob" size=".05" mass=".1"/></body>
    <geom name="beam" type="box" size=".3 .05 .05" pos="5 0 .1" euler="45 0 0"/>
    <body name="cross" pos="5 0 .238" euler="0 0 88"><freejoint/>
      <geom name="cross" type="box" size=".25 .05 .05" mass=".3" euler="45 0 0"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_sizes_in_contact(integrator: str) -> None:
    """Corners, rims, ends, faces and edges touch; sizes that set no contact have no effect."""
    model = load(SIZED, integrator)
    data = disturbed(model, 1, speed=0.1)
    mujoco.mj_forward(model, data)
    touching = {model.geom(int(g)).name for g in data.contact.geom.ravel()}
    assert touching == {model.geom(g).name for g in range(model.ngeom)}
    parameters = mujacobian.Parameters(model, ["geom_size"])
    assert len(parameters) == 3 * 4 + 2 * 6 + 4
    judge(parameters, data, share=0.8)
    has_effect = np.abs(analytic(parameters, data)).max(axis=0) > 1e-4
    assert has_effect.sum() >= 15
    compiled = load(SIZED, integrator)
    applied = parameters.apply(parameters.values)
    np.testing.assert_allclose(applied.geom_rbound, compiled.geom_rbound, rtol=1e-12)
    np.testing.assert_allclose(applied.geom_aabb, compiled.geom_aabb, rtol=1e-12)


CHAIN = """
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 .2" quat=".9 .1 .3 -.2">
      <joint name="swivel" type="hinge" axis=".1 .2 1" pos=".02 .01 0" damping=".1"/>
      <geom type="box" size=".05 .08 .1" pos=".02 0 .01" mass="1"/>
      <body name="shoulder" pos=".1 0 .2" quat=".8 0 .4 .2">
        <joint name="ball" type="ball" pos="0 .02 .03" damping=".02"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .3 0 .05" mass=".8"/>
        <body name="fixed" pos=".1 .02 0" quat=".9 .2 0 .1">
          <geom type="box" size=".02 .03 .04" mass=".2"/>
          <body name="lower" pos=".2 0 .05" quat=".7 .1 .5 0">
            <joint name="rail" type="slide" axis="1 .2 0" damping=".3" stiffness="4"/>
            <geom size=".04" pos=".05 .01 0" mass=".5"/>
            <body name="tip" pos=".1 0 0">
              <joint name="wrist" axis="0 1 .3" pos="-.02 0 .01" damping=".05"/>
              <geom type="box" size=".1 .02 .03" pos=".1 .01 0" mass=".3"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><position joint="wrist" kp="3" kv=".2"/></actuator>
</mujoco>
"""


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_frames(integrator: str) -> None:
    model = load(CHAIN, integrator)
    parameters = mujacobian.Parameters(model, ["body_pos", "body_quat", "jnt_pos", "jnt_axis"])
    assert len(parameters) == 5 * 7 + 3 * 3 + 3 * 3
    data = disturbed(model, 5)
    for _ in range(20):
        mujoco.mj_step(model, data)
    judge(parameters, data)


FRAMED = """
<mujoco>
  <option timestep="0.003"/>
  <worldbody>
    <body name="upper" pos="0 0 1" quat=".9 .1 .2 .3">
      <joint name="shoulder" axis="0 1 .2" pos=".01 0 .02" damping=".1"/>
      <geom type="capsule" size=".02" fromto="0 0 0 .3 0 .05" mass=".6"/>
      <site name="mid" pos=".1 .05 0"/>
      <body name="lower" pos=".3 0 .05" quat=".9 0 .3 .1" gravcomp=".4">
        <joint name="elbow" axis="0 .1 1" pos="0 .01 0" damping=".05"/>
        <geom type="box" size=".1 .02 .03" pos=".1 .01 0" mass=".4"/>
        <site name="tip" pos=".2 0 .01" quat=".8 .3 .1 0"/>
      </body>
    </body>
    <body name="rock" pos=".3 .3 1"><freejoint/>
      <geom type="box" size=".1 .06 .05" pos=".01 0 .02" mass=".7"/>
      <body name="knob" pos=".05 .04 0" quat=".9 .2 0 0"><geom size=".04" mass=".2"/>
        <site name="knob" pos="0 .05 0"/></body>
    </body>
    <geom name="post" type="cylinder" size=".04 .3" pos=".2 .15 1.1" contype="0" conaffinity="0"/>
    <site name="side" pos=".2 .3 1.1"/> <site name="anchor" pos="-.2 .1 1.3"/>
  </worldbody>
  <contact><exclude body1="lower" body2="rock"/><exclude body1="upper" body2="rock"/></contact>
  <equality>
    <connect body1="lower" body2="rock" anchor=".1 .02 .03" solref=".05 1"/>
    <weld site1="mid" site2="knob" torquescale=".4" solref=".08 1"/>
  </equality>
  <tendon>
    <spatial name="rope" stiffness="20" damping=".6" springlength=".1">
      <site site="anchor"/><geom geom="post" sidesite="side"/><site site="tip"/>
    </spatial>
    <spatial name="cord" stiffness="5" armature=".02">
      <site site="anchor"/><site site="knob"/>
    </spatial>
  </tendon>
  <actuator>
    <general name="winch" tendon="rope" biastype="affine" biasprm=".2 -2 -.1" gear="1.5"/>
    <general name="thrust" site="tip" refsite="knob" gear="1 .2 0 .1 0 .3" gainprm="2"
             biastype="affine" biasprm="0 -.5 -.1"/>
    <motor site="knob" gear="1 0 0 0 .2 0"/>
  </actuator>
  <sensor>
    <framepos objtype="site" objname="tip"/> <framequat objtype="body" objname="knob"/>
    <accelerometer site="tip"/> <velocimeter site="mid"/> <force site="knob"/> <torque site="tip"/>
    <tendonpos tendon="rope"/> <tendonvel tendon="cord"/> <actuatorfrc actuator="thrust"/>
    <subtreecom body="upper"/> <e_kinetic/>
  </sensor>
</mujoco>
"""


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_frames_affect_all_elements(integrator: str) -> None:
    """Tendons, connects, welds, sites, wrenches, gravity compensation and sensors use frames."""
    model = load(FRAMED, integrator)
    parameters = mujacobian.Parameters(
        model,
        [("body_pos", ["upper", "lower", "knob", "rock"]), ("body_quat", ["lower", "knob"]),
         ("jnt_pos", "elbow"), ("jnt_axis", "elbow")],
    )  # fmt: skip
    data = disturbed(model, 5, speed=0.5)
    data.xfrc_applied[2:4] = 0.3
    for _ in range(5):
        mujoco.mj_step(model, data)
    judge(parameters, data, sensors=True)


SENSED = """
<mujoco>
  <option timestep="0.003"/>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 .1"/>
    <body name="upper" pos="0 0 .5">
      <joint name="shoulder" axis="0 1 .1" damping=".1" armature=".02" frictionloss=".05"/>
      <geom type="capsule" size=".02" fromto="0 0 0 .3 0 .05" mass=".6"/>
      <site name="mid" pos=".1 .05 0" quat=".9 .3 0 .1"/>
      <body name="lower" pos=".3 0 .05" quat=".9 0 .3 .1">
        <joint name="elbow" axis="0 .1 1" pos="0 .01 0" damping=".05" stiffness="2" range="5 60"/>
        <geom type="box" size=".1 .02 .03" pos=".1 .01 0" mass=".4"/>
        <site name="tip" pos=".2 0 .01" quat=".8 .3 .1 0"/>
        <body name="hand" pos=".2 0 0"><geom size=".04" mass=".2"/></body>
      </body>
    </body>
    <body name="ball" pos="1 0 .098"><freejoint/><geom name="ball" size=".1" mass=".5"/>
      <site name="skin" size=".2"/></body>
  </worldbody>
  <tendon>
    <fixed name="link" stiffness="3" damping=".1">
      <joint joint="shoulder" coef="1"/><joint joint="elbow" coef="-2"/>
    </fixed>
  </tendon>
  <actuator>
    <position name="servo" joint="shoulder" kp="4" kv=".5"/>
    <general name="pull" tendon="link" gaintype="affine" gainprm="1 .5 -.2" biastype="affine"
             biasprm=".1 -.4 -.3" gear="1.5"/>
  </actuator>
  <sensor>
    <accelerometer site="tip"/> <framelinacc objtype="body" objname="hand"/>
    <frameangacc objtype="site" objname="mid"/> <force site="tip"/> <torque site="mid"/>
    <touch site="skin"/> <jointlimitfrc joint="elbow"/> <actuatorfrc actuator="servo"/>
    <jointactuatorfrc joint="shoulder"/> <tendonactuatorfrc tendon="link"/> <gyro site="mid"/>
    <contact geom1="ball" data="force"/>
  </sensor>
</mujoco>
"""


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_sensors(integrator: str) -> None:
    """Forces and accelerations depend on parameters at a fixed state."""
    xml = SENSED
    if integrator == "discrete":  # its row forces depend on the inertia
        xml = xml.replace('<force site="tip"/> <torque site="mid"/>', "")
        xml = xml.replace('<touch site="skin"/> <jointlimitfrc joint="elbow"/>', "")
        xml = xml.replace('<contact geom1="ball" data="force"/>', "")
    model = load(xml, integrator)
    parameters = mujacobian.Parameters(
        model,
        ["body_mass", ("body_ipos", ["upper", "lower"]), ("body_inertia", "lower"), "gravity",
         ("dof_damping", ["shoulder", "elbow"]), ("dof_armature", "shoulder"), "dof_frictionloss",
         ("jnt_stiffness", "elbow"), "actuator_gainprm", "actuator_biasprm", "tendon_stiffness",
         ("body_pos", "hand")],
    )  # fmt: skip
    data = disturbed(model, 3, speed=0.3)
    mujoco.mj_forward(model, data)
    assert data.ncon
    if integrator != "discrete":
        assert min(data.sensor(5).data[0], data.sensor(6).data[0]) > 0
    judge(parameters, data, sensors=True)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "discrete"])
def test_muscles_and_servos(integrator: str) -> None:
    """The largest force of a muscle, or its scale, and the gains of a PID servo are parameters."""
    model = load(
        """<mujoco><worldbody><body><joint name="knee" axis="0 1 0" damping=".1"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass=".5"/></body></worldbody>
        <actuator><muscle name="strong" joint="knee" force="3" lengthrange="-1 1" gear=".2"/>
        <muscle name="scaled" joint="knee" scale="40" lengthrange="-1 1"/></actuator></mujoco>""",
        integrator,
    )
    model.actuator_lengthrange[:] = [[-0.3, 0.25], [-1, 1]]
    parameters = mujacobian.Parameters(model, ["actuator_gainprm", "actuator_biasprm"])
    assert parameters.names[0] == 'actuator_gainprm["strong"][2]'
    assert parameters.names[1] == 'actuator_gainprm["scaled"][3]'
    data = disturbed(model, 3)
    data.act[:], data.qpos[:] = [0.4, 0.7], 1.2
    judge(parameters, data)
    assert np.abs(analytic(parameters, data)).max(axis=0).min() > 1e-5


@pytest.mark.parametrize("integrator", ["implicit", "RK4", "discrete"])
@pytest.mark.parametrize("inputs", ['pos vel ff" ki="3', "vel"])
def test_pid_servos(inputs: str, integrator: str) -> None:
    model = load(
        f"""<mujoco><worldbody><body><joint name="knee" type="slide" axis="0 1 0" damping=".1"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass=".5"/></body></worldbody>
        <actuator><pid name="servo" joint="knee" kp="5" kv=".6" input="{inputs}" gear="2"/>
        </actuator></mujoco>""",
        integrator,
    )
    parameters = mujacobian.Parameters(model, ["actuator_gainprm", "actuator_biasprm"])
    assert len(parameters) == 4
    data = disturbed(model, 3)
    data.qpos[:] = 0.3
    judge(parameters, data)
    has_effect = np.abs(analytic(parameters, data)).max(axis=0) > 1e-4
    assert has_effect[1:].all()
    assert has_effect[0] == ("ki" in inputs)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_servos_on_rotations(integrator: str) -> None:
    """MuJoCo shifts the setpoint by whole turns, but not if the gain or the bias changes alone."""
    model = load(
        """<mujoco><worldbody><body><joint name="ball" type="ball" damping=".1"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass=".5"/></body></worldbody>
        <actuator><position name="servo" joint="ball" kp="5" kv=".6" gear="0 1.5 0"/></actuator>
        </mujoco>""",
        integrator,
    )
    parameters = mujacobian.Parameters(model, ["actuator_gainprm", "actuator_biasprm"])
    data = disturbed(model, 3)
    turned = np.array([np.cos(0.4), 0.0, np.sin(0.4), 0.0])
    data.qpos[:], data.ctrl[:] = turned, 0.3
    judge(parameters, data)
    assert np.abs(analytic(parameters, data)).max() > 1e-4
    data.ctrl[:] = 6.5  # more than half a turn away, with the gear
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="half a turn"):
        analytic(parameters, data)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_free_body(integrator: str) -> None:
    model = load(FREE, integrator)
    parameters = mujacobian.Parameters(
        model,
        [
            "body_mass",
            "body_ipos",
            "body_inertia",
            "gravity",
            ("body_pos", "lump"),
            ("body_quat", "lump"),
        ],
    )
    judge(parameters, disturbed(model, 2, speed=3.0))


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contact(cone: str, condim: int, integrator: str) -> None:
    model = load(contact_scene(cone, condim), integrator)
    fields = ["geom_friction", "geom_solref", "geom_solimp", "body_mass", "dof_frictionloss"]
    parameters = mujacobian.Parameters(model, fields)
    for seed in range(2):
        data = disturbed(model, seed, speed=0.3)
        for _ in range(3 * seed):
            mujoco.mj_step(model, data)
        judge(parameters, data, share=0.7)


@pytest.mark.parametrize(
    ("solref", "floor"), [("-4000 -80", "-3000 -90"), ("0.001 1.2", "0.002 1")]
)
def test_other_formats_of_solref(solref: str, floor: str) -> None:
    model = load(contact_scene("elliptic", 3, solref, floor), "Euler")
    parameters = mujacobian.Parameters(model, ["geom_solref", "geom_solimp"])
    judge(parameters, disturbed(model, 1, speed=0.3), share=0.7)


LIMITED = """
<mujoco>
  <worldbody>
    <body>
      <joint name="low" axis="0 1 0" limited="true" range="5 40" solreflimit="SOLREF"
             solimplimit=".8 .95 .05 .4 3"/>
      <geom type="capsule" size=".03" fromto="0 0 0 .3 0 .05" mass=".8"/>
      <body pos=".3 0 .05">
        <joint name="high" type="slide" axis="1 0 .3" limited="true" range="-.2 -.01" margin=".02"
               solreflimit="SOLREF"/>
        <geom size=".05" pos="0 .02 .1" mass=".5"/>
        <body pos="0 0 .2">
          <joint name="far" axis="1 0 0" limited="true" range="-90 90"/>
          <joint name="none" axis="0 1 0"/>
          <geom size=".05" pos=".1 0 .1" mass=".3"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("solref", ["0.02 1", "0.001 1.2", "-500 -20"])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_limits(integrator: str, solref: str) -> None:
    model = load(LIMITED.replace("SOLREF", solref), integrator)
    # the discrete integrator has its own rules for the stiffness and damping of rows
    fields = ["jnt_range"] if integrator == "discrete" else ["jnt_range", "jnt_solref"]
    parameters = mujacobian.Parameters(model, fields)
    assert len(parameters) == 6 * len(fields)
    data = disturbed(model, 3, speed=0.2)
    mujoco.mj_forward(model, data)
    assert data.nefc == 2
    judge(parameters, data)
    assert not analytic(parameters, data)[:, parameters.names.index('jnt_range["far"][0]')].any()


def test_solref_of_limits_with_the_discrete_integrator_is_refused() -> None:
    model = load(LIMITED.replace("SOLREF", "0.02 1"), "discrete")
    parameters = mujacobian.Parameters(model, [("jnt_solref", "low")])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="low"):
        mujacobian.vjp(model, mujoco.MjData(model), np.ones(2 * model.nv), params=parameters)


def test_limits_of_balls_are_refused() -> None:
    model = load(ARM, "Euler")
    parameters = mujacobian.Parameters(model, [("jnt_range", "ball")])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="ball"):
        mujacobian.vjp(
            model, mujoco.MjData(model), np.ones(2 * model.nv + model.na), params=parameters
        )


def test_names_units_and_bounds() -> None:
    model = load(ARM, "Euler")
    parameters = mujacobian.Parameters(
        model, [("dof_damping", ["ball", "slide"]), ("actuator_gainprm", "servo"), "gravity"]
    )
    assert parameters.names[0] == 'dof_damping["ball"][0]'
    assert parameters.names[3] == 'dof_damping["slide"]'
    assert parameters.names[4] == 'actuator_gainprm["servo"][0]'
    assert parameters.names[-1] == "gravity[2]"
    assert len(parameters) == 8 == len(parameters.units)
    assert parameters.lower[0] == 0
    assert parameters.upper[0] == np.inf
    np.testing.assert_allclose(parameters.values[[3, 4, 7]], [0.3, 4, -9.81])


def test_bad_requests() -> None:
    model = load(ARM, "Euler")
    with pytest.raises(ValueError, match="unknown field 'body_masss'"):
        mujacobian.Parameters(model, ["body_masss"])
    with pytest.raises(ValueError, match="no body 'none'"):
        mujacobian.Parameters(model, [("body_mass", "none")])
    with pytest.raises(ValueError, match="asked for twice"):
        mujacobian.Parameters(model, ["body_mass", ("body_mass", "upper")])
    with pytest.raises(ValueError, match="already has its mass"):
        mujacobian.Parameters(model, ["body_log_cholesky", "body_mass"])
    with pytest.raises(ValueError, match="is zero"):
        mujacobian.Parameters(model, [("dof_frictionloss", "ball")])
    with pytest.raises(TypeError, match="list of fields"):
        mujacobian.Parameters(model, "body_mass")
    parameters = mujacobian.Parameters(model, [("body_mass", "upper")])
    with pytest.raises(ValueError, match="at least 0"):
        parameters.apply([-1.0])
    with pytest.raises(ValueError, match="must be finite"):
        parameters.apply([np.nan])
    with pytest.raises(ValueError, match=r"shape \(1,\)"):
        parameters.apply([1.0, 2.0])


def test_simple_bodies_keep_their_center_of_mass() -> None:
    model = load(contact_scene("pyramidal", 3), "Euler")
    with pytest.raises(ValueError, match="compiled this body as simple"):
        mujacobian.Parameters(model, [("body_ipos", "ball")])


DIAGEXACT = '<option><flag diagexact="enable"/></option><worldbody>'


def with_option(xml: str, option: str) -> str:
    return xml.replace("<mujoco>", f"<mujoco><option {option}/>", 1)


@pytest.mark.parametrize(
    ("xml", "item", "match"),
    [
        (with_option(CHAIN, 'integrator="discrete"'), ("geom_friction", 0), "discrete"),
        (
            SIZED.replace('pos="3 .15 .268" euler="90 5 0"', 'pos="3 .15 .239" euler="90 0 0"'),
            ("geom_size", "stone"),
            'geom "pin" and geom "stone"',
        ),
        (with_option(ARM, 'density="1"'), ("body_mass", "upper"), 'body "upper"'),
        (with_option(CHAIN, 'density="1"'), ("body_pos", "tip"), 'body "tip"'),
        (CHAIN.replace('name="tip"', 'name="tip" gravcomp="1"'), "body_mass", 'body "tip"'),
        (ARM.replace('damping="', 'user="'), ("dof_damping", "slide"), "no dof is damped"),
        (CHAIN.replace('name="tip"', 'name="tip" gravcomp="1"'), "gravity", "option gravity"),
        (
            contact_scene("elliptic", 3).replace("<option ", '<option viscosity="1" '),
            ("geom_pos", "ball"),
            'geom "ball"',
        ),
        (
            contact_scene("elliptic", 3).replace(
                "</worldbody>",
                '</worldbody><actuator><adhesion name="glue" body="ball" ctrlrange="0 1"/>'
                "</actuator>",
            ),
            ("geom_size", "ball"),
            'actuator "glue"',
        ),
        (
            contact_scene("elliptic", 3).replace("<worldbody>", DIAGEXACT),
            ("geom_friction", "ball"),
            "diagexact",
        ),
        (
            contact_scene("elliptic", 3).replace("<option ", '<option noslip_iterations="3" '),
            ("geom_friction", "ball"),
            "noslip",
        ),
    ],
)
def test_refused_by_name(xml: str, item: object, match: str) -> None:
    model = mujoco.MjModel.from_xml_string(xml)
    parameters = mujacobian.Parameters(model, [item])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=match):
        analytic(parameters, disturbed(model, 0))


def test_range_finders_refuse_positions_of_geoms() -> None:
    """The position of a geom as a parameter is refused, but its friction is not."""
    xml = contact_scene("elliptic", 3).replace(
        "</worldbody>",
        '<site name="eye" pos="0 0 1" zaxis="0 0 -1"/></worldbody>'
        '<sensor><rangefinder name="range" site="eye"/></sensor>',
    )
    model = mujoco.MjModel.from_xml_string(xml)
    data = disturbed(model, 0)
    mujacobian.vjp(
        model, data, None, [1.0], params=mujacobian.Parameters(model, [("geom_friction", "ball")])
    )
    params = mujacobian.Parameters(model, [("geom_pos", "ball")])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='sensor "range"'):
        mujacobian.vjp(model, data, None, [1.0], params=params)


def test_corrected_rows_refuse_sensors() -> None:
    model = load(SENSED, "discrete")
    data = disturbed(model, 3, speed=0.3)
    params = mujacobian.Parameters(model, [("body_mass", "ball")])
    for sensor in (3, 5):
        weights = np.zeros(model.nsensordata)
        weights[model.sensor_adr[sensor]] = 1
        with pytest.raises(mujacobian.UnsupportedFeatureError, match=f"sensor {sensor}"):
            mujacobian.vjp(model, data, None, weights, params=params)


def test_friction_of_a_slide_along_the_second_tangent() -> None:
    """The first tangential force is exactly zero there, although the contact does not stick."""
    model = load(
        """<mujoco><option cone="elliptic" timestep=".002"/><worldbody>
        <geom name="floor" type="plane" size="5 5 .1" friction=".3"/>
        <body pos="0 0 .099"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
        <joint type="slide" axis="0 0 1"/><geom size=".1" friction=".5" mass=".6"/></body>
        </worldbody></mujoco>""",
        "Euler",
    )
    for velocity in ([1.0, 0, 0], [0, 1.0, 0]):
        data = mujoco.MjData(model)
        data.qvel[:] = velocity
        parameters = mujacobian.Parameters(model, [("geom_friction", 1)])
        judge(parameters, data, share=1 / 3)
        assert np.abs(analytic(parameters, data)[:, 0]).max() > 1e-3


@pytest.mark.parametrize(
    ("field", "sensor"),
    [
        ("jnt_range", "jointlimitpos"),
        ("jnt_range", "jointlimitfrc"),
        ("jnt_solref", "jointlimitfrc"),
    ],
)
def test_limit_sensors_refuse_their_own_limit(field: str, sensor: str) -> None:
    """Their direct dependence on the limit is not supported, so there is an error."""
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <worldbody>
          <body>
            <joint name="j" type="slide" axis="1 0 0" limited="true" range="-.1 .1"/>
            <geom size=".1"/>
          </body>
        </worldbody>
        <sensor><{sensor} joint="j"/></sensor>
      </mujoco>""")
    data = mujoco.MjData(model)
    data.qpos[0] = 0.11
    params = mujacobian.Parameters(model, [(field, "j")])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="sensor"):
        mujacobian.jvp(model, data, params=params, d_params=np.ones(len(params)))


@pytest.mark.parametrize("item", ["body_ipos", "body_log_cholesky"])
def test_a_center_of_mass_at_which_a_force_acts_raises(item: str) -> None:
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    body = model.body("lower").id
    params = mujacobian.Parameters(model, [(item, body)])
    d_next = np.ones(2 * model.nv + model.na)
    data.xfrc_applied[body, 3:] = 0.1
    assert mujacobian.vjp(model, data, d_next, params=params).params.any()
    data.xfrc_applied[body, 2] = 0.1
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r'body "lower".*center of mass'):
        mujacobian.vjp(model, data, d_next, params=params)
    mass = mujacobian.Parameters(model, [("body_mass", body)])
    assert mujacobian.vjp(model, data, d_next, params=mass).params.any()
