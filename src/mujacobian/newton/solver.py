"""Newton's SolverMuJoCo with exact gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import newton
import numpy as np
import warp as wp

from mujacobian.errors import ArgumentError
from mujacobian.newton import guards, mirror
from mujacobian.newton.adjoint import TapedReset, TapedStep
from mujacobian.newton.internals import Maps, read_maps, require_versions, suspended_tape
from mujacobian.newton.linearization import NewtonLinearization, linearize_world
from mujacobian.newton.native import NativeSolver
from mujacobian.newton.parameters import array_of
from mujacobian.newton.selection import select
from mujacobian.newton.snapshot import Snapshot


class DifferentiableMuJoCo(NativeSolver):
    """A `SolverMuJoCo` whose steps have exact gradients under a `wp.Tape`.

    `tape.backward` adds to three groups of gradients: `joint_q`, `joint_qd` and `body_f` of the
    states; `joint_f`, the joint targets and `mujoco.ctrl` of the controls; and the model arrays in
    `parameters`. Without a tape, a step is the same as a step of `SolverMuJoCo`.

    Args:
      model: Newton model, made with `finalize(requires_grad=True)`.
      parameters: names of the model arrays that receive gradients, such as `"body_mass"`. The
        default is every array in `mujacobian.newton.PARAMETERS` that requires gradients and has a
        derivative in this model, except `shape_transform`, `shape_scale`, `joint_X_p` and
        `joint_X_c`. One warning names the arrays without a derivative. Any other name raises
        `UnsupportedFeatureError`. `finalize(requires_grad=True)` makes all arrays require
        gradients, but the gradients of unsupported arrays stay zero.
      **options: keyword arguments of `SolverMuJoCo`. With `use_mujoco_cpu=True`, MuJoCo C
        simulates all worlds in double precision. Otherwise mujoco_warp simulates them.
        The gradients are then those of MuJoCo C at the states that mujoco_warp reaches, computed
        in double precision on the host.

    Example:
      >>> import newton, warp as wp
      >>> from mujacobian.newton import DifferentiableMuJoCo
      >>> builder = newton.ModelBuilder()
      >>> link = builder.add_link(mass=1.0, inertia=wp.mat33(*[.1, 0, 0, 0, .1, 0, 0, 0, .1]))
      >>> builder.add_articulation([builder.add_joint_revolute(-1, link, axis=(0, 1, 0))])
      >>> model = builder.finalize(requires_grad=True)
      >>> solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
      >>> before, after, control = model.state(), model.state(), model.control()
      >>> with wp.Tape() as tape:
      ...     solver.step(before, after, control, None, 0.01)
      >>> tape.backward(grads={after.joint_q: wp.ones_like(after.joint_q)})
      >>> bool(before.joint_q.grad.numpy() == 1)
      True
    """

    # None while the constructor of SolverMuJoCo runs, which already calls notify_model_changed
    _maps: Maps | None = None
    _snapshot: Snapshot | None = None
    # the last taped step and its tape; the next step passes the cotangent of activations to it
    _last: TapedStep | None = None
    _last_tape: wp.Tape | None = None

    def __init__(
        self,
        model: newton.Model,
        *,
        parameters: Sequence[str] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        require_versions()
        guards.require_options(model, options)
        if parameters is not None:
            guards.require_parameters(model, tuple(parameters))
        with suspended_tape():
            super().__init__(model, **options)
        self._maps = read_maps(self)
        self._wanted = select(model, self._maps, self.mj_model, parameters)
        self._without = guards.without_gradient(model, self._wanted)
        self._published = self._values()
        self._published_mocap = self._mocap()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the model arrays that receive gradients; those of all others stay zero."""
        found = ((name, array_of(self.model, name)) for name in self._wanted)
        return tuple(
            name
            for name, array in found
            if array is not None and array.size and array.requires_grad
        )

    def step(
        self,
        state_in: newton.State,
        state_out: newton.State,
        control: newton.Control | None,
        contacts: newton.Contacts | None,
        dt: float,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Take a step like `SolverMuJoCo.step`, and record its adjoint if a tape is active.

        Args:
          state_in: state before the step.
          state_out: state after the step, which is written.
          control: controls during the step; a taped step requires them.
          contacts: contacts of Newton, if the solver has `use_mujoco_contacts=False`; otherwise not
            used, because MuJoCo finds its own contacts.
          dt: time step [s].
          **options: other keyword arguments of `SolverMuJoCo.step`.
        """
        with suspended_tape() as tape:
            before = self._last if tape is self._last_tape else None
            self._last = self._last_tape = taken = None
            if tape is not None:
                guards.refuse_capture(self.model)
                guards.require_contacts(self, contacts)
                guards.refuse_sleep(self)
                taken = TapedStep(
                    self._current_snapshot(), self, state_in, control, contacts, dt, before,
                    self._watch(),
                )  # fmt: skip
            super().step(state_in, state_out, control, contacts, dt, **options)
            if tape is None or taken is None:
                return
            guards.refuse_sleep(self)
            taken.finish(self, state_out, options.get("observables"))
            self._last, self._last_tape = taken, tape
        if taken.arrays or before is not None:
            tape.record_func(taken.pull_back, taken.arrays)

    def reset(
        self,
        state: newton.State,
        world_mask: wp.array | None = None,
        flags: newton.StateFlags | int | None = None,
    ) -> None:
        """Reset the state like `SolverMuJoCo.reset`.

        Gradients do not flow to the values that the reset overwrites; they flow to the `joint_q`
        and `joint_qd` of the model instead.

        Args:
          state: state that is overwritten.
          world_mask: worlds to reset, one boolean per world; by default all.
          flags: parts of the state to reset, as `newton.StateFlags`; by default all.
        """
        with suspended_tape() as tape:
            if tape is not None:
                guards.refuse_reset(self.update_data_interval)
            super().reset(state, world_mask, flags)
            worlds = np.ones(self.model.world_count, dtype=bool)
            if world_mask is not None:
                worlds = world_mask.numpy()[: len(worlds)].astype(bool)
            if self._last is not None:  # the reset overwrites the activations of these worlds
                self._last.continues &= ~worlds[: self.mjw_data.nworld]
        if tape is not None:
            which = int(newton.StateFlags.ALL if flags is None else flags)
            taken = TapedReset(self.model, state, worlds, which)
            tape.record_func(taken.pull_back, taken.arrays)

    def notify_model_changed(self, flags: int) -> None:
        """Apply edits of the Newton model, like `SolverMuJoCo.notify_model_changed`.

        With `use_mujoco_cpu=True`, Newton 1.7 does not propagate all edits to the MuJoCo C model
        (geoms, gravity, frames, poses of fixed roots, and others); this solver does.

        Args:
          flags: kinds of edits, as `newton.ModelFlags`.
        """
        with suspended_tape() as tape:
            if tape is not None:
                guards.refuse_edits(self._without, self.model, self._wanted)
            super().notify_model_changed(flags)
            if self._maps is None:
                return
            self._snapshot = None
            self._without = guards.without_gradient(self.model, self._wanted)
            if not self.use_mujoco_cpu:
                return
            new, mocap = self._values(), self._mocap()
            mirror.write(self.mj_model, new, self._published)
            for name, values in mocap.items():
                differs = values != self._published_mocap[name]
                getattr(self.mj_data, name)[differs] = values[differs]
            self._published, self._published_mocap = new, mocap

    def linearize(
        self,
        state: newton.State,
        control: newton.Control | None,
        dt: float,
        *,
        coords: str = "tangent",
        world: int = 0,
    ) -> NewtonLinearization:
        """Return the exact Jacobians of one step of a world, in Newton's coordinates.

        Args:
          state: state to linearize at (`joint_q`, `joint_qd`, `body_f`). The activations are the
            current ones of the solver.
          control: controls during the step; required.
          dt: time step [s].
          coords: coordinates of `joint_q`: "tangent" (default), in which `joint_q` moves along
            `joint_qd`, or "ambient", the numbers that are stored.
          world: index of the world, by default 0.
        """
        if coords not in ("tangent", "ambient"):
            raise ArgumentError(f'coords must be "tangent" or "ambient", got {coords!r}')
        worlds = self.mjw_data.nworld
        if not 0 <= world < worlds:
            raise ArgumentError(f"world must be between 0 and {worlds - 1}, got {world}")
        guards.refuse_given_contacts(self._takes_contacts)
        guards.refuse_sleep(self)
        with suspended_tape():
            return linearize_world(
                self._current_snapshot(),
                self,
                state,
                control,
                dt,
                world,
                tangent=coords == "tangent",
            )

    def _current_snapshot(self) -> Snapshot:
        """Return the snapshot of the model, made again after an edit or a change of parameters."""
        wanted = self.parameters
        if self._snapshot is None or tuple(self._snapshot.parameters.arrays) != wanted:
            assert self._maps is not None
            self._snapshot = Snapshot(self, self._maps, wanted, self._takes_contacts)
        return self._snapshot

    @property
    def _takes_contacts(self) -> bool:
        """Whether a step uses contacts of Newton."""
        return not (self.use_mujoco_cpu or self.mjw_model.opt.run_collision_detection)

    def _values(self) -> mirror.Values:
        """Return the numbers of world 0 that MuJoCo C receives; none if it does not simulate."""
        return mirror.of_world(mirror.values_of(self), 0) if self.use_mujoco_cpu else {}

    def _mocap(self) -> mirror.Values:
        """Return the poses of the fixed roots of world 0."""
        names = ("mocap_pos", "mocap_quat")
        return {name: getattr(self.mjw_data, name).numpy()[0].copy() for name in names}
