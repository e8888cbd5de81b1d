"""The nonlinear least squares of all logs as a function of the parameters alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._parameters import Parameters
from mujacobian._threads import each, thread_count
from mujacobian.errors import (
    ArgumentError,
    ArgumentTypeError,
    MujacobianError,
    UnsupportedFeatureError,
)
from mujacobian.sysid.linear_fit import LinearFit, triangular
from mujacobian.sysid.log import Log
from mujacobian.sysid.window import Point
from mujacobian.sysid.windows import windows

Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Iterate:
    """A point on the way to the optimum: half the sum of squared residuals, and the values."""

    cost: float
    values: Array


class Stop(Exception):
    """The optimizer is to stop with these values, at the optimum or short of it."""

    def __init__(self, values: Array, message: str, *, converged: bool) -> None:
        super().__init__(message)
        self.values, self.converged = values, converged


class Evaluation:
    """All windows at some values of the parameters, each with its best first state.

    slopes, residual: the triangular factor of the reduced problem, which has the norms and products
        of all its rows.
    points: the windows of each log.
    """

    def __init__(self, values: Array, points: Sequence[Sequence[Point]]) -> None:
        self.values, self.points = values, points
        whole = triangular(np.vstack([point.reduced() for of_log in points for point in of_log]))
        self.slopes, self.residual = whole[:, :-1], whole[:, -1]
        self.squares = float(self.residual @ self.residual)
        self.first_state_rank = sum(point.fit.rank for of_log in points for point in of_log)

    @cached_property
    def fit(self) -> LinearFit:
        """The linear problem of the parameters, with all first states eliminated."""
        return LinearFit(self.slopes, self.residual)

    def residuals(self) -> tuple[Array, ...]:
        """Residuals per log: of its sensors, then of its states."""
        return tuple(
            np.concatenate([point.residuals[part] for part in (0, 1) for point in of_log])
            for of_log in self.points
        )


class Problem:
    """Residuals of all logs as a function of the parameters, first states eliminated.

    For any values of the parameters every window has its own best first state, independent of the
    other windows (variable projection): the optimizer sees the parameters only, and the cost of an
    evaluation grows linearly with the number of windows.
    """

    def __init__(
        self,
        parameters: Parameters,
        logs: Log | Sequence[Log],
        tolerance: float = 1e-8,
        threads: int | None = None,
        *,
        estimate: bool = False,
        window: int | None = None,
        max_evaluations: int = 200,
    ) -> None:
        several = [logs] if isinstance(logs, Log) else list(logs)
        if not several:
            raise ArgumentError("there are no logs")
        for k, log in enumerate(several):
            if not isinstance(log, Log):
                raise ArgumentTypeError(
                    f"log {k} must be a mujacobian.sysid.Log, got {type(log).__name__}"
                )
        self.parameters, self.tolerance = parameters, tolerance
        self.is_estimated, self.window = estimate, window
        self.logs = [
            windows(parameters, f"log {k}", log, window, estimate=estimate)
            for k, log in enumerate(several)
        ]
        self.places = [(k, j) for k, log in enumerate(self.logs) for j in range(len(log))]
        self.size = sum(window.size for log in self.logs for window in log)
        self.is_noise_known = all(
            part.is_known for log in self.logs for w in log for part in (w.sensors, w.states)
        )
        if self.size < len(parameters):
            raise ArgumentError(
                f"the logs have {self.size} measured numbers for {len(parameters)} parameters"
            )
        self._threads = thread_count(threads)
        self.steps = 0
        self.max_steps = max_evaluations * sum(w.steps for log in self.logs for w in log)
        self.history: list[Iterate] = []
        # the last point, and the last one whose Jacobian was asked for, where the optimum will be
        self._last: Evaluation | None = None
        self._taken: Evaluation | None = None

    def follow(self, other: Problem) -> None:
        """Count what was done for another problem before this one."""
        self.steps += other.steps
        self.history += other.history

    def residuals(self, values: Array) -> Array:
        """Their part of the factor, inf where a log diverges: then a shorter step is tried.

        Raises `Stop` when so much has been simulated that it is time to give up.
        """
        if self._taken is not None and self.steps >= self.max_steps:
            message = "The maximum number of simulations is exceeded."
            raise Stop(self._taken.values, message, converged=False)
        try:
            return self.evaluate(values).residual.copy()
        except UnsupportedFeatureError:
            raise
        except MujacobianError:
            return np.full(len(self.parameters) + 1, np.inf)

    def jacobian(self, values: Array) -> Array:
        """The part of their Jacobian; raises `Stop` at the optimum."""
        made = self.evaluate(values)
        if not np.isfinite(made.slopes).all():
            raise MujacobianError(
                "the Jacobian overflows: over these steps the system is unstable, use shorter logs"
                " or window="
            )
        self.history.append(Iterate(made.squares / 2, values.copy()))
        self._taken = made
        # what a step to the optimum of the linearized problem gains, in units of the variance
        left = made.squares / max(1, self.degrees_of_freedom(made))
        if made.fit.gain < self.tolerance * left:
            message = "The optimum is a negligible part of the standard errors away."
            raise Stop(values.copy(), message, converged=True)
        return made.slopes.copy()

    def degrees_of_freedom(self, made: Evaluation) -> int:
        """Residuals beyond those that the unknowns can make zero (SID-6)."""
        return self.size - made.first_state_rank - made.fit.rank

    def unsettled(self, made: Evaluation) -> list[int]:
        """Logs whose first states could still be improved."""
        return sorted(
            {k for k, j in self.places if not self.logs[k][j].is_settled(made.points[k][j])}
        )

    def evaluate(self, values: Array) -> Evaluation:
        """All windows at these values, with their Jacobians: those cost less beside residuals."""
        for known in (self._last, self._taken):
            if known is not None and known.values.tobytes() == values.tobytes():
                return known
        model = self.parameters.apply(values)
        directions = np.ascontiguousarray(self.parameters.jacobian(values, model).T)
        near = self._taken or self._last
        if near is None:
            points = self._first_points(model, directions)
        else:
            points = self._points_near(near, values, model, directions)
        self._last = Evaluation(values.copy(), points)
        return self._last

    def _first_points(self, model: mujoco.MjModel, directions: Array) -> list[list[Point]]:
        """Windows in turn: a first state is looked for where the window before it has ended."""

        def follow(k: int, data: mujoco.MjData) -> tuple[list[Point], int]:
            points: list[Point] = []
            steps = 0
            for window in self.logs[k]:
                state = points[-1].last if points else window.first.given
                point, taken = window.settle(model, data, directions, state, self.tolerance)
                points.append(point)
                steps += taken * window.steps
            return points, steps

        made = self._each(range(len(self.logs)), follow, lambda k: k)
        self.steps += sum(steps for _, steps in made)
        return [points for points, _ in made]

    def _points_near(
        self, near: Evaluation, values: Array, model: mujoco.MjModel, directions: Array
    ) -> list[list[Point]]:
        """Windows from the first states that the linearized problem predicts."""
        change = values - near.values

        def follow(place: tuple[int, int], data: mujoco.MjData) -> tuple[Point, int]:
            window, before = self.logs[place[0]][place[1]], near.points[place[0]][place[1]]
            state = before.state
            if len(window.first.unknown) and before.is_finite:
                state = window.first.moved(state, before.response() @ change)
            return window.settle(model, data, directions, state, self.tolerance)

        made = self._each(self.places, follow, lambda place: place[0])
        points: list[list[Point]] = [[] for _ in self.logs]
        for (k, j), (point, taken) in zip(self.places, made, strict=True):
            points[k].append(point)
            self.steps += taken * self.logs[k][j].steps
        return points

    def _each(
        self,
        items: Sequence[Item],
        work: Callable[[Item, mujoco.MjData], Made],
        log: Callable[[Item], int],
    ) -> list[Made]:
        """Work on every item, in threads with a data each; errors name the log."""
        made: dict[int, Made] = {}

        def make(k: int, data: mujoco.MjData) -> None:
            made[k] = work(items[k], data)

        model = self.parameters.model
        each(model, len(items), self._threads, make, lambda k: f"in log {log(items[k])}")
        return [made[k] for k in range(len(items))]
