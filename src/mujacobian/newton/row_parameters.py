"""The dependence of equalities and explicit contact pairs on arrays of Newton's model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from mujacobian._arguments import Array

if TYPE_CHECKING:
    from mujacobian.newton.parameters import WorldParameters

_CONNECT, _WELD, _JOINT = (
    int(getattr(mujoco.mjtEq, f"mjEQ_{name}")) for name in ("CONNECT", "WELD", "JOINT")
)
RELATIVE_POSE = "mujoco.equality_constraint_relpose"
_TORQUE_SCALE = 10  # its place in eq_data


def add_anchors(world: WorldParameters, name: str) -> None:
    """Add the terms of anchors of connects and welds.

    MuJoCo computes the anchor of a connect in its second body from the pose at `qpos0`, and so it
    does with the anchor of a weld without a relative pose in its first body.
    """
    mj = world.mj
    rotations = None
    measured = measured_welds(world)
    for e, own in _equalities(world, name, 3):
        kind = int(mj.eq_type[e])
        if kind not in (_CONNECT, _WELD):
            continue
        for k in range(3):
            world.add(name, own + k, "equality_data", e, k, 1.0)
        if kind == _WELD and e not in measured:
            continue
        if rotations is None:
            rotations = _rotations(mj)
        R = rotations[mj.eq_obj2id[e]].T @ rotations[mj.eq_obj1id[e]]
        for k, c in np.ndindex(3, 3):
            if kind == _CONNECT:
                world.add(name, own + c, "anchor", e, k, float(R[k, c]))
            else:
                world.add(name, own + c, "equality_data", e, 3 + k, float(R[c, k]))


def add_relative_poses(world: WorldParameters, name: str) -> None:
    """Add the terms of the relative poses of welds.

    MuJoCo's compiler normalizes the quaternion. With `use_mujoco_cpu`, Newton replaces it by the
    given one, and the residual is proportional to its length.
    """
    array = world.array(name).numpy().reshape(-1, 7)
    measured = measured_welds(world)
    for e, own in _equalities(world, name, 7):
        if world.mj.eq_type[e] != _WELD or e in measured:
            continue
        for k in range(3):
            world.add(name, own + k, "equality_data", e, 3 + k, 1.0)
        slopes = np.eye(4)
        if not world.maps.raw_equalities:
            x, y, z, w = array[own // 7, 3:].astype(np.float64).tolist()
            q = np.array([w, x, y, z])
            length = np.linalg.norm(q)
            slopes = (np.eye(4) - np.outer(q, q) / length**2) / length
        for k, c in np.ndindex(4, 4):
            place = own + 3 + (c - 1) % 4  # Newton stores x, y, z, w
            world.add(name, place, "equality_data", e, 6 + k, float(slopes[k, c]))


def add_torque_scales(world: WorldParameters, name: str) -> None:
    """Add the terms of the torque scales of welds."""
    for e, own in _equalities(world, name, 1):
        if world.mj.eq_type[e] == _WELD:
            world.add(name, own, "equality_data", e, _TORQUE_SCALE, 1.0)


def measured_welds(world: WorldParameters) -> set[int]:
    """Return the welds without a relative pose, which MuJoCo measures at `qpos0`.

    Newton stores a quaternion of zeros for them. With `use_mujoco_cpu`, Newton 1.7 also replaces
    the pose that MuJoCo has measured by these zeros.
    """
    if world.maps.raw_equalities or not (world.maps.equality >= 0).any():
        return set()
    given = world.array(RELATIVE_POSE).numpy().reshape(-1, 7)[:, 3:].any(axis=1)
    welds = world.mj.eq_type == _WELD
    return {e for e, own in _equalities(world, RELATIVE_POSE, 1) if welds[e] and not given[own]}


def add_polynomials(world: WorldParameters, name: str) -> None:
    """Add the terms of polynomials that couple two joints."""
    for e, own in _equalities(world, name, 5):
        for k in range(5 if world.mj.eq_type[e] == _JOINT else 0):
            world.add(name, own + k, "equality_data", e, k, 1.0)


def of_equalities(kind: str, size: int) -> Callable[[WorldParameters, str], None]:
    """Return the function that adds the terms of solref or solimp of equalities."""

    def add(world: WorldParameters, name: str) -> None:
        for e, own in _equalities(world, name, size):
            for k in range(size):
                world.add(name, own + k, kind, e, k, 1.0)

    return add


def add_coefficients(end: int) -> Callable[[WorldParameters, str], None]:
    """Return the function that adds the terms of a coefficient of mimic constraints."""

    def add(world: WorldParameters, name: str) -> None:
        first = world.offset(len(world.array(name)))
        for e, own in enumerate(world.maps.mimic.tolist()):
            if own >= 0:
                world.add(name, first + own, "equality_data", e, end, 1.0)

    return add


def add_joint_mimic(world: WorldParameters, name: str) -> None:
    """Add the terms of the coefficients of joints that follow another one."""
    first = world.offset(len(world.array(name)))
    for e, own in enumerate(world.maps.joint_mimic.tolist()):
        for k in range(2 if own >= 0 else 0):
            world.add(name, 2 * (first + own) + k, "equality_data", e, k, 1.0)


def of_pairs(kind: str, size: int) -> Callable[[WorldParameters, str], None]:
    """Return the function that adds the terms of numbers of explicit contact pairs."""

    def add(world: WorldParameters, name: str) -> None:
        first = world.offset(len(world.array(name)))
        for p, k in np.ndindex(world.mj.npair, size):
            world.add(name, size * (first + p) + k, kind, p, k, 1.0)

    return add


def _equalities(world: WorldParameters, name: str, size: int) -> Iterator[tuple[int, int]]:
    """Yield MuJoCo's equalities and the first number of their rows in the flat array."""
    first = world.offset(len(world.array(name)))
    for e, own in enumerate(world.maps.equality.tolist()):
        if own >= 0:
            yield e, size * (first + own)


def _rotations(mj: mujoco.MjModel) -> Array:
    """Return the orientations of all bodies at `qpos0`."""
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    rotations: Array = data.xmat.reshape(-1, 3, 3)
    return rotations
