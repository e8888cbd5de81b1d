"""A humanoid rises from a squat and walks in place."""

from __future__ import annotations

from functools import partial

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.gait import Gait
from mujacobian.control.tasks import balance
from mujacobian.control.tasks.gait import Feet
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.task import Outcome, Task, at_rest, load_spec

SQUAT, HEAD = 0.99, 1.45  # heights of the head above the feet, squatting and standing, m
RISE = 1.0  # time to stand up, s
FALL_TIME = np.sqrt(0.9 / 9.81)
LEAN = 0.9  # weight of the supporting foot in the point of balance on one foot
WALK = Gait(offsets=(0.3, 0.8), duty=0.6, cadence=1.0, amplitude=0.08, start=1.5)
SITES = ("right_foot", "left_foot")
FEET = Feet(WALK, tuple(f"position:{site}" for site in SITES), ground=0.0, down=0.015)


def build() -> Task:
    """Return the task."""
    spec = load_spec("humanoid")
    rows = control.residuals(spec)
    feet = [rows.position(foot, kind="site") for foot in SITES]
    center = (feet[0] + feet[1]) / 2
    capture = rows.center_of_mass("torso") + FALL_TIME * rows.center_of_mass_velocity("torso")
    soles = [rows.axis(foot, "z", kind="site") for foot in SITES]
    up = [rows.axis("torso", "z"), rows.axis("waist", "z"), *soles]
    ahead = [rows.axis("torso", "x"), *(rows.axis(foot, "x", kind="site") for foot in SITES)]
    head = rows.position("head", kind="site")
    angles, speeds = rows.joint_positions(), rows.joint_velocities()
    model = spec.compile()
    planned = control.planning_model(model, timestep=0.01)
    terms = [
        control.Term("height", head[2] - center[2], control.SmoothAbs(0.1), 2.0, rise),
        *balance.terms(WALK, capture, feet, LEAN),
        control.Term(
            "place",
            control.stack(*(foot[:2] for foot in feet)),
            control.SmoothAbs(0.05),
            0.5,
            (0, -0.1, 0, 0.1),
        ),
        *balance.walking_terms(WALK, up, ahead, feet),
        control.Term("posture", angles, control.Quadratic(), 0.02, model.key("stand").qpos[7:]),
        control.Term("still", speeds, control.Quadratic(), 0.003),
        control.Term("effort", rows.controls(), control.Quadratic(), 0.03),
    ]
    return Task(
        name="humanoid",
        summary="a humanoid rises from a squat and walks in place",
        model=model,
        planned=planned,
        cost=control.Cost(planned, terms),
        start=partial(start, model),
        horizon=40,
        steps_per_plan=2,
        seconds=5.0,
        judge=partial(judge, model),
        view=(-40.0, 10.0),
        feet=FEET,
    )


def rise(times: Array) -> Array:
    """Return the desired height of the head above the feet, m, `(n, 1)`, a smooth rise."""
    share = np.clip(times / RISE, 0, 1)
    return (SQUAT + (HEAD - SQUAT) * share**2 * (3 - 2 * share))[:, None]


def start(model: mujoco.MjModel, rng: np.random.Generator | None) -> mujoco.MjData:
    """Return the squatting humanoid, with random arms if there is a generator."""
    qpos = model.key("squat").qpos.copy()
    if rng is not None:
        qpos[-6:] += rng.uniform(-0.2, 0.2, 6)
    return at_rest(model, qpos)


def judge(model: mujoco.MjModel, result: control.MPCResult) -> Outcome:
    """Return whether the humanoid stands at the end and followed its gait."""
    (head,) = readings(model, result, "position:head")
    lifted = FEET.lifted(model, result)
    tall = head[:, 2] - lifted.min(axis=1)
    measures = {
        "height of the head, last (m)": float(tall[-1]),
        **FEET.measures(result.times, lifted),
    }
    in_step = measures["feet as scheduled (share)"] > 0.8
    return Outcome(bool(tall[-1] > 0.9 * HEAD and in_step), measures)
