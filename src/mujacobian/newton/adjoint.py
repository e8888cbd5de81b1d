"""Steps and resets on a tape, with their adjoints."""

from __future__ import annotations

from weakref import ref

import newton
import numpy as np
import warp as wp
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian.newton import effort_limits, guards
from mujacobian.newton.contacts import Pairs, found_by_warp
from mujacobian.newton.given_contacts import ContactCotangents, GivenContacts, add_rows
from mujacobian.newton.host import add_gradient, by_world, take_gradient
from mujacobian.newton.inputs import arrays
from mujacobian.newton.native import NativeWorlds
from mujacobian.newton.snapshot import InputCotangents, Snapshot


class TapedStep:
    """One taped step of all worlds: its inputs, its results and its adjoint."""

    def __init__(
        self,
        snapshot: Snapshot,
        solver: newton.solvers.SolverMuJoCo,
        state: newton.State,
        control: newton.Control | None,
        contacts: newton.Contacts | None,
        dt: float,
        before: TapedStep | None,
        watch: guards.Watch | NativeWorlds | None,
    ) -> None:
        # with update_data_interval > 1, some steps begin with MuJoCo's own coordinates
        number, interval = solver._step, solver.update_data_interval
        self.carried = interval == 0 or number % interval != 0
        self.snapshot, self.dt, self.number = snapshot, dt, number
        # the step that produced the activations and carried coordinates; the tape keeps it alive
        self.before = None if before is None else ref(before)
        # worlds whose activations and carried coordinates continue into the next step
        self.continues = np.ones(snapshot.coordinates.worlds, dtype=bool)
        self.start = state.joint_q, state.joint_qd
        self.inputs = arrays(state, control)
        W = snapshot.coordinates.worlds
        self.at = snapshot.coordinates.start(*(by_world(each, W) for each in self.start))
        self.given = {name: by_world(array, W) for name, array in self.inputs.items()}
        self.watch = watch  # of steps by MuJoCo C
        self.rows = snapshot.rows(self.at, self.given, snapshot.hidden(solver, self.carried))
        # cotangents of the state of MuJoCo that the next step continues
        model = snapshot.worlds.models[0]
        self.d_next = np.zeros((W, 2 * model.nv + model.na))
        # contacts that mujoco_warp finds, to compare them with those of MuJoCo C
        self.pairs: Pairs | None = None
        # contacts of Newton, with the poses from which Newton computes them
        self.given_contacts: GivenContacts | None = None
        self.contacts = contacts if snapshot.materials is not None else None
        self.poses_in = None if self.contacts is None else state.body_q
        self.body_q = np.empty((0, 7)) if self.poses_in is None else _double(self.poses_in)

    def finish(
        self, solver: newton.solvers.SolverMuJoCo, state: newton.State, observables: object
    ) -> None:
        """Store the results of the step; raise if it has no derivative."""
        if self.watch is not None:
            self.watch.judge()
        else:
            self.pairs = found_by_warp(solver)
        if self.contacts is not None:
            self.pairs = None
            self.given_contacts = GivenContacts(solver, self.contacts)
        data = solver.mj_data if solver.use_mujoco_cpu else solver.mjw_data
        W = self.snapshot.coordinates.worlds
        self.qpos, self.qvel = (
            np.array(each if isinstance(each, np.ndarray) else each.numpy(), dtype=np.float64)
            .reshape(W, -1)
            for each in (data.qpos, data.qvel)
        )  # fmt: skip
        self.result = state.joint_q, state.joint_qd
        self.result_q, self.result_qd = (by_world(each, W) for each in self.result)
        self.bodies = state.body_q, state.body_qd
        self.poses = tuple(each.numpy().copy() for each in self.bodies)
        self.observables = guards.observed(state, observables)
        guards.require_chain(self.given_arrays, (*self.result, *self.bodies))
        guards.require_finite(self.result_q, self.result_qd)

    @property
    def given_arrays(self) -> list[wp.array]:
        """The arrays that the step depends on."""
        parameters = self.snapshot.parameters.arrays
        found = [*self.start, *self.inputs.values(), *parameters.values()]
        if self.poses_in is not None and self.given_contacts is not None:
            found += [self.poses_in, *self.given_contacts.arrays.values()]
        return found

    @property
    def arrays(self) -> list[wp.array]:
        """All arrays of the step that have gradients, inputs and results."""
        observed = (array for _, array in self.observables)
        every = (*self.given_arrays, *self.result, *self.bodies, *observed)
        return [array for array in every if array.requires_grad]

    def pull_back(self) -> None:
        """Add to the gradients of the inputs, given the gradients of the results."""
        guards.refuse_observed(self.observables)
        d_q, d_v, of_frames = self._take_results()
        made = self.gradients(d_q, d_v, of_frames)
        arrays = dict(zip(("joint_q", "joint_qd"), self.start, strict=True))
        for name, array in (arrays | self.inputs | self.snapshot.parameters.arrays).items():
            add_gradient(array, made[name])

    def gradients(self, d_q: Array, d_v: Array, more: dict[str, Array]) -> dict[str, Array]:
        """Return the gradients of the state, the inputs and the model in double precision.

        d_q, d_v: gradients of joint_q and joint_qd after the step.
        more: further gradients of arrays of the model.
        """
        snapshot = self.snapshot
        c = snapshot.coordinates
        y, self.d_next = self.d_next, np.zeros_like(self.d_next)
        y_q, y_v = c.pull_result(self.qpos, self.qvel, d_q, d_v)
        nv = y_v.shape[-1]
        y[:, :nv] += y_q
        y[:, nv : 2 * nv] += y_v
        evaluated = np.any(y != 0, axis=-1)
        made = snapshot.pull(self.rows, self.dt, y, self.number, self.given_contacts)
        if self.pairs is not None:
            snapshot.compare(self.pairs, made.pairs, evaluated, self.rows, self.number)
        more = _sum(more, self._pull_contacts(made))
        if snapshot.efforts is not None and made.actuation is not None:
            more[effort_limits.NAME] = snapshot.efforts.pull(made.actuation, made.actions[1])
        if snapshot.frames.wanted:
            result = self.qpos, self.qvel, d_q, d_v
            moved = snapshot.frames.pull(result, self.at, self.given, made, self.carried)
            more = _sum(more, moved)
        x_q, x_v = made.q, made.v
        if self.carried:
            x_q, x_v = np.zeros_like(x_q), np.zeros_like(x_v)
        g_q, g_v = c.pull_start(self.at, x_q, x_v)
        g_inputs, turned = snapshot.inputs.pull(self.at, self.given, made.actions)
        g_q += turned
        if c.kinematic_q.any():  # the step copies coordinates of kinematic joints
            g_q += np.where(c.kinematic_q, d_q, 0)
            g_v += np.where(c.kinematic_v, d_v, 0)
        before = None if self.before is None else self.before()
        if before is not None:
            self._continue(before, made)
        of_model = snapshot.parameters.gradients(made.params)
        of_model |= {name: of_model[name] + more[name] for name in more if name in of_model}
        return {"joint_q": g_q, "joint_qd": g_v, **g_inputs, **of_model}

    def _continue(self, before: TapedStep, made: InputCotangents) -> None:
        """Pass cotangents to the step whose state of MuJoCo this one continues."""
        nv = made.v.shape[-1]
        if self.carried:
            before.d_next[:, :nv], before.d_next[:, nv : 2 * nv] = made.q, made.v
        before.d_next[:, 2 * nv :] = made.act
        before.d_next *= before.continues[:, None]

    def _pull_contacts(self, made: InputCotangents) -> dict[str, Array]:
        """Add to the gradients of given contacts and of the poses from which they follow.

        The result is the gradients of arrays of the model that determine contacts. Those that do so
        through invweight0 are added to the core parameters.
        """
        given, materials = self.given_contacts, self.snapshot.materials
        if given is None or materials is None or made.contacts is None:
            return {}
        assert self.poses_in is not None
        d = ContactCotangents.split(made.contacts)
        of_contacts, d_bodies = given.pull(d, self.body_q, materials.body, materials.margin)
        of_shapes, of_properties = materials.pull(given, d, made.params)
        add_gradient(self.poses_in, d_bodies)
        for name, gradient in (of_contacts | of_properties).items():
            add_rows(given.arrays[name], given.row, gradient)
        return of_shapes

    def _take_results(self) -> tuple[Array, Array, dict[str, Array]]:
        """Return the gradients of the coordinates after the step, and set them to zero.

        The last result is gradients of frames, which determine the poses of bodies. The step has
        overwritten these arrays, so their earlier values do not influence the loss.
        """
        c = self.snapshot.coordinates
        d_body = [take_gradient(each, c.worlds) for each in self.bodies]
        d_q = take_gradient(self.result[0], c.worlds, c.written_q)
        d_v = take_gradient(self.result[1], c.worlds, c.written_v)
        if any(each.any() for each in d_body):
            result = self.result_q, self.result_qd
            more_q, more_v, frames = self.snapshot.kinematics.pull(result, self.poses, d_body)
            return d_q + more_q, d_v + more_v, frames
        return d_q, d_v, {}


