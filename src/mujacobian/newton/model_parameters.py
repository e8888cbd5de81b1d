"""Gradients with respect to arrays of the Newton model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import mujoco
import newton
import numpy as np
import warp as wp

from mujacobian._arguments import Array
from mujacobian._parameters.derived import depends_on
from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton.frame_parameters import COM
from mujacobian.newton.inputs import Inputs
from mujacobian.newton.internals import Indices, Maps
from mujacobian.newton.parameters import (
    ARRAYS,
    MATERIALS,
    PAIRS_OF_SHAPES,
    SHAPES,
    CoreParameters,
    Derived,
    WorldParameters,
    array_of,
)
from mujacobian.newton.row_parameters import RELATIVE_POSE
from mujacobian.newton.worlds import Worlds

_INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_LIMIT_TENDON = int(mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)


class ModelParameters:
    """The arrays of a model that receive gradients, and their core parameters."""

    def __init__(
        self,
        model: newton.Model,
        maps: Maps,
        worlds: Worlds,
        inputs: Inputs,
        wanted: Sequence[str],
        given_contacts: bool,
    ) -> None:
        self.arrays: dict[str, wp.array] = {name: array_of(model, name) for name in wanted}
        for name, acts in (("gravity", inputs.foreign), ("body_mass", inputs.weight.any())):
            if acts and name in self.arrays:
                raise UnsupportedFeatureError(
                    name,
                    "a body of the global world is simulated in another world, where it also acts"
                    " through a force of Newton. Leave it out of parameters=",
                )
        # contact_materials.py converts the materials of given contacts, which do not follow shapes
        elsewhere = (*MATERIALS, *SHAPES, *PAIRS_OF_SHAPES) if given_contacts else ()
        through_core = [name for name in self.arrays if name not in elsewhere]
        self._parameters = CoreParameters()
        # the arrays are concatenated, so that one sum computes all gradients
        sizes = [array.grad.numpy().size for array in self.arrays.values()]
        self._ends = np.cumsum([0, *sizes]).tolist()
        self._scaled: dict[int, set[int]] = {}
        self._chains: Array | None = None
        self._terms = self._collect(model, maps, worlds, through_core)
        self.core = self._parameters.items

    def _collect(
        self, model: newton.Model, maps: Maps, worlds: Worlds, names: Sequence[str]
    ) -> tuple[Indices, Indices, Indices, Array]:
        """Return all terms as arrays: element, world, core parameter, derivative."""
        alike = not worlds.differ and _are_alike(model, maps, names)
        numbers = range(1 if alike else worlds.count) if names else range(0)
        found = []
        for number in numbers:
            found.append(WorldParameters(model, maps, worlds.at(number), number, self._parameters))
            for name in names:
                ARRAYS[name](found[-1], name)
        given = list(self._parameters.items)
        if depends_on(given):
            self._derive(worlds, found, given)
        first = dict(zip(self.arrays, self._ends, strict=False))
        tables = []
        for world in found:
            rows = [(first[name] + to, place, by) for name, to, place, by in world.terms]
            target, source, by = np.array(rows, dtype=np.float64).reshape(-1, 3).T
            tables.append((target.astype(np.intp), source.astype(np.intp), by))
        if alike and found:
            names_of = [name for name, *_ in found[0].terms]
            targets = self._repeat(maps, names_of, tables[0][0])
            tables = [(target, *tables[0][1:]) for target in targets]
        counts = [len(target) for target, *_ in tables]
        parts = [np.concatenate(part) for part in zip(*tables, strict=True)] or [np.zeros(0)] * 3
        target, source, by = parts
        world_of = np.repeat(np.arange(len(tables)), counts)
        return target.astype(np.intp), world_of, source.astype(np.intp), by

    def _repeat(self, maps: Maps, names: Sequence[str], target: Indices) -> Indices:
        """Return the elements of all worlds, given those of the first world, (worlds, terms)."""
        first = dict(zip(self.arrays, self._ends, strict=False))
        moved = np.zeros((maps.worlds, len(target)), dtype=np.intp)
        of_name = np.array(names)
        for name in set(names):
            chosen = np.flatnonzero(of_name == name)
            own = target[chosen] - first[name]
            count = len(self.arrays[name])
            width = self.arrays[name].grad.numpy().size // count
            if name.startswith("shape_"):  # worlds may share shapes
                geom = {int(shape): g for g, shape in enumerate(maps.shape[0])}
                geoms = [geom[int(shape)] for shape in own // width]
                places = width * maps.shape[:, geoms] + own % width
            else:
                step = width if name == "gravity" else width * (count // maps.worlds)
                places = own + step * np.arange(maps.worlds)[:, None]
            moved[:, chosen] = first[name] + places
        return moved

    def _derive(
        self,
        worlds: Worlds,
        parameters: Sequence[WorldParameters],
        given: list[tuple[int, int, int]],
    ) -> None:
        """Compute the derivatives of all core parameters with respect to the given ones.

        parameters: those of each world, or of the first one if all worlds are alike.
        """
        found: list[Derived] = []
        known: dict[frozenset[int], int] = {}  # limits in force space, if worlds have equal models
        which = []
        for world in parameters:
            worlds.at(world.world)  # writes the numbers of this world into the shared model
            if scaled := world.scaled_tendons():
                of_all = range(worlds.count) if len(parameters) == 1 else (world.world,)
                self._scaled |= dict.fromkeys(of_all, scaled)
            limits = frozenset(j for j, _ in world.in_force_space())
            if worlds.differ or limits not in known:
                known[limits] = len(found)
                found.append(world.derive(given))
            which.append(known[limits])
            if COM in self.arrays:
                world.add_centers(found[which[-1]])
        count = len(self._parameters.items)
        chains = np.tile(np.eye(count), (len(found), 1, 1))
        for chain, derived in zip(chains, found, strict=True):
            for place, row in derived.rows:
                chain[place, : len(given)] += row
        self._chains = chains if len(found) == 1 else chains[which]

    def weight_place(self, body: int) -> int | None:
        """Return the index of the translational invweight0 of a MuJoCo body in `core`, if any."""
        return self._parameters.find("body_weight", body, 0)

    def require(self, worlds: Worlds, rows: Array) -> None:
        """Raise if a step has constraint rows whose derivative is incomplete."""
        for world, tendons in self._scaled.items():
            model, data = worlds.at(world), worlds.data
            mujoco.mj_setState(model, data, rows[world], _INTEGRATION)
            mujoco.mj_forward(model, data)
            active = data.efc_id[data.efc_type == _LIMIT_TENDON]
            for t in tendons.intersection(active.tolist()):
                raise UnsupportedFeatureError(
                    f"tendon {t}",
                    "its limit in force space is scaled by tendon_invweight0: leave body_mass,"
                    " body_inertia, body_com, joint_armature, joint_X_p and joint_X_c out of"
                    " parameters=",
                )

    def gradients(self, raw: Array) -> dict[str, Array]:
        """Return the gradient of each array, given the core gradients, one row per world."""
        target, world, source, factor = self._terms
        given = raw
        if self._chains is not None:
            given = (raw[:, None] @ self._chains)[:, 0]
        values = given[world, source] * factor
        total: Array = np.bincount(target, values, self._ends[-1]).astype(np.float64)
        ends = pairwise(self._ends)
        return {
            name: total[first:last] for name, (first, last) in zip(self.arrays, ends, strict=True)
        }


def _are_alike(model: newton.Model, maps: Maps, names: Sequence[str]) -> bool:
    """Return whether the terms of all worlds are the same, if their models are.

    The terms also depend on the arrays themselves and on the modes below.
    """
    modes = (
        "body_flags", "joint_target_mode", "joint_limit_ke", "joint_limit_kd",
        "shape_material_ke", "shape_material_kd", "mujoco.solref_mode",
        "mujoco.solreflimit_mode", "mujoco.tendon_solref_limit_mode", RELATIVE_POSE,
    )  # fmt: skip
    for name in {*names, *modes} - {"gravity"}:
        array = array_of(model, name)
        if array is None or not array.size:
            continue
        values = array.numpy()
        if name.startswith("shape_") or name == "mujoco.solref_mode":
            rows = values[np.maximum(maps.shape, 0)]
        elif len(values) % maps.worlds:
            return False
        else:
            rows = values.reshape(maps.worlds, -1)
        if (rows != rows[:1]).any():
            return False
    return True
