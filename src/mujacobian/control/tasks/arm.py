"""An arm reaches around a bollard."""

from __future__ import annotations

from functools import partial

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.task import Outcome, Task, at_rest, load_model

JOINTS = ("yaw", "shoulder", "elbow", "roll", "pitch", "turn")
CLEARANCES = ("upper_clearance", "fore_clearance", "hand_clearance")
MARGIN = 0.05  # minimum distance between the links and the bollard, m


def build() -> Task:
    """Return the task; distances to the bollard are sensors, so their derivatives are exact."""
    model = load_model("arm")
    # plans would pass through a bollard with soft contacts
    planned = control.planning_model(model, timestep=0.02, width=0.0)
    clearance = control.stack(*(control.sensor(planned, name) for name in CLEARANCES))
    speeds = control.stack(*(control.sensor(planned, f"{joint}_speed") for joint in JOINTS))
    target = model.site("target").pos
    terms = [
        control.Term("reach", control.sensor(planned, "tip"), control.L2(0.05), 2.0, target),
        control.Term("clear", MARGIN - clearance, control.Rectify(0.01), 30.0),
        control.Term("still", speeds, control.Quadratic(), 0.02),
        control.Term("effort", control.controls(planned), control.Quadratic(), 0.05),
    ]
    return Task(
        name="arm",
        summary="an arm reaches around a bollard",
        model=model,
        planned=planned,
        cost=control.Cost(planned, terms),
        start=partial(start, model),
        horizon=40,
        steps_per_plan=4,
        seconds=3.0,
        judge=partial(judge, model, target),
        view=(5.0, 30.0),
    )


def start(model: mujoco.MjModel, rng: np.random.Generator | None) -> mujoco.MjData:
    """Return the arm on the left of the bollard; the target is on the right."""
    qpos = model.key("left").qpos.copy()
    if rng is not None:
        qpos += rng.uniform(-1, 1, model.nv) * (0.3, 0.3, 0.3, 1.0, 0.5, 0.5)
    return at_rest(model, qpos)


def judge(model: mujoco.MjModel, target: Array, result: control.MPCResult) -> Outcome:
    """Return whether the tip is at the target and the arm never touched the bollard."""
    tip, *clearances = readings(model, result, "tip", *CLEARANCES)
    distance = np.linalg.norm(tip - target, axis=1)
    closest = min(clearance.min() for clearance in clearances)
    measures = {
        "last distance to the target (m)": float(distance[-1]),
        "least clearance (m)": float(closest),
    }
    return Outcome(bool(distance[-1] < 0.03 and closest > 0), measures)
