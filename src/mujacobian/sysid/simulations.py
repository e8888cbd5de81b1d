"""Simulations of the windows of all logs, in threads or by workers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import mujoco

from mujacobian._arguments import Array
from mujacobian._threads import borrowed, each
from mujacobian._workers import Distribution, Outcome, Workers, show
from mujacobian.sysid.loss import Loss
from mujacobian.sysid.unknowns import Trial, Unknowns
from mujacobian.sysid.window import Point, Window

TRIALS = 16  # trials that are kept, for starts that are evaluated together


@dataclass(frozen=True)
class Task:
    """Windows of a log that are simulated one after the other, for given values of the unknowns.

    Attributes:
      log: index of the log.
      first: index of the first window.
      count: number of windows. Each but the first begins at the last state of the one before.
      values: values of the unknowns.
      state: first state of the first window.
      tolerance: tolerance of the best first states; None if first states are kept.
      is_robust: whether the robust loss applies.
    """

    log: int
    first: int
    count: int
    values: Array
    state: Array
    tolerance: float | None
    is_robust: bool = True


# the simulated windows, and the number of simulated steps
Result = tuple[list[Point], int]


class LogSet:
    """The windows of all logs; this is what workers receive once."""

    def __init__(self, unknowns: Unknowns, logs: list[list[Window]], loss: Loss | None) -> None:
        self.unknowns, self.logs, self.loss = unknowns, logs, loss
        self._trials: OrderedDict[tuple[bytes, bool], Trial] = OrderedDict()
        self._lock = Lock()

    def __getstate__(self) -> tuple[Unknowns, list[list[Window]], Loss | None]:
        return self.unknowns, self.logs, self.loss

    def __setstate__(self, state: tuple[Unknowns, list[list[Window]], Loss | None]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def trial(self, values: Array, *, is_robust: bool = True) -> Trial:
        """Return the model at these values, which the next simulations reuse."""
        key = values.tobytes(), is_robust
        with self._lock:  # the other threads wait for the model that they all need
            if key not in self._trials:
                self._trials[key] = self.unknowns.trial(values, self.loss if is_robust else None)
            while len(self._trials) > TRIALS:
                self._trials.popitem(last=False)
            return self._trials[key]

    def simulate(self, task: Task, data: mujoco.MjData) -> Result:
        """Return the simulated windows of a task."""
        trial = self.trial(task.values, is_robust=task.is_robust)
        points: list[Point] = []
        steps = 0
        for window in self.logs[task.log][task.first : task.first + task.count]:
            state = points[-1].last if points else task.state
            if task.tolerance is None:
                point, taken = window.at(trial, data, state), 1
            else:
                point, taken = window.settle(trial, data, state, task.tolerance)
            points.append(point)
            steps += taken * window.steps
        return points, steps


class Simulations:
    """Simulates windows in threads, or by workers if there are any."""

    def __init__(self, logs: LogSet, threads: int, workers: Workers | None) -> None:
        self.logs, self._threads = logs, threads
        self._distribution = None if workers is None else Distribution(workers, logs)

    @property
    def model(self) -> mujoco.MjModel:
        """The model, with its own values."""
        return self.logs.unknowns.parameters.model

    def outcomes(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Return the results or errors of all tasks, in their order."""
        if self._distribution is not None:
            made = self._distribution.outcomes(simulate, tasks)
            for task, outcome in zip(tasks, made, strict=True):
                show(self.model, outcome, f"log {task.log}: ")
            return made
        found: dict[int, Outcome] = {}

        def make(k: int, data: mujoco.MjData) -> None:
            try:
                found[k] = Outcome(self.logs.simulate(tasks[k], data))
            except Exception as error:
                found[k] = Outcome(error=error)

        each(self.model, len(tasks), self._threads, make)
        return [found[k] for k in range(len(tasks))]


def simulate(logs: LogSet, task: Task) -> Result:
    """Return the simulated windows of a task; runs in a worker."""
    with borrowed(logs.unknowns.parameters.model) as data:
        return logs.simulate(task, data)
