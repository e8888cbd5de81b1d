"""Mass, inertia and armature in contact and at limits, against plain edits and `mj_setConst`.

The differences know nothing of `mujacobian.Parameters`: they write into the field of a copy of the
model and call `mj_setConst`. Only states count in which the constants that it derives matter.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import mujoco
import numpy as np

import mujacobian
from benchmarks.parameters.judge import (
    LINEARIZING,
    NOT_JUDGED,
    REFUSED,
    Change,
    Verdict,
    judge_family,
    product,
)

FIELDS = ("body_mass", "body_inertia", "dof_armature")
TOLERANCE = 1e-6  # relative to the largest entry of positions, and of velocities
SMALL_ARMATURE = 0.01  # of the inertia of a dof; steps of the differences take 1 % of it
# The share of the derivative that derived constants must have for a state to count: the tolerance
# of the verdict, below which holding them would be exact, too.
LEAST_SHARE = TOLERANCE


def judge_field(
    model: mujoco.MjModel, data: mujoco.MjData, field: str, rng: np.random.Generator
) -> Iterator[str | Verdict]:
    """Yield the stages and the verdict on a random direction of one field.

    The solver of the model must have been made to converge.
    """
    if data.nefc == 0:
        yield Verdict(NOT_JUDGED, why="no constraint is active")
        return
    size = getattr(model, field)
    if field == "dof_armature":
        size = np.where(size == 0, SMALL_ARMATURE * model.dof_M0, size)
    direction = size * rng.uniform(0.3, 1, size.shape)
    direction[~_is_chosen(model, field)] = 0
    parameters = {
        derived: mujacobian.Parameters(model, [field], derived=derived)
        for derived in ("recompute", "hold")
    }
    along = direction[_is_chosen(model, field)].ravel()
    yield LINEARIZING
    try:
        whole, held = (product(p, data, along, sensors=False) for p in parameters.values())
    except mujacobian.MujacobianError as error:
        yield Verdict(REFUSED, why=str(error))
        return
    if abs(whole - held).max() <= LEAST_SHARE * abs(whole).max():
        yield Verdict(NOT_JUDGED, why="derived constants do not matter")
        return
    change = edits(model, field, direction)
    yield from judge_family(
        parameters["recompute"], data, along, TOLERANCE, change=change, sensors=False
    )


def _is_chosen(model: mujoco.MjModel, field: str) -> np.ndarray:
    """Return which rows of a field are parameters: all but those of the world."""
    chosen = np.ones(len(getattr(model, field)), dtype=bool)
    chosen[0] = not field.startswith("body")
    return chosen


def edits(model: mujoco.MjModel, field: str, direction: np.ndarray) -> Change:
    """Return the model whose field was written, with its constants derived by `mj_setConst`."""
    scratch = mujoco.MjData(model)
    own = getattr(model, field).copy()

    def change(t: float) -> mujoco.MjModel:
        edited = copy.copy(model)
        getattr(edited, field)[:] = own + t * direction
        mujoco.mj_setConst(edited, scratch)
        return edited

    return change
