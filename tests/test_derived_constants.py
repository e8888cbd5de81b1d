"""Derivatives with the constants of `mj_setConst`, against differences of edited models.

The reference writes the field into a copy of the model, calls `mj_setConst` and takes a step. It
does not use `Parameters.apply`.
"""

from __future__ import annotations

import copy
import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from mujacobian.check._judge import converged
from tests.scenes.cases import sample

TOLERANCE = 1e-6  # of the largest entry of the column
# Contacts, limits, dry friction or equalities are active in the states of these models.
MODELS = {
    "gymnasium": (
        "ant", "half_cheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum",
        "reacher", "walker2d", "pusher_v5", "swimmer",
    ),
    "dm_control": (
        "ball_in_cup", "cheetah", "finger", "hopper", "humanoid", "humanoid_CMU", "manipulator",
        "quadruped", "stacker", "walker", "reacher", "cartpole",
    ),
}  # fmt: skip
FOLDERS = {"gymnasium": "envs/mujoco/assets", "dm_control": "suite"}
FIELDS = ("body_mass", "body_inertia", "body_ipos", "dof_armature")

# Two trees that touch, muscles whose force is a scale divided by acc0, and every kind of row.
MACHINE = """
<mujoco>
  <option timestep=".002"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <site name="anchor" pos="0 0 1.2"/>
    <body name="upper" pos="0 0 .8">
      <joint name="ball" type="ball" damping=".1" range="0 10" limited="true"/>
      <geom name="upper" type="capsule" size=".03" fromto="0 0 0 .3 .02 .05" mass=".8"/>
      <site name="mid" pos=".15 0 .05"/>
      <body name="lower" pos=".3 0 .05">
        <joint name="elbow" axis="0 1 .1" range="-5 5" limited="true" frictionloss=".05"
               armature=".01"/>
        <geom name="lower" type="box" size=".15 .02 .03" pos=".15 .01 0" mass=".5"/>
        <site name="tip" pos=".3 0 .03"/>
        <body name="slider" pos=".2 0 0">
          <joint name="slide" type="slide" axis="1 0 .3" frictionloss=".4" armature=".02"/>
          <geom name="slider" size=".03" pos="0 .02 .01" mass=".2"/>
        </body>
      </body>
    </body>
    <body name="rock" pos=".35 .1 .05">
      <freejoint/>
      <geom name="rock" type="box" size=".1 .08 .06" pos=".02 0 0" mass="1.2"/>
      <site name="knob" pos="0 0 .06"/>
      <body name="lump" pos=".1 .1 0"><geom size=".05" mass=".3"/></body>
    </body>
    <body name="cart" pos="2 0 .0495">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <geom name="cart" size=".05" mass=".4"/>
    </body>
    <body name="twin" pos="3 0 1">
      <joint name="a" axis="0 1 0"/><geom size=".05" pos=".1 0 0" mass=".3"/>
      <body pos=".2 0 0"><joint name="b" axis="0 1 0"/><geom size=".05" pos=".1 0 0" mass=".2"/>
      </body>
    </body>
  </worldbody>
  <equality>
    <connect body1="lower" body2="rock" anchor=".1 .02 .03" solref=".05 1"/>
    <weld site1="mid" site2="knob" torquescale=".4" solref=".08 1"/>
    <joint joint1="a" joint2="b" polycoef=".1 .5 .2 0 0"/>
    <tendon tendon1="cord" tendon2="rope" polycoef="0 .3 .4 0 0" solref=".1 1"/>
  </equality>
  <tendon>
    <spatial name="rope" frictionloss=".1" range="0 .2" limited="true">
      <site site="anchor"/><site site="tip"/>
    </spatial>
    <spatial name="cord" armature=".02"><site site="mid"/><site site="knob"/></spatial>
    <fixed name="link" range="-.01 .01" limited="true">
      <joint joint="elbow" coef="1"/><joint joint="slide" coef="-2"/>
    </fixed>
  </tendon>
  <actuator>
    <muscle name="biceps" tendon="rope" lengthrange=".2 1" scale="300"/>
    <muscle name="triceps" joint="elbow" lengthrange="-1 1" scale="20"/>
    <position name="servo" joint="elbow" kp="4" kv=".5"/>
  </actuator>
  <sensor>
    <touch site="knob"/><force site="tip"/><torque site="mid"/><jointlimitfrc joint="elbow"/>
    <tendonlimitfrc tendon="rope"/><accelerometer site="knob"/><actuatorfrc actuator="biceps"/>
  </sensor>
</mujoco>
"""


def _paths() -> list[Path]:
    found = []
    for package, names in MODELS.items():
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            pytest.skip(f"{package} is not installed: pip install 'mujacobian[test]'", True)
        folder = Path(spec.submodule_search_locations[0]) / FOLDERS[package]
        found += [folder / f"{name}.xml" for name in names]
    return found


