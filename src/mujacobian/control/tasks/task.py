"""A task: a model, what is to be done with it, and how well it was done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.tasks.gait import Feet


@dataclass(frozen=True)
class Outcome:
    """Whether a task was done, and the figures that say so, by name."""

    success: bool
    measures: Mapping[str, float]


@dataclass(frozen=True)
class Task:
    """Everything that a run needs; copy one of the files beside this one to make your own.

    Attributes:
      name: as on the command line.
      summary: what is done, in a line.
      model: what is simulated.
      planned: what the planner believes, a changed copy of `model`.
      cost: of `planned`.
      start: returns the first state; given a generator, a random one.
      horizon: knots of a plan.
      steps_per_plan: steps of `model` between two plans.
      seconds: of a usual run.
      judge: what was reached in a run.
      view: azimuth and elevation of drawings, in degrees.
      feet: those that follow a gait, if any.
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

    def planner(self, derivatives: str = "analytic", threads: int | None = None) -> control.ILQR:
        """Return a planner for the task; see `control.ILQR`."""
        return control.ILQR(
            self.planned, self.cost, horizon=self.horizon, derivatives=derivatives, threads=threads
        )

    def mpc(self, derivatives: str = "analytic", threads: int | None = None) -> control.MPC:
        """Return the loop that simulates and plans; see `control.MPC`."""
        planner = self.planner(derivatives, threads)
        return control.MPC(self.model, planner, steps_per_plan=self.steps_per_plan)


def load_model(name: str) -> mujoco.MjModel:
    """Return a model of this folder."""
    return mujoco.MjModel.from_xml_path(str(Path(__file__).with_name(f"{name}.xml")))


def at_rest(model: mujoco.MjModel, qpos: Array) -> mujoco.MjData:
    """Return a state without velocity."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    return data
