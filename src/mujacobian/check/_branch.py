"""The branch of a step. The step is smooth only as long as its branch does not change."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array

EQUALITY = int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
FRICTION_DOF = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
FRICTION_TENDON = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON)
ELLIPTIC = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_ELLIPTIC)
SATISFIED, QUADRATIC, LINEARNEG, LINEARPOS, CONE = range(5)


def branch(model: mujoco.MjModel, data: mujoco.MjData) -> bytes:
    """Return a key of the branch: rows, zones, impedances, contacts, wrapping and sleep."""
    rows = [
        data.tree_asleep >= 0,
        data.ten_wrapnum,
        data.efc_type,
        data.efc_id,
        zones(model, data),
        (data.efc_KBIP[:, 3] == 0) & (data.efc_pos != data.efc_margin),  # flat at zero, too
    ]
    return b"".join(np.asarray(row, dtype=np.int32).tobytes() for row in (*rows, data.contact.geom))


def zones(model: mujoco.MjModel, data: mujoco.MjData) -> NDArray[np.int_]:
    """Return the state of every row at `data.qacc`, because `efc_state` may be out of date."""
    if data.nefc == 0:
        return np.zeros(0, dtype=int)
    jar = np.empty(data.nefc)
    mujoco.mj_mulJacVec(model, data, jar, data.qacc)
    jar -= data.efc_aref
    kind = data.efc_type
    zone = np.where(jar < 0, QUADRATIC, SATISFIED)
    zone[kind == EQUALITY] = QUADRATIC
    for i in np.flatnonzero((kind == FRICTION_DOF) | (kind == FRICTION_TENDON)):
        bound = data.efc_R[i] * data.efc_frictionloss[i]
        zone[i] = LINEARNEG if jar[i] <= -bound else LINEARPOS if jar[i] >= bound else QUADRATIC
    if (kind != ELLIPTIC).all():
        return zone
    contacts = data.contact
    for i, dim, mu, friction in zip(
        contacts.efc_address, contacts.dim, contacts.mu, contacts.friction, strict=True
    ):
        if i >= 0 and kind[i] == ELLIPTIC:
            zone[i : i + dim] = _cone_zone(float(mu), friction[: dim - 1], jar[i : i + dim])
    return zone


def _cone_zone(mu: float, friction: Array, jar: Array) -> int:
    normal, tangential = mu * jar[0], float(np.linalg.norm(friction * jar[1:]))
    if normal >= mu * tangential:
        return SATISFIED
    return QUADRATIC if mu * normal + tangential <= 0 else CONE
