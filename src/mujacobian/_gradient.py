"""The gradient of a scalar through a trajectory, by the adjoint method (ADJ-4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian import _core, _notices
from mujacobian._arguments import Array
from mujacobian._differenced import Differenced
from mujacobian._inputs import Inputs
from mujacobian._refused import RefusedSteps
from mujacobian._summary import describe
from mujacobian.errors import MujacobianError

# the first step, the end (one step after the last), and a row of mjSTATE_INTEGRATION per step
Segment = tuple[int, int, Array]

# beyond this growth, rounding errors decide the direction of a gradient
EXPLOSION = 1e8

# element and reason in the error if poses have no gradient, and Gradient.mocap is None
NO_MOCAP_GRADIENT = "option noslip_iterations", "gradients of mocap poses"


@dataclass(frozen=True, repr=False)
class Gradient:
    """Derivatives of a scalar of a trajectory. Batches have a leading axis.

    Attributes:
      state: with respect to the first state, in the layout of `states` or in tangent coordinates.
      controls: `(T, nu)`.
      forces: `(T, nv)`, with respect to `qfrc_applied`; None if the rollout has none.
      wrenches: `(T, nbody, 6)`, with respect to `xfrc_applied`; None if the rollout has none.
      mocap: `(T, nmocap, 7)`, with respect to the poses of mocap bodies, with quaternions
        normalized to q / |q|; None if the rollout has none, or with noslip, which is not supported.
      params: one number per parameter; None if the rollout has none.
      norms: `(T + 1,)`, norms of the derivative with respect to the state before each step and the
        last state, in tangent coordinates. They show where gradients vanish and where they explode.
      differenced: the steps that are differentiated by finite differences, with the element and the
        reason; empty without `rollout(fallback="fd")`, or if everything is exact.
    """

    state: Array
    controls: Array
    forces: Array | None
    wrenches: Array | None
    mocap: Array | None
    params: Array | None
    norms: Array
    differenced: tuple[Differenced, ...] = ()

    def __repr__(self) -> str:
        return describe(
            "Gradient",
            [f"differenced: {each}" for each in self.differenced],
            state=self.state,
            controls=self.controls,
            forces=self.forces,
            wrenches=self.wrenches,
            mocap=self.mocap,
            params=self.params,
            norms=self.norms,
        )


class Adjoint:
    """The adjoint method for every rollout of a batch.

    Args:
      model: the model that was simulated.
      inputs: the inputs of all rollouts.
      given: `(n, T + 1, nx)`, derivatives of the scalar with respect to each state alone.
      sensed: `(n, T, ns)`, the same with respect to the sensors.
      core: the parameters of the core; None if no derivatives with respect to them are needed.
      window: the number of steps after which the derivative is cut.
      refused: differentiates steps without an exact derivative; None if they raise an error.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        inputs: Inputs,
        given: Array,
        sensed: Array | None,
        *,
        core: list[tuple[int, int, int]] | None,
        window: int | None,
        refused: RefusedSteps | None,
    ) -> None:
        n, T = inputs.controls.shape[:2]
        self.model, self.given, self.sensed, self.window = model, given, sensed, window
        self.core, self.refused = core or [], refused
        follows_mocap = inputs.mocap is not None and model.opt.noslip_iterations == 0
        self.gradient = Gradient(
            state=given[:, -1].copy(),
            controls=np.empty(inputs.controls.shape),
            forces=None if inputs.forces is None else np.empty(inputs.forces.shape),
            wrenches=None if inputs.wrenches is None else np.empty(inputs.wrenches.shape),
            mocap=np.empty((n, T, model.nmocap, 6)) if follows_mocap else None,
            params=None if core is None else np.zeros((n, len(core))),
            norms=np.empty((n, T + 1)),
        )
        self.gradient.norms[:, -1] = np.linalg.norm(given[:, -1], axis=-1)

    def pull_back(self, k: int, data: mujoco.MjData, segments: Iterable[Segment]) -> None:
        """Fill the gradient of rollout k; its segments come in reverse order."""
        cotangent = self.gradient.state[k]
        for lower, upper, start in segments:
            for first, last in self._uncut(lower, upper):
                while last > first:
                    last = self._pull_steps(k, data, first, last, start[first - lower :])
                if self.window and first and first % self.window == 0:
                    cotangent[:] = self.given[k, first]

    def _pull_steps(self, k: int, data: mujoco.MjData, first: int, last: int, start: Array) -> int:
        """Pull the derivative back from step last-1, and return the first step that is done.

        It stops after a step without an exact derivative. The rows of `start` begin at step
        `first`.
        """
        made, cotangent, rows = self.gradient, self.gradient.state[k], slice(first, last)
        stopped = _core.pull_back_into(
            self.model,
            data,
            start=start[: last - first],
            steps=last - first,
            d_states=self.given[k, rows],
            d_sensors=None if self.sensed is None else self.sensed[k, rows],
            parameters=self.core,
            ctrl=made.controls[k, rows],
            force=None if made.forces is None else made.forces[k, rows],
            wrench=None if made.wrenches is None else made.wrenches[k, rows],
            mocap=None if made.mocap is None else made.mocap[k, rows],
            params=None if made.params is None else made.params[k],
            norms=made.norms[k, rows],
            cotangent=cotangent,
            first=first,
            may_refuse=self.refused is not None,
        )
        if stopped < 0 or self.refused is None:
            return first
        t = first + stopped
        sensed = None if self.sensed is None else self.sensed[k, t]
        has_forces = made.forces is not None or made.wrenches is not None
        lin = self.refused.linearize(k, t, start[stopped], data, forces=has_forces, sensed=sensed)
        ctrl, force = lin.B.T @ cotangent, None if lin.Bf is None else lin.Bf.T @ cotangent
        cotangent[:] = lin.A.T @ cotangent + self.given[k, t]
        if sensed is not None and lin.C is not None and lin.D is not None:
            cotangent += lin.C.T @ sensed
            ctrl += lin.D.T @ sensed
            force = force if force is None or lin.Df is None else force + lin.Df.T @ sensed
        made.controls[k, t] = ctrl
        made.norms[k, t] = np.linalg.norm(cotangent)
        if made.forces is not None:
            made.forces[k, t] = force
        if made.wrenches is not None and force is not None:
            made.wrenches[k, t] = pull_wrenches(self.model, data, force)
        return t

    def _uncut(self, lower: int, upper: int) -> list[tuple[int, int]]:
        """Return the ranges of steps between cuts, the last one first."""
        if not self.window:
            return [(lower, upper)]
        begins = [t for t in range(lower, upper) if t == lower or t % self.window == 0]
        return list(zip(begins, [*begins[1:], upper], strict=True))[::-1]

    def judge(self, *, is_batch: bool) -> None:
        """Raise if the derivative has overflowed, and warn if it has grown out of proportion."""
        self._require_finite(is_batch)
        self._warn(is_batch)

    def _require_finite(self, is_batch: bool) -> None:
        """Raise if the derivative has overflowed."""
        for k, t in np.argwhere(~np.isfinite(self.gradient.norms))[::-1][:1]:
            raise MujacobianError(
                f"{_rollout(k, is_batch)}the gradient overflows in step {t}, on its way back: see "
                "Gradient.norms of the steps after it, and gradient(window=...)"
            )

    def _warn(self, is_batch: bool) -> None:
        """Warn if the derivative has grown out of proportion."""
        norms = self.gradient.norms
        direct = np.linalg.norm(self.given, axis=-1).max(axis=-1)
        for k, row in enumerate(norms):
            nonzero = np.flatnonzero(row)
            size = max(direct[k], row[nonzero[-1]]) if len(nonzero) else 0.0
            exploded = np.flatnonzero(row > EXPLOSION * size)
            if len(exploded):
                t = exploded[-1]
                _notices.warn(
                    RuntimeWarning(
                        f"{_rollout(k, is_batch)}the gradient explodes: in step {t}, on its way "
                        f"back, the derivative is {row[t] / size:.1e} times as large as where it "
                        "began. docs/rollouts.md says what to do"
                    )
                )
                return


