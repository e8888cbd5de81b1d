"""System identification: parameters of a model from logs, by least squares with exact Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core
from mujacobian.arguments import count, shaped
from mujacobian.errors import (
    ArgumentError,
    ArgumentTypeError,
    MissingPackageError,
    MujacobianError,
    UnsupportedFeatureError,
)
from mujacobian.manifold import Manifold
from mujacobian.parameters import Parameters
from mujacobian.rollout import prepare
from mujacobian.threads import thread_count

try:
    from scipy.optimize import least_squares
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.sysid needs scipy: pip install 'mujacobian[sysid]'", name="scipy"
    ) from error

Array = NDArray[np.float64]
Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Log:
    """What was applied to a system in T steps, and what was measured of it.

    state: the first state, a row of (qpos, qvel, act) or an `MjData`.
    controls: `(T, nu)`.
    sensordata: `(T, ns)`, the sensors in each step, so before the state moves; NaN where there is
        no measurement. None if no sensor was measured.
    states: `(T + 1, nq + nv + na)`, from the first state on; NaN where there is no measurement.
    sensor_noise: `(ns,)`, standard deviations of the numbers in `sensordata`. By default the
        attribute `noise` of each sensor in the model, or 1 where that is zero.
    state_noise: `(nq + nv + na,)`, of states; by default 1.
    forces, wrenches, mocap: what else was applied, as for `mujacobian.rollout`.
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


@dataclass(frozen=True)
class Iterate:
    """A point on the way to the optimum: half the sum of squared residuals, and the values."""

    cost: float
    values: Array


@dataclass(frozen=True, eq=False)
class Identification:
    """What `identify` has found. Residuals are in units of the noise.

    values: the parameters, in the order of `parameters.names`.
    standard_errors: of the values; inf where the logs do not tell.
    covariance: of the values: `s^2 (J^T J)^-1`, with the variance s^2 of the residuals.
    model: the model with the values.
    residuals: per log, predicted minus measured: all sensors that were measured, then all states.
    cost: half the sum of their squares.
    history: the points where Jacobians were taken, then the optimum.
    steps: simulated steps, of all logs; each is differentiated where it is simulated.
    converged, message: how the optimiser ended.
    """

    parameters: Parameters
    values: Array
    standard_errors: Array
    covariance: Array
    model: mujoco.MjModel = field(repr=False)
    residuals: tuple[Array, ...] = field(repr=False)
    cost: float
    history: tuple[Iterate, ...] = field(repr=False)
    steps: int
    converged: bool
    message: str

    def __str__(self) -> str:
        names = self.parameters.names
        width = max(map(len, names))
        rows = zip(names, self.values, self.standard_errors, self.parameters.units, strict=True)
        return "\n".join(f"{n:{width}} {v:12.6g} ± {e:<8.2g} {u}" for n, v, e, u in rows)


