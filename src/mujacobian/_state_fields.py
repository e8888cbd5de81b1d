"""The fields of mjSTATE_INTEGRATION, the inputs of a step in one row."""

from __future__ import annotations

import mujoco

STATE = mujoco.mjtState.mjSTATE_INTEGRATION
NAMES = {"warmstart": "qacc_warmstart"}  # where the name of the field in MjData is another one


def state_fields(model: mujoco.MjModel) -> list[tuple[str, slice]]:
    """Return the fields of mjSTATE_INTEGRATION and their columns, in sequence."""
    found, first = [], 0
    for kind in mujoco.mjtState.__members__.values():
        bit = int(kind)
        if kind.name.startswith("mjSTATE_") and bit & STATE and bit.bit_count() == 1:
            name = kind.name.removeprefix("mjSTATE_").lower()
            last = first + mujoco.mj_stateSize(model, bit)
            found.append((NAMES.get(name, name), slice(first, last)))
            first = last
    assert first == mujoco.mj_stateSize(model, STATE)
    return found
