"""Meshes as signed distance fields: distances, contact of ropes and catheters, files."""

import copy
from itertools import pairwise

import numpy as np
import pytest

from mujacobian import rods
from mujacobian.errors import ArgumentError, MissingPackageError

CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
SIDES = np.array(
    [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
)
FACES = np.concatenate([SIDES[:, [0, 1, 2]], SIDES[:, [0, 2, 3]]])
ROPE = {"mass": 0.05, "radius": 0.01, "stretch": 2e3, "shear": 2e3, "bend": 1e-4}


def swept(line, radius, corners=16):
    """Return vertices and faces of a closed tube about a polyline in the plane y = 0."""
    angle = 2 * np.pi * np.arange(corners) / corners
    along = np.gradient(line, axis=0)
    along /= np.linalg.norm(along, axis=1)[:, None]
    side = np.cross(along, [0, 1, 0])
    rings = line[:, None] + radius * (
        np.cos(angle)[None, :, None] * side[:, None] + np.sin(angle)[None, :, None] * [0, 1, 0]
    )
    faces, n = [], len(line)
    for i in range(n - 1):
        for k in range(corners):
            a, b = i * corners + k, i * corners + (k + 1) % corners
            faces += [[a, b, a + corners], [b, b + corners, a + corners]]
    for k in range(1, corners - 1):
        last = (n - 1) * corners
        faces += [[0, k + 1, k], [last, last + k, last + k + 1]]
    x, f = rings.reshape(-1, 3), np.array(faces)
    volume = np.einsum("fi,fi->", x[f[:, 0]], np.cross(x[f[:, 1]], x[f[:, 2]]))
    return x, f if volume > 0 else f[:, ::-1]


def depth(shape, at, radius=0.3):
    """Return the penetration of a sphere, from the energy of its contact."""
    ball = rods.RigidBody(1, [1, 1, 1], position=at)
    contact = rods.Contact([ball.at()], shape, 2.0, radius=radius)
    world = rods.World(timestep=1e-6, bodies=[ball], contacts=[contact])
    return np.sqrt(rods.rollout(world, steps=1).energies().stored[0])


def test_samples_are_exact_distances():
    """Those of a cube in all regions: beyond faces, edges and corners, and inside."""
    mesh = rods.Mesh(0.5 * CUBE, FACES, cell=0.13)
    at = mesh.origin + mesh.cell * np.stack(np.indices(mesh.distances.shape), axis=-1)
    over = np.abs(at) - 0.5
    exact = np.linalg.norm(np.maximum(over, 0), axis=-1) + np.minimum(over.max(axis=-1), 0)
    assert np.abs(mesh.distances - exact).max() < 1e-14
    assert not mesh.distances.flags.writeable


def test_a_spline_is_exact_beside_faces_and_close_at_curved_ones():
    mesh = rods.Mesh(0.5 * CUBE, FACES, cell=0.05, margin=0.4)
    for at in ([0.6, 0.1, 0.03], [0.1, -0.63, 0.2], [-0.2, 0.1, 0.41]):
        exact = depth(rods.Box([0.5] * 3), at)
        assert depth(mesh, at) == pytest.approx(exact, abs=1e-12)
    # a tube of many corners against the capsule's cylinder
    x, f = swept(np.linspace([-1, 0, 0], [1, 0, 0], 9), 0.3, corners=64)
    errors = []
    for cell in (0.1, 0.05):
        tube = rods.Mesh(x, f, cell=cell, margin=0.4)
        exact = depth(rods.Capsule([-5, 0, 0], [5, 0, 0], 0.3), [0.1, 0.25, 0.3])
        errors.append(abs(depth(tube, [0.1, 0.25, 0.3]) - exact))
    assert errors[1] < 5e-4  # the corners are 3.6e-4 beyond the sides
    assert errors[0] < 2e-3


def test_a_rope_falls_on_a_mesh():
    """It lies on a cube, over two edges, and every step converges; the gradient is exact."""
    cube = rods.Mesh(0.1 * CUBE, FACES, cell=0.01)
    nodes = np.linspace([-0.3, 0.013, 0.12], [0.3, 0.013, 0.12], 41)
    rope = rods.Rod(nodes, **ROPE, bend_damping=1e-5, drag=1e-3)
    points = [rope.node(i) for i in range(41)]
    contact = rods.Contact(points, cube, 1e3, 0.4, radius=0.01, slip=1e-2)
    world = rods.World(timestep=4e-3, rods=[rope], contacts=[contact])
    trajectory = rods.rollout(world, steps=150)
    x = trajectory.positions[-1]
    assert trajectory.report.iterations.max() < 40
    assert np.abs(x[20, 2] - 0.11) < 2e-3  # on the top
    assert x[[0, -1], 2].max() < 0.08  # the ends hang down
    inside = (np.abs(x) < 0.1).all(axis=1)
    assert not inside.any()
    short = rods.rollout(world, trajectory.state, steps=6)
    d = np.zeros_like(short.positions)
    d[-1, :, 2] = np.linspace(1, 2, 41)
    gradient = short.gradient(d)

    def value(s):
        params = world.parameters()
        params.mass[:] *= 1 + s
        made = rods.rollout(world, trajectory.state, steps=6, params=params)
        return (made.positions * d).sum()

    wanted = (8 * (value(1e-4) - value(-1e-4)) - value(2e-4) + value(-2e-4)) / 12e-4
    have = (gradient.params.mass * world.parameters().mass).sum()
    assert abs(wanted) > 1e-5
    assert have == pytest.approx(wanted, rel=1e-6)


def test_a_catheter_passes_a_tube():
    """It is pushed through a tube with a bend, and stays inside."""
    angle = np.linspace(0, np.pi / 2, 13)
    bend = 0.1 * np.stack([np.sin(angle), 0 * angle, 1 - np.cos(angle)], axis=1)
    line = np.concatenate([[[-0.5, 0, 0]], bend, [[0.1, 0, 0.3]]])
    x, f = swept(line, 0.015)
    tube = rods.Outside(rods.Mesh(x, f, cell=0.004))
    nodes = np.linspace([-0.45, 0, 0], [-0.05, 0, 0], 41)
    catheter = rods.Rod(
        nodes, 0.01, 0.003, 2e3, 2e3, 2e-4, fixed_edges=[0], bend_damping=1e-5, drag=1e-3
    )
    pushed = rods.Attachment(catheter.node(0), nodes[0], 1e4)
    points = [catheter.node(i) for i in range(41)]
    contact = rods.Contact(points, tube, 1e3, 0.1, radius=0.003, slip=1e-2)
    world = rods.World(
        timestep=5e-3,
        gravity=(0, 0, 0),
        rods=[catheter],
        attachments=[pushed],
        contacts=[contact],
    )
    targets = nodes[0] + np.linspace(0, 0.25, 161)[1:, None, None] * [1, 0, 0]
    trajectory = rods.rollout(world, targets=targets)
    assert trajectory.report.iterations.max() < 40
    assert trajectory.positions[-1, -1, 2] > 0.08  # round the bend
    # the center line keeps inside the walls, but for the penetration
    fine = np.concatenate([np.linspace(*ends, 50) for ends in pairwise(line)])
    apart = np.linalg.norm(trajectory.positions[-1][:, None] - fine, axis=-1).min(axis=1)
    assert 0.008 < apart.max() < 0.0135


def test_files(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    for name in ("cube.stl", "cube.obj"):
        trimesh.Trimesh(1000 * CUBE, FACES).export(tmp_path / name)
        mesh = rods.Mesh.load(tmp_path / name, scale=0.001, cell=0.2)
        again = copy.deepcopy(mesh)
        assert depth(again, [0.2, 0.1, 1.1]) == pytest.approx(0.2, abs=1e-9)


def test_loading_without_trimesh(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "trimesh", None)
    with pytest.raises(MissingPackageError, match=r"mujacobian\[meshes\]"):
        rods.Mesh.load("cube.stl")


@pytest.mark.parametrize(
    ("vertices", "faces", "message"),
    [
        (CUBE, FACES[1:], "not closed at the edge"),
        (CUBE, FACES[:, ::-1], "clockwise from outside"),
        (CUBE, np.concatenate([FACES, FACES[:1]]), "not closed"),
        (CUBE, np.concatenate([FACES, [[0, 0, 1]]]), "face 12 has no area"),
        (CUBE, FACES + 1, "indices below 8"),
        (CUBE, FACES.astype(float), "faces must be integers"),
        (CUBE[:3], FACES, "vertices must have shape"),
    ],
    ids=["open", "inside out", "twice", "flat", "index", "numbers", "few"],
)
def test_bad_surfaces(vertices, faces, message):
    with pytest.raises(ArgumentError, match=message):
        rods.Mesh(vertices, faces)


def test_bad_grids():
    with pytest.raises(ArgumentError, match="is too small for a mesh"):
        rods.Mesh(CUBE, FACES, cell=1e-3)
    ball = rods.RigidBody(1, [1, 1, 1])
    union = rods.Union([rods.Plane(), rods.Mesh(CUBE, FACES, cell=0.2, margin=0.3)])
    with pytest.raises(ArgumentError, match="exceeds the margin"):
        rods.World(
            timestep=1, bodies=[ball], contacts=[rods.Contact([ball.at()], union, 1, 0, 0.5)]
        )