def identify(
    parameters: Parameters,
    logs: Log | Sequence[Log],
    *,
    start: ArrayLike | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    tolerance: float = 1e-8,
    max_evaluations: int = 200,
    threads: int | None = None,
) -> Identification:
    """The parameters with which simulated logs are nearest to measured ones, in least squares.

    `scipy.optimize.least_squares` (trust region, bounds) with the exact Jacobian in forward mode:
    one tangent per parameter, where adjoints would take one pass per measured number.

    Args:
      parameters: what is looked for, and the model.
      logs: one or several, of any lengths.
      start: first guess, by default the values in the model.
      bounds: (lower, upper), by default those of the parameters.
      tolerance: relative change of cost or values, or size of the gradient, at which to stop; also
        where the optimum is predicted to be within its square root times the standard errors.
      max_evaluations: simulations of all logs after which to stop.
      threads: logs simulated at a time, by default one per available core.

    Quaternions of states count as the nearer of q and -q. A trial at which a log diverges is
    rejected; at the first guess it raises `MujacobianError`. Sensors that see a parameter
    in ways that are not covered raise `UnsupportedFeatureError` where they are measured.

    Example:
      >>> import mujoco, mujacobian, numpy as np
      >>> from mujacobian.sysid import Log, identify
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint name='pivot' axis='0 1 0' damping='.1'/>"
      ...     "<geom size='.1' pos='0 0 -1'/></body></worldbody>"
      ...     "<sensor><jointpos joint='pivot'/></sensor></mujoco>")
      >>> controls = np.zeros((200, 0))
      >>> measured = mujacobian.rollout(model, [1, 0], controls).sensordata
      >>> found = identify(mujacobian.Parameters(model, ["dof_damping"]),
      ...                  Log([1, 0], controls, measured), start=[3])
      >>> abs(found.values[0] - 0.1) < 1e-6
      np.True_
    """
    if not isinstance(parameters, Parameters):
        raise ArgumentTypeError(
            f"parameters must be mujacobian.Parameters, got {type(parameters).__name__}"
        )
    if not len(parameters):
        raise ArgumentError("there are no parameters to identify")
    most_evaluations = count("max_evaluations", max_evaluations)
    problem = _Problem(parameters, logs, tolerance, threads)
    lower, upper = _bounds(parameters, bounds)
    first = parameters.values if start is None else shaped("start", start, lower.shape)
    for name, value, least, most in zip(parameters.names, first, lower, upper, strict=True):
        if not least <= value <= most:
            raise ArgumentError(f"start: {name} is {value:g}, not between {least:g} and {most:g}")
    problem.evaluate(first)  # raises if the first guess diverges
    # the optimiser sees the triangular factor, of the same norms and products, and not all rows
    try:
        found = least_squares(
            problem.residuals,
            first,
            problem.jacobian,
            bounds=(lower, upper),
            x_scale="jac",
            ftol=tolerance,
            xtol=tolerance,
            gtol=tolerance,
            max_nfev=most_evaluations,
        )
        values, converged, message = found.x, bool(found.status > 0), str(found.message)
    except _Found as end:
        values, converged, message = end.values, True, str(end)
    optimum = problem.evaluate(values)
    cost = float(optimum.residual @ optimum.residual) / 2
    covariance = _covariance(optimum.slopes, 2 * cost / max(1, problem.size - len(first)))
    return Identification(
        parameters,
        values,
        np.sqrt(np.diag(covariance)),
        covariance,
        parameters.apply(values),
        optimum.residuals,
        cost,
        (*problem.history, Iterate(cost, values)),
        problem.steps,
        converged,
        message,
    )


class _Found(Exception):
    """The optimum is so near that a further step would be for nothing."""

    def __init__(self, values: Array) -> None:
        super().__init__("The optimum is a negligible part of the standard errors away.")
        self.values = values


@dataclass(frozen=True, eq=False)
class _Factor:
    """The triangular factor of (slopes, residuals) of all logs, which has their norms and products.

    residual: its last column.
    slopes: the others.
    residuals: themselves, per log.
    """

    residual: Array
    slopes: Array
    residuals: tuple[Array, ...]


def _triangular(matrix: Array) -> Array:
    """The upper triangular R with R^T R = matrix^T matrix, square."""
    width = matrix.shape[1]
    if not np.isfinite(matrix).all():  # the slopes overflow: the residuals still have a norm
        overflown = np.full((width, width), np.nan)
        overflown[:, -1] = 0
        overflown[-1, -1] = np.linalg.norm(matrix[:, -1])
        return overflown
    rows = np.linalg.qr(matrix, mode="r")
    return np.pad(rows, ((0, width - len(rows)), (0, 0)))


