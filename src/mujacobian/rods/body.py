"""Rigid bodies."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers, shaped
from mujacobian.errors import ArgumentError
from mujacobian.rods.description import flag, freeze
from mujacobian.rods.point import Frame, Point
from mujacobian.rods.quantity import nonnegative, positive
from mujacobian.rods.rotation import rotations


@dataclass(frozen=True, eq=False)
class RigidBody:
    """A rigid body. Its position is that of its centre of mass.

    mass: kg.
    inertia: `(3,)` or `(3, 3)`, kg m^2, about the centre of mass in the body's axes.
    position, rotation: the pose a simulation starts from; world axes.
    velocity, angular_velocity: m/s and rad/s at the start; world axes.
    drag, spin_drag: damping forces -drag v, N s/m, and torques -spin_drag w, N m s.
    fixed: whether it stays where it is.

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
        """Numbers of points and of frames: one each."""
        return 1, 1

    def at(self, offset: ArrayLike = (0, 0, 0)) -> Point:
        """The material point at this offset from the centre of mass, in the body's axes."""
        return Point(self, (0,), (1.0,), 0, offset)

    @property
    def frame(self) -> Frame:
        """The body's axes."""
        return Frame(self, 0)


def inertias(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """`values` as inertia matrices `(..., 3, 3)` that some distribution of mass has."""
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
            f"{name} must be positive definite, its least moment is {principal.min()}"
        )
    if (principal[..., 2] > (principal[..., 0] + principal[..., 1]) * (1 + 1e-9)).any():
        raise ArgumentError(
            f"no body has this {name}: a principal moment exceeds the other two's sum"
        )
    return made


def moments(inertia: Array) -> Array:
    """Integrals of density times r r^T, from inertia matrices I: tr(I)/2 1 - I. (ROD-5)."""
    half = 0.5 * np.trace(inertia, axis1=-2, axis2=-1)[..., None, None]
    made: Array = half * np.eye(3) - inertia
    return made
