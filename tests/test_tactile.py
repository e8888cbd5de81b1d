"""Tactile sensors against the reference."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.scenes.cases import snapshot

TOLERANCE = 1e-6  # of the reference with contacts of curved geoms
TRUSTED_SHARE = 0.9

# `other` is pushed into the skin of the hand from below
XML = """
<mujoco>
  <option timestep=".002"/>
  <asset>
    <mesh name="plate" builtin="plate" params="5 4" scale=".1 .08 .05"/>
    <mesh name="wedge" builtin="wedge" params="5 4 50 60 0" scale=".08 .08 .08"/>
    <mesh name="lump"
      vertex="-.1 -.1 -.1  .1 -.1 -.1  0 .12 -.1  -.1 .02 .1  .09 .03 .08  0 -.1 .09"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1" pos="0 0 -.2" euler="4 -3 0"/>
    <geom type="{field}" mesh="lump" pos="9 0 0" contype="0" conaffinity="0"/>
    <body pos="0 0 1"><joint axis="1 2 3"/><geom size=".05" contype="0" conaffinity="0"/></body>
    <body name="hand" pos="0 0 {height}">
      <freejoint/>
      <geom name="palm" type="ellipsoid" size=".12 .12 .06" mass="1"/>
      <body name="fixed" pos=".01 0 -.02" euler="170 10 20">
        <geom name="skin" type="mesh" mesh="{skin}" mass="0" contype="0" conaffinity="0"/>
        <geom size=".02" mass=".1" pos="0 0 .01"/>
      </body>
    </body>
    <body name="other" euler="10 5 30" pos="{away} 0 0">
      <joint type="ball" damping="1"/><joint type="slide" axis="1 .2 .3"/>
      <geom name="other" mass=".5" {other}/>
      {tail}
    </body>
  </worldbody>
  <sensor><tactile name="skin" geom="skin" mesh="{skin}" cutoff="{cutoff}"/></sensor>
