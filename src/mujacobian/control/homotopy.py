"""Plans with wide contacts, which lead past jumps of the contact forces (ILQ-33)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace

import numpy as np

from mujacobian.control.attempt import Attempt, begin_attempt
from mujacobian.control.passes import DivergedError, Passes
from mujacobian.control.plan import Policy, Timings
from mujacobian.control.planned_model import SPEED
from mujacobian.control.progress import Log
from mujacobian.control.settings import Settings
from mujacobian.control.trajectory import Iterate

# widths of contacts, in depths that a contact at `SPEED` reaches in one time step
MULTIPLES = (32.0, 16.0, 8.0, 4.0, 2.0)
EACH = 8  # iterations with each width
BACK = 20  # iterations with the contacts of the model itself, before plans are compared
WORSE = 0.5  # relative increase of the cost above which smaller feedback gains are tried


class Homotopy:
    """The way over models with wide contacts to another plan.

    `widen` makes the passes of the model with contacts that are at least so wide, and `log` makes
    the log of an attempt, given its number. `has_stopped` is true if the callback has stopped it.
    """

    def __init__(
        self,
        passes: Passes,
        settings: Settings,
        widen: Callable[[float], Passes],
        log: Callable[[int], Log],
    ) -> None:
        self._passes, self._settings, self._widen, self._log = passes, settings, widen, log
        # curvature pays off only near the solution, where wide contacts do not lead
        self._rough = replace(settings, hessian="gauss-newton")
        self.has_stopped = False

    def detour(self, attempt: Attempt, number: int) -> Attempt | None:
        """Return the attempt that begins where plans with wide contacts end.

        These plans begin with the given attempt, and they are reported as attempt `number`. Returns
        None if the contacts do not matter, if a simulation diverges, or if the callback stops.
        """
        passes, log = self._passes, self._log(number)
        at, here, cost = attempt, passes, attempt.cost(passes)
        with suppress(DivergedError):
            for multiple in MULTIPLES:
                wide = self._widen(multiple * SPEED * passes.model.opt.timestep)
                wide.begin(passes.start)
                at, here = _carry(here, at, wide, self._rough), wide
                change = abs(at.progress.iterate.cost - cost)
                if not log.rows and change <= self._settings.tolerance * abs(cost):
                    return None
                at.progress.log = log
                at.run(EACH)
                passes.timings = _sum(passes.timings, wide.timings)
                self.has_stopped = log.has_stopped
                if self.has_stopped:
                    return None
            passes.keeps = self._settings.hessian == "exact"
            end = _carry(here, at, passes, self._settings)
            end.progress.log = self._log(number + 1)
            end.run(BACK)
            self.has_stopped = end.progress.log.has_stopped
            return end
        return None


def _carry(source: Passes, attempt: Attempt, target: Passes, settings: Settings) -> Attempt:
    """Return the attempt that begins with the policy of another one, in another model."""
    progress = attempt.progress
    iterate = source.close(progress.iterate, progress.gains)
    policy = Policy(
        target.model,
        source.times,
        source.states(iterate.knots),
        iterate.knots.controls.copy(),
        np.concatenate([progress.gains, progress.gains[-1:]]),
        *source.bounds,
        is_linear=False,
    )
    enough = iterate.cost + WORSE * abs(iterate.cost)
    return begin_attempt(target, settings, Iterate(*target.follow(policy, -1, enough)))


def _sum(first: Timings, second: Timings) -> Timings:
    """Return the sums of the times of two plans."""
    return replace(
        first,
        **{
            each.name: getattr(first, each.name) + getattr(second, each.name)
            for each in fields(Timings)
        },
    )
