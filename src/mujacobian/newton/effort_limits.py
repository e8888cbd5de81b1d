"""Gradients of effort limits, which act on joints whose actuators exceed them."""

from __future__ import annotations

import mujoco
import newton
import numpy as np

from mujacobian._arguments import Array
from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton.internals import Maps
from mujacobian.newton.worlds import Worlds

_SCALAR = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))
_RK4 = int(mujoco.mjtIntegrator.mjINT_RK4)
NAME = "joint_effort_limit"


class EffortLimits:
    """The effort limits of all joints with one dof.

    At its limit, the force of the actuators on a dof is the limit itself. Its gradient is then that
    of a force on the dof (NWT-14).
    """

    def __init__(self, model: newton.Model, maps: Maps, worlds: Worlds) -> None:
        mj = worlds.models[0]
        limited = np.isin(mj.jnt_type, _SCALAR) & mj.jnt_actfrclimited.astype(bool)
        joints = np.flatnonzero(limited & (maps.joint_dof >= 0))
        self.mj_dof = mj.jnt_dofadr[joints]
        self.ranges = worlds.values("jnt_actfrcrange")[:, joints].copy()
        first = np.arange(maps.worlds)[:, None] * (model.joint_dof_count // maps.worlds)
        self.dof = first + maps.joint_dof[joints]
        self.size = model.joint_dof_count

    def pull(self, actuation: Array, d_force: Array) -> Array:
        """Return the gradient, given the forces of actuators and cotangents of forces on dofs."""
        force, gradient = actuation[:, self.mj_dof], d_force[:, self.mj_dof]
        sign = (force == self.ranges[..., 1]).astype(float) - (force == self.ranges[..., 0])
        return np.bincount(self.dof.ravel(), (sign * gradient).ravel(), self.size).astype(float)


def require_effort_limits(mj: mujoco.MjModel, maps: Maps) -> None:
    """Raise if the gradient of the effort limits is not known for this model."""
    if mj.opt.integrator == _RK4:
        raise UnsupportedFeatureError(NAME, "RK4 applies limits at several states in a step")
    if len(maps.actuators.ball_position) or len(maps.actuators.ball_velocity):
        raise UnsupportedFeatureError(NAME, "limits of actuators of ball joints are not supported")
