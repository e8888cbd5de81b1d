"""Steps of several worlds by MuJoCo C, in the place of those of mujoco_warp.

Newton 1.7 simulates only the first world with MuJoCo C. Here Newton converts the states and inputs
of all worlds to the data of mujoco_warp and back, and MuJoCo C takes the step in between.
"""

from __future__ import annotations

import newton
import numpy as np

from mujacobian import _core
from mujacobian.newton.guards import refuse_divergence, refuse_full_memory
from mujacobian.newton.snapshot import state_fields
from mujacobian.newton.worlds import Worlds

# the state that a step changes
_WRITTEN = ("time", "qpos", "qvel", "act", "qacc_warmstart")


class NativeWorlds:
    """The models of all worlds, with the options of the solver, and the outcomes of a step."""

    def __init__(self, solver: newton.solvers.SolverMuJoCo) -> None:
        self._worlds = Worlds(solver, converged=False)
        fields = state_fields(solver.mj_model)
        self._size = fields[-1][1].stop
        self._fields = [(name, part) for name, part in fields if part.start < part.stop]
        self._outcome = np.zeros(self._worlds.count, dtype=np.int32)

    def step(self, solver: newton.solvers.SolverMuJoCo) -> None:
        """Take a step of all worlds from the data of mujoco_warp to the same data."""
        data, worlds = solver.mjw_data, self._worlds
        start = np.empty((worlds.count, self._size))
        for name, columns in self._fields:
            start[:, columns] = getattr(data, name).numpy().reshape(worlds.count, -1)
        after = np.empty_like(start)
        worlds.set_timestep(float(solver.mjw_model.opt.timestep.numpy()[0]))
        worlds.core.step(start=start, next=after, outcome=self._outcome, number=solver._step)
        for name, columns in self._fields:
            if name in _WRITTEN:
                array = getattr(data, name)
                array.assign(after[:, columns].astype(np.float32).reshape(array.shape))

    def judge(self) -> None:
        """Raise if a world diverged in the last step, or dropped contacts or constraints."""
        for outcome, refuse in (
            (_core.STEP_FULL, refuse_full_memory),
            (_core.STEP_DIVERGED, refuse_divergence),
        ):
            found = np.flatnonzero(self._outcome == outcome)
            if len(found):
                refuse(f"world {found[0]}: ")
