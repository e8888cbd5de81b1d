"""Four fingers turn a cube on a palm."""

from __future__ import annotations

from functools import partial

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.task import Outcome, Task, load_model

FINGERS = ("east", "north", "west", "south")
TURN, SECONDS = np.pi / 4, 2.0  # rotation of the cube, rad, and its duration, s


def build() -> Task:
    """Return the task."""
    model = load_model("hand")
    planned = control.planning_model(model, timestep=0.01)
    gaps = control.stack(*(control.sensor(planned, f"{finger}_gap") for finger in FINGERS))
    joints = [f"{finger}_{joint}" for finger in FINGERS for joint in ("spread", "base", "end")]
    speeds = control.stack(*(control.sensor(planned, f"{joint}_speed") for joint in joints))
    torques = control.stack(*(control.sensor(planned, f"{joint}_torque") for joint in joints))
    terms = [
        control.Term("turn", control.sensor(planned, "cube_x")[:2], control.L2(0.1), 2.0, heading),
        control.Term("level", control.sensor(planned, "cube_z")[:2], control.L2(0.1), 1.0),
        control.Term(
            "place", 20 * control.sensor(planned, "cube"), control.L2(0.1), 1.0, (0, 0, 0.6)
        ),
        control.Term("press", 20 * gaps, control.SmoothAbs(0.02), 0.5, np.full(4, -0.06)),
        control.Term("still", speeds, control.Quadratic(), 0.001),
        control.Term("effort", torques, control.Quadratic(), 0.1),
        control.Term("open", control.controls(planned), control.Quadratic(), 0.01),
    ]
    return Task(
        name="hand",
        summary="four fingers turn a cube on a palm",
        model=model,
        planned=planned,
        cost=control.Cost(planned, terms),
        start=partial(start, model),
        horizon=40,
        steps_per_plan=2,
        seconds=3.0,
        judge=partial(judge, model),
        view=(-55.0, 45.0),
    )


def angle(times: Array) -> Array:
    """Return the desired rotation of the cube, rad, `(n,)`."""
    return TURN * np.clip(times / SECONDS, 0, 1)


def heading(times: Array) -> Array:
    """Return the desired direction of the first axis of the cube, `(n, 2)`."""
    return np.stack([np.cos(angle(times)), np.sin(angle(times))], axis=1)


def start(model: mujoco.MjModel, rng: np.random.Generator | None) -> mujoco.MjData:
    """Return the open hand with the cube in its middle, or at a random position near it."""
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("open").id)
    if rng is not None:
        data.qpos[:2] += rng.uniform(-0.004, 0.004, 2)
    mujoco.mj_forward(model, data)
    return data


def judge(model: mujoco.MjModel, result: control.MPCResult) -> Outcome:
    """Return whether the cube has its desired rotation in the middle of the palm."""
    cube, ahead, up = readings(model, result, "cube", "cube_x", "cube_z")
    turned = np.unwrap(np.arctan2(ahead[:, 1], ahead[:, 0]))
    off = abs(turned[-1] - angle(result.times[-1:])[0])
    measures = {
        "turned (rad)": float(turned[-1]),
        "off the asked angle (rad)": float(off),
        "off the middle (m)": float(np.linalg.norm(cube[-1, :2])),
        "least level (cosine)": float(up[:, 2].min()),
    }
    return Outcome(bool(off < 0.15 and np.linalg.norm(cube[-1, :2]) < 0.02), measures)
