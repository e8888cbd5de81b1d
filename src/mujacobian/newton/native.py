"""Steps of several worlds by MuJoCo C, in the place of those of mujoco_warp.

Newton 1.7 simulates only the first world with MuJoCo C. Here Newton converts the states and inputs
of all worlds to the data of mujoco_warp and back, and MuJoCo C takes the step in between.
"""

from __future__ import annotations

from typing import Any

import newton
import numpy as np

from mujacobian import _core
from mujacobian._state_fields import state_fields
from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton import guards
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
            (_core.STEP_FULL, guards.refuse_full_memory),
            (_core.STEP_DIVERGED, guards.refuse_divergence),
        ):
            found = np.flatnonzero(self._outcome == outcome)
            if len(found):
                refuse(f"world {found[0]}: ")


class NativeSolver(newton.solvers.SolverMuJoCo):  # type: ignore[misc]
    """A `SolverMuJoCo` whose option `use_mujoco_cpu` simulates all worlds."""

    _native: NativeWorlds | None = None  # None before the first step and after an edit

    def __init__(self, model: newton.Model, **options: Any) -> None:  # noqa: ANN401
        # Newton converts coordinates of several worlds only for mujoco_warp
        self._in_c = bool(options.get("use_mujoco_cpu")) and model.world_count > 1
        if self._in_c:
            options = {"separate_worlds": True, **options, "use_mujoco_cpu": False}
        super().__init__(model, **options)
        if self._in_c:
            guards.refuse_native(self)

    def step(
        self,
        state_in: newton.State,
        state_out: newton.State,
        control: newton.Control | None,
        contacts: newton.Contacts | None,
        dt: float,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Take a step like `SolverMuJoCo.step`."""
        if self._in_c:
            guards.refuse_native_step(self.model, state_out, options.get("observables"))
        super().step(state_in, state_out, control, contacts, dt, **options)

    def notify_model_changed(self, flags: int) -> None:
        """Apply edits of the Newton model, like `SolverMuJoCo.notify_model_changed`."""
        super().notify_model_changed(flags)
        self._native = None

    def update_contacts(self, contacts: newton.Contacts, state: newton.State | None = None) -> None:
        """Copy the contacts of mujoco_warp, like `SolverMuJoCo.update_contacts`.

        Args:
          contacts: contacts of Newton, which are written.
          state: state after the step.
        """
        if self._in_c:
            raise UnsupportedFeatureError(
                "update_contacts with several worlds and use_mujoco_cpu=True",
                "MuJoCo C does not pass its contacts to Newton",
            )
        super().update_contacts(contacts, state)

    def _mujoco_warp_step(self) -> None:
        """Take a step of the data of mujoco_warp. Newton calls this."""
        if self._in_c:
            self._native_worlds().step(self)
        else:
            super()._mujoco_warp_step()

    def _native_worlds(self) -> NativeWorlds:
        if self._native is None:
            self._native = NativeWorlds(self)
        return self._native

    def _watch(self) -> guards.Watch | NativeWorlds | None:
        """Return what judges the next step, if MuJoCo C takes it."""
        if self._in_c:
            return self._native_worlds()
        return guards.Watch(self.mj_data) if self.use_mujoco_cpu else None

    @property
    def _uses_warp(self) -> bool:
        """Whether mujoco_warp simulates."""
        return not (self.use_mujoco_cpu or self._in_c)
