"""Contacts of Newton's collision pipeline, which are inputs of a step, and their derivatives.

Newton computes the distance and the position of a contact from `body_q` and from points that are
fixed to the two bodies. The normal is a vector in the world. The equations are in
docs/derivations/newton.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import newton
import numpy as np
import warp as wp

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian._rotation import cross
from mujacobian.newton.internals import Indices, contact_slots

# the arrays of a newton.Contacts that can receive gradients
POINTS = ("rigid_contact_point0", "rigid_contact_point1")
OFFSETS = ("rigid_contact_offset0", "rigid_contact_offset1")
MARGINS = ("rigid_contact_margin0", "rigid_contact_margin1")
SHAPES = ("rigid_contact_shape0", "rigid_contact_shape1")
NORMAL = "rigid_contact_normal"
PROPERTIES = ("rigid_contact_stiffness", "rigid_contact_damping", "rigid_contact_friction")
_CONTACT = (
    "dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp"
)  # fmt: skip
_IDENTITY = np.array([0.0, 0, 0, 0, 0, 0, 1])


@dataclass(frozen=True)
class ContactCotangents:
    """Cotangents of the numbers of contacts, one row per contact."""

    distance: Array
    position: Array
    turn: Array  # of a rotation of the frame, about the axes of the world
    friction: Array
    solref: Array
    solreffriction: Array

    @classmethod
    def split(cls, numbers: Array) -> ContactCotangents:
        """Return the parts of the core's cotangents; solimp does not depend on arrays."""
        ends = np.cumsum([1, 3, 3, 5, 2, 2])
        distance, *rest, _solimp = np.split(numbers, ends, axis=-1)
        return cls(distance[:, 0], *rest)


