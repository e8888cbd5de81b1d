"""Cylinders and capsules that touch along a line: MuJoCo takes an arbitrary point of the line."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained

# motions that keep the axes of both geoms parallel
PLANAR = """<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
  <joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 0 1"/>"""
TRUSTED_SHARE = 0.8
DISABLE = mujoco.mjtDisableBit
# the collider stops when the depth of two cylinders is correct to 1e-13 m, and by (CON-28) their
# normal then has an error of up to 2e-6 rad
COLLIDER_TOLERANCE = 3e-5

INERTIAL = '<inertial pos=".01 .02 0" mass=".5" diaginertia=".002 .002 .001"/>'
PAIRS = {
    "cylinders": ('type="cylinder" size=".05 .07"', 'type="cylinder" size=".07 .08"'),
    "capsule on cylinder": ('type="capsule" size=".05 .07"', 'type="cylinder" size=".07 .08"'),
    "cylinder on capsule": ('type="cylinder" size=".05 .07"', 'type="capsule" size=".07 .08"'),
    # the same contact in a plane, in closed form
    "sphere on capsule": ('type="capsule" size=".05 .5"', 'type="sphere" size=".07"'),
}


def scene(pair: str, joints: str, sensor: str = "") -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return two geoms side by side, a few millimeters deep, that slide along each other."""
    first, second = PAIRS[pair]
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option timestep=".002" cone="elliptic"/>
        <worldbody>
          <geom name="first" {first} pos="0 0 .1" condim="4"/>
          <body name="second" pos=".115 .02 .16">
            {joints}{INERTIAL}<geom name="second" {second}/>
          </body>
        </worldbody>
        <sensor>{sensor}</sensor>
      </mujoco>""")
    reference.converge(model)
    data = mujoco.MjData(model)
    data.qvel[:4] = -0.1, 0.2, 0.05, 0.3
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    return model, data


@pytest.mark.parametrize("pair", ["capsule on cylinder", "cylinder on capsule"])
@pytest.mark.parametrize("offset", [0.0, 0.06, -0.2])
def test_planar_motion_is_exact(pair: str, offset: float) -> None:
    model, data = scene(pair, PLANAR)
    data.qpos[2:] = offset, 0.4
    assert judge_constrained(model, data, CONTACT_TOLERANCE) > TRUSTED_SHARE


@pytest.mark.parametrize("offset", [0.0, 0.06, -0.2])
def test_cylinders_move_like_closed_forms(offset: float) -> None:
    """The position along the line does not matter, and the collider's own slopes are not smooth."""
    A = []
    for pair in ("cylinders", "sphere on capsule"):
        model, data = scene(pair, PLANAR)
        data.qpos[2:] = offset, 0.4
        A.append(mujacobian.linearize(model, data).A)
    np.testing.assert_allclose(A[0], A[1], atol=COLLIDER_TOLERANCE * abs(A[1]).max())
    assert abs(A[1] - np.eye(len(A[1]))).max() > 1, "the contact has no effect"


@pytest.mark.parametrize("pair", ["cylinders", "capsule on cylinder"])
def test_tilts_are_refused(pair: str) -> None:
    """A tilt of 1e-9 rad moves the point to one of the ends."""
    model, data = scene(pair, "<freejoint/>")
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r'"first".*jumps if they tilt'):
        mujacobian.linearize(model, data)


@pytest.mark.skipif(not hasattr(DISABLE, "mjDSBL_MULTICCD"), reason="no such flag then")
@pytest.mark.parametrize("other", ["box", "mesh"])
def test_a_line_along_a_face_is_one_contact_without_a_manifold(other: str) -> None:
    """An upright cylinder pushes a box. If it cannot tilt, it moves like a sphere."""
    upright = 'type="cylinder" size=".03 .05"'
    A = [
        mujacobian.linearize(*pushing(shape, other, PLANAR), sensors=False).A
        for shape in (upright, 'type="sphere" size=".03"')
    ]
    np.testing.assert_allclose(A[0], A[1], atol=COLLIDER_TOLERANCE * abs(A[1]).max())
    assert abs(A[1] - np.eye(len(A[1]))).max() > 1, "the contact has no effect"
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="jumps if they tilt"):
        mujacobian.linearize(*pushing(upright, other, "<freejoint/>"), sensors=False)


def pushing(shape: str, other: str, joints: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a stick of this shape, half a millimeter deep in the side of a box."""
    corners = np.array(np.meshgrid(*3 * [[-1, 1]])).reshape(3, -1).T * [0.08, 0.08, 0.05]
    box = 'type="box" size=".08 .08 .05"' if other == "box" else 'type="mesh" mesh="box"'
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option cone="elliptic"/>
        <asset><mesh name="box" vertex="{" ".join(map(str, corners.ravel()))}"/></asset>
        <worldbody>
          <body pos="-.1095 .02 .01">{joints}{INERTIAL}<geom name="stick" {shape}/></body>
          <geom name="box" {box}/>
        </worldbody>
      </mujoco>""")
    reference.converge(model)
    model.opt.disableflags |= int(DISABLE.mjDSBL_MULTICCD)
    data = mujoco.MjData(model)
    data.qvel[:4] = 0.1, 0.2, 0.05, 0.3
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    return model, data


def test_sensors_of_the_point_are_refused() -> None:
    sensor = '<contact geom1="first" geom2="second" data="pos"/>'
    model, data = scene("cylinders", PLANAR, sensor)
    assert np.isfinite(mujacobian.linearize(model, data, sensors=False).A).all()
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="point on it is arbitrary"):
        mujacobian.linearize(model, data)


def test_an_axis_on_an_edge_is_refused_with_its_reason() -> None:
    """Every direction between the two faces of the edge is equally deep."""
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <worldbody>
          <geom type="box" size=".1 .2 .025"/>
          <body pos="-.1 .2 0">
            <joint axis="1 0 0"/><geom type="cylinder" size=".025 .08" pos="0 0 -.08"/>
          </body>
        </worldbody>
      </mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="meets an edge"):
        mujacobian.linearize(model, data)