</mujoco>"""
TAIL = '<geom name="tail" type="sphere" size=".06" pos=".06 .05 .08" mass=".1"/>'
OTHERS = {
    "sphere": 'type="sphere" size=".1"',
    "capsule": 'type="capsule" size=".08 .1"',
    "ellipsoid": 'type="ellipsoid" size=".1 .12 .09"',
    "cylinder": 'type="cylinder" size=".1 .09"',
    "box": 'type="box" size=".1 .11 .09"',
    "octree": 'type="mesh" mesh="lump"',
}


def scene(other="capsule", skin="wedge", **values):
    """Return a model and a state in which a part of the skin is inside of the other geom."""
    given = {"field": "sdf", "height": 0.09, "away": 0, "tail": "", "cutoff": 0, **values}
    xml = XML.format(other=OTHERS[other], skin=skin, **given)
    model = mujacobian.converged(mujoco.MjModel.from_xml_string(xml))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv) * 0.1, 0.1)
    data.qvel[:] = rng.normal(size=model.nv) * 0.2
    mujoco.mj_forward(model, data)
    return model, data


def compare(model, data):
    """Compare C and D with the reference, and return C."""
    before = snapshot(model, data)
    lin = mujacobian.linearize(model, data)
    assert snapshot(model, data) == before, "the caller's state changed"
    assert mujacobian.linearize(model, data).C.tobytes() == lin.C.tobytes()
    found = reference.jacobian(model, data, constrained=True)
    J = np.hstack([lin.C, lin.D])
    expected, error = found.J[found.nx :], found.err[found.nx :]
    scale = np.maximum(abs(expected).max(axis=0), 1)
    trusted = error <= TOLERANCE / 2 * scale
    assert trusted.mean() > TRUSTED_SHARE
    assert (abs(J - expected) / scale)[trusted].max() < TOLERANCE
    return lin.C


@pytest.mark.parametrize(
    ("other", "skin", "height"),
    [
        ("sphere", "plate", 0.05),
        ("capsule", "wedge", 0.09),
        ("ellipsoid", "plate", 0.05),
        ("cylinder", "wedge", 0.05),
        ("box", "plate", 0.05),
        ("octree", "plate", 0.05),
    ],
)
def test_depths_and_speeds_are_exact(other, skin, height):
    model, data = scene(other, skin, height=height)
    assert mujacobian.support(model) == []
    touched = data.sensordata != 0
    C = compare(model, data)
    assert touched.sum() >= 6
    np.testing.assert_array_equal(C.any(axis=1), touched)


def test_static_geoms_are_touched():
    model, data = scene(height=-0.25, away=1)
    assert data.sensordata.any()
    assert compare(model, data).any()


def test_several_geoms_share_a_taxel():
    model, data = scene("capsule", height=0.06, tail=TAIL)
    depth = data.sensordata[: len(data.sensordata) // 3]
    alone = scene("capsule", height=0.06)[1].sensordata[: len(depth)]
    assert ((depth != alone) & (alone > 0)).any()
    compare(model, data)


def test_values_beyond_the_cutoff_are_constant():
    deepest = scene()[1].sensordata.max()
    model, data = scene(cutoff=deepest / 3)
    cut = data.sensordata == deepest / 3
    C = compare(model, data)
    assert cut.any()
    np.testing.assert_array_equal(C.any(axis=1), (data.sensordata != 0) & ~cut)


def test_nothing_is_sensed_without_contacts():
    model, data = scene(height=1)
    assert not mujacobian.linearize(model, data).C.any()


def test_meshes_without_octree_are_ignored():
    model, data = scene("octree", field="mesh")
    assert data.ncon
    assert not data.sensordata.any()
    assert not mujacobian.linearize(model, data).C.any()


def test_taxels_at_the_center_of_a_ball_raise():
    """A corner of a cube is at the center of a ball, which a second ball of the hand touches."""
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <asset><mesh name="cube" vertex="0 0 0 1 0 0 0 1 0 1 1 0 0 0 1 1 0 1 0 1 1 1 1 1"/></asset>
        <worldbody>
          <geom name="ball" size=".5" pos="1 1 1"/>
          <body><freejoint/>
            <geom name="skin" type="mesh" mesh="cube" mass="0" contype="0" conaffinity="0"/>
            <geom size=".1" pos="1 1 1.55"/>
          </body>
        </worldbody>
        <sensor><tactile name="skin" geom="skin" mesh="cube"/></sensor>
      </mujoco>""")
    data = mujoco.MjData(model)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r'geom "ball".*center'):
        mujacobian.linearize(model, data)
    assert mujacobian.linearize(model, data, sensors=False).A.any()
    data.qpos[0] = 1e-3
    assert mujacobian.linearize(model, data).C[7].any()


def test_other_derivatives_contain_the_sensor_or_raise():
    model, data = scene("box", "plate", height=0.09)
    C = mujacobian.linearize(model, data).C
    DsDq, nv = np.empty((model.nv, len(C))), model.nv
    mujacobian.inverse(model, data, DsDq=DsDq)
    np.testing.assert_allclose(DsDq.T, C[:, :nv], atol=1e-12)

    y = np.random.default_rng(1).normal(size=len(C))
    np.testing.assert_allclose(mujacobian.vjp(model, data, None, y).state, C.T @ y, atol=1e-9)
    trajectory = mujacobian.rollout(model, data, np.zeros((1, 0)))
    pulled = trajectory.gradient(None, y[None], tangent=True)
    np.testing.assert_allclose(pulled.state, C.T @ y, atol=1e-9)

    mass = mujacobian.Parameters(model, ["body_mass"])
    assert not mujacobian.vjp(model, data, None, y, params=mass).params.any()
    place = mujacobian.Parameters(model, [("geom_pos", "other")])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='sensor "skin"'):
        mujacobian.vjp(model, data, None, y, params=place)

    found = [(each.element, each.reason) for each in mujacobian.support(model, order=2)]
    assert any(element == 'sensor "skin"' for element, _ in found), found
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='sensor "skin"'):
        mujacobian.hessian(model, data, np.zeros(2 * nv), y)
