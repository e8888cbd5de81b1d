"""The race of the attempts of a plan, from which the best one remains."""

from __future__ import annotations

from mujacobian.control.attempt import TRIAL, Attempt
from mujacobian.control.homotopy import Homotopy
from mujacobian.control.passes import Passes

DETOUR = 30  # iterations that remain less for the best attempt if there is a detour


def race(
    passes: Passes, attempts: list[Attempt], iterations: int, homotopy: Homotopy | None = None
) -> Attempt:
    """Return the best of several attempts after this number of iterations.

    `homotopy` makes a further attempt from the best one, with a detour over wide contacts.
    """
    if len(attempts) == 1:
        attempts[0].run(iterations)
        return attempts[0]
    for attempt in attempts:
        attempt.progress.is_new = True  # the attempts overwrite the derivatives of each other
        attempt.run(min(attempt.trial, iterations))
        if attempt.progress.log.has_stopped:
            break
    best, iterations = _best(passes, attempts), max(iterations - TRIAL, 0)
    has_stopped = any(attempt.progress.log.has_stopped for attempt in attempts)
    if homotopy and iterations > DETOUR and not has_stopped:
        made = homotopy.detour(best, len(attempts))
        has_stopped = homotopy.has_stopped
        if made is not None:
            best, iterations = _best(passes, [best, made]), iterations - DETOUR
    if has_stopped and best.progress.status == "iterations":
        best.progress.status = "stopped"
    best.progress.is_new = True
    best.run(iterations)
    return best


def _best(passes: Passes, attempts: list[Attempt]) -> Attempt:
    return min(attempts, key=lambda attempt: attempt.cost(passes))
