"""Gradients of joint frames and centers of mass, by which coordinates and wrenches are measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import newton
import numpy as np

from mujacobian._arguments import Array
from mujacobian._rotation import (
    cross,
    left_transposed,
    lifted,
    matrix,
    right_transposed,
    to_xyzw,
    turn,
    turn_back,
)
from mujacobian.newton.coordinates import Coordinates, FrameCotangents, Start
from mujacobian.newton.frame_parameters import CHILD, COM, PARENT
from mujacobian.newton.inputs import Inputs
from mujacobian.newton.internals import Maps

if TYPE_CHECKING:
    from mujacobian.newton.snapshot import InputCotangents


class JointFrames:
    """The frames of all joints in Newton's coordinates, beside their effect on MuJoCo's model.

    Attributes:
      wanted: arrays whose gradients are computed.
    """

    def __init__(
        self,
        model: newton.Model,
        maps: Maps,
        coordinates: Coordinates,
        inputs: Inputs,
        wanted: Sequence[str],
    ) -> None:
        self.wanted = [name for name in (COM, PARENT, CHILD) if name in wanted]
        self._coordinates, self._inputs = coordinates, inputs
        W = maps.worlds
        # bodies with free joints, within a world
        child = model.joint_child.numpy().astype(np.intp)
        self._free = child[coordinates.free_joint]
        self._bodies = model.body_count
        self._quaternions = {
            name: getattr(model, name).numpy().astype(np.float64)[:, 3:].reshape(W, -1, 4)
            for name in self.wanted
            if name != COM
        }

    def pull(
        self,
        result: tuple[Array, Array, Array, Array],
        at: Start,
        given: dict[str, Array],
        made: InputCotangents,
        carried: bool,
    ) -> dict[str, Array]:
        """Return gradients of the arrays (NWT-18 to NWT-21).

        result: qpos and qvel after the step, and cotangents of Newton's coordinates after it.
        at, given: coordinates and inputs at the start of the step.
        made: cotangents of MuJoCo's inputs.
        carried: whether the step begins with MuJoCo's own coordinates.
        """
        c, found = self._coordinates, {}
        if COM in self.wanted:
            at_joints = _centers_at_end(c, *result)
            if not carried:
                at_joints = at_joints + _centers_at_start(c, at, made.v)
            found[COM] = np.zeros((self._bodies, 3))
            found[COM].reshape(c.worlds, -1, 3)[:, self._free] += at_joints
            if made.centers is not None:
                self._add_centers(found[COM], made.centers)
        if not self._quaternions:
            return found
        to = FrameCotangents.zeros(c.worlds, c.joints)
        _pull_end(c, to, *result)
        if not carried:
            _pull_start(c, to, at, made.q, made.v)
        self._inputs.pull_frames(to, at, given, made.actions)
        for name, moved in ((PARENT, to.parent), (CHILD, to.child)):
            if name in self.wanted:
                turned = lifted(self._quaternions[name], moved[..., 3:])
                found[name] = np.concatenate([moved[..., :3], turned], axis=-1)
        return found

    def _add_centers(self, to: Array, centers: Array) -> None:
        """Add the gradients of the centers at which wrenches act, per world and MuJoCo body."""
        inputs = self._inputs
        bodies = to.reshape(inputs.worlds, -1, 3)
        acts = np.where(inputs.movable[..., None], centers[:, inputs.mj_body], 0)
        bodies[:, inputs.body] += acts


def _without_kinematic(c: Coordinates, d_q: Array, d_v: Array) -> tuple[Array, Array]:
    """Return the cotangents of coordinates that MuJoCo computes."""
    return np.where(c.kinematic_q, 0, d_q), np.where(c.kinematic_v, 0, d_v)


def _rotation_at_end(c: Coordinates, qpos: Array) -> Array:
    """Return the rotations of free bodies after the step."""
    return matrix(to_xyzw(qpos[..., c.free.mj_q[:, 3:]]))


def _centers_at_end(c: Coordinates, qpos: Array, qvel: Array, d_q: Array, d_v: Array) -> Array:
    """Return cotangents of centers of mass of free bodies at the end of a step (NWT-20)."""
    _, d_v = _without_kinematic(c, d_q, d_v)
    w = qvel[..., c.free.mj_v[:, 3:]]
    in_world = turn(c.R_p, d_v[..., c.free.v[:, :3]])
    return cross(turn_back(_rotation_at_end(c, qpos), in_world), w)


def _centers_at_start(c: Coordinates, at: Start, x_v: Array) -> Array:
    """Return the same at the start of a step (NWT-19)."""
    return cross(at.w, turn_back(at.R, x_v[..., c.free.mj_v[:, :3]]))


def _pull_end(
    c: Coordinates, to: FrameCotangents, qpos: Array, qvel: Array, d_q: Array, d_v: Array
) -> None:
    """Add cotangents of anchors at the end of a step (NWT-20)."""
    d_q, d_v = _without_kinematic(c, d_q, d_v)
    joint_q, joint_qd = c.to_newton(qpos, qvel)
    if len(c.free.q):
        # position, rotation and both velocities, with their cotangents
        q, v = joint_q[..., c.free.q], joint_qd[..., c.free.v]
        g_q, g_v = d_q[..., c.free.q], d_v[..., c.free.v]
        vectors = (q[..., :3], g_q[..., :3]), (v[..., :3], g_v[..., :3]), (v[..., 3:], g_v[..., 3:])
        turned = sum(cross(vector, g) for vector, g in vectors)
        r, g_r = q[..., 3:], g_q[..., 3:]
        in_world = turn(c.R_p, g_q[..., :3])
        to.parent[:, c.free_joint, :3] -= in_world
        to.parent[:, c.free_joint, 3:] -= turned + 0.5 * left_transposed(r, g_r)
        to.child[:, c.free_joint, :3] += turn_back(_rotation_at_end(c, qpos), in_world)
        to.child[:, c.free_joint, 3:] += 0.5 * right_transposed(r, g_r)
    if len(c.ball.q):
        g_q, g_v = d_q[..., c.ball.q], d_v[..., c.ball.v]
        r, w = joint_q[..., c.ball.q], joint_qd[..., c.ball.v]
        turned = 0.5 * (right_transposed(r, g_q) - left_transposed(r, g_q)) - cross(w, g_v)
        to.child[:, c.ball_joint, 3:] += turned


def _pull_start(c: Coordinates, to: FrameCotangents, at: Start, x_q: Array, x_v: Array) -> None:
    """Add cotangents of anchors at the start of a step (NWT-19)."""
    if len(c.free.q):
        q, v = at.joint_q[..., c.free.q], at.joint_qd[..., c.free.v]
        force, theta = np.split(x_q[..., c.free.mj_v], 2, axis=-1)
        linear, x_ang = np.split(x_v[..., c.free.mj_v], 2, axis=-1)
        at_parent, v_parent = turn_back(c.R_p, force), turn_back(c.R_p, linear)
        offset = q[..., :3] + turn(at.R_r, c.child_inverse)
        about = turn(at.S, cross(at.w, c.com))  # velocity of the center about the origin
        turned = cross(offset, at_parent) + turn(at.S, theta)
        to.parent[:, c.free_joint, :3] += force
        to.parent[:, c.free_joint, 3:] += turned + cross(v[..., :3] - about, v_parent)
        # in the axes of the child anchor
        w = turn_back(at.R_r, v[..., 3:])
        arm, com = -c.child_inverse, turn_back(c.free_R_c, c.com)
        x_p, x_l = turn_back(at.R_r, at_parent), turn_back(at.R_r, v_parent)
        phi = cross(arm, x_p) - turn_back(c.free_R_c, theta)
        phi += cross(w, turn_back(c.free_R_c, x_ang)) + cross(com, cross(x_l, w))
        to.child[:, c.free_joint, :3] -= turn_back(at.R, force)
        to.child[:, c.free_joint, 3:] += phi
    if len(c.ball.q):
        y = turn_back(c.ball_R_c, x_q[..., c.ball.mj_v])
        phi, _ = c.pull_ball(at, at.joint_qd[..., c.ball.v], x_v[..., c.ball.mj_v])
        to.child[:, c.ball_joint, 3:] += turn(at.ball, y) - y - phi
