"""A window of a log: one simulation with its first state and its measurements."""

from __future__ import annotations

import mujoco
import numpy as np

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian._inputs import Inputs
from mujacobian._manifold import Manifold
from mujacobian.errors import MujacobianError, UnsupportedFeatureError
from mujacobian.sysid.first_state import FirstState
from mujacobian.sysid.linear_fit import LinearFit, triangular
from mujacobian.sysid.measurement import Measurement
from mujacobian.sysid.reading import Reading
from mujacobian.sysid.unknowns import Trial, Unknowns

# Levenberg's damping: the first value after a full step has failed, and the largest value
LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e4
MOST_SIMULATIONS = 15
# A predicted gain of this fraction of the variance moves a first state by a third of a standard
# error. If a step does not achieve it, the step crosses a kink of the cost (a joint that sticks or
# slips), and no other step is better.
NEGLIGIBLE = 0.1
# residuals smaller than this fraction of the measurements are rounding
ROUNDING = 1e-12


class Point:
    """A window simulated from one first state.

    Attributes:
      state: the first state.
      last: the state after the last step.
      residuals: residuals of sensors and of states, without the prior.
      squares: sum of all squared residuals.
      fit: linear least-squares problem of the unknown coordinates of the first state.
    """

    def __init__(
        self, state: Array, last: Array, unknowns: int, rows: Array, residuals: tuple[Array, Array]
    ) -> None:
        self.state, self.last, self.residuals = state, last, residuals
        # a triangular factor of `rows`, with the same norms and products: slopes along the
        # unknowns, slopes along the parameters, residuals
        self._unknowns, self._rows = unknowns, triangular(rows)
        self.squares = float(self._rows[:, -1] @ self._rows[:, -1])
        self.is_finite = bool(np.isfinite(self._rows).all())
        slopes = self._rows[:, : unknowns if self.is_finite else 0]
        self.fit = LinearFit(slopes, self._rows[:, -1])

    def reduced(self) -> Array:
        """Return the slopes along the parameters, first state eliminated, and residuals (SID-3)."""
        if not self._unknowns:
            return self._rows
        slopes = self._rows[:, self._unknowns : -1]
        return np.column_stack([self.fit.eliminate(slopes), self._rows[:, -1]])

    def response(self) -> Array:
        """Return the derivative of the best first state with respect to the parameters (SID-4)."""
        return self.fit.response(self._rows[:, self._unknowns : -1])


