"""The result of a model-predictive controller."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._differenced import Differenced
from mujacobian._summary import describe
from mujacobian.control.plan import Plan, Timings

PHASES = ("derivatives", "nominal", "backward", "rollouts", "total")


@dataclass(frozen=True, eq=False, repr=False)
class MPCResult:
    """The result of a run under model-predictive control, with one row per simulated step.

    Attributes:
      times: `(n,)`, s, times before each step.
      states: `(n, nq + nv + na)`, states before each step.
      controls: `(n, nu)`, controls of each step.
      sensordata: `(n, ns)`, sensor readings at the state before each step.
      costs: `(n,)`, cost of each step, weighted as the first knot of a plan.
      terms: `(n, terms)`, norms of the terms of the cost, without weights.
      weighted: `(n, terms)`, the same times their weights, whose sum is the cost.
      names: names of the terms.
      weights: `(terms,)`, weights of the terms.
      violations: largest violation of each constraint over all steps by name, in the unit of its
        rows; 0 for terminal constraints, because each step is the first knot of a plan.
      plan_times: `(plans,)`, s, initial times of the plans.
      plan_costs: `(plans,)`, costs of the plans.
      step_sizes: `(plans,)`, step sizes of their line searches, 0 if no step size was better.
      refused: for each plan, the reason why it improved only a part of its horizon; empty if it
        improved the whole horizon.
      shortened: for each plan, the reason why its time steps are smaller, see `Plan.shortened`.
      omitted: for each plan, the sensors that were left out at a knot, see `Plan.omitted`.
      differenced: for each plan, the knots that were differentiated by finite differences; empty
        without `fallback`.
      timings: computing times of each plan.
      seconds: wall-clock time of the run, s.
      derivatives: backend of the planner.
      threads: number of threads of the planner.
      plan: last plan.
    """

    times: Array
    states: Array
    controls: Array
    sensordata: Array
    costs: Array
    terms: Array
    weighted: Array
    names: list[str]
    weights: Array
    violations: dict[str, float]
    plan_times: Array
    plan_costs: Array
    step_sizes: Array
    refused: list[str]
    shortened: list[str]
    omitted: list[tuple[str, ...]]
    differenced: list[tuple[Differenced, ...]]
    timings: list[Timings]
    seconds: float
    derivatives: str
    threads: int
    plan: Plan

    def __repr__(self) -> str:
        facts = [
            f"{len(self.timings)} plans, {self.plans_per_second:.3g} per second, "
            f"{self.derivatives} derivatives, {self.threads} threads",
            f"cost {self.costs.mean():.4g} on average, {self.costs[-1]:.4g} at the end",
        ]
        for name, violation in self.violations.items():
            facts.append(f"constraint {name}: largest violation {violation:.3g}")
        if any(self.refused):
            facts.append(f"{sum(map(bool, self.refused))} plans improved only in part")
        if any(self.omitted):
            facts.append(f"{sum(map(bool, self.omitted))} plans left out sensors")
        if any(self.differenced):
            facts.append(f"{sum(map(bool, self.differenced))} plans with finite differences")
        return describe(
            f"MPCResult: {len(self.times)} steps",
            facts,
            states=self.states,
            controls=self.controls,
            sensordata=self.sensordata,
        )

    @property
    def plans_per_second(self) -> float:
        """The number of plans per second of planning time."""
        return len(self.timings) / sum(timing.total for timing in self.timings)

    @property
    def statistics(self) -> dict[str, dict[str, float]]:
        """Mean, median and 95th percentile of the milliseconds per plan, for each phase."""
        result = {}
        for phase in PHASES:
            values = 1e3 * np.array([getattr(timing, phase) for timing in self.timings])
            result[phase] = {
                "mean": float(values.mean()),
                "median": float(np.median(values)),
                "p95": float(np.percentile(values, 95)),
            }
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the last plan, as lists and numbers."""
        arrays = ("times", "states", "controls", "costs", "terms", "weights")
        plans = ("plan_times", "plan_costs", "step_sizes")
        return {
            "mujoco": mujoco.__version__,
            "derivatives": self.derivatives,
            "threads": self.threads,
            "steps": len(self.times),
            "plans": len(self.timings),
            "seconds": self.seconds,
            "plans_refused": sum(map(bool, self.refused)),
            "plans_shortened": sum(map(bool, self.shortened)),
            "plans_with_omitted_sensors": sum(map(bool, self.omitted)),
            "plans_differenced": sum(map(bool, self.differenced)),
            "mean_cost": float(self.costs.mean()),
            "plans_per_second": self.plans_per_second,
            "milliseconds_per_plan": self.statistics,
            "names": self.names,
            "violations": self.violations,
            **{name: getattr(self, name).tolist() for name in arrays + plans},
        }

    def to_json(self, path: str | Path) -> None:
        """Write the result of `to_dict` to a JSON file."""
        Path(path).write_text(json.dumps(self.to_dict()), encoding="utf-8")
