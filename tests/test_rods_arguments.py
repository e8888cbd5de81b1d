"""Invalid descriptions and inputs of rods raise clear errors and change nothing."""

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
        ({"inertia": [1, 1]}, r"inertia must have shape \(3, 3\)"),
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
    for wrong in (0.5, True, None, "0", [1]):
        with pytest.raises((TypeError, IndexError), match="node must be"):
            rod.node(wrong)
    with pytest.raises(TypeError, match="fixed_edges must be"):
        rods.Rod(NODES, **ROD, fixed_edges=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": (9,)}, "points must be below 5"),
        ({"points": (0, 1, 2)}, "points must have one or two entries"),
        ({"weights": (1.0, 2.0)}, "weights must have shape"),
        ({"weights": (np.nan,)}, "weights must be finite"),
        ({"frame": 77}, "frame must be below 4"),
        ({"offset": [0, 0]}, "offset must have shape"),
        ({"owner": None}, "owner must be a RigidBody or a Rod"),
    ],
)
def test_points_made_by_hand(change, message):
    """An invalid index would read beyond the arrays of the owner."""
    given = {"points": (0,), "weights": (1.0,), "frame": None, "offset": np.zeros(3)}
    with pytest.raises((ValueError, IndexError, TypeError), match=message):
        rods.Point(**({"owner": rods.Rod(NODES, **ROD)} | given | change))


@pytest.mark.parametrize("wrong", [None, "a", 1.5, [], np.zeros(3), object(), rods.Rod])
def test_objects_of_the_wrong_kind(wrong):
    """The constructor raises an error that contains the name of the argument."""
    rod, body = rods.Rod(NODES, **ROD), rods.RigidBody(**BODY)
    calls = {
        "first": lambda: rods.Attachment(wrong, body.at(), 1),
        "first ": lambda: rods.Weld(wrong, None, 1),
        "path": lambda: rods.Cable([rod.node(0), wrong]),
        "points": lambda: rods.Contact([wrong], rods.Plane(), 1),
        "shape": lambda: rods.Contact([rod.node(0)], wrong, 1),
        "shape ": lambda: rods.Outside(wrong),
        "parts": lambda: rods.Union([wrong]),
        "bodies": lambda: rods.World(timestep=1, bodies=[wrong]),
        "contacts": lambda: rods.World(timestep=1, bodies=[body], contacts=[wrong]),
        "world": lambda: rods.rollout(wrong, steps=1),
        "strict": lambda: rods.rollout(
            rods.World(timestep=1, bodies=[body]), steps=1, strict=wrong
        ),
        "fixed": lambda: rods.RigidBody(**BODY, fixed=wrong),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=f"{name.strip()} must be"):
            call()


def test_shapes_of_other_classes():
    """A subclass of Shape combines other shapes, or an error names the subclass."""

    class Strange(rods.Shape):
        def __init__(self, answer):
            self.answer = answer

        def add_to(self, model):
            return self.answer(model)

    rod = rods.Rod(NODES, **ROD)

    def world(shape):
        contacts = [rods.Contact([rod.node(0)], shape, 1)]
        return rods.World(timestep=1, rods=[rod], contacts=contacts)

    for wrong, error in ((7, IndexError), (-1, IndexError), (None, TypeError), (0.0, TypeError)):
        strange = Strange(lambda model, wrong=wrong: wrong)
        for shape in (strange, rods.Outside(strange), rods.Union([strange])):
            with pytest.raises(error, match=r"Strange\.add_to must return"):
                world(shape)
    world(Strange(rods.Plane().add_to))


def test_descriptions_do_not_change():
    """Neither the arrays that they were made from nor their own arrays change them."""
    nodes, vertices, gravity = NODES.copy(), np.eye(3), np.array([0.0, 0, -1])
    rod, tube = rods.Rod(nodes, **ROD), rods.Tube(vertices, 1)
    world = rods.World(timestep=0.01, rods=[rod], gravity=gravity)
    for each in (nodes, vertices, gravity):
        each[:] = 7
    assert (np.asarray(rod.nodes) == NODES).all()
    assert (np.asarray(tube.vertices) == np.eye(3)).all()
    assert (world.gravity == [0, 0, -1]).all()
    trajectory = rods.rollout(world, steps=1)
    for each in (rod.nodes, rod.bend, rod.node(0).offset, tube.vertices, trajectory.positions):
        with pytest.raises(ValueError, match="read-only"):
            each[0] = 1
    world.parameters().mass[:] = 7
    assert (world.parameters().mass < 1).all()


