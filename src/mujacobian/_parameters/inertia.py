"""Inertia of single bodies: the core's ten numbers, log-Cholesky coordinates, principal axes."""

from __future__ import annotations

from itertools import permutations

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._rotation import quaternion_matrix
from mujacobian.errors import ArgumentError

_FREE, _SLIDE, _HINGE = (
    int(getattr(mujoco.mjtJoint, f"mjJNT_{name}")) for name in ("FREE", "SLIDE", "HINGE")
)

# The ten numbers of the core are the mass, mass * com, and the moments xx yy zz xy xz yz about the
# body's origin, all in the body's frame.
PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def _pack(moments: Array) -> Array:
    return np.array([moments[i, j] for i, j in PAIRS])


def _unpack(packed: Array) -> Array:
    moments = np.empty((3, 3))
    for value, (i, j) in zip(packed, PAIRS, strict=True):
        moments[i, j] = moments[j, i] = value
    return moments


def _steiner(a: Array, b: Array) -> Array:
    """Return the moments about the origin of a unit mass at a, as a bilinear form in a = b."""
    return float(a @ b) * np.eye(3) - 0.5 * (np.outer(a, b) + np.outer(b, a))


def principal_axes(model: mujoco.MjModel, body: int) -> Array:
    """Return the principal axes of the body's inertia as columns, in the body's frame."""
    return quaternion_matrix(model.body_iquat[body])


def inertial(model: mujoco.MjModel, body: int) -> Array:
    """Return the ten numbers of a body."""
    mass, com, axes = model.body_mass[body], model.body_ipos[body], principal_axes(model, body)
    moments = axes @ np.diag(model.body_inertia[body]) @ axes.T + mass * _steiner(com, com)
    return np.concatenate([[mass], mass * com, _pack(moments)])


def inertial_slopes(model: mujoco.MjModel, body: int, field: str) -> Array:
    """Return the derivatives of the ten numbers by a field of mjModel, a column per component."""
    mass, com = model.body_mass[body], model.body_ipos[body]
    if field == "body_mass":
        x, y, z = com.tolist()
        xx, yy, zz = x * x, y * y, z * z
        return np.array([[1.0, x, y, z, yy + zz, xx + zz, xx + yy, -x * y, -x * z, -y * z]]).T
    result = np.zeros((10, 3))
    if field == "body_ipos":
        result[1:4] = mass * np.eye(3)
        result[4:] = np.transpose([2 * mass * _pack(_steiner(com, e)) for e in np.eye(3)])
    else:
        result[4:] = np.transpose([_pack(np.outer(a, a)) for a in principal_axes(model, body).T])
    return result


def inertial_slope_changes(
    model: mujoco.MjModel, body: int, field: str, mass_change: float, com_change: Array
) -> Array:
    """Return the changes of `inertial_slopes` as the mass and the center of mass change."""
    mass, com = model.body_mass[body], model.body_ipos[body]
    if field == "body_mass":
        moments = 2 * _pack(_steiner(com, com_change))
        return np.concatenate([[0.0], com_change, moments])[:, None]
    result = np.zeros((10, 3))
    if field == "body_ipos":
        result[1:4] = mass_change * np.eye(3)
        moved = mass_change * com + mass * com_change
        result[4:] = np.transpose([2 * _pack(_steiner(moved, e)) for e in np.eye(3)])
    return result


def write_inertia(model: mujoco.MjModel, body: int, numbers: Array) -> None:
    """Write ten numbers into a body, with the principal axes that are nearest to its own."""
    mass = numbers[0]
    com = numbers[1:4] / mass
    before = principal_axes(model, body)
    turned = before.T @ (_unpack(numbers[4:]) - mass * _steiner(com, com)) @ before
    moments, axes = np.linalg.eigh(0.5 * (turned + turned.T))
    order = max(permutations(range(3)), key=lambda p: np.abs(axes[range(3), p]).sum())
    moments, axes = moments[list(order)], axes[:, order]
    axes *= np.where(np.diag(axes) < 0, -1.0, 1.0)
    if np.linalg.det(axes) < 0:
        axes[:, np.abs(np.diag(axes)).argmin()] *= -1
    model.body_mass[body] = mass
    model.body_ipos[body] = com
    model.body_inertia[body] = moments
    mujoco.mju_mat2Quat(model.body_iquat[body], np.ascontiguousarray(before @ axes).ravel())


