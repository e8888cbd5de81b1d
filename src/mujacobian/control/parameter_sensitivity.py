"""Derivatives of the conditions of an optimal plan with respect to model parameters (ILQ-17)."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian._parameters import Parameters
from mujacobian._product import bind
from mujacobian._rollout import INTEGRATION
from mujacobian._threads import borrowed
from mujacobian.control.constraint_rows import differentiate_constraints
from mujacobian.control.cost import Cost
from mujacobian.control.norm import expand_norm
from mujacobian.control.passes import Passes
from mujacobian.control.trajectory import Knots


@dataclass(frozen=True)
class ParameterChanges:
    """Changes of the steps and of the gradient of the problem, at fixed states and controls.

    Attributes:
      steps: `(T, nx, k)`, derivatives of the next state of each knot.
      sensors: `(T, ns, k)`, derivatives of the sensors.
      gradient: `(T, nz, k)`, derivatives of the gradient of the Lagrangian through the second
        derivatives of steps and sensors, at fixed multipliers.
    """

    steps: Array
    sensors: Array
    gradient: Array


def read_sensors(cost: Cost) -> NDArray[np.bool_]:
    """Return which sensors constraints and terms with a weight read, `(ns,)`."""
    read: NDArray[np.bool_] = cost.reads[cost.weights != 0].any(axis=0)
    return read | cost.constraint_reads.any(axis=0)


def sensor_slopes(passes: Passes, knots: Knots) -> Array:
    """Return the derivatives of the cost of each knot with respect to the sensors, `(T, ns)`.

    With constraints, it is the augmented Lagrangian (ILQ-27).
    """
    cost = passes.cost
    values, gradients = cost.differentiate_rows(knots.sensors, knots.controls, passes.offsets)
    out = np.zeros((len(values), cost.ns))
    for k, rows in cost.own_rows():
        slopes = passes.weights[:, k, None] * expand_norm(cost.terms[k].norm, values[:, rows])[1]
        out += np.einsum("tk,tks->ts", slopes, gradients[:, rows, : cost.ns])
    if passes.lagrangian is not None:
        rates = passes.lagrangian.rates(passes.residuals(knots))
        by_sensors = differentiate_constraints(cost, knots.sensors, knots.controls)[:, :, : cost.ns]
        out += np.einsum("tk,tks->ts", rates, np.where(rates[:, :, None], by_sensors, 0.0))
    return out


def differentiate_knots(
    model: mujoco.MjModel,
    knots: Knots,
    params: Parameters,
    multipliers: Array,
    sensed: Array,
    is_read: NDArray[np.bool_],
) -> ParameterChanges:
    """Return the changes with parameters, at their values in the model.

    Args:
      model: model of the planner.
      knots: the optimal trajectory.
      params: parameters of the model.
      multipliers: `(T, nx)`, of the next state of each knot.
      sensed: `(T, ns)`, derivatives of the cost with respect to the sensors.
      is_read: `(ns,)`, whether the cost reads each sensor; the others are left out.
    """
    here = bind(params, model)
    directions = np.ascontiguousarray(here.jacobian(here.values, model).T)
    (T, nx), ns, nu, k = multipliers.shape, sensed.shape[1], model.nu, len(directions)
    weights = is_read.astype(np.float64)
    moved, read = np.zeros((T, 2, k, nx)), np.zeros((T, k, ns))
    gradient = np.zeros((T, nx + nu, k))
    row = np.empty((1, knots.rows.shape[1]))
    first, second = np.zeros((2, len(here.core)))
    with borrowed(model) as data:
        for t in range(T):
            mujoco.mj_setState(model, data, knots.rows[t], INTEGRATION)
            data.ctrl[:] = knots.controls[t]
            mujoco.mj_getState(model, data, row[0], INTEGRATION)
            _core.push_forward_into(
                model,
                data,
                start=row,
                steps=1,
                count=k,
                parameters=here.core,
                params=directions,
                states=moved[t],
                sensors=read[t : t + 1],
                weights=weights,
                first=t,
            )
            for j, direction in enumerate(directions):
                by_state, by_control = np.empty(nx), np.empty(nu)
                _core.hvp_into(
                    model,
                    data,
                    d_state=multipliers[t],
                    d_sensors=sensed[t],
                    dx=np.zeros(nx),
                    du=np.zeros(nu),
                    parameters=here.core,
                    d_params=direction,
                    state=by_state,
                    controls=by_control,
                    first_params=first,
                    params=second,
                    forward=j == 0,
                )
                gradient[t, :, j] = np.concatenate([by_state, by_control])
    steps, sensors = moved[:, 1].swapaxes(1, 2), (weights * read).swapaxes(1, 2)
    return ParameterChanges(steps, sensors, gradient)
