"""Conversion between Newton's and MuJoCo's joint coordinates, and its derivatives.

Worlds are the second to last axis of an array; there may be any axes before it. The equations are
in docs/derivations/newton.md. Quaternions are (x, y, z, w), as in Newton.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import newton
import numpy as np

from mujacobian._arguments import Array
from mujacobian._rotation import (
    conjugate,
    cross,
    left,
    left_transposed,
    lifted,
    matrix,
    multiply,
    right_transposed,
    sandwich,
    skew,
    to_wxyz,
    to_xyzw,
    turn,
    turn_back,
    unit,
)
from mujacobian.newton.internals import Indices, Maps

_FREE, _BALL = int(newton.JointType.FREE), int(newton.JointType.BALL)
_KINEMATIC = int(newton.BodyFlags.KINEMATIC)


@dataclass(frozen=True)
class Joints:
    """Indices of joints of one kind within a world, in Newton and in MuJoCo."""

    q: Indices  # (n, size)
    v: Indices  # (n, size)
    mj_q: Indices
    mj_v: Indices


@dataclass(frozen=True)
class Start:
    """The coordinates at the start of a step, and rotations computed from them."""

    joint_q: Array
    joint_qd: Array
    R_r: Array  # rotation of free joints: child anchor in parent anchor
    S: Array  # free joints: rotation of the body in the parent anchor, R_r R_c^T
    R: Array  # free joints: rotation of the body in the world
    w: Array  # free joints: angular velocity of the body in its own frame
    ball: Array  # R_r of ball joints


@dataclass(frozen=True)
class FrameCotangents:
    """Cotangents of the frames of joints, one row per world and joint.

    The rotations are about the axes of the frames.
    """

    parent: Array  # (worlds, joints, 6): position and rotation of the parent anchor
    child: Array  # (worlds, joints, 6): of the child anchor

    @classmethod
    def zeros(cls, worlds: int, joints: int) -> FrameCotangents:
        """Return cotangents of zero."""
        return cls(*(np.zeros((worlds, joints, 6)) for _ in range(2)))


class Coordinates:
    """The coordinates of all joints of a model, in all worlds."""

    def __init__(self, model: newton.Model, maps: Maps) -> None:
        W = maps.worlds
        joints = model.joint_count // W
        self.worlds = W
        self.nq, self.nv = model.joint_coord_count // W, model.joint_dof_count // W
        self.mj_nq, self.mj_nv = _sizes(model, maps)
        q_start = model.joint_q_start.numpy()[: joints + 1].astype(np.intp)
        v_start = model.joint_qd_start.numpy()[: joints + 1].astype(np.intp)
        self.kind = model.joint_type.numpy()[:joints]
        mapped = maps.q_start >= 0

        def group(chosen: Indices, q: int, v: int) -> Joints:
            def places(starts: Indices, size: int) -> Indices:
                return starts[chosen][:, None] + np.arange(size)

            return Joints(
                places(q_start, q),
                places(v_start, v),
                places(maps.q_start, q),
                places(maps.v_start, v),
            )

        free = np.flatnonzero(mapped & (self.kind == _FREE))
        ball = np.flatnonzero(mapped & (self.kind == _BALL))
        self.free, self.ball = group(free, 7, 6), group(ball, 4, 3)
        self.free_joint, self.ball_joint, self.joints = free, ball, joints
        self.ball_of = {int(j): k for k, j in enumerate(ball)}  # index among balls, by joint
        rest = [int(j) for j in np.flatnonzero(mapped) if self.kind[j] not in (_FREE, _BALL)]
        self.scalar = _scalars(rest, q_start, v_start, maps)

        parent = _transforms(model.joint_X_p).reshape(W, joints, 7)
        child = _transforms(model.joint_X_c).reshape(W, joints, 7)
        bodies = model.joint_child.numpy().reshape(W, joints)
        com = model.body_com.numpy().astype(np.float64)[bodies]
        self.com = com[:, free]  # c
        self.parent_position = parent[:, free, :3]  # p_p
        self.parent_rotation = parent[:, free, 3:]
        self.free_child_position = child[:, free, :3]  # p_c
        self.free_child_rotation = child[:, free, 3:]
        self.ball_child_rotation = child[:, ball, 3:]
        self.R_p = matrix(self.parent_rotation)
        self.free_R_c = matrix(self.free_child_rotation)
        self.child_inverse = -turn_back(self.free_R_c, self.free_child_position)  # of X_c^-1
        self.ball_R_c = matrix(self.ball_child_rotation)
        self.com_skew, self.inverse_skew = skew(self.com), skew(self.child_inverse)
        # for free joints: the matrix that maps g to r_p g r_c^-1
        self.around = sandwich(self.parent_rotation, self.free_child_rotation)

        # a step copies the coordinates of kinematic joints and does not write those of loop joints
        kinematic = (model.body_flags.numpy()[bodies] & _KINEMATIC) != 0
        self.kinematic_q = np.repeat(kinematic, np.diff(q_start), axis=1)
        self.kinematic_v = np.repeat(kinematic, np.diff(v_start), axis=1)
        self.written_q = np.repeat(mapped, np.diff(q_start))
        self.written_v = np.repeat(mapped, np.diff(v_start))
        self.reference = np.zeros((W, self.scalar.v.size))
        reference = getattr(getattr(model, "mujoco", None), "dof_ref", None)
        if reference is not None:
            self.reference = reference.numpy().astype(np.float64).reshape(W, -1)[:, self.scalar.v]

    def start(self, joint_q: Array, joint_qd: Array) -> Start:
        """Return the coordinates at the start of a step with their rotations."""
        R_r = matrix(unit(joint_q[..., self.free.q[:, 3:]]))
        S = R_r @ _transposed(self.free_R_c)
        w = turn_back(S, joint_qd[..., self.free.v[:, 3:]])
        ball = matrix(unit(joint_q[..., self.ball.q]))
        return Start(joint_q, joint_qd, R_r, S, self.R_p @ S, w, ball)

    def to_mujoco(self, at: Start) -> tuple[Array, Array]:
        """Return qpos and qvel of these coordinates (NWT-1, NWT-2)."""
        joint_q, joint_qd = at.joint_q, at.joint_qd
        lead = joint_q.shape[:-1]
        qpos, qvel = np.zeros((*lead, self.mj_nq)), np.zeros((*lead, self.mj_nv))
        qpos[..., self.scalar.mj_q] = joint_q[..., self.scalar.q] + self.reference
        qvel[..., self.scalar.mj_v] = joint_qd[..., self.scalar.v]
        if len(self.free.q):
            q, v = joint_q[..., self.free.q], joint_qd[..., self.free.v]
            offset = q[..., :3] + turn(at.R_r, self.child_inverse)
            position = self.parent_position + turn(self.R_p, offset)
            rotation = multiply(
                multiply(self.parent_rotation, unit(q[..., 3:])),
                conjugate(self.free_child_rotation),
            )
            linear = turn(self.R_p, v[..., :3]) - turn(at.R, cross(at.w, self.com))
            qpos[..., self.free.mj_q] = _join(position, to_wxyz(rotation))
            qvel[..., self.free.mj_v] = _join(linear, at.w)
        if len(self.ball.q):
            c = self.ball_child_rotation
            rotation = multiply(multiply(c, unit(joint_q[..., self.ball.q])), conjugate(c))
            qpos[..., self.ball.mj_q] = to_wxyz(rotation)
            qvel[..., self.ball.mj_v] = self.into_ball(at, joint_qd[..., self.ball.v])
        return qpos, qvel

    def to_newton(self, qpos: Array, qvel: Array) -> tuple[Array, Array]:
        """Return joint_q and joint_qd; they are zero where a step does not write them."""
        lead = qpos.shape[:-1]
        joint_q, joint_qd = np.zeros((*lead, self.nq)), np.zeros((*lead, self.nv))
        joint_q[..., self.scalar.q] = qpos[..., self.scalar.mj_q] - self.reference
        joint_qd[..., self.scalar.v] = qvel[..., self.scalar.mj_v]
        if len(self.free.q):
            q = qpos[..., self.free.mj_q]
            position, rotation = q[..., :3], to_xyzw(q[..., 3:])
            R = matrix(rotation)
            linear, w = _halves(qvel[..., self.free.mj_v])
            anchor = position + turn(R, self.free_child_position) - self.parent_position
            at_com = linear + turn(R, cross(w, self.com))
            joint_q[..., self.free.q] = _join(
                turn_back(self.R_p, anchor), self._free_rotation(rotation)
            )
            joint_qd[..., self.free.v] = _join(
                turn_back(self.R_p, at_com), turn_back(self.R_p, turn(R, w))
            )
        if len(self.ball.q):
            rotation = to_xyzw(qpos[..., self.ball.mj_q])
            joint_q[..., self.ball.q] = self._ball_rotation(rotation)
            joint_qd[..., self.ball.v] = turn_back(
                self.ball_R_c, turn(matrix(rotation), qvel[..., self.ball.mj_v])
            )
        return joint_q, joint_qd

    def into_ball(self, at: Start, vectors: Array) -> Array:
        """Rotate vectors of ball joints from the parent anchor to MuJoCo's frame: R_c R_r^T x."""
        return turn(self.ball_R_c, turn_back(at.ball, vectors))

    def pull_result(self, qpos: Array, qvel: Array, d_q: Array, d_v: Array) -> tuple[Array, Array]:
        """Pull cotangents of Newton's result back to the tangent of MuJoCo's result (NWT-6).

        Kinematic coordinates are left out, because the step only copies them.
        """
        if self.kinematic_q.any():
            d_q, d_v = np.where(self.kinematic_q, 0, d_q), np.where(self.kinematic_v, 0, d_v)
        lead = d_q.shape[:-1]
        y_q, y_v = np.zeros((*lead, self.mj_nv)), np.zeros((*lead, self.mj_nv))
        y_q[..., self.scalar.mj_v] = d_q[..., self.scalar.q]
        y_v[..., self.scalar.mj_v] = d_v[..., self.scalar.v]
        if len(self.free.q):
            g_q, g_v = d_q[..., self.free.q], d_v[..., self.free.v]
            rotation = to_xyzw(qpos[..., self.free.mj_q[:, 3:]])
            R, w = matrix(rotation), qvel[..., self.free.mj_v[:, 3:]]
            # cotangents of anchor, center of mass and rotation: in the world, then in the body
            given = _join(g_q[..., :3], g_v).reshape(*g_v.shape[:-1], 3, 3)
            outer = given @ _transposed(self.R_p)
            inner = outer @ R
            arms = np.stack([self.free_child_position, cross(w, self.com), w], axis=-2)
            # R_c E(r)^T g, with r = r_p^-1 q r_c
            turned = multiply(conjugate(rotation), turn(self.around, g_q[..., 3:]))
            theta = cross(arms, inner).sum(axis=-2) + 0.5 * turned[..., :3]
            y_q[..., self.free.mj_v] = _join(outer[..., 0, :], theta)
            y_v[..., self.free.mj_v] = _join(
                outer[..., 1, :], turn(self.com_skew, inner[..., 1, :]) + inner[..., 2, :]
            )
        if len(self.ball.q):
            g_q, g_v = d_q[..., self.ball.q], d_v[..., self.ball.v]
            rotation = to_xyzw(qpos[..., self.ball.mj_q])
            w = qvel[..., self.ball.mj_v]
            r = self._ball_rotation(rotation)
            b = turn_back(matrix(rotation), turn(self.ball_R_c, g_v))
            y_q[..., self.ball.mj_v] = cross(w, b) + 0.5 * turn(
                self.ball_R_c, right_transposed(r, g_q)
            )
            y_v[..., self.ball.mj_v] = b
        return y_q, y_v

    def pull_start(self, at: Start, x_q: Array, x_v: Array) -> tuple[Array, Array]:
        """Pull cotangents of MuJoCo's tangent at the start back to Newton's coordinates (NWT-5).

        Results depend on a quaternion r only through `r / |r|`.
        """
        lead = x_q.shape[:-1]
        g_q, g_v = np.zeros((*lead, self.nq)), np.zeros((*lead, self.nv))
        g_q[..., self.scalar.q] = x_q[..., self.scalar.mj_v]
        g_v[..., self.scalar.v] = x_v[..., self.scalar.mj_v]
        if len(self.free.q):
            force, x_theta = _halves(x_q[..., self.free.mj_v])
            linear, x_ang = _halves(x_v[..., self.free.mj_v])
            f = turn_back(at.R, linear)
            theta = x_theta - turn(self.com_skew, cross(f, at.w)) - cross(at.w, x_ang)
            at_parent, g_linear = turn_back(self.R_p, force), turn_back(self.R_p, linear)
            phi = turn_back(self.free_R_c, theta) + turn(
                self.inverse_skew, turn_back(at.R_r, at_parent)
            )
            stored = at.joint_q[..., self.free.q[:, 3:]]
            g_q[..., self.free.q] = _join(at_parent, lifted(stored, phi))
            g_v[..., self.free.v] = _join(g_linear, turn(at.S, x_ang - turn(self.com_skew, f)))
        if len(self.ball.q):
            theta = turn_back(self.ball_R_c, x_q[..., self.ball.mj_v])
            phi, g_v[..., self.ball.v] = self.pull_ball(
                at, at.joint_qd[..., self.ball.v], x_v[..., self.ball.mj_v]
            )
            g_q[..., self.ball.q] = lifted(at.joint_q[..., self.ball.q], theta + phi)
        return g_q, g_v

    def pull_ball(self, at: Start, vectors: Array, s: Array) -> tuple[Array, Array]:
        """Pull cotangents s of `into_ball(at, vectors)` back to its two arguments (NWT-4).

        The first result is the cotangent of a rotation after the quaternion of each ball joint;
        `lifted` converts it to the quaternion.
        """
        back = turn_back(self.ball_R_c, s)
        return cross(back, turn_back(at.ball, vectors)), turn(at.ball, back)

    def tangent(self, joint_q: Array, d_q: Array) -> Array:
        """Convert cotangents of joint_q to cotangents of its tangent coordinates (NWT-8)."""
        result = np.zeros((*d_q.shape[:-1], self.nv))
        result[..., self.scalar.v] = d_q[..., self.scalar.q]
        if len(self.free.q):
            g, r = d_q[..., self.free.q], joint_q[..., self.free.q[:, 3:]]
            lever = turn(matrix(unit(r)), self._lever())
            phi = 0.5 * left_transposed(r, g[..., 3:]) - cross(lever, g[..., :3])
            result[..., self.free.v] = _join(g[..., :3], phi)
        if len(self.ball.q):
            r = joint_q[..., self.ball.q]
            result[..., self.ball.v] = 0.5 * left_transposed(r, d_q[..., self.ball.q])
        return result

    def ambient(self, joint_q: Array, d_xi: Array) -> Array:
        """Convert cotangents of tangent coordinates to cotangents of joint_q (NWT-9)."""
        result = np.zeros((*d_xi.shape[:-1], self.nq))
        result[..., self.scalar.q] = d_xi[..., self.scalar.v]
        if len(self.free.q):
            r = unit(joint_q[..., self.free.q[:, 3:]])
            position, rotation = _halves(d_xi[..., self.free.v])
            lever = turn(matrix(r), self._lever())
            turned = 2 * left(r, rotation + cross(lever, position))
            result[..., self.free.q] = _join(position, turned)
        if len(self.ball.q):
            r = unit(joint_q[..., self.ball.q])
            result[..., self.ball.q] = 2 * left(r, d_xi[..., self.ball.v])
        return result

    def only(self, world: int) -> Coordinates:
        """Return the coordinates of one world, as if there were no other."""
        made = copy.copy(self)
        made.worlds = 1
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and name not in ("kind", "written_q", "written_v"):
                setattr(made, name, value[world : world + 1])
        return made

    def _free_rotation(self, rotation: Array) -> Array:
        """Return the rotation of the child anchor in the parent anchor of free joints.

        rotation: rotation of the body in the world.
        """
        return multiply(
            multiply(conjugate(self.parent_rotation), rotation), self.free_child_rotation
        )

    def _ball_rotation(self, rotation: Array) -> Array:
        """Return the rotation of the child anchor in the parent anchor of ball joints.

        rotation: MuJoCo's quaternion.
        """
        c = self.ball_child_rotation
        return multiply(multiply(conjugate(c), rotation), c)

    def _lever(self) -> Array:
        """Return the center of mass in the frame of the child anchor."""
        return turn_back(self.free_R_c, self.com - self.free_child_position)


