"""The state before the first one, which contains the initial velocities."""

from __future__ import annotations

import numpy as np

from mujacobian._arguments import Array
from mujacobian._rotation import exp, skew
from mujacobian.rods.state import State
from mujacobian.rods.world import World


def state_before(world: World, first: State) -> tuple[Array, Array]:
    """Return the positions and the matrices of the frames one step before the first state (ROD-40).

    With BDF2, these matrices are no rotations: they move straight on with the initial velocity.
    """
    h, R = world.timestep, first.rotations
    spin = h * first.angular_velocities
    turned = exp(-spin) @ R if world.order == 1 else R - skew(spin) @ R
    return first.positions - h * first.velocities, np.ascontiguousarray(turned)
