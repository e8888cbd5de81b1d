"""Strains and forces of trajectories, and their files."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from examples.rods_chain import world as chain
from mujacobian import rods
from mujacobian.errors import ArgumentError, ArgumentTypeError, MissingPackageError
from tests.scenes.rods_cases import everything, inputs


def hanging(**options):
    """Return a rod at rest that hangs from its clamped start, with a ball on a floor."""
    nodes = np.linspace([0, 0, 0], [0, 0, -1], 11)
    rod = rods.Rod(nodes, 1, 0.01, 1e3, 1e3, [1, 2, 3], clamp_start=True, drag=1, **options)
    ball = rods.RigidBody(2, [1, 1, 1], position=[1, 0, 0.1 - 2 * 9.81 / 1e4], velocity=[1, 0, 0])
    contact = rods.Contact([ball.at()], rods.Plane(), 1e4, 0.3, radius=0.1, rolling=False)
    return rods.World(timestep=0.05, rods=[rod], bodies=[ball], contacts=[contact])


def test_tensions_carry_the_weight():
    trajectory = rods.rollout(hanging(), steps=300)
    inner = trajectory.internal()
    assert inner.tension.shape == (301, 10)
    below = 1 / 10 * (9.5 - np.arange(10))  # mass below the middle of each edge
    assert inner.tension[-1] == pytest.approx(9.81 * below, rel=1e-3)
    assert inner.strain[-1] == pytest.approx(inner.tension[-1] / 1e3)
    assert np.abs(inner.shear[-1]).max() < 1e-6
    assert np.abs(inner.moment[-1]).max() < 1e-6


def test_moments_of_a_bent_rod():
    """A rod that is straight at rest and starts on a circle has the moment E I / R."""
    angle = np.linspace(0, 1, 11)
    nodes = 2 * np.stack([np.sin(angle), 0 * angle, 1 - np.cos(angle)], axis=1)
    rod = rods.Rod(nodes, 1, 0.01, 1e3, 1e3, [1, 2, 3], rest_curvature=[0, 0, 0])
    world = rods.World(timestep=0.01, rods=[rod])
    inner = rods.rollout(world, steps=1).internal()
    curvature = np.abs(inner.darboux[0])
    assert np.linalg.norm(curvature, axis=1) == pytest.approx(np.full(9, 0.5), rel=1e-2)
    assert inner.moment[0] == pytest.approx([1, 2, 3] * inner.darboux[0])
    shifted = rods.rollout(world, rest=np.ones((3, 9, 3))).internal()
    assert shifted.moment[0] == pytest.approx([1, 2, 3] * (inner.darboux[0] - 1))


def test_contact_forces_are_weight_and_friction():
    trajectory = rods.rollout(hanging(), steps=3)
    made = trajectory.contact_forces()
    assert made.forces[:, -1, 2] == pytest.approx([2 * 9.81] * 3)
    assert made.forces[:, -1, 0] == pytest.approx([-0.3 * 2 * 9.81] * 3, rel=1e-5)
    assert not made.forces[:, :-1].any()
    assert not made.torques.any()


@pytest.mark.parametrize("integrator", ["backward_euler", "bdf2"])
def test_contact_forces_between_rods_and_bodies_balance(integrator):
    """Contacts of a rod and two bodies add up to the force of the floor."""
    world = everything(integrator=integrator)
    made = rods.rollout(world, **inputs(world)).contact_forces()
    params = world.parameters()
    params.contact[0] = 0  # without the floor
    inner = rods.rollout(world, params=params, **inputs(world)).contact_forces()
    assert np.abs(made.forces.sum(axis=1)).max() > 1
    size = np.abs(inner.forces).max()
    assert size > 0.1
    assert np.abs(inner.forces.sum(axis=1)).max() < 1e-12 * size
    assert np.abs(inner.torques).max() > 1e-3


def test_files_of_trajectories(tmp_path):
    world = everything()
    trajectory = rods.rollout(world, **inputs(world))
    trajectory.save(tmp_path / "made.rods")
    again = rods.Trajectory.load(tmp_path / "made.rods")
    assert again.positions.tobytes() == trajectory.positions.tobytes()
    d = np.ones_like(again.positions)
    assert again.gradient(d).params.bend.tobytes() == trajectory.gradient(d).params.bend.tobytes()
    (tmp_path / "other").write_bytes(b"\x80\x04K\x01.")  # the pickle of a number
    with pytest.raises(ArgumentTypeError, match="content of the file must be of type Trajectory"):
        rods.Trajectory.load(tmp_path / "other")


def test_vtk(tmp_path):
    world = everything()
    trajectory = rods.rollout(world, **inputs(world))
    rods.write_vtk(trajectory, tmp_path / "scene.pvd")
    sets = ElementTree.parse(tmp_path / "scene.pvd").getroot().findall("Collection/DataSet")
    assert [float(each.get("timestep")) for each in sets] == pytest.approx(0.01 * np.arange(9))
    root = ElementTree.parse(tmp_path / sets[-1].get("file")).getroot()
    piece = root.find("PolyData/Piece")
    assert (piece.get("NumberOfVerts"), piece.get("NumberOfLines")) == ("2", "5")

    def numbers(path):
        return np.array(piece.find(path).text.split(), dtype=float)

    x = numbers("Points/DataArray").reshape(-1, 3)
    assert (x == trajectory.positions[-1]).all()
    tension = numbers("CellData/DataArray[@Name='tension']")
    assert (tension == [0, 0, *trajectory.internal().tension[-1]]).all()
    axis = numbers("PointData/DataArray[@Name='axis 1']").reshape(-1, 3)
    assert (axis[-1] == trajectory.rotations[-1, -1, :, 1]).all()
    assert numbers("Lines/DataArray[@Name='offsets']").tolist() == [2, 4, 6, 8, 10]
    with pytest.raises(ArgumentError, match=r"must end with \.pvd"):
        rods.write_vtk(trajectory, tmp_path / "scene.vtk")


def test_animation(tmp_path):
    trajectory = rods.rollout(chain(3), steps=4)
    made = rods.animate(trajectory, every=2, speed=0.5)
    made.save(tmp_path / "chain.gif")
    assert (tmp_path / "chain.gif").stat().st_size > 1000
    lines = made._fig.axes[0].lines  # after the last frame
    assert len(lines) == 72
    x = np.array(lines[-1].get_data_3d()).T
    segment = trajectory.world.contacts[0].segments[-1]
    state = trajectory.positions[-1], trajectory.rotations[-1]
    assert (x[0] == trajectory.world.place(segment.start, *state)).all()


def test_animation_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingPackageError, match=r"mujacobian\[plot\]"):
        rods.animate(rods.rollout(chain(2), steps=1))
