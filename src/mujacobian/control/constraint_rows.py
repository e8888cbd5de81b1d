"""Values and derivatives of the rows of constraints, which the core of a cost computes."""

from __future__ import annotations

import numpy as np

from mujacobian._arguments import Array
from mujacobian.control.cost import Cost


def constraint_values(cost: Cost, sensordata: Array, controls: Array) -> Array:
    """Return the rows of all constraints of a cost, `(n, k)`."""
    offsets, rows = _offsets(cost, len(sensordata))
    values = np.empty(offsets.shape)
    cost.core.rows_into(
        sensordata=sensordata, controls=controls, offsets=offsets, values=values, gradients=None
    )
    return values[:, rows]


def step_violations(
    cost: Cost, sensordata: Array, controls: Array, times: Array
) -> dict[str, float]:
    """Return the largest violation of each constraint at simulated steps, by name."""
    if not cost.constraints:
        return {}
    values = constraint_values(cost, sensordata, controls)
    return {
        constraint.name: constraint.step_violation(times, values[:, rows])
        for constraint, rows in cost.constraint_rows()
    }


def differentiate_constraints(cost: Cost, sensordata: Array, controls: Array) -> Array:
    """Return the derivatives of these rows by sensors and controls, `(n, k, ns + nu)`."""
    offsets, rows = _offsets(cost, len(sensordata))
    gradients = np.empty((*offsets.shape, cost.ns + cost.nu))
    cost.core.rows_into(
        sensordata=sensordata,
        controls=controls,
        offsets=offsets,
        values=np.empty(offsets.shape),
        gradients=gradients,
    )
    return gradients[:, rows]


def _offsets(cost: Cost, n: int) -> tuple[Array, slice]:
    """Return offsets of n knots at which only the rows of constraints are on, and their place."""
    rows = slice(cost.own_count, cost.own_count + cost.constrained)
    offsets = np.full((n, cost.own_count + 2 * cost.constrained), np.nan)
    offsets[:, rows] = cost.constraint_constants
    return offsets, rows
