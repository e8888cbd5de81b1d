"""An arm pushes a box to a goal with a cylinder."""

from __future__ import annotations

from functools import partial

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.task import Outcome, Task, load_spec

BEHIND = 0.065  # distance of the tool from the center of the box, m: 5 mm into its side
NEAR = 0.02  # distance to the goal at which the place of the tool begins to matter less, m
TINY = 0.005  # distance to the goal at which the direction of pushing is not defined any more, m
HEIGHT = 0.06  # of the tip of the tool, m
CLOSE = 0.01  # largest distance to the goal, m


def build() -> Task:
    """Return the task; the tool follows a point behind the box, as the goal lies in front."""
    spec = load_spec("push_box")
    rows = control.residuals(spec)
    tip, box = rows.position("tip"), rows.position("box", kind="body")
    tool_axis, box_up = rows.axis("tip", "z"), rows.axis("box", "z", kind="body")
    speeds, angles = rows.joint_velocities(), rows.joint_positions()
    box_velocity = rows.velocity("box", kind="body")
    model = spec.compile()
    planned = control.planning_model(model, timestep=0.01)
    # the torques of the servos without their limits, so that commands beyond the limits cost more
    kp, kv = model.actuator_gainprm[0, 0], -model.actuator_biasprm[0, 2]
    torques = kp * (rows.controls() - angles) - kv * speeds
    goal = model.site("goal").pos[:2]
    away = box[:2] - goal
    square = np.ones(2) @ np.square(away)
    behind = box[:2] + BEHIND * away / np.sqrt(square + TINY**2)
    far = square / (square + NEAR**2)
    terms = [
        control.Term("goal", away, control.L2(0.02), 3.0),
        control.Term("behind", (tip[:2] - behind) * far, control.L2(0.02), 5.0),
        control.Term("height", tip[2] - HEIGHT, control.L2(0.02), 20.0),
        control.Term("vertical", tool_axis[:2], control.Quadratic(), 20.0),
        control.Term("level", box_up[:2], control.Quadratic(), 1.0),
        control.Term("slow", box_velocity[:2], control.Quadratic(), 40.0),
        control.Term("still", speeds, control.Quadratic(), 0.5),
        control.Term("effort", torques / 50, control.Quadratic(), 0.05),
    ]
    return Task(
        name="push_box",
        summary="an arm pushes a box to a goal with a cylinder",
        model=model,
        planned=planned,
        cost=control.Cost(planned, terms),
        start=partial(start, model),
        horizon=60,
        steps_per_plan=2,
        seconds=5.0,
        judge=partial(judge, model, goal),
        view=(-60.0, 30.0),
    )


def start(model: mujoco.MjModel, rng: np.random.Generator | None) -> mujoco.MjData:
    """Return the tool next to the box, whose place and direction are random with a generator."""
    data = mujoco.MjData(model)
    arm = np.array([0.0, -0.7949, 2.3363, -1.5414])
    if rng is not None:
        data.qpos[:2] += rng.uniform(-0.04, 0.04, 2)
        angle = rng.uniform(-0.4, 0.4)
        data.qpos[3:7] = np.cos(angle / 2), 0, 0, np.sin(angle / 2)
        arm[0] = rng.uniform(-0.3, 0.3)
    data.qpos[7:] = data.ctrl[:] = arm
    mujoco.mj_forward(model, data)
    return data


def judge(model: mujoco.MjModel, goal: Array, result: control.MPCResult) -> Outcome:
    """Return whether the box is at the goal."""
    (box,) = readings(model, result, "position:box")
    distance = np.linalg.norm(box[:, :2] - goal, axis=1)
    measures = {
        "first distance to the goal (m)": float(distance[0]),
        "last distance to the goal (m)": float(distance[-1]),
    }
    return Outcome(bool(distance[-1] < CLOSE), measures)
