"""Proximal policy optimization of stable-baselines3, which learns from the same environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from benchmarks.policies.environment import Environment, Episodes, Tensor
from benchmarks.policies.trial import Trial

SETTINGS: dict[str, Any] = {"n_steps": 128, "batch_size": 512, "n_epochs": 5, "gamma": 0.99}
BATCH = 32  # number of episodes at a time
RATE = 5e-4  # first learning rate, which falls linearly to zero
NETWORKS = {"net_arch": [64, 64], "log_std_init": -0.5}


class Batch(VecEnv):
    """Episodes as a vectorized environment, which simulates them in one call."""

    def __init__(self, environment: Environment, n: int, seed: int) -> None:
        bound = np.full(environment.observations, np.inf)
        one = np.ones(environment.model.nu, dtype=np.float32)
        super().__init__(n, gymnasium.spaces.Box(-bound, bound), gymnasium.spaces.Box(-one, one))
        self.episodes = Episodes(environment, n, seed)
        self.actions = torch.zeros(n, environment.model.nu, dtype=torch.float64)

    @property
    def environment(self) -> Environment:
        """The environment of the episodes."""
        return self.episodes.environment

    def reset(self) -> np.ndarray:
        """Return the first observations."""
        return self.environment.observe(self.episodes.states).numpy()

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions."""
        self.actions = torch.from_numpy(actions.astype(float))

    @torch.no_grad()
    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Return observations, rewards, which episodes ended, and their last observations."""
        states = self.episodes.states
        next_states = self.environment.step(states, self.actions)
        rewards = self.environment.reward(states, self.actions, next_states)
        fell, timed_out = self.episodes.advance(next_states)
        infos: list[dict[str, Any]] = [{} for _ in fell]
        for k in torch.nonzero(fell | timed_out).flatten().tolist():
            last = self.environment.observe(next_states[k : k + 1])[0].numpy()
            infos[k] = {"terminal_observation": last, "TimeLimit.truncated": bool(timed_out[k])}
        observations = self.environment.observe(self.episodes.states)
        return observations.numpy(), rewards.numpy(), (fell | timed_out).numpy(), infos

    def close(self) -> None:
        """Do nothing."""

    def get_attr(self, attr_name: str, indices: object = None) -> list[Any]:
        """Return nothing for every episode."""
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: object, indices: object = None) -> None:
        """Do nothing."""

    def env_method(
        self, method_name: str, *arguments: object, indices: object = None, **options: object
    ) -> list[Any]:
        """Return nothing for every episode."""
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type, indices: object = None) -> list[bool]:
        """Return that no episode is wrapped."""
        return [False] * self.num_envs


class Watch(BaseCallback):
    """Shows the policy to a trial between rollouts, and stops at the end of the budget."""

    def __init__(self, environments: Sequence[Environment], trial: Trial, seed: int) -> None:
        super().__init__()
        self.environments, self.trial = environments, trial
        self.batch = Batch(environments[0], BATCH, seed)
        self.scaled = VecNormalize(self.batch, gamma=SETTINGS["gamma"])
        self.goes_on = True

    def policy(self, observations: Tensor) -> Tensor:
        """Return the actions of the policy without noise."""
        scaled = self.scaled.normalize_obs(observations.numpy())
        actions, _ = self.model.predict(scaled, deterministic=True)
        return torch.from_numpy(actions.astype(float))

    def _on_rollout_start(self) -> None:
        self.goes_on = self.trial.watch(self.policy, self.num_timesteps)
        self.batch.episodes.environment = self.trial.stage(self.environments)

    def _on_step(self) -> bool:
        return self.goes_on


def learn(environments: Sequence[Environment], trial: Trial, seed: int) -> None:
    """Learn for the budget of the trial, in the stages of its environments."""
    watch = Watch(environments, trial, seed)
    agent = PPO(
        "MlpPolicy",
        watch.scaled,
        learning_rate=lambda _: RATE * max(1 - trial.progress, 0.01),
        policy_kwargs=NETWORKS,
        device="cpu",
        seed=seed,
        **SETTINGS,
    )
    agent.learn(10**12, callback=watch)
