"""Contacts of boxes and meshes that no face, edge or vertex along MuJoCo's normal explains."""

import warnings

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.directional import EXACT, judge_directions
from tests.scenes.contact_scenes import UP, Pair, scene
from tests.scenes.random_pairs import poses

TOLERANCE = 1e-6
# the direction of a cylinder is correct to about 1e-6 rad when the collider stops (CON-28)
COLLIDER_TOLERANCE = 3e-5


def text_of(points: np.ndarray) -> str:
    return " ".join(f"{x:.8f}" for x in points.ravel())


def blob(seed: int) -> np.ndarray:
    """Return vertices on an ellipsoid."""
    points = np.random.default_rng(seed).normal(size=(300, 3))
    return points / np.linalg.norm(points, axis=1)[:, None] * [0.1, 0.12, 0.09]


def deep_meshes(iterations: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return two meshes that penetrate deeply; the collider stops after some iterations."""
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option ccd_iterations="{iterations}" tolerance="0"/>
        <asset>
          <mesh name="one" vertex="{text_of(blob(0))}"/>
          <mesh name="two" vertex="{text_of(blob(1))}"/>
        </asset>
        <worldbody>
          <body><joint axis="1 .2 .1" stiffness="3"/><geom type="mesh" mesh="one"/></body>
          <body pos=".05 .03 .08" euler="20 30 40"><freejoint/><geom type="mesh" mesh="two"/></body>
        </worldbody>
      </mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def assert_exact(model: mujoco.MjModel, data: mujoco.MjData, lin: mujacobian.Linearization) -> None:
    ref = reference.jacobian(model, data, constrained=True)
    result = reference.compare(
        lin.A, ref.A, ref.err[: ref.nx, : ref.nx], ref.blocks[:4], TOLERANCE / 10
    )
    assert result.share > 0.9
    assert result.error < TOLERANCE


def test_a_collider_that_stops_early_is_differentiated_with_a_warning() -> None:
    """The facet at which MuJoCo stops consists of three pairs of vertices (CON-36)."""
    model, data = deep_meshes(8)
    assert data.ncon == 1
    with pytest.warns(mujacobian.errors.ColliderNotConvergedWarning):
        lin = mujacobian.linearize(model, data)
    assert mujacobian.diagnose(model, data).rows[0].feature == "3 pairs of vertices"
    assert_exact(model, data, lin)


def test_a_converged_collider_does_not_warn() -> None:
    model, data = deep_meshes(100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lin = mujacobian.linearize(model, data)
    assert_exact(model, data, lin)


# exact in single precision
BOX = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-0.5, 0.5)]) / 8


def resting(depth: float) -> np.ndarray:
    """Return A of a box on a larger one, both meshes, in a pose without symmetries."""
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option tolerance="0" gravity="0 0 0"/>
        <asset>
          <mesh name="box" vertex="{text_of(BOX)}"/><mesh name="small" vertex="{text_of(BOX / 2)}"/>
        </asset>
        <worldbody>
          <body name="base" pos=".31 .27 .43" euler="25 40 10"><geom type="mesh" mesh="box"/></body>
          <body name="top"><freejoint/><geom type="mesh" mesh="small"/></body>
        </worldbody>
      </mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    base = data.body("base")
    turn = np.zeros(4)
    mujoco.mju_axisAngle2Quat(turn, np.array([0.0, 0, 1]), 0.3)
    mujoco.mju_mulQuat(data.qpos[3:], base.xquat, turn)
    frame = base.xmat.reshape(3, 3)
    data.qpos[:3] = base.xpos + frame @ [0.03, 0.02, 0.09375 - depth]
    data.qvel[:3] = -0.1 * frame[:, 2]
    mujoco.mj_forward(model, data)
    assert data.ncon == 4
    return mujacobian.linearize(model, data).A


@pytest.mark.parametrize("depth", [1e-10, 4e-9])
def test_rounded_normals_of_tiny_distances(depth: float) -> None:
    """MuJoCo's normal is a difference of two points, divided by their distance (CON-34)."""
    once, twice = resting(1e-7), resting(2e-7)
    wanted = once + (once - twice) * (1e-7 - depth) / 1e-7
    assert abs(resting(depth) - wanted).max() < TOLERANCE * abs(wanted).max()


def leaning(inside: float) -> tuple[float, np.ndarray]:
    """Return how far the upper end of a cylinder on a box is inside the margin, and A.

    The first result is between `inside` and twice as much.
    """
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <option tolerance="0" gravity="0 0 0" ccd_tolerance="1e-13" ccd_iterations="500"/>
        <worldbody>
          <body name="base" pos=".31 .27 .43" euler="25 40 10">
            <geom type="box" size=".08 .08 .05" margin=".005"/>
          </body>
          <body><freejoint/><geom type="cylinder" size=".03 .05"/></body>
        </worldbody>
      </mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    base, lean = data.body("base"), np.zeros(4)
    mujoco.mju_euler2Quat(lean, np.array([0.02, -0.0428, 0.3]), "xyz")
    mujoco.mju_mulQuat(data.qpos[3:], base.xquat, lean)
    frame = base.xmat.reshape(3, 3).copy()
    data.qvel[:3] = frame @ [0.1, 0.02, 0.03]

    def upper(x: float) -> float:
        data.qpos[:3] = base.xpos + frame @ [x, 0, 0.005]
        mujoco.mj_forward(model, data)
        return float(data.contact.dist.max()) if data.ncon == 2 else 1.0

    near, far = -0.112, -0.117  # two contacts and one contact
    while near - far > inside / 4:
        middle = (near + far) / 2
        near, far = (middle, far) if upper(middle) < 0.005 - inside else (near, middle)
    found = 0.005 - upper(near)
    assert inside < found < 2 * inside
    return found, mujacobian.linearize(model, data).A


@pytest.mark.skipif(mujoco.mj_version() < 3017000, reason="other manifolds within margins then")
@pytest.mark.parametrize("inside", [1e-10, 1e-9])
def test_rounded_normals_at_the_end_of_the_margin(inside: float) -> None:
    """The difference of the points of the inflated geoms is tiny there."""
    (far, once), (farther, twice), (near, A) = map(leaning, (1e-7, 2e-7, inside))
    wanted = once + (once - twice) * (far - near) / (farther - far)
    assert abs(A - wanted).max() < COLLIDER_TOLERANCE * abs(wanted).max()


@pytest.mark.skipif(mujoco.mj_version() < 4000000, reason="another pose then")
def test_a_capsule_flush_with_a_polygon_touches_its_fold() -> None:
    """The four vertices are 2e-9 m out of plane. The nearest line is a diagonal of the polygon."""
    *_, (model, data) = poses("capsule", "mesh", range(127))
    verdict = judge_directions(model, data, 126)
    assert verdict.word == EXACT, verdict
    features = {row.feature for row in mujacobian.diagnose(model, data).rows}
    assert all(feature.endswith("direction: nearest points") for feature in features)


def test_a_capsule_beside_a_parallel_edge() -> None:
    """The nearest point of the segment is not unique, but nothing depends on it (CON-35)."""
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option tolerance="0" gravity="0 0 0"/>
        <asset><mesh name="box" vertex="{text_of(BOX)}"/></asset>
        <worldbody>
          <geom type="mesh" mesh="box"/>
          <body pos=".128 .1844 .001">
            <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
            <joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 0 1" pos=".01 .02 0"/>
            <geom type="capsule" size=".06 .2"/>
          </body>
        </worldbody>
      </mujoco>""")
    reference.converge(model)
    data = mujoco.MjData(model)
    data.qvel[:] = [0.1, -0.2, 0.3, 0.4]
    mujoco.mj_forward(model, data)
    assert data.ncon == 2
    lin = mujacobian.linearize(model, data)
    features = {row.feature for row in mujacobian.diagnose(model, data).rows}
    assert features == {"segment cut by side on face, direction: nearest points"}
    assert_exact(model, data, lin)


# poses of two geoms that touch in one point, in the scenes of tests/scenes/random_pairs.py
ROUNDED = {
    "deep": (
        ("mesh", "box"),
        "0 .095378602 -.104100325 -.842357413 -.520096177 "
        ".113268399 .013442615 .403832091 .356267114 .335157902 .794906484 .358979952",
    ),
    "vertex": (
        ("mesh", "box"),
        "0 -.163879189 -.07308082 -.51349394 -.839122624 "
        "-.000840689 .118114025 .566821394 .584972777 -.666285232 -.118159518 .447112031",
    ),
    "edge": (
        ("box", "mesh"),
        "0 .725323091 .071209651 -.486717795 .481602935 "
        "-.192969285 .221381783 .336011812 -.443522298 .318514609 .092721751 .83260981",
    ),
    "vertex on cap": (
        ("cylinder", "box"),
        "0 .654190723 .019570548 .63908599 -.404005679 "
        ".343330421 .025021406 .354909021 -.096049995 -.211100926 .012532913 .972652931",
    ),
}


@pytest.mark.filterwarnings("ignore::mujacobian.errors.ColliderNotConvergedWarning")
@pytest.mark.parametrize("pose", ROUNDED)
def test_geoms_that_penetrate_within_a_margin(pose: str) -> None:
    """The margin rounds the geoms, and the collider stops next to the optimum of sharp ones."""
    pair, qpos = ROUNDED[pose]
    text = scene(Pair(*pair, UP), "elliptic", 3, geom='margin=".001"')
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:] = [float(x) for x in qpos.split()]
    model.opt.tolerance = 0
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    assert data.contact.dist[0] < 0
    given = mujacobian.linearize(model, data, sensors=False)
    reference.converge(model).opt.ccd_tolerance = 1e-15
    best = mujacobian.linearize(model, data, sensors=False)
    assert_exact(model, data, best)
    np.testing.assert_allclose(given.A, best.A, rtol=0, atol=TOLERANCE * abs(best.A).max())
