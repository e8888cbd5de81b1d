"""Contact of round segments: ropes and chains hold, and the distance is that of capsules."""

import copy

import numpy as np
import pytest

from examples.rods_chain import world as chain
from mujacobian import rods
from mujacobian.errors import ArgumentError

ROPE = {"mass": 0.05, "radius": 0.01, "stretch": 2e3, "shear": 2e3, "bend": 1e-5}


def segment_distance(first, second):
    """Return the distance of two segments on a fine grid of both fractions, and then refined."""
    low, high = np.zeros(2), np.ones(2)
    for _ in range(12):
        s, t = (np.linspace(*ends, 41) for ends in zip(low, high, strict=True))
        a = first[0] + s[:, None] * (first[1] - first[0])
        b = second[0] + t[:, None] * (second[1] - second[0])
        apart = np.linalg.norm(a[:, None] - b[None], axis=-1)
        i, j = np.unravel_index(np.argmin(apart), apart.shape)
        width = (high - low) / 10
        center = np.array([s[i], t[j]])
        low, high = np.maximum(center - width, 0), np.minimum(center + width, 1)
    return apart[i, j]


def test_the_distance_is_that_of_capsules():
    """Long, short, parallel, collinear and pointlike segments with radii of all sizes."""
    rng = np.random.default_rng(0)
    for k in range(200):
        ends = rng.normal(size=(2, 2, 3)) * 10.0 ** rng.uniform(-2, 2, size=(2, 1, 1))
        if k % 3 == 1:  # parallel up to rounding, or nearly
            ends[1] = ends[0] + rng.normal(size=3) + [0, 1e-9, 1e-3][k % 9 // 3] * ends[1]
        if k % 7 == 0:
            ends[1, 1] = ends[1, 0]
        apart = segment_distance(*ends)
        radii = apart * np.array([0.7, 0.5]) + 1e-3
        bodies = [rods.RigidBody(1, [1, 1, 1]) for _ in ends]
        parts = [body.segment(*pair, r) for body, pair, r in zip(bodies, ends, radii, strict=True)]
        contact = rods.SegmentContact(parts, 2.0)
        world = rods.World(timestep=1e-6, bodies=bodies, contacts=[contact])
        energy = rods.rollout(world, steps=1).energies().stored[0]
        excess = radii.sum() - np.sqrt(energy) - apart
        assert energy > 0
        assert -1e-4 * radii.sum() < excess < 0.02 * radii.sum()


def draped(friction):
    """Return a world with a rope over a fixed rope, longer on one side."""
    bar = rods.Rod(np.linspace([-0.2, 0, 0], [0.2, 0, 0], 9), **ROPE, fixed_nodes=range(9),
                   fixed_edges=range(8))  # fmt: skip
    angle = np.linspace(0, np.pi, 9)
    top = 0.0195 * np.stack([0 * angle, -np.cos(angle), np.sin(angle)], axis=1)
    left = np.linspace([0, -0.0195, -0.2], [0, -0.0195, -0.01], 16)
    right = np.linspace([0, 0.0195, -0.01], [0, 0.0195, -0.23], 18)
    rope = rods.Rod(
        np.concatenate([left, top, right]), **ROPE, rest_curvature=[0, 0, 0],
        drag=1e-4,
    )  # fmt: skip
    contact = rods.SegmentContact(rope.segments, 1e4, friction, others=bar.segments)
    return rods.World(timestep=2e-3, rods=[bar, rope], contacts=[contact]), rope


def test_two_ropes_cross_and_hold():
    """Friction holds the rope, and without friction it slides to its longer side."""
    ends = []
    for friction in (0.5, 0):
        world, rope = draped(friction)
        trajectory = rods.rollout(world, steps=200)
        assert trajectory.report.iterations.max() < 40
        nodes = trajectory.positions[:, world.points(rope)]
        assert nodes[-1, :, 2].max() > 0.015  # it is still on the other rope
        ends.append(nodes[-1, -1, 2] - nodes[0, -1, 2])
    assert abs(ends[0]) < 0.02
    assert ends[1] < -0.05


def test_a_rope_lies_on_itself():
    nodes = np.linspace([0, 0, 0.02], [0, 0, 0.62], 61) + 1e-3 * np.sin(np.arange(61))[:, None]
    rope = rods.Rod(nodes, **ROPE, rest_curvature=[0, 0, 0], bend_damping=1e-5, bending="tangent")
    points = [rope.node(i) for i in range(61)]
    contacts = [
        rods.Contact(points, rods.Plane(), 1e3, 0.3, radius=0.01, slip=1e-2),
        rods.SegmentContact(rope.segments, 1e3, 0.3, slip=1e-2),
    ]
    last = {}
    for name, chosen in (("with", contacts), ("without", contacts[:1])):
        world = rods.World(timestep=2e-3, rods=[rope], contacts=chosen)
        trajectory = rods.rollout(world, steps=250)
        last[name] = trajectory.positions[-1]
    # nodes far apart along the rope are also apart in space
    far = np.abs(np.subtract.outer(np.arange(61), np.arange(61))) > 6
    closest = {
        name: np.linalg.norm(x[:, None] - x[None], axis=-1)[far].min() for name, x in last.items()
    }
    assert closest["with"] > 0.015
    assert closest["without"] < 0.01


def test_a_bar_rests_on_another_one_with_an_exact_gradient():
    bars = [rods.RigidBody(2, [1, 1, 1], position=[0, 0, 0.19 * k], fixed=k == 0) for k in (0, 1)]
    parts = [
        bars[0].segment([-1, 0, 0], [1, 0, 0], 0.1),
        bars[1].segment([0, -1, 0], [0, 1, 0], 0.1),
    ]
    k = 1e4
    world = rods.World(
        timestep=0.01,
        bodies=bars,
        contacts=[rods.SegmentContact(parts, k)],
        attachments=[rods.Weld(bars[1].frame, bars[0].frame, 10)],
    )
    resting = rods.equilibrium(world)
    d = np.zeros_like(resting.positions)
    d[1, 2] = 1
    # depth m g / k of the smooth distance, in which phi = 0 at the centers
    assert resting.positions[1, 2] == pytest.approx(0.2 - 2 * 9.81 / k, abs=1e-12)
    assert resting.gradient(d).params.contact[0] == pytest.approx(2 * 9.81 / k**2, rel=1e-9)


def test_what_touches():
    """Segments of one body and neighbors along a rod do not, others do."""
    body = rods.RigidBody(1, [1, 1, 1])
    cross = [body.segment([-1, 0, 0], [1, 0, 0], 0.1), body.segment([0, -1, 0], [0, 1, 0], 0.1)]
    rope = rods.Rod(np.linspace([5, 0, 0], [6, 0, 0], 101), 1, 0.03, 1, 1, 1)
    contact = rods.SegmentContact([*cross, *rope.segments], 1e3)
    world = rods.World(timestep=0.01, rods=[rope], bodies=[body], contacts=[contact])
    assert rods.rollout(world, steps=1).energies().stored[0] < 1e-12
    again = copy.deepcopy(world)
    assert len(again.contacts[0].segments) == 102
    other = rods.RigidBody(1, [1, 1, 1])
    pairs = [*cross, other.segment([0, 0, 0], [0, 0, 1], 0.1)]
    bodies = [body, other]
    touching = rods.World(timestep=1, bodies=bodies, contacts=[rods.SegmentContact(pairs, 1)])
    assert rods.rollout(touching, steps=1).energies().stored[0] > 0.01
    apart = rods.SegmentContact(pairs[:1], 1, others=pairs[1:2])
    still = rods.World(timestep=1, bodies=bodies, contacts=[apart])
    assert rods.rollout(still, steps=1).energies().stored[0] == 0


def test_errors_name_the_segment():
    with pytest.raises(rods.ConvergenceError, match=r"segment \d+ of contact 0 is deepest"):
        rods.rollout(chain(3), steps=20, iterations=1)


def test_bad_arguments():
    body, other = (rods.RigidBody(1, [1, 1, 1]) for _ in range(2))
    rope = rods.Rod([[0, 0, 0], [1, 0, 0], [2, 0, 0]], 1, 0.03, 1, 1, 1)
    with pytest.raises(ArgumentError, match="one rod or body"):
        rods.Segment(body.at(), other.at(), 0.1)
    with pytest.raises(ArgumentError, match="nodes of an edge, got nodes"):
        rods.Segment(rope.node(0), rope.node(2), 0.1)
    with pytest.raises(ArgumentError, match="nodes of a rod or points of a body"):
        rods.Segment(rope.beside(0), rope.node(1), 0.1)
    with pytest.raises(ArgumentError, match="radius must be positive"):
        body.segment([0, 0, 0], [1, 0, 0], 0)
    with pytest.raises(ArgumentError, match="at least one segment"):
        rods.SegmentContact([], 1)
    with pytest.raises(ArgumentError, match="not in the world"):
        rods.World(timestep=1, bodies=[other], contacts=[rods.SegmentContact(rope.segments, 1)])


def ring(radius, center, turn, edges=24, **options):
    """Return a closed elastic rod whose shape at rest is this circle in the plane y = 0."""
    angle = 2 * np.pi * np.arange(edges) / edges
    circle = radius * np.stack([np.cos(angle), 0 * angle, np.sin(angle)], axis=1)
    return rods.Rod(circle @ turn.T + center, 0.05, 0.006, 2e3, 2e3, 1e-2, closed=True, **options)


def test_linked_elastic_rings_hold():
    """The lower one hangs on the upper one, which is fixed at a node and becomes longer."""
    upper = ring(0.05, np.zeros(3), np.eye(3), fixed_nodes=[6], drag=1e-2, bend_damping=1e-4)
    lower = ring(0.05, [0, 0, -0.087], rods.exp([0, 0, np.pi / 2]), drag=1e-2, bend_damping=1e-4)
    contact = rods.SegmentContact([*upper.segments, *lower.segments], 1e4, 0.3, slip=1e-2)
    world = rods.World(timestep=2e-3, rods=[upper, lower], contacts=[contact])
    trajectory = rods.rollout(world, steps=250)
    assert trajectory.report.iterations.max() < 20
    x = trajectory.positions[-1]
    heights = x[world.points(upper), 2], x[world.points(lower), 2]
    assert heights[0].min() + 0.012 == pytest.approx(heights[1].max() + 0.024 - 0.012, abs=0.02)
    assert np.ptp(heights[0]) > 0.1
    assert heights[1].mean() > -0.11
    # segments at the seam of a closed rod are neighbors
    alone = rods.World(timestep=1, rods=[upper], contacts=[rods.SegmentContact(upper.segments, 1)])
    assert rods.rollout(alone, steps=1).energies().stored[0] < 1e-12
