"""An environment: a model with observations, a smooth reward and a rule that ends episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import mujoco
import numpy as np
import torch

import mujacobian.torch
from mujacobian import control

Tensor = torch.Tensor


@dataclass(frozen=True)
class Environment:
    """A task for a policy. All functions work on batches, in double precision.

    Attributes:
      model: a model whose controls are the actions of the policy, between -1 and 1.
      substeps: number of steps of the model per action.
      observe: observations of states (qpos, qvel, act).
      reward: rewards of (states, actions, next states), differentiable in all of them.
      is_healthy: whether episodes go on in these states.
      start: random first states, from a generator and their number.
      length: number of actions in an episode.
    """

    model: mujoco.MjModel
    substeps: int
    observe: Callable[[Tensor], Tensor]
    reward: Callable[[Tensor, Tensor, Tensor], Tensor]
    is_healthy: Callable[[Tensor], Tensor]
    start: Callable[[np.random.Generator, int], np.ndarray]
    length: int = 1000

    @property
    def observations(self) -> int:
        """Number of entries of an observation."""
        return self.observe(self.first_states(np.random.default_rng(0), 1)).shape[-1]

    def first_states(self, rng: np.random.Generator, n: int) -> Tensor:
        """Return `n` random first states."""
        return torch.from_numpy(self.start(rng, n))

    def step(self, states: Tensor, actions: Tensor) -> Tensor:
        """Return the states after these actions, with exact derivatives."""
        step = mujacobian.torch.step
        return step(self.model, states, actions, substeps=self.substeps, threads=1)[0]

    def simplified(self, timestep: float, width: float) -> Environment:
        """Return the environment with a model that is cheaper and smoother, for learning.

        The time between two actions remains.

        Args:
          timestep: time step of the model, s, with the integrator `implicitfast`.
          width: `width=` of `mujacobian.control.planning_model`, m. If it is 0, contacts and limits
            are those of the model, whose forces jump.
        """
        model = control.planning_model(
            self.model,
            timestep=timestep,
            integrator="implicitfast",
            differentiable=width > 0,
            width=width,
        )
        substeps = round(self.substeps * self.model.opt.timestep / timestep)
        return replace(self, model=model, substeps=substeps)


class Episodes:
    """A batch of episodes. An episode that ends is followed by a new one.

    Attributes:
      states: the current states. They may depend on actions, whose gradients they pass on.
    """

    def __init__(self, environment: Environment, n: int, seed: int) -> None:
        self.environment = environment
        self.rng = np.random.default_rng(seed)
        self.states = environment.first_states(self.rng, n)
        # the ends of the first episodes are spread over time
        self.ages = torch.from_numpy(self.rng.integers(0, environment.length, n))

    def advance(self, next_states: Tensor) -> tuple[Tensor, Tensor]:
        """Continue from the next states; return which episodes fell and which were too long."""
        self.ages += 1
        fell = ~self.environment.is_healthy(next_states)
        timed_out = (self.ages >= self.environment.length) & ~fell
        ended = fell | timed_out
        self.ages[ended] = 0
        fresh = torch.zeros_like(next_states)
        fresh[ended] = self.environment.first_states(self.rng, int(ended.sum()))
        self.states = torch.where(ended[:, None], fresh, next_states)
        return fell, timed_out
