"""Steps of trajectories without an exact derivative, which finite differences differentiate."""

from __future__ import annotations

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._differenced import Differenced
from mujacobian._linearization import Linearization

STATE = mujoco.mjtState.mjSTATE_INTEGRATION


class RefusedSteps:
    """The steps of a trajectory that are differenced, with the reports of all threads."""

    def __init__(self, model: mujoco.MjModel, *, is_batch: bool) -> None:
        self.model, self.is_batch = model, is_batch
        self.reports: list[Differenced] = []

    def linearize(
        self,
        k: int,
        t: int,
        start: Array,
        data: mujoco.MjData,
        *,
        forces: bool,
        sensed: Array | None,
    ) -> Linearization:
        """Return the linearization of step t of rollout k, at a row of mjSTATE_INTEGRATION.

        Rows of sensors are zero where `sensed` is zero, because nothing depends on them.
        """
        from mujacobian import _fallback  # it imports the reference solution

        mujoco.mj_setState(self.model, data, start, STATE)
        wanted = None
        if sensed is not None:
            ends = self.model.sensor_adr + self.model.sensor_dim
            wanted = [
                bool(np.any(sensed[lo:hi]))
                for lo, hi in zip(self.model.sensor_adr, ends, strict=True)
            ]
        lin = _fallback.linearize(
            self.model,
            data,
            sensors=sensed is not None,
            forces=forces,
            wanted=wanted,
            index=(k, t) if self.is_batch else (t,),
        )
        self.reports.extend(lin.differenced)
        return lin

    @property
    def differenced(self) -> tuple[Differenced, ...]:
        """The reports in the order of the steps."""
        return tuple(sorted(self.reports, key=lambda report: report.index))
