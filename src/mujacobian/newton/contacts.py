"""Comparison of the contacts of mujoco_warp with those of MuJoCo C at the same state."""

from __future__ import annotations

import warnings
from collections import Counter

import mujoco
import newton

from mujacobian.errors import MujacobianError

Pairs = Counter[tuple[int, int]]


def found_by_warp(solver: newton.solvers.SolverMuJoCo) -> list[Pairs]:
    """Return the number of contacts within the margin of each pair of geoms, per world."""
    data = solver.mjw_data
    require_room(solver)
    count = int(data.nacon.numpy()[0])
    pairs: list[Pairs] = [Counter() for _ in range(data.nworld)]
    contact = data.contact
    near = contact.dist.numpy()[:count] < contact.includemargin.numpy()[:count]
    geoms, worlds = contact.geom.numpy()[:count][near], contact.worldid.numpy()[:count][near]
    for pair, world in zip(geoms.tolist(), worlds.tolist(), strict=True):
        pairs[world][_ordered(*pair)] += 1
    return pairs


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


def compare(warp: Pairs, data: mujoco.MjData, world: int, step: int) -> bool:
    """Return whether MuJoCo C found the same contacts; warn if not."""
    near = data.contact.dist < data.contact.includemargin
    here = Counter(_ordered(*pair) for pair in data.contact.geom[near].tolist())
    if here == warp:
        return True
    differ = (here - warp) + (warp - here)
    first, second = next(iter(differ))
    names = (data.model.geom(first).name, data.model.geom(second).name)
    warnings.warn(
        f"step {step}, world {world}: mujoco_warp found {warp[first, second]} contacts between"
        f" {names[0]} and {names[1]}, MuJoCo C found {here[first, second]}. The gradients are those"
        " of MuJoCo C at the states that mujoco_warp reached",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


def _ordered(first: int, second: int) -> tuple[int, int]:
    return (first, second) if first < second else (second, first)
