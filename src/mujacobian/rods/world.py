"""Worlds: rigid bodies and rods with what acts between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core
from mujacobian.arguments import shaped
from mujacobian.rods.attachment import Attachment, Cable, Weld
from mujacobian.rods.body import RigidBody, inertias, moments
from mujacobian.rods.contact import Contact
from mujacobian.rods.point import Point
from mujacobian.rods.quantity import nonnegatives, positive
from mujacobian.rods.rod import Rod
from mujacobian.rods.state import Parameters, State

Array = NDArray[np.float64]


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
        self.rods, self.bodies = _all("rods", rods, Rod), _all("bodies", bodies, RigidBody)
        self.attachments = _all("attachments", attachments, Attachment, Weld)
        self.cables, self.contacts = (
            _all("cables", cables, Cable),
            _all("contacts", contacts, Contact),
        )
        self._first: dict[int, tuple[int, int]] = {}  # point and frame of each object
        points = frames = 0
        for each in (*self.rods, *self.bodies):
            if id(each) in self._first:
                raise ValueError("a rod or body is in the world twice")
            self._first[id(each)] = points, frames
            n = each.edges if isinstance(each, Rod) else 1
            points, frames = points + (n + 1 if isinstance(each, Rod) else 1), frames + n
        self.n_points, self.n_frames = points, frames
        self.n_edges = sum(rod.edges for rod in self.rods)
        self.n_bends = self.n_edges - len(self.rods)
        if not points:
            raise ValueError("a world needs a rod or a body")
        self.anchors = np.array(
            [a.second for a in self._springs() if not isinstance(a.second, Point)]
        ).reshape(-1, 3)
        self._parameters = self._own_parameters()
        self._model = self.model(self._parameters)

    def points(self, owner: Rod | RigidBody) -> slice:
        """Where the nodes of a rod, or the centre of mass of a body, are in arrays of points."""
        first = self._find(owner)[0]
        return slice(first, first + (owner.edges + 1 if isinstance(owner, Rod) else 1))

    def frames(self, owner: Rod | RigidBody) -> slice:
        """Where the edges of a rod, or a body, are in arrays of frames."""
        first = self._find(owner)[1]
        return slice(first, first + (owner.edges if isinstance(owner, Rod) else 1))

    def edges(self, rod: Rod) -> slice:
        """Where the edges of a rod are in arrays of edges."""
        return self.frames(rod)

    def bends(self, rod: Rod) -> slice:
        """Where the inner nodes of a rod are in arrays of bends."""
        self._find(rod)
        k = next(i for i, each in enumerate(self.rods) if each is rod)
        first = self.frames(rod).start - k
        return slice(first, first + rod.edges - 1)

    def place(self, point: Point, positions: Array, rotations: Array) -> Array:
        """Where a material point is, given positions and rotations of one state or of many."""
        first, frame = self._find(point.owner)
        at = np.zeros(3)
        for i, weight in zip(point.points, point.weights, strict=True):
            at = at + weight * positions[..., first + i, :]
        if point.frame is not None:
            at = at + rotations[..., frame + point.frame, :, :] @ point.offset
        return at

    def state(self) -> State:
        """The state that rods and bodies were described in."""
        return State(
            self._gather("nodes", "position", (3,)),
            self._gather("frames", "rotation", (3, 3)),
            self._gather("velocities", "velocity", (3,)),
            self._gather("angular_velocities", "angular_velocity", (3,)),
        )

    def parameters(self) -> Parameters:
        """Masses and stiffnesses that rods and bodies were described with."""
        return self._parameters

    def rest(self) -> Array:
        """Darboux vectors at rest `(bends, 3)`."""
        return _stack([np.asarray(rod.rest_curvature) for rod in self.rods], (3,))

    def fixed(self) -> tuple[Array, Array]:
        """Which points and which frames are fixed: 1 or 0."""
        points, frames = [], []
        for each in (*self.rods, *self.bodies):
            if isinstance(each, Rod):
                points.append(np.isin(np.arange(each.edges + 1), each.fixed_nodes))
                frames.append(np.isin(np.arange(each.edges), each.fixed_edges))
            else:
                points.append(np.array([each.fixed]))
                frames.append(np.array([each.fixed]))
        return np.concatenate(points).astype(float), np.concatenate(frames).astype(float)

    def model(self, parameters: Parameters) -> _core.RodModel:
        """The compiled model with these parameters."""
        if parameters is getattr(self, "_parameters", None) and hasattr(self, "_model"):
            return self._model
        p = self._checked(parameters)
        point_slots, frame_slots = self._slots()
        fixed_points, fixed_frames = self.fixed()
        made = _core.RodModel(
            self.timestep,
            self.gravity,
            p.mass,
            self._damping("drag", nodes=True),
            fixed_points.astype(np.int32),
            point_slots,
            moments(p.inertia),
            self._damping("spin_drag", nodes=False),
            fixed_frames.astype(np.int32),
            frame_slots,
            len(self.anchors),
        )
        self._add_rods(made, p)
        self._add_attachments(made)
        for cable in self.cables:
            made.add_cable(*self._place(*cable.path))
        for contact in self.contacts:
            shape = contact.shape.add_to(made)
            body = (-1, -1) if contact.body is None else self._find(contact.body)
            law = contact.radius, contact.stiffness, contact.friction, contact.slip
            for point in contact.points:
                made.add_contact(*self._place(point), shape, *body, *law)
        return made

    def _add_rods(self, model: _core.RodModel, p: Parameters) -> None:
        for rod in self.rods:
            point, frame = self._find(rod)
            length, i = np.asarray(rod.rest_lengths), np.arange(rod.edges)
            edges, bends = self.edges(rod), self.bends(rod)
            ids = np.stack([point + i, point + i + 1, frame + i], axis=1)
            damping = np.full(rod.edges, rod.stretch_damping)
            values = np.stack([length, p.stretch[edges], p.shear[edges], damping], axis=1)
            model.add_edges(_ints(ids), np.ascontiguousarray(values))
            ids = np.stack([frame + i[:-1], frame + i[1:]], axis=1)
            mean = 0.5 * (length[:-1] + length[1:])[:, None]
            values = np.hstack([mean, p.bend[bends], np.asarray(rod.bend_damping)])
            model.add_bends(_ints(ids), np.ascontiguousarray(values))

    def _add_attachments(self, model: _core.RodModel) -> None:
        target = 0
        for each in self.attachments:
            if isinstance(each, Weld):
                first = self._find(each.first.owner)[1] + each.first.frame
                second = -1
                if each.second is not None:
                    second = self._find(each.second.owner)[1] + each.second.frame
                axes = np.asarray(each.first_axes), np.asarray(each.second_axes)
                model.add_weld(first, second, *axes, each.stiffness)
            elif isinstance(each.second, Point):
                model.add_spring(*self._place(each.first, each.second), -1, each.stiffness)
            else:
                ids, values = self._place(each.first)
                ids = np.concatenate([ids, _ints([-1, -1, -1])])
                values = np.concatenate([values, [0, 0], np.asarray(each.second)])
                model.add_spring(ids, values, target, each.stiffness)
                target += 1

    def _springs(self) -> list[Attachment]:
        return [each for each in self.attachments if isinstance(each, Attachment)]

    def _place(self, *points: Point) -> tuple[NDArray[np.int32], Array]:
        """Material points as the core takes them."""
        ids, values = [], []
        for p in points:
            point, frame = self._find(p.owner)
            at = [point + i for i in p.points] + [-1] * (2 - len(p.points))
            ids += [*at, -1 if p.frame is None else frame + p.frame]
            values += [*p.weights, *[0.0] * (2 - len(p.weights)), *p.offset]
        return _ints(ids), np.array(values)

    def _find(self, owner: Rod | RigidBody) -> tuple[int, int]:
        found = self._first.get(id(owner))
        if found is None:
            raise ValueError(f"this {type(owner).__name__} is not in the world: {owner!r:.60}")
        return found

    def _slots(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Blocks of points and frames among the unknowns: along each rod in turn, then bodies."""
        points, frames, slot = [], [], 0
        for each in (*self.rods, *self.bodies):
            n = each.edges if isinstance(each, Rod) else 1
            nodes = n + 1 if isinstance(each, Rod) else 1
            points.append(slot + 2 * np.arange(nodes))
            frames.append(slot + 1 + 2 * np.arange(n))
            slot += nodes + n
        return _ints(np.concatenate(points)), _ints(np.concatenate(frames))

    def _gather(self, of_rods: str, of_bodies: str, shape: tuple[int, ...]) -> Array:
        parts = [np.asarray(getattr(rod, of_rods)) for rod in self.rods]
        parts += [np.asarray(getattr(body, of_bodies))[None] for body in self.bodies]
        return _stack(parts, shape)

    def _damping(self, name: str, *, nodes: bool) -> Array:
        parts = [
            np.full(rod.edges + 1 if nodes else rod.edges, getattr(rod, name)) for rod in self.rods
        ]
        return _stack([*parts, *[np.array([getattr(b, name)]) for b in self.bodies]], ())

    def _own_parameters(self) -> Parameters:
        lumped = [rod.lumped() for rod in self.rods]
        bodies = [(np.array([b.mass]), np.asarray(b.inertia)[None]) for b in self.bodies]
        return Parameters(
            _stack([mass for mass, _ in (*lumped, *bodies)], ()),
            _stack([inertia for _, inertia in (*lumped, *bodies)], (3, 3)),
            _stack([np.asarray(rod.stretch) for rod in self.rods], ()),
            _stack([np.asarray(rod.shear) for rod in self.rods], ()),
            _stack([np.asarray(rod.bend) for rod in self.rods], (3,)),
        )

    def _checked(self, p: Parameters) -> Parameters:
        mass = nonnegatives("mass", p.mass, (self.n_points,))
        if not (mass > 0).all():
            raise ValueError("mass must be positive")
        return Parameters(
            mass,
            inertias("inertia", p.inertia, (self.n_frames, 3, 3)),
            nonnegatives("stretch", p.stretch, (self.n_edges,)),
            nonnegatives("shear", p.shear, (self.n_edges,)),
            nonnegatives("bend", p.bend, (self.n_bends, 3)),
        )


def _all(name: str, given: Sequence[object], *types: type) -> list:  # type: ignore[type-arg]
    for each in given:
        if not isinstance(each, types):
            wanted = " or ".join(t.__name__ for t in types)
            raise TypeError(f"{name} must be of type {wanted}, got {type(each).__name__}")
    return list(given)


def _stack(parts: Sequence[Array], shape: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(np.concatenate([np.zeros((0, *shape)), *parts]))


def _ints(values: ArrayLike) -> NDArray[np.int32]:
    return np.ascontiguousarray(values, dtype=np.int32)