# Indices of the last six numbers, s12, s23, s13, t1, t2, t3, in the upper triangular factor.
_UPPER = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))


def log_cholesky(model: mujoco.MjModel, body: int) -> Array:
    """Return the ten numbers theta with U(theta) U(theta)^T the pseudo-inertia of the body."""
    numbers = inertial(model, body)
    moments = _unpack(numbers[4:])
    pseudo = np.empty((4, 4))
    pseudo[:3, :3] = 0.5 * np.trace(moments) * np.eye(3) - moments
    pseudo[:3, 3] = pseudo[3, :3] = numbers[1:4]
    pseudo[3, 3] = numbers[0]
    try:
        # an upper factor of P is a lower factor of P with its rows and columns reversed
        upper = np.linalg.cholesky(pseudo[::-1, ::-1])[::-1, ::-1]
    except np.linalg.LinAlgError:
        name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, body)
        raise ArgumentError(
            f'the inertia of body "{name}" is not that of any distribution of mass (it is zero, or'
            " it violates the triangle inequality): body_log_cholesky cannot describe it"
        ) from None
    scale = upper[3, 3]
    return np.concatenate(
        [
            [np.log(scale)],
            np.log(np.diag(upper)[:3] / scale),
            [upper[place] / scale for place in _UPPER],
        ]
    )


def _numbers(pseudo: Array) -> Array:
    """Return the ten numbers of a pseudo-inertia."""
    sigma = pseudo[:3, :3]
    moments = np.trace(sigma) * np.eye(3) - sigma
    return np.concatenate([[pseudo[3, 3]], pseudo[:3, 3], _pack(moments)])


def _upper_factor(theta: Array) -> tuple[Array, list[Array]]:
    """Return the factor of these log-Cholesky coordinates, and its ten derivatives."""
    scale = np.exp(theta[0])
    upper = np.diag(np.append(scale * np.exp(theta[1:4]), scale))
    for value, place in zip(theta[4:], _UPPER, strict=True):
        upper[place] = scale * value
    changes: list[Array] = [upper]
    for k in range(3):
        changes.append(np.zeros((4, 4)))
        changes[-1][k, k] = upper[k, k]
    for place in _UPPER:
        changes.append(np.zeros((4, 4)))
        changes[-1][place] = scale
    return upper, changes


def from_log_cholesky(theta: Array) -> tuple[Array, Array]:
    """Return the ten numbers of these log-Cholesky coordinates, and their derivative."""
    upper, changes = _upper_factor(theta)
    slopes = [_numbers(change @ upper.T + upper @ change.T) for change in changes]
    return _numbers(upper @ upper.T), np.array(slopes).T


def log_cholesky_slope_changes(theta: Array, direction: Array) -> Array:
    """Return the change of the derivative of `from_log_cholesky` along a direction."""
    upper, changes = _upper_factor(theta)
    moved = np.tensordot(direction, changes, axes=1)
    # the factor is proportional to exp(theta[0]), and its diagonal to exp(theta[1:4])
    second = [moved, *(np.where(change != 0, moved, 0.0) for change in changes[1:4])]
    second += [direction[0] * change for change in changes[4:]]
    halves = [a @ upper.T + b @ moved.T for a, b in zip(second, changes, strict=True)]
    return np.array([_numbers(half + half.T) for half in halves]).T


def restore_derived(model: mujoco.MjModel) -> None:
    """Recompute subtree masses, and the constant inertia of bodies that MuJoCo marks as simple."""
    model.body_subtreemass[:] = model.body_mass
    for body in range(model.nbody - 1, 0, -1):
        model.body_subtreemass[model.body_parentid[body]] += model.body_subtreemass[body]
    for dof in np.flatnonzero(model.dof_simplenum):
        body, joint = model.dof_bodyid[dof], model.dof_jntid[dof]
        place = dof - model.jnt_dofadr[joint]
        kind = model.jnt_type[joint]
        if kind == _SLIDE or (kind == _FREE and place < 3):
            inertia = model.body_mass[body]
        elif kind == _HINGE:
            axis = model.jnt_axis[joint]
            inertia = model.body_inertia[body] @ (principal_axes(model, body).T @ axis) ** 2
            arm = np.cross(axis, model.body_ipos[body] - model.jnt_pos[joint])
            inertia += model.body_mass[body] * (arm @ arm)
        else:
            inertia = model.body_inertia[body][place % 3]
        model.dof_M0[dof] = inertia + model.dof_armature[dof]
