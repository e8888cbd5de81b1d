"""The Unitree A1 trots toward a moving goal."""

from __future__ import annotations

from functools import partial

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.tasks.gait import TROT, Feet
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.task import Outcome, Task, at_rest, load_model

LEGS = ("FL", "RL", "FR", "RR")  # in the order of the gait's offsets
JOINTS = tuple(f"{leg}_{joint}" for leg in LEGS for joint in ("abduction", "hip", "knee"))
HEIGHT = 0.25  # height of the trunk above the feet, m
SPEED = 0.4  # speed of the goal, m/s; it starts at the head
FALL_TIME = np.sqrt(2 * HEIGHT / 9.81)
FEET = Feet(TROT, tuple(f"{leg}_foot" for leg in LEGS), ground=0.02)


def build() -> Task:
    """Return the task, with residuals, norms and weights similar to a quadruped of MuJoCo MPC."""
    model = load_model("a1")
    planned = control.planning_model(model, timestep=0.01)
    home = model.key("home")

    # residuals from sensors
    feet = [control.sensor(planned, name) for name in FEET.sensors]
    center = sum(feet[1:], feet[0]) / 4
    trunk, com = control.sensor(planned, "trunk"), control.sensor(planned, "com")
    capture = com + FALL_TIME * control.sensor(planned, "com_velocity")
    angles = control.stack(*(control.sensor(planned, f"{joint}_angle") for joint in JOINTS))
    torques = control.stack(*(control.sensor(planned, f"{joint}_torque") for joint in JOINTS))
    abduction_more = np.tile((2.0, 1.0, 1.0), 4)

    terms = [
        control.Term("upright", control.sensor(planned, "up")[2] - 1, control.SmoothAbs(0.05), 1.0),
        control.Term("height", trunk[2] - center[2] - HEIGHT, control.SmoothAbs(0.04), 1.0),
        control.Term("position", control.sensor(planned, "head")[:2], control.L2(0.1), 0.2, goal),
        control.Term(
            "gait",
            control.stack(*(foot[2] for foot in feet)),
            control.SmoothAbs(0.03),
            2.0,
            partial(TROT.height, ground=FEET.ground),
        ),
        control.Term("balance", capture[:2] - center[:2], control.L2(0.1), 0.2),
        control.Term("effort", 0.02 * torques, control.Quadratic(), 0.03),
        control.Term(
            "posture", abduction_more * (angles - home.qpos[7:]), control.Quadratic(), 0.02
        ),
    ]
    return Task(
        name="a1_trot",
        summary="the Unitree A1 trots toward a moving goal",
        model=model,
        planned=planned,
        cost=control.Cost(planned, terms),
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
