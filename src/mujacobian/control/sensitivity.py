"""Derivatives of an optimal plan by its initial state, weights, targets and model parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array, require_one_of
from mujacobian._parameters import Parameters
from mujacobian._product import bind
from mujacobian.control.constraint_rows import differentiate_constraints
from mujacobian.control.norm import expand_norm
from mujacobian.control.parameter_sensitivity import (
    differentiate_knots,
    read_sensors,
    sensor_slopes,
)
from mujacobian.control.passes import Passes
from mujacobian.control.plan import Policy, Sensitivity
from mujacobian.control.trajectory import Expansion, Knots
from mujacobian.errors import ArgumentError, DomainError, MujacobianError

STIFFNESS = 100.0  # factor of the penalties of active constraints, for fewer rounds
ROUNDS = 50  # after which the multipliers of active constraints must have converged
HELD = 1e-10  # change of an active row that is rounding, relative to the changes of the plan
QUANTITIES = ("state", "weights", "targets", "params")
UNCONVERGED = 1e-8  # expected decrease, relative to the cost, above which a plan is no optimum


@dataclass(frozen=True)
class ActiveRows:
    """Rows of constraints that stay at their bounds while a plan changes (ILQ-32).

    Attributes:
      gradients: `(T, k, nz)`, derivatives of the rows by states and controls; 0 if not active.
      slopes: `(T, k, ns)`, derivatives of the rows by sensors; 0 if not active.
      weights: `(T, k)`, penalties of the rows.
    """

    gradients: Array
    slopes: Array
    weights: Array

    def changes(self, states: Array, controls: Array) -> Array:
        """Return the changes of the rows, `(T, k, n)`, with n changes of states and controls."""
        moved: Array = self.gradients @ _knots_of(states, controls)
        return moved

    def size(self, states: Array, controls: Array) -> float:
        """Return the size of the changes of rows that are not held."""
        return float(abs(self.gradients).max() * max(abs(states).max(), abs(controls).max()))

    def pull(self, changes: Array) -> Array:
        """Return the gradient `(T, nz, n)` of multipliers that oppose these changes."""
        pulled: Array = self.gradients.swapaxes(1, 2) @ (self.weights[:, :, None] * changes)
        return pulled

    @property
    def hessian(self) -> Array:
        """The second derivatives of the penalties, `(T, nz, nz)`."""
        return self.pull(self.gradients)


@dataclass(frozen=True)
class Optimum:
    """The linear-quadratic problem at an optimal plan, with exact second derivatives.

    Attributes:
      expansion: derivatives along the trajectory.
      hessian: `(T, nz, nz)`, second derivatives of cost, steps and sensors.
      is_free: `(T - 1, nu)`, whether each control is between its bounds.
      active: derivatives of the rows of constraints that stay at their bounds.
    """

    expansion: Expansion
    hessian: Array
    is_free: NDArray[np.bool_]
    active: ActiveRows | None = None

    def solve(
        self,
        start: Array,
        gradient: Array,
        steps_change: Array | None = None,
        sensors_change: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives of states and controls, and of the value by the initial state.

        The last result, `(nx, k)`, is that at an initial state that does not change.

        Args:
          start: `(nx, k)`, derivatives of the initial state.
          gradient: `(T, nz, k)`, derivatives of the gradient of the cost at fixed z.
          steps_change: `(T, nx, k)`, derivatives of the next states at fixed z; None: zero.
          sensors_change: `(T, ns, k)`, derivatives of the sensors at fixed z; None: zero.
        """
        made = self._solve(start, gradient, steps_change)
        if self.active is None:
            return made
        # the changes of active rows vanish (ILQ-32), (ILQ-34)
        at_fixed = 0.0 if sensors_change is None else self.active.slopes @ sensors_change
        for _ in range(ROUNDS):
            moved = self.active.changes(*made[:2]) + at_fixed
            if abs(moved).max() <= HELD * self.active.size(*made[:2]):
                return made
            gradient = gradient + self.active.pull(moved)
            made = self._solve(start, gradient, steps_change)
        raise DomainError(
            "the plan has no derivatives: its active constraints are not independent of one "
            "another, of the initial state, or of the bounds of controls"
        )

    def _solve(
        self, start: Array, gradient: Array, steps_change: Array | None
    ) -> tuple[Array, Array, Array]:
        """Return the same without constraints.

        Args:
          start: `(nx, k)`, derivatives of the initial state.
          gradient: `(T, nz, k)`, derivatives of the gradient of the cost at fixed z.
          steps_change: `(T, nx, k)`, derivatives of the next states at fixed z; None: zero.
        """
        e, (T, nx, k) = self.expansion, (len(self.hessian), *start.shape)
        nu = e.B.shape[2]
        drift = np.zeros((T, nx, k)) if steps_change is None else steps_change
        # backward: the value is quadratic in x, and linear in the quantities
        gains, steps = np.zeros((T - 1, nu, nx)), np.zeros((T - 1, nu, k))
        last, V, v = self.hessian[-1], self.hessian[-1, :nx, :nx], gradient[-1, :nx]
        for t in range(T - 2, -1, -1):
            F = np.hstack([e.A[t], e.B[t]])
            Q, q = self.hessian[t] + F.T @ V @ F, gradient[t] + F.T @ (v + V @ drift[t])
            if t == T - 2:  # the last knot has the same control
                mixed = last[nx:, :nx] @ F
                Q[nx:] += mixed
                Q[:, nx:] += mixed.T
                Q[nx:, nx:] += last[nx:, nx:]
                q[nx:] += gradient[-1, nx:] + last[nx:, :nx] @ drift[t]
            free = np.flatnonzero(self.is_free[t])
            u = nx + free
            Qff = _positive_definite(Q[np.ix_(u, u)], t)
            gains[t, free] = -np.linalg.solve(Qff, Q[u, :nx])
            steps[t, free] = -np.linalg.solve(Qff, q[u])
            K, s = gains[t], steps[t]
            Quu, Qux = Q[nx:, nx:], Q[nx:, :nx]
            v = q[:nx] + K.T @ (q[nx:] + Quu @ s) + Qux.T @ s
            V = Q[:nx, :nx] + K.T @ (Quu @ K + Qux) + Qux.T @ K
            V = 0.5 * (V + V.T)
        # forward
        states, controls = np.empty((T, nx, k)), np.empty((T - 1, nu, k))
        states[0] = start
        for t in range(T - 1):
            controls[t] = gains[t] @ states[t] + steps[t]
            states[t + 1] = e.A[t] @ states[t] + e.B[t] @ controls[t] + drift[t]
        return states, controls, v

    def pull(self, d_states: Array, d_controls: Array) -> tuple[Array, Array]:
        """Return the solution z `(T, nz)` of the adjoint problem, and the gradient by x_0 (ILQ-16).

        Args:
          d_states: `(T, nx)`, derivatives of a scalar with respect to the states.
          d_controls: `(T - 1, nu)`, the same with respect to the controls.
        """
        nx = d_states.shape[1]
        gradient = np.zeros((*self.hessian.shape[:2], 1))
        gradient[:, :nx, 0] = d_states
        gradient[:-1, nx:, 0] = d_controls
        states, controls, first = self.solve(np.zeros((nx, 1)), gradient)
        return _knots_of(states, controls)[..., 0], first[:, 0]


