"""Worlds: rigid bodies and rods with what acts between them."""

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
from mujacobian.rods.model import compiled
from mujacobian.rods.point import Frame, Point
from mujacobian.rods.quantity import nonnegatives, positive
from mujacobian.rods.rod import Rod
from mujacobian.rods.state import Parameters, State


class World:
    """Rigid bodies and rods, attachments, cables and contacts, in SI units. It does not change.

    Arrays over the world list the nodes of all rods, then the bodies (`points`), the edges of all
    rods, then the bodies (`frames`), and the inner nodes of all rods (`bends`).

    Args:
      timestep: s.
      gravity: `(3,)`, m/s^2.
      rods: of type `Rod`.
      bodies: of type `RigidBody`.
      attachments: of type `Attachment` (points) or `Weld` (frames).
      cables: of type `Cable`.
      contacts: of type `Contact`.

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
        contacts: Sequence[Contact] = (),
    ) -> None:
        self.timestep = positive("timestep", timestep)
        self.gravity = shaped("gravity", gravity, (3,))
        self.rods: tuple[Rod, ...] = instances("rods", rods, Rod)
        self.bodies: tuple[RigidBody, ...] = instances("bodies", bodies, RigidBody)
        self.attachments: tuple[Attachment | Weld, ...] = instances(
            "attachments", attachments, Attachment, Weld
        )
        self.cables: tuple[Cable, ...] = instances("cables", cables, Cable)
        self.contacts: tuple[Contact, ...] = instances("contacts", contacts, Contact)
        self._first: dict[int, tuple[int, int]] = {}  # point and frame of each object
        points = frames = 0
        for each in self.owners:
            if id(each) in self._first:
                raise ArgumentError("a rod or body is in the world twice")
            self._first[id(each)] = points, frames
            points, frames = points + each.sizes[0], frames + each.sizes[1]
        self.n_points, self.n_frames = points, frames
        self.n_edges = sum(rod.edges for rod in self.rods)
        self.n_bends = self.n_edges - len(self.rods)
        if not points:
            raise ArgumentError("a world needs a rod or a body")
        springs = (each for each in self.attachments if isinstance(each, Attachment))
        places = [each.second for each in springs if not isinstance(each.second, Point)]
        self.anchors = np.array(places, dtype=np.float64).reshape(-1, 3)
        freeze(self)
        self._parameters = self.checked(self._own_parameters())
        self._model = compiled(self, self._parameters)

    @property
    def owners(self) -> tuple[Rod | RigidBody, ...]:
        """Rods, then bodies."""
        return *self.rods, *self.bodies

    def points(self, owner: Rod | RigidBody) -> slice:
        """Where the nodes of a rod, or the centre of mass of a body, are in arrays of points."""
        first, _ = self._find(owner)
        return slice(first, first + owner.sizes[0])

    def frames(self, owner: Rod | RigidBody) -> slice:
        """Where the edges of a rod, or a body, are in arrays of frames."""
        _, first = self._find(owner)
        return slice(first, first + owner.sizes[1])

    def edges(self, rod: Rod) -> slice:
        """Where the edges of a rod are in arrays of edges."""
        return self.frames(instance("rod", rod, Rod))

    def bends(self, rod: Rod) -> slice:
        """Where the inner nodes of a rod are in arrays of bends."""
        edges = self.edges(rod)
        before = next(k for k, each in enumerate(self.rods) if each is rod)
        return slice(edges.start - before, edges.stop - before - 1)

    def frame(self, frame: Frame) -> int:
        """Where a frame is in arrays of frames."""
        return self._find(frame.owner)[1] + frame.frame

    def place(self, point: Point, positions: Array, rotations: Array) -> Array:
        """Where a material point is, given positions and rotations of one state or of many."""
        first, frame = self._find(instance("point", point, Point).owner)
        at = np.asarray(point.offset)
        if point.frame is not None:
            at = rotations[..., frame + point.frame, :, :] @ at
        for i, weight in zip(point.points, point.weights, strict=True):
            at = at + weight * positions[..., first + i, :]
        return at

    def state(self) -> State:
        """The state that rods and bodies were described in."""
        return State(
            self._gather("nodes", "position", (3,)),
            self._gather("frames", "rotation", (3, 3)),
            self._gather("velocities", "velocity", (3,)),
            self._gather("angular_velocities", "angular_velocity", (3,)),
        )

    def rest(self) -> Array:
        """Darboux vectors at rest `(bends, 3)`."""
        return self._of_rods("rest_curvature", (3,))

    def fixed(self) -> tuple[Array, Array]:
        """Which points and which frames are fixed: 1 or 0."""
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
        """Masses, stiffnesses and so on that the world was described with."""
        return Parameters(**{name: own.copy() for name, own in vars(self._parameters).items()})

    def checked(self, parameters: Parameters) -> Parameters:
        """The parameters, if the world can have them."""
        instance("params", parameters, Parameters)
        made = {}
        for name, shape in self._shapes().items():
            given = shaped(name, getattr(parameters, name), shape)
            if name == "inertia":
                made[name] = inertias(name, given, shape)
                continue
            made[name] = nonnegatives(name, given, shape)
            if name in ("mass", "length") and not (given > 0).all():
                raise ArgumentError(f"{name} must be positive")
        return Parameters(**made)

    def model(self, parameters: Parameters | None = None) -> _core.RodModel:
        """The compiled model; by default with the world's own parameters."""
        return self._model if parameters is None else compiled(self, parameters)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the parameters."""
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

    def _gather(self, of_rods: str, of_bodies: str, shape: tuple[int, ...]) -> Array:
        bodies = [np.asarray(getattr(body, of_bodies))[None] for body in self.bodies]
        return np.concatenate([self._of_rods(of_rods, shape), *bodies])

    def _of_rods(self, name: str, shape: tuple[int, ...] = ()) -> Array:
        """A quantity of all rods; of one entry it has this shape."""
        parts = [np.asarray(getattr(rod, name)) for rod in self.rods]
        return np.concatenate([np.zeros((0, *shape)), *parts])


def _each(given: Sequence[object], name: str) -> Array:
    """One number of each."""
    return np.array([getattr(each, name) for each in given], dtype=np.float64)
