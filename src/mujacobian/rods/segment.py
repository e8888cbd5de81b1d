"""Round segments of rods and bodies, and their contact with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mujacobian.errors import ArgumentError
from mujacobian.rods.description import instance, instances
from mujacobian.rods.point import Point
from mujacobian.rods.quantity import nonnegative, positive

if TYPE_CHECKING:
    from mujacobian.rods.body import RigidBody
    from mujacobian.rods.rod import Rod


@dataclass(frozen=True, eq=False)
class Segment:
    """All points within a radius of a straight line between two material points: a capsule.

    `Rod.segment` and `RigidBody.segment` make segments.

    Attributes:
      start: first end, a point of a body or a node of a rod.
      end: second end, a point of the same body or the next node of the rod.
      radius: radius, m.
    """

    start: Point
    end: Point
    radius: float

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            instance(name, getattr(self, name), Point)
        object.__setattr__(self, "radius", positive("radius", self.radius))
        first, second = self.start, self.end
        nodes = first.points[0], second.points[0]
        if first.owner is not second.owner:
            raise ArgumentError("start and end must be points of one rod or body")
        if len(first.points) != 1 or len(second.points) != 1 or first.frame != second.frame:
            raise ArgumentError("start and end must be nodes of a rod or points of a body")
        if first.frame is None and nodes[1] != (nodes[0] + 1) % first.owner.sizes[0]:
            raise ArgumentError(f"start and end must be the nodes of an edge, got nodes {nodes}")

    @property
    def owner(self) -> Rod | RigidBody:
        """The rod or body."""
        return self.start.owner

    @property
    def frame(self) -> int:
        """The index of the frame that the segment rotates with, among those of its owner."""
        return self.start.points[0] if self.start.frame is None else self.start.frame

    def span(self) -> tuple[float, float, float]:
        """Return the distances of both ends along a rod at rest, and the length if it is closed.

        They are zero for a body. An open rod has infinite length.
        """
        lengths = np.asarray(getattr(self.owner, "rest_lengths", np.zeros(self.frame + 1)))
        begin, length = lengths[: self.frame].sum(), lengths.sum()
        is_closed = getattr(self.owner, "closed", False)
        return begin, begin + lengths[self.frame], length if is_closed else np.inf


@dataclass(frozen=True, eq=False)
class SegmentContact:
    """Contact of round segments of rods and bodies with each other.

    The energy of two segments is stiffness/2 depth^2, where depth is the sum of the radii minus the
    distance. This distance is smooth, also where segments end and where they are parallel (ROD-45);
    it is too large by at most 2 % of the sum of the radii. Friction acts at the touching point, as
    in `Contact`.

    Segments of one body do not touch. Two segments of one rod can touch if the part of the rod
    between them is long enough for half a turn, pi/2 (r1 + r2) at rest. At a node, both adjacent
    edges touch, so the contact is up to twice as stiff there. Two center lines that intersect have
    no direction that separates them. Therefore a segment must move by less than a radius per step.

    Attributes:
      segments: segments, such as `rod.segments`.
      stiffness: contact stiffness of two segments, N/m.
      friction: coefficient of friction; by default 0.
      slip: sliding velocity, m/s, at which friction changes from viscous to dry; by default 1e-3.
      others: other segments; if given, only a segment of each group can touch. By default, all
        segments can touch each other.

    Example:
      >>> from mujacobian import rods
      >>> bars = [rods.RigidBody(mass=1, inertia=[1, 1, 1], position=[0, 0, 0.3 * k], fixed=k == 0)
      ...         for k in range(2)]
      >>> first = bars[0].segment([-1, 0, 0], [1, 0, 0], radius=0.1)
      >>> second = bars[1].segment([0, -1, 0], [0, 1, 0], radius=0.1)
      >>> contact = rods.SegmentContact([first, second], stiffness=1e4)
      >>> world = rods.World(timestep=0.01, bodies=bars, contacts=[contact])
      >>> float(rods.rollout(world, steps=200).positions[-1, 1, 2].round(3))  # at rest
      0.199
    """

    segments: Sequence[Segment]
    stiffness: float
    friction: float = 0
    slip: float = 1e-3
    others: Sequence[Segment] | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "segments", instances("segments", self.segments, Segment))
        if self.others is not None:
            set_(self, "others", instances("others", self.others, Segment))
        if not self.all_segments:
            raise ArgumentError("segments must have at least one segment")
        for name in ("stiffness", "friction"):
            set_(self, name, nonnegative(name, getattr(self, name)))
        set_(self, "slip", positive("slip", self.slip))

    @property
    def all_segments(self) -> tuple[Segment, ...]:
        """The segments, followed by the others."""
        return (*self.segments, *(self.others or ()))
