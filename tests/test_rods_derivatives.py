"""Gradients, Hessians and adjoints of all terms agree with references of forty digits."""

import numpy as np
import pytest

from mujacobian import _core, rods
from mujacobian.rods.state import INPUTS, PARAMETERS, Inputs
from mujacobian.rods.trajectory import core_inputs
from tests.oracle import rods_reference as reference

TOLERANCE = 1e-10  # relative to the largest entry
RNG = np.random.default_rng(7)


def rotation(angle, rng):
    axis = rng.normal(size=3)
    return rods.exp(angle * axis / np.linalg.norm(axis))


def bodies(**options):
    given = {"mass": 0.7, "inertia": [[0.5, 0.1, 0], [0.1, 0.6, 0.05], [0, 0.05, 0.7]]}
    return [rods.RigidBody(**(given | options)) for _ in range(2)]


def rod(edges=2, **options):
    nodes = np.cumsum(RNG.uniform(0.1, 0.3, size=(edges + 1, 3)), axis=0)
    given = {
        "mass": 0.3,
        "radius": 0.05,
        "stretch": RNG.uniform(20, 30, edges),
        "shear": RNG.uniform(10, 20, edges),
        "bend": RNG.uniform(0.1, 0.5, (edges - 1, 3)),
        "rest_lengths": RNG.uniform(0.2, 0.4, edges),
        "rest_curvature": RNG.normal(size=(edges - 1, 3)),
    }
    return rods.Rod(nodes, **(given | options))


TETRAHEDRON = rods.Mesh(
    np.array([[-1, -1, -1], [1.6, 0, -1], [-1, 1.4, -1.2], [0, 0.3, 1.5]]),
    [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]],
    cell=0.3,
)


