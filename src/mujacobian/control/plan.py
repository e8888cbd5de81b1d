"""Plans: a trajectory, its feedback policy and sensitivity, history and timings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, numbers, shaped
from mujacobian._differenced import Differenced
from mujacobian._parameters import Parameters
from mujacobian._summary import describe, summarize
from mujacobian.errors import MujacobianError

if TYPE_CHECKING:
    from mujacobian.control.ilqr import ILQR


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """Linear feedback along a trajectory: u_t + K_t (x [-] x_t), clamped to bounds.

    If `is_linear`, u_t, K_t and x_t are interpolated between knots (ILQ-10): u_t and K_t linearly,
    x_t along geodesics. Otherwise, each knot applies until the next one. The first and the last
    knot also apply before and after the trajectory.

    Attributes:
      model: model of the trajectory.
      times: `(n,)`, s, ascending times of the knots.
      states: `(n, nq + nv + na)`, rows (qpos, qvel, act).
      controls: `(n, nu)`.
      gains: `(n, nu, nx)`, for differences of states in tangent coordinates.
      lower: `(nu,)`, lower bounds of the controls.
      upper: `(nu,)`, upper bounds of the controls.
      is_linear: whether values between knots are interpolated; by default True.
    """

    model: mujoco.MjModel = field(repr=False)
    times: Array
    states: Array
    controls: Array
    gains: Array
    lower: Array
    upper: Array
    is_linear: bool = True

    __repr__ = summarize

    def __call__(self, time: ArrayLike, state: ArrayLike, feedback: float = 1.0) -> Array:
        """Return the control `(nu,)` at a time and state, or `(n, nu)` at n of them.

        Args:
          time: time in s, or `(n,)`.
          state: `(nq + nv + na,)`, or `(n, nq + nv + na)`.
          feedback: factor of the gains; by default 1.
        """
        t = numbers("time", time)
        n = 1 if t.ndim == 0 else len(t)
        x = shaped("state", state, (*t.shape, self.states.shape[1]))
        out = np.empty((n, self.controls.shape[1]))
        _core.policy_into(
            self.model,
            policy=self.arrays,
            lower=self.lower,
            upper=self.upper,
            times=t.reshape(n),
            states=x.reshape(n, -1),
            feedback=feedback,
            controls=out,
        )
        return out.reshape(*t.shape, -1)

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, bool]:
        """The arrays in the order that the core expects."""
        return self.times, self.states, self.controls, self.gains, self.is_linear


@dataclass(frozen=True)
class Timings:
    """Time that one plan took, s.

    Attributes:
      derivatives: processor time for A, B, C and D, summed over all threads.
      nominal: wall-clock time of the rollout of the initial policy, including derivatives.
      expansion: wall-clock time of derivatives after a line search, in `ILQR.solve`.
      curvature: wall-clock time of exact second derivatives.
      backward: wall-clock time of backward passes.
      rollouts: wall-clock time of line searches.
      total: wall-clock time of the whole plan.
    """

    derivatives: float = 0.0
    nominal: float = 0.0
    expansion: float = 0.0
    curvature: float = 0.0
    backward: float = 0.0
    rollouts: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, repr=False)
class History:
    """Iterations of the optimization: arrays with one entry per iteration.

    Attributes:
      cost: cost after the iteration; with constraints, the augmented Lagrangian (ILQ-27).
      expected: decrease of the cost that the backward pass predicts for the step size.
      step: step size, 0 if no step size decreased the cost.
      regularization: regularization mu of the backward pass.
      candidates: number of rollouts in the line search.
      exact: 1 if the step was found with exact second derivatives, 0 with Gauss-Newton.
    """

    cost: Array
    expected: Array
    step: Array
    regularization: Array
    candidates: Array
    exact: Array

    __repr__ = summarize


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """Derivatives of an optimal plan with respect to k quantities (ILQ-15).

    Attributes:
      states: `(T, nx, k)`, derivatives of the states in the tangent coordinates of `linearize`.
      controls: `(T - 1, nu, k)`, derivatives of the controls. Controls at a bound do not change.
      names: names of the quantities.
    """

    states: Array
    controls: Array
    names: tuple[str, ...]

    @property
    def first_control(self) -> Array:
        """Derivative of the first control, `(nu, k)`."""
        first: Array = self.controls[0]
        return first

    def __repr__(self) -> str:
        return describe(
            f"Sensitivity: {len(self.names)} quantities",
            [", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")],
            states=self.states,
            controls=self.controls,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A planned trajectory of T knots with its controls and feedback policy.

    Attributes:
      times: `(T,)`, s, times of the knots.
      states: `(T, nq + nv + na)`, rows (qpos, qvel, act).
      controls: `(T - 1, nu)`, controls between knots; the last knot keeps the last control.
      gains: `(T - 1, nu, nx)`, feedback gains.
      sensordata: `(T, ns)`, sensor readings at the state of each knot.
      terms: `(T, terms)`, norms of all terms at each knot, without weights.
      cost: mean over the knots of the weighted sum of the terms.
      initial_cost: cost of the trajectory before the first iteration.
      policy: feedback policy along the trajectory.
      history: record of the iterations.
      timings: computing times.
      status: "converged", "iterations" (the limit was reached), "no improvement" (no step size
        decreased the cost, as beside a jump where contacts change), "not convex" (the backward pass
        failed at the largest regularization), "stopped" (by a callback), "infeasible: " and the
        constraint that the largest penalty does not enforce, or "refused: " and the
        text of `refused`, if `ILQR.solve` ended with a knot without an exact derivative, or if
        `ILQR.improve` could not change any knot because of it.
      refused: first knot without an exact derivative, the element and the reason. The controls of
        such knots were not improved, and earlier controls ignore the cost after such a knot. Empty
        if all knots have derivatives.
      omitted: sensors without an exact derivative at knots of the last trajectory, with the reason.
        The terms of the cost that read such a sensor are part of the cost, but at that knot the
        step does not account for their rows.
      shortened: why `ILQR.improve` halved the time step, once or several times, so that the horizon
        of the plan is shorter: the initial trajectory diverged. Empty otherwise.
      approximated: first knot without an exact second derivative, the element and the reason, if
        exact second derivatives were asked for. The iterations in which this happened used the
        Gauss-Newton approximation. Empty otherwise.
      differenced: knots that were differentiated by finite differences in one of the iterations,
        with the element and the reason; empty without `fallback`.
      violations: largest violation of each constraint by name, in the unit of its rows.
      multipliers: multipliers of each constraint by name, `(T, k)`. They are positive at upper
        bounds and negative at lower bounds. An upper bound that is larger by d at one knot changes
        the optimal cost by -d times the multiplier, divided by T unless `knots="last"` (ILQ-27).
      penalties: penalty of each constraint by name, which the next plan of a loop continues with.
    """

    times: Array
    states: Array
    controls: Array
    gains: Array
    sensordata: Array
    terms: Array
    cost: float
    initial_cost: float
    policy: Policy
    history: History
    timings: Timings = field(default_factory=Timings)
    status: str = "iterations"
    refused: str = ""
    omitted: tuple[str, ...] = ()
    shortened: str = ""
    approximated: str = ""
    differenced: tuple[Differenced, ...] = ()
    violations: dict[str, float] = field(default_factory=dict)
    multipliers: dict[str, Array] = field(default_factory=dict)
    penalties: dict[str, float] = field(default_factory=dict)
    _planner: ILQR | None = None
    _start: Array | None = None

    def sensitivity(self, of: str = "state", *, params: Parameters | None = None) -> Sensitivity:
        """Return the derivatives of the optimal states and controls.

        They follow from the optimality conditions with exact second derivatives, by the implicit
        function theorem (ILQ-15). Controls at a bound stay there. The plan must have converged:
        solve it with `hessian="auto"` and a tolerance of 1e-9 or less. The planner of this plan
        must still exist, with the same cost and weights.

        Args:
          of: "state" (the initial state, in the tangent coordinates of `linearize`), "weights" (the
            weights of the terms), "targets" (the targets of all rows, which change by the same
            amount at all knots) or "params" (parameters of the model).
          params: the parameters, at their values in the planner's model. A parameter without a
            second derivative raises `UnsupportedFeatureError`.
        """
        if self._planner is None or self._start is None:
            raise MujacobianError(
                "a plan that was pickled or changed has lost its planner: solve it again"
            )
        return self._planner.sensitivity(self, self._start, of, params)

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_planner": None}

    def __repr__(self) -> str:
        facts = [
            f"status {self.status!r}, {len(self.history.cost)} iterations",
            f"cost {self.initial_cost:.6g} -> {self.cost:.6g}",
        ]
        for name, violation in self.violations.items():
            facts.append(f"constraint {name}: largest violation {violation:.3g}")
        if self.refused:
            facts.append(f"improved only in part: {self.refused}")
        if self.shortened:
            facts.append(f"smaller time steps: {self.shortened}")
        if self.omitted:
            facts.append(f"{len(self.omitted)} sensors left out, for example {self.omitted[0]}")
        if self.approximated:
            facts.append(f"Gauss-Newton approximation: {self.approximated}")
        if self.differenced:
            knots = len({report.index for report in self.differenced})
            facts.append(f"{knots} knots differenced, for example {self.differenced[0]}")
        return describe(
            f"Plan: {len(self.times)} knots",
            facts,
            states=self.states,
            controls=self.controls,
            gains=self.gains,
        )
