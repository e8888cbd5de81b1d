"""A hanging chain of linked rings, whose links are capsules in a closed polyline."""

from itertools import pairwise

import numpy as np

from mujacobian import rods

RADIUS = 0.006  # of the wire, m


def centerline(pieces=24, straight=0.03, bend=0.02):
    """Return a closed polyline: two half circles of radius `bend`, `2 straight` apart."""
    t = np.linspace(0, 2 * np.pi, pieces + 1)
    side = np.sign(np.cos(t)) * (np.abs(np.cos(t)) > 1e-9)
    return np.stack([bend * np.sin(t), 0 * t, straight * side + bend * np.cos(t)], axis=1)


def chain(links=20, friction=0.3):
    """Return a world with a chain that hangs from its first ring and starts to swing."""
    line = centerline()
    pitch = np.ptp(line[:, 2]) - 2 * RADIUS - 5e-4
    bodies, segments = [], []
    for i in range(links):
        speed = [0.3 * i / links, 0.1, 0] if i else [0, 0, 0]
        ring = rods.RigidBody(
            mass=0.05,
            inertia=[4e-5, 5e-5, 1.2e-5],
            position=[0, 0, -i * pitch],
            rotation=rods.exp([0, 0, np.pi / 2 * (i % 2)]),
            velocity=speed,
            drag=0.02,
            spin_drag=1e-5,
            fixed=i == 0,
        )
        bodies.append(ring)
        segments += [ring.segment(*ends, RADIUS) for ends in pairwise(line)]
    contact = rods.SegmentContact(segments, 2e4, friction, slip=1e-2)
    return rods.World(timestep=2e-3, bodies=bodies, contacts=[contact])