def make(kind):
    """Return a small world with one kind of element, and its inputs."""
    a, b = bodies()
    h, inputs = 0.05, {}
    world = {"timestep": h, "gravity": (0, 0, 0)}
    if kind == "inertia":
        a, b = bodies(drag=0.3, spin_drag=0.2)
        inputs = {"forces": (2, 3), "torques": (2, 3)}
        return rods.World(timestep=h, gravity=(1, 2, -9), bodies=[a, b]), inputs
    if kind == "edge":
        return rods.World(**world, rods=[rod(stretch_damping=0.4)]), inputs
    if kind == "bend":
        return rods.World(**world, rods=[rod(bend_damping=[0.01, 0.02, 0.03])]), {"rest": (1, 3)}
    if kind == "closed":
        nodes = [[0, 0, 0], [0.3, 0.1, 0], [0.1, 0.2, 0.3]]
        options = {"bend": RNG.uniform(0.1, 0.5, (3, 3)), "bend_damping": [0.01, 0.02, 0.03]}
        ring = rods.Rod(nodes, 0.3, 0.05, 25, 15, **options, stretch_damping=0.4, closed=True)
        return rods.World(**world, rods=[ring]), {"rest": (3, 3)}
    if kind in ("clamp", "tangent clamp", "tangent"):
        ends = {} if kind == "tangent" else {"clamp_start": True, "clamp_end": True}
        count = 1 + len(ends)
        made = rod(
            bend=RNG.uniform(0.1, 0.5, (count, 3)),
            bend_damping=RNG.uniform(0.01, 0.03, (count, 3)),
            rest_curvature=RNG.normal(size=(count, 3)),
            bending="sine" if kind == "clamp" else "tangent",
            **ends,
        )
        return rods.World(**world, rods=[made]), {"rest": (count, 3)}
    if kind == "attachment":
        springs = [
            rods.Attachment(a.at([0.1, 0.2, 0.3]), b.at([-0.2, 0.1, 0]), 30),
            rods.Attachment(a.at([0.3, 0.2, -0.3]), [1, 2, 3], 20),
        ]
        return rods.World(**world, bodies=[a, b], attachments=springs), {"targets": (1, 3)}
    if kind == "weld":
        turn = [rotation(1.0, RNG) for _ in range(3)]
        welds = [
            rods.Weld(a.frame, b.frame, 3, turn[0], turn[1]),
            rods.Weld(b.frame, None, 2, turn[2]),
        ]
        return rods.World(**world, bodies=[a, b], attachments=welds), inputs
    if kind == "cable":
        r = rod()
        path = [r.beside(0, [0.1, 0, 0]), r.beside(1, [0.1, 0.05, 0], 0.3), r.node(2), r.beside(1)]
        return rods.World(**world, rods=[r], cables=[rods.Cable(path)]), {"tensions": (1,)}
    if kind in SEGMENTS:
        return rods.World(**world, **touching(kind, a, b)), inputs
    shape = {
        "plane": rods.Plane([0.2, 0.1, 1], 3.0),
        "rolling rod": None,
        "frictionless": rods.Plane([0.2, 0.1, 1], 3.0),
        "sphere": rods.Sphere(1.2, [0.1, 0.2, 0.3]),
        "capsule": rods.Capsule([-1, 0.2, 0], [1, 0, 0.3], 1.2),
        "box inside": rods.Box([2, 2.2, 2.4], [0.1, 0.2, 0.3], rotation(0.5, RNG)),
        "box outside": rods.Box([0.3, 0.4, 0.2], [0.1, 0.2, 0.3], rotation(0.5, RNG)),
        "tube": rods.Tube(RNG.normal(size=(6, 3)), 2.0),
        "union": rods.Union([rods.Sphere(0.3, [2, 0, 0]), rods.Sphere(1.2, [-0.3, 0, 0])]),
        "mesh": TETRAHEDRON,
        "outside": rods.Outside(rods.Capsule([-1, 0.2, 0], [1, 0, 0.3], 0.2)),
    }[kind]
    if kind == "rolling rod":
        # both kinds of points, at the ends and between them; the shape belongs to a body
        r = rod(3)
        points = [r.node(0), r.node(1), r.node(3), r.beside(1, [0.05, 0, 0])]
        contact = rods.Contact(points, rods.Sphere(1.2), 40, 0.6, 0.3, slip=0.5, body=b)
        return rods.World(**world, rods=[r], bodies=[b], contacts=[contact]), inputs
    radius = 1.5 if kind == "box outside" else 0.3
    friction = 0 if kind == "frictionless" else 0.6  # also zero friction has a derivative
    contact = rods.Contact([a.at([0.1, 0.2, 0.1])], shape, 40, friction, radius, slip=0.5, body=b)
    return rods.World(**world, bodies=[a, b], contacts=[contact]), inputs


def touching(kind, a, b):
    """Return the elements of a world with pairs of segments that touch and slide."""
    options = {"stiffness": 40, "friction": 0.6, "slip": 0.5}
    sides = {
        "crossed": ([1, 0.1, 0], [0.1, 1, 0.2]),
        "parallel": ([1, 0.1, 0], [1, 0.1, 0]),  # before they are moved
        "end": ([0.1, 0.2, 0], [0.1, 1, 0.2]),
        "balls": ([0, 0, 0], [0, 0, 0]),
    }
    if kind == "rods":
        nodes = np.array([[-0.8, 0.1, 0], [0.4, 0, 0.1], [1.6, 0.2, 0]])
        rope = rods.Rod(nodes, mass=1, radius=0.7, stretch=20, shear=10, bend=1)
        bar = [b.segment([0.3, -1, 0.2], [0.1, 1, 0.1], 0.5)]
        contact = rods.SegmentContact(rope.segments, others=bar, **options)
        return {"rods": [rope], "bodies": [b], "contacts": [contact]}
    (e, f), (r, s) = np.array(sides[kind]), (0.7, 0.4)
    first = a.segment(-0.8 * e + [0.1, 0, 0.3], e, r)
    second = b.segment(-f, 0.9 * f + [0, 0.1, 0], s)
    return {"bodies": [a, b], "contacts": [rods.SegmentContact([first, second], **options)]}


