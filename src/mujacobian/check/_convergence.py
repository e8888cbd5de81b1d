"""Solver and collider settings for differences of `mj_step`."""

from __future__ import annotations

import mujoco

from mujacobian import _convergence

# at 1e-13 derivatives of curved contacts are wrong by up to 1e-4; 0 never stops
COLLIDER_TOLERANCES = (_convergence.CCD_TOLERANCE, 1e-16)
SOLVER_ITERATIONS = 20  # Newton is quadratic: enough from a warm start, and always all of them


def converge(model: mujoco.MjModel) -> mujoco.MjModel:
    """Make the solver of `model` stop at machine precision only; return the model.

    As `mujacobian.converged` does, but iterating on at rounding: differences see the last digit.
    """
    _convergence.converge(model)
    # the discrete integrator's own iteration divides zero by zero if nothing stops it
    if model.opt.integrator != mujoco.mjtIntegrator.mjINT_DISCRETE:
        model.opt.tolerance = 0
    model.opt.iterations = SOLVER_ITERATIONS
    model.opt.ccd_tolerance = COLLIDER_TOLERANCES[0]
    return model
