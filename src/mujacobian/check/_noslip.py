"""MuJoCo's noslip solver in NumPy: the final forces, and the branch of every update.

The derivation is in docs/derivations/noslip.md. Everything is dense here and uses MuJoCo's own rows
(edges of pyramids, not tangents), so that it has little in common with the core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array

# (A, b, f) -> the new forces, and the branch of the update
Solve = Callable[[Array, Array, Array], tuple[Array, int]]

Constraint = mujoco.mjtConstraint
DRY = (int(Constraint.mjCNSTR_FRICTION_DOF), int(Constraint.mjCNSTR_FRICTION_TENDON))
PYRAMIDAL = int(Constraint.mjCNSTR_CONTACT_PYRAMIDAL)
ELLIPTIC = int(Constraint.mjCNSTR_CONTACT_ELLIPTIC)
CONVERGED = 1e-12  # relative residual of the cone solver's equation
TRACE_SINCE = 3017000  # mj_version() from which improvements are scaled by the trace of M


@dataclass
class Sweeps:
    """Forces after the sweeps, numbers of sweeps per island, and branches of the updates."""

    force: Array
    counts: list[int] = field(default_factory=list)
    outcomes: list[int] = field(default_factory=list)


def sweep(model: mujoco.MjModel, data: mujoco.MjData, iterations: int, tolerance: float) -> Sweeps:
    """Run the sweeps from the forces in `data`, after `mj_forward` without noslip."""
    J = jacobian(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    A = J @ np.linalg.solve(M, J.T)
    b = J @ data.qacc_smooth - data.efc_aref
    result = Sweeps(data.efc_force.copy())
    islands = [data.efc_island == k for k in range(data.nisland)] or [np.ones(data.nefc, bool)]
    for k, island in enumerate(islands):
        dofs = data.dof_island == k if data.nisland else slice(None)
        scale = model.stat.meaninertia * max(1, model.nv)
        if mujoco.mj_version() >= TRACE_SINCE:
            scale = np.diag(M)[dofs].sum()
        rows = np.flatnonzero(island)
        gain = 0.5 * (data.efc_R[rows] * result.force[rows] ** 2).sum()
        count = 0
        while count < iterations:
            gain += sum(_updates(data, rows, A, b, result))
            count += 1
            if gain / scale < tolerance:
                break
            gain = 0.0
        result.counts.append(count)
    return result


def jacobian(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return efc_J as a dense matrix."""
    J = np.empty((data.nefc, model.nv))
    for k in range(model.nv):
        column = np.empty(data.nefc)
        mujoco.mj_mulJacVec(model, data, column, np.eye(model.nv)[k])
        J[:, k] = column
    return J


def _updates(
    data: mujoco.MjData, rows: NDArray[np.int_], A: Array, b: Array, result: Sweeps
) -> Iterator[float]:
    """Run one sweep over the rows of an island; yield the decrease of the cost by each update."""
    done = -1
    for i in rows:
        kind = data.efc_type[i]
        if i <= done:
            continue
        if kind in DRY:
            bound = float(data.efc_frictionloss[i])
            yield _update(A, b, result, slice(i, i + 1), _bounded(bound))
        elif kind in (PYRAMIDAL, ELLIPTIC):
            contact = data.contact[data.efc_id[i]]
            done = i + (2 * contact.dim - 3 if kind == PYRAMIDAL else contact.dim - 1)
            if kind == PYRAMIDAL:
                for j in range(i, done, 2):
                    yield _update(A, b, result, slice(j, j + 2), _opposed)
            else:
                solve = _cone(contact.friction[: contact.dim - 1], float(result.force[i]))
                yield _update(A, b, result, slice(i + 1, done + 1), solve)


def _update(A: Array, b: Array, result: Sweeps, rows: slice, solve: Solve) -> float:
    f = result.force
    block, residual, old = A[rows, rows].copy(), b[rows] + A[rows] @ f, f[rows].copy()
    in_contact = len(old) > 1  # dry friction has one row, contacts have more
    if in_contact:
        np.fill_diagonal(block, np.maximum(np.diag(block), 1e-10))
    new, outcome = solve(block, residual - block @ old, old)
    delta = new - old
    change = float(delta @ block @ delta / 2 + delta @ residual)
    if change > 1e-10 and in_contact:
        result.outcomes.append(-1)
        return 0.0
    f[rows] = new
    result.outcomes.append(outcome)
    return -change


def _bounded(bound: float) -> Solve:
    def solve(A: Array, b: Array, _: Array) -> tuple[Array, int]:
        x = -b / max(A[0, 0], 1e-15)
        return np.clip(x, -bound, bound), int(np.sign(x[0]) * (abs(x[0]) > bound))

    return solve


def _opposed(A: Array, b: Array, f: Array) -> tuple[Array, int]:
    middle = float(f.mean())
    curvature = A[0, 0] + A[1, 1] - 2 * A[0, 1]
    if curvature < 1e-15:
        return np.full(2, middle), 2
    y = float(-(middle * (A[0, 0] - A[1, 1]) + b[0] - b[1]) / curvature)
    clipped = min(max(y, -middle), middle)
    return middle + clipped * np.array([1, -1]), int(np.sign(y) * (abs(y) > middle))


def _cone(mu: Array, r: float) -> Solve:
    def solve(A: Array, b: Array, _: Array) -> tuple[Array, int]:
        if r < 1e-15:
            return np.zeros(len(b)), -2
        A, b = mu[:, None] * A * mu, mu * b
        multiplier, count = 0.0, 0
        while count < 20:
            count += 1
            shifted = A + multiplier * np.eye(len(b))
            if _is_singular(shifted):
                return np.zeros(len(b)), -3
            v = -np.linalg.solve(shifted, b)
            excess = float(v @ v) - r * r
            if excess < 1e-10:
                break
            step = excess / (2 * float(v @ np.linalg.solve(shifted, v)))
            if step < 1e-10:
                break
            multiplier += step
        scale = r / np.sqrt(max(1e-15, float(v @ v))) if multiplier else 1.0
        # where the steps have converged, one more or less is not another branch
        exact = abs(excess) <= CONVERGED * r * r or multiplier == 0
        return scale * mu * v, int(multiplier > 0) if exact else count + 2

    return solve


def _is_singular(A: Array) -> bool:
    if len(A) <= 3:
        return bool(np.linalg.det(A) < 1e-10)
    try:
        return bool((np.diag(np.linalg.cholesky(A)) ** 2).min() < 1e-10)
    except np.linalg.LinAlgError:
        return True
