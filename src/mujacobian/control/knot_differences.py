"""Finite differences at the knots of a plan that have no exact derivative."""

from __future__ import annotations

import mujoco

from mujacobian._arguments import Array
from mujacobian._differenced import Differenced
from mujacobian._linearization import Linearization
from mujacobian._rollout import INTEGRATION
from mujacobian._threads import each
from mujacobian.control.cost import Cost
from mujacobian.control.trajectory import Expansion, Knots
from mujacobian.errors import UnsupportedFeatureError


class KnotDifferences:
    """Finite differences that complete an expansion, and the reports about them."""

    def __init__(
        self, model: mujoco.MjModel, cost: Cost, expansion: Expansion, threads: int
    ) -> None:
        self._model, self._cost, self._threads = model, cost, threads
        self._expansion = expansion
        self._reports: dict[tuple[int, str, str], Differenced] = {}

    def clear(self) -> None:
        """Forget the reports, because a plan begins."""
        self._reports.clear()

    @property
    def reports(self) -> tuple[Differenced, ...]:
        """Reports of the knots that were differenced since the plan began."""
        return tuple(sorted(self._reports.values(), key=lambda report: report.index))

    def expand(
        self, knots: Knots, refused: list[int], sensors: list[bool], offsets: Array, weights: Array
    ) -> dict[int, str]:
        """Expand the refused knots of a trajectory; return the reasons of failures by knot.

        `sensors` says which sensors the cost reads. The offsets and weights are those of the rows
        and terms of its core.
        """
        from mujacobian import _fallback  # it imports the reference solution

        failures: dict[int, str] = {}

        def work(place: int, data: mujoco.MjData) -> None:
            t = refused[place]
            mujoco.mj_setState(self._model, data, knots.rows[t], INTEGRATION)
            try:
                lin = _fallback.linearize(self._model, data, wanted=sensors, index=(t,))
            except (UnsupportedFeatureError, ValueError, ArithmeticError) as error:
                failures[t] = str(error)
                return
            self._store(knots, t, lin, offsets, weights)

        each(
            self._model,
            len(refused),
            self._threads,
            work,
            lambda place: f"at knot {refused[place]}",
        )
        return failures

    def _store(
        self, knots: Knots, t: int, lin: Linearization, offsets: Array, weights: Array
    ) -> None:
        """Store the linearization of knot t, and expand the cost there."""
        e, one = self._expansion, slice(t, t + 1)
        if t < len(knots.rows) - 1:  # no step begins at the last knot
            e.A[t], e.B[t] = lin.A, lin.B
        e.C[t], e.D[t] = lin.C, lin.D
        self._cost.core.expand_into(
            sensordata=knots.sensors[one],
            controls=knots.controls[one],
            offsets=offsets[one],
            weights=weights[one],
            C=e.C[one],
            D=e.D[one],
            gradient=e.gradient[one],
            hessian=e.hessian[one],
        )
        for report in lin.differenced:
            self._reports[t, report.element, report.reason] = report
