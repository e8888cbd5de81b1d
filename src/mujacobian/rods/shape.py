"""Solids for contacts, by their signed distance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import numbers, shaped
from mujacobian.errors import ArgumentError
from mujacobian.rods.description import freeze, instance, instances
from mujacobian.rods.quantity import positive
from mujacobian.rods.rotation import rotations


class Shape(ABC):
    """A solid. Points in it have negative distance."""

    @abstractmethod
    def add_to(self, model: _core.RodModel) -> int:
        """The number of this shape in the model, which it is added to."""


@dataclass(frozen=True, eq=False)
class Plane(Shape):
    """The half-space normal . p < offset."""

    normal: ArrayLike = (0, 0, 1)
    offset: float = 0

    def __post_init__(self) -> None:
        n = shaped("normal", self.normal, (3,))
        if not np.linalg.norm(n) > 0:
            raise ArgumentError("normal must not be zero")
        object.__setattr__(self, "normal", n / np.linalg.norm(n))
        object.__setattr__(self, "offset", float(shaped("offset", self.offset, ())))
        freeze(self)

    def add_to(self, model: _core.RodModel) -> int:  # noqa: D102
        return model.add_plane(np.asarray(self.normal), self.offset)


@dataclass(frozen=True, eq=False)
class Tube(Shape):
    """All points within `radius` of the polyline through `vertices` `(n, 3)`: sample curves."""

    vertices: ArrayLike
    radius: float

    def __post_init__(self) -> None:
        x = numbers("vertices", self.vertices)
        if x.ndim != 2 or x.shape[1] != 3 or len(x) < 1:
            raise ArgumentError(f"vertices must have shape (n, 3), got {x.shape}")
        if len(x) > 1 and not np.linalg.norm(np.diff(x, axis=0), axis=1).min() > 0:
            raise ArgumentError("vertices that follow each other must differ")
        object.__setattr__(self, "vertices", x)
        object.__setattr__(self, "radius", positive("radius", self.radius))
        freeze(self)

    def add_to(self, model: _core.RodModel) -> int:  # noqa: D102
        return model.add_tube(np.asarray(self.vertices), self.radius)


def Sphere(radius: float, centre: ArrayLike = (0, 0, 0)) -> Tube:
    """The ball of this radius."""
    return Tube([shaped("centre", centre, (3,))], radius)


def Capsule(start: ArrayLike, end: ArrayLike, radius: float) -> Tube:
    """All points within `radius` of a segment."""
    return Tube([shaped("start", start, (3,)), shaped("end", end, (3,))], radius)


@dataclass(frozen=True, eq=False)
class Box(Shape):
    """A box by half its edge lengths, its centre, and its axes as columns."""

    half: ArrayLike
    centre: ArrayLike = (0, 0, 0)
    axes: ArrayLike = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        half = shaped("half", self.half, (3,))
        if half.min() <= 0:
            raise ArgumentError(f"half must be positive, got {half}")
        object.__setattr__(self, "half", half)
        object.__setattr__(self, "centre", shaped("centre", self.centre, (3,)))
        object.__setattr__(self, "axes", rotations("axes", self.axes, (3, 3)))
        freeze(self)

    def add_to(self, model: _core.RodModel) -> int:  # noqa: D102
        half, centre, axes = map(np.asarray, (self.half, self.centre, self.axes))
        return model.add_box(half, centre, axes)


@dataclass(frozen=True, eq=False)
class Union(Shape):
    """All points of any of the shapes."""

    parts: Sequence[Shape]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", instances("parts", self.parts, Shape))
        if not self.parts:
            raise ArgumentError("parts must be one shape or more")

    def add_to(self, model: _core.RodModel) -> int:  # noqa: D102
        return model.add_union([part.add_to(model) for part in self.parts])


@dataclass(frozen=True, eq=False)
class Outside(Shape):
    """All that a shape is not: what touches it is kept inside the shape, as in a hollow tube."""

    shape: Shape

    def __post_init__(self) -> None:
        instance("shape", self.shape, Shape)

    def add_to(self, model: _core.RodModel) -> int:  # noqa: D102
        return model.add_complement(self.shape.add_to(model))
