"""Design of experiments: controls whose log would determine the parameters as well as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, count, shaped
from mujacobian._parameters import Parameters
from mujacobian._summary import describe
from mujacobian._threads import thread_count
from mujacobian.errors import ArgumentError, ArgumentTypeError
from mujacobian.sysid.experiment import Experiment
from mujacobian.sysid.numerics import minimize


@dataclass(frozen=True, eq=False, repr=False)
class Excitation:
    """Result of `excite`.

    Attributes:
      parameters: the parameters, as passed to `excite`.
      controls: designed controls, `(T, nu)`.
      information: Fisher information `(n, n)` of the parameters in a log with these controls. Its
        inverse is the covariance that `identify` reports if the noise is as stated.
      log_determinant: logarithm of the determinant of `information`.
      history: the log determinant of the first controls, and after each iteration.
      converged: whether the optimizer converged.
      message: message of the optimizer.
    """

    parameters: Parameters
    controls: Array
    information: Array
    log_determinant: float
    history: tuple[float, ...]
    converged: bool
    message: str

    @property
    def standard_errors(self) -> Array:
        """The standard errors of the parameters that a log with these controls would have."""
        return np.asarray(np.sqrt(np.diag(np.linalg.inv(self.information))))

    def __repr__(self) -> str:
        facts = [
            f"log determinant {self.log_determinant:.6g}, at first {self.history[0]:.6g}",
            f"{'converged' if self.converged else 'not converged'}: {self.message}",
        ]
        errors = zip(self.parameters.names, self.standard_errors, strict=True)
        facts += [f"{name} ± {error:.2g}" for name, error in errors]
        return describe("Excitation", facts, controls=self.controls)


def excite(
    parameters: Parameters,
    state: mujoco.MjData | ArrayLike,
    controls: ArrayLike,
    *,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    sensor_noise: ArrayLike | None = None,
    initial_states: Literal["estimate", "given"] = "estimate",
    hold: int = 1,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
    threads: int | None = None,
) -> Excitation:
    """Return controls that maximize the log determinant of the information about the parameters.

    A log with these controls determines the parameters best in the sense of D-optimality: the
    volume of their confidence region is least. The gradient with respect to the controls is exact,
    with one Hessian-vector product of the rollout per parameter and per coordinate of an estimated
    first state (SID-14). The optimum is local, and holds for the values in the model.

    Args:
      parameters: parameters to identify, with their model.
      state: first state, as for `mujacobian.rollout`.
      controls: first controls, `(T, nu)`. They must excite all parameters a little.
      bounds: pair of the least and the largest controls, each of `nu` numbers; by default
        `actuator_ctrlrange`. They must be finite, because the information grows with the controls.
      sensor_noise: standard deviations of the columns of `sensordata`, as in `Log`; inf for
        columns that are not measured.
      initial_states: "estimate" (default) or "given", as for `identify`.
      hold: number of steps for which a control is held, by default 1. The last value of `controls`
        in each such interval counts at first.
      tolerance: relative change of the log determinant at which to stop, by default 1e-6.
      max_iterations: maximum number of iterations of the optimizer (L-BFGS-B), by default 100.
      threads: number of threads, by default one per available core.

    A model whose second derivatives are not covered raises `UnsupportedFeatureError`.

    Example:
      >>> import mujoco, mujacobian, numpy as np
      >>> from mujacobian.sysid import excite
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint name='pivot' axis='0 1 0' damping='.1'/>"
      ...     "<geom size='.1' pos='0 0 -1'/></body></worldbody><actuator><motor joint='pivot'"
      ...     " ctrlrange='-9 9'/></actuator><sensor><jointpos joint='pivot'/></sensor></mujoco>")
      >>> parameters = mujacobian.Parameters(model, ["dof_damping"])
      >>> made = excite(parameters, [0, 0], np.ones((100, 1)), hold=20, max_iterations=5)
      >>> made.log_determinant > made.history[0] + 1
      True
    """
    if not isinstance(parameters, Parameters):
        raise ArgumentTypeError(
            f"parameters must be mujacobian.Parameters, got {type(parameters).__name__}"
        )
    if not len(parameters):
        raise ArgumentError("there are no parameters to identify")
    if initial_states not in ("estimate", "given"):
        raise ArgumentError(f'initial_states must be "estimate" or "given", got {initial_states!r}')
    model = parameters.model
    lower, upper = _read_bounds(model, bounds)
    first = np.atleast_2d(np.asarray(controls, np.float64))
    first = shaped("controls", controls, (len(first), model.nu))
    if not ((lower <= first) & (first <= upper)).all():
        raise ArgumentError("controls must be within the bounds")
    experiment = Experiment(
        parameters,
        state,
        _weights(model, sensor_noise),
        estimate=initial_states == "estimate",
        threads=thread_count(threads),
    )
    # the optimizer works on numbers from 0 to 1, one per interval and control
    ends = [*range(count("hold", hold) - 1, len(first) - 1, hold), len(first) - 1]
    rows = np.minimum(np.arange(len(first)) // hold, len(ends) - 1)
    span = upper - lower
    history = [experiment.sensitivity(first).log_determinant]

    def expand(x: Array) -> Array:
        return np.asarray(lower + span * x.reshape(len(ends), model.nu)[rows])

    def objective(x: Array) -> tuple[float, Array]:
        value, slope = experiment.gradient(expand(x))
        held = np.zeros((len(ends), model.nu))
        np.add.at(held, rows, slope * span)
        return -value, -held.ravel()

    found = minimize(
        objective,
        ((first[ends] - lower) / span).ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, 1)] * (len(ends) * model.nu),
        callback=lambda intermediate_result: history.append(-float(intermediate_result.fun)),
        options={"maxiter": count("max_iterations", max_iterations), "ftol": tolerance},
    )
    designed = expand(found.x)
    information = experiment.sensitivity(designed).information
    return Excitation(
        parameters,
        designed,
        information,
        -float(found.fun),
        tuple(history),
        bool(found.success),
        str(found.message),
    )


def _read_bounds(
    model: mujoco.MjModel, bounds: tuple[ArrayLike, ArrayLike] | None
) -> tuple[Array, Array]:
    """Return the least and the largest controls."""
    if bounds is None:
        for k in np.flatnonzero(model.actuator_ctrllimited == 0)[:1]:
            name = model.actuator(int(k)).name
            raise ArgumentError(f'actuator {k} "{name}" has no ctrlrange: use bounds=')
        lower, upper = model.actuator_ctrlrange.T.copy()
    else:
        lower, upper = (shaped("bounds", bound, (model.nu,)) for bound in bounds)
    if not (lower < upper).all():
        raise ArgumentError("bounds must have least controls below the largest ones")
    return lower, upper


def _weights(model: mujoco.MjModel, noise: ArrayLike | None) -> Array:
    """Return the inverse standard deviation of each column of sensordata."""
    if not model.nsensordata:
        raise ArgumentError("the model has no sensors, so that a log would contain nothing")
    stated = np.repeat(model.sensor_noise, model.sensor_dim)
    deviations = np.where(stated > 0, stated, 1.0)
    if noise is not None:
        deviations = shaped("sensor_noise", noise, deviations.shape, finite=False)
        if not (deviations > 0).all():
            raise ArgumentError("sensor_noise must be positive, or inf for columns not measured")
    return np.asarray(1 / deviations)
