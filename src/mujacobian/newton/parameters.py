"""The dependence of MuJoCo's parameters on arrays of the Newton model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

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
from mujacobian.newton.frame_parameters import (
    CHILD,
    COM,
    PARENT,
    add_child_frame,
    add_com,
    add_parent_frame,
)
from mujacobian.newton.internals import Maps
from mujacobian.newton.row_parameters import (
    RELATIVE_POSE,
    add_anchors,
    add_coefficients,
    add_joint_mimic,
    add_polynomials,
    add_relative_poses,
    add_torque_scales,
    of_equalities,
    of_pairs,
)
from mujacobian.newton.shape_parameters import add_scale, add_transform

_KINEMATIC = int(newton.BodyFlags.KINEMATIC)
_POSITION = int(newton.JointTargetMode.POSITION)
_FORCE_SPACE, _RAW_SOLREF = 0, 1
_PRM = 10  # numbers in gainprm and biasprm of an actuator
_SCALAR = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))


def array_of(model: newton.Model, name: str) -> wp.array | None:
    """Return an array of the model by its name, or None if there is no such array."""
    owner: object = model
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner


class CoreParameters:
    """The core parameters of all worlds, without repetitions."""

    def __init__(self) -> None:
        self.items: list[tuple[int, int, int]] = []
        self._places: dict[tuple[int, int, int], int] = {}

    def place(self, kind: str | int, row: int, component: int) -> int:
        """Return the index of a core parameter, which is appended if it is new."""
        raw = KINDS[kind] if isinstance(kind, str) else kind, int(row), component
        if raw not in self._places:
            self._places[raw] = len(self.items)
            self.items.append(raw)
        return self._places[raw]

    def find(self, kind: str, row: int, component: int) -> int | None:
        """Return the index of a core parameter, or None if it is absent."""
        return self._places.get((KINDS[kind], row, component))


class Derived(NamedTuple):
    """Derivatives of derived constants and of the numbers that Newton computes from them."""

    # index of each core parameter, and its derivatives with respect to given parameters
    rows: list[tuple[int, Array]]
    # MuJoCo body, component of its center of mass, constant, derivative
    centers: list[tuple[int, int, tuple[int, int, int], float]]


class WorldParameters:
    """The dependence of the core parameters of one world on the chosen arrays."""

    def __init__(
        self,
        model: newton.Model,
        maps: Maps,
        mj: mujoco.MjModel,
        world: int,
        core: CoreParameters,
    ) -> None:
        self.model, self.maps, self.mj, self.world, self.core = model, maps, mj, world, core
        # (array, flat index in it, index in `core`, derivative of the core parameter)
        self.terms: list[tuple[str, int, int, float]] = []

    def anchors(self, joint: int) -> tuple[Array, Array]:
        """Return both anchors of a joint in double precision."""
        parent, child = (self.array(name).numpy()[joint] for name in (PARENT, CHILD))
        return parent.astype(np.float64), child.astype(np.float64)

    def array(self, name: str) -> wp.array:
        """Return an array of Newton's model."""
        found = array_of(self.model, name)
        assert found is not None
        return found

    def add(self, name: str, target: int, kind: str, row: int, component: int, by: float) -> None:
        """Add the derivative `by` of a core parameter with respect to an element of an array.

        target: index of the element in the flat array.
        kind, row, component: the core parameter.
        """
        self.terms.append((name, int(target), self.core.place(kind, row, component), by))

    def derive(self, given: Sequence[tuple[int, int, int]]) -> Derived:
        """Append the constants derived from the given core parameters; return their derivatives.

        Newton scales the stiffness and damping of limits in
        force space by invweight0 (1 - dmax). The time constant is therefore proportional to
        1 / invweight0, and the damping ratio to the square root of invweight0 (NWT-10).
        """
        constants = derived_constants(self.mj, list(given))
        with borrowed(self.mj) as data:
            derived = DerivedSlopes(self.mj, constants, list(given))
            slopes, centers = derived.slopes(self.mj, data)
        limits = {int(self.mj.jnt_dofadr[j]): j for j, _ in self.in_force_space()}
        rows = [(self.core.place(*raw), slopes[k]) for k, raw in enumerate(constants)]
        for k, (kind, dof, _) in enumerate(constants):
            weight = self.mj.dof_invweight0[dof] if kind == DOF else 0
            if dof not in limits or not weight > 0:
                continue
            time, ratio = self.mj.jnt_solref[limits[dof]]
            place = self.core.place("limit_solref", limits[dof], 0)
            rows.append((place, -time / weight * slopes[k]))
            place = self.core.place("limit_solref", limits[dof], 1)
            rows.append((place, ratio / (2 * weight) * slopes[k]))
        moved = [
            (int(derived.bodies[place]), int(component), constants[k], centers[k, place, component])
            for k, place, component in np.argwhere(centers)
        ]
        return Derived(rows, moved)

    def add_centers(self, derived: Derived) -> None:
        """Add the terms of constants that MuJoCo measures at centers of mass."""
        bodies = dict(self.bodies())
        for b, component, constant, slope in derived.centers:
            place = self.core.place(*constant)
            self.terms.append((COM, 3 * bodies[b] + component, place, float(slope)))

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
        if mode is None or not depends_on(self.core.items):
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

    def colliding(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of a MuJoCo geom that can collide and its Newton shape."""
        pairs = {*self.mj.pair_geom1.tolist(), *self.mj.pair_geom2.tolist()}
        for g, shape in self.geoms():
            if self.mj.geom_contype[g] or self.mj.geom_conaffinity[g] or g in pairs:
                yield g, shape

    def tendons(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of a MuJoCo tendon and its Newton tendon."""
        count = len(self.model.mujoco.tendon_stiffness)
        for t in np.flatnonzero(self.maps.tendon >= 0).tolist():
            yield t, self.offset(count) + self.maps.tendon[t]


def _mass(world: WorldParameters, name: str) -> None:
    for b, body in world.bodies():
        c = world.mj.body_ipos[b]
        steiner = c @ c * np.eye(3) - np.outer(c, c)
        slopes = [1.0, *c, *(steiner[place] for place in PAIRS)]
        for k, slope in enumerate(slopes):
            world.add(name, body, "inertial", b, k, slope)


def _inertia(world: WorldParameters, name: str) -> None:
    """Add the terms of the symmetric part of the inertia matrix."""
    for b, body in world.bodies():
        for k, (i, j) in enumerate(PAIRS):
            for row, column in {(i, j), (j, i)}:
                share = 1.0 if i == j else 0.5
                world.add(name, 9 * body + 3 * row + column, "inertial", b, 4 + k, share)


def _gravity(world: WorldParameters, name: str) -> None:
    for k in range(3):
        world.add(name, 3 * world.world + k, "gravity", 0, k, 1.0)


def _of_dofs(kind: str) -> Callable[[WorldParameters, str], None]:
    def add(world: WorldParameters, name: str) -> None:
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


def _stiffness(world: WorldParameters, name: str) -> None:
    for j in np.flatnonzero(world.maps.joint_dof >= 0).tolist():
        dof = world.offset(world.model.joint_dof_count) + world.maps.joint_dof[j]
        world.add(name, dof, "stiffness", j, 0, 1.0)


def _limits(end: int) -> Callable[[WorldParameters, str], None]:
    def add(world: WorldParameters, name: str) -> None:
        for j, dof in world.limited():
            world.add(name, dof, "limit", j, end, 1.0)

    return add


def _of_solref(kind: str, of_stiffness: bool) -> Callable[[WorldParameters, str], None]:
    """Return the function for solref of limits or geoms.

    The time constant is proportional to 1 / kd, the damping ratio to kd / sqrt(ke).
    """
    limits = kind == "limit_solref"

    def add(world: WorldParameters, name: str) -> None:
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


def _target_gains(world: WorldParameters, stiffness: str, damping: str) -> None:
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


def _of_geoms(component: int) -> Callable[[WorldParameters, str], None]:
    def add(world: WorldParameters, name: str) -> None:
        for g, shape in world.geoms():
            world.add(name, shape, "friction", g, component, 1.0)

    return add


def _of_tendons(kind: str) -> Callable[[WorldParameters, str], None]:
    def add(world: WorldParameters, name: str) -> None:
        for t, tendon in world.tendons():
            if kind == "tendon_friction_loss" and world.mj.tendon_frictionloss[t] == 0:
                continue  # there is no constraint row of dry friction
            world.add(name, tendon, kind, t, 0, 1.0)

    return add


def _of_actuators(kind: str) -> Callable[[WorldParameters, str], None]:
    """Return the function for gains or biases of actuators from MJCF."""

    def add(world: WorldParameters, name: str) -> None:
        first = world.offset(len(world.array(name)))
        types = world.mj.actuator_gaintype if kind == "gain" else world.mj.actuator_biastype
        for actuator in world.maps.actuators.direct[:, 0].tolist():
            own = world.maps.actuator[actuator]
            for component in range(_numbers(kind, int(types[actuator])) if own >= 0 else 0):
                place = _PRM * (first + own) + component
                world.add(name, place, kind, actuator, component, 1.0)

    return add


def _numbers(kind: str, law: int) -> int:
    """Return how many numbers of gainprm or biasprm a force law reads."""
    if kind == "gain":
        return 1 if law == int(mujoco.mjtGain.mjGAIN_FIXED) else 3
    return 0 if law == int(mujoco.mjtBias.mjBIAS_NONE) else 3


# the function that adds the terms of each array; effort_limits.py differentiates joint_effort_limit
ARRAYS: dict[str, Callable[[WorldParameters, str], None]] = {
    "body_mass": _mass,
    "body_inertia": _inertia,
    "body_com": add_com,
    "gravity": _gravity,
    "joint_X_p": add_parent_frame,
    "joint_X_c": add_child_frame,
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
    "shape_transform": add_transform,
    "shape_scale": add_scale,
    "mujoco.dof_passive_stiffness": _stiffness,
    "mujoco.tendon_stiffness": _of_tendons("tendon_stiffness"),
    "mujoco.tendon_damping": _of_tendons("tendon_damping"),
    "mujoco.tendon_frictionloss": _of_tendons("tendon_friction_loss"),
    "mujoco.actuator_gainprm": _of_actuators("gain"),
    "mujoco.actuator_biasprm": _of_actuators("bias"),
    "mujoco.equality_constraint_anchor": add_anchors,
    RELATIVE_POSE: add_relative_poses,
    "mujoco.equality_constraint_torquescale": add_torque_scales,
    "mujoco.equality_constraint_polycoef": add_polynomials,
    "mujoco.eq_solref": of_equalities("equality_solref", 2),
    "mujoco.eq_solimp": of_equalities("equality_solimp", 5),
    "constraint_mimic_coef0": add_coefficients(0),
    "constraint_mimic_coef1": add_coefficients(1),
    "joint_mimic_coeffs": add_joint_mimic,
    "mujoco.pair_friction": of_pairs("pair_friction", 5),
    "mujoco.pair_solref": of_pairs("pair_solref", 2),
    "mujoco.pair_solreffriction": of_pairs("pair_solreffriction", 2),
    "mujoco.pair_solimp": of_pairs("pair_solimp", 5),
    "joint_effort_limit": lambda world, name: None,
}
KNOWN = tuple(ARRAYS)
# arrays from which Newton computes the friction and solref of a contact
MATERIALS = tuple(name for name in KNOWN if name.startswith("shape_material_"))
# arrays of explicit contact pairs, which MuJoCo uses for contacts that it finds
PAIRS_OF_SHAPES = tuple(name for name in KNOWN if name.startswith("mujoco.pair_"))
# arrays from which MuJoCo finds contacts
SHAPES = ("shape_transform", "shape_scale")
# arrays whose gradients are computed only if the caller names them: some contacts have no
# derivative with respect to shapes, and joint frames take long
NAMED = (*SHAPES, PARENT, CHILD)
