"""Material points and frames of bodies and rods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from mujacobian._arguments import Array, shaped
from mujacobian.errors import ArgumentError, ArgumentTypeError
from mujacobian.rods.description import Description, freeze, index

if TYPE_CHECKING:
    from mujacobian.rods.body import RigidBody
    from mujacobian.rods.rod import Rod


@dataclass(frozen=True, eq=False)
class Point(Description):
    """A material point of a body, or of a rod at a node or beside an edge.

    `RigidBody.at`, `Rod.node` and `Rod.beside` make such points. The position is a weighted sum of
    one or two points of the owner plus an offset in the axes of a frame or of the world.

    Attributes:
      owner: body or rod.
      points: indices of one or two points of the owner.
      weights: weights of these points.
      frame: index of the owner's frame in which `offset` is given; None for world axes.
      offset: `(3,)`, m.
    """

    owner: RigidBody | Rod
    points: tuple[int, ...]
    weights: Sequence[float] | Array
    frame: int | None
    offset: ArrayLike

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        points, frames = _sizes(self.owner)
        set_(self, "points", tuple(index("points", i, points) for i in self.points))
        if len(self.points) not in (1, 2):
            raise ArgumentError(f"points must have one or two entries, got {len(self.points)}")
        set_(self, "weights", shaped("weights", self.weights, (len(self.points),)))
        if self.frame is not None:
            set_(self, "frame", index("frame", self.frame, frames))
        set_(self, "offset", shaped("offset", self.offset, (3,)))
        freeze(self)


@dataclass(frozen=True, eq=False)
class Frame:
    """Axes that rotate with a body or with an edge of a rod.

    `RigidBody.frame` and `Rod.frame` make frames.

    Attributes:
      owner: body or rod.
      frame: index of the frame among those of the owner.
    """

    owner: RigidBody | Rod
    frame: int

    def __post_init__(self) -> None:
        _, frames = _sizes(self.owner)
        object.__setattr__(self, "frame", index("frame", self.frame, frames))


def _sizes(owner: RigidBody | Rod) -> tuple[int, int]:
    try:
        return owner.sizes
    except AttributeError:
        raise ArgumentTypeError(
            f"owner must be a RigidBody or a Rod, got {type(owner).__name__}"
        ) from None
