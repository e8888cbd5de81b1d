"""Attempts to solve a problem from several starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mujacobian._arguments import Array
from mujacobian.errors import MujacobianError, UnsupportedFeatureError
from mujacobian.sysid.lockstep import Lockstep
from mujacobian.sysid.problem import Evaluation, Problem, Run
from mujacobian.sysid.simulations import Simulations
from mujacobian.sysid.solver import Solution, solve
from mujacobian.sysid.starts import Start


@dataclass(frozen=True)
class Attempt:
    """A solution from one start, its problem, and the evaluation of the problem there."""

    problem: Problem
    solution: Solution
    optimum: Evaluation


def attempt_all(
    problems: Sequence[Problem],
    starts: Sequence[Array],
    bounds: tuple[Array, Array],
    max_evaluations: int,
) -> list[Attempt | Exception]:
    """Return the attempt from each start, or its error; the error of a single start is raised.

    The problems are solved one after the other, each from the solution of the one before.
    """
    attempt = partial(_attempt, problems, bounds, max_evaluations)
    if len(starts) == 1:
        return [attempt(starts[0], Simulations.outcomes)]
    lockstep = Lockstep[Attempt]()
    solvers: list[Callable[[], Attempt]] = [
        partial(attempt, start, lockstep.outcomes) for start in starts
    ]
    return lockstep.run(solvers)


def _attempt(
    problems: Sequence[Problem],
    bounds: tuple[Array, Array],
    max_evaluations: int,
    values: Array,
    run: Run,
) -> Attempt:
    """Return the attempt from one start; raise if the simulation diverges there."""
    before = None
    for each in problems:
        problem = each.again(run)
        if before is not None:
            problem.follow(before)
        solution = solve(problem, values, bounds, max_evaluations)
        values, before = solution.values, problem
    optimum = problem.evaluate(values)
    problem.run = Simulations.outcomes
    return Attempt(problem, solution, optimum)


def best(attempts: Sequence[Attempt | Exception]) -> Attempt:
    """Return the attempt with the least cost; raise if a start has failed for good, or all have."""
    made = [each for each in attempts if isinstance(each, Attempt)]
    for each in attempts:
        diverges = isinstance(each, MujacobianError) and not isinstance(
            each, UnsupportedFeatureError
        )
        if isinstance(each, Exception) and not (made and diverges):
            raise each
    return min(made, key=lambda each: each.optimum.squares)


def record(seed: tuple[int, int] | None, initial: Array, attempt: Attempt | Exception) -> Start:
    """Return the record of a start."""
    if isinstance(attempt, Exception):
        return Start(seed, initial, np.full(len(initial), np.nan), np.inf, False, str(attempt))
    found, cost = attempt.solution, attempt.optimum.squares / 2
    return Start(seed, initial, found.values, cost, found.converged, found.message)
