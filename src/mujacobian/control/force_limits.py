"""Limits of actuator forces, beyond which controls have no influence and thus no gradient."""

from __future__ import annotations

import copy
import warnings

import mujoco
import numpy as np

from mujacobian.control.plan import Plan

MANY = 0.25  # share of the forces of a plan beyond their limits, from which on a warning is due


def without_force_limits(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy of the model whose actuator forces are not limited."""
    free = copy.copy(model)
    for is_limited in (
        free.actuator_forcelimited,
        free.jnt_actfrclimited,
        free.tendon_actfrclimited,
    ):
        is_limited[:] = False
    return free


def share_beyond_limits(model: mujoco.MjModel, plan: Plan) -> float:
    """Return the share of the limited actuator forces of a plan that are beyond their limits.

    They are the forces of actuators and those of all actuators on a joint.
    """
    actuators = np.flatnonzero(model.actuator_forcelimited)
    joints = np.flatnonzero(model.jnt_actfrclimited)
    ranges = [model.actuator_forcerange[actuators], model.jnt_actfrcrange[joints]]
    lower, upper = np.concatenate(ranges).T
    if not lower.size:
        return 0.0
    free, dofs = without_force_limits(model), model.jnt_dofadr[joints]
    data = mujoco.MjData(free)
    beyond = 0.0
    for time, state, control in zip(plan.times, plan.states, plan.controls, strict=False):
        data.time, data.ctrl = time, control
        data.qpos, data.qvel, data.act = np.split(state, [model.nq, model.nq + model.nv])
        mujoco.mj_fwdPosition(free, data)
        mujoco.mj_fwdVelocity(free, data)
        mujoco.mj_fwdActuation(free, data)
        force = np.concatenate([data.actuator_force[actuators], data.qfrc_actuator[dofs]])
        beyond += float(((force < lower) | (force > upper)).mean())
    return beyond / len(plan.controls)


def warn_of_force_limits(model: mujoco.MjModel, plan: Plan) -> None:
    """Warn if many forces of a plan are beyond their limits; the caller's caller is to blame."""
    share = share_beyond_limits(model, plan)
    if share >= MANY:
        warnings.warn(
            f"{share:.0%} of the actuator forces of a plan are beyond their limits, where controls "
            "have no gradient, so that the plan may be stuck. Plan with "
            "control.planning_model(..., force_limits=False)",
            RuntimeWarning,
            stacklevel=3,
        )
