"""A cart swings its pole up and balances it."""

from __future__ import annotations

from functools import partial

import mujoco
import numpy as np

from mujacobian import control
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.task import Outcome, Task, at_rest, load_model

HANGING = 3.1  # rad; at pi, pushing left and pushing right would be equally good


def build() -> Task:
    """Return the task."""
    model = load_model("cartpole")
    planned = control.planning_model(model, timestep=0.02)
    speeds = control.stack(control.sensor(planned, "speed"), control.sensor(planned, "turn"))
    terms = [
        control.Term("upright", control.sensor(planned, "angle"), control.SmoothAbs(0.2), 1.0),
        control.Term("centered", control.sensor(planned, "place"), control.SmoothAbs(0.2), 0.1),
        control.Term("still", speeds, control.Quadratic(), 0.01),
        control.Term("effort", control.controls(planned), control.Quadratic(), 0.02),
    ]
    return Task(
        name="cartpole",
        summary="a cart swings its pole up and balances it",
        model=model,
        planned=planned,
        cost=control.Cost(planned, terms),
        start=partial(start, model),
        horizon=60,
        steps_per_plan=2,
        seconds=5.0,
        judge=partial(judge, model),
        view=(-90.0, 0.0),
    )


def start(model: mujoco.MjModel, rng: np.random.Generator | None) -> mujoco.MjData:
    """Return the pole hanging at rest, or in random motion if there is a generator."""
    if rng is None:
        return at_rest(model, np.array([0, HANGING]))
    data = at_rest(model, rng.uniform((-1, -np.pi), (1, np.pi)))
    data.qvel[:] = rng.uniform(-1, 1, model.nv)
    return data


def judge(model: mujoco.MjModel, result: control.MPCResult) -> Outcome:
    """Return whether the pole stands at the end, and since when."""
    up, place, turn = readings(model, result, "up", "place", "turn")
    standing = (up[:, 2] > 0.98) & (np.abs(turn[:, 0]) < 0.5)
    fallen = np.flatnonzero(~standing)
    since = result.times[fallen[-1]] if fallen.size else result.times[0]
    measures = {
        "last height of the tip (1 when up)": float(up[-1, 2]),
        "last place of the cart (m)": float(place[-1, 0]),
        "up since (s)": float(since),
    }
    return Outcome(bool(standing[-1]), measures)
