"""Results compared with the reference as they are made: MUJACOBIAN_SELFCHECK=1.

The environment is read once, at import. Where the variable is not set, the public functions are the
plain ones and cost nothing more; where it is, every result is compared with extrapolated
differences of `mj_step`, and a mismatch raises `SelfCheckError`. That takes hundreds of steps.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from threading import Lock

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core, linearization
from mujacobian.entry import block_of
from mujacobian.errors import SelfCheckError
from mujacobian.linearization import Linearization
from mujacobian.verdict import Judge

Array = NDArray[np.float64]

ENABLED = os.environ.get("MUJACOBIAN_SELFCHECK", "0") not in ("", "0")

_lock = Lock()
_evaluations = 0


def selfcheck_count() -> int:
    """Number of steps of MuJoCo that self-checks have taken for their differences.

    They judge results and never enter one, so `fd_count` does not count them.
    """
    return _evaluations


@functools.wraps(linearization.linearize)
def checked_linearize(model: mujoco.MjModel, data: mujoco.MjData, **options: bool) -> Linearization:
    """Linearize and compare."""
    lin = linearization.linearize(model, data, **options)
    verify(model, data, vars(lin))
    return lin


@functools.wraps(_core.transition, assigned=("__doc__",))
def checked_transition(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    A: Array | None = None,
    B: Array | None = None,
    C: Array | None = None,
    D: Array | None = None,
    *,
    forward: bool = True,
) -> None:
    """Fill the blocks and compare."""
    _core.transition(model, data, A, B, C, D, forward=forward)
    verify(model, data, {"A": A, "B": B, "C": C, "D": D})


@functools.wraps(linearization.linearize_batch)
def checked_linearize_batch(
    model: mujoco.MjModel,
    states: ArrayLike,
    controls: ArrayLike,
    *,
    sensors: bool = True,
    threads: int | None = None,
) -> Linearization:
    """Linearize a batch and compare at every state."""
    lin = linearization.linearize_batch(model, states, controls, sensors=sensors, threads=threads)
    data = mujoco.MjData(model)
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    for k, (state, ctrl) in enumerate(zip(np.asarray(states), np.asarray(controls), strict=True)):
        mujoco.mj_resetData(model, data)
        mujoco.mj_setState(model, data, np.asarray(state, dtype=np.float64), spec)
        data.ctrl[:] = ctrl
        blocks = {name: block[k] for name, block in vars(lin).items() if block is not None}
        verify(model, data, blocks, f"state {k}: ")
    return lin


def verify(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    blocks: Mapping[str, Array | None],
    where: str = "",
) -> None:
    """Raise SelfCheckError if one of the given blocks differs from the reference at this state.

    Entries that the reference does not know well enough, such as columns on a kink, are not judged.
    """
    global _evaluations
    forces = blocks.get("Bf") is not None or blocks.get("Df") is not None
    try:
        judge = Judge(model, data, forces=forces)
    except ArithmeticError:  # the step is not finite: nothing to compare with
        return
    with _lock:
        _evaluations += judge.reference.evaluations
    J = judge.reference.J.copy()
    nx, nu = judge.reference.nx, judge.reference.nu
    state, sensors = slice(nx), slice(nx, None)
    control, force = slice(nx, nx + nu), slice(nx + nu, None)
    places = {
        "A": (state, state),
        "B": (state, control),
        "Bf": (state, force),
        "C": (sensors, state),
        "D": (sensors, control),
        "Df": (sensors, force),
    }
    for name, block in blocks.items():
        if block is not None:
            J[places[name]] = block
    result = judge.compare(J)
    if result.error > judge.tolerance:
        entry = block_of(model, *result.worst())
        raise SelfCheckError(where + judge.describe(result, J), *entry)


linearize = checked_linearize if ENABLED else linearization.linearize
linearize_batch = checked_linearize_batch if ENABLED else linearization.linearize_batch
transition = checked_transition if ENABLED else _core.transition
