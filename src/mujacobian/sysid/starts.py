"""Starts: the initial values of an identification, and the optimum that each of them leads to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mujacobian._arguments import Array
from mujacobian.errors import ArgumentError
from mujacobian.sysid.prior import Prior
from mujacobian.sysid.unknowns import Unknowns

# Two starts agree if their costs differ by less than this fraction of the variance.
AGREEMENT = 0.1


@dataclass(frozen=True)
class Start:
    """Initial values, and the optimum that the optimizer found from them.

    Attributes:
      seed: seed of `numpy.random.default_rng` that the initial values were drawn with, a pair of
        the argument `seed` and the index of the start; None for the given start.
      initial: initial values.
      values: values at the optimum; NaN if the simulation diverges at the initial values.
      cost: cost at the optimum, or inf.
      converged: whether the optimizer converged.
      message: message of the optimizer, or the error.
    """

    seed: tuple[int, int] | None
    initial: Array
    values: Array
    cost: float
    converged: bool
    message: str


def draw(
    unknowns: Unknowns, bounds: tuple[Array, Array], prior: Prior, seed: tuple[int, int]
) -> Array:
    """Return random initial values: from the priors, or else uniform between the bounds."""
    rng, (lower, upper) = np.random.default_rng(seed), bounds
    values = np.empty(len(unknowns))
    for k, name in enumerate(unknowns.names):
        if k in prior.given:
            values[k] = np.clip(rng.normal(*prior.given[k]), lower[k], upper[k])
        elif np.isfinite([lower[k], upper[k]]).all():
            values[k] = rng.uniform(lower[k], upper[k])
        else:
            raise ArgumentError(
                f"starts: {name} has neither a prior nor finite bounds to draw initial values from:"
                " use bounds= or priors="
            )
    return values


def agreeing(starts: tuple[Start, ...], variance: float) -> int:
    """Return the number of starts that reach the least cost."""
    least = min(start.cost for start in starts)
    return sum(start.cost == least or start.cost - least < AGREEMENT * variance for start in starts)


def describe_starts(starts: tuple[Start, ...], variance: float) -> str:
    """Return a sentence about the best start and the costs of the others."""
    costs = [start.cost for start in starts]
    best = int(np.argmin(costs))
    origin = starts[best].seed
    name = "the given one" if origin is None else f"number {best} (seed {origin})"
    failed = int(np.isinf(costs).sum())
    text = (
        f"best of {len(starts)} starts: {name}; {agreeing(starts, variance)} of them reach its"
        f" cost, the largest cost is {max(cost for cost in costs if np.isfinite(cost)):.6g}"
    )
    return f"{text}; {failed} diverged" if failed else text


def judge_starts(starts: tuple[Start, ...], variance: float) -> str | None:
    """Return a warning if only one of several starts reaches the least cost, or None."""
    if len(starts) == 1 or agreeing(starts, variance) > 1:
        return None
    return (
        f"only one of {len(starts)} starts reaches the least cost, so that another start may reach"
        " a lower one: use more starts=, narrower bounds=, or window= for long logs"
    )
