"""States of a world, and the numbers of its model."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mujacobian._arguments import Array


@dataclass(frozen=True)
class State:
    """What a simulation starts from; world axes, SI units. Also: derivatives with respect to it.

    positions: `(points, 3)`, of nodes of rods and centres of mass of bodies.
    rotations: `(frames, 3, 3)`, of edges of rods and bodies. Derivatives are matrices tangent to
        the rotations, or `(frames, 3)` in tangent coordinates: R turns to exp(t) R.
    velocities: `(points, 3)`.
    angular_velocities: `(frames, 3)`.
    """

    positions: Array
    rotations: Array
    velocities: Array
    angular_velocities: Array


@dataclass(frozen=True)
class Parameters:
    """Numbers of the model that gradients can be taken of. Also: derivatives with respect to them.

    mass: `(points,)`, kg.
    inertia: `(frames, 3, 3)`, kg m^2, in the frames' own axes. Derivatives are symmetric.
    length: `(edges,)`, m, at rest. Masses, inertias and Darboux vectors at rest stay as they are.
    stretch, shear: `(edges,)`, N.
    bend: `(bends, 3)`, N m^2.
    stretch_damping: `(edges,)`, N s.
    bend_damping: `(bends, 3)`, N m^2 s.
    drag: `(points,)`, N s/m.
    spin_drag: `(frames,)`, N m s.
    attachment: `(attachments,)`, stiffnesses, N/m or, of welds, N m.
    contact, friction: `(contacts,)`, stiffnesses, N/m, and coefficients of friction.
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


@dataclass(frozen=True)
class Inputs:
    """What acts in every step. Also: derivatives with respect to it. None: not given.

    forces: `(T, points, 3)`, N, on nodes and centres of mass, world axes.
    torques: `(T, frames, 3)`, N m, world axes.
    tensions: `(T, cables)`, N.
    rest: `(T, bends, 3)`, 1/m, Darboux vectors at rest.
    targets: `(T, anchors, 3)`, m, places in the world that points are attached to.
    """

    forces: Array | None = None
    torques: Array | None = None
    tensions: Array | None = None
    rest: Array | None = None
    targets: Array | None = None


# their names, in order
STATE, PARAMETERS, INPUTS = (
    tuple(each.name for each in fields(kind)) for kind in (State, Parameters, Inputs)
)
