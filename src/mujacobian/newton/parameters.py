"""Gradients with respect to arrays of the Newton model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import mujoco
import newton
import numpy as np
import warp as wp

from mujacobian._arguments import Array
from mujacobian._parameters.derived import DOF, depends_on, derived_constants
from mujacobian._parameters.derived_slopes import DerivedSlopes
from mujacobian._parameters.fields import KINDS
from mujacobian._parameters.inertia import PAIRS
from mujacobian._threads import borrowed
from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton.inputs import Inputs
from mujacobian.newton.internals import Maps

_KINEMATIC = int(newton.BodyFlags.KINEMATIC)
_POSITION = int(newton.JointTargetMode.POSITION)
_FORCE_SPACE, _RAW_SOLREF = 0, 1
_LIMIT_TENDON = int(mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)
_SCALAR = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))


def array_of(model: newton.Model, name: str) -> wp.array | None:
    """Return an array of the model by its name, or None if there is no such array."""
    owner: object = model
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner


class _World:
    """The core parameters of one world that depend on the chosen arrays."""

    def __init__(self, model: newton.Model, maps: Maps, mj: mujoco.MjModel, world: int) -> None:
        self.model, self.maps, self.mj, self.world = model, maps, mj, world
        self.core: list[tuple[int, int, int]] = []
        # (array, flat index in it, index in `core`, derivative of the core parameter)
        self.terms: list[tuple[str, int, int, float]] = []
        self._places: dict[tuple[int, int, int], int] = {}

    def add(self, name: str, target: int, kind: str, row: int, component: int, by: float) -> None:
        """Add the derivative `by` of a core parameter with respect to an element of an array.

        target: index of the element in the flat array.
        kind, row, component: the core parameter.
        """
        self.terms.append((name, int(target), self._place((KINDS[kind], int(row), component)), by))

    def _place(self, raw: tuple[int, int, int]) -> int:
        """Return the index of a core parameter, which is appended if it is new."""
        if raw not in self._places:
            self._places[raw] = len(self.core)
            self.core.append(raw)
        return self._places[raw]

    def derive(self) -> Array:
        """Append the constants derived from the core parameters; return all derivatives.

        Row k is the derivative of core parameter k with respect to the parameters that were there
        before the call. Newton scales the stiffness and damping of limits in force space by
        invweight0 (1 - dmax). The time constant is therefore proportional to 1 / invweight0, and
        the damping ratio to the square root of invweight0 (NWT-10).
        """
        given = list(self.core)
        constants = derived_constants(self.mj, given)
        with borrowed(self.mj) as data:
            # no array of Newton's model that is differentiated moves a center of mass
            slopes = DerivedSlopes(self.mj, constants, given).slopes(self.mj, data).core
        solref = KINDS["limit_solref"]
        limits = {int(self.mj.jnt_dofadr[j]): j for j, _ in self.in_force_space()}
        rows = [(self._place(raw), slopes[k]) for k, raw in enumerate(constants)]
        for k, (kind, dof, _) in enumerate(constants):
            weight = self.mj.dof_invweight0[dof] if kind == DOF else 0
            if dof not in limits or not weight > 0:
                continue
            time, ratio = self.mj.jnt_solref[limits[dof]]
            rows.append((self._place((solref, limits[dof], 0)), -time / weight * slopes[k]))
            rows.append((self._place((solref, limits[dof], 1)), ratio / (2 * weight) * slopes[k]))
        chain = np.eye(len(self.core), len(given))
        for place, row in rows:
            chain[place] += row
        return chain

    def in_force_space(self) -> Iterator[tuple[int, int]]:
        """Yield the limited joints whose solref Newton computes from ke and kd, with their dofs."""
        mode = array_of(self.model, "mujoco.solreflimit_mode")
        modes = None if mode is None else mode.numpy()
        ke, kd = self.model.joint_limit_ke.numpy(), self.model.joint_limit_kd.numpy()
        for j, dof in self.limited():
            raw = modes is not None and modes[dof] != _FORCE_SPACE
            if not raw and ke[dof] > 0 and kd[dof] > 0:
                yield j, dof

    def scaled_tendons(self) -> set[int]:
        """Return the tendons whose limits Newton scales by a constant that depends on arrays."""
        mode = array_of(self.model, "mujoco.tendon_solref_limit_mode")
        if mode is None or not depends_on(self.core):
            return set()
        return {t for t, tendon in self.tendons() if mode.numpy()[tendon] == _FORCE_SPACE}

    def offset(self, count: int) -> int:
        """Return the first index of this world in an array with `count` rows for all worlds."""
        return self.world * (count // self.maps.worlds)

    def bodies(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of a MuJoCo body and its Newton body."""
        for b in np.flatnonzero(self.maps.body >= 0).tolist():
            yield b, self.offset(self.model.body_count) + self.maps.body[b]

    def dofs(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of a MuJoCo dof and its Newton dof."""
        for d in np.flatnonzero(self.maps.dof >= 0).tolist():
            yield d, self.offset(self.model.joint_dof_count) + self.maps.dof[d]

    def limited(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of a limited MuJoCo joint and its Newton dof."""
        scalar = np.isin(self.mj.jnt_type, _SCALAR) & self.mj.jnt_limited.astype(bool)
        for j in np.flatnonzero(scalar & (self.maps.joint_dof >= 0)).tolist():
            yield j, self.offset(self.model.joint_dof_count) + self.maps.joint_dof[j]

    def geoms(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of a MuJoCo geom and its Newton shape."""
        shapes = self.maps.shape[self.world]
        for g in np.flatnonzero(shapes >= 0).tolist():
            yield g, shapes[g]

    def tendons(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of a MuJoCo tendon and its Newton tendon."""
        count = len(self.model.mujoco.tendon_stiffness)
        for t in np.flatnonzero(self.maps.tendon >= 0).tolist():
            yield t, self.offset(count) + self.maps.tendon[t]


def _mass(world: _World, name: str) -> None:
    for b, body in world.bodies():
        c = world.mj.body_ipos[b]
        steiner = c @ c * np.eye(3) - np.outer(c, c)
        slopes = [1.0, *c, *(steiner[place] for place in PAIRS)]
        for k, slope in enumerate(slopes):
            world.add(name, body, "inertial", b, k, slope)


def _inertia(world: _World, name: str) -> None:
    """Add the terms of the symmetric part of the inertia matrix."""
    for b, body in world.bodies():
        for k, (i, j) in enumerate(PAIRS):
            for row, column in {(i, j), (j, i)}:
                share = 1.0 if i == j else 0.5
                world.add(name, 9 * body + 3 * row + column, "inertial", b, 4 + k, share)


def _gravity(world: _World, name: str) -> None:
    for k in range(3):
        world.add(name, 3 * world.world + k, "gravity", 0, k, 1.0)


def _of_dofs(kind: str) -> Callable[[_World, str], None]:
    def add(world: _World, name: str) -> None:
        flags = world.model.body_flags.numpy()
        bodies = dict(world.bodies())
        for d, dof in world.dofs():
            kinematic = flags[bodies[world.mj.dof_bodyid[d]]] & _KINEMATIC
            if kind == "armature" and kinematic:
                continue  # Newton writes a large constant for kinematic bodies
            if kind == "friction_loss" and world.mj.dof_frictionloss[d] == 0:
                continue  # there is no constraint row of dry friction
            world.add(name, dof, kind, d, 0, 1.0)

    return add


def _stiffness(world: _World, name: str) -> None:
    for j in np.flatnonzero(world.maps.joint_dof >= 0).tolist():
        dof = world.offset(world.model.joint_dof_count) + world.maps.joint_dof[j]
        world.add(name, dof, "stiffness", j, 0, 1.0)


def _limits(end: int) -> Callable[[_World, str], None]:
    def add(world: _World, name: str) -> None:
        for j, dof in world.limited():
            world.add(name, dof, "limit", j, end, 1.0)

    return add


def _of_solref(kind: str, of_stiffness: bool) -> Callable[[_World, str], None]:
    """Return the function for solref of limits or geoms.

    The time constant is proportional to 1 / kd, the damping ratio to kd / sqrt(ke).
    """
    limits = kind == "limit_solref"

    def add(world: _World, name: str) -> None:
        model, prefix = world.model, name.rpartition("_")[0]
        mode = array_of(model, "mujoco.solreflimit_mode" if limits else "mujoco.solref_mode")
        modes = None if mode is None else mode.numpy()
        stiffness, damping = (
            getattr(model, f"{prefix}_{which}").numpy().astype(np.float64) for which in ("ke", "kd")
        )
        solref = world.mj.jnt_solref if limits else world.mj.geom_solref
        for row, place in world.limited() if limits else world.geoms():
            ke, kd = stiffness[place], damping[place]
            raw = modes is not None and (
                modes[place] != _FORCE_SPACE if limits else modes[place] == _RAW_SOLREF
            )
            if raw or ke <= 0 or kd <= 0:
                continue  # solref does not depend on ke and kd
            time, ratio = solref[row]
            if of_stiffness:
                world.add(name, place, kind, row, 1, -ratio / (2 * ke))
            else:
                world.add(name, place, kind, row, 0, -time / kd)
                world.add(name, place, kind, row, 1, ratio / kd)

    return add


def _target_gains(world: _World, stiffness: str, damping: str) -> None:
    """Add the gains of the actuators that follow joint targets: ke (target - q) - kd v."""
    modes = world.model.joint_target_mode.numpy()
    first = world.offset(world.model.joint_dof_count)
    act = world.maps.actuators
    for actuator, dof in (*act.position_dofs, *act.velocity_dofs):
        is_position = (actuator, dof) in act.position_dofs
        if is_position and stiffness:
            world.add(stiffness, first + dof, "gain", actuator, 0, 1.0)
            world.add(stiffness, first + dof, "bias", actuator, 1, -1.0)
        if damping and not is_position:
            world.add(damping, first + dof, "gain", actuator, 0, 1.0)
        if damping and (not is_position or modes[dof] == _POSITION):
            world.add(damping, first + dof, "bias", actuator, 2, -1.0)


def _of_geoms(component: int) -> Callable[[_World, str], None]:
    def add(world: _World, name: str) -> None:
        for g, shape in world.geoms():
            world.add(name, shape, "friction", g, component, 1.0)

    return add


def _of_tendons(kind: str) -> Callable[[_World, str], None]:
    def add(world: _World, name: str) -> None:
        for t, tendon in world.tendons():
            world.add(name, tendon, kind, t, 0, 1.0)

    return add


# the function that adds the terms of each array
_ARRAYS: dict[str, Callable[[_World, str], None]] = {
    "body_mass": _mass,
    "body_inertia": _inertia,
    "gravity": _gravity,
    "joint_damping": _of_dofs("damping"),
    "joint_armature": _of_dofs("armature"),
    "joint_friction": _of_dofs("friction_loss"),
    "joint_limit_lower": _limits(0),
    "joint_limit_upper": _limits(1),
    "joint_limit_ke": _of_solref("limit_solref", of_stiffness=True),
    "joint_limit_kd": _of_solref("limit_solref", of_stiffness=False),
    "joint_target_ke": lambda world, name: _target_gains(world, name, ""),
    "joint_target_kd": lambda world, name: _target_gains(world, "", name),
    "shape_material_mu": _of_geoms(0),
    "shape_material_mu_torsional": _of_geoms(1),
    "shape_material_mu_rolling": _of_geoms(2),
    "shape_material_ke": _of_solref("solref", of_stiffness=True),
    "shape_material_kd": _of_solref("solref", of_stiffness=False),
    "mujoco.dof_passive_stiffness": _stiffness,
    "mujoco.tendon_stiffness": _of_tendons("tendon_stiffness"),
    "mujoco.tendon_damping": _of_tendons("tendon_damping"),
}
KNOWN = tuple(_ARRAYS)


class ModelParameters:
    """The arrays of a model that receive gradients, and their core parameters."""

    def __init__(
        self,
        model: newton.Model,
        maps: Maps,
        models: Sequence[mujoco.MjModel],
        inputs: Inputs,
        wanted: Sequence[str],
    ) -> None:
        self.arrays: dict[str, wp.array] = {name: array_of(model, name) for name in wanted}
        for name, acts in (("gravity", inputs.foreign), ("body_mass", inputs.weight.any())):
            if acts and name in self.arrays:
                raise UnsupportedFeatureError(
                    name,
                    "a body of the global world is simulated in another world, where it also acts"
                    " through a force of Newton. Leave it out of parameters=",
                )
        worlds = [_World(model, maps, mj, world) for world, mj in enumerate(models)]
        for world in worlds:
            for name in self.arrays:
                _ARRAYS[name](world, name)
        self._scaled = [world.scaled_tendons() for world in worlds]
        self._chains = [world.derive() for world in worlds]
        self.core = [world.core for world in worlds]
        # the arrays are concatenated, so that one sum computes all gradients
        sizes = [array.grad.numpy().size for array in self.arrays.values()]
        self._ends = np.cumsum([0, *sizes]).tolist()
        first = dict(zip(self.arrays, self._ends, strict=False))
        self._terms = [
            (
                np.array([first[name] + place for name, place, _, _ in world.terms], dtype=np.intp),
                np.array([term[2] for term in world.terms], dtype=np.intp),
                np.array([term[3] for term in world.terms]),
            )
            for world in worlds
        ]

    def require(self, world: int, data: mujoco.MjData) -> None:
        """Raise if a step has constraint rows whose derivative is incomplete."""
        rows = data.efc_id[data.efc_type == _LIMIT_TENDON]
        for t in self._scaled[world].intersection(rows.tolist()):
            raise UnsupportedFeatureError(
                f"tendon {t}",
                "its limit in force space is scaled by tendon_invweight0: leave body_mass,"
                " body_inertia and joint_armature out of parameters=",
            )

    def gradients(self, raw: list[Array]) -> Iterator[tuple[wp.array, Array]]:
        """Yield each array with its gradient, given the core gradients of every world."""
        total = np.zeros(self._ends[-1])
        for (place, source, factor), chain, values in zip(
            self._terms, self._chains, raw, strict=True
        ):
            given = values @ chain
            total += np.bincount(place, given[source] * factor, len(total))
        for array, (first, last) in zip(self.arrays.values(), pairwise(self._ends), strict=True):
            yield array, total[first:last]