def test_layouts_and_types_of_arrays():
    """Strided, read-only and integer arrays with the same numbers give the same trajectory."""
    world = rods.World(timestep=0.01, rods=[rods.Rod(NODES, **ROD)])
    forces = np.arange(90.0).reshape(3, 5, 6)[:, :, ::2]
    wanted = rods.rollout(world, forces=forces.copy())
    fixed = forces.copy()
    fixed.flags.writeable = False
    for each in (forces, fixed, np.asfortranarray(forces), forces.astype(int), forces.tolist()):
        assert rods.rollout(world, forces=each).positions.tobytes() == wanted.positions.tobytes()
    d_positions = np.ones((5, 4, 3)).transpose(1, 0, 2)
    d_positions.flags.writeable = False
    assert wanted.gradient(d_positions).state.positions.any()


def test_what_does_not_converge_stays_finite():
    """This also holds where numbers overflow: the report contains the failure."""
    world = rods.World(timestep=0.01, rods=[rods.Rod(NODES, **ROD)])
    for size in (1e10, 1e300):
        given = {"forces": np.full((2, 5, 3), size), "strict": False, "iterations": 5}
        trajectory = rods.rollout(world, **given)
        assert not trajectory.report.converged.any()
        assert np.isfinite(trajectory.positions).all()
        assert np.isfinite(trajectory.rotations).all()


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
    with pytest.raises(ValueError, match="path must have at least two"):
        rods.Cable([rod.node(0)])
    with pytest.raises(ValueError, match="fixed to this body"):
        rods.Contact([body.at()], rods.Plane(), 1, body=body)
    with pytest.raises(ValueError, match="normal must not be zero"):
        rods.Plane([0, 0, 0])
    with pytest.raises(ValueError, match="must differ"):
        rods.Tube([[0, 0, 0], [0, 0, 0]], 1)
    with pytest.raises(ValueError, match="half must be positive"):
        rods.Box([1, 0, 1])
    with pytest.raises(ValueError, match="inertia must be finite"):
        rods.World(timestep=1, rods=[rods.Rod(NODES, **(ROD | {"radius": 1e200}))])
    with pytest.raises(TypeError, match="rod must be of type Rod"):
        rods.World(timestep=1, bodies=[body]).bends(body)


def test_former_spelling_is_deprecated():
    with pytest.warns(DeprecationWarning, match="centre is now center"):
        ball = rods.Sphere(0.1, centre=[1, 2, 3])
    assert np.array_equal(ball.vertices, [[1, 2, 3]])
    with pytest.warns(DeprecationWarning, match="centre is now center"):
        box = rods.Box([1, 1, 1], centre=[1, 2, 3])
    with pytest.warns(DeprecationWarning, match="centre is now center"):
        assert np.array_equal(box.centre, [1, 2, 3])
    assert np.array_equal(box.center, [1, 2, 3])


def test_inputs():
    """Neither the world nor the state changes when a rollout raises an error."""
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
        "below half a turn per step": {"angular_velocities": state.angular_velocities + 200},
    }
    for message, change in wrong.items():
        with pytest.raises(ValueError, match=message):
            rods.rollout(world, rods.State(**(vars(state) | change)), steps=1)
    twice = rods.Cable([rod.node(0), rod.beside(0, fraction=0)])
    with pytest.raises(ValueError, match="points of cable 0 coincide"):
        rods.rollout(rods.World(timestep=0.01, rods=[rod], cables=[twice]), steps=1)
    p = world.parameters()
    wrong = {
        "stretch must not be negative": {"stretch": -p.stretch},
        "length must be positive": {"length": 0 * p.length},
        "mass must be positive": {"mass": 0 * p.mass},
        "bend must have shape": {"bend": 1.0},
        "drag must be finite": {"drag": p.drag + np.inf},
    }
    for message, change in wrong.items():
        with pytest.raises(ValueError, match=message):
            rods.rollout(world, steps=1, params=rods.Parameters(**(vars(p) | change)))
    with pytest.raises(TypeError, match="params must be of type Parameters"):
        rods.rollout(world, steps=1, params={"mass": p.mass})
    assert rods.rollout(world, steps=1).report.converged.all()
    trajectory = rods.rollout(world, steps=2)
    with pytest.raises(ValueError, match="d_positions must have shape"):
        trajectory.gradient(np.zeros((2, 5, 3)))
