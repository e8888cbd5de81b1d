"""Models to plan with: copies whose derivatives and steps suit a planner."""

from __future__ import annotations

import copy

import mujoco

from mujacobian._arguments import require_model
from mujacobian.errors import ArgumentError

INTEGRATORS = {
    "euler": mujoco.mjtIntegrator.mjINT_EULER,
    "implicit": mujoco.mjtIntegrator.mjINT_IMPLICIT,
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
}


def planning_model(
    model: mujoco.MjModel,
    *,
    timestep: float | None = None,
    integrator: str | None = None,
    differentiable: bool = True,
) -> mujoco.MjModel:
    """A copy of the model to plan with.

    Args:
      model: the simulated model, which is not changed.
      timestep: the time between knots, in s; by default the model's.
      integrator: "euler", "implicit", "implicitfast" or "rk4"; by default the model's.
      differentiable: let the impedance of contacts and limits begin at zero (solimp d0 = 0 of all
        geoms, pairs, joints and tendons), so that their forces do not jump where they begin.
    """
    require_model(model)
    planned = copy.copy(model)
    if timestep is not None:
        if not 0 < timestep < 1:
            raise ArgumentError(f"timestep must be between 0 and 1 s, got {timestep!r}")
        planned.opt.timestep = timestep
    if integrator is not None:
        if integrator not in INTEGRATORS:
            known = ", ".join(INTEGRATORS)
            raise ArgumentError(f"integrator must be one of {known}, got {integrator!r}")
        planned.opt.integrator = INTEGRATORS[integrator]
    if differentiable:
        for solimp in (
            planned.geom_solimp,
            planned.pair_solimp,
            planned.jnt_solimp,
            planned.tendon_solimp_lim,
        ):
            solimp[:, 0] = 0
    return planned
