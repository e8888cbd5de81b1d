"""Attachments: springs between points and between frames, and cables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import shaped
from mujacobian.errors import ArgumentError
from mujacobian.rods.description import freeze, instance, instances
from mujacobian.rods.point import Frame, Point
from mujacobian.rods.quantity import nonnegative
from mujacobian.rods.rotation import rotations


@dataclass(frozen=True, eq=False)
class Attachment:
    """A spring of rest length zero between a point and another, or a place in the world.

    The energy is stiffness/2 |first - second|^2, stiffness in N/m. Places in the world are the
    anchors that `targets` of `rods.rollout` moves.
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
class Weld:
    """A torsion spring that holds a frame at another, or (second None) at axes in the world.

    The energy is stiffness (1 - cos angle) of the rotation between R_first first_axes and
    R_second second_axes; stiffness in N m.                                            (ROD-18)
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
    """A thread through points, straight between them, that slides in those between its ends.

    Its tension, N, is an input of `rods.rollout`; the energy is tension times length.
    """

    path: Sequence[Point]

    def __post_init__(self) -> None:
        path = instances("path", self.path, Point)
        if len(path) < 2:
            raise ArgumentError("path must be at least two points of bodies or rods")
        object.__setattr__(self, "path", path)
