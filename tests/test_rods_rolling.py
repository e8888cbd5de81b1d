"""Friction acts at the touching point of spheres: they roll, and so do round rods."""

import numpy as np
import pytest

from mujacobian import rods


def ball(**options):
    """Return a solid sphere that rests on the penalty of the contact."""
    at = [0, 0, 0.05 - 0.5 * 9.81 / 1e4]
    return rods.RigidBody(0.5, [0.4 * 0.5 * 0.05**2] * 3, position=at, **options)


def rolled(body, timestep, steps, **options):
    contact = rods.Contact([body.at()], rods.Plane(), 1e4, radius=0.05, **options)
    world = rods.World(timestep=timestep, bodies=[body], contacts=[contact])
    return rods.rollout(world, steps=steps)


def test_a_sliding_sphere_rolls_at_five_sevenths_of_its_speed():
    trajectory = rolled(ball(velocity=[1, 0, 0]), 1e-4, 5000, friction=0.3)
    last = trajectory.state
    assert abs(last.velocities[0, 0] - 5 / 7) < 2e-3
    assert abs(last.angular_velocities[0, 1] - 5 / 7 / 0.05) < 0.05
    # it slides for 2 v / (7 mu g) = 0.097 s with the deceleration mu g
    v = trajectory.velocities[[300, 700], 0, 0]
    assert abs((v[0] - v[1]) / 0.04 / (0.3 * 9.81) - 1) < 0.02


def test_friction_at_the_center_does_not_roll():
    last = rolled(ball(velocity=[1, 0, 0]), 1e-3, 1000, friction=0.3, rolling=False).state
    assert abs(last.velocities[0, 0]) < 1e-2
    assert not last.angular_velocities.any()


def test_a_spinning_sphere_starts_to_move():
    last = rolled(ball(angular_velocity=[0, 20, 0]), 1e-4, 5000, friction=0.3).state
    assert abs(last.velocities[0, 0] - 2 / 7 * 20 * 0.05) < 2e-3


@pytest.mark.parametrize("kind", ["node", "beside"])
def test_a_round_rod_rolls_down_a_slope(kind):
    """A solid cylinder accelerates with 2/3 g sin(slope); backward Euler would damp its spin."""
    slope, radius, n = np.radians(10), 0.02, 4
    nodes = np.linspace([0, -0.2, radius], [0, 0.2, radius], n + 1)
    rod = rods.Rod(nodes, mass=0.2, radius=radius, stretch=1e3, shear=1e3, bend=[1, 1, 1])
    if kind == "node":
        points = [rod.node(i) for i in range(n + 1)]
    else:
        points = [rod.beside(k) for k in range(n)]
    floor = rods.Contact(points, rods.Plane(), 1e4, friction=0.5, radius=radius)
    gravity = 9.81 * np.array([np.sin(slope), 0, -np.cos(slope)])
    world = rods.World(
        timestep=1e-3, gravity=gravity, rods=[rod], contacts=[floor], integrator="bdf2"
    )
    trajectory = rods.rollout(world, steps=500)
    v = trajectory.velocities[[100, 500]].mean(axis=1)[:, 0]
    assert abs((v[1] - v[0]) / 0.4 / (2 / 3 * 9.81 * np.sin(slope)) - 1) < 0.01


def test_a_sphere_rolls_on_a_moving_body():
    """The plate has the displacement that the friction of the sphere gives it."""
    plate = rods.RigidBody(1, [1, 1, 1], position=[0, 0, -0.01])
    body = ball(velocity=[1, 0, 0])
    contacts = [
        rods.Contact([body.at()], rods.Box([5, 5, 0.01]), 1e4, 0.3, 0.05, body=plate),
        rods.Contact(
            [plate.at([x, y, 0]) for x in (-1, 1) for y in (-1, 1)],
            rods.Plane([0, 0, 1], -0.01),
            1e5,
        ),
    ]
    world = rods.World(timestep=2e-4, bodies=[plate, body], contacts=contacts)
    last = rods.rollout(world, steps=2500).state
    v, w = last.velocities[:, 0], last.angular_velocities[1, 1]
    assert abs(v[0] + 0.5 * v[1] - 0.5) < 1e-6  # momentum
    assert v[0] > 0.05
    assert abs(v[1] - v[0] - 0.05 * w) < 5e-3  # rolls without sliding
