"""A short-horizon actor-critic, which learns from exact gradients of the simulator.

The method follows Xu et al., Accelerated policy learning with parallel differentiable simulation
(SHAC, arXiv:2204.07137). A window of `horizon` actions is simulated for a batch of episodes. The
actor ascends the gradient of the discounted rewards of the window plus the value of the last
states, through all steps. The critic is fitted to TD(lambda) returns. A copy of it that follows
slowly is the value.

A fall is a jump of the return, and no gradient contains it. With `falls=True`, the critic is also
fitted to zero at fallen states, and its slope across the jump takes the place of the gradient.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils import clip_grad_norm_

from benchmarks.policies.environment import Environment, Episodes, Tensor
from benchmarks.policies.networks import Actor, Normalizer, perceptron
from benchmarks.policies.trial import Trial


@dataclass(frozen=True)
class Settings:
    """Settings of the learner.

    Attributes:
      batch: number of episodes at a time.
      horizon: number of actions in a window.
      discount: weight of a reward relative to the one before it.
      trace: lambda of the returns to which the critic is fitted.
      rate: first learning rate of both networks; it falls linearly to zero.
      follow: share of the difference to the critic by which its copy moves after every window.
      epochs: number of passes of the critic over a window.
      minibatches: number of parts of a window in a pass.
      norm: the largest norm of a gradient; longer ones are scaled.
      limit: the largest norm of the derivative of an episode's objective with respect to a state.
        Longer ones, which belong to chaotic motions, are scaled in the backward pass.
      falls: whether the critic is fitted to zero at fallen states, and its value there counts.
      hidden: sizes of the hidden layers of both networks.
    """

    batch: int = 64
    horizon: int = 32
    discount: float = 0.99
    trace: float = 0.95
    rate: float = 2e-3
    follow: float = 0.2
    epochs: int = 8
    minibatches: int = 4
    norm: float = 1.0
    limit: float = float("inf")
    falls: bool = False
    hidden: tuple[int, ...] = (64, 64)


@dataclass
class Window:
    """Everything that the critic learns from: one row per action, one column per episode.

    Attributes:
      observations: normalized observations before the actions.
      rewards: rewards of the actions.
      values: values after the actions, zero where an episode fell.
      ends: whether the return ends with this value.
      fallen: normalized observations of fallen states to which the critic is fitted.
    """

    observations: Tensor
    rewards: Tensor
    values: Tensor
    ends: Tensor
    fallen: Tensor

    def returns(self, discount: float, trace: float) -> Tensor:
        """Return the TD(lambda) returns, by the recursion from the last action to the first."""
        goals = torch.empty_like(self.rewards)
        later = self.values[-1]
        for t in reversed(range(len(goals))):
            mixed = torch.lerp(self.values[t], later, trace)
            later = self.rewards[t] + discount * torch.where(self.ends[t], self.values[t], mixed)
            goals[t] = later
        return goals


class Learner:
    """The actor, the critic and the episodes that they learn from."""

    def __init__(self, environment: Environment, settings: Settings, seed: int) -> None:
        torch.manual_seed(seed)
        self.settings = settings
        n, hidden = environment.observations, settings.hidden
        self.actor = Actor(n, environment.model.nu, hidden)
        self.critic = perceptron([n, *hidden, 1])
        self.target = copy.deepcopy(self.critic)
        self.normalizer = Normalizer(n)
        self.optimizers = [
            torch.optim.Adam(network.parameters(), settings.rate, betas=(0.7, 0.95))
            for network in (self.actor, self.critic)
        ]
        self.episodes = Episodes(environment, settings.batch, seed)

    @property
    def environment(self) -> Environment:
        """The environment of the episodes; another one may have other contacts."""
        return self.episodes.environment

    @environment.setter
    def environment(self, environment: Environment) -> None:
        self.episodes.environment = environment

    def policy(self, observations: Tensor) -> Tensor:
        """Return the actions of the policy without noise."""
        return self.actor(self.normalizer(observations))

    def update(self, progress: float = 0.0) -> float:
        """Learn from a window; return its objective, a mean per action.

        Args:
          progress: share of the learning that is over, which lowers the learning rates.
        """
        for optimizer in self.optimizers:
            optimizer.param_groups[0]["lr"] = self.settings.rate * max(1 - progress, 0.01)
        objective, window, seen = self.simulate()
        optimizer = self.optimizers[0]
        optimizer.zero_grad()
        (-objective).backward()
        norm = clip_grad_norm_(self.actor.parameters(), self.settings.norm)
        if norm.isfinite():
            optimizer.step()
        self.episodes.states = self.episodes.states.detach()
        self.fit(window)
        self.normalizer.update(seen)
        return objective.item()

    def simulate(self) -> tuple[Tensor, Window, Tensor]:
        """Return the objective of a window, the window and all of its raw observations."""
        settings, environment, episodes = self.settings, self.environment, self.episodes
        total = torch.zeros(settings.batch, dtype=torch.float64)
        weight = torch.ones_like(total)
        rows, seen, fallen = [], [], []
        for t in range(settings.horizon):
            states, raw = episodes.states, environment.observe(episodes.states)
            observations = self.normalizer(raw)
            noise = torch.randn(settings.batch, environment.model.nu)
            actions = self.actor(observations, noise)
            next_states = environment.step(states, actions)
            if next_states.requires_grad:
                next_states.register_hook(self.limited)
            rewards = environment.reward(states, actions, next_states)
            fell, timed_out = episodes.advance(next_states)
            after = self.normalizer(environment.observe(next_states))
            values = self.value(after)
            known = values.where(~fell, 0.0)
            gains = values if settings.falls else known
            fallen.append(after[fell & settings.falls].detach())

            # the value enters where the window or the episode ends
            ends = fell | timed_out | (t == settings.horizon - 1)
            total = total + weight * (rewards + settings.discount * gains * ends)
            weight = torch.where(ends, 1.0, settings.discount * weight)
            seen.append(raw.detach())
            rows.append([x.detach() for x in (observations, rewards, known, ends)])
        columns = [torch.stack(column) for column in zip(*rows, strict=True)]
        window = Window(*columns, torch.cat(fallen))
        return total.mean() / settings.horizon, window, torch.cat(seen)

    def limited(self, d_states: Tensor) -> Tensor:
        """Return the derivatives of the objective with respect to states, at most of the limit."""
        limit = self.settings.limit / (self.settings.batch * self.settings.horizon)
        norms = d_states.norm(dim=1, keepdim=True)
        return d_states * (limit / norms).clamp(max=1)

    def value(self, observations: Tensor) -> Tensor:
        """Return the values of observations: discounted sums, while networks return means."""
        means = self.target(observations).squeeze(-1)
        return means.double() / (1 - self.settings.discount)

    def fit(self, window: Window) -> None:
        """Fit the critic to the returns of a window, and move its copy."""
        settings, optimizer = self.settings, self.optimizers[1]
        goals = (1 - settings.discount) * window.returns(settings.discount, settings.trace)
        x = torch.cat([window.observations.flatten(0, 1), window.fallen])
        y = torch.cat([goals.flatten().float(), torch.zeros(len(window.fallen))])
        for _ in range(settings.epochs):
            for part in torch.randperm(len(x)).chunk(settings.minibatches):
                loss = (self.critic(x[part]).squeeze(-1) - y[part]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                clip_grad_norm_(self.critic.parameters(), settings.norm)
                optimizer.step()
        with torch.no_grad():
            pairs = zip(self.target.parameters(), self.critic.parameters(), strict=True)
            for follower, parameter in pairs:
                follower.lerp_(parameter, settings.follow)


def learn(
    environments: Sequence[Environment], trial: Trial, seed: int, settings: Settings
) -> Learner:
    """Return a learner after the budget of the trial, in the stages of its environments."""
    learner = Learner(environments[0], settings, seed)
    actions = 0
    while trial.watch(learner.policy, actions):
        learner.environment = trial.stage(environments)
        learner.update(trial.progress)
        actions += settings.batch * settings.horizon
    return learner
