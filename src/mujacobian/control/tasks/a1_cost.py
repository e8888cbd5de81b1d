"""The cost of a walking Unitree A1, which the tasks of this robot share."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array

LEGS = ("FL", "RL", "FR", "RR")  # in the order of the offsets of gaits
FEET = tuple(f"{leg}_foot" for leg in LEGS)  # sensors
JOINTS = tuple(f"{leg}_{joint}" for leg in LEGS for joint in ("abduction", "hip", "knee"))
HEIGHT = 0.25  # height of the trunk above the feet, m
RADIUS = 0.02  # of a foot, m
FALL_TIME = np.sqrt(2 * HEIGHT / 9.81)


def terms(
    model: mujoco.MjModel,
    goal: Callable[[Array], Array],
    heights: control.Rows,
    lift: Callable[[Array], Array],
) -> list[control.Term]:
    """Return terms similar to a quadruped of MuJoCo MPC.

    Args:
      model: model with the sensors of a1.xml.
      goal: desired horizontal position of the head as a function of times, `(n, 2)`.
      heights: heights of the feet, in the order of `LEGS`.
      lift: desired heights as a function of times, `(n, 4)`, NaN for feet that are down.
    """
    feet = [control.sensor(model, name) for name in FEET]
    center = sum(feet[1:], feet[0]) / 4
    trunk, com = control.sensor(model, "trunk"), control.sensor(model, "com")
    capture = com + FALL_TIME * control.sensor(model, "com_velocity")
    angles = control.stack(*(control.sensor(model, f"{joint}_angle") for joint in JOINTS))
    torques = control.stack(*(control.sensor(model, f"{joint}_torque") for joint in JOINTS))
    abduction_more = np.tile((2.0, 1.0, 1.0), 4)
    home = model.key("home").qpos[7:]
    return [
        control.Term("upright", control.sensor(model, "up")[2] - 1, control.SmoothAbs(0.05), 1.0),
        control.Term("height", trunk[2] - center[2] - HEIGHT, control.SmoothAbs(0.04), 1.0),
        control.Term("position", control.sensor(model, "head")[:2], control.L2(0.1), 0.2, goal),
        control.Term("gait", heights, control.SmoothAbs(0.03), 2.0, lift),
        control.Term("balance", capture[:2] - center[:2], control.L2(0.1), 0.2),
        control.Term("effort", 0.02 * torques, control.Quadratic(), 0.03),
        control.Term("posture", abduction_more * (angles - home), control.Quadratic(), 0.02),
    ]