class GivenContacts:
    """The contacts of one step that exert forces, sorted by world."""

    def __init__(self, solver: newton.solvers.SolverMuJoCo, contacts: newton.Contacts) -> None:
        """Read the contacts that the last step of the solver used."""
        found = solver.mjw_data.contact
        slot = contact_slots(solver, contacts.rigid_contact_max)
        row = np.flatnonzero(slot >= 0)
        near = (found.dist.numpy() < found.includemargin.numpy())[slot[row]]
        row = row[near]
        row = row[np.argsort(found.worldid.numpy()[slot[row]], kind="stable")]
        slot = slot[row]
        self.row = row  # index in the arrays of `contacts`
        self.world = found.worldid.numpy()[slot].astype(np.intp)
        worlds = np.arange(solver.mjw_data.nworld + 1)
        self.first = np.searchsorted(self.world, worlds).astype(np.int32)
        dim, geom = found.dim.numpy()[slot], found.geom.numpy()[slot]
        self.geoms = np.ascontiguousarray(np.column_stack([dim, geom]).astype(np.int32))
        self.shapes = np.stack([getattr(contacts, name).numpy()[row] for name in SHAPES], axis=1)
        numbers = {name: getattr(found, name).numpy()[slot].astype(np.float64) for name in _CONTACT}

        # the arrays of the step, and their values
        self.arrays: dict[str, wp.array] = {
            name: array
            for name in (*POINTS, *OFFSETS, *MARGINS, NORMAL, *PROPERTIES)
            if (array := getattr(contacts, name)) is not None
        }
        self.values = {
            name: array.numpy()[row].astype(np.float64) for name, array in self.arrays.items()
        }
        self._frame()
        numbers["frame"] = self.frame
        columns = [numbers[name].reshape(len(row), math.prod(numbers[name].shape[1:]))
                   for name in _CONTACT]  # fmt: skip
        self.numbers = np.concatenate(columns, axis=1)
        self.solref, self.solreffriction = numbers["solref"], numbers["solreffriction"]
        self.solimp = numbers["solimp"]

    def _frame(self) -> None:
        """Compute the frames as Newton does, in double precision."""
        normal = self.values[NORMAL]
        self.length = np.linalg.norm(normal, axis=-1, keepdims=True)
        n = normal / self.length
        along_y = np.abs(n[:, 1:2]) < 0.5
        hint = np.where(along_y, [0.0, 1, 0], [0.0, 0, 1])
        self.along = (n * hint).sum(axis=-1, keepdims=True)  # n . hint
        tangent = hint - self.along * n
        self.hint_length = np.linalg.norm(tangent, axis=-1, keepdims=True)
        tangent /= self.hint_length
        self.frame = np.stack([n, tangent, cross(n, tangent)], axis=1)

    def cotangents(self) -> Array:
        """Return an array for the core's cotangents of the contacts."""
        return np.zeros((len(self.row), _core.CONTACT_NUMBERS))

    def pull(
        self, d: ContactCotangents, body_q: Array, bodies: Indices, margin: Array
    ) -> tuple[dict[str, Array], Array]:
        """Pull cotangents of distances, positions and frames back to Newton's arrays (NWT-12).

        body_q: poses of all bodies at the start of the step.
        bodies: the body of each shape, -1 for the world.
        margin: margin of each shape.
        The results are cotangents of arrays of the contacts, one row per contact, and of body_q.
        """
        normal = self.values[NORMAL]
        made: dict[str, Array] = {}
        d_bodies = np.zeros_like(body_q)
        ends = []
        for side in range(2):
            shape = self.shapes[:, side]
            body = bodies[shape]
            pose = np.where((body >= 0)[:, None], body_q[body], _IDENTITY)
            q = pose[:, 3:]
            point, offset = self.values[POINTS[side]], self.values[OFFSETS[side]]
            # Newton removes the margin of the shape from the offset
            thick = self.values[MARGINS[side]]
            safe = np.where(thick != 0, thick, 1)
            scale = np.where(thick != 0, (thick - margin[shape]) / safe, 0)
            surface = point + scale[:, None] * offset
            ends.append(_rotate(q, point) + pose[:, :3])

            d_point = (1 if side else -1) * d.distance[:, None] * normal
            d_surface = 0.5 * d.position
            d_q = _pull_rotation(q, point, d_point) + _pull_rotation(q, surface, d_surface)
            local, local_surface = _rotate_back(q, d_point), _rotate_back(q, d_surface)
            made[POINTS[side]] = local + local_surface
            made[OFFSETS[side]] = scale[:, None] * local_surface
            slope = np.where(thick != 0, margin[shape] / safe**2, 0)
            along = (local_surface * offset).sum(axis=-1)
            made[MARGINS[side]] = slope * along - d.distance
            moved = np.concatenate([d_point + d_surface, d_q], axis=-1)
            np.add.at(d_bodies, body[body >= 0], moved[body >= 0])
        made[NORMAL] = d.distance[:, None] * (ends[1] - ends[0]) + self._pull_frame(d.turn)
        return made, d_bodies

    def _pull_frame(self, turn: Array) -> Array:
        """Pull cotangents of rotations of the frame back to the normal, which Newton normalizes.

        The frame turns by `n x dn - (n . h) (dn . t2) / |h - (n . h) n| n`, with h the axis of the
        world that directs the first tangent.
        """
        n, t2 = self.frame[:, 0], self.frame[:, 2]
        spin = (turn * n).sum(axis=-1, keepdims=True) * self.along / self.hint_length
        d_n = cross(turn, n) - spin * t2
        across: Array = (d_n - (d_n * n).sum(axis=-1, keepdims=True) * n) / self.length
        return across


def add_rows(array: wp.array, rows: Indices, gradient: Array) -> None:
    """Add to rows of the gradient of an array, if it has one."""
    if array.requires_grad and len(rows):
        values = array.grad.numpy().copy()
        np.add.at(values, rows, gradient.astype(values.dtype))
        array.grad.assign(values)


def _rotate(q: Array, x: Array) -> Array:
    """Rotate vectors by quaternions (x, y, z, w) with Warp's formula, which does not normalize."""
    u, w = q[:, :3], q[:, 3:]
    inner = (u * x).sum(axis=-1, keepdims=True)
    turned: Array = x * (2 * w * w - 1) + 2 * w * cross(u, x) + 2 * inner * u
    return turned


def _rotate_back(q: Array, g: Array) -> Array:
    """Return the transpose of `_rotate` with respect to the vector."""
    return _rotate(q * [-1.0, -1, -1, 1], g)


def _pull_rotation(q: Array, x: Array, g: Array) -> Array:
    """Return the transpose of `_rotate` with respect to the quaternion."""
    u, w = q[:, :3], q[:, 3:]
    inner = (u * x).sum(axis=-1, keepdims=True)
    d_u = 2 * w * cross(x, g) + 2 * inner * g + 2 * (u * g).sum(axis=-1, keepdims=True) * x
    d_w = (g * (4 * w * x + 2 * cross(u, x))).sum(axis=-1, keepdims=True)
    return np.concatenate([d_u, d_w], axis=-1)
