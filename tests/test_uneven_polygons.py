"""Polygons of hulls that are not flat: MuJoCo merges triangles that are only nearly coplanar."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained

HALF = np.array([0.1, 0.1, 0.05])  # m: half sizes of the slab
TWIST = 1e-5  # m: excess height of two opposite corners of its top
SMALL = np.array([0.02, 0.03, 0.01])  # m: half sizes of the body on it
PRECISE = 1e-7
TRUSTED_SHARE = 0.6  # finite differences may add or remove points of a manifold


def slab_scene(
    shape: str, *, small: np.ndarray = SMALL, top: float = 1.0, twist: float = TWIST
) -> mujoco.MjModel:
    """Return a small box, or a mesh of its shape, on a slab whose top is one twisted polygon.

    top: size of the top relative to the bottom.
    """
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    slab = corners * HALF
    slab[1::2, :2] *= top
    slab[[1, 7], 2] += twist
    geom = {
        "box": f'type="box" size="{_text(small)}"',
        "mesh": 'type="mesh" mesh="small"',
        "dome": 'type="mesh" mesh="dome"',
        "capsule": f'type="capsule" size="{small[2]} {small[1]}" euler="90 0 0"',
    }
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option timestep=".001"/>
        <asset>
          <mesh name="small" vertex="{_text(corners * small)}"/>
          <mesh name="slab" vertex="{_text(slab)}"/>
          <mesh name="dome" vertex="{_text(dome(small))}"/>
        </asset>
        <worldbody>
          <body><freejoint/><geom {geom[shape]}/></body>
          <body name="slab" pos="0 0 -.05"><freejoint/><geom type="mesh" mesh="slab"/></body>
        </worldbody>
      </mujoco>""")
    assert model.mesh_polynum[1] == 6, "the top is no longer one polygon"
    reference.converge(model)
    return model


def dome(half: np.ndarray) -> np.ndarray:
    """Return points whose hull is an inverted flat dome: nearly aligned faces around vertices."""
    rng = np.random.default_rng(0)
    flat = rng.uniform(-1, 1, (60, 2)) * half[:2]
    bulge = half[2] * (0.05 * ((flat / half[:2]) ** 2).sum(axis=1) - 1)
    top = np.array([[x, y, half[2]] for x in (-1, 1) for y in (-1, 1)]) * [half[0], half[1], 1]
    return np.vstack([np.column_stack([flat, bulge]), top])


def lay(
    model: mujoco.MjModel, tilt: float, rng: np.random.Generator, scale: float = 1.0
) -> mujoco.MjData:
    """Place the small body on the slab, with a random rotation and tilt and a small penetration."""
    data = mujoco.MjData(model)
    data.qpos[:2] = scale * rng.uniform(-0.04, 0.04, 2)
    data.qpos[2] = scale * (SMALL[2] - 1e-4)
    yaw, lean = np.zeros(4), np.zeros(4)
    mujoco.mju_axisAngle2Quat(yaw, np.array([0.0, 0, 1]), rng.uniform(0, 2 * np.pi))
    axis = np.append(rng.normal(size=2), 0)
    mujoco.mju_axisAngle2Quat(lean, axis / np.linalg.norm(axis), tilt)
    mujoco.mju_mulQuat(data.qpos[3:7], lean, yaw)
    data.qvel[:] = 0.1 * rng.normal(size=model.nv)
    return data


@pytest.mark.parametrize("shape", ["box", "mesh"])
def test_corners_under_a_twisted_polygon(shape: str) -> None:
    model = slab_scene(shape)
    rng = np.random.default_rng(3)
    shares = []
    for tilt in (1e-4, 1e-3, 2e-3):
        for _ in range(3):
            data = lay(model, tilt, rng)
            shares.append(judge_constrained(model, data, CONTACT_TOLERANCE, forces=False))
            assert data.ncon >= 2, "no manifold"
    assert np.mean(shares) > TRUSTED_SHARE


def test_corners_under_a_polygon_flat_to_single_precision() -> None:
    """The slope is 4e-6, for a small face of a large mesh."""
    scale = 0.1
    model = slab_scene("box", small=scale * SMALL, top=scale, twist=4e-8)
    rng = np.random.default_rng(3)
    shares = []
    for tilt in (1e-4, 1e-3, 2e-3):
        data = lay(model, tilt, rng, scale)
        shares.append(judge_constrained(model, data, PRECISE, forces=False))
        assert data.ncon >= 2, "no manifold"
    assert np.mean(shares) > TRUSTED_SHARE


