"""The gradient of a scalar through a trajectory, by the adjoint method (ADJ-4)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian import _core
from mujacobian.errors import MujacobianError
from mujacobian.summary import describe

if TYPE_CHECKING:
    from mujacobian.trajectory import Trajectory

Array = NDArray[np.float64]

# growth beyond which the direction of a gradient is that of rounding errors
EXPLOSION = 1e8

# why Gradient.mocap is None though poses were given: element and reason
NO_MOCAP_GRADIENT = "option noslip_iterations", "gradients of mocap poses"


@dataclass(frozen=True, repr=False)
class Gradient:
    """Derivatives of a scalar of a trajectory. Batches have a leading axis.

    state: with respect to the first state, in the layout of `states`, or tangent coordinates.
    controls: `(T, nu)`.
    forces: `(T, nv)`, with respect to `qfrc_applied`; None if the rollout was given none.
    wrenches: `(T, nbody, 6)`, with respect to `xfrc_applied`; None if the rollout was given none.
    mocap: `(T, nmocap, 7)`, with respect to the poses of mocap bodies, quaternions taken as
        q / |q|; None if the rollout was given none, and with noslip, where it is not covered.
    params: one per parameter; None if the rollout was given none.
    norms: `(T + 1,)`, of the derivative with respect to the state before each step and the last, in
        tangent coordinates: how far back the scalar is felt, and where gradients explode.
    """

    state: Array
    controls: Array
    forces: Array | None
    wrenches: Array | None
    mocap: Array | None
    params: Array | None
    norms: Array

    def __repr__(self) -> str:
        return describe(
            "Gradient",
            state=self.state,
            controls=self.controls,
            forces=self.forces,
            wrenches=self.wrenches,
            mocap=self.mocap,
            params=self.params,
            norms=self.norms,
        )


class Adjoint:
    """The derivative on its way back through every rollout of a trajectory."""

    def __init__(
        self, trajectory: Trajectory, given: Array, sensed: Array | None, window: int | None
    ) -> None:
        n, T = trajectory.batch, trajectory.steps
        inputs, params = trajectory.inputs, trajectory.params
        self.trajectory, self.given, self.sensed, self.window = trajectory, given, sensed, window
        self.core = params[0].core if params else []
        self.gradient = Gradient(
            state=given[:, -1].copy(),
            controls=np.empty(inputs.controls.shape),
            forces=None if inputs.forces is None else np.empty(inputs.forces.shape),
            wrenches=None if inputs.wrenches is None else np.empty(inputs.wrenches.shape),
            mocap=np.empty((n, T, trajectory.model.nmocap, 6)) if self._follows_mocap() else None,
            params=np.zeros((n, len(self.core))) if params else None,
            norms=np.empty((n, T + 1)),
        )
        self.gradient.norms[:, -1] = np.linalg.norm(given[:, -1], axis=-1)

    def pull_back(self, k: int, data: mujoco.MjData) -> None:
        """Fill the gradient of rollout k."""
        made, cotangent = self.gradient, self.gradient.state[k]
        for lower, upper, start in self.trajectory.segments(k, data):
            for first, last in self._uncut(lower, upper):
                rows = slice(first, last)
                _core.pull_back_into(
                    self.trajectory.model,
                    data,
                    start=start[first - lower : last - lower],
                    steps=last - first,
                    d_states=self.given[k, rows],
                    d_sensors=None if self.sensed is None else self.sensed[k, rows],
                    parameters=self.core,
                    ctrl=made.controls[k, rows],
                    force=None if made.forces is None else made.forces[k, rows],
                    wrench=None if made.wrenches is None else made.wrenches[k, rows],
                    mocap=None if made.mocap is None else made.mocap[k, rows],
                    params=None if made.params is None else made.params[k],
                    norms=made.norms[k, rows],
                    cotangent=cotangent,
                    first=first,
                )
                if self.window and first and first % self.window == 0:
                    cotangent[:] = self.given[k, first]

    def _follows_mocap(self) -> bool:
        model = self.trajectory.model
        return self.trajectory.inputs.mocap is not None and model.opt.noslip_iterations == 0

    def _uncut(self, lower: int, upper: int) -> list[tuple[int, int]]:
        """Ranges of steps between cuts, the last first."""
        if not self.window:
            return [(lower, upper)]
        begins = [t for t in range(lower, upper) if t == lower or t % self.window == 0]
        return list(zip(begins, [*begins[1:], upper], strict=True))[::-1]

    def judge(self) -> None:
        """Raise if the derivative has overflowed, warn if it has grown out of proportion."""
        self._require_finite()
        self._warn()

    def _require_finite(self) -> None:
        """Raise where the derivative has overflowed."""
        for k, t in np.argwhere(~np.isfinite(self.gradient.norms))[::-1][:1]:
            raise MujacobianError(
                f"{self._rollout(k)}the gradient overflows in step {t}, on its way back: see "
                "Gradient.norms of the steps after it, and gradient(window=...)"
            )

    def _warn(self) -> None:
        """Warn where the derivative has grown out of proportion."""
        norms = self.gradient.norms
        direct = np.linalg.norm(self.given, axis=-1).max(axis=-1)
        for k, row in enumerate(norms):
            felt = np.flatnonzero(row)
            size = max(direct[k], row[felt[-1]]) if len(felt) else 0.0
            exploded = np.flatnonzero(row > EXPLOSION * size)
            if len(exploded):
                t = exploded[-1]
                warnings.warn(
                    f"{self._rollout(k)}the gradient explodes: in step {t}, on its way back, the "
                    f"derivative is {row[t] / size:.1e} times as large as where it began. "
                    "docs/rollouts.md says what to do",
                    RuntimeWarning,
                    stacklevel=4,
                )
                return

    def _rollout(self, k: int) -> str:
        return f"rollout {k}: " if self.trajectory.is_batch else ""