ELEMENTS = ["inertia", "edge", "bend", "weld"]
BENDS = ["closed", "clamp", "tangent clamp", "tangent"]
POINTS = ["attachment", "cable"]
SHAPES = ["plane", "frictionless", "sphere", "capsule", "box inside", "box outside", "tube"]
SHAPES += ["union", "mesh", "outside", "rolling rod"]
SEGMENTS = ["crossed", "parallel", "end", "balls", "rods"]
# angles between frames, and between the beginning and the end of the step
ANGLES = {"random": (1.0, 0.5), "near 0": (1e-9, 1e-10), "near pi": (np.pi - 1e-9, np.pi - 1e-6)}
# parameters that no other element depends on
OF_INERTIA = ("mass", "inertia", "drag", "spin_drag")
CASES = [(kind, angle) for kind in ELEMENTS for angle in ANGLES]
CASES += [(kind, "random") for kind in BENDS] + [("tangent", "near 0")]
CASES += [(kind, angle) for kind in POINTS for angle in ("random", "near pi")]
CASES += [(kind, "random") for kind in SHAPES + SEGMENTS]
CASES += [("parallel", "near 0")]


def situation(world, angles, seed):
    """Return the state at the end of a step, and four earlier states, newest first."""
    rng = np.random.default_rng(seed)
    between, step = angles
    first = rotation(1.3, rng)
    R = [first]
    while len(R) < world.n_frames:
        R.append(R[-1] @ rotation(between, rng))
    x = world.state().positions + 0.1 * rng.normal(size=(world.n_points, 3))
    before = x + 0.1 * rng.normal(size=x.shape)
    R = np.array(R)
    R_before = np.array([rotation(step, rng) @ each for each in R])
    earlier = [(before, R_before)]
    while len(earlier) < 4:
        x_before = earlier[-1][0] - 0.1 * rng.normal(size=x.shape)
        turned = np.array([rotation(step, rng).T @ each for each in earlier[-1][1]])
        earlier.append((x_before, turned))
    return (x, R), tuple(np.stack(each) for each in zip(*earlier, strict=True))


def second_order(world):
    """Return the same world with the integrator BDF2."""
    return rods.World(
        timestep=world.timestep,
        gravity=world.gravity,
        rods=world.rods,
        bodies=world.bodies,
        attachments=world.attachments,
        cables=world.cables,
        contacts=world.contacts,
        integrator="bdf2",
    )


