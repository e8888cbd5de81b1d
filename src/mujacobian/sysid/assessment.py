"""Assessment of an optimum: its statistics, and warnings about what cannot be trusted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mujacobian._arguments import Array
from mujacobian.sysid.attempts import Attempt
from mujacobian.sysid.fit import fit_of_log
from mujacobian.sysid.identifiability import explain
from mujacobian.sysid.problem import Iterate, Problem
from mujacobian.sysid.quality import (
    judge_bounds,
    judge_chi_square,
    judge_errors,
    judge_rank,
    on_bounds,
)
from mujacobian.sysid.result import Identification
from mujacobian.sysid.starts import Start, judge_starts

_REMEDY = "Use a better start=, window= for long logs, or a larger max_evaluations"


def assess(
    attempt: Attempt, bounds: tuple[Array, Array], starts: tuple[Start, ...]
) -> Identification:
    """Return the result at the optimum of the best attempt, with all warnings."""
    problem, optimum = attempt.problem, attempt.optimum
    unknowns, values, plain = problem.unknowns, optimum.values, problem.without_loss(optimum)
    fit, residuals = plain.fit, plain.residuals()
    names = unknowns.names
    freedom = problem.degrees_of_freedom(plain)
    reduced = optimum.squares / freedom if freedom > 0 else np.nan
    if problem.loss is not None and freedom > 0:
        reduced = problem.loss.variance(np.concatenate(residuals), freedom)
    covariance = reduced * fit.covariance() if freedom > 0 else np.full((len(values),) * 2, np.inf)
    errors = np.sqrt(np.diag(covariance))
    bound = on_bounds(optimum.fit, values, errors, *bounds)
    unsettled = problem.unsettled(optimum)
    converged, message = attempt.solution.converged, attempt.solution.message
    texts = [
        None if converged else f"the optimizer did not converge: {message} {_REMEDY}",
        _judge_first_states(unsettled),
        _judge_residuals(problem, reduced, freedom),
        judge_rank(fit, names),
        judge_errors(names, values, errors, problem.history[0].values, unknowns.lower),
        judge_bounds(names, values, bound),
        judge_starts(starts, reduced),
    ]
    undetermined = sorted(k for group in fit.undetermined() for k in group)
    return Identification(
        parameters=unknowns.parameters,
        names=names,
        units=unknowns.units,
        values=values,
        standard_errors=errors,
        covariance=covariance,
        model=unknowns.apply(values),
        first_states=tuple(np.array([p.state for p in of_log]) for of_log in optimum.points),
        residuals=residuals,
        cost=optimum.squares / 2,
        degrees_of_freedom=freedom,
        reduced_chi_square=reduced,
        undetermined=tuple(names[k] for k in undetermined),
        identifiability=explain(fit, names, values, covariance),
        on_bounds=tuple(names[k] for k in bound),
        history=(*problem.history, Iterate(optimum.squares / 2, values)),
        steps=problem.steps,
        converged=converged and not unsettled,
        message=message,
        warnings=tuple(text for text in texts if text is not None),
        fits=tuple(
            fit_of_log(unknowns.parameters.model, windows, points)
            for windows, points in zip(problem.logs, plain.points, strict=True)
        ),
        starts=starts,
    )


def _judge_first_states(unsettled: Sequence[int]) -> str | None:
    """Return a warning about first states that are not at their optimum, or None."""
    if not unsettled:
        return None
    return (
        f"the first states of logs {', '.join(map(str, unsettled))} did not converge: use shorter"
        " windows (window=), better first states in these logs, or first_state_noise"
    )


def _judge_residuals(problem: Problem, reduced: float, freedom: int) -> str | None:
    """Return a warning about the size of the residuals, or None."""
    if freedom < 1:
        return (
            f"the {problem.size} measured numbers are as many as the unknowns that they determine,"
            " so the noise cannot be estimated and all standard errors are inf. Record more"
        )
    if not problem.is_noise_known:
        return None
    return judge_chi_square(reduced, freedom, estimate=problem.is_estimated, window=problem.window)
