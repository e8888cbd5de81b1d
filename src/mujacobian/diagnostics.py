"""How far a state is from where the step has no derivative, and how well it is conditioned."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian import _core
from mujacobian.arguments import require_model
from mujacobian.notices import collider_text, solver_text
from mujacobian.summary import describe

SOLVER_LIMIT = _core.solver_limit()
COLLIDER_LIMIT = _core.collider_limit()
CONTACT_LIMIT = _core.contact_limit()


@dataclass(frozen=True)
class Row:
    """A constraint and its distances to the nearest kinks; infinite where there is none.

    `state` is held, sticking, slipping, pressing or free. `zone` is the distance of `J a - aref` to
    the boundary of that state, `activation` how far the constraint's position is from where its
    row disappears, `region` how far a contact is from using other features of its geoms.
    `contact_error` is the distance between MuJoCo's contact and that of a converged collider, which
    is the one that is differentiated: the changes of position and depth (m) and of the normal (rad)
    added up; infinite where the converged collider finds another number of contacts.
    `feature` names the features of the geoms that determine a contact, such as "vertex on face" or
    "edge on edge"; it is empty for other constraints.
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
    """What `diagnose` found.

    `residual_before` and `residual` are the relative residuals of `M a = qfrc_smooth + J^T f` at
    MuJoCo's `qacc` and after polishing. `solver_error` is the distance of MuJoCo's `qacc` from the
    optimum, relative to the largest acceleration of the bodies that constraints couple;
    `collider_error` is its distance from that of a step with a converged collider, relative to the
    largest acceleration of the same tree. Functions that differentiate the step warn if the first
    exceeds `SOLVER_LIMIT`, the second `COLLIDER_LIMIT`, or the error of a contact `CONTACT_LIMIT`.
    `K = M + J^T H J` is the matrix that the derivative of the acceleration is solved with.
    """

    rows: list[Row]
    clamps: list[Clamp]
    residual_before: float
    residual: float
    solver_error: float
    collider_error: float
    K: NDArray[np.float64]

    def __repr__(self) -> str:
        facts = [
            f"solver error {self.solver_error:.1e} (limit {SOLVER_LIMIT:.0e})",
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
        """Whether MuJoCo's solver and collider converged in this state, up to their limits."""
        return self.solver_error <= SOLVER_LIMIT and self.collider_converged

    @property
    def collider_converged(self) -> bool:
        """Whether MuJoCo's collider converged in this state, up to its limits."""
        return self.contact_error <= CONTACT_LIMIT and self.collider_error <= COLLIDER_LIMIT

    @property
    def solver(self) -> str:
        """Whether MuJoCo's solver converged in this state, in words."""
        verdict = "converged" if self.solver_error <= SOLVER_LIMIT else "not converged"
        return f"{verdict}: {solver_text(self.solver_error, SOLVER_LIMIT)}"

    @property
    def collider(self) -> str:
        """Whether MuJoCo's collider converged in this state, in words."""
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
    """Distances of the state in `data` to the kinks of its step, and the state of the solver.

    The derivative that `linearize` returns is that of the branch MuJoCo is in; this says how far
    that branch extends. The state in `data` is not changed. `forward=False`: the caller has just
    run `mj_forward` on this state.
    """
    require_model(model)
    K = np.empty((model.nv, model.nv))
    rows, clamps, before, residual, solver, collider = _core.diagnose_into(model, data, K, forward)
    return Diagnostics(
        rows=[Row(*r) for r in rows],
        clamps=[Clamp(*c) for c in clamps],
        residual_before=before,
        residual=residual,
        solver_error=solver,
        collider_error=collider,
        K=K,
    )