def _knots_of(states: Array, controls: Array) -> Array:
    """Return changes z of states and controls; the last knot has the control of the one before."""
    return np.concatenate([states, np.concatenate([controls, controls[-1:]])], axis=1)


def differentiate_plan(
    passes: Passes, policy: Policy, of: str, params: Parameters | None
) -> Sensitivity:
    """Return the sensitivity of a plan, whose controls `policy` applies without feedback.

    `passes` has begun at the initial state of the plan. `of` and `params` are the arguments of
    `Plan.sensitivity`.
    """
    require_one_of("of", of, QUANTITIES)
    if (of == "params") != (params is not None):
        raise ArgumentError(
            'of="params" needs params, the mujacobian.Parameters of the planner\'s model'
            if params is None
            else f'params are only for of="params", got of={of!r}'
        )
    if params is not None:
        bind(params, passes.model)
    optimum, knots = find_optimum(passes, policy)
    if params is not None:
        return _by_parameters(passes, optimum, knots, params)
    start, gradient, names = _quantities(passes, knots, of)
    states, controls, _ = optimum.solve(start, gradient)
    return Sensitivity(states, controls, names)


def _by_parameters(
    passes: Passes, optimum: Optimum, knots: Knots, params: Parameters
) -> Sensitivity:
    """Return the sensitivity with respect to parameters of the model (ILQ-17)."""
    cost, expansion = passes.cost, passes.expansion
    multipliers = np.zeros((passes.horizon, cost.nx))
    multipliers[:-1] = costates(expansion)[1:]
    sensed = sensor_slopes(passes, knots)
    changes = differentiate_knots(
        passes.model, knots, params, multipliers, sensed, read_sensors(cost)
    )
    # targets enter the residuals with a negative sign
    by_rows = -target_gradients(passes, knots)
    arguments = knots.sensors, knots.controls, passes.offsets
    slopes = cost.differentiate_rows(*arguments)[1][:, :, : cost.ns]
    curvature = cost.curve_rows(*arguments, passes.core_weights)[:, :, : cost.ns]
    gradient = changes.gradient + by_rows @ (slopes @ changes.sensors)
    gradient += sensed_and_driven(passes).transpose(0, 2, 1) @ (curvature @ changes.sensors)
    start = np.zeros((cost.nx, len(params)))
    states, controls, _ = optimum.solve(start, gradient, changes.steps, changes.sensors)
    return Sensitivity(states, controls, params.names)


