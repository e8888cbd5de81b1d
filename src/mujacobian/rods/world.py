"""A world: rigid bodies, rods, and the elements that connect them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, shaped
from mujacobian.errors import ArgumentError
from mujacobian.rods.attachment import Attachment, Cable, Weld
from mujacobian.rods.body import RigidBody, inertias
from mujacobian.rods.contact import Contact
from mujacobian.rods.description import freeze, instance, instances
from mujacobian.rods.model import compiled, slots
from mujacobian.rods.point import Frame, Point
from mujacobian.rods.quantity import nonnegatives, positive
from mujacobian.rods.rod import Rod
from mujacobian.rods.segment import SegmentContact
from mujacobian.rods.state import Parameters, State

ORDERS = {"backward_euler": 1, "bdf2": 2}  # of the integrators
_PARTS = ("rods", "bodies", "attachments", "cables", "contacts")


class World:
    """Rigid bodies and rods with attachments, cables and contacts, in SI units. It is immutable.

    Arrays have one row per point, frame, edge or bend. The points are the nodes of all rods, then
    the bodies. The frames are the edges of all rods, then the bodies. The bends are the inner nodes
    and clamped ends of all rods.

    Args:
      timestep: time step, s.
      gravity: `(3,)`, m/s^2, gravitational acceleration; by default (0, 0, -9.81).
      rods: rods of the world; by default none.
      bodies: rigid bodies of the world; by default none.
      attachments: springs between points (`Attachment`) and between frames (`Weld`); by default
        none.
      cables: cables through points of rods and bodies; by default none.
      contacts: contacts of points with shapes (`Contact`) and of round segments with each other
        (`SegmentContact`); by default none.
      integrator: "backward_euler", the default, which is of first order in the time step and damps
        strongly; or "bdf2", the backward differentiation formula of second order (ROD-39).

    Example:
      >>> from mujacobian import rods
      >>> body = rods.RigidBody(mass=1, inertia=[1, 2, 3], angular_velocity=[0.01, 5, 0])
      >>> world = rods.World(timestep=0.01, gravity=(0, 0, 0), bodies=[body])
      >>> rods.rollout(world, steps=100).rotations.shape
      (101, 1, 3, 3)
    """

    def __init__(
        self,
        *,
        timestep: float,
        gravity: ArrayLike = (0, 0, -9.81),
        rods: Sequence[Rod] = (),
        bodies: Sequence[RigidBody] = (),
        attachments: Sequence[Attachment | Weld] = (),
        cables: Sequence[Cable] = (),
        contacts: Sequence[Contact | SegmentContact] = (),
        integrator: str = "backward_euler",
    ) -> None:
        if integrator not in ORDERS:
            raise ArgumentError(f"integrator must be in {tuple(ORDERS)}, got {integrator!r}")
        self.integrator = integrator
        self.timestep = positive("timestep", timestep)
        self.gravity = shaped("gravity", gravity, (3,))
        self.rods: tuple[Rod, ...] = instances("rods", rods, Rod)
        self.bodies: tuple[RigidBody, ...] = instances("bodies", bodies, RigidBody)
        self.attachments: tuple[Attachment | Weld, ...] = instances(
            "attachments", attachments, Attachment, Weld
        )
        self.cables: tuple[Cable, ...] = instances("cables", cables, Cable)
        self.contacts: tuple[Contact | SegmentContact, ...] = instances(
            "contacts", contacts, Contact, SegmentContact
        )
        # first point and first frame of each rod and body
        self._first: dict[int, tuple[int, int]] = {}
        points = frames = 0
        for each in self.owners:
            if id(each) in self._first:
                raise ArgumentError("a rod or body occurs twice in the world")
            self._first[id(each)] = points, frames
            points, frames = points + each.sizes[0], frames + each.sizes[1]
        self.n_points, self.n_frames = points, frames
        self.n_edges = sum(rod.edges for rod in self.rods)
        self.n_bends = sum(rod.bends for rod in self.rods)
        if not points:
            raise ArgumentError("a world needs a rod or a body")
        springs = (each for each in self.attachments if isinstance(each, Attachment))
        places = [each.second for each in springs if not isinstance(each.second, Point)]
        self.anchors = np.array(places, dtype=np.float64).reshape(-1, 3)
        freeze(self)
        self._parameters = self.checked(self._own_parameters())
        self._model = compiled(self, self._parameters)

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(getattr(self, name))} {name}" for name in _PARTS)
        return f"World({self.integrator}, {self.timestep:g} s: {counts})"

    def __reduce__(self) -> tuple[object, ...]:
        # the compiled model and the rows of rods and bodies are made again
        parts = [getattr(self, name) for name in _PARTS]
        return _made, (self.timestep, self.gravity, *parts, self.integrator)

    @property
    def order(self) -> int:
        """The order of the integrator in the time step."""
        return ORDERS[self.integrator]

    @property
    def owners(self) -> tuple[Rod | RigidBody, ...]:
        """All rods, then all bodies."""
        return *self.rods, *self.bodies

    def points(self, owner: Rod | RigidBody) -> slice:
        """Return the rows of the nodes of a rod, or of a body, in arrays of points."""
        first, _ = self._find(owner)
        return slice(first, first + owner.sizes[0])

    def frames(self, owner: Rod | RigidBody) -> slice:
        """Return the rows of the edges of a rod, or of a body, in arrays of frames."""
        _, first = self._find(owner)
        return slice(first, first + owner.sizes[1])

    def edges(self, rod: Rod) -> slice:
        """Return the rows of a rod in arrays of edges."""
        return self.frames(instance("rod", rod, Rod))

    def bends(self, rod: Rod) -> slice:
        """Return the rows of a rod, one per inner node and clamped end, in arrays of bends."""
        self._find(instance("rod", rod, Rod))
        before = next(k for k, each in enumerate(self.rods) if each is rod)
        first = sum(each.bends for each in self.rods[:before])
        return slice(first, first + rod.bends)

    def frame(self, frame: Frame) -> int:
        """Return the row of a frame in arrays of frames."""
        return self._find(frame.owner)[1] + frame.frame

    def unknown(self, slot: int) -> str:
        """Return the name of the node, edge or body in a slot of the core, such as "body 0"."""
        if slot < 0:
            return ""
        return next(
            self._name(what, int(row))
            for what, places in zip(("node", "edge"), slots(self), strict=True)
            for row in np.flatnonzero(places == slot)
        )

    def contact(self, number: int) -> tuple[int, int] | None:
        """Return the indices of a contact and of its point or segment, given those in the core.

        In the core, the points of all contacts come before the segments of all contacts.
        """
        points = ((k, c.points) for k, c in enumerate(self.contacts) if isinstance(c, Contact))
        segments = (
            (k, c.all_segments)
            for k, c in enumerate(self.contacts)
            if isinstance(c, SegmentContact)
        )
        for k, parts in (*points, *segments):
            if 0 <= number < len(parts):
                return k, number
            number -= len(parts)
        return None

    def place(self, point: Point, positions: Array, rotations: Array) -> Array:
        """Return the position of a material point, m, in one state or in many states.

        Args:
          point: material point of a rod or body of this world.
          positions: `(..., points, 3)`, m.
          rotations: `(..., frames, 3, 3)`.
        """
        first, frame = self._find(instance("point", point, Point).owner)
        at = np.asarray(point.offset)
        if point.frame is not None:
            at = rotations[..., frame + point.frame, :, :] @ at
        for i, weight in zip(point.points, point.weights, strict=True):
            at = at + weight * positions[..., first + i, :]
        return at

    def state(self) -> State:
        """Return the initial state, from the descriptions of rods and bodies."""
        return State(
            self._gather("nodes", "position", (3,)),
            self._gather("frames", "rotation", (3, 3)),
            self._gather("velocities", "velocity", (3,)),
            self._gather("angular_velocities", "angular_velocity", (3,)),
        )

    def rest(self) -> Array:
        """Return the Darboux vectors of the rods at rest, `(bends, 3)`, 1/m."""
        return self._of_rods("rest_curvature", (3,))

    def fixed(self) -> tuple[Array, Array]:
        """Return 1 for each fixed point and frame, 0 for the others."""
        points, frames = np.zeros(self.n_points), np.zeros(self.n_frames)
        for each in self.owners:
            at = self.points(each), self.frames(each)
            if isinstance(each, Rod):
                points[at[0]][list(each.fixed_nodes)] = 1
                frames[at[1]][list(each.fixed_edges)] = 1
            else:
                points[at[0]], frames[at[1]] = each.fixed, each.fixed
        return points, frames

    def parameters(self) -> Parameters:
        """Return the parameters, such as masses and stiffnesses, of rods, bodies and elements."""
        return Parameters(**{name: own.copy() for name, own in vars(self._parameters).items()})

    def checked(self, parameters: Parameters) -> Parameters:
        """Return the parameters, or raise if their shapes or values are invalid."""
        instance("params", parameters, Parameters)
        made = {}
        for name, shape in self._shapes().items():
            given = shaped(name, getattr(parameters, name), shape)
            if name == "inertia":
                parts = np.split(given, [self.n_edges])
                made[name] = np.concatenate(
                    [
                        inertias(name, part, part.shape, alone=alone)
                        for part, alone in zip(parts, (False, True), strict=True)
                    ]
                )
                continue
            made[name] = nonnegatives(name, given, shape)
            if name in ("mass", "length") and not (given > 0).all():
                raise ArgumentError(f"{name} must be positive")
        return Parameters(**made)

    def model(self, parameters: Parameters | None = None) -> _core.RodModel:
        """Return the core's model with these parameters, by default those of the world."""
        return self._model if parameters is None else compiled(self, parameters)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all parameters by name."""
        points, frames, edges, bends = self.n_points, self.n_frames, self.n_edges, self.n_bends
        return {
            "mass": (points,),
            "inertia": (frames, 3, 3),
            "length": (edges,),
            "stretch": (edges,),
            "shear": (edges,),
            "bend": (bends, 3),
            "stretch_damping": (edges,),
            "bend_damping": (bends, 3),
            "drag": (points,),
            "spin_drag": (frames,),
            "attachment": (len(self.attachments),),
            "contact": (len(self.contacts),),
            "friction": (len(self.contacts),),
        }

    def _own_parameters(self) -> Parameters:
        lumped = [rod.lumped() for rod in self.rods]
        lumped += [(np.array([b.mass]), np.asarray(b.inertia)[None]) for b in self.bodies]
        points, frames = zip(*(each.sizes for each in self.owners), strict=True)
        edges = [rod.edges for rod in self.rods]
        return Parameters(
            mass=np.concatenate([mass for mass, _ in lumped]),
            inertia=np.concatenate([inertia for _, inertia in lumped]),
            length=self._of_rods("rest_lengths"),
            stretch=self._of_rods("stretch"),
            shear=self._of_rods("shear"),
            bend=self._of_rods("bend", (3,)),
            stretch_damping=np.repeat(_each(self.rods, "stretch_damping"), edges),
            bend_damping=self._of_rods("bend_damping", (3,)),
            drag=np.repeat(_each(self.owners, "drag"), points),
            spin_drag=np.repeat(_each(self.owners, "spin_drag"), frames),
            attachment=_each(self.attachments, "stiffness"),
            contact=_each(self.contacts, "stiffness"),
            friction=_each(self.contacts, "friction"),
        )

    def _find(self, owner: Rod | RigidBody) -> tuple[int, int]:
        found = self._first.get(id(owner))
        if found is None:
            raise ArgumentError(f"this {type(owner).__name__} is not in the world: {owner!r:.60}")
        return found

    def _name(self, what: str, row: int) -> str:
        rows = self.points if what == "node" else self.frames
        for number, rod in enumerate(self.rods):
            at = rows(rod)
            if at.start <= row < at.stop:
                return f"{what} {row - at.start} of rod {number}"
        number = next(k for k, body in enumerate(self.bodies) if rows(body).start == row)
        return f"body {number}"

    def _gather(self, of_rods: str, of_bodies: str, shape: tuple[int, ...]) -> Array:
        bodies = [np.asarray(getattr(body, of_bodies))[None] for body in self.bodies]
        return np.concatenate([self._of_rods(of_rods, shape), *bodies])

    def _of_rods(self, name: str, shape: tuple[int, ...] = ()) -> Array:
        """Return a quantity of all rods, whose entries have this shape."""
        parts = [np.asarray(getattr(rod, name)) for rod in self.rods]
        return np.concatenate([np.zeros((0, *shape)), *parts])


def _made(
    timestep: float,
    gravity: Array,
    rods: Sequence[Rod],
    bodies: Sequence[RigidBody],
    attachments: Sequence[Attachment | Weld],
    cables: Sequence[Cable],
    contacts: Sequence[Contact | SegmentContact],
    integrator: str,
) -> World:
    """Return the world of these parts."""
    return World(
        timestep=timestep,
        gravity=gravity,
        rods=rods,
        bodies=bodies,
        attachments=attachments,
        cables=cables,
        contacts=contacts,
        integrator=integrator,
    )


def _each(given: Sequence[object], name: str) -> Array:
    """Return this attribute of all objects, one number each."""
    return np.array([getattr(each, name) for each in given], dtype=np.float64)
