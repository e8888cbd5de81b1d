"""The nonlinear least-squares problem of all logs as a function of the parameters alone."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mujacobian._arguments import Array
from mujacobian._summary import summarize
from mujacobian._threads import thread_count
from mujacobian._workers import Outcome, Workers
from mujacobian.errors import (
    ArgumentError,
    ArgumentTypeError,
    MujacobianError,
    UnsupportedFeatureError,
)
from mujacobian.sysid.linear_fit import LinearFit, triangular
from mujacobian.sysid.log import Log
from mujacobian.sysid.loss import Loss
from mujacobian.sysid.prior import Prior
from mujacobian.sysid.simulations import LogSet, Simulations, Task
from mujacobian.sysid.unknowns import Unknowns
from mujacobian.sysid.window import Point
from mujacobian.sysid.windows import windows

Run = Callable[[Simulations, Sequence[Task]], list[Outcome]]


@dataclass(frozen=True, repr=False)
class Iterate:
    """An iterate of the optimizer.

    Attributes:
      cost: half the sum of squared residuals.
      values: values of the parameters.
    """

    cost: float
    values: Array

    __repr__ = summarize


class Stop(Exception):
    """Raised to stop the optimizer with these values, whether converged or not."""

    def __init__(self, values: Array, message: str, *, converged: bool) -> None:
        super().__init__(message)
        self.values, self.converged = values, converged


class Evaluation:
    """All windows for given values of the parameters, each with its best first state.

    Attributes:
      slopes, residual: triangular factor of the reduced problem, with the same norms and products
        as all its rows.
      points: the simulated windows of each log.
    """

    def __init__(self, values: Array, points: Sequence[Sequence[Point]], prior: Array) -> None:
        self.values, self.points = values, points
        rows = [point.reduced() for of_log in points for point in of_log]
        whole = triangular(np.vstack([*rows, prior]))
        self.slopes, self.residual = whole[:, :-1], whole[:, -1]
        self.squares = float(self.residual @ self.residual)
        self.first_state_rank = sum(point.fit.rank for of_log in points for point in of_log)

    @cached_property
    def fit(self) -> LinearFit:
        """The linear least-squares problem of the parameters, with all first states eliminated."""
        return LinearFit(self.slopes, self.residual)

    def residuals(self) -> tuple[Array, ...]:
        """Return the residuals of each log: first its sensors, then its states."""
        return tuple(
            np.concatenate([point.residuals[part] for part in (0, 1) for point in of_log])
            for of_log in self.points
        )


class Problem:
    """Residuals of all logs as a function of the parameters, with first states eliminated.

    For given parameters, every window has its own best first state, independent of the other
    windows (variable projection). The unknowns of the optimizer are therefore the parameters alone,
    and the cost of an evaluation grows linearly with the number of windows.
    """

    def __init__(
        self,
        unknowns: Unknowns,
        logs: Log | Sequence[Log],
        tolerance: float = 1e-8,
        threads: int | None = None,
        *,
        estimate: bool = False,
        window: int | None = None,
        max_evaluations: int = 200,
        prior: Prior | None = None,
        loss: Loss | None = None,
        workers: Workers | None = None,
    ) -> None:
        several = [logs] if isinstance(logs, Log) else list(logs)
        if not several:
            raise ArgumentError("there are no logs")
        for k, log in enumerate(several):
            if not isinstance(log, Log):
                raise ArgumentTypeError(
                    f"log {k} must be a mujacobian.sysid.Log, got {type(log).__name__}"
                )
        self.unknowns, self.tolerance, self.loss = unknowns, tolerance, loss
        self.prior = prior or Prior(unknowns, None)
        self.is_estimated, self.window = estimate, window
        self.logs = [
            windows(unknowns, f"log {k}", log, window, estimate=estimate)
            for k, log in enumerate(several)
        ]
        self.places = [(k, j) for k, log in enumerate(self.logs) for j in range(len(log))]
        self.size = sum(window.size for log in self.logs for window in log) + len(self.prior)
        self.is_noise_known = all(
            part.is_known for log in self.logs for w in log for part in (w.sensors, w.states)
        )
        if self.size < len(unknowns):
            raise ArgumentError(
                f"the logs have {self.size} measured numbers for {len(unknowns)} parameters"
            )
        log_set = LogSet(unknowns, self.logs, loss)
        self.simulations = Simulations(log_set, thread_count(threads), workers)
        self.max_steps = max_evaluations * sum(w.steps for log in self.logs for w in log)
        self._begin(Simulations.outcomes)

    def _begin(self, run: Run) -> None:
        self.run = run
        self.steps = 0
        self.history: list[Iterate] = []
        # the last evaluation, and the last one whose Jacobian the optimizer requested: a candidate
        # for the optimum
        self._last: Evaluation | None = None
        self._differentiated: Evaluation | None = None

    def again(self, run: Run) -> Problem:
        """Return the same problem without a history, whose tasks this function runs."""
        other = copy.copy(self)
        other._begin(run)
        return other

    def follow(self, other: Problem) -> None:
        """Add the steps and the history of a problem that was solved before this one."""
        self.steps += other.steps
        self.history += other.history

    def residuals(self, values: Array) -> Array:
        """Return the residual of the triangular factor, or inf if a log diverges.

        With inf the optimizer tries a shorter step. Raises `Stop` after `max_steps` steps.
        """
        if self._differentiated is not None and self.steps >= self.max_steps:
            message = "The maximum number of simulations is exceeded."
            raise Stop(self._differentiated.values, message, converged=False)
        try:
            return self.evaluate(values).residual.copy()
        except UnsupportedFeatureError:
            raise
        except MujacobianError:
            return np.full(len(self.unknowns) + 1, np.inf)

    def jacobian(self, values: Array) -> Array:
        """Return the slopes of the triangular factor; raise `Stop` at the optimum."""
        evaluation = self.evaluate(values)
        if not np.isfinite(evaluation.slopes).all():
            raise MujacobianError(
                "the Jacobian overflows, because the system is unstable over these steps: use"
                " shorter logs or window="
            )
        self.history.append(Iterate(evaluation.squares / 2, values.copy()))
        self._differentiated = evaluation
        # compare the gain of a step to the optimum of the linearized problem with the variance
        variance = evaluation.squares / max(1, self.degrees_of_freedom(evaluation))
        if evaluation.fit.gain < self.tolerance * variance:
            message = "The optimum is a negligible part of the standard errors away."
            raise Stop(values.copy(), message, converged=True)
        return evaluation.slopes.copy()

    def degrees_of_freedom(self, evaluation: Evaluation) -> int:
        """Return the number of residuals minus the number of determined unknowns (SID-6)."""
        return self.size - evaluation.first_state_rank - evaluation.fit.rank

    def unsettled(self, evaluation: Evaluation) -> list[int]:
        """Return the logs whose first states could still be improved."""
        return sorted(
            {k for k, j in self.places if not self.logs[k][j].is_settled(evaluation.points[k][j])}
        )

    def evaluate(self, values: Array) -> Evaluation:
        """Return all windows at these values, with their Jacobians.

        Computing residuals and Jacobians together costs less than computing them separately.
        """
        for known in (self._last, self._differentiated):
            if known is not None and known.values.tobytes() == values.tobytes():
                return known
        near = self._differentiated or self._last
        tasks = self._first_tasks(values) if near is None else self._tasks_near(near, values)
        points = self._simulate(tasks)
        self._last = Evaluation(values.copy(), points, self.prior.rows(values))
        return self._last

    def without_loss(self, evaluation: Evaluation) -> Evaluation:
        """Return the same windows with the same first states, and with plain residuals."""
        if self.loss is None:
            return evaluation
        values, before = evaluation.values, self.steps
        tasks = [
            Task(k, j, 1, values, evaluation.points[k][j].state, None, is_robust=False)
            for k, j in self.places
        ]
        points = self._simulate(tasks)
        self.steps = before  # the optimizer needs no such simulations
        return Evaluation(values, points, self.prior.rows(values))

    def _first_tasks(self, values: Array) -> list[Task]:
        """Return one task per log: each window begins at the last state of the one before."""
        return [
            Task(k, 0, len(log), values, log[0].first.given, self.tolerance)
            for k, log in enumerate(self.logs)
        ]

    def _tasks_near(self, near: Evaluation, values: Array) -> list[Task]:
        """Return one task per window, from the first state that the linearized problem predicts."""
        change = values - near.values
        tasks = []
        for k, j in self.places:
            window, before = self.logs[k][j], near.points[k][j]
            state = before.state
            if len(window.first.unknown) and before.is_finite:
                state = window.first.moved(state, before.response() @ change)
            tasks.append(Task(k, j, 1, values, state, self.tolerance))
        return tasks

    def _simulate(self, tasks: Sequence[Task]) -> list[list[Point]]:
        """Return the windows of each log; raise the first error, which names its log."""
        outcomes = self.run(self.simulations, tasks)
        points: list[list[Point]] = [[] for _ in self.logs]
        for task, outcome in zip(tasks, outcomes, strict=True):
            if outcome.error is not None:
                outcome.error.add_note(f"in log {task.log}")
                raise outcome.error
        for task, outcome in zip(tasks, outcomes, strict=True):
            points[task.log] += outcome.value[0]
            self.steps += outcome.value[1]
        return points
