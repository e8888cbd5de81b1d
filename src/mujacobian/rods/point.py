"""Places on bodies and rods: material points and frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from mujacobian._arguments import Array, shaped
from mujacobian.errors import ArgumentError, ArgumentTypeError
from mujacobian.rods.description import freeze, index

if TYPE_CHECKING:
    from mujacobian.rods.body import RigidBody
    from mujacobian.rods.rod import Rod


@dataclass(frozen=True, eq=False)
class Point:
    """A material point: of a body, or of a rod at a node or beside an edge.

    Made by `RigidBody.at`, `Rod.node` and `Rod.beside`. It is the weighted sum of up to two of the
    owner's points plus an offset in the axes of one of its frames, or in those of the world.
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
            raise ArgumentError(f"points must be one or two, got {len(self.points)}")
        set_(self, "weights", shaped("weights", self.weights, (len(self.points),)))
        if self.frame is not None:
            set_(self, "frame", index("frame", self.frame, frames))
        set_(self, "offset", shaped("offset", self.offset, (3,)))
        freeze(self)


@dataclass(frozen=True, eq=False)
class Frame:
    """Axes that turn with a body or with an edge of a rod: `RigidBody.frame`, `Rod.frame`."""

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
