"""The results of a study of one model."""

from __future__ import annotations

from dataclasses import dataclass, field

import mujoco

from mujacobian.check._probe import may_sleep
from mujacobian.check._timing import has_differences
from mujacobian.errors import Unsupported


@dataclass
class StateReport:
    """The results at one state.

    Attributes:
      name: how the state was reached.
      rows: number of constraint rows.
      contacts: number of contacts.
      verdict: "exact", "wrong", "refused" (a feature is not supported), "unconverged" (at the
        model's own settings the solver or the collider stops before the optimum, which is
        differentiated), "loose" (exact with a converged collider, but the model's own
        `ccd_tolerance` is larger) or "unknown" (the reference is not accurate enough).
      reason: an explanation of any verdict but "exact".
      sensors_refused: the reason if C and D are not supported.
      tolerance: of the relative errors.
      columns: number of compared columns.
      share: share of the entries for which the reference is trusted.
      ours: worst relative errors of each block of mujacobian, compared with the step of the model
        as it is.
      fd: the same of `mjd_transitionFD`.
      times: in microseconds.
      solver: `solver_error` of `diagnose`.
      converged: errors compared with the converged step, if the verdict is "unconverged".
      solver_share: share of the error that the solver causes.
      collider: the larger one of `collider_error` and `contact_error` of `diagnose`.
      collider_share: share of the error that the collider causes. If both stop early, it is equal
        to `solver_share`.
    """

    name: str
    rows: int = 0
    contacts: int = 0
    verdict: str = "exact"
    reason: str = ""
    sensors_refused: str = ""
    tolerance: float = 0.0
    columns: int = 0
    share: float = 0.0
    ours: dict[str, float] = field(default_factory=dict)
    fd: dict[str, float] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    solver: float = 0.0
    converged: dict[str, float] = field(default_factory=dict)
    solver_share: float = 0.0
    collider: float = 0.0
    collider_share: float = 0.0

    @property
    def speedup(self) -> float | None:
        """Time of centered finite differences over ours, both including `mj_forward`."""
        return self.times["fd"] / self.times["ours"] if "fd" in self.times else None

    @property
    def per_step(self) -> float | None:
        """Time of the derivative alone over one `mj_step`."""
        return self.times["derivative"] / self.times["step"] if self.times else None

    @property
    def exact(self) -> bool:
        """True if all of A, B, C, D are exact here."""
        return self.verdict == "exact" and not self.sensors_refused

    @property
    def worst(self) -> float:
        """The largest error of all blocks."""
        return max(self.ours.values(), default=0.0)


@dataclass
class Report:
    """The unsupported elements of a model, and the results at its states.

    file: path of the file with the states; empty if the model was driven to them.
    """

    model: mujoco.MjModel
    refused: list[Unsupported]
    states: list[StateReport] = field(default_factory=list)
    file: str = ""

    @property
    def exact(self) -> bool:
        """True if every state is exact in all blocks."""
        return all(state.exact for state in self.states)

    @property
    def differences_missing(self) -> str:
        """The reason why there are no results of `mjd_transitionFD`; empty if there are some."""
        if has_differences(self.model):
            return ""
        cause = "the flag sleep" if may_sleep(self.model) else "the integrator RK4"
        return f"mjd_transitionFD does not support {cause}"
