"""Derivatives with the solver and collider settings of a model, compared with the converged step.

They are compared with differences of the converged step where these are trusted, and in all entries
with the linearization of the converged step, which the caller has judged.
"""

import warnings
from copy import copy
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import NDArray

import mujacobian
from mujacobian import reference
from mujacobian._diagnostics import CONTACT_LIMIT
from mujacobian.check._judge import Judge, stack
from mujacobian.errors import NotConvergedWarning

Array = NDArray[np.float64]

WRONG = 1e-5  # relative error above which a warning is required
PERCENTILE = 99


@dataclass
class OwnSettings:
    """The errors and warnings over all states of all scenes."""

    errors: list[float] = field(default_factory=list)  # relative differences, per state
    contact_errors: list[float] = field(default_factory=list)  # largest contact error of each state
    warned: int = 0
    refused: int = 0
    notes: list[str] = field(default_factory=list)  # states that are wrong without a warning

    def compare(
        self, model: mujoco.MjModel, data: mujoco.MjData, judge: Judge, J: Array, name: str
    ) -> None:
        """Compare the linearization of a state with the converged step.

        J: Jacobian of the converged step, which `judge` has accepted. Differences that `judge` does
            not trust, as on a facet of the collider, are left out.
        name: name of the state in the notes.
        """
        model = copy(model)  # each model object warns once
        own = mujoco.MjData(model)
        mujoco.mj_copyData(own, model, data)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always", NotConvergedWarning)
            try:
                lin = mujacobian.linearize(model, own, sensors=len(J) > judge.reference.nx)
            except (mujacobian.MujacobianError, ValueError):
                self.refused += 1
                return
        given, blocks = stack(lin), [edge for edge in judge.blocks if edge <= len(J)]
        error = reference.compare(given, J, np.zeros_like(J), blocks).error
        accepted = judge.compare(J).matrix <= judge.tolerance
        error = max(error, judge.compare(given).matrix[accepted].max(initial=0.0))
        self.errors.append(float(error))
        rows = mujacobian.diagnose(model, own, forward=False).rows
        self.contact_errors.append(max((row.contact_error for row in rows), default=0.0))
        self.warned += bool(found)
        if self.errors[-1] > WRONG and not found:
            self.notes.append(f"- {name}, own settings: off by {self.errors[-1]:.1e}, no warning")

    def __str__(self) -> str:
        """Summary in one sentence."""
        if not self.errors:
            return "No state was judged at the models' own settings."
        far = sum(error > CONTACT_LIMIT for error in self.contact_errors)
        return (
            f"{len(self.errors)} states at the models' own settings, against the converged step: "
            f"{PERCENTILE}th percentile {np.percentile(self.errors, PERCENTILE):.0e}, worst "
            f"{max(self.errors):.0e}; {self.warned} with a warning, {far} of them about contacts; "
            f"{self.refused} refused; {len(self.notes)} wrong without a warning"
        )
