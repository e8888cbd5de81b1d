"""Judge mass, inertia and armature with active constraints, against edits and `mj_setConst`.

The differences do not use `mujacobian.Parameters`: they edit the field in a copy of the model and
call `mj_setConst`. Only states in which the derived constants matter are counted.
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
TOLERANCE = 1e-6  # relative to the largest entry of the positions or velocities
SMALL_ARMATURE = 0.01  # fraction of the inertia of a dof; the differences change it by 1 %
# A state counts if the derived constants contribute this fraction of the derivative. It is the
# tolerance of the verdict: with a smaller fraction, constants that are not updated would be exact.
LEAST_SHARE = TOLERANCE


def judge_field(
    model: mujoco.MjModel, data: mujoco.MjData, field: str, rng: np.random.Generator
) -> Iterator[str | Verdict]:
    """Yield the stages and the verdict on a random direction of one field.

    The model must have been passed to `converge`.
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
    """Return which rows of a field are parameters: all except those of the world."""
    chosen = np.ones(len(getattr(model, field)), dtype=bool)
    chosen[0] = not field.startswith("body")
    return chosen


def edits(model: mujoco.MjModel, field: str, direction: np.ndarray) -> Change:
    """Return the model with an edited field, and with constants from `mj_setConst`."""
    scratch = mujoco.MjData(model)
    own = getattr(model, field).copy()

    def change(t: float) -> mujoco.MjModel:
        edited = copy.copy(model)
        getattr(edited, field)[:] = own + t * direction
        mujoco.mj_setConst(edited, scratch)
        return edited

    return change