class Case:
    """A world and one step of it, for the core and for the reference."""

    def __init__(self, kind, angle, seed=3, k=0):
        self.world, shapes = make(kind)
        if k:
            self.world = second_order(self.world)
        rng = np.random.default_rng(seed)
        self.inputs = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        self.state, past = situation(self.world, ANGLES[angle], seed)
        self.past = tuple(each[: min(k + 2, 4)] for each in past)
        params = self.world.parameters()
        self.model = self.world.model(params)
        given = Inputs(**{name: values[None] for name, values in self.inputs.items()})
        self.rows = core_inputs(self.world, given)
        if self.rows[4] is not None:
            self.rows[4] = np.ascontiguousarray(self.rows[4])
        self.arguments = (k, *self.past, self.rows, *self.state)
        self.reference = reference.Variables(
            self.world, k, self.state, self.past, self.inputs, params
        )
        # unknowns with their names in the reference
        self.unknowns = [("x", (i, k)) for i in range(self.world.n_points) for k in range(3)]
        self.unknowns += [("R", (i, k)) for i in range(self.world.n_frames) for k in range(3)]

    def evaluate(self):
        n = len(self.unknowns)
        points, frames = np.empty((self.world.n_points, 3)), np.empty((self.world.n_frames, 3))
        hessian = np.empty((n, n))
        _core.rods_evaluate_into(self.model, *self.arguments, points, frames, hessian)
        return np.concatenate([points.ravel(), frames.ravel()]), hessian

    def direction(self):
        """Return a random direction, for the core and for the reference."""
        z = np.random.default_rng(5).normal(size=len(self.unknowns))
        return z, [(*u, float(part)) for u, part in zip(self.unknowns, z, strict=True)]

    def pull_back(self, z):
        """Return the derivatives of z . gradient by their names in the reference."""
        world = self.world
        points, frames = np.split(z, [3 * world.n_points])
        inputs = [
            np.zeros((1, *self.inputs[name].shape)) if name in self.inputs else None
            for name in INPUTS
        ]
        params = [np.zeros(np.shape(each)) for each in vars(world.parameters()).values()]
        sizes, count = (world.n_points, world.n_frames), len(self.past[0])
        past = [tuple(np.zeros((n, 3)) for n in sizes) for _ in range(count)]
        _core.rods_pull_back_step_into(
            self.model, *self.arguments, points, frames, inputs, params, past
        )
        made = dict(zip(("past_x", "past_R"), map(np.stack, zip(*past, strict=True)), strict=True))
        made |= dict(zip(PARAMETERS, params, strict=True))
        made |= {n: x[0] for n, x in zip(INPUTS, inputs, strict=True) if x is not None}
        half = 0.5 * np.trace(made["inertia"], axis1=1, axis2=2)[:, None, None]
        made["inertia"] = half * np.eye(3) - made["inertia"]
        return made


# the steps of BDF2 have different formulas at the beginning of a simulation
STEPS = [(kind, angle, 0) for kind, angle in CASES]
STEPS += [(kind, "random", k) for kind in ("inertia", "edge", "bend", "plane") for k in (1, 2, 3)]


@pytest.mark.parametrize(("kind", "angle", "k"), STEPS)
def test_gradient_and_hessian(kind, angle, k):
    """The Hessian times a random direction has an error in each row with a wrong entry."""
    case = Case(kind, angle, k=k)
    gradient, hessian = case.evaluate()
    wanted = np.array([case.reference.slope(u) for u in case.unknowns])
    assert np.abs(wanted).max() > 1e-3
    assert np.abs(gradient - wanted).max() < TOLERANCE * np.abs(wanted).max()
    z, direction = case.direction()
    wanted = np.array([case.reference.mixed(direction, u) for u in case.unknowns])
    assert np.abs(hessian @ z - wanted).max() < TOLERANCE * np.abs(wanted).max()
    assert (hessian == hessian.T).all()


@pytest.mark.parametrize(("kind", "angle", "k"), STEPS)
def test_adjoint_of_the_gradient(kind, angle, k):
    case = Case(kind, angle, k=k)
    z, direction = case.direction()
    made = case.pull_back(z)
    for name, values in made.items():
        if name in OF_INERTIA and kind != "inertia":
            continue
        wanted = np.array(values)
        for index in np.ndindex(values.shape):
            # an off-diagonal moment occupies two entries
            twice = 2 if name == "inertia" and index[1] != index[2] else 1
            if name != "inertia" or index[1] >= index[2]:
                wanted[index] = case.reference.mixed(direction, (name, index)) / twice
        assert np.abs(values - wanted).max(initial=0) < TOLERANCE * np.abs(wanted).max(initial=1)


@pytest.mark.parametrize("kind", SHAPES + SEGMENTS)
def test_contacts_touch_and_slide(kind):
    """Without contact, the tests above would not test anything."""
    case = Case(kind, "random")
    gradient, _ = case.evaluate()
    world = case.world
    free = rods.World(
        timestep=world.timestep, gravity=world.gravity, rods=world.rods, bodies=world.bodies
    )
    case.model = free.model(free.parameters())
    assert np.abs(gradient - case.evaluate()[0]).max() > 1