def pull_back_plan(
    passes: Passes, policy: Policy, d_states: Array, d_controls: Array
) -> tuple[Array, Array, Array]:
    """Return the gradients of a scalar by the initial state, the weights and the targets (ILQ-16).

    The arguments are those of `differentiate_plan` and of `Optimum.pull`.
    """
    optimum, knots = find_optimum(passes, policy)
    z, state = optimum.pull(d_states, d_controls)
    weights, targets = weight_gradients(passes, knots), target_gradients(passes, knots)
    return state, *(np.einsum("tzk,tz->k", each, z) for each in (weights, targets))


def find_optimum(passes: Passes, policy: Policy) -> tuple[Optimum, Knots]:
    """Return the linear-quadratic problem of a plan and its knots; raise if it is no optimum."""
    cost = passes.cost
    cost.require_second_derivatives()
    passes.keeps = True
    knots, total = passes.follow(policy, -1, np.inf)
    passes.require_complete()
    costate = costates(passes.expansion)
    slope = control_gradient(passes.expansion, costate)
    if passes.curve(knots, costate):
        passes.raise_failure()
    is_free = ~_held(knots.controls[:-1], slope, *passes.bounds)
    optimum = Optimum(passes.expansion, passes.curved[:, :, : cost.nx + cost.nu], is_free)
    _require_optimum(optimum, slope, total)
    if active := find_active(passes, knots):
        optimum = replace(optimum, hessian=optimum.hessian + active.hessian, active=active)
    return optimum, knots


def find_active(passes: Passes, knots: Knots) -> ActiveRows | None:
    """Return the rows of constraints that are at their bounds, None if there are none."""
    if passes.lagrangian is None:
        return None
    is_active = passes.lagrangian.active(passes.residuals(knots))
    if not is_active.any():
        return None
    slopes = differentiate_constraints(passes.cost, knots.sensors, knots.controls)
    slopes = np.where(is_active[:, :, None], slopes, 0.0)
    gradients, by_sensors = slopes @ sensed_and_driven(passes), slopes[:, :, : passes.cost.ns]
    return ActiveRows(gradients, by_sensors, STIFFNESS * passes.lagrangian.row_weights)


def _held(controls: Array, slope: Array, lower: Array, upper: Array) -> NDArray[np.bool_]:
    """Return which controls are held at a bound by the slope of the cost."""
    held: NDArray[np.bool_] = ((controls <= lower) & (slope >= 0)) | (
        (controls >= upper) & (slope <= 0)
    )
    return held


def _require_optimum(optimum: Optimum, slope: Array, cost: float) -> None:
    """Raise an error if a Newton step would still decrease the cost."""
    T, nz, _ = optimum.hessian.shape
    nx = nz - slope.shape[1]
    gradient = np.zeros((T, nz, 1))
    gradient[:-1, nx:, 0] = np.where(optimum.is_free, slope, 0.0)
    newton = optimum.solve(np.zeros((nx, 1)), gradient)[1][..., 0]
    decrease, most = -0.5 * float((newton * slope).sum()), UNCONVERGED * abs(cost)
    if not decrease <= most:
        raise MujacobianError(
            f"the plan has not converged: another iteration would decrease its cost by "
            f'{decrease:.1e} (limit {most:.1e}). Solve it with hessian="auto", a smaller '
            "tolerance and more iterations"
        )


