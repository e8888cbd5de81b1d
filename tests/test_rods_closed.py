"""Closed rods: energies, masses, rolling and errors."""

import numpy as np
import pytest

from mujacobian import rods
from mujacobian.errors import ArgumentError

N, R = 48, 0.5
ANGLE = 2 * np.pi * np.arange(N) / N
CIRCLE = R * np.stack([np.cos(ANGLE), np.sin(ANGLE), 0 * ANGLE], axis=1)
GIVEN = {"mass": 2, "radius": 0.01, "stretch": 1e3, "shear": 1e3, "bend": [0.3, 0.3, 0.4]}


def test_a_straight_wire_bent_to_a_ring_has_its_energy():
    """It is pi E I / R in the limit, and the ring stays round and planar."""
    ring = rods.Rod(CIRCLE, **GIVEN, closed=True, rest_curvature=[0, 0, 0])
    assert (ring.edges, ring.bends, ring.sizes) == (N, N, (N, N))
    world = rods.World(timestep=0.01, gravity=(0, 0, 0), rods=[ring])
    trajectory = rods.rollout(world, steps=20)
    assert trajectory.energies().stored[0] == pytest.approx(np.pi * 0.3 / R, rel=5e-3)
    away = np.linalg.norm(trajectory.positions[-1], axis=1)
    assert np.ptp(away) < 1e-9
    assert np.abs(trajectory.positions[-1, :, 2]).max() < 1e-9
    assert trajectory.params.mass == pytest.approx(np.full(N, 2 / N))


def test_the_closing_edge_and_bend_resist():
    """A ring in its rest shape does not move, and all edges are stretched by the same pull."""
    ring = rods.Rod(CIRCLE, **GIVEN, closed=True)
    world = rods.World(timestep=0.01, gravity=(0, 0, 0), rods=[ring])
    still = rods.rollout(world, steps=3)
    assert np.abs(still.positions[-1] - CIRCLE).max() < 1e-9
    pulled = rods.rollout(world, forces=np.repeat(CIRCLE[None], 100, axis=0))
    strain = pulled.internal().strain
    assert strain.shape == (101, N)
    assert strain[-1].min() > 1e-3
    assert np.ptp(strain[-1]) < 1e-9


def test_points_and_segments_across_the_seam():
    ring = rods.Rod(CIRCLE, **GIVEN, closed=True)
    last = ring.segments[-1]
    assert (last.start.points, last.end.points) == ((N - 1,), (0,))
    assert ring.beside(-1).points == (N - 1, 0)
    world = rods.World(timestep=0.01, rods=[ring])
    state = world.state()
    middle = world.place(ring.beside(-1), state.positions, state.rotations)
    assert middle == pytest.approx(0.5 * (CIRCLE[-1] + CIRCLE[0]))


def test_a_hoop_rolls_down_a_slope():
    """All nodes touch at some time; a thin hoop accelerates with g sin(slope) / 2."""
    upright = R * np.stack([np.cos(ANGLE), 0 * ANGLE, np.sin(ANGLE)], axis=1)
    hoop = rods.Rod(
        upright + np.array([0, 0, R + 0.01]), **(GIVEN | {"bend": 50, "stretch": 1e5}), closed=True
    )
    floor = rods.Contact([hoop.node(i) for i in range(N)], rods.Plane(), 1e5, 0.5, radius=0.01)
    gravity = 9.81 * np.array([np.sin(0.1), 0, -np.cos(0.1)])
    world = rods.World(
        timestep=5e-4, gravity=gravity, rods=[hoop], contacts=[floor], integrator="bdf2"
    )
    v = rods.rollout(world, steps=1000).velocities[:, :, 0].mean(axis=1)
    assert v[-1] == pytest.approx(0.5 * 9.81 * np.sin(0.1) * 0.5, rel=0.1)


def test_bad_closed_rods():
    with pytest.raises(ArgumentError, match="at least three nodes"):
        rods.Rod([[0, 0, 0], [1, 0, 0]], **GIVEN, closed=True)
    with pytest.raises(ArgumentError, match="no clamped ends"):
        rods.Rod(CIRCLE, **GIVEN, closed=True, clamp_start=True)
    with pytest.raises(ArgumentError, match="edge 47 must be positive"):
        rods.Rod(np.concatenate([CIRCLE[:47], CIRCLE[:1]]), **GIVEN, closed=True)
