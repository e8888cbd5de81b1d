"""The method of multipliers: plans that satisfy constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mujacobian.control.attempt import TRIAL, Attempt
from mujacobian.control.descent import Progress
from mujacobian.control.homotopy import Homotopy
from mujacobian.control.lagrangian import Lagrangian
from mujacobian.control.passes import Passes
from mujacobian.control.plan import Plan
from mujacobian.control.race import race
from mujacobian.control.trajectory import Knots

FIRST_TOLERANCE = 1e-2  # of the iterations in the first round, whose multipliers are a guess
TIGHTER = 0.1  # factor of this tolerance in each further round
LONGEST_ROUND = 30  # iterations, unless all constraints hold


def penalize(passes: Passes, begun: list[Progress]) -> None:
    """Set the initial penalties, and add the constraints to the costs of initial trajectories.

    The penalties are those of the first trajectory.
    """
    if passes.lagrangian is None:
        return
    first = begun[0].iterate
    passes.lagrangian.begin(first.cost, passes.constraint_values(first.knots))
    passes.penalize()
    for progress in begun:
        progress.iterate, progress.is_new = passes.evaluate(progress.iterate), True


def enforce(
    passes: Passes,
    attempts: list[Attempt],
    tolerance: float,
    iterations: int,
    homotopy: Homotopy | None,
) -> Attempt:
    """Return the best attempt, improved in rounds until its constraints hold (ILQ-30).

    `tolerance` is that of the last round, and `iterations` the limit for all rounds together.
    Without constraints, there is only one round, to which `homotopy` may add an attempt.
    """
    if passes.lagrangian is None:
        return race(passes, attempts, iterations, homotopy)
    penalize(passes, [attempt.progress for attempt in attempts])
    for attempt in attempts:
        attempt.descent.tolerance = max(FIRST_TOLERANCE, tolerance)
    best = race(passes, attempts, min(iterations, TRIAL))
    _continue(passes, passes.lagrangian, best, tolerance, iterations)
    best.descent.tolerance = tolerance
    return best


def _continue(
    passes: Passes, lagrangian: Lagrangian, attempt: Attempt, tolerance: float, iterations: int
) -> None:
    """Improve a trajectory after its first round."""
    descent, p = attempt.descent, attempt.progress
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
            can_iterate = p.status in ("converged", "iterations")
            p.status = f"infeasible: {reason}" if can_iterate else p.status
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


def resume(passes: Passes, plan: Plan) -> bool:
    """Continue with the multipliers of a plan; return whether it has the same constraints."""
    lagrangian = passes.lagrangian
    if lagrangian is None or not lagrangian.resume(plan.times, plan.multipliers, plan.penalties):
        return False
    passes.penalize()
    return True


def update(passes: Passes, progress: Progress) -> None:
    """Update the multipliers after the iterations of a plan in a loop."""
    lagrangian = passes.lagrangian
    if lagrangian is None:
        return
    residuals = passes.residuals(progress.iterate.knots)
    if progress.status == "converged" and (residuals.optimality > lagrangian.tolerances).any():
        progress.status = "iterations"
    lagrangian.update(residuals)


def describe_constraints(passes: Passes, knots: Knots, plan: Plan) -> Plan:
    """Return a plan, whose trajectory is given, with the results of its constraints."""
    lagrangian = passes.lagrangian
    if lagrangian is None:
        return plan
    return replace(
        plan,
        violations=lagrangian.named(passes.residuals(knots).violations),
        multipliers=lagrangian.named_multipliers,
        penalties=lagrangian.named(lagrangian.penalties),
    )
