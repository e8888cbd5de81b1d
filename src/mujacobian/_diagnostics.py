"""The distance of a state to the kinks of its step, and the condition of its equations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian import _core
from mujacobian._arguments import require_model
from mujacobian._notices import collider_text, solver_text
from mujacobian._summary import describe, html_table

COLLIDER_LIMIT = _core.collider_limit()
CONTACT_LIMIT = _core.contact_limit()


@dataclass(frozen=True)
class Row:
    """A constraint and its distances to the nearest kinks, which are infinite if there is none.

    Attributes:
      element: name of the constraint.
      state: "held", "sticking", "slipping", "pressing" or "free".
      zone: distance of `J a - aref` to the boundary of this state.
      activation: distance of the constraint's position to the point where its row disappears.
      region: distance of a contact to the point where it uses other features of its geoms.
      contact_error: distance between MuJoCo's contact and that of a converged collider, which is
        differentiated: the sum of the changes of position and depth (m) and of the normal (rad). It
        is infinite if the converged collider finds another number of contacts.
      feature: name of the features of the geoms that determine a contact, such as "vertex on face"
        or "edge on edge"; empty for other constraints.
    """

    element: str
    state: str
    zone: float
    activation: float
    region: float
    contact_error: float
    feature: str


@dataclass(frozen=True)
class Clamp:
    """A range (ctrlrange, forcerange, actuatorfrcrange) and the distance to its nearer end."""

    element: str
    clamp: str
    distance: float


@dataclass(frozen=True, repr=False)
class Diagnostics:
    """The result of `diagnose`.

    Attributes:
      rows: the constraints.
      clamps: the ranges of controls and forces.
      residual_before: relative residual of `M a = qfrc_smooth + J^T f` at MuJoCo's `qacc`.
      residual: the same after Newton steps from `qacc`.
      solver_error: distance of MuJoCo's `qacc` from the optimum, relative to the largest
        acceleration of the bodies that constraints couple.
      solver_limit: 2.5e-5, or 2.5e-6 if the solver has used all of its iterations.
      collider_error: distance between MuJoCo's `qacc` and that of a step with a converged collider,
        relative to the largest acceleration of the same tree.
      K: the matrix `M + J^T H J` of the linear system for derivatives of the acceleration.

    Functions that differentiate the step warn if `solver_error` exceeds `solver_limit`,
    `collider_error` exceeds 1e-3, or the error of a contact exceeds 1e-4. The error of the
    derivative is about the square root of `solver_error`.
    """

    rows: list[Row]
    clamps: list[Clamp]
    residual_before: float
    residual: float
    solver_error: float
    solver_limit: float
    collider_error: float
    K: NDArray[np.float64]

    def __repr__(self) -> str:
        facts = [
            f"solver error {self.solver_error:.1e} (limit {self.solver_limit:.1e})",
            f"collider error {self.collider_error:.1e} (limit {COLLIDER_LIMIT:.0e})",
            f"contact error {self.contact_error:.1e} (limit {CONTACT_LIMIT:.0e})",
            f"residual {self.residual_before:.1e}, {self.residual:.1e} after polishing",
        ]
        for name in ("zone", "activation", "region"):
            distances = [getattr(row, name) for row in self.rows]
            least = min(distances, default=np.inf)
            if np.isfinite(least):
                element = self.rows[distances.index(least)].element
                facts.append(f"nearest {name} {least:.3g}: {element}")
        if self.features:
            counts = [f"{number} {name}" for name, number in self.features.items()]
            facts.append(f"contact features: {'; '.join(counts)}")
        if self.clamps:
            clamp = min(self.clamps, key=lambda each: each.distance)
            facts.append(f"nearest clamp {clamp.distance:.3g}: {clamp.clamp} of {clamp.element}")
        return describe(f"Diagnostics: {len(self.rows)} constraints", facts, K=self.K)

    def _repr_html_(self) -> str:
        title = (
            f"Diagnostics: solver error {self.solver_error:.1e}, collider error"
            f" {self.collider_error:.1e}, contact error {self.contact_error:.1e}"
        )
        header = ("constraint", "state", "zone", "activation", "region", "contact error", "feature")
        rows = [
            (
                row.element,
                row.state,
                *(f"{x:.3g}" for x in (row.zone, row.activation, row.region, row.contact_error)),
                row.feature,
            )
            for row in self.rows
        ]
        return html_table(title, header, rows)

    @property
    def features(self) -> dict[str, int]:
        """Number of contacts by the name of their features, the most frequent first."""
        return dict(Counter(row.feature for row in self.rows if row.feature).most_common())

    @property
    def contact_error(self) -> float:
        """The largest error of a contact."""
        return max((row.contact_error for row in self.rows), default=0.0)

    @property
    def converged(self) -> bool:
        """True if MuJoCo's solver and collider converged in this state, up to their limits."""
        return self.solver_error <= self.solver_limit and self.collider_converged

    @property
    def collider_converged(self) -> bool:
        """True if MuJoCo's collider converged in this state, up to its limits."""
        return self.contact_error <= CONTACT_LIMIT and self.collider_error <= COLLIDER_LIMIT

    @property
    def solver(self) -> str:
        """A sentence that says whether MuJoCo's solver converged in this state."""
        verdict = "converged" if self.solver_error <= self.solver_limit else "not converged"
        return f"{verdict}: {solver_text(self.solver_error, self.solver_limit)}"

    @property
    def collider(self) -> str:
        """A sentence that says whether MuJoCo's collider converged in this state."""
        verdict = "converged" if self.collider_converged else "not converged"
        return (
            f"{verdict}: the worst contact is {self.contact_error:.1e} away from the optimum in m "
            f"and rad (limit {CONTACT_LIMIT:.0e}), and "
            f"{collider_text(self.collider_error, COLLIDER_LIMIT)}"
        )

    @property
    def condition(self) -> float:
        """Condition number of K."""
        return float(np.linalg.cond(self.K)) if self.K.size else 1.0


def diagnose(model: mujoco.MjModel, data: mujoco.MjData, *, forward: bool = True) -> Diagnostics:
    """Return the distances of a state to the kinks of its step, and how well the solver converged.

    `linearize` differentiates the branch that MuJoCo is in. The distances say how far this branch
    extends. The state in `data` is not changed. Use `forward=False` if you have just called
    `mj_forward` on this state.

    Example:
      >>> import mujoco, mujacobian
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><geom type='plane' size='1 1 1'/>"
      ...     "<body pos='0 0 .0999'><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
      >>> row = mujacobian.diagnose(model, mujoco.MjData(model)).rows[0]
      >>> row.state, row.feature, round(row.activation, 4)  # the contact ends 0.1 mm higher
      ('sticking', 'sphere on face', 0.0001)
    """
    require_model(model)
    K = np.empty((model.nv, model.nv))
    rows, clamps, before, residual, solver, limit, collider = _core.diagnose_into(
        model, data, K=K, forward=forward
    )
    return Diagnostics(
        rows=[Row(*r) for r in rows],
        clamps=[Clamp(*c) for c in clamps],
        residual_before=before,
        residual=residual,
        solver_error=solver,
        solver_limit=limit,
        collider_error=collider,
        K=K,
    )
