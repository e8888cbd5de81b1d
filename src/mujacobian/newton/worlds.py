"""MuJoCo models of all worlds in double precision, and steps of all worlds."""

from __future__ import annotations

import copy
import ctypes
from functools import cached_property

import mujoco
import newton
import numpy as np
from numpy.typing import NDArray

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian._convergence import converge
from mujacobian._layout import offset_of
from mujacobian._parameters.inertia import restore_derived
from mujacobian._threads import available_cores
from mujacobian.newton.mirror import (
    UNIT,
    Values,
    of_world,
    release_geom_frames,
    release_inertial_frames,
    values_of,
    write,
)

_GEOM_FRAMES = {"geom_pos", "geom_quat", "geom_size"}
_INERTIAL_FRAMES = {"body_ipos", "body_iquat"}
# fields from which MuJoCo's compiler derives others
_SOURCES = {
    "body_mass", "body_inertia", "jnt_pos", "jnt_axis", "dof_armature", *_INERTIAL_FRAMES
}  # fmt: skip
# meaninertia only scales the tolerance of MuJoCo's solver, which converges here
_IGNORED = {"stat.meaninertia", "body_subtreemass"}


class Worlds:
    """The models of all worlds, copied at construction.

    All worlds share one model per thread. Only the fields that differ between worlds are stored per
    world. They are written into the model before it is used for a world.
    """

    def __init__(
        self,
        solver: newton.solvers.SolverMuJoCo,
        *,
        given_contacts: bool = False,
        converged: bool = True,
    ) -> None:
        """Copy the models.

        given_contacts: whether the caller gives all contacts.
        converged: whether solvers and colliders converge, even if those of the simulation stop
          early, and nothing sleeps. Derivatives need this.
        """
        self.count = solver.mjw_data.nworld
        model = copy.copy(solver.mj_model)
        self._fields: dict[str, Array] = {}  # (worlds, size)
        values: Values = {}
        if not solver.use_mujoco_cpu:
            values = values_of(solver)
            write(model, of_world(values, 0))
        if converged:
            converge(model)
            model.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)
        if given_contacts:
            _separate_geoms(model)
        self._store(model, values)
        threads = min(available_cores(), self.count)
        copies = [copy.copy(model) if self._fields else model for _ in range(threads - 1)]
        self.models = [model, *copies]
        self._targets = {name: [view(each, name) for each in self.models] for name in self._fields}
        self.core = _core.Worlds(
            self.models, list(self._fields.values()), list(self._targets.values())
        )

    def at(self, world: int) -> mujoco.MjModel:
        """Return the model with the numbers of a world. It is valid until the next call."""
        for name, values in self._fields.items():
            self._targets[name][0][:] = values[world]
        return self.models[0]

    @cached_property
    def data(self) -> mujoco.MjData:
        """An `MjData` for the model of any world."""
        return mujoco.MjData(self.models[0])

    def values(self, name: str) -> Array:
        """Return a field of all worlds, (worlds or 1, ...)."""
        field = getattr(self.models[0], name)
        return self._fields[name].reshape(-1, *field.shape) if name in self._fields else field[None]

    @property
    def differ(self) -> bool:
        """Whether the models of two worlds differ."""
        return bool(self._fields)

    def set_timestep(self, dt: float) -> None:
        """Set the time step of all models [s]."""
        for model in self.models:
            model.opt.timestep = dt

    def _store(self, model: mujoco.MjModel, values: Values) -> None:
        """Store the fields that differ between worlds, and fields that MuJoCo derives from them."""
        for name, batch in values.items():
            if name not in _IGNORED and (batch != batch[:1]).any():
                self._fields[name] = _spread(view(model, name), name, batch)
        names = set(self._fields)
        if names & _GEOM_FRAMES:
            release_geom_frames(model)
        if not names & _SOURCES:
            return
        derived = {name: view(model, name) for name in ("body_subtreemass", "dof_M0")}
        if names & _INERTIAL_FRAMES:
            derived["bvh_aabb"] = view(model, "bvh_aabb")
        made = {name: np.empty((self.count, field.size)) for name, field in derived.items()}
        stored = [(view(model, name), rows) for name, rows in self._fields.items()]
        for world in (*range(self.count), 0):  # the model ends with the numbers of the first world
            for field, rows in stored:
                field[:] = rows[world]
            if names & _INERTIAL_FRAMES:
                release_inertial_frames(model)
            restore_derived(model)
            for name, field in derived.items():
                made[name][world] = field
        self._fields.update((name, rows) for name, rows in made.items() if rows.size)


def view(model: mujoco.MjModel, name: str) -> NDArray[np.float64]:
    """Return a flat, writable view of a field of the model or of its options."""
    part, _, last = name.rpartition(".")
    if not part:
        field: NDArray[np.float64] = getattr(model, last)
        return field.reshape(-1)
    size = np.size(getattr(model.opt, last))
    gravity = model.opt.gravity.ctypes.data
    address = gravity + offset_of("mjOption", last) - offset_of("mjOption", "gravity")
    return np.ctypeslib.as_array((ctypes.c_double * size).from_address(address))


def _spread(field: Array, name: str, batch: Array) -> Array:
    """Return the values of all worlds, (worlds, size).

    Values that agree with the field in single precision keep its double precision.
    """
    given = batch.astype(np.float64).reshape(len(batch), -1)
    differs = field.astype(np.float32) != given.astype(np.float32)
    if name in UNIT:
        width = batch.shape[-1]
        rows = given.reshape(len(batch), -1, width)
        given = (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).reshape(given.shape)
        turned = differs.reshape(rows.shape).any(axis=-1, keepdims=True)
        differs = np.broadcast_to(turned, rows.shape).reshape(given.shape)
    return np.ascontiguousarray(np.where(differs, given, field))


def _separate_geoms(model: mujoco.MjModel) -> None:
    """Let MuJoCo find no contacts, because the caller gives them.

    The bits of no two geoms agree, but all geoms still count as colliding, so that constants
    derived from masses include the weights of their bodies.
    """
    model.geom_contype[:], model.geom_conaffinity[:] = 1, 2
    model.pair_margin[:] = -mujoco.mjMAXVAL
