"""A log: the inputs of a recorded system and its measurements."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers
from mujacobian.errors import ArgumentError


@dataclass(frozen=True, eq=False)
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

    The constructor checks sizes that follow from the log; `identify` checks the others.

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

    def __post_init__(self) -> None:
        if not isinstance(self.state, mujoco.MjData):
            self._convert("state", (None,))
        T = len(self._convert("controls", (None, None)))
        if T == 0:
            raise ArgumentError("controls must have at least one row, one per step")
        self._convert("forces", (T, None))
        self._convert("wrenches", (T, None, 6))
        self._convert("mocap", (T, None, 7))
        for name, noise, rows in (
            ("sensordata", "sensor_noise", T),
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
