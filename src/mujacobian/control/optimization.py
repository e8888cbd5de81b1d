"""The optimization of plans: initial trajectories, iterations and constraints."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, shaped
from mujacobian.control.attempt import make_attempts
from mujacobian.control.descent import Descent, Progress
from mujacobian.control.enforcement import describe_constraints, enforce, penalize, resume, update
from mujacobian.control.homotopy import Homotopy
from mujacobian.control.passes import BEFORE_CTRL, DivergedError, Passes
from mujacobian.control.plan import Plan, Policy
from mujacobian.control.progress import Log
from mujacobian.control.settings import Settings
from mujacobian.control.trajectory import Iterate

WORSE = 0.5  # relative increase of the cost above which smaller feedback gains are tried
ROUNDING = 1e-6  # time steps: a time this close to a knot is the time of the knot


class Optimization:
    """The optimization of plans with one model and one time step.

    Initial states are rows of mjSTATE_INTEGRATION.

    Attributes:
      descent: iterations of the last plan, which the next plan of a loop continues.
    """

    def __init__(self, passes: Passes, settings: Settings) -> None:
        self._passes, self._settings = passes, settings
        self.reset()

    def reset(self) -> None:
        """Reset the regularization and the choice of the Hessian to their initial values."""
        self.descent = Descent(self._passes, self._settings)

    def open_loop(self, start: Array, controls: ArrayLike | None) -> Policy:
        """Return a policy without feedback, with the given controls or the constant `ctrl`."""
        model, cost, T = self._passes.model, self._passes.cost, self._passes.horizon
        lower, upper = self._passes.bounds
        if controls is None:
            first = mujoco.mj_stateSize(model, BEFORE_CTRL)
            held = start[first : first + model.nu].clip(lower, upper)
            u = np.tile(held, (T - 1, 1))
        else:
            u = shaped("controls", controls, (T - 1, model.nu))
        return Policy(
            model,
            start[0] + model.opt.timestep * np.arange(T - 1),
            np.tile(start[1 : 1 + cost.nstate], (T - 1, 1)),
            u,
            np.zeros((T - 1, model.nu, cost.nx)),
            lower,
            upper,
            is_linear=False,
        )

    def solve(
        self,
        start: Array,
        first: Policy,
        states: Array | None,
        iterations: int,
        log: Callable[[int], Log],
        widen: Callable[[float], Passes] | None = None,
    ) -> Plan:
        """Return the result of `ILQR.solve`; `log` makes the log of an attempt, given its number.

        `first` applies the initial controls, and `states` are those of its argument. `widen` makes
        the passes of the model with wider contacts, for the homotopy.
        """
        begun = time.perf_counter()
        passes = self._passes
        passes.begin(start)
        attempts = make_attempts(passes, self._settings, first, states, iterations)
        initial = attempts[0].progress.iterate.cost
        for attempt in attempts:
            attempt.progress.log = log(attempt.number)
        homotopy = Homotopy(passes, self._settings, widen, log) if widen else None
        best = enforce(passes, attempts, self._settings.tolerance, iterations, homotopy)
        self.descent, progress = best.descent, best.progress
        progress.iterate = passes.close(progress.iterate, progress.gains)
        if not progress.iterate.cost < np.inf:
            raise best.failure or DivergedError(
                "the iterations did not connect the initial states, and the simulation diverges. "
                "Give other initial states, or plan with a smaller timestep"
            )
        if progress.refused:
            progress.status = f"refused: {progress.refused}"
        return self._plan(start, progress, initial, begun)

    def improve(self, start: Array, plan: Plan | None) -> Plan:
        """Return the plan after one iteration, which begins with the policy of an earlier plan.

        It begins with the constant `ctrl` if there is no earlier plan, or if its policy diverges.
        If this diverges too, it raises `DivergedError`.
        """
        if plan is not None:
            shift = round((start[0] - plan.times[0]) / self._passes.model.opt.timestep)
            enough = plan.cost + WORSE * abs(plan.cost)
            try:
                return self.run(start, plan.policy, max(shift, 0), enough=enough, plan=plan)
            except DivergedError:
                pass  # the old plan is of no use from this state: begin a new one
        self.reset()
        return self.run(start, self.open_loop(start, None), -1)

    def run(
        self,
        start: Array,
        policy: Policy,
        shift: int,
        iterations: int = 1,
        enough: float = np.inf,
        plan: Plan | None = None,
    ) -> Plan:
        """Return the plan that improves the trajectory of a policy.

        `shift` and `enough` are those of `Passes.follow`, and `plan` is the earlier plan whose
        multipliers the constraints have.
        """
        # simulate and differentiate the initial trajectory
        begun = time.perf_counter()
        passes = self._passes
        passes.begin(start)
        passes.keeps = self.descent.expects_curvature()
        has_multipliers = plan is not None and resume(passes, plan)
        first = Iterate(*passes.follow(policy, shift, enough))
        shortly_after = passes.times[:-1] + ROUNDING * passes.model.opt.timestep
        progress, initial = Progress(first, _gains_at(policy, shortly_after)), passes.cost_of(first)
        # improve it
        if not has_multipliers:
            penalize(passes, [progress])
        self.descent.run(progress, iterations)
        update(passes, progress)
        if progress.refused and not passes.segments:
            progress.status = f"refused: {progress.refused}"
        return self._plan(start, progress, initial, begun)

    def _plan(self, start: Array, progress: Progress, initial: float, begun: float) -> Plan:
        """Return the plan of a trajectory, given its initial cost and the time when it began."""
        passes, knots, gains = self._passes, progress.iterate.knots, progress.gains
        policy = Policy(
            passes.model,
            passes.times,
            passes.states(knots),
            knots.controls.copy(),
            np.concatenate([gains, gains[-1:]]),
            *passes.bounds,
            is_linear=self._settings.interpolation == "linear",
        )
        plan = Plan(
            times=policy.times,
            states=policy.states,
            controls=policy.controls[:-1],
            gains=gains,
            sensordata=knots.sensors.copy(),
            terms=passes.terms(knots),
            cost=passes.cost_of(progress.iterate),
            initial_cost=initial,
            policy=policy,
            history=progress.log.arrays(),
            status=progress.status,
            refused=progress.refused,
            omitted=progress.omitted,
            approximated=progress.approximated,
            differenced=passes.differences.reports,
            timings=replace(passes.timings, total=time.perf_counter() - begun),
            _start=start.copy(),
        )
        return describe_constraints(passes, knots, plan)


def _gains_at(policy: Policy, times: Array) -> Array:
    """Return the gains of a policy at the last knots that are not after these times."""
    knots = np.searchsorted(policy.times, times, side="right") - 1
    gains: Array = policy.gains[knots.clip(min=0)]
    return gains
