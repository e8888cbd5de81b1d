"""The first state of a simulation as an unknown: its tangent coordinates and its prior."""

from __future__ import annotations

import mujoco
import numpy as np

from mujacobian._arguments import Array


class FirstState:
    """The first state of a window, given or estimated.

    Attributes:
      start: row of mjSTATE_INTEGRATION at the start of the simulation.
      noise: standard deviations in tangent coordinates: 0 if the given coordinate is exact, inf if
        it is only an initial value.
      unknown: indices of the tangent coordinates that are estimated.
    """

    def __init__(self, model: mujoco.MjModel, start: Array, noise: Array) -> None:
        self._model = model
        self._start = start
        self._first = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_TIME)
        self._size = model.nq + model.nv + model.na
        self.unknown = np.flatnonzero(noise > 0)
        self._prior = np.flatnonzero((noise > 0) & np.isfinite(noise))
        self._weights = 1 / noise[self._prior]
        self.given = start[self._first : self._first + self._size].copy()
        if len(self.unknown):  # tangent coordinates are defined at unit quaternions
            mujoco.mj_normalizeQuat(model, self.given[: model.nq])
        balls = (int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL))
        self._rotations = [
            (int(model.jnt_qposadr[j]) + offset, int(model.jnt_dofadr[j]) + offset)
            for j in np.flatnonzero(np.isin(model.jnt_type, balls))
            for offset in [3 if model.jnt_type[j] == balls[0] else 0]
        ]

    @property
    def prior_size(self) -> int:
        """Number of residuals of the prior."""
        return len(self._prior)

    def row(self, state: Array) -> Array:
        """Return the row of mjSTATE_INTEGRATION with this state."""
        row = self._start.copy()
        row[self._first : self._first + self._size] = state
        return row

    def moved(self, state: Array, step: Array) -> Array:
        """Return the state after a step of the unknown coordinates."""
        nq, nv = self._model.nq, self._model.nv
        change = np.zeros(2 * nv + self._model.na)
        change[self.unknown] = step
        result = state.copy()
        mujoco.mj_integratePos(self._model, result[:nq], change[:nv], 1)
        result[nq:] += change[nv:]
        return result

    def prior(self, state: Array) -> Array:
        """Return the slopes of the prior along the unknown coordinates, then its residuals.

        A residual is the change from the given state to this one, divided by the noise (SID-2).
        """
        nq, nv = self._model.nq, self._model.nv
        change = np.empty(2 * nv + self._model.na)
        mujoco.mj_differentiatePos(self._model, change[:nv], 1, self.given[:nq], state[:nq])
        change[nv:] = state[nq:] - self.given[nq:]
        slopes = np.eye(len(change))
        for q, v in self._rotations:
            turn = np.empty((3, 3))
            mujoco.mjd_subQuat(state[q : q + 4], self.given[q : q + 4], turn, None)
            slopes[v : v + 3, v : v + 3] = turn
        rows = np.column_stack([slopes[:, self.unknown], change])
        return rows[self._prior] * self._weights[:, None]
