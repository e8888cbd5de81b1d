"""Comparison of results with the reference, if the environment has MUJACOBIAN_SELFCHECK=1.

The public functions then compare every result with extrapolated differences of `mj_step`, and a
difference above the tolerance raises `SelfCheckError`. This takes hundreds of steps per result.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

import mujoco

from mujacobian._arguments import Array
from mujacobian._linearization import Linearization
from mujacobian.check._entry_names import block_of
from mujacobian.check._judge import Judge
from mujacobian.errors import SelfCheckError

_lock = Lock()
_evaluations = 0


def selfcheck_count() -> int:
    """Return the number of steps of MuJoCo that self-checks have taken.

    Their differences are compared with results and never enter one, so `fd_count` does not count
    them.
    """
    return _evaluations


def verify(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    blocks: Mapping[str, Array | None],
    where: str = "",
) -> None:
    """Raise SelfCheckError if one of the given blocks differs from the reference at this state.

    Entries are not compared if the reference is not accurate enough, for example on a kink.
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


def verify_batch(model: mujoco.MjModel, states: Array, controls: Array, lin: Linearization) -> None:
    """Raise SelfCheckError if the result at one of the states differs from the reference."""
    data = mujoco.MjData(model)
    for k, (state, ctrl) in enumerate(zip(states, controls, strict=True)):
        mujoco.mj_resetData(model, data)
        mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        data.ctrl[:] = ctrl
        blocks = {name: block[k] for name, block in lin.blocks.items()}
        verify(model, data, blocks, f"state {k}: ")
