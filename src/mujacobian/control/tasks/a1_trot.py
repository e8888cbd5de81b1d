"""The Unitree A1 trots toward a moving goal."""

from __future__ import annotations

from functools import partial

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.tasks import a1_cost
from mujacobian.control.tasks.gait import TROT, Feet
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.task import Outcome, Task, at_rest, load_model

SPEED = 0.4  # speed of the goal, m/s; it starts at the head
FEET = Feet(TROT, a1_cost.FEET, ground=a1_cost.RADIUS)


def build() -> Task:
    """Return the task."""
    model = load_model("a1")
    planned = control.planning_model(model, timestep=0.01)
    heights = control.stack(*(control.sensor(planned, name)[2] for name in FEET.sensors))
    lift = partial(TROT.height, ground=FEET.ground)
    return Task(
        name="a1_trot",
        summary="the Unitree A1 trots toward a moving goal",
        model=model,
        planned=planned,
        cost=control.Cost(planned, a1_cost.terms(planned, goal, heights, lift)),
        start=partial(start, model),
        horizon=36,
        steps_per_plan=5,
        seconds=10.0,
        judge=partial(judge, model),
        view=(-85.0, 10.0),
        feet=FEET,
    )


def goal(times: Array) -> Array:
    """Return the desired horizontal position of the head, `(n, 2)`."""
    return np.stack([0.3 + SPEED * times, np.zeros_like(times)], axis=1)


def start(model: mujoco.MjModel, rng: np.random.Generator | None) -> mujoco.MjData:
    """Return the standing robot, with random joint angles if there is a generator."""
    qpos = model.key("home").qpos.copy()
    if rng is not None:
        qpos[7:] += rng.uniform(-0.1, 0.1, model.nu)
    return at_rest(model, qpos)


def judge(model: mujoco.MjModel, result: control.MPCResult) -> Outcome:
    """Return whether the robot stayed upright, is near the goal and followed its gait."""
    trunk, up, head = readings(model, result, "trunk", "up", "head")
    distance = np.linalg.norm(head[:, :2] - goal(result.times), axis=1)
    measures = {
        "lowest trunk (m)": float(trunk[:, 2].min()),
        "least upright (cosine)": float(up[:, 2].min()),
        "covered (m)": float(head[-1, 0] - head[0, 0]),
        "farthest from the goal (m)": float(distance.max()),
        **FEET.measures(result.times, FEET.lifted(model, result)),
    }
    stayed_up = trunk[:, 2].min() > 0.15 and up[:, 2].min() > 0.7
    in_step = measures["feet as scheduled (share)"] > 0.8
    return Outcome(bool(stayed_up and distance[-1] < 0.15 and in_step), measures)
