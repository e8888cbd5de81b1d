"""Derivatives of the constants of `mj_setConst`, at `qpos0`. docs/derivations/parameters.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian import _core
from mujacobian.derived import (
    ACTUATOR,
    ANCHOR,
    ARMATURE,
    BODY,
    BODY_POSITION,
    BODY_ROTATION,
    DOF,
    FRAMES,
    INERTIAL,
    JOINT_POSITION,
    LENGTH,
    TENDON,
    Raw,
)
from mujacobian.inertia import PAIRS

Array = NDArray[np.float64]

_FREE, _BALL, _SLIDE = (
    int(getattr(mujoco.mjtJoint, f"mjJNT_{name}")) for name in ("FREE", "BALL", "SLIDE")
)


def derived_slopes(
    model: mujoco.MjModel, data: mujoco.MjData, constants: list[Raw], core: list[Raw]
) -> Array:
    """How the constants change with the core's parameters, (constants, parameters).

    `data` may be in any state and is overwritten.
    """
    if not constants:
        return np.zeros((0, len(core)))
    return _Slopes(model, data, constants, core).result


def derived_values(model: mujoco.MjModel, data: mujoco.MjData, constants: list[Raw]) -> Array:
    """The constants, with every frame exactly where it is; `data` is overwritten."""
    return _Slopes(model, data, constants, []).values()


@dataclass(frozen=True)
class _Carrier:
    """A motion, about the world's origin, of a body and all below it; see `Carrier` in C++."""

    body: int
    before: bool  # the dofs of the body itself move, too
    turn: Array
    shift: Array

    def at(self, point: Array) -> Array:
        return self.shift + np.cross(self.turn, point)


