"""Linearization with finite differences in place of derivatives without an exact form.

Only the affected part is differenced: the rows of a sensor, or the whole step. The differences are
those of the reference solution: extrapolated central differences of a step whose solver converges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian._differenced import Differenced, require_fallback
from mujacobian._linearization import Linearization, allocate, linearize_without_selfcheck
from mujacobian.check._comparison import scale_of
from mujacobian.check._judge import TRUST_MARGIN, Judge
from mujacobian.errors import MujacobianError, UnsupportedFeatureError


def linearize(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    sensors: bool = True,
    forces: bool = False,
    forward: bool = True,
    wanted: Sequence[bool] | None = None,
    index: tuple[int, ...] = (),
) -> Linearization:
    """Return what `mujacobian.linearize` returns with fallback="fd".

    Args:
      model: any model that MuJoCo loads.
      data: the state, controls and applied forces.
      sensors: compute C and D (and Df), too.
      forces: compute Bf (and Df), too.
      forward: run `mj_forward` first.
      wanted: whether the rows of each sensor are needed; the others are zero. By default all are.
      index: the place of the state, for the report.
    """
    needed = [True] * model.nsensor if wanted is None else list(wanted)
    lin, refused = _exact(model, data, sensors, forces, forward, needed)
    if not refused:
        return lin
    step = refused[-1].sensor is None
    ctrl = data.ctrl.copy()  # a control callback changes it in mj_forward
    _core.check_state(model, data, forward=forward and step)
    data.ctrl[:] = ctrl
    differences = _Differences(model, data, forces)
    if step:
        chosen = np.repeat(np.array(needed, bool), model.sensor_dim) & sensors
        rows = np.concatenate([np.ones(differences.nx, bool), chosen])
        reports = [differences.fill(lin, rows, refused[-1], index)]
    else:
        reports = [
            differences.fill(lin, differences.rows_of(error.sensor), error, index)
            for error in refused
        ]
    return replace(lin, differenced=tuple(reports))


def transition(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    A: Array | None,
    B: Array | None,
    C: Array | None,
    D: Array | None,
    forward: bool,
    fallback: str,
) -> tuple[Differenced, ...]:
    """Fill the blocks of `mujacobian.transition` and return the reports of differences."""
    require_fallback(fallback)
    senses = C is not None or D is not None
    lin = linearize(model, data, sensors=senses, forward=forward)
    for given, made in ((A, lin.A), (B, lin.B), (C, lin.C), (D, lin.D)):
        if given is not None and made is not None:
            given[...] = made
    return lin.differenced


def _exact(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    sensors: bool,
    forces: bool,
    forward: bool,
    wanted: list[bool],
) -> tuple[Linearization, list[UnsupportedFeatureError]]:
    """Return the exact blocks, and the errors of the sensors whose rows are zero.

    If the last error is that of the step itself, all blocks are zero.
    """
    refused: list[UnsupportedFeatureError] = []
    exact = list(wanted)
    while True:
        try:
            lin = linearize_without_selfcheck(
                model, data, sensors=sensors, forces=forces, forward=forward, wanted=exact
            )
        except UnsupportedFeatureError as error:
            refused.append(error)
            if error.sensor is None:
                return allocate(model, np.zeros, sensors=sensors, forces=forces), refused
            exact[error.sensor] = False
        else:
            return lin, refused


class _Differences:
    """Differences of one step, with estimates of their errors."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, forces: bool) -> None:
        try:
            judge = Judge(model, data, forces=forces)
        except mujoco.FatalError as error:
            raise MujacobianError(f"MuJoCo stopped with an error: {error}") from error
        reference = judge.reference
        _core.count_differences(reference.evaluations)
        self.model, self.nx, self.nu, self.J = model, reference.nx, model.nu, reference.J
        # relative to the size of the block and column, as in comparisons
        self.error = reference.err / scale_of(reference.J, judge.blocks)
        self.trust = judge.tolerance / TRUST_MARGIN

    def rows_of(self, sensor: int | None) -> NDArray[np.bool_]:
        """Return a mask of the rows of a sensor."""
        assert sensor is not None
        rows = np.zeros(len(self.J), bool)
        first = self.nx + int(self.model.sensor_adr[sensor])
        rows[first : first + int(self.model.sensor_dim[sensor])] = True
        return rows

    def fill(
        self,
        lin: Linearization,
        rows: NDArray[np.bool_],
        cause: UnsupportedFeatureError,
        index: tuple[int, ...],
    ) -> Differenced:
        """Write these rows of all blocks and return the report."""
        nx, nu = self.nx, self.nu
        error, J = self.error[rows], self.J[rows]
        if (np.isinf(error).all(axis=0) & ~J.any(axis=0)).any():
            raise cause  # the step is not even finite near this state
        state, sensors = np.flatnonzero(rows[:nx]), np.flatnonzero(rows[nx:])
        for columns, by_state, by_sensors in (
            (slice(nx), lin.A, lin.C),
            (slice(nx, nx + nu), lin.B, lin.D),
            (slice(nx + nu, None), lin.Bf, lin.Df),
        ):
            if by_state is not None:
                by_state[state] = self.J[state, columns]
            if by_sensors is not None:
                by_sensors[sensors] = self.J[nx + sensors, columns]
        trusted = error <= self.trust
        return Differenced(
            cause.element,
            cause.reason,
            index,
            entries=error.size,
            untrusted=int((~trusted).sum()),
            error=float(error[trusted].max(initial=0.0)),
        )
