"""The model data that the derivative of a step needs, as they were when the step was taken."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import newton
import numpy as np

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton.contacts import Pairs, compare
from mujacobian.newton.coordinates import Coordinates, Start
from mujacobian.newton.guards import Watch
from mujacobian.newton.inputs import Actions, Inputs
from mujacobian.newton.internals import Maps
from mujacobian.newton.kinematics import Kinematics
from mujacobian.newton.mirror import Worlds
from mujacobian.newton.parameters import ModelParameters

INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
# state that MuJoCo keeps between steps and Newton's State lacks
_HIDDEN = ("act", "qacc_warmstart", "eq_active", "mocap_pos", "mocap_quat")


@dataclass(frozen=True)
class InputCotangents:
    """Cotangents of the inputs of a MuJoCo step, one row per world."""

    q: Array
    v: Array
    act: Array
    actions: Actions
    params: list[Array]


class Snapshot:
    """The models, index maps and parameters of a solver at one time."""

    def __init__(
        self,
        solver: newton.solvers.SolverMuJoCo,
        maps: Maps,
        wanted: tuple[str, ...],
    ) -> None:
        model = solver.model
        self.contacts_agree = True  # False after the first warning, which is shown once
        self.worlds = Worlds(solver)
        gravcomp = np.array([mj.body_gravcomp for mj in self.worlds.models])
        self.coordinates = Coordinates(model, maps)
        self.inputs = Inputs(model, maps, self.coordinates, gravcomp)
        # RK4 maps a wrench on a body to joint forces at several poses of the step
        self.moves_wrenches = solver.mj_model.opt.integrator == int(mujoco.mjtIntegrator.mjINT_RK4)
        self.kinematics = Kinematics(model)
        self.parameters = ModelParameters(model, maps, self.worlds.models, self.inputs, wanted)

    def hidden(self, solver: newton.solvers.SolverMuJoCo) -> dict[str, Array]:
        """Return the state in MuJoCo that a Newton `State` lacks, one row per world."""
        if solver.use_mujoco_cpu:
            return {name: np.array(getattr(solver.mj_data, name))[None] for name in _HIDDEN}
        return {name: np.array(getattr(solver.mjw_data, name).numpy()) for name in _HIDDEN}

    def rows(self, at: Start, given: dict[str, Array], hidden: dict[str, Array]) -> list[Array]:
        """Return mjSTATE_INTEGRATION of every world at the start of a step."""
        qpos, qvel = self.coordinates.to_mujoco(at)
        ctrl, qfrc, xfrc = self.inputs.to_mujoco(at, given)
        rows = []
        for world, (model, data) in enumerate(self.worlds):
            data.qpos, data.qvel = qpos[world], qvel[world]
            data.ctrl, data.qfrc_applied, data.xfrc_applied = ctrl[world], qfrc[world], xfrc[world]
            for name, values in hidden.items():
                getattr(data, name)[...] = values[world].reshape(getattr(data, name).shape)
            row = np.empty(mujoco.mj_stateSize(model, INTEGRATION))
            mujoco.mj_getState(model, data, row, INTEGRATION)
            rows.append(row)
        return rows

    def pull(
        self,
        rows: list[Array],
        dt: float,
        y_q: Array,
        y_v: Array,
        y_act: Array,
        number: int,
        pairs: list[Pairs],
    ) -> InputCotangents:
        """Pull cotangents of the state after the step back to the inputs of all worlds.

        rows: mjSTATE_INTEGRATION of every world at the start of the step.
        y_q, y_v, y_act: cotangents of the state after the step, one row per world.
        number: index of the step, for messages.
        pairs: contacts that mujoco_warp found; empty if MuJoCo C took the step.
        """
        first, W = self.worlds.models[0], len(rows)
        nv, nu = first.nv, first.nu
        state = np.concatenate([y_q, y_v, y_act], axis=-1)
        ctrl, qfrc, xfrc = np.zeros((W, nu)), np.zeros((W, nv)), np.zeros((W, first.nbody, 6))
        params = [np.zeros(len(core)) for core in self.parameters.core]
        for world, (model, data) in enumerate(self.worlds):
            if not state[world].any():
                continue
            model.opt.timestep = dt
            here = slice(world, world + 1)
            core = self.parameters.core[world]
            wrenches = None if self.moves_wrenches else xfrc[here]
            watch = Watch(data)
            try:
                _core.pull_back_into(
                    model,
                    data,
                    start=rows[world][None],
                    steps=1,
                    d_states=None,
                    d_sensors=None,
                    parameters=core,
                    ctrl=ctrl[here],
                    force=qfrc[here],
                    wrench=wrenches,
                    mocap=None,
                    params=params[world],
                    norms=None,
                    cotangent=state[world],
                    first=number,
                )
            except UnsupportedFeatureError as error:
                if W > 1:
                    error.add_note(f"in world {world}")
                if core:
                    names = ", ".join(self.parameters.arrays)
                    error.add_note(
                        f"with gradients of {names}: DifferentiableMuJoCo(..., parameters=())"
                        " computes no gradients of the model"
                    )
                raise
            watch.judge()
            self.parameters.require(world, data)
            if pairs and self.contacts_agree:
                self.contacts_agree = compare(pairs[world], data, world, number)
        q, v, act = np.split(state, [nv, 2 * nv], axis=-1)
        return InputCotangents(q, v, act, (ctrl, qfrc, xfrc), params)
