"""The optimizer of a problem, which is that of SciPy."""

from __future__ import annotations

from dataclasses import dataclass

from mujacobian._arguments import Array
from mujacobian.sysid.numerics import least_squares
from mujacobian.sysid.problem import Problem, Stop


@dataclass(frozen=True)
class Solution:
    """Values that the optimizer found, whether they have converged, and its message."""

    values: Array
    converged: bool
    message: str


def solve(
    problem: Problem, first: Array, bounds: tuple[Array, Array], max_evaluations: int
) -> Solution:
    """Return the solution from one start; raise if the simulation diverges there."""
    problem.evaluate(first)
    # the optimizer receives a triangular factor with the same norms and products, not all rows
    try:
        found = least_squares(
            problem.residuals,
            first,
            problem.jacobian,
            bounds=bounds,
            x_scale="jac",
            ftol=problem.tolerance,
            xtol=problem.tolerance,
            gtol=problem.tolerance,
            max_nfev=max_evaluations,
        )
    except Stop as end:
        return Solution(end.values, end.converged, str(end))
    return Solution(found.x, bool(found.status > 0), str(found.message))
