"""Gradient of a scalar with respect to the inputs of a rollout, by the adjoint method (ROD-26)."""

from __future__ import annotations

from dataclasses import dataclass

from mujacobian._arguments import Array
from mujacobian._summary import summarize
from mujacobian.rods.state import Parameters, State


@dataclass(frozen=True, repr=False)
class Gradient:
    """Derivatives of a scalar function of a trajectory.

    Attributes:
      state: derivatives with respect to the first state; those of rotations are matrices, or
        vectors in tangent coordinates.
      forces: derivatives with respect to the forces, in their shape, or None if the rollout had
        none.
      torques: the same for the torques.
      tensions: the same for the tensions of cables.
      rest: the same for the rest curvatures.
      targets: the same for the positions of attachments.
      params: derivatives with respect to the parameters, such as masses and stiffnesses.
      norms: `(T + 1,)`, norms of the derivative with respect to the state before each step and the
        change that led to it, and of the last one. They show where a gradient vanishes or explodes.
    """

    state: State
    forces: Array | None
    torques: Array | None
    tensions: Array | None
    rest: Array | None
    targets: Array | None
    params: Parameters
    norms: Array

    __repr__ = summarize
