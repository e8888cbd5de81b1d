"""Initial states of plans."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array
from mujacobian._rollout import first_states
from mujacobian._state_fields import state_fields
from mujacobian.errors import ArgumentError


def initial_state(model: mujoco.MjModel, state: mujoco.MjData | ArrayLike) -> Array:
    """Return the initial state of a plan as a row of mjSTATE_INTEGRATION, which is finite."""
    start = first_states(model, state)
    if start.ndim != 1:
        raise ArgumentError("a plan begins at one state, got a batch of states")
    is_finite = np.isfinite(start)
    if is_finite.all():
        return start
    for name, place in state_fields(model):
        for k in np.flatnonzero(~is_finite[place])[:1]:
            raise ArgumentError(f"the state must be finite, but {name}[{k}] is {start[place][k]}")
    return start
