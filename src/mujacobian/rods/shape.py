"""Solids for contacts, defined by their signed distance."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, numbers, shaped
from mujacobian.errors import ArgumentError, ArgumentIndexError, ArgumentTypeError
from mujacobian.rods.description import Description, accept_former, freeze, instance, instances
from mujacobian.rods.quantity import positive
from mujacobian.rods.rotation import rotations

LARGEST_GRID = 10_000_000  # cells of a box that is sampled


class Shape(Description, ABC):
    """A solid. Points inside it have a negative distance.

    A class of your own can combine the shapes of this module: its `add_to` returns what their
    `add_to` has returned. The core has no other shapes.
    """

    @abstractmethod
    def add_to(self, model: _core.RodModel) -> int:
        """Add this shape to the model and return its index there."""


def added(shape: Shape, model: _core.RodModel) -> int:
    """Add a shape to the model and return its index, or raise if its class returns none."""
    index, kind = shape.add_to(model), type(shape).__name__
    if not isinstance(index, int):
        raise ArgumentTypeError(
            f"{kind}.add_to must return the index of a shape in the model, got "
            f"{type(index).__name__}"
        )
    if not 0 <= index < model.shapes():
        raise ArgumentIndexError(
            f"{kind}.add_to must return what add_to of another shape has returned, got {index}, "
            f"but the model has {model.shapes()} shapes"
        )
    return index


@dataclass(frozen=True, eq=False)
class Plane(Shape):
    """The half-space normal . p < offset.

    Attributes:
      normal: `(3,)`, direction out of the solid, which is normalized; by default +z.
      offset: distance of the surface from the origin along the unit normal, m; by default 0.
    """

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
    """All points within a radius of a polyline.

    A curved tube is a polyline with many vertices.

    Attributes:
      vertices: `(n, 3)`, m, with n >= 1; consecutive vertices differ.
      radius: radius of the tube, m.
    """

    vertices: ArrayLike
    radius: float

    def __post_init__(self) -> None:
        x = numbers("vertices", self.vertices)
        if x.ndim != 2 or x.shape[1] != 3 or len(x) < 1:
            raise ArgumentError(f"vertices must have shape (n, 3), got {x.shape}")
        if len(x) > 1 and not np.linalg.norm(np.diff(x, axis=0), axis=1).min() > 0:
            raise ArgumentError("consecutive vertices must differ")
        object.__setattr__(self, "vertices", x)
        object.__setattr__(self, "radius", positive("radius", self.radius))
        freeze(self)

    def add_to(self, model: _core.RodModel) -> int:  # noqa: D102
        return model.add_tube(np.asarray(self.vertices), self.radius)


@accept_former("centre", "center")
def Sphere(radius: float, center: ArrayLike = (0, 0, 0)) -> Tube:
    """Return the ball with this radius and center `(3,)`, both in m."""
    return Tube([shaped("center", center, (3,))], radius)


def Capsule(start: ArrayLike, end: ArrayLike, radius: float) -> Tube:
    """Return all points within a radius of the segment from `start` to `end`, `(3,)`; in m."""
    return Tube([shaped("start", start, (3,)), shaped("end", end, (3,))], radius)


@dataclass(frozen=True, eq=False)
class Box(Shape):
    """A box.

    Attributes:
      half: `(3,)`, m, half of the edge lengths.
      center: `(3,)`, m; by default the origin.
      axes: `(3, 3)` rotation matrix whose columns are the directions of the edges; by default the
        identity.
    """

    half: ArrayLike
    center: ArrayLike = (0, 0, 0)
    axes: ArrayLike = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        half = shaped("half", self.half, (3,))
        if half.min() <= 0:
            raise ArgumentError(f"half must be positive, got {half}")
        object.__setattr__(self, "half", half)
        object.__setattr__(self, "center", shaped("center", self.center, (3,)))
        object.__setattr__(self, "axes", rotations("axes", self.axes, (3, 3)))
        freeze(self)

    @property
    def centre(self) -> ArrayLike:
        """The former spelling of `center`, which is deprecated."""
        warnings.warn("centre is now center", DeprecationWarning, stacklevel=2)
        return self.center

    def samples(self, spacing: float) -> Array:
        """Return points on the surface, `(m, 3)`, m, for contacts of a body of this shape.

        They form a grid on each face, whose points are at most `spacing` apart along the edges. The
        edges and corners of the box have points, too. If the spacing is at most half of the width
        of the shape that the body touches, this shape cannot pass between the points.
        """
        apart, half = positive("spacing", spacing), np.asarray(self.half)
        counts = np.maximum(np.ceil(2 * half / apart), 1)
        if counts.prod() > LARGEST_GRID:
            raise ArgumentError(f"spacing {apart} is too small for a box of half {half}")
        sides = [np.linspace(-1, 1, int(n) + 1) for n in counts]
        grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 3)
        local = half * grid[np.abs(grid).max(axis=1) == 1]
        made: Array = local @ np.asarray(self.axes).T + self.center
        return made

    def add_to(self, model: _core.RodModel) -> int:  # noqa: D102
        half, center, axes = map(np.asarray, (self.half, self.center, self.axes))
        return model.add_box(half, center, axes)


# the former spelling of the keyword is deprecated
Box.__init__ = accept_former("centre", "center")(Box.__init__)  # type: ignore[method-assign]


@dataclass(frozen=True, eq=False)
class Union(Shape):
    """All points that are in at least one of the shapes.

    Attributes:
      parts: one shape or more.
    """

    parts: Sequence[Shape]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", instances("parts", self.parts, Shape))
        if not self.parts:
            raise ArgumentError("parts must have at least one shape")

    def add_to(self, model: _core.RodModel) -> int:  # noqa: D102
        return model.add_union([added(part, model) for part in self.parts])


@dataclass(frozen=True, eq=False)
class Outside(Shape):
    """All points outside a shape: its contacts keep points inside the shape, as in a hollow tube.

    Attributes:
      shape: solid whose complement this is.
    """

    shape: Shape

    def __post_init__(self) -> None:
        instance("shape", self.shape, Shape)

    def add_to(self, model: _core.RodModel) -> int:  # noqa: D102
        return model.add_complement(added(self.shape, model))
