"""Gradients with respect to arrays of the Newton model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from mujacobian.newton.internals import Maps
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
    ) -> tuple[Array, Array, Array, Array]:
        """Return all terms as arrays: element, world, core parameter, derivative."""
        first = dict(zip(self.arrays, self._ends, strict=False))
        terms: list[tuple[int, int, int, float]] = []

        def take(number: int, world: WorldParameters) -> None:
            terms.extend(
                (first[name] + to, number, place, by) for name, to, place, by in world.terms
            )

        numbers = range(worlds.count) if names else ()
        for number in numbers:
            world = WorldParameters(model, maps, worlds.at(number), number, self._parameters)
            for name in names:
                ARRAYS[name](world, name)
            take(number, world)
        given = list(self._parameters.items)
        if depends_on(given):
            self._derive(model, maps, worlds, given, take)
        table = np.array(terms, dtype=np.float64).reshape(-1, 4).T
        target, world_of, source = (column.astype(np.intp) for column in table[:3])
        return target, world_of, source, table[3]

    def _derive(
        self,
        model: newton.Model,
        maps: Maps,
        worlds: Worlds,
        given: list[tuple[int, int, int]],
        take: Callable[[int, WorldParameters], None],
    ) -> None:
        """Compute the derivatives of all core parameters with respect to the given ones.

        take: function that adds the terms of a world.
        """
        found: list[Derived] = []
        known: dict[frozenset[int], int] = {}  # limits in force space, if worlds have equal models
        which = []
        for number in range(worlds.count):
            world = WorldParameters(model, maps, worlds.at(number), number, self._parameters)
            if scaled := world.scaled_tendons():
                self._scaled[number] = scaled
            limits = frozenset(j for j, _ in world.in_force_space())
            if worlds.differ or limits not in known:
                known[limits] = len(found)
                found.append(world.derive(given))
            which.append(known[limits])
            if COM in self.arrays:
                world.add_centers(found[which[-1]])
                take(number, world)
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
