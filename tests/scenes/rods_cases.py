"""A world with one element of each kind, for tests of gradients."""

import numpy as np

from mujacobian import rods

STEPS = 8
HEIGHT = 0.322  # height at which the ball touches the table, m


def everything(timestep=0.01, integrator="backward_euler"):
    """Return a clamped rod on a rail of a body, with a body that slides on it."""
    nodes = np.linspace([0, 0, HEIGHT], [0.5, 0, HEIGHT], 6)
    rod = rods.Rod(
        nodes,
        mass=0.2,
        radius=0.02,
        stretch=200,
        shear=150,
        bend=[0.2, 0.3, 0.25],
        rest_curvature=[0.5, 1.0, -0.4],
        velocities=np.linspace([0, 0, 0], [0.3, 0.5, -0.1], 6),
        stretch_damping=0.1,
        bend_damping=[1e-3, 2e-3, 3e-3],
        drag=0.01,
        spin_drag=1e-4,
        fixed_nodes=[0],
        fixed_edges=[0],
    )
    ball = rods.RigidBody(
        mass=0.3,
        inertia=[2e-3, 3e-3, 4e-3],
        position=[0.55, 0, HEIGHT],
        velocity=[0.2, 0.3, -0.02],
        angular_velocity=[3, -2, 1],
        drag=0.02,
        spin_drag=1e-3,
    )
    table = rods.RigidBody(mass=2, inertia=[0.1, 0.1, 0.1], position=[0.55, 0, 0.1065])
    corners = [table.at([x, y, -0.1]) for x in (-0.3, 0.3) for y in (-0.3, 0.3)]
    rail = [table.at([-0.3, y, 0.188]) for y in (-0.2, 0.1)]  # across the rod, and touches it
    samples = [ball.at([0.03, 0.02, -0.1]), ball.at([-0.04, 0.01, -0.1])]
    return rods.World(
        timestep=timestep,
        integrator=integrator,
        rods=[rod],
        bodies=[ball, table],
        attachments=[
            rods.Attachment(rod.node(-1), ball.at([-0.05, 0, 0]), 500),
            rods.Attachment(ball.at([0, 0, 0.1]), [0.55, 0.05, HEIGHT + 0.05], 40),
            rods.Weld(rod.frame(-1), ball.frame, 0.5, np.eye(3), rods.frames_along(nodes)[0]),
        ],
        cables=[
            rods.Cable([rod.beside(k, [0, 0.02, 0]) for k in range(5)]),
            rods.Cable([rod.node(0), rod.node(3), ball.at([0, 0.05, 0])]),
        ],
        contacts=[
            rods.Contact(corners, rods.Plane(), 2e3, 0.5, radius=0.01, slip=0.05),
            rods.Contact(
                samples, rods.Box([0.3, 0.3, 0.1]), 800, 0.4, radius=0.02, slip=0.05, body=table
            ),
            rods.SegmentContact(
                rod.segments, 300, 0.3, slip=0.05, others=[rods.Segment(*rail, radius=0.014)]
            ),
        ],
    )


def inputs(world, seed=1, steps=STEPS):
    """Return random inputs of all kinds."""
    rng = np.random.default_rng(seed)
    return {
        "forces": 0.3 * rng.normal(size=(steps, world.n_points, 3)),
        "torques": 0.01 * rng.normal(size=(steps, world.n_frames, 3)),
        "tensions": rng.uniform(0.5, 2, size=(steps, len(world.cables))),
        "rest": rng.normal(size=(steps, world.n_bends, 3)),
        "targets": world.anchors + 0.02 * rng.normal(size=(steps, len(world.anchors), 3)),
    }


def weights(trajectory, seed=2):
    """Return random derivatives of a scalar with respect to all positions and rotations."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=trajectory.positions.shape), rng.normal(size=trajectory.rotations.shape)
