"""`Parameters.apply` moves only the elements that it should move.

The models are those of dm_control and gymnasium. With their own values, a step is bitwise the same
as that of the model, for every parameter family including log-Cholesky coordinates.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from mujacobian._parameters.fields import FIELDS
from tests.scenes.cases import sample

LEG = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="leg" pos="0 0 .25">
      <freejoint/>
      <geom name="shin" type="capsule" fromto="0 0 0 .2 .2 -.2" size=".08"/>
      <site name="shin" pos=".1 .1 -.1"/>
      <camera name="eye" pos=".1 0 .1"/>
      <light name="lamp" pos="0 .1 .1"/>
    </body>
  </worldbody>
  <sensor>
    <framepos objtype="geom" objname="shin"/>
    <framepos objtype="site" objname="shin"/>
  </sensor>
</mujoco>
"""
# the midphase searches the bounding boxes of bodies with several geoms
CLUB = """
<mujoco>
  <worldbody>
    <body><geom type="box" size="2 2 .1" pos="0 0 -.1"/><geom size=".1" pos="0 0 3"/></body>
    <body name="club" pos="0 0 .095">
      <freejoint/>
      <geom name="head" size=".1" pos=".3 0 0"/>
      <geom type="capsule" size=".02 .2" pos="0 0 .1" euler="0 80 20"/>
      <geom type="box" size=".05 .03 .08" pos="-.3 .1 .2" euler="10 20 30"/>
    </body>
  </worldbody>
</mujoco>
"""
FRAMES = ("geom_xpos", "geom_xmat", "site_xpos", "site_xmat", "cam_xpos", "cam_xmat", "light_xpos")


def _models() -> list[Path]:
    found: list[Path] = []
    for package, folder in (("dm_control", "suite"), ("gymnasium", "envs/mujoco/assets")):
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            pytest.skip(f"{package} is not installed: pip install 'mujacobian[test]'", True)
        found += sorted((Path(spec.submodule_search_locations[0]) / folder).glob("*.xml"))
    return found


def parameters_of(model: mujoco.MjModel, family: str, derived: str) -> mujacobian.Parameters:
    """Return all elements of a family; simple bodies of MuJoCo cannot move their center."""
    item: object = family
    if family in ("body_ipos", "body_log_cholesky"):
        inertia = np.sort(model.body_inertia, axis=1)
        massive = (model.body_mass > 0) & (inertia[:, 0] + inertia[:, 1] > 1.001 * inertia[:, 2])
        chosen = (model.body_simple == 0) & (massive | (family == "body_ipos"))
        item = (family, np.flatnonzero(chosen)[1:].tolist())
    return mujacobian.Parameters(model, [item], derived=derived)  # type: ignore[arg-type,list-item]


def moved_state(model: mujoco.MjModel) -> np.ndarray:
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qvel[:] = 0.1 * np.random.default_rng(0).standard_normal(model.nv)
    for _ in range(10):
        mujoco.mj_step(model, data)
    state = mujoco.mjtState.mjSTATE_FULLPHYSICS
    result = np.empty(mujoco.mj_stateSize(model, state))
    mujoco.mj_getState(model, data, result, state)
    return np.concatenate([result, data.sensordata])