def fresh(model: mujoco.MjModel, field: str, values: np.ndarray) -> mujoco.MjModel:
    """Return a copy with this field and all constants derived again; frames stay in place."""
    edited = copy.copy(model)
    getattr(edited, field)[:] = values
    mujoco.mj_setConst(edited, mujoco.MjData(edited))
    if field == "body_ipos":
        none = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
        edited.body_sameframe[model.body_simple == 0] = none
        edited.geom_sameframe[:] = none
        edited.site_sameframe[:] = none
    return edited


def outcome(model: mujoco.MjModel, data: mujoco.MjData, center: np.ndarray) -> np.ndarray:
    """Return the next state, with positions relative to those in `center`."""
    after = mujoco.MjData(model)
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    mujoco.mj_setState(model, after, state, spec)
    mujoco.mj_step(model, after)
    turn = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, turn, 1.0, center, after.qpos)
    return np.concatenate([turn, after.qvel, after.act])


def judge(
    model: mujoco.MjModel, data: mujoco.MjData, field: str, rng: np.random.Generator
) -> float | None:
    """Return the error along a random direction, or None at a kink."""
    own = getattr(model, field)
    free = np.ones(len(own), dtype=bool)
    if field.startswith("body"):
        free[0] = False
        if field == "body_ipos":
            free &= model.body_simple == 0
    direction = np.where(np.reshape(free, (-1, *[1] * (own.ndim - 1))), own, 0.0)
    direction = direction * rng.uniform(0.3, 1, len(own)).reshape(-1, *[1] * (own.ndim - 1))
    if not direction.any():
        return None
    bodies = np.flatnonzero(free).tolist()
    item = (field, bodies) if field.startswith("body") else field
    parameters = mujacobian.Parameters(model, [item])
    d_params = direction[free].ravel() if field.startswith("body") else direction.ravel()
    got = mujacobian.jvp(model, data, params=parameters, d_params=d_params, sensors=False)[0]

    after = mujoco.MjData(model)
    mujoco.mj_copyData(after, model, data)
    mujoco.mj_step(model, after)

    def central(h: float) -> np.ndarray:
        ends = [
            outcome(fresh(model, field, own + s * h * direction), data, after.qpos) for s in (1, -1)
        ]
        return (ends[0] - ends[1]) / (2 * h)

    best, spread = got, np.inf
    for h in (4e-3, 1e-3, 2.5e-4, 5e-5):
        coarse, fine = ((4 * central(h / k) - central(2 * h / k)) / 3 for k in (1, 2))
        if (found := np.abs(coarse - fine).max()) < spread:
            best, spread = fine, found
    scale = np.abs(best).max()
    if scale == 0 or spread > 0.2 * TOLERANCE * scale:
        return None
    return float(np.abs(got - best).max() / scale)


def states(model: mujoco.MjModel) -> list[mujoco.MjData]:
    """Yield states with constraints, after random controls and speeds."""
    found = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        data = mujoco.MjData(model)
        if model.nkey:
            mujoco.mj_resetDataKeyframe(model, data, 0)
        data.qvel[:] = 0.5 * rng.standard_normal(model.nv)
        data.ctrl[:] = 0.3 * rng.standard_normal(model.nu)
        for _ in range(200):
            mujoco.mj_step(model, data)
        found.append(data)
    return found


@pytest.mark.parametrize(
    "path", sample(2, _paths()), ids=lambda path: f"{path.parents[1].name}/{path.stem}"
)
def test_models_in_contact(path: Path) -> None:
    with reference.quiet():
        model = mujoco.MjModel.from_xml_path(str(path))
        judged = 0
        rng = np.random.default_rng(0)
        for data in states(model):
            twin, same = converged(model, data)
            for field in FIELDS:
                if model.opt.density > 0 and field != "dof_armature":
                    continue  # inertia in a fluid is not a parameter
                error = judge(twin, same, field, rng)
                if error is not None:
                    judged += 1
                    assert error <= TOLERANCE, f"{field}: {error:.1e} with {same.nefc} rows"
        assert judged > 0 or model.opt.density > 0


@pytest.mark.parametrize("integrator", ["EULER", "IMPLICIT", "IMPLICITFAST", "RK4", "DISCRETE"])
def test_every_kind_of_row(integrator: str) -> None:
    model = mujoco.MjModel.from_xml_string(MACHINE)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    reference.converge(model)
    data = states(model)[0]
    data.act[:] = 0.3
    mujoco.mj_forward(model, data)
    assert len(set(data.efc_type.tolist())) >= 5
    rng = np.random.default_rng(0)
    for field in (*FIELDS, "body_pos"):
        error = judge(model, data, field, rng)
        assert error is not None, field
        assert error <= TOLERANCE, f"{field}: {error:.1e}"


