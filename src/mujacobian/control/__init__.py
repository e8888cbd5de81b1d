"""Costs, iterative LQR and model-predictive control with exact derivatives."""

from mujacobian.control.bounds import InfeasibleBoundsError
from mujacobian.control.cost import Cost
from mujacobian.control.ilqr import BACKENDS, ILQR
from mujacobian.control.mpc import MPC, MPCResult
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
from mujacobian.control.rows import Rows, controls, sensor, stack
from mujacobian.control.term import Term, UserResidual

__all__ = [
    "BACKENDS",
    "ILQR",
    "L2",
    "L22",
    "MPC",
    "Cosh",
    "Cost",
    "DivergedError",
    "History",
    "InfeasibleBoundsError",
    "MPCResult",
    "Norm",
    "Null",
    "Plan",
    "Policy",
    "Power",
    "Quadratic",
    "Rectify",
    "Rows",
    "Sensitivity",
    "SmoothAbs",
    "SmoothAbs2",
    "Term",
    "Timings",
    "UserResidual",
    "controls",
    "planning_model",
    "sensor",
    "stack",
]