class _Slopes:
    """Each constant is a sum of terms w x . M y, with x and y that solve M x = a row (PAR-21)."""

    def __init__(
        self, model: mujoco.MjModel, data: mujoco.MjData, constants: list[Raw], core: list[Raw]
    ) -> None:
        self.model, self.data, self.constants, self.core = model, data, constants, core
        _compute_at_qpos0(model, data)
        self.result = np.zeros((len(constants), len(core)))
        self.inverse = np.empty((model.nv, model.nv))
        mujoco.mj_solveM(model, self.data, self.inverse, np.eye(model.nv))
        # velocities of the bodies' points at the world's origin
        self.ang, self.lin = np.zeros((2, model.nbody, 3, model.nv))
        for b in range(1, model.nbody):
            mujoco.mj_jac(model, self.data, self.lin[b], self.ang[b], np.zeros(3), b)
        self._make_terms()
        self._add_inertia()
        frames = [k for k, raw in enumerate(core) if raw[0] in FRAMES]
        if frames:
            self._add_frames(frames)

    def _make_terms(self) -> None:
        """The vectors x and y of all terms, their weights, and their constants."""
        owner: list[int] = []
        all_rows: list[Array] = []
        x: list[Array] = []
        y: list[Array] = []
        weight: list[float] = []
        for row, (kind, element, component) in enumerate(self.constants):
            if kind in (LENGTH, ANCHOR) or self._is_slider(kind, element):
                continue
            rows = self._rows(kind, element, component)
            solved = rows @ self.inverse
            all_rows += list(rows)
            if kind == ACTUATOR:
                size = np.linalg.norm(solved)
                x.append(solved[0] @ self.inverse / max(size, mujoco.mjMINVAL))
                y.append(solved[0])
                weight.append(1.0)
            else:
                x += list(solved)
                y += list(solved)
                weight += [1 / len(rows)] * len(rows)
            owner += [row] * len(rows)
        shape = (len(owner), self.model.nv)
        self.owner = np.array(owner, dtype=np.intp)
        self.x, self.y = np.reshape(x, shape).T, np.reshape(y, shape).T
        self.rows, self.weight = np.reshape(all_rows, shape).T, np.array(weight)

    def values(self) -> Array:
        """The constants themselves: w x . row, summed (PAR-21)."""
        model, data = self.model, self.data
        result = np.zeros(len(self.constants))
        np.add.at(result, self.owner, self.weight * (self.x * self.rows).sum(axis=0))
        for row, (kind, element, component) in enumerate(self.constants):
            if self._is_slider(kind, element):
                body = model.dof_bodyid[element] if kind == DOF else element
                result[row] = 0 if component else 1 / model.body_mass[body]
            elif kind == LENGTH:
                result[row] = data.ten_length[element]
            elif kind == ANCHOR:
                second = model.eq_obj2id[element]
                axis = data.xmat[second].reshape(3, 3)[:, component]
                result[row] = axis @ (self._anchor(element) - data.xpos[second])
        return result

    def _anchor(self, eq: int) -> Array:
        """The point of its first body that a connect holds."""
        first = self.model.eq_obj1id[eq]
        local = self.model.eq_data[eq, :3]
        return np.asarray(self.data.xpos[first] + self.data.xmat[first].reshape(3, 3) @ local)

    def _is_slider(self, kind: int, element: int) -> bool:
        """The body has sliders only: MuJoCo takes the inverse of its mass."""
        if kind not in (DOF, BODY):
            return False
        body = self.model.dof_bodyid[element] if kind == DOF else element
        return bool(self.model.body_simple[body] == 2)

    def _rows(self, kind: int, element: int, component: int) -> Array:
        """The rows whose weights MuJoCo averages."""
        model, data, nv = self.model, self.data, self.model.nv
        if kind == DOF:
            joint = model.dof_jntid[element]
            first = model.jnt_dofadr[joint]
            if model.jnt_type[joint] in (_FREE, _BALL):
                return np.eye(nv)[first + (element - first) // 3 * 3 :][:3]
            return np.eye(nv)[element : element + 1]
        if kind == BODY:
            turn = np.asarray(self.ang[element])
            return turn if component else self.lin[element] + _cross(turn, data.xipos[element])
        if kind == TENDON:
            dense = np.zeros((model.ntendon, nv))
            mujoco.mju_sparse2dense(
                dense, data.ten_J, model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind
            )
            return dense[element : element + 1]
        out = model.actuator_outadr[element]
        dense = np.zeros((len(data.moment_rownnz), nv))
        mujoco.mju_sparse2dense(
            dense, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
        )
        return dense[out : out + 1]

    def _add(self, column: int, terms: Array) -> None:
        self.result[:, column] += np.bincount(self.owner, terms, len(self.constants))

    def _add_inertia(self) -> None:
        """Add dM with inertia and armature, and motions of centers of mass (PAR-22)."""
        kinds, elements, components = np.array(self.core, dtype=np.intp).reshape(-1, 3).T
        of_dofs = np.flatnonzero(kinds == ARMATURE)
        dofs = elements[of_dofs]
        self._add_terms(of_dofs, self.x[dofs] * self.y[dofs])
        of_bodies = np.flatnonzero(kinds == INERTIAL)
        if not len(of_bodies):
            return
        bodies, places = np.unique(elements[of_bodies], return_inverse=True)
        self._add_terms(of_bodies, self._quadratic(bodies)[places, components[of_bodies]])
        columns = {self.core[k]: k for k in of_bodies.tolist()}
        for row, (kind, element, component) in enumerate(self.constants):
            if self._is_slider(kind, element):
                body = int(self.model.dof_bodyid[element]) if kind == DOF else element
                column, mass = columns.get((INERTIAL, body, 0)), self.model.body_mass[body]
                if column is not None and component == 0 and mass != 0:
                    self.result[row, column] -= 1 / mass**2
            elif kind == BODY and component == 0:
                change = self._center_change(element, self.owner == row)
                for k, value in enumerate(change):
                    if (column := columns.get((INERTIAL, element, k))) is not None:
                        self.result[row, column] += value

    def _add_terms(self, columns: NDArray[np.intp], changes: Array) -> None:
        """Add -w x . dM y of the terms of each constant, with changes x . dM y of each column."""
        if not len(self.owner):
            return
        rows, first = np.unique(self.owner, return_index=True)  # terms are in the order of rows
        sums = np.add.reduceat(self.weight * changes, first, axis=1)
        self.result[np.ix_(rows, columns)] -= sums.T

    def _center_change(self, body: int, of_row: Array) -> Array:
        """How a body's weight changes as its mass and its first moments move its center of mass."""
        mass, axes = self.model.body_mass[body], self.data.xmat[body].reshape(3, 3)
        if mass == 0:
            return np.zeros(4)
        t = self.ang[body] @ self.x[:, of_row]
        along = np.array([t[2, 1] - t[1, 2], t[0, 2] - t[2, 0], t[1, 0] - t[0, 1]]) @ axes
        unit = np.array([-along @ self.model.body_ipos[body], *along])
        return np.asarray(2 / 3 / mass * unit)

    def _quadratic(self, bodies: NDArray[np.intp]) -> Array:
        """Return x . dM y of all terms for each of the ten numbers of the bodies' inertias."""
        inward = self.data.xmat[bodies].reshape(-1, 3, 3).transpose(0, 2, 1)
        origin = self.data.xpos[bodies][:, :, None]
        moved = []
        for z in (self.x, self.y):
            turn = self.ang[bodies] @ z
            shift = self.lin[bodies] @ z + np.cross(turn, origin, axis=1)
            moved.append((inward @ turn, inward @ shift))
        (w, v), (w2, v2) = moved
        first = np.cross(v, w2, axis=1) + np.cross(v2, w, axis=1)
        second = [w[:, i] * w2[:, j] + (w[:, j] * w2[:, i] if i != j else 0) for i, j in PAIRS]
        whole = (v * v2).sum(axis=1, keepdims=True)
        return np.concatenate([whole, first, np.stack(second, axis=1)], axis=1)

    def _add_frames(self, frames: list[int]) -> None:
        """Add dM, d(rows), lengths and anchors with motions of subtrees (PAR-23)."""
        model = self.model
        armature = _tendon_armature(model)
        pattern = _pattern(model)
        x, y = self._momentum(self.x), self._momentum(self.y)
        paths = self._paths([self.core[k] for k in frames], armature)
        for place, column in enumerate(frames):
            for c in _carriers(model, self.data, self.core[column]):
                self._add(column, -self.weight * self._inertia_change(c, x, y))
                below = _subtree(model, c.body)
                for row, (kind, element, component) in enumerate(self.constants):
                    if kind == BODY and below[element] and not self._is_slider(kind, element):
                        change = self._body_change(c, element, component, self.owner == row)
                        self.result[row, column] += 2 / 3 * change
                    elif kind == ANCHOR:
                        self.result[row, column] += self._anchor_change(
                            c, below, element, component
                        )
            for tendon, inertia in armature.items():
                own = self._rows(TENDON, tendon, 0)
                turned = np.outer(paths[TENDON, tendon][place, 1:], own)
                dM = inertia * pattern * (turned + turned.T)
                self._add(column, -self.weight * ((dM @ self.x) * self.y).sum(axis=0))
            for row, (kind, element, _) in enumerate(self.constants):
                if (kind, element) not in paths:
                    continue
                length, moment = paths[kind, element][place, 0], paths[kind, element][place, 1:]
                if kind == LENGTH:
                    self.result[row, column] += length
                else:
                    factor = 2 if kind == TENDON else 1
                    self.result[row, column] += (
                        factor * moment @ self.x[:, self.owner == row].sum(axis=1)
                    )

    def _momentum(self, z: Array) -> tuple[Array, Array]:
        """Angular and linear momentum of all subtrees, about the world's origin, for motions z."""
        model, data = self.model, self.data
        ang, lin = np.zeros((2, model.nbody, 3, z.shape[1]))
        for b in range(model.nbody - 1, 0, -1):
            axes = data.ximat[b].reshape(3, 3)
            turn = self.ang[b] @ z
            push = model.body_mass[b] * (self.lin[b] @ z + _cross(turn, data.xipos[b]))
            spin = axes @ (model.body_inertia[b][:, None] * (axes.T @ turn))
            lin[b] += push
            ang[b] += spin - _cross(push, data.xipos[b])
            lin[model.body_parentid[b]] += lin[b]
            ang[model.body_parentid[b]] += ang[b]
        return ang, lin

    def _inertia_change(self, c: _Carrier, x: tuple[Array, Array], y: tuple[Array, Array]) -> Array:
        """Return x . dM y = -(S x V(x)) . P(y) - (S x V(y)) . P(x), V before the carrier."""
        total = np.zeros(self.x.shape[1])
        base = self.model.body_parentid[c.body] if c.before else c.body
        for z, (ang, lin) in ((self.x, y), (self.y, x)):
            turn, shift = self.ang[base] @ z, self.lin[base] @ z
            total -= (-_cross(turn, c.turn) * ang[c.body]).sum(axis=0)
            total -= ((-_cross(shift, c.turn) - _cross(turn, c.shift)) * lin[c.body]).sum(axis=0)
        return total

    def _body_change(self, c: _Carrier, body: int, rotation: int, of_row: Array) -> float:
        """The sum of x_k . dJ_k over the three axes."""
        base = self.model.body_parentid[c.body] if c.before else c.body
        z, com = self.x[:, of_row], self.data.xipos[body]
        turn, before = self.ang[body] @ z, self.ang[base] @ z
        if rotation:
            return float(np.trace(-_cross(turn - before, c.turn)))
        own = self.lin[body] @ z + _cross(turn, com)
        based = self.lin[base] @ z + _cross(before, com)
        return float(np.trace(-_cross(own - based, c.turn) + _cross(before, c.at(com))))

    def _anchor_change(self, c: _Carrier, below: Array, eq: int, component: int) -> float:
        model, data = self.model, self.data
        first, second = model.eq_obj1id[eq], model.eq_obj2id[eq]
        moved = (float(below[first]) - float(below[second])) * c.at(self._anchor(eq))
        return float(data.xmat[second].reshape(3, 3)[:, component] @ moved)

    def _paths(self, frames: list[Raw], others: Iterable[int]) -> dict[tuple[int, int], Array]:
        """Changes of length and moments with the frames, (parameters, 1 + nv)."""
        tendons = sorted(
            {*others, *(e for kind, e, _ in self.constants if kind in (TENDON, LENGTH))}
        )
        muscles = sorted({e for kind, e, _ in self.constants if kind == ACTUATOR})
        out = np.zeros((len(tendons) + len(muscles), len(frames), 1 + self.model.nv))
        _core.frame_paths_into(self.model, self.data, frames, tendons, muscles, out)
        found = {(kind, t): out[k] for k, t in enumerate(tendons) for kind in (TENDON, LENGTH)}
        return found | {(ACTUATOR, a): out[len(tendons) + k] for k, a in enumerate(muscles)}


def _compute_at_qpos0(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    mujoco.mj_resetData(model, data)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_tendon(model, data)
    mujoco.mj_makeM(model, data)
    mujoco.mj_factorM(model, data)
    mujoco.mj_transmission(model, data)


def _cross(columns: Array, vector: Array) -> Array:
    """Each column times a vector: column x vector."""
    (a, b, c), (x, y, z) = columns, vector
    return np.stack([b * z - c * y, c * x - a * z, a * y - b * x])


def _subtree(model: mujoco.MjModel, root: int) -> Array:
    """Whether each body is the root or below it."""
    below = np.zeros(model.nbody, dtype=bool)
    below[root] = True
    for b in range(root + 1, model.nbody):
        below[b] = below[model.body_parentid[b]]
    return below


def _tendon_armature(model: mujoco.MjModel) -> dict[int, float]:
    """The inertia along spatial tendons, where there is any; actuators add theirs."""
    total = model.tendon_armature.copy()
    along = model.actuator_trntype == int(mujoco.mjtTrn.mjTRN_TENDON)
    for a in np.flatnonzero(along & (model.actuator_armature != 0)):
        gear = model.actuator_gear[a, 0]
        total[model.actuator_trnid[a, 0]] += gear**2 * model.actuator_armature[a]
    spatial = model.wrap_type[model.tendon_adr] != int(mujoco.mjtWrap.mjWRAP_JOINT)
    return {t: float(total[t]) for t in np.flatnonzero((total != 0) & spatial).tolist()}


def _pattern(model: mujoco.MjModel) -> Array:
    """The entries of M that MuJoCo stores, as ones in a matrix of zeros."""
    pattern = np.zeros((model.nv, model.nv))
    for i in range(model.nv):
        first = model.M_rowadr[i]
        columns = model.M_colind[first : first + model.M_rownnz[i]]
        pattern[i, columns] = pattern[columns, i] = 1
    return pattern


def _carriers(model: mujoco.MjModel, data: mujoco.MjData, raw: Raw) -> list[_Carrier]:
    """The motions that a unit change of a frame parameter is made of, about the world's origin."""
    kind, element, component = raw
    joint = kind not in (BODY_POSITION, BODY_ROTATION)
    body = model.jnt_bodyid[element] if joint else element
    parent = model.body_parentid[body]
    outer, after = data.xmat[parent].reshape(3, 3), data.xmat[body].reshape(3, 3)
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, model.body_quat[body] / np.linalg.norm(model.body_quat[body]))
    before = outer @ matrix.reshape(3, 3)
    origin = data.xpos[parent] + outer @ model.body_pos[body]
    unit, zero = np.eye(3)[component], np.zeros(3)
    first = model.body_jntadr[body]
    if not joint and first >= 0 and model.jnt_type[first] == _FREE:
        return []  # MuJoCo does not read this frame
    if kind == BODY_POSITION:
        return [_Carrier(body, True, zero, outer @ unit)]
    if kind == BODY_ROTATION:
        return [_turn(body, True, before @ unit, origin)]
    slides = model.jnt_type[element] == _SLIDE
    if kind == JOINT_POSITION:
        if slides:
            return []
        ahead, behind = before @ unit, after @ unit
        return [_Carrier(body, True, zero, ahead), _Carrier(body, False, zero, -behind)]
    turn = np.cross(model.jnt_axis[element], unit)
    points = (origin, data.xpos[body]) if slides else (data.xanchor[element],) * 2
    return [
        _turn(body, True, before @ turn, points[0]),
        _turn(body, False, -after @ turn, points[1]),
    ]


def _turn(body: int, before: bool, axis: Array, point: Array) -> _Carrier:
    return _Carrier(body, before, axis, np.cross(point, axis))
