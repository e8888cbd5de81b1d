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


def add_anchors(world: WorldParameters, name: str) -> None:
    """Add the terms of anchors of connects and welds.

    MuJoCo computes the anchor of a connect in its second body from the pose at `qpos0`.
    """
    mj = world.mj
    relative = None
    for e, own in _equalities(world, name, 3):
        kind = int(mj.eq_type[e])
        if kind not in (_CONNECT, _WELD):
            continue
        for k in range(3):
            world.add(name, own + k, "equality_data", e, k, 1.0)
        if kind != _CONNECT:
            continue
        if relative is None:
            relative = _rotations(mj)
        R = relative[mj.eq_obj2id[e]].T @ relative[mj.eq_obj1id[e]]
        for k, c in np.ndindex(3, 3):
            world.add(name, own + c, "anchor", e, k, float(R[k, c]))


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
