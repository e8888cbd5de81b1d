"""A trial: one learner on one robot, its processor time and its returns on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from benchmarks.policies.environment import Environment, Tensor

EPISODES, SEED = 10, 12345  # of the evaluation
FIRST_STAGE = 0.75  # share of the budget in the first of several environments
EVALUATIONS = 10  # in a trial, at equal intervals of processor time

Policy = Callable[[Tensor], Tensor]


@dataclass
class Point:
    """An evaluation.

    Attributes:
      seconds: processor time of learning so far, s.
      actions: number of actions from which the policy has been learned.
      value: mean return.
      length: mean number of actions in an episode.
    """

    seconds: float
    actions: int
    value: float
    length: float


@dataclass
class Trial:
    """The clock and the evaluations of a learner. Evaluations do not count as learning.

    Attributes:
      original: environment of the evaluations.
      budget: processor time of learning, s.
    """

    original: Environment
    budget: float
    points: list[Point] = field(default_factory=list)
    start: float = field(default_factory=time.process_time)

    @property
    def seconds(self) -> float:
        """Processor time of learning so far, s."""
        return time.process_time() - self.start

    @property
    def progress(self) -> float:
        """Share of the budget that has been used."""
        return self.seconds / self.budget

    def stage(self, environments: Sequence[Environment]) -> Environment:
        """Return the first environment, or the last one in the last part of the budget."""
        return environments[0 if self.progress < FIRST_STAGE else -1]

    def watch(self, policy: Policy, actions: int) -> bool:
        """Evaluate the policy if it is time; return whether learning should go on."""
        seconds, begin = self.seconds, time.process_time()
        if seconds >= self.budget * (len(self.points) + 1) / EVALUATIONS:
            self.points.append(Point(seconds, actions, *evaluate(self.original, policy)))
            self.start += time.process_time() - begin
        return seconds < self.budget

    def record(self) -> list[dict[str, Any]]:
        """Return the evaluations for a file."""
        return [asdict(point) for point in self.points]


@torch.no_grad()
def evaluate(environment: Environment, policy: Policy) -> tuple[float, float]:
    """Return the mean return and the mean length of episodes from fixed first states."""
    states = environment.first_states(np.random.default_rng(SEED), EPISODES)
    total, count = 0.0, 0
    for _ in range(environment.length):
        actions = policy(environment.observe(states))
        next_states = environment.step(states, actions)
        total += float(environment.reward(states, actions, next_states).sum())
        count += len(states)
        states = next_states[environment.is_healthy(next_states)]
        if not len(states):
            break
    return total / EPISODES, count / EPISODES
