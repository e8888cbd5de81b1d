"""Solver and collider settings for differences of `mj_step`."""

from __future__ import annotations

import mujoco

from mujacobian import _convergence

# at 1e-13 derivatives of curved contacts are wrong by up to 1e-4; with 0 it never stops
COLLIDER_TOLERANCES = (_convergence.CCD_TOLERANCE, 1e-16)
SOLVER_ITERATIONS = 20  # Newton converges quadratically: enough with a warm start


def converge(model: mujoco.MjModel) -> mujoco.MjModel:
    """Set the options of `model` so that its solver stops only at machine precision; return it.

    `mujacobian.converged` stops a little earlier. Differences need the last digit, too.
    """
    _convergence.converge(model)
    # with tolerance 0 the iteration of the discrete integrator divides zero by zero
    if model.opt.integrator != mujoco.mjtIntegrator.mjINT_DISCRETE:
        model.opt.tolerance = 0
    model.opt.iterations = SOLVER_ITERATIONS
    model.opt.ccd_tolerance = COLLIDER_TOLERANCES[0]
    return model
