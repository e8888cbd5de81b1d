"""Attempts: several ways to begin a plan."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from mujacobian._arguments import Array
from mujacobian.control.descent import Descent, Progress
from mujacobian.control.passes import DivergedError, Passes
from mujacobian.control.plan import Policy
from mujacobian.control.settings import Settings
from mujacobian.control.trajectory import Iterate

FEW = 10  # iterations, up to which there is only one attempt
# iterations of an attempt, after which only the best one continues: from states with gaps, which
# have to close first, and from a simulation
TRIAL, TRIAL_OF_SIMULATION = 40, 20
# of the initial regularization: from a simulation, and from states with gaps
FACTOR, FACTOR_OF_GAPS = 1e-2, 1e-6


@dataclass
class Attempt:
    """A way to begin a plan: its iterations, and the trajectory as far as it has been improved.

    `number` is that of `Iteration.attempt`. `failure` is the error of the simulation of the initial
    controls, if it diverges, so that this attempt is the only one.
    """

    descent: Descent
    progress: Progress
    number: int = 0
    trial: int = TRIAL
    failure: DivergedError | None = None

    def run(self, iterations: int) -> None:
        """Continue with a number of iterations, unless there is nothing left to improve."""
        if self.progress.status == "iterations":
            self.descent.run(self.progress, iterations)

    def cost(self, passes: Passes) -> float:
        """Return the cost of the trajectory without gaps, infinite if it diverges."""
        return passes.close(self.progress.iterate, self.progress.gains).cost


def make_attempts(
    passes: Passes, settings: Settings, first: Policy, states: Array | None, iterations: int
) -> list[Attempt]:
    """Return the ways in which `ILQR.solve` begins, with its initial controls and states."""
    if states is not None:
        return [_attempt(passes, settings, _shoot(passes, first, states))]
    passes.keeps = settings.hessian == "exact"
    try:
        simulated = Iterate(*passes.follow(first, -1, np.inf))
    except DivergedError as failure:
        # single steps from the initial state may be finite nevertheless
        attempts = _hold(passes, settings, first)
        if not attempts:
            raise
        attempts[0].failure = failure
        return attempts
    attempts = [begin_attempt(passes, settings, simulated)]
    if settings.derivatives == "analytic" and iterations > FEW:
        attempts += _hold(passes, settings, first)
    return attempts


def _hold(passes: Passes, settings: Settings, first: Policy) -> list[Attempt]:
    """Return the attempt from the initial state at all knots, none if a step diverges."""
    held = np.tile(first.states[:1], (passes.horizon, 1))
    with suppress(DivergedError):
        shot = _shoot(passes, first, held)
        return [_attempt(passes, settings, shot, FACTOR_OF_GAPS, number=1)]
    return []


def _shoot(passes: Passes, policy: Policy, states: Array) -> Iterate:
    """Return the knots from these states with the controls of a policy without feedback."""
    controls = policy.controls.clip(policy.lower, policy.upper)
    states = np.concatenate([policy.states[:1], states[1:]])
    return passes.shoot(states, np.concatenate([controls, controls[-1:]]))


def begin_attempt(passes: Passes, settings: Settings, simulated: Iterate) -> Attempt:
    """Return the iterations from a simulation, which has just been differentiated."""
    attempt = _attempt(passes, settings, simulated, FACTOR, is_new=False)
    # with constraints, the first trajectory that satisfies them takes longer
    attempt.trial = TRIAL if passes.cost.constraints else TRIAL_OF_SIMULATION
    return attempt


def _attempt(
    passes: Passes,
    settings: Settings,
    first: Iterate,
    factor: float = 1.0,
    *,
    is_new: bool = True,
    number: int = 0,
) -> Attempt:
    """Return the iterations from a trajectory with the regularization times a factor."""
    gains = np.zeros((passes.horizon - 1, passes.model.nu, passes.cost.nx))
    descent = Descent(passes, replace(settings, mu=factor * settings.mu))
    return Attempt(descent, Progress(first, gains, is_new), number)
