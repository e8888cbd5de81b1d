"""The Unitree A1 climbs stairs."""

from __future__ import annotations

from functools import partial

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.gait import Gait
from mujacobian.control.tasks import a1_cost, a1_trot
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.task import Outcome, Task, load_spec

RISE, DEPTH, STEPS = 0.05, 0.25, 5  # of the stairs: height and depth of a step, m, and number
FIRST = 0.5  # position of the first edge, m
TOP = 1.0  # length of the landing, m
SPEED = 0.3  # speed of the goal, m/s; it starts at the head
EARLY = 0.06  # distance before an edge at which a foot has the height of the next step, m
BLEND = 0.03  # width of the transition between two steps, m
EDGES = FIRST + DEPTH * np.arange(STEPS)
CLIMB = Gait(offsets=(0.0, 0.5, 0.5, 0.0), duty=0.55, cadence=2.0, amplitude=0.05)


def build() -> Task:
    """Return the task; the heights of swinging feet are relative to the step below them."""
    model = stairs().compile()
    planned = control.planning_model(model, timestep=0.01)
    feet = [control.sensor(planned, name) for name in a1_cost.FEET]
    heights = control.stack(*(foot[2] - ground(foot[0]) for foot in feet))
    lift = partial(CLIMB.height, ground=a1_cost.RADIUS)
    return Task(
        name="quadruped_stairs",
        summary="the Unitree A1 climbs stairs of 5 cm",
        model=model,
        planned=planned,
        cost=control.Cost(planned, a1_cost.terms(planned, goal, heights, lift)),
        start=partial(a1_trot.start, model),
        horizon=36,
        steps_per_plan=5,
        seconds=7.0,
        judge=partial(judge, model),
        view=(-85.0, 10.0),
    )


def stairs() -> mujoco.MjSpec:
    """Return the specification of the robot in front of stairs of boxes."""
    spec = load_spec("a1")
    end = EDGES[-1] + TOP
    for k, edge in enumerate(EDGES):
        spec.worldbody.add_geom(
            name=f"step_{k + 1}",
            type=mujoco.mjtGeom.mjGEOM_BOX,
            pos=[(edge + end) / 2, 0, (k + 0.5) * RISE],
            size=[(end - edge) / 2, 0.5, RISE / 2],
            contype=1,
            conaffinity=0,
            condim=3,
            material="tiles",
            group=0,
        )
    return spec


def ground(x: control.Rows) -> control.Rows:
    """Return the height of the stairs below points, a little early and with smooth edges."""
    steps = [0.5 + 0.5 * np.tanh((x - (edge - EARLY)) / BLEND) for edge in EDGES]
    height: control.Rows = RISE * sum(steps[1:], steps[0])
    return height


def goal(times: Array) -> Array:
    """Return the desired horizontal position of the head, `(n, 2)`; it stops on the landing."""
    x = np.minimum(0.3 + SPEED * times, EDGES[-1] + 0.75)
    return np.stack([x, np.zeros_like(times)], axis=1)


def judge(model: mujoco.MjModel, result: control.MPCResult) -> Outcome:
    """Return whether the robot stayed upright and all feet are on the landing."""
    up, head = readings(model, result, "up", "head")
    feet = np.stack(readings(model, result, *a1_cost.FEET), axis=1)[-1]
    heights = feet[:, 2] - a1_cost.RADIUS
    measures = {
        "lowest foot, last (m)": float(heights.min()),
        "highest foot, last (m)": float(heights.max()),
        "least upright (cosine)": float(up[:, 2].min()),
        "last distance to the goal (m)": float(
            np.linalg.norm(head[-1, :2] - goal(result.times[-1:])[0])
        ),
    }
    arrived = heights.min() > (STEPS - 0.5) * RISE and feet[:, 0].min() > EDGES[-1]
    return Outcome(bool(arrived and up[:, 2].min() > 0.7), measures)
