"""States as MuJoCo stores them, and their tangent coordinates.

A state (qpos, qvel, act) has `nq + nv + na` numbers, and a change of it has `nx = 2 nv + na`. A
rotation theta in the body's frame changes a quaternion by `dq = q (0, theta / 2) = E(q) theta / 2`
(ADJ-6).
"""

from __future__ import annotations

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._rotation import quaternion_rate, quaternion_rate_transposed
from mujacobian.errors import ArgumentError

# the number of scalar coordinates of a joint, and whether a quaternion follows them
_PARTS = {mujoco.mjtJoint.mjJNT_FREE: (3, True), mujoco.mjtJoint.mjJNT_BALL: (0, True)}
# numbers, because arrays compare slowly with enumerators
_FREE, _BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)


def tangent_size(model: mujoco.MjModel) -> int:
    """Return nx = 2 nv + na, the number of tangent coordinates of a state."""
    return int(2 * model.nv + model.na)


class Manifold:
    """The states of a model and their tangent coordinates."""

    def __init__(self, model: mujoco.MjModel) -> None:
        numbers: list[int] = []
        dofs: list[int] = []
        quaternions, rotations = [], []
        for joint in range(model.njnt):
            kind = mujoco.mjtJoint(model.jnt_type[joint])
            q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
            count, turns = _PARTS.get(kind, (1, False))
            numbers += range(q, q + count)
            dofs += range(v, v + count)
            if turns:
                quaternions.append(range(q + count, q + count + 4))
                rotations.append(range(v + count, v + count + 3))
        rest = model.nv + model.na
        self.size = model.nq + rest
        self.nv, self.nx = model.nv, model.nv + rest
        self._quaternions = np.array(quaternions, dtype=int).reshape(-1, 4)
        self._rotations = np.array(rotations, dtype=int).reshape(-1, 3)
        self._numbers = np.array([*numbers, *range(model.nq, self.size)], dtype=int)
        self._dofs = np.array([*dofs, *range(model.nv, self.nx)], dtype=int)

    def pull(self, states: Array, gradients: Array) -> Array:
        """Convert gradients with respect to states to tangent coordinates (ADJ-7)."""
        result = np.empty((*gradients.shape[:-1], self.nx))
        result[..., self._dofs] = gradients[..., self._numbers]
        q, g = states[..., self._quaternions], gradients[..., self._quaternions]
        result[..., self._rotations] = 0.5 * quaternion_rate_transposed(q, g)
        return result

    def lift(self, states: Array, gradients: Array) -> Array:
        """Convert gradients in tangent coordinates to those of functions of `q / |q|` (ADJ-8)."""
        result = np.empty((*gradients.shape[:-1], self.size))
        result[..., self._numbers] = gradients[..., self._dofs]
        q = states[..., self._quaternions]
        g = gradients[..., self._rotations] * (2 / (q * q).sum(axis=-1, keepdims=True))
        result[..., self._quaternions] = quaternion_rate(q, g)
        return result

    def push(self, states: Array, changes: Array) -> Array:
        """Convert changes in tangent coordinates to changes of the stored numbers (ADJ-6)."""
        result = np.empty((*changes.shape[:-1], self.size))
        result[..., self._numbers] = changes[..., self._dofs]
        q, theta = states[..., self._quaternions], changes[..., self._rotations]
        result[..., self._quaternions] = 0.5 * quaternion_rate(q, theta)
        return result

    def move(self, states: Array, changes: Array) -> Array:
        """Return states after changes in tangent coordinates, which agree to second order."""
        moved = states + self.push(states, changes)
        q = moved[..., self._quaternions]
        moved[..., self._quaternions] = q / np.linalg.norm(q, axis=-1, keepdims=True)
        return moved

    def reduce(self, states: Array, changes: Array) -> Array:
        """Convert changes of the stored numbers to tangent coordinates of `q / |q|` (HVP-3)."""
        result = np.empty((*changes.shape[:-1], self.nx))
        result[..., self._dofs] = changes[..., self._numbers]
        q, dq = states[..., self._quaternions], changes[..., self._quaternions]
        scale = 2 / (q * q).sum(axis=-1, keepdims=True)
        result[..., self._rotations] = scale * quaternion_rate_transposed(q, dq)
        return result

    def curve(self, states: Array, gradients: Array, changes: Array) -> Array:
        """Return the second derivative of `gradients . states` times tangent changes (HVP-4)."""
        result = np.zeros_like(changes)
        q, g = states[..., self._quaternions], gradients[..., self._quaternions]
        theta = changes[..., self._rotations]
        result[..., self._rotations] = -0.25 * (q * g).sum(axis=-1, keepdims=True) * theta
        return result

    def lift_product(self, states: Array, gradients: Array, products: Array, along: Array) -> Array:
        """Convert the product of a Hessian in tangent coordinates with `reduce(along)` (HVP-5).

        Args:
          states: the states, `(..., size)`.
          gradients: gradients in tangent coordinates.
          products: products of the Hessian in tangent coordinates.
          along: the direction, a change of the stored numbers.
        """
        result = self.lift(states, products)
        q, dq = states[..., self._quaternions], along[..., self._quaternions]
        g = self.lift(states, gradients)[..., self._quaternions]
        inner = (q * dq).sum(axis=-1, keepdims=True) * g + q * (g * dq).sum(axis=-1, keepdims=True)
        result[..., self._quaternions] -= inner / (q * q).sum(axis=-1, keepdims=True)
        return result

    def align(self, states: Array, others: Array) -> Array:
        """Return `others` with the sign of each quaternion that is nearer to that of `states`.

        NaN in `others` marks components that were not measured. The other components decide.
        """
        result = others.copy()
        q, p = states[..., self._quaternions], others[..., self._quaternions]
        away = np.nansum(q * p, axis=-1, keepdims=True) < 0
        result[..., self._quaternions] = np.where(away, -p, p)
        return result


def require_rotations(model: mujoco.MjModel, states: Array) -> None:
    """Raise if a quaternion of a state is zero and therefore not a rotation."""
    kinds, first = model.jnt_type, model.jnt_qposadr
    is_free, is_ball = kinds == _FREE, kinds == _BALL
    places = np.where(is_free, first + 3, first)[is_free | is_ball]
    quaternions = states[..., places[:, None] + np.arange(4)]
    norms = np.linalg.norm(quaternions, axis=-1)
    for index in np.argwhere(norms < mujoco.mjMINVAL)[:1]:
        raise ArgumentError(f"state has a quaternion of length 0 at qpos[{places[index[-1]]}]")


def pull_poses(poses: Array, gradients: Array) -> Array:
    """Convert gradients `(..., 6)` by positions and rotations to gradients by poses (ADJ-8)."""
    q = poses[..., 3:]
    g = gradients[..., 3:] * (2 / (q * q).sum(axis=-1, keepdims=True))
    return np.concatenate([gradients[..., :3], quaternion_rate(q, g)], axis=-1)


def push_poses(poses: Array, changes: Array) -> Array:
    """Convert changes of poses `(..., 7)` to changes of positions and rotations (ADJ-6)."""
    q = poses[..., 3:]
    theta = quaternion_rate_transposed(q, changes[..., 3:]) * (
        2 / (q * q).sum(axis=-1, keepdims=True)
    )
    return np.concatenate([changes[..., :3], theta], axis=-1)
