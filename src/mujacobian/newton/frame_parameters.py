"""The dependence of MuJoCo's frames on the joint frames and centers of mass of Newton's model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._parameters.inertia import inertial_slopes
from mujacobian._rotation import lifted, matrix, skew, unit
from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton.row_parameters import measured_welds

if TYPE_CHECKING:
    from mujacobian.newton.parameters import WorldParameters

COM, PARENT, CHILD = "body_com", "joint_X_p", "joint_X_c"
_FREE, _BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
_RK4 = int(mujoco.mjtIntegrator.mjINT_RK4)
_MUSCLE = int(mujoco.mjtGain.mjGAIN_MUSCLE)
_WRAP_JOINT = int(mujoco.mjtWrap.mjWRAP_JOINT)
_CONNECT = int(mujoco.mjtEq.mjEQ_CONNECT)


def add_com(world: WorldParameters, name: str) -> None:
    """Add the terms of the inertia about the origin of the body, at fixed `body_inertia`."""
    if world.mj.opt.integrator == _RK4:
        raise UnsupportedFeatureError(name, "RK4 applies forces on bodies at several poses")
    for b, body in world.bodies():
        for k, slopes in enumerate(inertial_slopes(world.mj, b, "body_ipos").T):
            for component in np.flatnonzero(slopes).tolist():
                place = 3 * body + k
                world.add(name, place, "inertial", b, component, float(slopes[component]))


def add_parent_frame(world: WorldParameters, name: str) -> None:
    """Add the terms of the parent anchors of joints (NWT-16)."""
    for b, joint in _placed(world, name):
        X_p, X_c = world.anchors(joint)
        R_p, R_c = matrix(unit(X_p[3:])), matrix(unit(X_c[3:]))
        arm = R_c.T @ X_c[:3]
        position, rotation = _kinds(world.mj, b)
        to = _Element(world, name, joint, X_p)
        to.add(position, b, np.eye(3), R_p @ skew(arm))
        to.add(rotation, b, np.zeros((3, 3)), R_c)


def add_child_frame(world: WorldParameters, name: str) -> None:
    """Add the terms of the child anchors of joints (NWT-17)."""
    mj = world.mj
    for b, joint in _placed(world, name):
        X_p, X_c = world.anchors(joint)
        R_p, R_c = matrix(unit(X_p[3:])), matrix(unit(X_c[3:]))
        to = _Element(world, name, joint, X_c)
        if mj.body_jntnum[b] and mj.jnt_type[mj.body_jntadr[b]] == _BALL:
            # its quaternion is measured between two frames with the axes of the body
            arm = R_c.T @ X_c[:3]
            to.add("body_position", b, -R_p @ R_c.T, -R_p @ skew(arm))
            to.add("body_rotation", b, np.zeros((3, 3)), -R_c)
            to.add("joint_position", mj.body_jntadr[b], np.eye(3), np.zeros((3, 3)))
            continue
        to.add("body_offset", b, -np.eye(3), -skew(X_c[:3]) @ R_c)
        to.add("body_turn", b, np.zeros((3, 3)), -R_c)


class _Element:
    """One transform in an array, as the target of terms."""

    def __init__(self, world: WorldParameters, name: str, joint: int, frame: Array) -> None:
        self._world, self._name, self._first = world, name, 7 * joint
        self._quaternion = frame[3:]

    def add(self, kind: str, row: int, by_position: Array, by_rotation: Array) -> None:
        """Add the derivatives of a vector of core parameters.

        by_position: matrix of the derivatives with respect to the position of the frame.
        by_rotation: the same for a rotation of the frame about its own axes.
        """
        for k in range(3):
            slopes = np.concatenate(
                [by_position[k], lifted(self._quaternion, np.ascontiguousarray(by_rotation[k]))]
            )
            for c in np.flatnonzero(slopes).tolist():
                place = self._first + c
                self._world.add(self._name, place, kind, row, k, float(slopes[c]))


def _placed(world: WorldParameters, name: str) -> list[tuple[int, int]]:
    """Return the MuJoCo bodies that a frame of a joint places, with the joint.

    The coordinates of free joints contain their frames, so that no number of the model does.
    """
    mj, maps = world.mj, world.maps
    free = mj.jnt_type == _FREE
    if maps.loops:
        raise UnsupportedFeatureError(
            name, "joints close loops, and their constraints depend on it"
        )
    if (free.any() or mj.nmocap) and (mj.eq_type == _CONNECT).any():
        raise UnsupportedFeatureError(
            name, "anchors of connect constraints depend on the initial poses of roots"
        )
    if measured_welds(world):
        raise UnsupportedFeatureError(
            name, "MuJoCo measures the relative poses of welds from it: give their relpose"
        )
    if mj.opt.density > 0 or mj.opt.viscosity > 0:
        raise UnsupportedFeatureError(name, "forces of a fluid depend on it")
    if mj.na and mj.opt.integrator == _RK4:
        raise UnsupportedFeatureError(name, "activations may depend on it under RK4")
    if _derives_lengths(world):
        raise UnsupportedFeatureError(name, "MuJoCo derives lengths of tendons or muscles from it")
    first = world.offset(world.model.joint_count)
    return [
        (b, first + int(joint))
        for b, joint in enumerate(maps.placing)
        if joint >= 0 and not (mj.body_jntnum[b] and free[mj.body_jntadr[b]])
    ]


def _derives_lengths(world: WorldParameters) -> bool:
    """Return whether MuJoCo's compiler measures rest lengths of tendons or ranges of muscles."""
    mj = world.mj
    if (mj.actuator_gaintype == _MUSCLE).any():
        return True
    spatial = mj.wrap_type[mj.tendon_adr] != _WRAP_JOINT
    elastic = np.flatnonzero(spatial & (mj.tendon_stiffness != 0)).tolist()
    given = getattr(getattr(world.model, "mujoco", None), "tendon_springlength", None)
    return bool(elastic) and (
        given is None or bool((given.numpy()[world.maps.tendon[elastic], 0] < 0).any())
    )


def _kinds(mj: mujoco.MjModel, body: int) -> tuple[str, str]:
    """Return the core parameters of the pose of a body in its parent."""
    if mj.body_mocapid[body] >= 0:
        return "mocap_position", "mocap_rotation"
    return "body_position", "body_rotation"
