"""The history of iterations, and reports to the callbacks of planners and loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._summary import summarize
from mujacobian.control.passes import Passes
from mujacobian.control.plan import History, Plan
from mujacobian.control.trajectory import Iterate
from mujacobian.errors import ArgumentTypeError


@dataclass(frozen=True, eq=False, repr=False)
class Iteration:
    """An iteration of `ILQR.solve`.

    Attributes:
      attempt: number of the attempt: 0 begins with the simulation of the initial controls, or with
        given states, and 1 with the initial state at all knots. 2 are the plans with wide contacts,
        whose costs are those with the present width, and 3 begins where they end.
      number: number of the iteration of this attempt, from 0.
      cost: cost after the iteration; with constraints, the augmented Lagrangian (ILQ-27).
      expected: decrease of the cost that the backward pass predicts for the step size.
      step: step size, 0 if no step size decreased the cost.
      regularization: regularization mu of the backward pass.
      candidates: number of rollouts in the line search.
      exact: whether the step was found with exact second derivatives.
      states: `(T, nq + nv + na)`, states of the trajectory after the iteration.
      controls: `(T, nu)`, its controls; the last knot keeps the last control.
      has_gaps: whether the states are not connected by a simulation yet. The cost is then not that
        of a plan.
    """

    attempt: int
    number: int
    cost: float
    expected: float
    step: float
    regularization: float
    candidates: int
    exact: bool
    states: Array
    controls: Array
    has_gaps: bool

    __repr__ = summarize

    def __str__(self) -> str:
        return (
            f"iteration {self.number:3d}: cost {self.cost:.6g}, expected decrease "
            f"{self.expected:.2e}, step {self.step:.3g}, regularization {self.regularization:.1e}"
            f"{f', attempt {self.attempt}' if self.attempt else ''}"
            f"{', with gaps' if self.has_gaps else ''}"
        )


@dataclass(frozen=True, eq=False)
class Interval:
    """The steps that `MPC.run` has simulated under one plan.

    Attributes:
      data: data of the simulation after these steps. A callback may change it, to push the robot.
      plan: plan that was followed.
      taken: number of steps since the beginning of the run.
    """

    data: mujoco.MjData
    plan: Plan
    taken: int

    def __str__(self) -> str:
        sizes = self.plan.history.step
        return (
            f"{self.data.time:8.3f} s: cost {self.plan.cost:.6g}, step "
            f"{sizes[-1] if len(sizes) else 0:.3g}, {1e3 * self.plan.timings.total:.1f} ms"
        )


Callback = Callable[[Iteration], object]
RunCallback = Callable[[Interval], object]


def require_callback(callback: object) -> None:
    """Raise if this is neither a function nor None."""
    if callback is not None and not callable(callback):
        raise ArgumentTypeError(f"callback must be a function, got {type(callback).__name__}")


class Log:
    """Rows of a history, one per iteration of an attempt, and what is reported about them.

    `has_stopped` is true if the callback has asked to stop.
    """

    def __init__(
        self, callback: Callback | None = None, verbose: bool = False, attempt: int = 0
    ) -> None:
        self.callback, self.verbose, self.attempt = callback, verbose, attempt
        self.has_stopped = False
        self.rows: list[tuple[float, float, float, float, int, bool]] = []

    def add(
        self,
        cost: float,
        expected: float,
        step: float,
        mu: float,
        candidates: int,
        is_exact: bool,
    ) -> None:
        """Add an iteration; the arguments are the entries of `History`."""
        self.rows.append((cost, expected, step, mu, candidates, is_exact))

    def report(self, iterate: Iterate, passes: Passes) -> None:
        """Report the last iteration, which has led to this trajectory."""
        if self.callback is None and not self.verbose:
            return
        made = Iteration(
            self.attempt,
            len(self.rows) - 1,
            *self.rows[-1],
            passes.states(iterate.knots),
            iterate.knots.controls.copy(),
            iterate.gaps is not None,
        )
        if self.verbose:
            print(made)
        self.has_stopped = self.callback is not None and self.callback(made) is True

    def arrays(self) -> History:
        """Return the history of all iterations."""
        return History(*np.array(self.rows, dtype=np.float64).reshape(-1, 6).T)
