"""Bad descriptions and inputs of rods: clear errors, and nothing happens."""

import numpy as np
import pytest

from mujacobian import rods

NODES = np.linspace([0, 0, 0], [1, 0, 0], 5)
ROD = {"mass": 0.1, "radius": 0.01, "stretch": 10.0, "shear": 10.0, "bend": [1, 1, 1]}
BODY = {"mass": 1.0, "inertia": [1, 1, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": -1}, "mass must be positive"),
        ({"inertia": [1, 1, -1]}, "inertia must be positive definite"),
        ({"inertia": [1, 1, 3]}, "no body has this inertia"),
        ({"inertia": [[1, 2, 0], [0, 1, 0], [0, 0, 1]]}, "inertia must be symmetric"),
        ({"rotation": 2 * np.eye(3)}, "rotation is not a rotation matrix"),
        ({"rotation": np.diag([1, 1, -1])}, "rotation is not a rotation matrix"),
        ({"position": [0, 0, np.nan]}, "position must be finite"),
        ({"velocity": [0, 0]}, "velocity must have shape"),
        ({"drag": -1}, "drag must not be negative"),
        ({"fixed": True, "velocity": [1, 0, 0]}, "fixed body"),
    ],
)
def test_bodies(change, message):
    with pytest.raises(ValueError, match=message):
        rods.RigidBody(**(BODY | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": NODES[[0, 1, 1, 2, 3]]}, "edge 1 must be positive"),
        ({"nodes": NODES[:1]}, "nodes must have shape"),
        ({"nodes": NODES * np.nan}, "nodes must be finite"),
        ({"frames": np.ones((4, 3, 3))}, r"frames\[0\] is not a rotation"),
        ({"stretch": -1}, "stretch must not be negative"),
        ({"shear": [1, 1, 1, -1]}, "shear must not be negative"),
        ({"bend": [1, -1, 1]}, "bend must not be negative"),
        ({"bend": [1, 1]}, "bend must have shape"),
        ({"radius": 0}, "radius must be positive"),
        ({"rest_lengths": [1, 1, 0, 1]}, "rest length of edge 2"),
        ({"rest_curvature": [1, 2]}, "rest_curvature must have shape"),
        ({"bend_damping": -1}, "bend_damping must not be negative"),
        ({"fixed_nodes": [0], "velocities": [1, 0, 0]}, "must not have a velocity"),
    ],
)
def test_rods(change, message):
    with pytest.raises(ValueError, match=message):
        rods.Rod(**({"nodes": NODES} | ROD | change))


def test_indices():
    rod = rods.Rod(NODES, **ROD)
    assert rod.node(-1).points == (4,)
    for wrong in (rod.node, rod.frame, rod.beside):
        with pytest.raises(IndexError, match="must be below"):
            wrong(7)
    with pytest.raises(IndexError, match="fixed_nodes"):
        rods.Rod(NODES, **ROD, fixed_nodes=[9])


def test_worlds():
    rod, body = rods.Rod(NODES, **ROD), rods.RigidBody(**BODY)
    with pytest.raises(ValueError, match="timestep must be positive"):
        rods.World(timestep=0, bodies=[body])
    with pytest.raises(ValueError, match="needs a rod or a body"):
        rods.World(timestep=1)
    with pytest.raises(ValueError, match="twice"):
        rods.World(timestep=1, bodies=[body, body])
    with pytest.raises(TypeError, match="rods must be of type Rod"):
        rods.World(timestep=1, rods=[body])
    with pytest.raises(ValueError, match="Rod is not in the world"):
        rods.World(
            timestep=1, bodies=[body], attachments=[rods.Attachment(rod.node(0), [0, 0, 0], 1)]
        )
    with pytest.raises(ValueError, match="stiffness must not be negative"):
        rods.Attachment(rod.node(0), body.at(), -1)
    with pytest.raises(ValueError, match="first_axes is not a rotation"):
        rods.Weld(rod.frame(0), None, 1, first_axes=np.ones((3, 3)))
    with pytest.raises(ValueError, match="path must be at least two"):
        rods.Cable([rod.node(0)])
    with pytest.raises(ValueError, match="fixed to it"):
        rods.Contact([body.at()], rods.Plane(), 1, body=body)
    with pytest.raises(ValueError, match="normal must not be zero"):
        rods.Plane([0, 0, 0])
    with pytest.raises(ValueError, match="must differ"):
        rods.Tube([[0, 0, 0], [0, 0, 0]], 1)
    with pytest.raises(ValueError, match="half must be positive"):
        rods.Box([1, 0, 1])


def test_inputs():
    """Neither the world nor the state changes when a rollout is refused."""
    rod = rods.Rod(NODES, **ROD, fixed_nodes=[0])
    world = rods.World(timestep=0.01, rods=[rod])
    state = world.state()
    forces = np.zeros((3, 5, 3))
    forces[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match=r"forces must be finite, but forces\[1, 2, 0\] is nan"):
        rods.rollout(world, forces=forces)
    with pytest.raises(ValueError, match="steps must be given"):
        rods.rollout(world)
    with pytest.raises(ValueError, match=r"torques must have shape \(3, 4, 3\)"):
        rods.rollout(world, steps=3, torques=np.zeros((2, 4, 3)))
    with pytest.raises(ValueError, match="steps must be an integer"):
        rods.rollout(world, steps=0)
    with pytest.raises(ValueError, match="tolerance must be positive"):
        rods.rollout(world, steps=1, tolerance=0)
    wrong = {
        "not a rotation matrix": {"rotations": 1.1 * state.rotations},
        "length zero": {"positions": 0 * state.positions},
        "must not have a velocity": {"velocities": state.velocities + 1},
        "positions must have shape": {"positions": state.positions[:2]},
    }
    for message, change in wrong.items():
        with pytest.raises(ValueError, match=message):
            rods.rollout(world, rods.State(**(vars(state) | change)), steps=1)
    twice = rods.Cable([rod.node(0), rod.beside(0, fraction=0)])
    with pytest.raises(ValueError, match=r"cable 0 .* are the same"):
        rods.rollout(rods.World(timestep=0.01, rods=[rod], cables=[twice]), steps=1)
    p = world.parameters()
    with pytest.raises(ValueError, match="stretch must not be negative"):
        rods.rollout(world, steps=1, params=rods.Parameters(**(vars(p) | {"stretch": -p.stretch})))
    assert rods.rollout(world, steps=1).report.converged.all()
    trajectory = rods.rollout(world, steps=2)
    with pytest.raises(ValueError, match="d_positions must have shape"):
        trajectory.gradient(np.zeros((2, 5, 3)))