class _Problem:
    """Residuals of all logs as a function of the values, and their Jacobian."""

    def __init__(
        self,
        parameters: Parameters,
        logs: Log | Sequence[Log],
        tolerance: float,
        threads: int | None,
    ) -> None:
        several = [logs] if isinstance(logs, Log) else list(logs)
        if not several:
            raise ArgumentError("there are no logs")
        self.parameters, self.tolerance = parameters, tolerance
        self.fits = [_Fit(parameters, k, log) for k, log in enumerate(several)]
        self.size = sum(fit.size for fit in self.fits)
        if self.size < len(parameters):
            raise ArgumentError(
                f"the logs have {self.size} measured numbers for {len(parameters)} parameters"
            )
        threads = thread_count(threads)
        self.threads = min(threads, len(self.fits))
        self.steps = 0
        self.history: list[Iterate] = []
        # the last point, and the last one whose Jacobian was asked for, where the optimum will be
        self._last: tuple[bytes, _Factor] | None = None
        self._taken: tuple[bytes, _Factor] | None = None

    def residuals(self, values: Array) -> Array:
        """Their part of the factor, inf where a log diverges: then a shorter step is tried."""
        try:
            return self.evaluate(values).residual.copy()
        except MujacobianError as error:
            if isinstance(error, UnsupportedFeatureError):
                raise
            return np.full(len(self.parameters) + 1, np.inf)

    def jacobian(self, values: Array) -> Array:
        """The part of their Jacobian; raises `_Found` at the optimum."""
        factor = self.evaluate(values)
        if not np.isfinite(factor.slopes).all():
            raise MujacobianError(
                "the Jacobian overflows: over these steps the system is unstable, use shorter logs"
            )
        self.history.append(Iterate(float(factor.residual @ factor.residual) / 2, values.copy()))
        self._taken = self._last
        # what a step to the optimum of the linearized problem gains, in units of the variance
        gain = float(factor.residual[:-1] @ factor.residual[:-1])
        left = float(factor.residual @ factor.residual) / max(1, self.size - len(values))
        if gain < self.tolerance * left:
            raise _Found(values.copy())
        return factor.slopes.copy()

    def evaluate(self, values: Array) -> _Factor:
        """Residuals and their Jacobian, which costs less beside them than where it is asked for."""
        key = values.tobytes()
        for known in (self._last, self._taken):
            if known is not None and known[0] == key:
                return known[1]
        model = self.parameters.apply(values)
        directions = np.ascontiguousarray(self.parameters.jacobian(values, model).T)
        self.steps += sum(fit.steps for fit in self.fits)

        def factor(k: int) -> tuple[Array, Array]:
            rows = self.fits[k].evaluate(model, directions)
            return _triangular(rows), rows[:, -1].copy()

        made = self._each(factor)
        whole = _triangular(np.vstack([triangle for triangle, _ in made]))
        result = _Factor(whole[:, -1], whole[:, :-1], tuple(residual for _, residual in made))
        self._last = key, result
        return result

    def _each(self, work: Callable[[int], Made]) -> list[Made]:
        def named(k: int) -> Made:
            try:
                return work(k)
            except Exception as error:
                error.add_note(f"in log {k}")
                raise

        if self.threads == 1:
            return [named(k) for k in range(len(self.fits))]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(named, range(len(self.fits))))


class _Fit:
    """One log: its simulation, and what is compared."""

    def __init__(self, parameters: Parameters, k: int, log: Log) -> None:
        if not isinstance(log, Log):
            raise ArgumentTypeError(
                f"log {k} must be a mujacobian.sysid.Log, got {type(log).__name__}"
            )
        model = parameters.model
        starts, self.inputs, batch = prepare(
            model, log.state, log.controls, log.forces, log.wrenches, log.mocap
        )
        if batch is not None:
            raise ArgumentError(f"log {k} has a batch in front: give a list of logs")
        self.start, self.core = starts[0], parameters.core
        self.steps = self.inputs.controls.shape[1]
        in_model = _sensor_noise(model), np.ones(model.nq + model.nv + model.na)
        self.sensors = _Measured(
            f"log {k}: sensordata",
            log.sensordata,
            self.steps,
            _noise(f"log {k}: sensor_noise", log.sensor_noise, in_model[0]),
        )
        self.states = _Measured(
            f"log {k}: states",
            log.states,
            self.steps + 1,
            _noise(f"log {k}: state_noise", log.state_noise, in_model[1]),
        )
        self.size = self.sensors.size + self.states.size
        if not self.size:
            raise ArgumentError(f"log {k} has no measurement: neither sensordata nor states")
        self.manifold = Manifold(model)
        self.data = mujoco.MjData(model)

    def evaluate(self, model: mujoco.MjModel, directions: Array) -> Array:
        """How the residuals with this model change along the directions; last, they themselves."""
        T, n, nx = self.steps, len(directions), self.manifold.nx
        states = np.empty((T + 1, self.manifold.size))
        sensordata = np.empty((T, model.nsensordata))
        moved = np.zeros((T + 1, n, nx))
        sensed = np.zeros((T, n, model.nsensordata)) if self.sensors.size else None
        taken = _core.simulate_and_push_into(
            model,
            self.data,
            self.start,
            T,
            *self.inputs.rows(0, 0, T),
            states,
            sensordata,
            n,
            self.core,
            directions,
            moved,
            sensed,
            self.sensors.there.any(axis=0).astype(np.float64),
        )
        if taken < T:
            raise MujacobianError(f"the simulation of the log diverges in step {taken}")
        measured = self.manifold.align(states, self.states.values)
        rows = np.empty((self.size, n + 1))
        of_sensors, of_states = np.split(rows, [self.sensors.size])
        self.sensors.write(of_sensors, sensordata - self.sensors.values, sensed)
        slopes = self.manifold.push(states[:, None], moved) if self.states.size else None
        self.states.write(of_states, states - measured, slopes)
        return rows


