"""The networks of the actor-critic, in single precision."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from benchmarks.policies.environment import Tensor


def perceptron(sizes: Sequence[int]) -> nn.Sequential:
    """Return a network with layers of these sizes and smooth activations."""
    layers: list[nn.Module] = []
    for n, m in pairwise(sizes):
        linear = nn.Linear(n, m)
        nn.init.orthogonal_(linear.weight, 2**0.5)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ELU()]
    return nn.Sequential(*layers[:-1])


class Actor(nn.Module):
    """A policy: normal distributions of numbers that tanh maps to actions."""

    def __init__(self, observations: int, actions: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.mean = perceptron([observations, *hidden, actions])
        nn.init.orthogonal_(self.mean[-1].weight, 0.1)  # the first actions are small
        self.log_deviation = nn.Parameter(torch.full((actions,), -1.0))

    def forward(self, observations: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return actions, which have the mean of the distribution if there is no noise."""
        raw = self.mean(observations)
        if noise is not None:
            raw = raw + self.log_deviation.exp() * noise
        return raw.tanh().double()


class Normalizer:
    """The mean and the variance of all observations so far."""

    def __init__(self, n: int) -> None:
        self.mean = torch.zeros(n, dtype=torch.float64)
        self.variance = torch.ones(n, dtype=torch.float64)
        self.count = 0

    def update(self, observations: Tensor) -> None:
        """Include a batch of observations."""
        n = len(observations)
        share = n / (self.count + n)
        change = observations.mean(dim=0) - self.mean
        variance = observations.var(dim=0, correction=0) + (1 - share) * change**2
        self.variance = self.variance + share * (variance - self.variance)
        self.mean = self.mean + share * change
        self.count += n

    def __call__(self, observations: Tensor) -> Tensor:
        """Return observations of zero mean and unit variance."""
        return ((observations - self.mean) / (self.variance + 1e-8).sqrt()).float()
