"""States, parameters and inputs of a world."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mujacobian._arguments import Array
from mujacobian._summary import summarize


@dataclass(frozen=True, repr=False)
class State:
    """Initial state in world axes, or the derivatives of a scalar with respect to it.

    Attributes:
      positions: `(points, 3)`, m, of the nodes of rods and the centers of mass of bodies.
      rotations: `(frames, 3, 3)`, of the edges of rods and of bodies. Derivatives are matrices in
        the tangent space at R, or vectors `(frames, 3)` in tangent coordinates t: R becomes exp(t)
        R.
      velocities: `(points, 3)`, m/s.
      angular_velocities: `(frames, 3)`, rad/s.
    """

    positions: Array
    rotations: Array
    velocities: Array
    angular_velocities: Array

    __repr__ = summarize


@dataclass(frozen=True, repr=False)
class Parameters:
    """Differentiable parameters of a world, or the derivatives of a scalar with respect to them.

    Attributes:
      mass: `(points,)`, kg.
      inertia: `(frames, 3, 3)`, kg m^2, in the axes of each frame. Derivatives are symmetric.
      length: `(edges,)`, m, rest lengths. Masses, inertias and rest curvatures do not depend on
        them.
      stretch: `(edges,)`, N.
      shear: `(edges,)`, N.
      bend: `(bends, 3)`, N m^2.
      stretch_damping: `(edges,)`, N s.
      bend_damping: `(bends, 3)`, N m^2 s.
      drag: `(points,)`, N s/m.
      spin_drag: `(frames,)`, N m s.
      attachment: `(attachments,)`, stiffnesses, N/m, or N m for welds.
      contact: `(contacts,)`, stiffnesses, N/m.
      friction: `(contacts,)`, coefficients of friction.
    """

    mass: Array
    inertia: Array
    length: Array
    stretch: Array
    shear: Array
    bend: Array
    stretch_damping: Array
    bend_damping: Array
    drag: Array
    spin_drag: Array
    attachment: Array
    contact: Array
    friction: Array

    __repr__ = summarize


@dataclass(frozen=True, repr=False)
class Inputs:
    """Inputs of all steps, or the derivatives of a scalar with respect to them; None if not given.

    Attributes:
      forces: `(T, points, 3)`, N, on nodes and centers of mass, in world axes.
      torques: `(T, frames, 3)`, N m, on edges and bodies, in world axes.
      tensions: `(T, cables)`, N.
      rest: `(T, bends, 3)`, 1/m, Darboux vectors at rest.
      targets: `(T, anchors, 3)`, m, positions of the anchors of attachments to the world.
    """

    forces: Array | None = None
    torques: Array | None = None
    tensions: Array | None = None
    rest: Array | None = None
    targets: Array | None = None

    __repr__ = summarize


# names of the fields, in order
STATE, PARAMETERS, INPUTS = (
    tuple(each.name for each in fields(kind)) for kind in (State, Parameters, Inputs)
)