class _Measured:
    """Measured numbers, in an array that has NaN elsewhere."""

    def __init__(self, name: str, values: ArrayLike | None, rows: int, noise: Array) -> None:
        shape = rows, len(noise)
        none = np.full(shape, np.nan)
        given = none if values is None else shaped(name, values, shape, finite=False)
        if np.isinf(given).any():
            raise ArgumentError(f"{name} must be finite, or NaN where nothing was measured")
        self.there = ~np.isnan(given)
        self.values = given
        self.weights = 1 / noise
        self.size = int(self.there.sum())

    def write(self, rows: Array, differences: Array, slopes: Array | None) -> None:
        """Where there is a measurement: weighted slopes `(T, columns, numbers)`, differences last.

        Slopes are None where nothing was measured.
        """
        if slopes is None:
            return
        T, n, numbers = slopes.shape
        if self.there.all():
            every = rows.reshape(T, numbers, n + 1)
            np.multiply(slopes.swapaxes(1, 2), self.weights[:, None], out=every[..., :-1])
            np.multiply(differences, self.weights, out=every[..., -1])
        else:
            rows[:, :-1] = (slopes * self.weights).swapaxes(1, 2)[self.there]
            rows[:, -1] = (differences * self.weights)[self.there]


def _sensor_noise(model: mujoco.MjModel) -> Array:
    """Standard deviations in the model, 1 where there is none."""
    noise = np.repeat(model.sensor_noise, model.sensor_dim)
    return np.where(noise > 0, noise, 1.0)


def _noise(name: str, given: ArrayLike | None, default: Array) -> Array:
    if given is None:
        return default
    noise = shaped(name, given, default.shape)
    if (noise <= 0).any():
        raise ArgumentError(f"{name} must be positive, got {noise.min():g}")
    return noise


def _bounds(
    parameters: Parameters, given: tuple[ArrayLike, ArrayLike] | None
) -> tuple[Array, Array]:
    if given is None:
        return parameters.lower, parameters.upper
    if len(given) != 2:
        raise ArgumentError("bounds must be a pair of lower and upper bounds")
    lower, upper = (np.asarray(bound, np.float64) for bound in given)
    for name, bound in (("lower", lower), ("upper", upper)):
        if bound.shape != (len(parameters),) or np.isnan(bound).any():
            raise ArgumentError(f"{name} bounds must be {len(parameters)} numbers, got {bound}")
    for k, name in enumerate(parameters.names):
        if not lower[k] < upper[k]:
            raise ArgumentError(f"bounds: {name} must have {lower[k]:g} < {upper[k]:g}")
        if lower[k] < parameters.lower[k] or upper[k] > parameters.upper[k]:
            own = f"{parameters.lower[k]:g} to {parameters.upper[k]:g}"
            raise ArgumentError(f"bounds: {name} can be {own} only")
    return lower, upper


def _covariance(J: Array, variance: float) -> Array:
    """`variance (J^T J)^-1`; inf on the diagonal of parameters that J does not determine."""
    scale = np.linalg.norm(J, axis=0)
    scale[scale == 0] = 1
    _, s, axes = np.linalg.svd(J / scale, full_matrices=False)
    blind = s <= max(J.shape) * np.finfo(np.float64).eps * s[0]
    seen = axes[~blind] / scale
    covariance: Array = variance * (seen.T / s[~blind] ** 2) @ seen
    # rounding leaves traces of the blind directions in all parameters
    lost = (np.abs(axes[blind]) > 1e-6).any(axis=0)
    covariance[lost, lost] = np.inf
    return covariance
