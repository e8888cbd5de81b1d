"""The Unitree G1 walks after a goal."""

from __future__ import annotations

from functools import partial

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.gait import Gait
from mujacobian.control.progress import RunCallback
from mujacobian.control.tasks import balance
from mujacobian.control.tasks.gait import Feet
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.task import Outcome, Task, at_rest, load_spec

HEIGHT = 0.74  # of the pelvis above the feet, m
SPEED, BEGIN, FAR = 0.4, 0.5, 2.3  # speed of the goal, m/s, its beginning, s, and its way, m
PUSH = 0.5  # change of the velocity of the robot, m/s
STANCE = 0.11  # half of the distance between the feet, m
FALL_TIME = np.sqrt(0.65 / 9.81)
LEAN = 0.6  # weight of the supporting foot in the point of balance on one foot
WALK = Gait(offsets=(0.25, 0.75), duty=0.6, cadence=1.25, amplitude=0.06, start=BEGIN)
SITES = ("right_foot", "left_foot")
FEET = Feet(WALK, tuple(f"position:{site}" for site in SITES), ground=0.0, down=0.015)


def build() -> Task:
    """Return the task."""
    spec = load_spec("g1")
    rows = control.residuals(spec)
    feet = [rows.position(foot, kind="site") for foot in SITES]
    center = (feet[0] + feet[1]) / 2
    pelvis = rows.position("pelvis", kind="body")
    velocity = rows.center_of_mass_velocity("pelvis")
    capture = rows.center_of_mass("pelvis") + FALL_TIME * velocity
    soles = [rows.axis(foot, "z", kind="site") for foot in SITES]
    up = [rows.axis("torso", "z", kind="body"), rows.axis("pelvis", "z", kind="body"), *soles]
    ahead = [rows.axis(body, "x", kind="body") for body in ("torso", "pelvis", *SITES)]
    angles, speeds = rows.joint_positions(), rows.joint_velocities()
    model = spec.compile()
    planned = control.planning_model(model, timestep=0.01)
    across = [foot[1] - pelvis[1] for foot in feet]
    terms = [
        control.Term("height", pelvis[2] - center[2] - HEIGHT, control.SmoothAbs(0.1), 4.0),
        control.Term("position", pelvis[:2], control.L2(0.1), 1.0, goal),
        control.Term("velocity", velocity[:2], control.Quadratic(), 1.0, pace),
        *balance.terms(WALK, capture, feet, LEAN),
        control.Term(
            "stance", control.stack(*across), control.SmoothAbs(0.05), 1.0, (-STANCE, STANCE)
        ),
        *balance.walking_terms(WALK, up, ahead, feet),
        control.Term("posture", angles, control.Quadratic(), 0.02, model.key("stand").qpos[7:]),
        control.Term("still", speeds, control.Quadratic(), 0.001),
        control.Term("effort", rows.controls(), control.Quadratic(), 0.03),
    ]
    return Task(
        name="g1_walk",
        summary="the Unitree G1 walks after a goal",
        model=model,
        planned=planned,
        cost=control.Cost(planned, terms),
        start=partial(start, model),
        horizon=40,
        steps_per_plan=2,
        seconds=7.0,
        judge=partial(judge, model),
        view=(-70.0, 10.0),
        feet=FEET,
        disturb=disturb,
    )


def goal(times: Array) -> Array:
    """Return the desired horizontal position of the pelvis, `(n, 2)`."""
    x = np.clip(SPEED * (times - BEGIN), 0, FAR)
    return np.stack([x, np.zeros_like(times)], axis=1)


def pace(times: Array) -> Array:
    """Return the desired horizontal velocity of the center of mass, m/s, `(n, 2)`."""
    moves = (times > BEGIN) & (times < BEGIN + FAR / SPEED)
    return np.stack([SPEED * moves, np.zeros_like(times)], axis=1)


def start(model: mujoco.MjModel, rng: np.random.Generator | None) -> mujoco.MjData:
    """Return the standing robot, with random joint angles if there is a generator."""
    qpos = model.key("stand").qpos.copy()
    if rng is not None:
        qpos[7:] += rng.uniform(-0.05, 0.05, model.nu)
    return at_rest(model, qpos)


def disturb(rng: np.random.Generator | None) -> RunCallback:
    """Return a push to the side, or at a random time in a random direction with a generator."""
    time, direction = 2.0, np.pi / 2
    if rng is not None:
        time, direction = rng.uniform(1.5, 3.0), rng.uniform(0, 2 * np.pi)
    change = PUSH * np.array([np.cos(direction), np.sin(direction)])
    pushed = False

    def push(interval: control.Interval) -> None:
        nonlocal pushed
        if not pushed and interval.data.time >= time:
            interval.data.qvel[:2] += change  # of the whole robot
            pushed = True

    return push


def judge(model: mujoco.MjModel, result: control.MPCResult) -> Outcome:
    """Return whether the robot stayed upright and walked as far as the goal."""
    (pelvis,) = readings(model, result, "position:pelvis")
    lifted = FEET.lifted(model, result)
    walked = pelvis[-1, 0] - pelvis[0, 0]
    measures = {
        "walked (m)": float(walked),
        "lowest pelvis (m)": float(pelvis[:, 2].min()),
        "off the line, largest (m)": float(np.abs(pelvis[:, 1]).max()),
        **FEET.measures(result.times, lifted),
    }
    return Outcome(bool(walked > 2 and pelvis[:, 2].min() > 0.55), measures)
