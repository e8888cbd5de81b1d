"""States as MuJoCo stores them and as they move: quaternions and their rotations.

A state (qpos, qvel, act) has `nq + nv + na` numbers, a change of it `nx = 2 nv + na`: quaternions
turn by `dq = q (0, theta / 2) = E(q) theta / 2`, theta in the body's frame (ADJ-6).
"""

from __future__ import annotations

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._rotation import quaternion_rate, quaternion_rate_transposed
from mujacobian.errors import ArgumentError

# numbers that a joint has as they are, and whether a quaternion follows them
_PARTS = {mujoco.mjtJoint.mjJNT_FREE: (3, True), mujoco.mjtJoint.mjJNT_BALL: (0, True)}


class Manifold:
    """The states of a model."""

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
        self.nx = model.nv + rest
        self._quaternions = np.array(quaternions, dtype=int).reshape(-1, 4)
        self._rotations = np.array(rotations, dtype=int).reshape(-1, 3)
        self._numbers = np.array([*numbers, *range(model.nq, self.size)], dtype=int)
        self._dofs = np.array([*dofs, *range(model.nv, self.nx)], dtype=int)

    def pull(self, states: Array, gradients: Array) -> Array:
        """Gradients with respect to states, as gradients with respect to changes (ADJ-7)."""
        result = np.empty((*gradients.shape[:-1], self.nx))
        result[..., self._dofs] = gradients[..., self._numbers]
        q, g = states[..., self._quaternions], gradients[..., self._quaternions]
        result[..., self._rotations] = 0.5 * quaternion_rate_transposed(q, g)
        return result

    def lift(self, states: Array, gradients: Array) -> Array:
        """Gradients with respect to changes, as those of functions of `q / |q|` (ADJ-8)."""
        result = np.empty((*gradients.shape[:-1], self.size))
        result[..., self._numbers] = gradients[..., self._dofs]
        q = states[..., self._quaternions]
        g = gradients[..., self._rotations] * (2 / (q * q).sum(axis=-1, keepdims=True))
        result[..., self._quaternions] = quaternion_rate(q, g)
        return result

    def push(self, states: Array, changes: Array) -> Array:
        """Changes, as those of the stored numbers (ADJ-6)."""
        result = np.empty((*changes.shape[:-1], self.size))
        result[..., self._numbers] = changes[..., self._dofs]
        q, theta = states[..., self._quaternions], changes[..., self._rotations]
        result[..., self._quaternions] = 0.5 * quaternion_rate(q, theta)
        return result

    def align(self, states: Array, others: Array) -> Array:
        """Others with their quaternions q or -q, whichever is nearer to that of states.

        NaN in others stands where nothing was measured: the other components decide.
        """
        result = others.copy()
        q, p = states[..., self._quaternions], others[..., self._quaternions]
        away = np.nansum(q * p, axis=-1, keepdims=True) < 0
        result[..., self._quaternions] = np.where(away, -p, p)
        return result

    def require_rotations(self, states: Array) -> None:
        """Raise where a quaternion is zero and so no rotation."""
        norms = np.linalg.norm(states[..., self._quaternions], axis=-1)
        for index in np.argwhere(norms < mujoco.mjMINVAL)[:1]:
            first = int(self._quaternions[index[-1], 0])
            raise ArgumentError(f"state has a quaternion of length 0 at qpos[{first}]")


def pull_poses(poses: Array, gradients: Array) -> Array:
    """Gradients `(..., 6)` with respect to positions and rotations, as those of poses (ADJ-8)."""
    q = poses[..., 3:]
    g = gradients[..., 3:] * (2 / (q * q).sum(axis=-1, keepdims=True))
    return np.concatenate([gradients[..., :3], quaternion_rate(q, g)], axis=-1)


def push_poses(poses: Array, changes: Array) -> Array:
    """Changes of poses `(..., 7)`, as those of positions and rotations `(..., 6)` (ADJ-6)."""
    q = poses[..., 3:]
    theta = quaternion_rate_transposed(q, changes[..., 3:]) * (
        2 / (q * q).sum(axis=-1, keepdims=True)
    )
    return np.concatenate([changes[..., :3], theta], axis=-1)
