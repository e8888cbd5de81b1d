"""A log: the inputs of a recorded system and its measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers
from mujacobian._summary import summarize
from mujacobian.errors import ArgumentError
from mujacobian.sysid.samples import (
    Samples,
    Series,
    control_columns,
    first_reading,
    on_steps,
    read_csv,
    read_series,
    sensor_columns,
)


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """The inputs of a system in T steps, and its measurements.

    Attributes:
      state: first state, an array (qpos, qvel, act) or an `MjData`.
      controls: controls of each step, `(T, nu)`.
      sensordata: sensor values of each step, `(T, ns)`, at the state before the step. Missing
        measurements are NaN. None (default) if no sensor was measured.
      states: measured states, `(T + 1, nq + nv + na)`, beginning with the first state. Missing
        measurements are NaN. None (default) if no state was measured.
      sensor_noise: standard deviations of the columns of `sensordata`, `(ns,)`. The default is the
        attribute `noise` of each sensor in the model, or 1 where that is zero.
      state_noise: standard deviations of the columns of `states`, `(nq + nv + na,)`; by default 1.
      forces: generalized forces of each step, as for `mujacobian.rollout`; by default none.
      wrenches: wrenches on bodies of each step, as for `mujacobian.rollout`; by default none.
      mocap: poses of mocap bodies of each step, as for `mujacobian.rollout`; by default constant.
      first_state_noise: standard deviations of `state` in the tangent coordinates of `A` (rotations
        in rad), `(2 nv + na,)`. They are used if the first state is estimated. A coordinate with 0
        is exact, and a coordinate with inf (default) has no prior.
      sensor_times: times of the rows of `sensordata` in seconds after the first state, `(m,)`,
        from 0 to the time of the last step. Then `sensordata` has m rows, and simulated sensors
        are interpolated linearly between steps. By default there is one row per step.

    `from_csv` and `from_timeseries` make logs of recordings with time stamps. The constructor
    checks sizes that follow from the log; `identify` checks the others.

    Example:
      >>> import numpy as np
      >>> from mujacobian.sysid import Log
      >>> log = Log([0, 0], controls=np.zeros((100, 1)), sensordata=np.zeros((100, 2)))
    """

    state: mujoco.MjData | ArrayLike
    controls: ArrayLike
    sensordata: ArrayLike | None = None
    states: ArrayLike | None = None
    sensor_noise: ArrayLike | None = None
    state_noise: ArrayLike | None = None
    forces: ArrayLike | None = None
    wrenches: ArrayLike | None = None
    mocap: ArrayLike | None = None
    first_state_noise: ArrayLike | None = None
    sensor_times: ArrayLike | None = None

    __repr__ = summarize

    @classmethod
    def from_csv(
        cls,
        model: mujoco.MjModel,
        path: str | Path,
        *,
        time: str = "time",
        columns: Mapping[str, str | None] | None = None,
        state: mujoco.MjData | ArrayLike | None = None,
        interpolation: str = "previous",
        **more: ArrayLike,
    ) -> Log:
        """Return the log of a CSV file with a header; empty cells and nan are missing samples.

        Args:
          model: the model, which gives the names, the step and the units.
          path: the file. A column has the name of an actuator or sensor, of a component of a
            sensor (`gyro[2]`), or of an actuator with `_ctrl`, as in `mujoco.sysid`. A name that
            an actuator and a sensor share means the sensor.
          time: name of the column of time stamps, in seconds. They must increase.
          columns: names in the model by names in the file; None skips a column.
          state: first state, at the first time at which every control is known. By default it is
            the initial state of the model with the first readings of joint sensors.
          interpolation: "previous" (default) holds a control until the next sample; "linear"
            interpolates.
          more: other attributes of the log, such as `sensor_noise`.
        """
        controls, readings = read_csv(model, Path(path), time, columns or {})
        return cls._of_samples(model, controls, readings, state, interpolation, more)

    @classmethod
    def from_timeseries(
        cls,
        model: mujoco.MjModel,
        controls: Series,
        sensors: Series,
        *,
        state: mujoco.MjData | ArrayLike | None = None,
        interpolation: str = "previous",
        **more: ArrayLike,
    ) -> Log:
        """Return the log of controls and sensors that have their own time stamps.

        Args:
          model: the model.
          controls: a `mujoco.sysid.TimeSeries`, or a pair of times `(m,)` and rows `(m, nu)`.
          sensors: the same with rows `(m, ns)`. A time series with a signal mapping may have some
            of the sensors, in any order.
          state: as for `from_csv`.
          interpolation: as for `from_csv`.
          more: as for `from_csv`.

        Example:
          >>> import mujoco, numpy as np
          >>> from mujacobian.sysid import Log
          >>> model = mujoco.MjModel.from_xml_string(
          ...     "<mujoco><worldbody><body><joint name='pivot'/><geom size='.1'/></body>"
          ...     "</worldbody><actuator><motor joint='pivot'/></actuator>"
          ...     "<sensor><jointpos joint='pivot'/></sensor></mujoco>")
          >>> command, reading = ([0.0, 0.1], [[1.0], [0.0]]), ([0.05, 0.151], [[0.0], [0.1]])
          >>> Log.from_timeseries(model, command, reading).controls.shape
          (77, 1)
        """
        of_controls = read_series(
            "controls", controls, model.nu, control_columns(model), entries=False
        )
        of_sensors = read_series(
            "sensors", sensors, model.nsensordata, sensor_columns(model), entries=True
        )
        return cls._of_samples(model, of_controls, of_sensors, state, interpolation, more)

    @classmethod
    def _of_samples(
        cls,
        model: mujoco.MjModel,
        controls: Samples,
        readings: Samples,
        state: mujoco.MjData | ArrayLike | None,
        interpolation: str,
        more: dict[str, ArrayLike],
    ) -> Log:
        """Return the log of samples with time stamps."""
        held, times, sensordata = on_steps(model, controls, readings, interpolation)
        first = first_reading(model, sensordata) if state is None else state
        return cls(first, held, sensordata, sensor_times=times, **more)

    def __post_init__(self) -> None:
        if not isinstance(self.state, mujoco.MjData):
            self._convert("state", (None,))
        T = len(self._convert("controls", (None, None)))
        if T == 0:
            raise ArgumentError("controls must have at least one row, one per step")
        self._convert("forces", (T, None))
        self._convert("wrenches", (T, None, 6))
        self._convert("mocap", (T, None, 7))
        times = self._convert("sensor_times", (None,))
        readings = T if self.sensor_times is None else len(times)
        if (np.diff(times) <= 0).any() or (times < 0).any():
            raise ArgumentError("sensor_times must increase, from 0 or later")
        for name, noise, rows in (
            ("sensordata", "sensor_noise", readings),
            ("states", "state_noise", T + 1),
        ):
            columns = None
            if getattr(self, name) is not None:
                measured = self._convert(name, (rows, None), finite=False)
                columns = measured.shape[1]
                if np.isinf(measured).any():
                    raise ArgumentError(f"{name} must be finite, or NaN where nothing was measured")
            deviations = self._convert(noise, (columns,))
            if (deviations <= 0).any():
                raise ArgumentError(f"{noise} must be positive, got {deviations.min():g}")
        start = self._convert("first_state_noise", (None,), finite=False)
        if not (start >= 0).all():
            raise ArgumentError(
                "first_state_noise must hold standard deviations from 0 (exact) to inf (unknown),"
                f" got {start[~(start >= 0)][0]:g}"
            )

    def _convert(self, name: str, shape: tuple[int | None, ...], *, finite: bool = True) -> Array:
        """Replace a field by an array of this shape, in which None means any size."""
        given = getattr(self, name)
        if given is None:
            return np.empty((0,) * len(shape))
        array = numbers(name, given, finite=finite)
        if array.ndim == len(shape) + 1:
            raise ArgumentError(
                f"{name} has shape {array.shape}, with a batch axis in front: a Log holds one"
                " recording, so make a list of logs"
            )
        fits = array.ndim == len(shape) and all(
            want in (None, have) for have, want in zip(array.shape, shape, strict=True)
        )
        if not fits:
            sizes = ", ".join("n" if size is None else str(size) for size in shape)
            text = f"({sizes},)" if len(shape) == 1 else f"({sizes})"
            steps = f" for {len(np.asarray(self.controls))} rows of controls"
            raise ArgumentError(
                f"{name} must have shape {text}{steps if len(shape) > 1 else ''}, got {array.shape}"
            )
        object.__setattr__(self, name, array)
        return array