class TapedReset:
    """A taped reset, which copies `joint_q` and `joint_qd` of the model into a state."""

    def __init__(
        self, model: newton.Model, state: newton.State, worlds: NDArray[np.bool_], flags: int
    ) -> None:
        self.worlds = worlds
        kinds = newton.StateFlags.JOINT_Q, newton.StateFlags.JOINT_QD
        pairs = (state.joint_q, model.joint_q), (state.joint_qd, model.joint_qd)
        self.pairs = [pair for pair, kind in zip(pairs, kinds, strict=True) if flags & kind]

    @property
    def arrays(self) -> list[wp.array]:
        """The arrays of the state and of the model that have gradients."""
        return [array for pair in self.pairs for array in pair if array.requires_grad]

    def pull_back(self) -> None:
        """Move the gradients of the reset coordinates from the state to the model."""
        for array, source in self.pairs:
            add_gradient(source, take_gradient(array, len(self.worlds), self.worlds[:, None]))


def _sum(first: dict[str, Array], second: dict[str, Array]) -> dict[str, Array]:
    """Return the sums of gradients of arrays."""
    made = {name: values.reshape(-1) for name, values in first.items()}
    for name, values in second.items():
        flat = values.reshape(-1)
        made[name] = made[name] + flat if name in made else flat
    return made


def _double(array: wp.array) -> Array:
    """Return a copy in double precision."""
    values: Array = array.numpy().astype(np.float64)
    return values
