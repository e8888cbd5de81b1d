"""Trajectories of a planner, their derivatives, and the directions in which they change."""

from __future__ import annotations

from typing import NamedTuple

from mujacobian._arguments import Array


class Knots(NamedTuple):
    """A simulated trajectory, or the concatenated trajectories of a line search."""

    rows: Array  # (T, nstate) mjSTATE_INTEGRATION
    controls: Array
    sensors: Array
    qacc: Array
    norms: Array

    def candidate(self, k: int, T: int) -> Knots:
        """Return the k-th of several trajectories of T knots."""
        return Knots(*(array[k * T : (k + 1) * T] for array in self))


class Expansion(NamedTuple):
    """Derivatives of the dynamics and of the cost along a trajectory."""

    A: Array
    B: Array
    C: Array
    D: Array
    gradient: Array
    hessian: Array


class Iterate(NamedTuple):
    """A trajectory with its cost and its gaps, None if it is a simulation (ILQ-23)."""

    knots: Knots
    cost: float
    gaps: Array | None = None


class Direction(NamedTuple):
    """Result of a backward pass: steps, gains, and coefficients of the expected change of cost.

    `values` contains the gradients of the value at the knots of the pass, and `is_exact` is true if
    the pass used exact second derivatives. `penalty` is the part of the merit that the gaps of the
    trajectory cause (ILQ-25).
    """

    steps: Array
    gains: Array
    linear: float
    quadratic: float
    values: Array
    is_exact: bool = False
    penalty: float = 0.0

    def improvement(self, size: float) -> float:
        """Return the decrease of the quadratic model of the merit at a step size (ILQ-8)."""
        return size * (self.penalty - self.linear - size * self.quadratic)

    def merit_decrease(self, before: float, after: float, size: float) -> float:
        """Return the decrease of the merit if a step of this size changes the cost like this."""
        return before - after + size * self.penalty

    def wanted(self, cost: float, size: float, acceptance: float) -> float:
        """Return the cost after a step of this size below which the step is accepted."""
        return cost + size * self.penalty - acceptance * self.improvement(size)
