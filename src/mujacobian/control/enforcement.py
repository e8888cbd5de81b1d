"""The method of multipliers: rounds of iterations, after which the multipliers are updated."""

from __future__ import annotations

import numpy as np

from mujacobian.control.passes import Passes
from mujacobian.control.race import Attempt

FIRST_TOLERANCE = 1e-2  # of the iterations in the first round
TIGHTER = 0.1  # factor of this tolerance in each further round
LONGEST_ROUND = 30  # iterations, unless all constraints hold


def loosen(attempts: list[Attempt]) -> None:
    """Let the iterations of the first round end early, because its multipliers are a guess."""
    for attempt in attempts:
        attempt.descent.tolerance = max(FIRST_TOLERANCE, attempt.descent.tolerance)


def enforce(passes: Passes, attempt: Attempt, tolerance: float, iterations: int) -> None:
    """Improve a trajectory after its first round until its constraints hold (ILQ-30).

    `tolerance` is that of the last round, and `iterations` the limit for all rounds together.
    """
    descent, p, lagrangian = attempt.descent, attempt.progress, passes.lagrangian
    assert lagrangian is not None
    before = np.full(len(lagrangian.penalties), np.inf)
    while True:
        p.iterate = passes.close(p.iterate, p.gains)
        if not p.iterate.cost < np.inf:
            return
        residuals = passes.residuals(p.iterate.knots)
        is_feasible = bool((residuals.optimality <= lagrangian.tolerances).all())
        is_final = p.status == "converged" and descent.tolerance <= tolerance
        left = iterations - len(p.log.rows)
        if is_feasible and (is_final or p.status not in ("converged", "iterations")):
            break
        if p.log.has_stopped or left <= 0 or not passes.segments:
            p.status = "stopped" if p.log.has_stopped else "iterations"
            break
        if reason := lagrangian.hopeless(residuals.violations):
            p.status = f"infeasible: {reason}" if p.status == "converged" else p.status
            break
        # the next round
        lagrangian.update(residuals)
        has_converged = p.status == "converged"
        lagrangian.raise_penalties(before, residuals.optimality, has_converged=has_converged)
        before = residuals.optimality
        descent.tolerance = max(tolerance, 0.0 if is_feasible else TIGHTER * descent.tolerance)
        passes.penalize()
        p.iterate, p.is_new, p.has_failed = passes.evaluate(p.iterate), True, False
        descent.run(p, left if is_feasible else min(left, LONGEST_ROUND))
    lagrangian.update(residuals)
