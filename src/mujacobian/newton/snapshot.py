"""The model data that the derivative of a step needs, as they were when the step was taken."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import newton
import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian._parameters.fields import KINDS
from mujacobian._state_fields import state_fields
from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton import effort_limits
from mujacobian.newton.contact_materials import ContactMaterials
from mujacobian.newton.contacts import Pairs, warn_of_difference
from mujacobian.newton.coordinates import Coordinates, Start
from mujacobian.newton.effort_limits import EffortLimits
from mujacobian.newton.frame_parameters import COM
from mujacobian.newton.given_contacts import GivenContacts
from mujacobian.newton.inputs import Actions, Inputs
from mujacobian.newton.internals import Maps
from mujacobian.newton.joint_frames import JointFrames
from mujacobian.newton.kinematics import Kinematics
from mujacobian.newton.model_parameters import ModelParameters
from mujacobian.newton.worlds import Worlds

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
    params: Array
    contacts: Array | None  # one row per given contact
    actuation: Array | None  # forces of actuators on dofs, if the effort limits need them
    centers: Array | None  # centers of mass, at which wrenches act, if their gradients are wanted
    # hash of the contacts of each world; zero if the world was not evaluated
    pairs: NDArray[np.uint64]


class Snapshot:
    """The models, index maps and parameters of a solver at one time."""

    def __init__(
        self,
        solver: newton.solvers.SolverMuJoCo,
        maps: Maps,
        wanted: tuple[str, ...],
        given_contacts: bool,
    ) -> None:
        model = solver.model
        self.contacts_agree = True  # False after the first warning, which is shown once
        self.worlds = Worlds(solver, given_contacts=given_contacts)
        gravcomp = np.broadcast_to(
            self.worlds.values("body_gravcomp"), (maps.worlds, solver.mj_model.nbody)
        )
        self.coordinates = Coordinates(model, maps)
        self.inputs = Inputs(model, maps, self.coordinates, gravcomp)
        # RK4 maps a wrench on a body to joint forces at several poses of the step
        self.moves_wrenches = solver.mj_model.opt.integrator == int(mujoco.mjtIntegrator.mjINT_RK4)
        bodies = range(solver.mj_model.nbody if self.moves_wrenches else 0)
        self._wrenches = [(KINDS["wrench"], b, k) for b in bodies for k in range(6)]
        self.kinematics = Kinematics(model, wanted)
        self.parameters = ModelParameters(
            model, maps, self.worlds, self.inputs, wanted, given_contacts
        )
        self.efforts = (
            EffortLimits(model, maps, self.worlds) if effort_limits.NAME in wanted else None
        )
        self.frames = JointFrames(model, maps, self.coordinates, self.inputs, wanted)
        self.materials = (
            ContactMaterials(solver, self.worlds, self.parameters) if given_contacts else None
        )
        self._state = state_fields(solver.mj_model)

    @property
    def state_size(self) -> int:
        """The number of columns of `rows`."""
        return int(self._state[-1][1].stop)

    def hidden(
        self, solver: newton.solvers.SolverMuJoCo, carried: bool = False
    ) -> dict[str, Array]:
        """Return the state in MuJoCo that a Newton `State` lacks, one row per world.

        carried: whether the step begins with MuJoCo's own coordinates.
        """
        names = (*_HIDDEN, "qpos", "qvel") if carried else _HIDDEN
        if solver.use_mujoco_cpu:
            return {name: np.array(getattr(solver.mj_data, name))[None] for name in names}
        return {name: getattr(solver.mjw_data, name).numpy() for name in names}

    def rows(self, at: Start, given: dict[str, Array], hidden: dict[str, Array]) -> Array:
        """Return mjSTATE_INTEGRATION of every world at the start of a step, one row per world."""
        qpos, qvel = self.coordinates.to_mujoco(at)
        ctrl, qfrc, xfrc = self.inputs.to_mujoco(at, given)
        values = {"qpos": qpos, "qvel": qvel, "ctrl": ctrl, "qfrc_applied": qfrc} | hidden
        values["xfrc_applied"] = xfrc
        rows = np.zeros((self.worlds.count, self.state_size))
        for name, columns in self._state:
            if name in values and columns.start < columns.stop:
                rows[:, columns] = values[name].reshape(len(rows), -1)
        return rows

    def pull(
        self,
        rows: Array,
        dt: float,
        state: Array,
        number: int,
        contacts: GivenContacts | None,
    ) -> InputCotangents:
        """Pull cotangents of the state after the step back to the inputs of all worlds.

        rows: mjSTATE_INTEGRATION of every world at the start of the step.
        state: cotangents of qpos, qvel and act after the step, one row per world; overwritten.
        number: index of the step, for messages.
        contacts: contacts of Newton; None if MuJoCo finds its own.
        """
        model, W = self.worlds.models[0], len(rows)
        ctrl, qfrc = np.zeros((W, model.nu)), np.zeros((W, model.nv))
        xfrc = np.zeros((W, model.nbody, 6))
        core = [*self.parameters.core, *self._wrenches]
        params = np.zeros((W, len(core)))
        actuation = None if self.efforts is None else np.zeros((W, model.nv))
        moves_centers = COM in self.parameters.arrays and not self.moves_wrenches
        centers = np.zeros((W, model.nbody, 3)) if moves_centers else None
        pairs = np.zeros(W, dtype=np.uint64)
        d_contacts = None if contacts is None else contacts.cotangents()
        self.worlds.set_timestep(dt)
        try:
            self.worlds.core.pull_back(
                start=rows,
                parameters=core,
                state=state,
                ctrl=ctrl,
                force=qfrc,
                wrench=None if self.moves_wrenches else xfrc,
                center=centers,
                params=params,
                actuation=actuation,
                pairs=pairs,
                contacts=None if contacts is None else contacts.numbers,
                geoms=None if contacts is None else contacts.geoms,
                first=None if contacts is None else contacts.first,
                d_contacts=d_contacts,
                number=number,
            )
        except UnsupportedFeatureError as error:
            if self.parameters.core:
                names = ", ".join(self.parameters.arrays)
                error.add_note(
                    f"with gradients of {names}: DifferentiableMuJoCo(..., parameters=())"
                    " computes no gradients of the model"
                )
            raise
        self.parameters.require(self.worlds, rows)
        if self.moves_wrenches:
            params, of_bodies = np.split(params, [len(self.parameters.core)], axis=1)
            xfrc = of_bodies.reshape(xfrc.shape)
        q, v, act = np.split(state, [model.nv, 2 * model.nv], axis=-1)
        actions = ctrl, qfrc, xfrc
        return InputCotangents(q, v, act, actions, params, d_contacts, actuation, centers, pairs)

    def compare(
        self,
        warp: Pairs,
        found: NDArray[np.uint64],
        evaluated: NDArray[np.bool_],
        rows: Array,
        number: int,
    ) -> None:
        """Warn once if MuJoCo C found other contacts than mujoco_warp in an evaluated world."""
        differ = evaluated & (found != warp.hashes)
        if not self.contacts_agree or not differ.any():
            return
        world = int(np.flatnonzero(differ)[0])
        model, data = self.worlds.at(world), self.worlds.data
        mujoco.mj_setState(model, data, rows[world], INTEGRATION)
        mujoco.mj_forward(model, data)
        self.contacts_agree = False
        warn_of_difference(warp, data, world, number)
