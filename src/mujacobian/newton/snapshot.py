"""All that the derivative of a step needs of a model, as it was when the step was taken."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import newton
import numpy as np
from numpy.typing import NDArray

from mujacobian import _core
from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton.contacts import Pairs, compare
from mujacobian.newton.coordinates import Coordinates, Start
from mujacobian.newton.guards import Watch
from mujacobian.newton.inputs import Actions, Inputs
from mujacobian.newton.internals import Maps
from mujacobian.newton.kinematics import Kinematics
from mujacobian.newton.mirror import Worlds
from mujacobian.newton.parameters import ModelParameters

Array = NDArray[np.float64]

INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
# what a world keeps from step to step and Newton's State does not have
_HIDDEN = ("act", "qacc_warmstart", "eq_active", "mocap_pos", "mocap_quat")


@dataclass(frozen=True)
class Pulled:
    """Derivatives with respect to what a step of MuJoCo begins with, a row per world."""

    q: Array
    v: Array
    act: Array
    actions: Actions
    params: list[Array]


class Snapshot:
    """The model of a solver."""

    def __init__(
        self,
        solver: newton.solvers.SolverMuJoCo,
        maps: Maps,
        wanted: tuple[str, ...],
    ) -> None:
        model = solver.model
        self.contacts_agree = True  # until they do not, which is said once
        self.worlds = Worlds(solver)
        gravcomp = np.array([mj.body_gravcomp for mj in self.worlds.models])
        self.coordinates = Coordinates(model, maps)
        self.inputs = Inputs(model, maps, self.coordinates, gravcomp)
        # RK4 turns a wrench on a body into joint forces at several poses
        self.moves_wrenches = solver.mj_model.opt.integrator == int(mujoco.mjtIntegrator.mjINT_RK4)
        self.kinematics = Kinematics(model)
        self.parameters = ModelParameters(model, maps, self.worlds.models, self.inputs, wanted)

    def hidden(self, solver: newton.solvers.SolverMuJoCo) -> dict[str, Array]:
        """What the worlds have in MuJoCo that is not in a State, a row per world."""
        if solver.use_mujoco_cpu:
            return {name: np.array(getattr(solver.mj_data, name))[None] for name in _HIDDEN}
        return {name: np.array(getattr(solver.mjw_data, name).numpy()) for name in _HIDDEN}

    def rows(self, at: Start, given: dict[str, Array], hidden: dict[str, Array]) -> list[Array]:
        """mjSTATE_INTEGRATION of every world at the beginning of a step."""
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
    ) -> Pulled:
        """Derivatives with respect to what the worlds' steps return, as those of their start.

        `pairs` are the contacts of mujoco_warp, if it took the step: the number-th of the solver.
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
                        f"with gradients of {names}: parameters=() of DifferentiableMuJoCo leaves"
                        " gradients of the model out"
                    )
                raise
            watch.judge()
            self.parameters.require(world, data)
            if pairs and self.contacts_agree:
                self.contacts_agree = compare(pairs[world], data, world, number)
        q, v, act = np.split(state, [nv, 2 * nv], axis=-1)
        return Pulled(q, v, act, (ctrl, qfrc, xfrc), params)