class SecondAdjoint:
    """The derivative of the adjoint method along a direction, for every rollout (HVP-2).

    Args:
      model: the model that was simulated.
      given: `(n, T + 1, nx)`, derivatives of the scalar with respect to each state alone.
      sensed: `(n, T, ns)`, the same with respect to the sensors.
      moved: `(n, T + 1, nx)`, changes of all states along the direction.
      controls: `(n, T, nu)`, changes of the controls.
      changes: `(n, T + 1, nx)`, changes of `given`; None: zero.
      last: `(n, nx)`, changes of `given` at the last state.
      core: the parameters of the core that change; empty if none does.
      params: `(n, parameters)`, their changes.
      kept: the steps of each rollout that need no evaluation; None if there are none.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        given: Array,
        sensed: Array | None,
        moved: Array,
        controls: Array,
        changes: Array | None,
        last: Array,
        core: list[tuple[int, int, int]],
        params: Array,
        kept: list[_core.KeptTrajectory] | None,
    ) -> None:
        self.model, self.given, self.sensed, self.kept = model, given, sensed, kept
        self.core, self.params = core, params
        self.by_params, self.made_params = np.zeros((2, len(given), len(core)))
        self.moved, self.controls, self.changes = moved, controls, changes
        self.cotangents, self.state = given[:, -1].copy(), last
        self.made = np.empty(controls.shape)
        self.norms = np.empty(given.shape[:2])
        self.norms[:, -1] = np.linalg.norm(last, axis=-1)

    def pull_back(self, k: int, data: mujoco.MjData, segments: Iterable[Segment]) -> None:
        """Fill the product of rollout k; its segments come in reverse order."""
        for first, last, start in segments:
            rows = slice(first, last)
            _core.pull_back_twice_into(
                self.model,
                data,
                start=start,
                steps=last - first,
                d_states=self.given[k, rows],
                d_sensors=None if self.sensed is None else self.sensed[k, rows],
                moved=self.moved[k, rows],
                moved_ctrl=self.controls[k, rows],
                changes=None if self.changes is None else self.changes[k, rows],
                parameters=self.core,
                moved_params=self.params[k],
                controls=self.made[k, rows],
                norms=self.norms[k, rows],
                by_params=self.by_params[k],
                params=self.made_params[k],
                cotangent=self.cotangents[k],
                change=self.state[k],
                first=first,
                kept=None if self.kept is None else self.kept[k],
            )

    def product(self, *, is_batch: bool) -> Gradient:
        """Return the products; raise if one of them has overflowed."""
        for k, t in np.argwhere(~np.isfinite(self.norms))[::-1][:1]:
            raise MujacobianError(
                f"{_rollout(k, is_batch)}the derivative of the gradient overflows in step {t}, on "
                "its way back"
            )
        return Gradient(self.state, self.made, None, None, None, None, self.norms)


def pull_wrenches(model: mujoco.MjModel, data: mujoco.MjData, force: Array) -> Array:
    """Return derivatives by `xfrc_applied` (nbody, 6) from those by `qfrc_applied` (ADJ-5)."""
    jacobian = np.zeros((6, model.nv))
    wrenches = np.empty((model.nbody, 6))
    for body in range(model.nbody):
        mujoco.mj_jacBodyCom(model, data, jacobian[:3], jacobian[3:], body)
        wrenches[body] = jacobian @ force
    return wrenches


def _rollout(k: int, is_batch: bool) -> str:
    return f"rollout {k}: " if is_batch else ""
