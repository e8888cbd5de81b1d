"""A hand with three fingers and a thumb, similar to the LEAP hand, turns a cube by 90 degrees."""

from __future__ import annotations

from functools import partial

import numpy as np

from mujacobian import control
from mujacobian.control.tasks import cube_turn
from mujacobian.control.tasks.task import Task, load_spec

FINGERS = ("index", "middle", "ring", "thumb")
TURN = cube_turn.Turn(total=np.pi / 2, seconds=4.0)


def build() -> Task:
    """Return the task."""
    spec = load_spec("leap")
    rows = control.residuals(spec)
    gaps = [rows.distance(f"{finger}_tip", "cube", 0.1, kind="geom") for finger in FINGERS]
    speeds, torques, angles = rows.joint_velocities(), rows.joint_torques(), rows.joint_positions()
    model = spec.compile()
    planned = control.planning_model(model, timestep=0.01)
    terms = TURN.terms(
        planned,
        gaps=control.stack(*gaps),
        speeds=speeds,
        torques=torques,
        posture=angles - model.key("open").qpos[7:],
    )
    return Task(
        name="leap_turn",
        summary="a hand like the LEAP hand turns a cube by 90 degrees",
        model=model,
        planned=planned,
        cost=control.Cost(planned, terms),
        start=partial(cube_turn.start, model),
        horizon=40,
        steps_per_plan=2,
        seconds=5.0,
        judge=partial(TURN.judge, model),
        view=(-55.0, 45.0),
    )
