"""Costs, iterative LQR and model-predictive control with exact derivatives."""

from mujacobian.control.bounds import InfeasibleBoundsError
from mujacobian.control.builder import Residuals, residuals
from mujacobian.control.constraint import Constraint
from mujacobian.control.cost import Cost
from mujacobian.control.gait import Gait
from mujacobian.control.ilqr import BACKENDS, ILQR
from mujacobian.control.mpc import MPC
from mujacobian.control.mpc_result import MPCResult
from mujacobian.control.norm import (
    L2,
    L22,
    Cosh,
    Norm,
    Null,
    Power,
    Quadratic,
    Rectify,
    SmoothAbs,
    SmoothAbs2,
)
from mujacobian.control.passes import DivergedError
from mujacobian.control.plan import History, Plan, Policy, Sensitivity, Timings
from mujacobian.control.planned_model import planning_model
from mujacobian.control.progress import Interval, Iteration
from mujacobian.control.rows import Rows, controls, sensor, stack
from mujacobian.control.term import Term
from mujacobian.control.user_residual import UserResidual, WrongJacobianError

__all__ = [
    "BACKENDS",
    "ILQR",
    "L2",
    "L22",
    "MPC",
    "Constraint",
    "Cosh",
    "Cost",
    "DivergedError",
    "Gait",
    "History",
    "InfeasibleBoundsError",
    "Interval",
    "Iteration",
    "MPCResult",
    "Norm",
    "Null",
    "Plan",
    "Policy",
    "Power",
    "Quadratic",
    "Rectify",
    "Residuals",
    "Rows",
    "Sensitivity",
    "SmoothAbs",
    "SmoothAbs2",
    "Term",
    "Timings",
    "UserResidual",
    "WrongJacobianError",
    "controls",
    "planning_model",
    "residuals",
    "sensor",
    "stack",
]
