"""Springs between points, torsion springs between frames, and cables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import shaped
from mujacobian.errors import ArgumentError
from mujacobian.rods.description import Description, freeze, instance, instances
from mujacobian.rods.point import Frame, Point
from mujacobian.rods.quantity import nonnegative
from mujacobian.rods.rotation import rotations


@dataclass(frozen=True, eq=False)
class Attachment(Description):
    """A spring of rest length zero between two points, or between a point and a fixed position.

    The energy is stiffness/2 |first - second|^2.

    Attributes:
      first: material point of a body or rod, from `RigidBody.at`, `Rod.node` or `Rod.beside`.
      second: another material point; or `(3,)`, m, a position in the world. Such a position is an
        anchor, which the argument `targets` of `rods.rollout` moves.
      stiffness: spring constant, N/m.
    """

    first: Point
    second: Point | ArrayLike
    stiffness: float

    def __post_init__(self) -> None:
        instance("first", self.first, Point)
        object.__setattr__(self, "stiffness", nonnegative("stiffness", self.stiffness))
        if not isinstance(self.second, Point):
            object.__setattr__(self, "second", shaped("second", self.second, (3,)))
        freeze(self)


@dataclass(frozen=True, eq=False)
class Weld(Description):
    """A torsion spring that aligns two frames, or a frame with axes that are fixed in the world.

    The energy is stiffness (1 - cos angle) (ROD-18). The angle is that of the rotation between
    R_first first_axes and R_second second_axes.

    Attributes:
      first: frame of a body or of an edge, from `RigidBody.frame` or `Rod.frame`.
      second: another frame, or None for the axes of the world.
      stiffness: torsion constant, N m.
      first_axes: `(3, 3)` rotation matrix in the axes of `first`; by default the identity.
      second_axes: `(3, 3)` rotation matrix in the axes of `second`; by default the identity.
    """

    first: Frame
    second: Frame | None
    stiffness: float
    first_axes: ArrayLike = field(default_factory=lambda: np.eye(3))
    second_axes: ArrayLike = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        instance("first", self.first, Frame)
        if self.second is not None:
            instance("second", self.second, Frame)
        object.__setattr__(self, "stiffness", nonnegative("stiffness", self.stiffness))
        for name in ("first_axes", "second_axes"):
            object.__setattr__(self, name, rotations(name, getattr(self, name), (3, 3)))
        freeze(self)


@dataclass(frozen=True, eq=False)
class Cable:
    """A thread that is straight between consecutive points and slides through the inner ones.

    The energy is tension times length. The argument `tensions` of `rods.rollout` gives the tension
    in N.

    Attributes:
      path: at least two material points of bodies or rods.
    """

    path: Sequence[Point]

    def __post_init__(self) -> None:
        path = instances("path", self.path, Point)
        if len(path) < 2:
            raise ArgumentError("path must have at least two points of bodies or rods")
        object.__setattr__(self, "path", path)
