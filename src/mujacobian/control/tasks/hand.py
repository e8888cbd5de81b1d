"""Four fingers turn a cube on a palm."""

from __future__ import annotations

from functools import partial

import numpy as np

from mujacobian import control
from mujacobian.control.tasks import cube_turn
from mujacobian.control.tasks.task import Task, load_model

FINGERS = ("east", "north", "west", "south")
TURN = cube_turn.Turn(total=np.pi / 4, seconds=2.0)


def build() -> Task:
    """Return the task."""
    model = load_model("hand")
    planned = control.planning_model(model, timestep=0.01)
    joints = [f"{finger}_{joint}" for finger in FINGERS for joint in ("spread", "base", "end")]
    terms = TURN.terms(
        planned,
        gaps=control.stack(*(control.sensor(planned, f"{finger}_gap") for finger in FINGERS)),
        speeds=control.stack(*(control.sensor(planned, f"{joint}_speed") for joint in joints)),
        torques=control.stack(*(control.sensor(planned, f"{joint}_torque") for joint in joints)),
        posture=control.controls(planned),
    )
    return Task(
        name="hand",
        summary="four fingers turn a cube on a palm",
        model=model,
        planned=planned,
        cost=control.Cost(planned, terms),
        start=partial(cube_turn.start, model),
        horizon=40,
        steps_per_plan=2,
        seconds=3.0,
        judge=partial(TURN.judge, model),
        view=(-55.0, 45.0),
    )
