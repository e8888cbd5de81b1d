"""Comparison of the contacts of mujoco_warp with those of MuJoCo C at the same state."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass

import mujoco
import newton
import numpy as np
from numpy.typing import NDArray

from mujacobian.errors import MujacobianError

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Pairs:
    """The contacts within the margin that mujoco_warp found in all worlds."""

    world: NDArray[np.int32]  # (n,)
    geoms: NDArray[np.int32]  # (n, 2)
    hashes: NDArray[np.uint64]  # per world: the sum of the hashes of its pairs

    def of(self, world: int) -> Counter[tuple[int, int]]:
        """Return the number of contacts of each pair of geoms in a world."""
        return _count(self.geoms[self.world == world])


def found_by_warp(solver: newton.solvers.SolverMuJoCo) -> Pairs:
    """Return the contacts within the margin, in all worlds."""
    data = solver.mjw_data
    require_room(solver)
    count = int(data.nacon.numpy()[0])
    contact = data.contact
    near = contact.dist.numpy()[:count] < contact.includemargin.numpy()[:count]
    geoms, world = contact.geom.numpy()[:count][near], contact.worldid.numpy()[:count][near]
    hashes = np.zeros(data.nworld, dtype=np.uint64)
    np.add.at(hashes, world, pair_hash(geoms))
    return Pairs(world, geoms, hashes)


def pair_hash(geoms: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return the hash of pairs of geoms (n, 2), as the core computes it."""
    low, high = np.sort(geoms, axis=-1).astype(np.uint64).T
    mixed = ((low << np.uint64(32)) + high + np.uint64(1)) * _SPREAD
    hashed: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(29))
    return hashed


def require_room(solver: newton.solvers.SolverMuJoCo) -> None:
    """Raise if mujoco_warp dropped contacts or constraints in its last step."""
    data = solver.mjw_data
    contacts, rows = int(data.nacon.numpy()[0]), int(data.nefc.numpy().max(initial=0))
    for name, found, room in (
        ("nconmax", max(contacts, int(data.ncollision.numpy()[0])), data.naconmax),
        ("njmax", rows, data.njmax),
    ):
        if found > room:
            raise MujacobianError(
                f"mujoco_warp found {found} contacts or constraints and has room for {room}, so it"
                f" dropped some: give DifferentiableMuJoCo a larger {name}"
            )


def warn_of_difference(warp: Pairs, data: mujoco.MjData, world: int, step: int) -> None:
    """Warn that MuJoCo C found other contacts than mujoco_warp in a world."""
    near = data.contact.dist < data.contact.includemargin
    here, there = _count(data.contact.geom[near]), warp.of(world)
    differ = (here - there) + (there - here)
    first, second = next(iter(differ))
    names = (data.model.geom(first).name, data.model.geom(second).name)
    warnings.warn(
        f"step {step}, world {world}: mujoco_warp found {there[first, second]} contacts between"
        f" {names[0]} and {names[1]}, MuJoCo C found {here[first, second]}. The gradients are those"
        " of MuJoCo C at the states that mujoco_warp reached",
        RuntimeWarning,
        stacklevel=2,
    )


def _count(geoms: NDArray[np.int32]) -> Counter[tuple[int, int]]:
    """Return the number of times that each pair occurs, in either order."""
    return Counter((low, high) for low, high in np.sort(geoms, axis=-1).tolist())
