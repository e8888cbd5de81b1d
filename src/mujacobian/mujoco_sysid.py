"""Exact Jacobians for `mujoco.sysid`, which replace its finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._parameters import Parameters
from mujacobian._rollout import rollout
from mujacobian._trajectory import Trajectory
from mujacobian.errors import ArgumentError, MissingPackageError

try:
    from mujoco import sysid
    from mujoco.sysid import ModelSequences, SystemTrajectory, TimeSeries, build_residual_fn
except ImportError as error:  # without its extras, the module of MuJoCo's wheel is empty
    raise MissingPackageError(
        "mujacobian.mujoco_sysid needs mujoco.sysid: pip install 'mujoco[sysid]'", name=error.name
    ) from error

__all__ = ["exact_residual", "parameter_dict"]

_FIXED = ("build_model", "custom_rollout", "modify_residual")
_FULL_PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS


def parameter_dict(
    parameters: Parameters, lower: Array | None = None, upper: Array | None = None
) -> sysid.ParameterDict:
    """Return the parameters for `mujoco.sysid`, whose optimizer needs finite bounds."""
    low = parameters.lower if lower is None else np.asarray(lower, np.float64)
    high = parameters.upper if upper is None else np.asarray(upper, np.float64)
    result = sysid.ParameterDict()
    for name, value, least, most in zip(
        parameters.names, parameters.values, low, high, strict=True
    ):
        if not (np.isfinite(least) and np.isfinite(most)):
            raise ArgumentError(f"{name} needs finite bounds, got {least:g} to {most:g}")
        result.add(sysid.Parameter(name, value, least, most))
    return result


def exact_residual(
    parameters: Parameters, *, models_sequences: Sequence[ModelSequences], **options: object
) -> tuple[Callable[..., Any], Callable[[Array, Array], Array]]:
    """Return a residual function for `mujoco.sysid.optimize`, and its exact Jacobian.

    Args:
      parameters: the entries of the vector of `mujoco.sysid`, in this order (see
        `parameter_dict`). Models come from `Parameters.apply`: no modifier is called and nothing
        is recompiled. Derived constants are recomputed, as in a compilation, unless the parameters
        have `derived="hold"`.
      models_sequences: logs of one model, which must be the model of the parameters.
      options: options of `mujoco.sysid.build_residual_fn`, such as sensor_weights, except
        build_model, custom_rollout and modify_residual, which have no derivatives.

    Example::

      residual, jacobian = exact_residual(parameters, models_sequences=sequences)
      found, result = mujoco.sysid.optimize(
          parameter_dict(parameters, lower, upper), residual, optimizer="mujoco", jacobian=jacobian)

    Only the backend "mujoco" passes the Jacobian to its optimizer. The backends of SciPy do not.
    """
    for name in _FIXED:
        if name in options:
            raise ArgumentError(f"{name} has no exact derivative here: leave it out")
    _require_one_model(parameters, models_sequences)
    n = len(parameters)
    simulator = _Simulator(parameters)

    compare = build_residual_fn(
        build_model=simulator.build, models_sequences=models_sequences, **options
    )

    def residual(x: Array, params: sysid.ParameterDict, **more: object) -> object:
        return compare(x, params, custom_rollout=simulator.predict, **more)

    def jacobian(x: Array, _residual: Array) -> Array:
        # Resampling, differences and weights are affine in the result of a simulation. They are
        # applied to the derivatives instead, and to zeros, which gives the constant part.
        columns = np.repeat(np.reshape(x, (n, 1)), n + 1, axis=1)
        made = compare(columns, _Vector(), custom_rollout=simulator.differentiate)
        rows: Array = np.concatenate(made[0])
        return rows[:, :n] - rows[:, n:]

    return residual, jacobian


def _require_one_model(parameters: Parameters, models_sequences: Sequence[ModelSequences]) -> None:
    """Raise if logs belong to another model than the simulated one."""
    first = None
    for logs in models_sequences:
        same = logs.gt_model.signature == parameters.model.signature
        numbers = np.empty(mujoco.mj_sizeModel(logs.gt_model), np.uint8)
        mujoco.mj_saveModel(logs.gt_model, None, numbers)
        first = numbers if first is None else first
        if not same or not np.array_equal(numbers, first):
            raise ArgumentError(
                f'the logs "{logs.name}" are of another model: all logs must be of the model '
                "of the parameters"
            )


class _Vector(sysid.ParameterDict):  # type: ignore[misc]
    """A vector of values, which `mujoco.sysid` copies for every column and log."""

    def update_from_vector(self, vector: Array) -> None:
        self.vector = vector

    def as_vector(self, include_frozen: bool = False) -> Array:
        return self.vector

    def __deepcopy__(self, memo: object) -> _Vector:
        made = _Vector()
        made.vector = self.vector
        return made


class _Simulator:
    """A replacement of `mujoco.sysid.sysid_rollout` that keeps trajectories for derivatives."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self._values = b""
        self._model = parameters.model
        self._kept: dict[tuple[bytes, bytes], Trajectory] = {}

    def build(self, params: sysid.ParameterDict, _spec: mujoco.MjSpec) -> mujoco.MjModel:
        """Return the model with these values."""
        values = params.as_vector()
        if values.tobytes() != self._values:
            self._values, self._kept = values.tobytes(), {}
            self._model = self.parameters.apply(values)
        return self._model

    def predict(
        self,
        models: Sequence[mujoco.MjModel],
        control_signal: Sequence[TimeSeries],
        initial_states: Sequence[Array],
        param_dicts: Sequence[sysid.ParameterDict],
        **mappings: object,
    ) -> list[SystemTrajectory]:
        """Return the trajectories of all logs, for one vector of parameters after the other."""
        chunks = len(models) // len(param_dicts)
        made = []
        for k, (model, control, state) in enumerate(
            zip(models, control_signal, initial_states, strict=True)
        ):
            values = param_dicts[k // chunks].as_vector()
            t = self._trajectory(model, values, state, control)
            made.append(_system(model, control, state, t.states[1:], t.sensordata, mappings))
        return made

    def differentiate(
        self,
        models: Sequence[mujoco.MjModel],
        control_signal: Sequence[TimeSeries],
        initial_states: Sequence[Array],
        param_dicts: Sequence[sysid.ParameterDict],
        **mappings: object,
    ) -> list[SystemTrajectory]:
        """Return the derivatives of trajectories by one parameter after the other, then zeros."""
        chunks = len(models) // len(param_dicts)
        values = param_dicts[0].as_vector()
        columns = []
        for model, control, state in zip(
            models[:chunks], control_signal[:chunks], initial_states[:chunks], strict=True
        ):
            slopes = self._trajectory(model, values, state, control).jacobian()
            states, sensordata = (
                np.pad(of, ((0, 0), (0, 0), (0, 1)))
                for of in (slopes.states[1:], np.asarray(slopes.sensordata))
            )
            columns.append(
                [
                    _system(model, control, state, states[..., k], sensordata[..., k], mappings)
                    for k in range(len(self.parameters) + 1)
                ]
            )
        return [of[k] for k in range(len(self.parameters) + 1) for of in columns]

    def _trajectory(
        self, model: mujoco.MjModel, values: Array, state: Array, control: TimeSeries
    ) -> Trajectory:
        controls = control.data[:-1]  # there is no measurement after the last one
        key = state.tobytes(), controls.tobytes()
        if values.tobytes() == self._values and key in self._kept:
            return self._kept[key]
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, state, _FULL_PHYSICS)
        made = rollout(model, data, controls, params=(self.parameters, values))
        if values.tobytes() == self._values:
            self._kept[key] = made
        return made


def _system(
    model: mujoco.MjModel,
    control: TimeSeries,
    first: Array,
    states: Array,
    sensordata: Array,
    mappings: dict[str, object],
) -> SystemTrajectory:
    """Return a trajectory for `mujoco.sysid`. Its states begin with the time after each step."""
    T = len(states)
    times = np.cumsum([first[0], *[model.opt.timestep] * T])[1:]
    rows = np.zeros((T, len(first)))
    rows[:, 0] = times
    rows[:, 1 : 1 + states.shape[1]] = states
    return SystemTrajectory(
        model=model,
        control=control,
        sensordata=TimeSeries(times, sensordata, mappings["rollout_signal_mapping"]),
        initial_state=first,
        state=TimeSeries(times, rows, mappings["rollout_state_mapping"]),
    )
