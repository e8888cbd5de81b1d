"""Rollouts as pure functions of batches of arrays, which PyTorch and JAX call on the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._differenced import warn
from mujacobian._gradient import NO_MOCAP_GRADIENT
from mujacobian._inputs import Inputs as RolloutInputs
from mujacobian._parameters import Parameters
from mujacobian._rollout import apply, core_poses
from mujacobian._rollout import rollout as simulate
from mujacobian._trajectory import Direction, Trajectory
from mujacobian.errors import UnsupportedFeatureError

Inputs = dict[str, Any]
CURVED = ("state", "controls", "values")  # the inputs with forward mode and second derivatives


@dataclass(frozen=True)
class HostRollout:
    """Rollouts of a model. Inputs are arrays by name, and all arrays have a leading batch axis.

    Attributes:
      model: model that is simulated.
      parameters: parameters whose values are the input "values".
      every: number of steps between recorded states, as `checkpoint` in `rollout`.
      threads: number of threads.
      fallback: as in `rollout`.
      data: first state, if there is no input "state".
    """

    model: mujoco.MjModel
    parameters: Parameters | None
    every: int
    threads: int
    fallback: str | None
    data: mujoco.MjData | None = None

    def shapes(self, T: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the inputs of a rollout of T steps, without a batch axis."""
        m = self.model
        return {
            "state": (m.nq + m.nv + m.na,),
            "controls": (T, m.nu),
            "forces": (T, m.nv),
            "wrenches": (T, m.nbody, 6),
            "mocap": (T, m.nmocap, 7),
            "values": () if self.parameters is None else (len(self.parameters),),
        }

    def simulate(self, inputs: Inputs) -> tuple[Array, ...]:
        """Return the states and sensordata of a batch, and the recorded states for gradients."""
        made = []
        for part in _parts(inputs):
            given = {name: x[part] for name, x in inputs.items()}
            trajectory = simulate(
                self.model,
                given.pop("state", self.data),
                params=self._params(given.pop("values", None)),
                checkpoint=self.every,
                threads=self.threads,
                **given,
            )
            made.append((trajectory.states, trajectory.sensordata, trajectory.kept))
        return _joined(made)

    def push(self, inputs: Inputs, *arrays: Any, sensors: bool = True) -> tuple[Array, ...]:  # noqa: ANN401
        """Return the changes of states and sensordata of a batch along a change of the inputs."""
        *recorded, moved = arrays
        made = []
        for part in _parts(inputs):
            trajectory = self._trajectory(inputs, part, *recorded)
            direction = _direction(moved, part, values=False)
            states, sensordata = trajectory.jvp(direction, sensors=sensors)
            made.append((states,) if sensordata is None else (states, sensordata))
        return _joined(made)

    def pull_back(
        self, inputs: Inputs, *arrays: Array, wanted: Sequence[str] | None = None
    ) -> Inputs:
        """Return the gradients of a batch by the name of the input, by default of all inputs."""
        *recorded, d_states, d_sensors = arrays
        wanted = tuple(inputs) if wanted is None else wanted
        made = []
        for part in _parts(inputs):
            trajectory = self._trajectory(inputs, part, *recorded)
            gradient = vars(trajectory.gradient(d_states[part], _sensed(d_sensors[part])))
            warn(gradient["differenced"])
            gradient["values"] = gradient["params"]
            if "mocap" in wanted and gradient["mocap"] is None:
                raise UnsupportedFeatureError(*NO_MOCAP_GRADIENT)
            made.append(gradient)
        return {name: np.concatenate([gradient[name] for gradient in made]) for name in wanted}

    def pull_twice(
        self,
        inputs: Inputs,
        *arrays: Any,  # noqa: ANN401
        wanted: Sequence[str] | None = None,
    ) -> Inputs:
        """Return the changes of the gradients of a batch along a change of the inputs."""
        *recorded, d_states, d_sensors, moved = arrays
        wanted = tuple(inputs) if wanted is None else wanted
        for name in wanted:
            _require_curved(name)
        made = []
        for part in _parts(inputs):
            trajectory = self._trajectory(inputs, part, *recorded)
            weights = d_states[part], _sensed(d_sensors[part])
            direction = _direction(moved, part, values="values" in wanted)
            product = vars(trajectory.hvp(direction, *weights))
            made.append({**product, "values": product["params"]})
        return {name: np.concatenate([product[name] for product in made]) for name in wanted}

    def _trajectory(
        self, inputs: Inputs, part: slice, states: Array, sensordata: Array, kept: Array
    ) -> Trajectory:
        """Return the trajectory of a part of a batch that has been simulated."""
        given = {name: x[part] for name, x in inputs.items() if name != "state"}  # it is in `kept`
        params = self._params(given.pop("values", None))
        if "mocap" in given:
            given["mocap"] = core_poses(given["mocap"])
        if params is not None:
            params = apply(self.model, params)
        return Trajectory(
            self.model if params is None else params[0].model,
            states[part],
            sensordata[part],
            RolloutInputs(**given),
            kept[part],
            self.every,
            params,
            self.threads,
            self.fallback,
        )

    def _params(self, values: Array | None) -> tuple[Parameters, Array] | None:
        """Return the parameters and their values, which are the same in all rows."""
        return None if values is None or self.parameters is None else (self.parameters, values[0])


def flattened(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for any number of batch axes from `work`, which takes one."""

    def call(inputs: Inputs, *arrays: Any) -> Any:  # noqa: ANN401
        lead = inputs["controls"].shape[:-2]

        def flat(x: Any) -> Array:  # noqa: ANN401
            array = np.asarray(x)
            return array.reshape(math.prod(lead), *array.shape[len(lead) :])

        made = work(*(_each(flat, x) for x in (inputs, *arrays)))
        return _each(lambda x: x.reshape(*lead, *x.shape[1:]), made)

    return call


def _each(change: Callable[[Any], Any], tree: Any) -> Any:  # noqa: ANN401
    """Return the tree of dictionaries, tuples and arrays with a change of every array."""
    if isinstance(tree, dict):
        return {name: _each(change, x) for name, x in tree.items()}
    if isinstance(tree, tuple):
        return tuple(_each(change, x) for x in tree)
    return change(tree)


def _joined(parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the results of all parts of a batch."""
    if len(parts) == 1:
        return parts[0]
    return tuple(np.concatenate(results) for results in zip(*parts, strict=True))


def _sensed(d_sensors: Array) -> Array | None:
    """Return the derivatives by sensors; None if no sensor needs a derivative."""
    return d_sensors if d_sensors.any() else None


def _require_curved(name: str) -> None:
    if name not in CURVED:
        raise UnsupportedFeatureError(name, "forward mode and second derivatives of rollouts")


def _direction(moved: Inputs, part: slice, *, values: bool) -> Direction:
    """Return the changes of the first states and of the controls of a part of a batch.

    Those of parameters follow if they are not zero, or if `values` are wanted.
    """
    for name, change in moved.items():
        if change.any():
            _require_curved(name)
    state, controls, params = (moved[name][part] if name in moved else None for name in CURVED)
    if values or (params is not None and params.any()):
        return state, controls, params
    return state, controls


def _parts(inputs: Inputs) -> list[slice]:
    """Return the parts of a batch that have the same parameters."""
    n, values = len(inputs["controls"]), inputs.get("values")
    if values is None or (values == values[:1]).all():
        return [slice(0, n)]
    return [slice(k, k + 1) for k in range(n)]