def _quantities(passes: Passes, knots: Knots, of: str) -> tuple[Array, Array, tuple[str, ...]]:
    """Return the changes of the initial state and of the gradient, and names."""
    cost, T = passes.cost, passes.horizon
    nx, nz, own = cost.nx, cost.nx + cost.nu, [cost.terms[k] for k in cost.own]
    if of == "state":
        return np.eye(nx), np.zeros((T, nz, nx)), tuple(f"x[{k}]" for k in range(nx))
    if of == "weights":
        change = weight_gradients(passes, knots)
        names = [term.name for term in own]
    else:
        change = target_gradients(passes, knots)
        names = [f"{term.name}[{k}]" for term in own for k in range(len(term.residual))]
    return np.zeros((nx, change.shape[2])), change, tuple(names)


def _positive_definite(matrix: Array, t: int) -> Array:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise DomainError(
            "the plan has not converged to a strict minimum, so it has no derivatives: the Hessian "
            f"with respect to the controls of knot {t} is not positive definite"
        ) from None
    return matrix


def costates(expansion: Expansion) -> Array:
    """Return the derivatives of the cost with respect to the states, `(T, nx)`."""
    e, nx = expansion, expansion.A.shape[1]
    out: Array = e.gradient[:, :nx].copy()
    for t in range(len(out) - 2, -1, -1):
        out[t] += e.A[t].T @ out[t + 1]
    return out


def control_gradient(expansion: Expansion, costate: Array) -> Array:
    """Return the derivatives of the cost with respect to the controls, `(T - 1, nu)`."""
    e, nx = expansion, expansion.A.shape[1]
    out: Array = e.gradient[:-1, nx:] + np.einsum("txu,tx->tu", e.B[:-1], costate[1:])
    out[-1] += e.gradient[-1, nx:]  # the last knot keeps the last control
    return out


def weight_gradients(passes: Passes, knots: Knots) -> Array:
    """Return the derivatives of the gradient with respect to the weights, `(T, nz, terms)`."""
    cost, e, T = passes.cost, passes.expansion, len(knots.rows)
    out = np.zeros((T, cost.nx + cost.nu, len(cost.own)))
    factors = cost.factors(passes.times) / T
    for k, alone in enumerate(np.eye(len(cost.terms))[cost.own]):
        gradient, hessian = cost.blank(T)
        cost.core.expand_into(
            sensordata=knots.sensors,
            controls=knots.controls,
            offsets=passes.offsets,
            weights=cost.core_weights(factors * alone),
            C=e.C,
            D=e.D,
            gradient=gradient,
            hessian=hessian,
        )
        out[:, :, k] = gradient
    return out


def sensed_and_driven(passes: Passes) -> Array:
    """Return the derivatives of sensors and controls by states and controls, `(T, ns + nu, nz)`."""
    e, nu = passes.expansion, passes.cost.nu
    driven = np.zeros((len(e.C), nu, passes.cost.nx + nu))
    driven[:, :, passes.cost.nx :] = np.eye(nu)
    return np.concatenate([np.concatenate([e.C, e.D], axis=2), driven], axis=1)


def target_gradients(passes: Passes, knots: Knots) -> Array:
    """Return the derivatives of the gradient with respect to the targets, `(T, nz, rows)`.

    A target changes by the same amount at all knots at which its row is on.
    """
    cost, T = passes.cost, len(knots.rows)
    values, slopes = cost.differentiate_rows(knots.sensors, knots.controls, passes.offsets)
    gradients = slopes @ sensed_and_driven(passes)
    out = np.zeros((T, cost.nx + cost.nu, values.shape[1]))
    for k, rows in cost.own_rows():
        # residuals and their derivatives; a row that is off has a NaN residual
        r, R = values[:, rows], gradients[:, rows]
        _, _, curvature, bend = expand_norm(cost.terms[k].norm, r)
        r = np.nan_to_num(r)
        turned = np.einsum("tk,tkz->tz", r, R)
        change = curvature[:, :, None] * R + (bend[:, None] * r)[:, :, None] * turned[:, None]
        out[:, :, rows] = -passes.weights[:, k, None, None] * change.transpose(0, 2, 1)
    return out