@pytest.mark.parametrize(
    "path", sample(3, _models()), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_own_values_step_bitwise_like_the_model(path: Path) -> None:
    with reference.quiet():
        model = mujoco.MjModel.from_xml_path(str(path))
        expected = moved_state(model)
        for derived in ("recompute", "hold"):
            for family in FIELDS:
                parameters = parameters_of(model, family, derived)
                applied = parameters.apply(parameters.values)
                assert np.array_equal(moved_state(applied), expected, equal_nan=True), family


@pytest.mark.parametrize("family", ["body_ipos", "body_log_cholesky"])
def test_nothing_moves_with_the_inertial_frame(family: str) -> None:
    model = mujoco.MjModel.from_xml_string(LEG)
    assert model.geom_sameframe[1] == mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA
    parameters = mujacobian.Parameters(model, [family])
    values = parameters.values + 0.3 * np.random.default_rng(0).standard_normal(len(parameters))
    applied = parameters.apply(values)
    before, after = mujoco.MjData(model), mujoco.MjData(applied)
    mujoco.mj_forward(model, before)
    mujoco.mj_forward(applied, after)
    assert np.abs(after.xipos - before.xipos).max() > 0.01
    for name in FRAMES:
        np.testing.assert_allclose(getattr(after, name), getattr(before, name), atol=1e-15)


def test_contacts_are_found_wherever_the_inertial_frame_is() -> None:
    """The bounding boxes of the midphase are relative to the inertial frame."""
    model = mujoco.MjModel.from_xml_string(CLUB)
    parameters = mujacobian.Parameters(model, [("body_ipos", "club")])
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    for shift in np.eye(3):
        applied = parameters.apply(parameters.values + shift)
        after = mujoco.MjData(applied)
        mujoco.mj_forward(applied, after)
        np.testing.assert_array_equal(after.contact.geom, data.contact.geom)
        np.testing.assert_allclose(after.contact.dist, data.contact.dist, atol=1e-14)


@pytest.mark.parametrize("family", ["geom_pos", "geom_quat", "geom_size"])
def test_contacts_are_found_wherever_geoms_are(family: str) -> None:
    model = mujoco.MjModel.from_xml_string(CLUB)
    parameters = mujacobian.Parameters(model, [(family, ["head"])])
    values = parameters.values
    if family == "geom_pos":
        values += [0.0, 0.9, 0.0]
    if family == "geom_size":
        values *= 1.5
    applied = parameters.apply(values)
    assert (applied.bvh_aabb != model.bvh_aabb).any() or family == "geom_quat"
    data = mujoco.MjData(applied)
    mujoco.mj_forward(applied, data)
    found = {tuple(pair) for pair in data.contact.geom.tolist()}
    applied.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    mujoco.mj_forward(applied, data)
    assert found == {tuple(pair) for pair in data.contact.geom.tolist()}
    assert found


def test_bounds_are_the_compiler_s() -> None:
    model = mujoco.MjModel.from_xml_string(CLUB)
    parameters = mujacobian.Parameters(model, [("body_ipos", "club")])
    moved = parameters.apply(parameters.values + np.array([0.1, 0.2, 0.3]))
    back = mujacobian.Parameters(moved, [("body_ipos", "club")]).apply(parameters.values)
    assert np.abs(moved.bvh_aabb - model.bvh_aabb).max() > 0.01
    np.testing.assert_allclose(back.bvh_aabb, model.bvh_aabb, atol=1e-14)


@pytest.mark.parametrize("derived", ["recompute", "hold"])
@pytest.mark.parametrize("family", ["body_ipos", "body_log_cholesky"])
def test_gradient_of_a_rollout(family: str, derived: str) -> None:
    """The rollout has contacts, and sensors of a geom and a site that share the inertial frame."""
    model = mujoco.MjModel.from_xml_string(LEG)
    model.opt.tolerance = 0
    data = mujoco.MjData(model)
    data.qvel[:] = 0.1
    parameters = mujacobian.Parameters(model, [family], derived=derived)  # type: ignore[arg-type]
    values = parameters.values
    controls = np.zeros((5, 0))
    d_states = np.zeros((6, model.nq + model.nv))
    d_states[-1, 7:] = 1
    d_sensors = np.ones((5, model.nsensordata))

    def loss(x: np.ndarray) -> float:
        made = mujacobian.rollout(model, data, controls, params=(parameters, x))
        return float((made.states * d_states).sum() + made.sensordata.sum())

    def central(unit: np.ndarray, h: float) -> float:
        return (loss(values + h * unit) - loss(values - h * unit)) / (2 * h)

    trajectory = mujacobian.rollout(model, data, controls, params=parameters)
    gradient = trajectory.gradient(d_states, d_sensors).params
    assert gradient is not None
    h = 1e-5  # beyond 1e-6, within which MuJoCo treats frames as equal
    expected = [(4 * central(e, h) - central(e, 2 * h)) / 3 for e in np.eye(len(values))]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


def test_sensors_of_the_inertial_frame_are_refused() -> None:
    text = LEG.replace("<sensor>", '<sensor><framepos objtype="body" objname="leg"/>')
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mass, center = (mujacobian.Parameters(model, [name]) for name in ("body_mass", "body_ipos"))
    mujacobian.jvp(model, data, params=mass, d_params=np.ones(1))
    mujacobian.jvp(model, data, params=center, d_params=np.ones(3), sensors=False)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="sensor 0"):
        mujacobian.jvp(model, data, params=center, d_params=np.ones(3))


def test_anchor_of_a_simple_body() -> None:
    """If the center of mass leaves the hinge, the inertia grows by the parallel-axis theorem."""
    text = """<mujoco><worldbody><body name="wheel"><joint name="axle" axis="0 1 0"/>
    <geom size=".1"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    assert model.body_simple[1]
    for derived in ("recompute", "hold"):
        parameters = mujacobian.Parameters(model, [("jnt_pos", "axle")], derived=derived)  # type: ignore[arg-type]
        applied = parameters.apply([0.0, 0.0, 0.2])
        expected = model.dof_M0[0] + model.body_mass[1] * 0.04
        np.testing.assert_allclose(applied.dof_M0[0], expected, rtol=1e-14)
