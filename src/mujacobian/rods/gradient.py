"""The gradient of a scalar through a trajectory of a world, by the adjoint method (ROD-26)."""

from __future__ import annotations

from dataclasses import dataclass

from mujacobian._arguments import Array
from mujacobian.rods.state import Parameters, State


@dataclass(frozen=True)
class Gradient:
    """Derivatives of a scalar of a trajectory.

    state: with respect to the first state; rotations as matrices, or in tangent coordinates.
    forces, torques, tensions, rest, targets: like the inputs; None if the rollout was given none.
    params: with respect to masses and stiffnesses.
    norms: `(T + 1,)`, of the derivative with respect to the state and step that each step begins
        with, and the last: how far back the scalar is felt, and where gradients explode.
    """

    state: State
    forces: Array | None
    torques: Array | None
    tensions: Array | None
    rest: Array | None
    targets: Array | None
    params: Parameters
    norms: Array