def test_the_center_of_a_body_without_mass() -> None:
    """MuJoCo measures the weight of a weld there."""
    model = reference.converge(
        mujoco.MjModel.from_xml_string("""
      <mujoco>
        <worldbody>
          <body>
            <joint axis="0 1 0"/>
            <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" contype="0"/>
            <body pos=".3 0 0">
              <joint axis="0 1 .3"/>
              <geom type="capsule" size=".03" fromto="0 0 0 .2 0 0" contype="0"/>
              <body name="hand" pos=".2 0 0"><inertial pos=".1 .3 0" mass="0" diaginertia="0 0 0"/>
              </body>
            </body>
          </body>
        </worldbody>
        <equality><weld body1="hand"/></equality>
      </mujoco>""")
    )
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (0.1, 0.2), (1, -2)
    mujoco.mj_forward(model, data)
    own, h = model.body_ipos.copy(), 1e-4
    parameters = mujacobian.Parameters(model, [("body_ipos", "hand")])
    for k, direction in enumerate(np.eye(3)):
        moved = np.zeros_like(own)
        moved[-1] = direction
        got = mujacobian.jvp(model, data, params=parameters, d_params=direction, sensors=False)[0]
        ends = [
            outcome(fresh(model, "body_ipos", own + s * h * moved), data, data.qpos)
            for s in (1, -1)
        ]
        expected = (ends[0] - ends[1]) / (2 * h)
        assert pytest.approx(expected, rel=1e-6, abs=1e-9) == got
        assert k == 2 or np.abs(expected).max() > 1e-3


def test_apply_agrees_with_mj_set_const() -> None:
    model = mujoco.MjModel.from_xml_string(MACHINE)
    parameters = mujacobian.Parameters(model, ["body_mass", "body_pos", "dof_armature"])
    applied = parameters.apply(parameters.values * 1.3)
    made = copy.copy(applied)
    mujoco.mj_setConst(made, mujoco.MjData(made))
    changed = set()
    for name in ("body_invweight0", "dof_invweight0", "tendon_invweight0", "tendon_length0",
                 "actuator_acc0", "eq_data", "dof_M0", "body_subtreemass"):  # fmt: skip
        np.testing.assert_array_equal(getattr(applied, name), getattr(made, name))
        changed |= {name} if (getattr(applied, name) != getattr(model, name)).any() else set()
    assert len(changed) == 8
    held = mujacobian.Parameters(model, ["body_mass"], derived="hold").apply(
        1.3 * model.body_mass[1:]
    )
    for name in ("body_invweight0", "dof_invweight0", "tendon_invweight0", "actuator_acc0"):
        np.testing.assert_array_equal(getattr(held, name), getattr(model, name))


def test_apply_after_other_values() -> None:
    """The result does not depend on earlier values, edits of the model or other threads."""
    model = mujoco.MjModel.from_xml_string(MACHINE)
    parameters = mujacobian.Parameters(model, ["body_mass", "body_pos", "dof_armature"])
    for name in ("qpos0", "site_pos", "actuator_gear", "tendon_armature", "eq_data", "wrap_prm"):
        changed = getattr(parameters.model, name)
        changed[:] *= 1.01
    wanted = copy.deepcopy(parameters).apply(parameters.values * 1.1)
    made = copy.copy(wanted)
    mujoco.mj_setConst(made, mujoco.MjData(made))
    with ThreadPoolExecutor(4) as pool:
        factors = [1 + 0.01 * (k % 11) for k in range(44)]
        applied = list(pool.map(lambda f: parameters.apply(parameters.values * f), factors))
    for name in ("body_invweight0", "dof_invweight0", "tendon_invweight0", "tendon_length0",
                 "actuator_acc0", "eq_data"):  # fmt: skip
        for k in (10, 21, 32, 43):
            np.testing.assert_array_equal(getattr(applied[k], name), getattr(wanted, name))
        assert (getattr(applied[9], name) != getattr(wanted, name)).any()
    np.testing.assert_array_equal(made.body_invweight0, wanted.body_invweight0)


def test_constants_follow_the_model_s_rows() -> None:
    """If rows of a model are switched on later, the parameters have other derived constants."""
    model = mujoco.MjModel.from_xml_string(MACHINE)
    model.jnt_limited[:] = 0
    model.dof_frictionloss[:] = 0
    parameters = mujacobian.Parameters(model, ["body_mass"])
    before = len(parameters.core)
    model.jnt_limited[model.joint("elbow").id] = 1
    assert len(parameters.of_model(model).core) > before
    assert len(parameters.core) == before


def test_a_frame_within_the_compiler_s_tolerance() -> None:
    """MuJoCo treats frames as equal within 1e-6; derived constants are smooth there, too."""
    text = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="top" pos="0 0 .1">
    <freejoint/><geom size=".1" mass="1"/><body pos=".3 0 0"><geom size=".1" mass="1"/></body>
    </body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    parameters = mujacobian.Parameters(model, [("body_ipos", "top")])
    weights = [
        parameters.apply([x, 0, 0]).body_invweight0[1, 0] for x in (-4e-7, -2e-7, 2e-7, 4e-7, 1e-3)
    ]
    slopes = np.diff(weights) / [2e-7, 4e-7, 2e-7, 1e-3 - 4e-7]
    assert slopes[0] != 0
    np.testing.assert_allclose(slopes[:3], slopes[3], rtol=2e-2)


def test_bad_argument() -> None:
    model = mujoco.MjModel.from_xml_string(MACHINE)
    with pytest.raises(ValueError, match="recompute"):
        mujacobian.Parameters(model, ["body_mass"], derived="fresh")  # type: ignore[arg-type]
