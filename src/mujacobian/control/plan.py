"""Plans: a trajectory, the feedback around it, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core
from mujacobian.arguments import numbers, shaped
from mujacobian.summary import describe

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Policy:
    """Linear feedback along a trajectory, looked up by time: u_t + K_t (x [-] x_t), between bounds.

    Between knots u_t and K_t are interpolated linearly and x_t along the shortest way, rotations
    as rotations (ILQ-10); or, if not `is_linear`, each knot holds until the next. Before the first
    knot and after the last one, that knot holds.

    times: `(n,)`.
    states: `(n, nq + nv + na)`, rows of (qpos, qvel, act).
    controls: `(n, nu)`.
    gains: `(n, nu, nx)`, for differences of states in tangent coordinates.
    lower, upper: `(nu,)`.
    """

    model: mujoco.MjModel = field(repr=False)
    times: Array
    states: Array
    controls: Array
    gains: Array
    lower: Array
    upper: Array
    is_linear: bool = True

    def __call__(self, time: ArrayLike, state: ArrayLike, feedback: float = 1.0) -> Array:
        """The control at a time and state, or at n of them, with `feedback` times the gain."""
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
        """As the core takes them."""
        return self.times, self.states, self.controls, self.gains, self.is_linear


@dataclass(frozen=True)
class Timings:
    """Seconds of one plan.

    derivatives: processor time of all threads together for A, B, C and D.
    nominal: following the last policy from the new state; derivatives are taken on the way.
    expansion: derivatives after a line search, in `ILQR.solve`.
    backward: the backward pass.
    rollouts: the line search.
    total: all of it, with what is left.
    """

    derivatives: float = 0.0
    nominal: float = 0.0
    expansion: float = 0.0
    backward: float = 0.0
    rollouts: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class History:
    """How a plan was found: arrays with one entry per iteration.

    cost: after the iteration.
    expected: by how much the backward pass expected it to fall at the step size taken.
    step: the step size; 0 if none was better.
    regularization: mu of the backward pass.
    candidates: rollouts that were tried.
    """

    cost: Array
    expected: Array
    step: Array
    regularization: Array
    candidates: Array


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """T knots: states, the controls between them, and feedback around them.

    times: `(T,)`.
    states: `(T, nq + nv + na)`, rows of (qpos, qvel, act).
    controls: `(T - 1, nu)`; the last one is held at the last knot.
    gains: `(T - 1, nu, nx)`.
    sensordata: `(T, ns)`, of the state before each step.
    terms: `(T, terms)`, the norms of all terms at each knot, without weights.
    cost: the mean over the knots of the weighted sum of the terms.
    initial_cost: that of the trajectory the iterations began with.
    status: "converged", "iterations" (all that were allowed), "no improvement" (no step size was
        better), "not convex" (the backward pass failed at the largest regularization), or "refused"
        (the first knots have no derivative).
    refused: of `ILQR.improve`, which knot has no exact derivative, and why: only those before it
        were improved. Empty if all have one.
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

    def __repr__(self) -> str:
        facts = [
            f"status {self.status!r}, {len(self.history.cost)} iterations",
            f"cost {self.initial_cost:.6g} -> {self.cost:.6g}",
        ]
        if self.refused:
            facts.append(f"improved in part: {self.refused}")
        return describe(
            f"Plan: {len(self.times)} knots",
            facts,
            states=self.states,
            controls=self.controls,
            gains=self.gains,
        )
