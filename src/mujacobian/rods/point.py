"""Places on bodies and rods: material points and frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mujacobian.rods.body import RigidBody
    from mujacobian.rods.rod import Rod

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Point:
    """A material point: of a body, or of a rod at a node or beside an edge.

    Made by `RigidBody.at`, `Rod.node` and `Rod.beside`. It is the weighted sum of up to two of the
    owner's points plus an offset in the axes of one of its frames.
    """

    owner: RigidBody | Rod
    points: tuple[int, ...]
    weights: tuple[float, ...]
    frame: int | None
    offset: Array


@dataclass(frozen=True, eq=False)
class Frame:
    """Axes that turn with a body or with an edge of a rod: `RigidBody.frame`, `Rod.frame`."""

    owner: RigidBody | Rod
    frame: int
