"""Newton's SolverMuJoCo with exact gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import newton
import warp as wp

from mujacobian.errors import MujacobianError
from mujacobian.newton.adjoint import TapedStep
from mujacobian.newton.internals import Maps, read_maps, require_versions, suspended_tape
from mujacobian.newton.linearization import NewtonLinearization, linearize_world
from mujacobian.newton.parameters import KNOWN, array_of
from mujacobian.newton.snapshot import Snapshot


class DifferentiableMuJoCo(newton.solvers.SolverMuJoCo):
    """A `SolverMuJoCo` whose steps have exact gradients under a `wp.Tape`."""

    # what is below is set after the constructor of SolverMuJoCo, which already notifies
    _maps: Maps | None = None
    _snapshot: Snapshot | None = None
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
        self._wanted = None if parameters is None else tuple(parameters)
        with suspended_tape():
            super().__init__(model, **options)
        self._maps = read_maps(self)

    def step(
        self,
        state_in: newton.State,
        state_out: newton.State,
        control: newton.Control | None,
        contacts: newton.Contacts | None,
        dt: float,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """As `SolverMuJoCo.step`; under a tape its adjoint is recorded."""
        with suspended_tape() as tape:
            before = self._last if tape is not None and tape is self._last_tape else None
            self._last, self._last_tape = None, tape
            taken = None
            if tape is not None:
                taken = TapedStep(
                    self._model_now(), self, state_in, control, dt, before, self._step
                )
            super().step(state_in, state_out, control, contacts, dt, **options)
            if tape is None or taken is None:
                return
            taken.finish(self, state_out)
            self._last = taken
        tape.record_func(taken.pull_back, taken.arrays)

    def reset(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        """As `SolverMuJoCo.reset`."""
        self._last = None
        super().reset(*arguments, **options)

    def notify_model_changed(self, flags: int) -> None:
        """As `SolverMuJoCo.notify_model_changed`, and in full with `use_mujoco_cpu`."""
        with suspended_tape():
            super().notify_model_changed(flags)
        self._snapshot = None

    def linearize(
        self,
        state: newton.State,
        control: newton.Control | None,
        dt: float,
        *,
        coords: str = "tangent",
        world: int = 0,
    ) -> NewtonLinearization:
        """The exact Jacobians of one step of a world, in Newton's coordinates."""
        if coords not in ("tangent", "ambient"):
            raise ValueError(f'coords must be "tangent" or "ambient", got {coords!r}')
        with suspended_tape():
            return linearize_world(
                self._model_now(), self, state, control, dt, world, tangent=coords == "tangent"
            )

    def _model_now(self) -> Snapshot:
        """What steps are taken with, until the next notification."""
        if self._snapshot is None:
            if self._maps is None:
                raise MujacobianError("the solver is not complete")
            self._snapshot = Snapshot(self, self._maps, self._parameters())
        return self._snapshot

    def _parameters(self) -> tuple[str, ...]:
        """Names of the model arrays that gradients are wanted of."""
        chosen = KNOWN if self._wanted is None else self._wanted
        found = ((name, array_of(self.model, name)) for name in chosen)
        return tuple(name for name, array in found if array is not None and array.requires_grad)
