"""Several ways to begin a plan, which are continued until the best one remains."""

from __future__ import annotations

from dataclasses import dataclass

from mujacobian.control.descent import Descent, Progress
from mujacobian.control.passes import Passes

FEW = 10  # iterations, up to which there is only one attempt
TRIAL = 40  # iterations of each attempt, after which only the best one continues


@dataclass
class Attempt:
    """A way to begin a plan: its iterations, and the trajectory as far as it has been improved."""

    descent: Descent
    progress: Progress

    def run(self, iterations: int) -> None:
        """Continue with a number of iterations, unless there is nothing left to improve."""
        if self.progress.status == "iterations":
            self.descent.run(self.progress, iterations)

    def cost(self, passes: Passes) -> float:
        """Return the cost of the trajectory without gaps, infinite if it diverges."""
        return passes.close(self.progress.iterate, self.progress.gains).cost


def race(passes: Passes, attempts: list[Attempt], iterations: int) -> Attempt:
    """Return the best of several attempts after this number of iterations."""
    if len(attempts) > 1:
        for attempt in attempts:
            attempt.progress.is_new = True  # the attempts overwrite the derivatives of each other
            attempt.run(min(TRIAL, iterations))
            if attempt.progress.log.has_stopped:
                break
        iterations = max(iterations - TRIAL, 0)
    best = min(attempts, key=lambda attempt: attempt.cost(passes))
    has_stopped = any(attempt.progress.log.has_stopped for attempt in attempts)
    if has_stopped and best.progress.status == "iterations":
        best.progress.status = "stopped"
    best.progress.is_new = best.progress.is_new or len(attempts) > 1
    best.run(iterations)
    return best
