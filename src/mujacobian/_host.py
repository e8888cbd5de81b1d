"""Rollouts as pure functions of batches of arrays, which PyTorch and JAX call on the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from mujacobian import _core
from mujacobian._arguments import Array, require_batch
from mujacobian._differenced import warn
from mujacobian._gradient import NO_MOCAP_GRADIENT
from mujacobian._inputs import Inputs as RolloutInputs
from mujacobian._parameters import Parameters
from mujacobian._rollout import apply, batch_size, core_poses, first_states
from mujacobian._rollout import rollout as simulate
from mujacobian._stepper import NUMPY, Memory, stepper
from mujacobian._trajectory import Direction, Trajectory
from mujacobian.errors import UnsupportedFeatureError

Inputs = dict[str, Any]
CURVED = ("state", "controls", "values")  # the inputs with forward mode and second derivatives


@dataclass(slots=True, eq=False)
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

    @property
    def is_plain(self) -> bool:
        """Whether the core can run whole batches: one model, and every state is kept."""
        return self.parameters is None and self.every == 1

    def shapes(self, T: int | str) -> dict[str, tuple[int | str, ...]]:
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

    def fits(self, inputs: Inputs) -> bool:
        """Return whether all inputs of plain rollouts have the right shape and the same batch axis.

        It is a quick test, and if it fails, `require_shapes` decides.
        """
        if not self.is_plain:
            return False
        widths = stepper(self.model).widths
        shape = tuple(inputs["controls"].shape)
        if len(shape) not in (2, 3):
            return False
        batch, front = shape[:-2], shape[:-1]
        for name, x in inputs.items():
            if x.shape != (batch if name == "state" else front) + widths[name]:
                return False
        return True

    def require_shapes(self, inputs: Inputs, *, nested: bool = False) -> None:
        """Raise if an input does not have the shape of its rollouts, or if batch sizes differ.

        With `nested`, inputs may have any number of batch axes.
        """
        T = inputs["controls"].shape[-2] if len(inputs["controls"].shape) > 1 else "T"
        sizes = self.shapes(T)
        for name, x in inputs.items():
            given, shape = x.shape, sizes[name]
            require_batch(name, given[-len(shape) - 1 :] if nested else given, shape)
        batch_size({name: (x, len(sizes[name])) for name, x in inputs.items()})

    def attempt_simulation(
        self, inputs: Inputs, tape: _core.Tape | None = None, memory: Memory = NUMPY
    ) -> tuple[Any, ...] | None:
        """Return what `simulate` returns, or None if the core cannot do it or something is wrong.

        Like the other attempts, it takes arrays of any library, with any number of batch axes.
        """
        if not self.is_plain:
            return None
        first = None if self.data is None else first_states(self.model, self.data)
        fast = stepper(self.model)
        return fast.simulate(self.model, inputs, first, self.threads, tape, memory)

    def attempt_gradient(
        self,
        inputs: Inputs,
        recorded: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[str],
        tape: _core.Tape | None = None,
        memory: Memory = NUMPY,
    ) -> Inputs | None:
        """Return what `pull_back` returns, or None if the core cannot do it."""
        if not self.is_plain:
            return None
        return stepper(self.model).pull_back(
            self.model, inputs, recorded, cotangents, wanted, self.threads, tape, memory
        )

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
        if self.is_plain:
            along = _direction(moved, slice(None), values=False)
            fast = stepper(self.model).push(
                self.model, recorded, along, self.threads, sensors=sensors
            )
            if fast is not None:
                return fast
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

    def _trajectory(self, inputs: Inputs, part: slice, states: Array, kept: Array) -> Trajectory:
        """Return the trajectory of a part of a batch that has been simulated."""
        given = {name: x[part] for name, x in inputs.items() if name != "state"}  # it is in `kept`
        params = self._params(given.pop("values", None))
        if "mocap" in given:
            given["mocap"] = core_poses(given["mocap"])
        if params is not None:
            params = apply(self.model, params)
        # derivatives depend on the shape of the sensordata only
        n, T = given["controls"].shape[:2]
        sensordata = np.broadcast_to(np.nan, (n, T, self.model.nsensordata))
        return Trajectory(
            self.model if params is None else params[0].model,
            states[part],
            sensordata,
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
        raise UnsupportedFeatureError(
            name,
            "forward mode and second derivatives of rollouts are not supported with respect to it",
        )


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