def _scalars(joints: list[int], q_start: Indices, v_start: Indices, maps: Maps) -> Joints:
    """Return the indices of joints whose coordinates are the same in MuJoCo, in sequence."""
    counts = [v_start[j + 1] - v_start[j] for j in joints]

    def places(starts: Indices) -> Indices:
        runs = [starts[j] + np.arange(n) for j, n in zip(joints, counts, strict=True)]
        return np.concatenate([np.empty(0, dtype=np.intp), *runs])

    return Joints(places(q_start), places(v_start), places(maps.q_start), places(maps.v_start))


def _sizes(model: newton.Model, maps: Maps) -> tuple[int, int]:
    """Return MuJoCo's nq and nv, which exclude loop joints."""
    joints = len(maps.q_start)
    q = np.diff(model.joint_q_start.numpy()[: joints + 1])
    v = np.diff(model.joint_qd_start.numpy()[: joints + 1])
    mapped = maps.q_start >= 0
    return int(q[mapped].sum()), int(v[mapped].sum())


def _transforms(array: object) -> Array:
    """Return transforms in double precision with normalized rotations."""
    values: Array = array.numpy().astype(np.float64)  # type: ignore[attr-defined]
    values[:, 3:] = unit(values[:, 3:])
    return values


def _halves(array: Array) -> tuple[Array, Array]:
    return array[..., :3], array[..., 3:]


def _join(first: Array, second: Array) -> Array:
    return np.concatenate([first, second], axis=-1)


def _transposed(R: Array) -> Array:
    return np.swapaxes(R, -1, -2)
