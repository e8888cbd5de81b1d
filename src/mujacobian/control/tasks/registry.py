"""Registry of the tasks by name."""

from __future__ import annotations

from mujacobian.control.tasks import (
    a1_trot,
    arm,
    cartpole,
    g1_walk,
    hand,
    humanoid,
    leap_turn,
    push_box,
    quadruped_stairs,
)
from mujacobian.control.tasks.task import Task
from mujacobian.errors import MujacobianError

TASKS = {
    "a1_trot": a1_trot.build,
    "arm": arm.build,
    "cartpole": cartpole.build,
    "g1_walk": g1_walk.build,
    "hand": hand.build,
    "humanoid": humanoid.build,
    "leap_turn": leap_turn.build,
    "push_box": push_box.build,
    "quadruped_stairs": quadruped_stairs.build,
}


def names() -> list[str]:
    """Return the names of all tasks."""
    return list(TASKS)


def load(name: str) -> Task:
    """Return the task with this name.

    Example:
      >>> from mujacobian.control import tasks
      >>> task = tasks.load("cartpole")
      >>> planner = task.planner(derivatives="analytic")
    """
    if name not in TASKS:
        raise MujacobianError(f'unknown task "{name}": use one of {", ".join(TASKS)}')
    return TASKS[name]()
