"""An experiment: how well its log would determine the parameters, as a function of the controls."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array
from mujacobian._manifold import tangent_size
from mujacobian._parameters import Parameters
from mujacobian._rollout import rollout
from mujacobian._trajectory import Trajectory
from mujacobian.errors import ArgumentError
from mujacobian.sysid.linear_fit import LinearFit


class Sensitivity:
    """Derivatives of all readings of a log, divided by their noise, and the information (SID-12).

    Attributes:
      information: Fisher information of the parameters, with the first state eliminated.
      log_determinant: logarithm of its determinant.
      d_params, d_state: derivatives of the log determinant with respect to the slopes of the
        readings along the parameters and along the first state (SID-13).
    """

    def __init__(self, P: Array, X: Array, names: tuple[str, ...]) -> None:
        of_state = LinearFit(X, np.zeros(len(X)))
        R = of_state.eliminate(P)
        unknown = [names[k] for group in LinearFit(R, R[:, 0]).undetermined() for k in group]
        if unknown:
            raise ArgumentError(
                f"a log with these controls does not determine {', '.join(unknown)}: begin with"
                " controls that excite them separately, or leave some of them out"
            )
        scale = np.linalg.norm(R, axis=0)
        Q, triangle = np.linalg.qr(R / scale)
        self.information: Array = R.T @ R
        self.log_determinant = 2 * float(np.log(np.abs(np.diag(triangle)) * scale).sum())
        self.d_params: Array = 2 * Q @ np.linalg.inv(triangle).T / scale
        self.d_state: Array = self.d_params @ of_state.response(P).T


class Experiment:
    """A log that has not been recorded yet.

    Attributes:
      parameters: parameters that the log shall determine.
      weights: inverse standard deviations of the columns of sensordata.
      estimate: whether the first state is unknown.
    """

    def __init__(
        self,
        parameters: Parameters,
        state: mujoco.MjData | ArrayLike,
        weights: Array,
        *,
        estimate: bool,
        threads: int,
    ) -> None:
        self.parameters, self.weights, self.estimate = parameters, weights, estimate
        self._state, self._threads = state, threads

    def sensitivity(self, controls: Array) -> Sensitivity:
        """Return the sensitivity of the readings with these controls."""
        return self._sensitivity(self._simulate(controls))

    def gradient(self, controls: Array) -> tuple[float, Array]:
        """Return the log determinant and its derivatives with respect to the controls (SID-14)."""
        trajectory = self._simulate(controls)
        made = self._sensitivity(trajectory)
        T, ns = trajectory.sensordata.shape
        columns = np.hstack([made.d_params, made.d_state]).T.reshape(-1, T, ns) * self.weights
        n, nx = len(self.parameters), made.d_state.shape[1]
        params = np.vstack([np.eye(n), np.zeros((nx, n))])
        state = np.vstack(
            [
                np.zeros((n, tangent_size(trajectory.model))),
                np.eye(nx, tangent_size(trajectory.model)),
            ]
        )
        batch = _repeated(trajectory, n + nx)
        products = batch.hvp((state, None, params), None, columns, tangent=True)
        return made.log_determinant, products.controls.sum(axis=0)

    def _simulate(self, controls: Array) -> Trajectory:
        parameters = self.parameters
        return rollout(
            parameters.model, self._state, controls, params=parameters, threads=self._threads
        )

    def _sensitivity(self, trajectory: Trajectory) -> Sensitivity:
        P = self._slopes(trajectory, "params")
        X = self._slopes(trajectory, "state") if self.estimate else np.zeros((len(P), 0))
        return Sensitivity(P, X, self.parameters.names)

    def _slopes(self, trajectory: Trajectory, wrt: str) -> Array:
        """Return the weighted derivatives of all readings, one row per reading."""
        chosen = np.flatnonzero(self.weights)
        made = trajectory.jacobian(wrt, tangent=True, sensors=chosen.tolist()).sensordata
        assert made is not None
        slopes = np.zeros((*trajectory.sensordata.shape, made.shape[-1]))
        slopes[:, chosen] = made * self.weights[chosen, None]
        return slopes.reshape(-1, made.shape[-1])


def _repeated(trajectory: Trajectory, n: int) -> Trajectory:
    """Return a batch of n times the same trajectory, without copies."""

    def spread(array: Array) -> Array:
        return np.broadcast_to(array, (n, *array.shape[-2:]))

    return replace(
        trajectory,
        states=spread(trajectory.states),
        sensordata=spread(trajectory.sensordata),
        kept=spread(trajectory.kept),
        inputs=replace(trajectory.inputs, controls=spread(trajectory.inputs.controls)),
    )
