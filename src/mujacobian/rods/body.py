"""Rigid bodies."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers, shaped
from mujacobian.errors import ArgumentError
from mujacobian.rods.description import Description, flag, freeze
from mujacobian.rods.point import Frame, Point
from mujacobian.rods.quantity import nonnegative, positive
from mujacobian.rods.rotation import rotations
from mujacobian.rods.segment import Segment


@dataclass(frozen=True, eq=False)
class RigidBody(Description):
    """A rigid body. Its position is the position of its center of mass.

    Attributes:
      mass: mass, kg.
      inertia: `(3,)` principal moments or `(3, 3)` matrix, kg m^2, about the center of mass in the
        axes of the body.
      position: `(3,)`, m, initial position in the world; by default the origin.
      rotation: `(3, 3)`, initial rotation matrix from body axes to world axes; by default the
        identity.
      velocity: `(3,)`, m/s, initial velocity in world axes; by default zero.
      angular_velocity: `(3,)`, rad/s, initial angular velocity in world axes; by default zero.
      drag: coefficient of the damping force -drag v, N s/m; by default 0.
      spin_drag: coefficient of the damping torque -spin_drag w, N m s; by default 0.
      fixed: whether the body keeps its initial pose; by default False.

    Example:
      >>> from mujacobian import rods
      >>> die = rods.RigidBody(mass=0.1, inertia=[1e-4] * 3, position=[0, 0, 1])
      >>> rods.World(timestep=0.01, bodies=[die]).state().positions
      array([[0., 0., 1.]])
    """

    mass: float
    inertia: ArrayLike
    position: ArrayLike = (0, 0, 0)
    rotation: ArrayLike = field(default_factory=lambda: np.eye(3))
    velocity: ArrayLike = (0, 0, 0)
    angular_velocity: ArrayLike = (0, 0, 0)
    drag: float = 0
    spin_drag: float = 0
    fixed: bool = False

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "mass", positive("mass", self.mass))
        given = numbers("inertia", self.inertia)
        matrix = np.diag(given) if given.shape == (3,) else given
        set_(self, "inertia", inertias("inertia", matrix, (3, 3)))
        for name in ("position", "velocity", "angular_velocity"):
            set_(self, name, shaped(name, getattr(self, name), (3,)))
        set_(self, "rotation", rotations("rotation", self.rotation, (3, 3)))
        for name in ("drag", "spin_drag"):
            set_(self, name, nonnegative(name, getattr(self, name)))
        set_(self, "fixed", flag("fixed", self.fixed))
        if self.fixed and (np.any(self.velocity) or np.any(self.angular_velocity)):
            raise ArgumentError("a fixed body must not have a velocity")
        freeze(self)

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of points and frames: one each."""
        return 1, 1

    def at(self, offset: ArrayLike = (0, 0, 0)) -> Point:
        """Return the material point at an offset, m, from the center of mass, in body axes."""
        return Point(self, (0,), (1.0,), 0, offset)

    def segment(self, start: ArrayLike, end: ArrayLike, radius: float) -> Segment:
        """Return the capsule between two offsets, m, for contact with other segments."""
        return Segment(self.at(start), self.at(end), radius)

    @property
    def frame(self) -> Frame:
        """The body's axes."""
        return Frame(self, 0)


def inertias(name: str, values: ArrayLike, shape: tuple[int, ...], *, alone: bool = True) -> Array:
    """Return `values` as inertia matrices `(..., 3, 3)`, or raise if they are not physical.

    If `alone` is False, other masses have a part of the inertia, as the nodes of rods have. Then
    the principal moments need not satisfy the triangle inequality.
    """
    given = shaped(name, values, shape)
    if given.size == 0:
        return given
    scale = np.abs(given).max()
    if np.abs(given - np.swapaxes(given, -1, -2)).max() > 1e-9 * scale:
        raise ArgumentError(f"{name} must be symmetric")
    made: Array = 0.5 * (given + np.swapaxes(given, -1, -2))
    principal = np.linalg.eigvalsh(made)
    if principal.min() <= 0:
        raise ArgumentError(
            f"{name} must be positive definite, its smallest moment is {principal.min()}"
        )
    most = (principal[..., 0] + principal[..., 1]) * (1 + 1e-9)
    if alone and (principal[..., 2] > most).any():
        raise ArgumentError(
            f"no body has this {name}: a principal moment exceeds the sum of the other two"
        )
    return made


def moments(inertia: Array) -> Array:
    """Return the integrals of density times r r^T: tr(I)/2 1 - I for inertia matrices I (ROD-5)."""
    half = 0.5 * np.trace(inertia, axis1=-2, axis2=-1)[..., None, None]
    made: Array = half * np.eye(3) - inertia
    return made
