"""The constants of `mj_setConst` as sums of terms w x . M y at `qpos0` (PAR-21)."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian._parameters.derived import ACTUATOR, ANCHOR, BODY, DOF, LENGTH, TENDON, Raw

Indices = NDArray[np.intp]

_FREE, _BALL = (int(getattr(mujoco.mjtJoint, f"mjJNT_{name}")) for name in ("FREE", "BALL"))
_ONLY_SLIDERS = 2  # in body_simple


def cross(a: Array, b: Array) -> Array:
    """Return the products a x b of vectors along the second-to-last axis."""
    a0, a1, a2 = a[..., 0, :], a[..., 1, :], a[..., 2, :]
    b0, b1, b2 = b[..., 0, :], b[..., 1, :], b[..., 2, :]
    return np.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-2)


class Structure:
    """The list of terms of a model's constants. It does not depend on the model's numbers."""

    def __init__(self, model: mujoco.MjModel, constants: list[Raw]) -> None:
        self.constants = constants
        table = np.array(constants, dtype=np.intp).reshape(-1, 3)
        self.kind, self.element, self.component = table.T
        self.moves = _moves(model)
        of_dof, of_body = self.kind == DOF, self.kind == BODY
        body = np.where(of_body, self.element, 0)
        body[of_dof] = model.dof_bodyid[self.element[of_dof]]
        # MuJoCo takes the inverse of the mass of bodies that have sliders only
        slides = (of_dof | of_body) & (model.body_simple[body] == _ONLY_SLIDERS)
        self.sliders = np.flatnonzero(slides)
        self.slider_bodies = body[self.sliders]
        self.lengths, self.anchors = (np.flatnonzero(self.kind == k) for k in (LENGTH, ANCHOR))
        self._number_terms(model, slides)

    def _number_terms(self, model: mujoco.MjModel, slides: NDArray[np.bool_]) -> None:
        """Number the terms, those of a constant in a row."""
        counts = np.zeros(len(self.constants), dtype=np.intp)
        unit_terms: list[int] = []
        unit_dofs: list[int] = []
        for row, (kind, element, _) in enumerate(self.constants):
            if kind in (LENGTH, ANCHOR) or slides[row]:
                continue
            start = int(counts[:row].sum())
            dofs = _averaged_dofs(model, element) if kind == DOF else []
            counts[row] = len(dofs) or (3 if kind == BODY else 1)
            unit_terms += range(start, start + len(dofs))
            unit_dofs += dofs
        first = np.cumsum(counts) - counts
        self.count = int(counts.sum())
        self.owner = np.repeat(np.arange(len(counts)), counts)
        self.weight = 1 / np.maximum(counts, 1)[self.owner]
        self.with_terms = np.flatnonzero(counts)
        self.starts = first[self.with_terms]
        self.unit = np.array(unit_terms, dtype=np.intp), np.array(unit_dofs, dtype=np.intp)
        self.bodies = np.flatnonzero((self.kind == BODY) & (counts > 0))
        self.body_terms = first[self.bodies][:, None] + np.arange(3)
        self.tendons, self.muscles = (
            np.flatnonzero((self.kind == k) & (counts > 0)) for k in (TENDON, ACTUATOR)
        )
        self.tendon_terms, self.muscle_terms = first[self.tendons], first[self.muscles]

    def sum_terms(self, of_terms: Array) -> Array:
        """Return the weighted sums over the terms (first axis) of each constant in `with_terms`."""
        if not self.count:
            return np.zeros((0, *of_terms.shape[1:]))
        weight = self.weight.reshape(-1, *[1] * (of_terms.ndim - 1))
        return np.add.reduceat(weight * of_terms, self.starts, axis=0)


class Terms:
    """The vectors of all terms at the numbers of a model, with M x = row; `data` is overwritten.

    `jacobians` are the velocities of all bodies, (nbody, 6, nv): angular, and linear of the body's
    point at the world's origin. `x`, `y` and `rows` are (terms, nv).
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, structure: Structure) -> None:
        self.model, self.data, self.structure = model, data, structure
        _compute_at_qpos0(model, data)
        self.jacobians = _jacobians(model, data, structure.moves)
        self.rows = self._rows()
        self.y = self.solve(self.rows)
        self.x = self.y
        if len(structure.muscles):
            self.x = self.y.copy()
            solved = self.y[structure.muscle_terms]
            sizes = np.maximum(np.linalg.norm(solved, axis=1), mujoco.mjMINVAL)
            self.x[structure.muscle_terms] = self.solve(solved) / sizes[:, None]

    def solve(self, rows: Array) -> Array:
        """Return the solutions x of M x = row."""
        result = np.empty_like(rows)
        if rows.size:
            mujoco.mj_solveM(self.model, self.data, result, np.ascontiguousarray(rows))
        return result

    def _rows(self) -> Array:
        """Return the rows whose weights MuJoCo averages."""
        s, model, data = self.structure, self.model, self.data
        rows = np.zeros((s.count, model.nv))
        rows[s.unit] = 1
        if len(s.bodies):
            elements = s.element[s.bodies]
            turn, shift = self.jacobians[elements, :3], self.jacobians[elements, 3:]
            moved = shift + cross(turn, data.xipos[elements][:, :, None])
            turns = s.component[s.bodies].astype(bool)[:, None, None]
            rows[s.body_terms] = np.where(turns, turn, moved)
        if len(s.tendons):
            rows[s.tendon_terms] = tendon_rows(model, data)[s.element[s.tendons]]
        if len(s.muscles):
            dense = np.zeros((len(data.moment_rownnz), model.nv))
            mujoco.mju_sparse2dense(
                dense,
                data.actuator_moment,
                data.moment_rownnz,
                data.moment_rowadr,
                data.moment_colind,
            )
            rows[s.muscle_terms] = dense[model.actuator_outadr[s.element[s.muscles]]]
        return rows

    def values(self) -> Array:
        """Return the constants: sums of w x . row (PAR-21)."""
        s, model, data = self.structure, self.model, self.data
        result = np.zeros(len(s.constants))
        result[s.with_terms] = s.sum_terms((self.x * self.rows).sum(axis=1))
        mass = np.maximum(model.body_mass[s.slider_bodies], mujoco.mjMINVAL)
        result[s.sliders] = np.where(s.component[s.sliders] == 0, 1 / mass, 0)
        result[s.lengths] = data.ten_length[s.element[s.lengths]]
        for row in s.anchors.tolist():
            second = model.eq_obj2id[s.element[row]]
            result[row] = self.anchor_axis(row) @ (self.anchor(row) - data.xpos[second])
        return result

    def anchor(self, row: int) -> Array:
        """Return the anchor of a connect on its first body, in the world frame."""
        eq = self.structure.element[row]
        first = self.model.eq_obj1id[eq]
        axes = self.data.xmat[first].reshape(3, 3)
        return np.asarray(self.data.xpos[first] + axes @ self.model.eq_data[eq, :3])

    def anchor_axis(self, row: int) -> Array:
        """Return the axis of the second body along which a component of a connect is measured."""
        second = self.model.eq_obj2id[self.structure.element[row]]
        axes = self.data.xmat[second].reshape(3, 3)
        return np.asarray(axes[:, self.structure.component[row]])


