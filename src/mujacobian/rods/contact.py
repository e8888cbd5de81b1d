"""Contact of sampled points with shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mujacobian.errors import ArgumentError
from mujacobian.rods.body import RigidBody
from mujacobian.rods.description import flag, instance, instances
from mujacobian.rods.point import Point
from mujacobian.rods.quantity import nonnegative, positive
from mujacobian.rods.shape import Shape


@dataclass(frozen=True, eq=False)
class Contact:
    """Contact of spheres, which surround material points, with a shape.

    The energy of a penetrating sphere is stiffness/2 depth^2. The friction force is
    friction * force * v / sqrt(|v|^2 + slip^2) with the sliding velocity v over the step (ROD-24).
    The normal and the normal force are those at the beginning of the step. Friction acts at the
    point of the sphere that touches the shape, so that spheres and round rods roll (ROD-42). This
    point rotates with the frame of the material point; at a node, with the edges beside it.

    Attributes:
      points: material points of bodies and rods.
      shape: solid that the spheres must not enter, in the axes of `body` with its center of mass as
        origin, or in world axes.
      stiffness: contact stiffness, N/m.
      friction: coefficient of friction; by default 0.
      radius: radius of the spheres, m; by default 0.
      slip: sliding velocity, m/s, at which friction changes from viscous to dry; by default 1e-3.
      body: body that the shape is fixed to; by default None, the world.
      rolling: whether friction acts at the touching point, the default. If False, it acts at the
        centers of the spheres, without a torque.

    Example:
      >>> from mujacobian import rods
      >>> ball = rods.RigidBody(mass=1, inertia=[1, 1, 1], position=[0, 0, 0.5])
      >>> floor = rods.Contact([ball.at([0, 0, 0])], rods.Plane([0, 0, 1]), 1e4, radius=0.1)
      >>> world = rods.World(timestep=0.01, bodies=[ball], contacts=[floor])
      >>> float(rods.rollout(world, steps=200).positions[-1, 0, 2].round(3))  # at rest
      0.099
    """

    points: Sequence[Point]
    shape: Shape
    stiffness: float
    friction: float = 0
    radius: float = 0
    slip: float = 1e-3
    body: RigidBody | None = None
    rolling: bool = True

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "points", instances("points", self.points, Point))
        instance("shape", self.shape, Shape)
        if self.body is not None:
            instance("body", self.body, RigidBody)
        if any(p.owner is self.body for p in self.points):
            raise ArgumentError("points of a body cannot touch a shape that is fixed to this body")
        for name in ("stiffness", "friction", "radius"):
            set_(self, name, nonnegative(name, getattr(self, name)))
        set_(self, "slip", positive("slip", self.slip))
        set_(self, "rolling", flag("rolling", self.rolling))