def test_capsules_along_a_twisted_polygon() -> None:
    """MuJoCo measures their heights from one of its vertices."""
    model = slab_scene("capsule")
    rng = np.random.default_rng(5)
    shares = []
    for tilt in (1e-4, 1e-3, 2e-3):
        data = lay(model, tilt, rng)
        shares.append(judge_constrained(model, data, CONTACT_TOLERANCE, forces=False))
        assert data.ncon == 2
    assert np.mean(shares) > TRUSTED_SHARE


def test_vertices_of_many_faces_under_a_twisted_polygon() -> None:
    """Only the last digits determine which of the faces MuJoCo clips with."""
    model = slab_scene("dome")
    rng = np.random.default_rng(6)
    shares = []
    for _ in range(6):
        data = lay(model, 2e-3, rng)
        shares.append(judge_constrained(model, data, CONTACT_TOLERANCE, forces=False))
    assert np.mean(shares) > TRUSTED_SHARE


@pytest.mark.parametrize("shape", ["box", "mesh"])
def test_edges_on_a_twisted_polygon(shape: str) -> None:
    model = slab_scene(shape)
    rng = np.random.default_rng(4)
    shares = []
    for _ in range(4):
        data = stand(model, rng)
        shares.append(judge_constrained(model, data, CONTACT_TOLERANCE, forces=False))
    assert np.mean(shares) > TRUSTED_SHARE
    for _ in range(100):  # rounding decides whether ends of edges are inside
        data = stand(model, rng)
        assert np.isfinite(mujacobian.linearize(model, data).A).all()


# A box with points a few micrometers above its top. MuJoCo merges the triangles around them into
# one polygon without these points, but its collider still finds them.
BUMPS = {
    "one line cut by a side": (
        [
            [-0.0396937, -0.017735, 0.0500068],
            [0.0147321, 0.0434591, 0.050005],
            [0.0427452, 0.0021383, 0.0500077],
        ],
        [0.045723699, -0.032492964, 0.05902037, -0.031665391, 0.999498403, 0.000492728, 4.1e-05],
    ),
    "a line cut twice": (
        [[0.0508025, -0.0399859, 0.0500033], [-0.0589206, -0.0235199, 0.0500102]],
        [-0.0785, 0.0417, 0.0188, 0.70717, 0.70704, -0.0005, 0.0002],
    ),
}


@pytest.mark.parametrize("name", BUMPS)
def test_lines_between_vertices_that_no_polygon_has(name: str) -> None:
    bumps, qpos = BUMPS[name]
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    vertices = np.vstack([corners * [0.1, 0.06, 0.05], bumps])
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <asset><mesh name="bumps" vertex="{_text(vertices)}"/></asset>
        <worldbody>
          <body><freejoint/><geom type="box" size=".02 .03 .05"/></body>
          <body><freejoint/><geom type="mesh" mesh="bumps"/></body>
        </worldbody>
      </mujoco>""")
    assert model.mesh_polynum[0] == 6, "the points are vertices of polygons now"
    reference.converge(model)
    data = mujoco.MjData(model)
    data.qpos[7:] = qpos
    data.qvel[:] = 0.1 * np.random.default_rng(0).normal(size=model.nv)
    assert judge_constrained(model, data, CONTACT_TOLERANCE, forces=False) > TRUSTED_SHARE
    assert "edge cut by side on face" in mujacobian.diagnose(model, data).features


def stand(model: mujoco.MjModel, rng: np.random.Generator) -> mujoco.MjData:
    """Stand the small body on one of its long edges."""
    data = lay(model, 0.0, rng)
    turn, flat = np.zeros(4), data.qpos[3:7].copy()
    mujoco.mju_axisAngle2Quat(turn, np.array([0.0, 1, 0]), np.pi / 4)
    mujoco.mju_mulQuat(data.qpos[3:7], flat, turn)
    data.qpos[2] = (SMALL[0] + SMALL[2]) * np.sqrt(0.5) - 1e-4
    return data


def _text(numbers: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(numbers))