def tendon_rows(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return the moments of all tendons, (ntendon, nv)."""
    dense = np.zeros((model.ntendon, model.nv))
    mujoco.mju_sparse2dense(
        dense, data.ten_J, model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind
    )
    return dense


def _moves(model: mujoco.MjModel) -> NDArray[np.bool_]:
    """Return whether each dof moves each body, (nbody, nv)."""
    moves = np.zeros((model.nbody, model.nv), dtype=bool)
    for b in range(1, model.nbody):
        first = model.body_dofadr[b]
        moves[b] = moves[model.body_parentid[b]]
        moves[b, first : first + model.body_dofnum[b]] = True
    return moves


def _averaged_dofs(model: mujoco.MjModel, dof: int) -> list[int]:
    """Return the dofs whose weights MuJoCo averages: 3 translations, 3 rotations, or 1 dof."""
    joint = model.dof_jntid[dof]
    if model.jnt_type[joint] not in (_FREE, _BALL):
        return [dof]
    first = int(model.jnt_dofadr[joint])
    first += (dof - first) // 3 * 3
    return [first, first + 1, first + 2]


def _compute_at_qpos0(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    mujoco.mj_resetData(model, data)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_tendon(model, data)
    mujoco.mj_makeM(model, data)
    mujoco.mj_factorM(model, data)
    mujoco.mj_transmission(model, data)


def _jacobians(model: mujoco.MjModel, data: mujoco.MjData, moves: NDArray[np.bool_]) -> Array:
    """Return the velocities of all bodies; `cdof` has them about the center of each tree."""
    turn, shift = data.cdof[:, :3].T, data.cdof[:, 3:].T
    centers = data.subtree_com[model.body_rootid[model.dof_bodyid]].T
    dofs = np.concatenate([turn, shift - cross(turn, centers)])
    return np.where(moves[:, None, :], dofs, 0.0)
