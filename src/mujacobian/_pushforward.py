"""Forward mode of rollouts: changes of all states and sensors along directions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian._differenced import Differenced
from mujacobian._gradient import Segment
from mujacobian._refused import RefusedSteps
from mujacobian._summary import describe

Core = list[tuple[int, int, int]]  # parameters of the core


@dataclass(frozen=True, repr=False)
class Jacobian:
    """Derivatives of all states and sensors of a trajectory. Batches have a leading axis.

    Attributes:
      states: `(T + 1, rows, columns)`.
      sensordata: `(T, ns, columns)`; None if not requested.
      differenced: the steps that are differentiated by finite differences, as in `Gradient`.
    """

    states: Array
    sensordata: Array | None
    differenced: tuple[Differenced, ...] = ()

    def __repr__(self) -> str:
        facts = [f"differenced: {each}" for each in self.differenced]
        return describe("Jacobian", facts, states=self.states, sensordata=self.sensordata)


@dataclass(frozen=True)
class DirectionPush:
    """The changes of rollouts along one direction.

    Attributes:
      model: model of the rollouts.
      controls: `(n, T, nu)`, changes of the controls.
      core: parameters of the core that change.
      params: `(n, len(core))`, their changes.
      moved: `(n, T + 1, nx)`, changes of the states; the first ones are given, `push` fills the
        others.
      sensed: `(n, T, ns)`, changes of the sensors, which `push` fills; None if not requested.
      kept: per rollout, receives the last steps for second derivatives; None: nothing is kept.
      d_sensors: `(n, T, ns)`, the cotangents of these second derivatives; None: zero.
    """

    model: mujoco.MjModel
    controls: Array
    core: Core
    params: Array
    moved: Array
    sensed: Array | None
    kept: list[_core.KeptTrajectory] | None
    d_sensors: Array | None

    def push(self, k: int, data: mujoco.MjData, segments: Iterable[Segment]) -> None:
        """Fill the changes of rollout k."""
        for first, last, start in segments:
            _core.push_direction_into(
                self.model,
                data,
                start=start,
                steps=last - first,
                controls=self.controls[k, first:last],
                parameters=self.core,
                params=self.params[k] if self.core else None,
                states=self.moved[k, first : last + 1],
                sensors=None if self.sensed is None else self.sensed[k, first:last],
                first=first,
                kept=None if self.kept is None else self.kept[k],
                most=_core.MOST_KEPT_STEPS // len(self.moved),
                d_sensors=None if self.d_sensors is None else self.d_sensors[k, first:last],
            )


@dataclass(frozen=True)
class ColumnPush:
    """The derivatives of rollouts with respect to a few columns.

    Attributes:
      model: model of the rollouts.
      core: parameters of the core, if the columns are parameters.
      directions: `(columns, len(core))`, changes of the core's parameters; None for the state.
      moved: `(n, T + 1, columns, nx)`, derivatives of the states; the first ones are given, `push`
        fills the others.
      sensed: `(n, T, columns, ns)`, derivatives of the sensors, which `push` fills; None if not
        requested.
      weights: `(ns,)`, 1 for the sensors that are requested, otherwise 0.
      refused: differences the steps without an exact derivative; None if they raise an error.
    """

    model: mujoco.MjModel
    core: Core
    directions: Array | None
    moved: Array
    sensed: Array | None
    weights: Array
    refused: RefusedSteps | None

    def push(self, k: int, data: mujoco.MjData, segments: Iterable[Segment]) -> None:
        """Fill the derivatives of rollout k."""
        for first, last, start in segments:
            begin = first
            while begin < last:
                stopped = _core.push_forward_into(
                    self.model,
                    data,
                    start=start[begin - first :],
                    steps=last - begin,
                    count=self.moved.shape[2],
                    parameters=self.core,
                    params=self.directions,
                    states=self.moved[k, begin : last + 1],
                    sensors=None if self.sensed is None else self.sensed[k, begin:last],
                    weights=self.weights,
                    first=begin,
                    may_refuse=self.refused is not None,
                )
                if stopped < 0 or self.refused is None:
                    break
                t = begin + stopped
                self._difference(self.refused, k, t, start[t - first], data)
                begin = t + 1

    def _difference(
        self, refused: RefusedSteps, k: int, t: int, start: Array, data: mujoco.MjData
    ) -> None:
        """Fill the derivatives after step t of rollout k by finite differences of this step."""
        sensed = None if self.sensed is None else self.weights
        lin = refused.linearize(k, t, start, data, forces=False, sensed=sensed)
        self.moved[k, t + 1] = self.moved[k, t] @ lin.A.T
        if self.sensed is not None and lin.C is not None:
            self.sensed[k, t] = self.moved[k, t] @ lin.C.T
