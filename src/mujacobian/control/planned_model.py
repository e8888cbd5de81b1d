"""Copies of a model with options that are suitable for a planner."""

from __future__ import annotations

import copy

import mujoco
import numpy as np

from mujacobian._arguments import number, require_model, require_one_of
from mujacobian.control.force_limits import without_force_limits
from mujacobian.errors import ArgumentError

INTEGRATORS = {
    "euler": mujoco.mjtIntegrator.mjINT_EULER,
    "implicit": mujoco.mjtIntegrator.mjINT_IMPLICIT,
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
}
SPEED = 0.5  # m/s, of contacts that need a whole time step to reach their full stiffness


def planning_model(
    model: mujoco.MjModel,
    *,
    timestep: float | None = None,
    integrator: str | None = None,
    differentiable: bool = True,
    width: float | None = None,
    force_limits: bool = True,
) -> mujoco.MjModel:
    """Return a copy of the model for planning.

    Args:
      model: simulated model, which is not changed.
      timestep: time between knots, s; by default that of the model.
      integrator: "euler", "implicit", "implicitfast" or "rk4"; by default that of the model.
      differentiable: whether to set the initial impedance of contacts and limits to zero (solimp
        d0 = 0 of all geoms, pairs, joints and tendons), so that their forces are continuous when
        they become active; by default True.
      width: least depth over which the forces of contacts grow to their full stiffness (solimp
        width of all geoms and pairs), m. A contact that passes this depth within one time step is a
        jump for a planner. By default the depth that a contact at 0.5 m/s reaches in a time
        step, or 0 if `differentiable` is False, which changes nothing. Wider contacts are
        also softer.
      force_limits: whether the forces of actuators are limited (`forcerange` of actuators,
        `actuatorfrcrange` of joints and tendons), as in the simulated model; by default True. At
        such a limit, a control has no influence and thus no gradient. Stiff servos are there
        during most motions, so that plans with them get stuck: False leaves these limits out, and
        a term or a constraint on the forces can replace them.
    """
    require_model(model)
    planned = copy.copy(model) if force_limits else without_force_limits(model)
    if timestep is not None:
        if not 0 < number("timestep", timestep) < 1:
            raise ArgumentError(f"timestep must be between 0 and 1 s, got {timestep!r}")
        planned.opt.timestep = timestep
    if integrator is not None:
        require_one_of("integrator", integrator, INTEGRATORS)
        planned.opt.integrator = INTEGRATORS[integrator]
    if width is None:
        width = SPEED * planned.opt.timestep if differentiable else 0.0
    if number("width", width) < 0:
        raise ArgumentError(f"width must be a length of at least 0 m, got {width!r}")
    for solimp in (planned.geom_solimp, planned.pair_solimp):
        np.maximum(solimp[:, 2], width, out=solimp[:, 2])
    if differentiable:
        for solimp in (
            planned.geom_solimp,
            planned.pair_solimp,
            planned.jnt_solimp,
            planned.tendon_solimp_lim,
        ):
            solimp[:, 0] = 0
    return planned
