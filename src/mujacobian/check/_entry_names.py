"""Names of the entries of A, B, C, D, Bf and Df: block, joint, actuator or sensor."""

from __future__ import annotations

import mujoco
import numpy as np

from mujacobian._manifold import tangent_size


def block_of(model: mujoco.MjModel, row: int, column: int) -> tuple[str, int, int]:
    """Return the block of an entry of [[A, B, Bf], [C, D, Df]], and its row and column there."""
    nx, nu = tangent_size(model), model.nu
    i = row - nx if row >= nx else row
    state, control, force = ("C", "D", "Df") if row >= nx else ("A", "B", "Bf")
    if column < nx:
        return state, i, column
    if column < nx + nu:
        return control, i, column - nx
    return force, i, column - nx - nu


def row_name(model: mujoco.MjModel, row: int) -> str:
    """Return the name of a row: the next q, v or act of an element, or a sensor."""
    nx = tangent_size(model)
    if row < nx:
        return "next " + column_name(model, row)
    return _owner(model, "sensor", model.sensor_adr, model.sensor_dim, row - nx)


def column_name(model: mujoco.MjModel, column: int) -> str:
    """Return the name of a column: q, v, act, ctrl or qfrc_applied of an element."""
    nv, na, nu = model.nv, model.na, model.nu
    if column < 2 * nv:
        return f"{'q' if column < nv else 'v'} of {_dof(model, column % nv)}"
    column -= 2 * nv
    if column < na:
        owner = _owner(model, "actuator", model.actuator_actadr, model.actuator_actnum, column)
        return f"act of {owner}"
    column -= na
    if column < nu:
        owner = _owner(model, "actuator", model.actuator_ctrladr, model.actuator_ctrlnum, column)
        return f"ctrl of {owner}"
    return f"qfrc_applied of {_dof(model, column - nu)}"


def _dof(model: mujoco.MjModel, dof: int) -> str:
    """Return the joint of a dof, with the component if there are several."""
    addresses = model.jnt_dofadr
    counts = np.diff([*addresses, model.nv])
    return _owner(model, "joint", addresses, counts, dof)


def _owner(
    model: mujoco.MjModel, kind: str, addresses: np.ndarray, counts: np.ndarray, index: int
) -> str:
    """Return the element whose range of addresses contains an index."""
    owner = int(np.flatnonzero((addresses <= index) & (index < addresses + counts))[0])
    name = getattr(model, kind)(owner).name
    component = f"[{index - addresses[owner]}]" if counts[owner] > 1 else ""
    return f'{kind} "{name}"{component}' if name else f"{kind} {owner}{component}"
