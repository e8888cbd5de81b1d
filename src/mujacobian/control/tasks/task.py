"""A task: a model, a cost, an initial state and a measure of success."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.progress import RunCallback
from mujacobian.control.tasks.gait import Feet


@dataclass(frozen=True)
class Outcome:
    """Whether a task succeeded, with the measures of success by name."""

    success: bool
    measures: Mapping[str, float]


@dataclass(frozen=True)
class Task:
    """Everything that a run needs. To make your own task, copy one of the files in this folder.

    Attributes:
      name: name on the command line.
      summary: description in one line.
      model: simulated model.
      planned: model of the planner, a copy of `model` with other options.
      cost: cost of `planned`.
      start: function that returns the initial state, a random one if it receives a generator.
      horizon: number of knots of a plan.
      steps_per_plan: number of steps of `model` between two plans.
      seconds: duration of a usual run, s.
      judge: function that returns the outcome of a run.
      view: azimuth and elevation of drawings, degrees; by default (-60, 15).
      feet: feet that follow a gait; by default none.
      disturb: function that returns a callback of `control.MPC.run`, which disturbs the simulation,
        at random if it receives a generator; by default none.
    """

    name: str
    summary: str
    model: mujoco.MjModel
    planned: mujoco.MjModel
    cost: control.Cost
    start: Callable[[np.random.Generator | None], mujoco.MjData]
    horizon: int
    steps_per_plan: int
    seconds: float
    judge: Callable[[control.MPCResult], Outcome]
    view: tuple[float, float] = (-60.0, 15.0)
    feet: Feet | None = None
    disturb: Callable[[np.random.Generator | None], RunCallback] | None = None

    def planner(self, derivatives: str = "analytic", threads: int | None = None) -> control.ILQR:
        """Return a planner for the task; see `control.ILQR`."""
        return control.ILQR(
            self.planned, self.cost, horizon=self.horizon, derivatives=derivatives, threads=threads
        )

    def mpc(self, derivatives: str = "analytic", threads: int | None = None) -> control.MPC:
        """Return the receding-horizon loop of the task; see `control.MPC`."""
        planner = self.planner(derivatives, threads)
        return control.MPC(self.model, planner, steps_per_plan=self.steps_per_plan)

    def run(
        self,
        seconds: float | None = None,
        *,
        seed: int | None = None,
        derivatives: str = "analytic",
        threads: int | None = None,
        progress: bool = True,
    ) -> control.MPCResult:
        """Return the result of the closed loop with the disturbance of the task.

        Args:
          seconds: simulated time, s; by default that of a usual run.
          seed: seed of the random initial state and disturbance; by default they are fixed.
          derivatives: backend of the planner.
          threads: number of threads of the planner.
          progress: whether to show a progress bar; by default True.
        """
        rng = None if seed is None else np.random.default_rng(seed)
        data = self.start(rng)
        return self.mpc(derivatives, threads).run(
            data,
            self.seconds if seconds is None else seconds,
            progress=progress,
            callback=None if self.disturb is None else self.disturb(rng),
        )


def load_model(name: str) -> mujoco.MjModel:
    """Return the model with this name from this folder."""
    model: mujoco.MjModel = load_spec(name).compile()
    return model


def load_spec(name: str) -> mujoco.MjSpec:
    """Return the specification of the model with this name from this folder."""
    return mujoco.MjSpec.from_file(str(Path(__file__).with_name(f"{name}.xml")))


def at_rest(model: mujoco.MjModel, qpos: Array) -> mujoco.MjData:
    """Return the state with this configuration and zero velocity."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    return data
