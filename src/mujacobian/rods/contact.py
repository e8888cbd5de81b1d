"""Contact of sampled points with shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mujacobian.errors import ArgumentError
from mujacobian.rods.body import RigidBody
from mujacobian.rods.description import instance, instances
from mujacobian.rods.point import Point
from mujacobian.rods.quantity import nonnegative, positive
from mujacobian.rods.shape import Shape


@dataclass(frozen=True, eq=False)
class Contact:
    """Spheres around points against a shape.

    The energy is stiffness/2 depth^2 per sphere that penetrates, stiffness in N/m. Friction takes
    the normal force and the normal from the beginning of the step and is
    friction * force * v / sqrt(|v|^2 + slip^2) with the sliding velocity v over the step. (ROD-24)

    points: of bodies and rods.
    shape: where they must not be, in the axes of `body` (about its centre of mass) or the world's.
    radius: m, of the spheres.
    slip: m/s, velocity at which friction goes over from viscous to dry.
    body: what the shape is fixed to; None: the world.
    """

    points: Sequence[Point]
    shape: Shape
    stiffness: float
    friction: float = 0
    radius: float = 0
    slip: float = 1e-3
    body: RigidBody | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "points", instances("points", self.points, Point))
        instance("shape", self.shape, Shape)
        if self.body is not None:
            instance("body", self.body, RigidBody)
        if any(p.owner is self.body for p in self.points):
            raise ArgumentError("points of a body cannot touch the shape that is fixed to it")
        for name in ("stiffness", "friction", "radius"):
            set_(self, name, nonnegative(name, getattr(self, name)))
        set_(self, "slip", positive("slip", self.slip))