class Window:
    """Steps of a log that are simulated from one first state.

    Attributes:
      reading: converts sensors at the steps to readings; None if the two are equal.
      length: number of steps to the first state of the next window.
    """

    def __init__(
        self,
        unknowns: Unknowns,
        first: FirstState,
        inputs: Inputs,
        sensors: Measurement,
        states: Measurement,
        reading: Reading | None,
        length: int,
    ) -> None:
        self.first, self.inputs, self.sensors, self.states = first, inputs, sensors, states
        self.reading, self.length = reading, length
        self.core = unknowns.parameters.core
        self.steps = inputs.controls.shape[1]
        self.size = sensors.size + states.size + first.prior_size
        self.manifold = Manifold(unknowns.parameters.model)
        weighted = [np.where(m.there, m.values * m.weights, 0) for m in (sensors, states)]
        self._rounding = ROUNDING**2 * sum(float((w * w).sum()) for w in weighted)

    def settle(
        self, trial: Trial, data: mujoco.MjData, state: Array, tolerance: float
    ) -> tuple[Point, int]:
        """Return the point with the best first state, and the number of simulations.

        The method is Levenberg's, starting from `state`.
        """
        point = self.at(trial, data, state)
        damping, simulations = 0.0, 1
        while self._improvement(point) > tolerance:
            if simulations == MOST_SIMULATIONS or damping > MOST_DAMPING:
                break
            step = point.fit.step(damping)
            other = self._try(trial, data, self.first.moved(point.state, step))
            simulations += 1
            gained = -np.inf if other is None else point.squares - other.squares
            is_kink = gained < point.fit.gain / 10 and self.is_settled(point)
            if other is not None and gained > 0:
                point = other
                damping = damping / 10 if damping > LEAST_DAMPING else 0.0
            else:
                damping = max(LEAST_DAMPING, 10 * damping)
            if is_kink:
                break
        return point, simulations

    def is_settled(self, point: Point) -> bool:
        """Return whether no other first state would fit noticeably better."""
        return self._improvement(point) < NEGLIGIBLE

    def _improvement(self, point: Point) -> float:
        """Return the predicted gain of the best step, in units of the variance of the residuals."""
        if point.fit.gain <= self._rounding:
            return 0.0
        return point.fit.gain / (point.squares / max(1, self.size - point.fit.rank))

    def _try(self, trial: Trial, data: mujoco.MjData, state: Array) -> Point | None:
        """Simulate from this state; return None if the simulation diverges."""
        try:
            return self.at(trial, data, state)
        except UnsupportedFeatureError:
            raise
        except MujacobianError:
            return None

    def at(self, trial: Trial, data: mujoco.MjData, state: Array) -> Point:
        """Simulate from this state; raise `MujacobianError` if the simulation diverges."""
        rows, last = self.evaluate(trial, data, state)
        measured = rows[: self.sensors.size + self.states.size]
        of_sensors, of_states = np.split(measured[:, -1].copy(), [self.sensors.size])
        if trial.loss is not None:
            trial.loss.transform(measured)
        unknowns = len(self.first.unknown)
        return Point(state, last, unknowns, rows, (of_sensors, of_states))

    def evaluate(self, trial: Trial, data: mujoco.MjData, state: Array) -> tuple[Array, Array]:
        """Return the slopes of all residuals with the residuals as last column, and the last state.

        The slopes are along the unknown coordinates of the first state, then along the unknowns of
        the trial: its directions and its calibration. Residuals are without the robust loss. The
        last state is the one at which the next window begins.
        """
        model, directions = trial.model, trial.directions
        T, nx, unknown = self.steps, self.manifold.nx, self.first.unknown
        m, n = len(unknown), len(unknown) + len(directions)
        states = np.empty((T + 1, self.manifold.size))
        sensordata = np.empty((T, model.nsensordata))
        moved = np.zeros((T + 1, n, nx))
        moved[0, np.arange(m), unknown] = 1
        sensed = np.zeros((T, n, model.nsensordata)) if self.sensors.size else None
        taken = _core.simulate_and_push_into(
            model,
            data,
            state=self.first.row(state),
            steps=T,
            **self.inputs.rows(0, 0, T),
            visited=states,
            sensordata=sensordata,
            count=n,
            parameters=self.core,
            params=np.vstack([np.zeros((m, directions.shape[1])), directions]),
            states=moved,
            sensors=sensed,
            weights=self.sensors.there.any(axis=0).astype(np.float64),
        )
        if taken < T:
            raise MujacobianError(f"the simulation of the log diverges in step {taken}")
        if self.reading is not None:
            sensordata, sensed = self.reading.predict(sensordata, sensed, trial.calibration)
        measured = self.manifold.align(states, self.states.values)
        rows = np.zeros((self.size, n + len(trial.calibration) + 1))
        of_sensors, of_states, prior = np.split(
            rows, [self.sensors.size, self.sensors.size + self.states.size]
        )
        self.sensors.write(of_sensors, sensordata - self.sensors.values, sensed)
        slopes = self.manifold.push(states[:, None], moved) if self.states.size else None
        without = np.delete(of_states, np.s_[n:-1], axis=1)  # states have no calibration
        self.states.write(without, states - measured, slopes)
        of_states[:, [*range(n), -1]] = without
        if len(prior):
            prior[:, [*range(m), -1]] = self.first.prior(state)
        return rows, states[self.length]
