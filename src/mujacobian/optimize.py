"""Newton's method for the controls of a rollout: `pip install 'mujacobian[optimize]'`.

The method is Newton-CG with a trust region, SciPy's "trust-ncg", which multiplies the exact Hessian
by vectors. It needs no planner and no feedback, and suits short, stable rollouts.
`mujacobian.control.ILQR` has bounds on the controls, and converges from worse initial controls.

Example:
  >>> import mujoco, numpy as np
  >>> from mujacobian import control, optimize
  >>> model = mujoco.MjModel.from_xml_string(
  ...     "<mujoco><worldbody><body><joint name='pivot'/><geom size='.1' pos='.5 0 0'/></body>"
  ...     "</worldbody><actuator><motor joint='pivot' gear='9'/></actuator>"
  ...     "<sensor><jointpos name='angle' joint='pivot'/></sensor></mujoco>")
  >>> cost = control.Cost(model, [
  ...     control.Term("reach", control.sensor(model, "angle") - 1.0),
  ...     control.Term("effort", control.controls(model), weight=1e-3)])
  >>> optimize.minimize(model, [0, 0], np.zeros((50, 1)), cost).status
  'converged'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, count, numbers, require_model, shaped
from mujacobian._manifold import tangent_size
from mujacobian._rollout import DivergedRolloutError, rollout
from mujacobian._summary import describe
from mujacobian._trajectory import Trajectory
from mujacobian.control.cost import Cost
from mujacobian.control.norm import expand_norm
from mujacobian.errors import (
    ArgumentError,
    ArgumentTypeError,
    MissingPackageError,
    NotFiniteError,
)

try:
    from scipy.optimize import minimize as scipy_minimize
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.optimize needs scipy: pip install 'mujacobian[optimize]'", name="scipy"
    ) from error

__all__ = ["Loss", "Optimum", "minimize"]

ROUNDING = 1e-14  # relative rounding of a loss; of smaller changes the sign is unknown


class Parts(NamedTuple):
    """Derivatives of a loss by states, sensors and controls, or changes of these; None is zero."""

    states: Array | None
    sensors: Array | None
    controls: Array | None


class Evaluation(Protocol):
    """A loss of one rollout, and its derivatives at fixed states, sensors and controls."""

    value: float
    gradient: Parts

    def product(self, moved: Parts) -> Parts:
        """Return the change of the gradient along changes of states, sensors and controls."""


@dataclass(frozen=True)
class Loss:
    """A user-defined loss of a rollout.

    All functions receive the states `(T + 1, nq + nv + na)`, the sensordata `(T, ns)` and the
    controls `(T, nu)`. Results of these shapes may be None, which is zero.

    Attributes:
      value: function that returns the loss, a number.
      gradient: function that returns a triple, the derivatives of the loss with respect to the
        three arrays.
      product: function of the three arrays and of a triple of changes of them, that returns the
        triple of changes of the gradient: the product with the Hessian of the loss. If `gradient`
        returns None for the sensors, the change of the sensors is None.

    Example:
      >>> from mujacobian import optimize
      >>> effort = optimize.Loss(
      ...     lambda x, y, u: (u**2).sum() / 2,
      ...     lambda x, y, u: (None, None, u),
      ...     lambda x, y, u, moved: (None, None, moved[2]))
    """

    value: Callable[[Array, Array, Array], float]
    gradient: Callable[[Array, Array, Array], tuple[Any, Any, Any]]
    product: Callable[[Array, Array, Array, tuple[Any, Any, Any]], tuple[Any, Any, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Optimum:
    """The result of `minimize`.

    Attributes:
      controls: `(T, nu)`, the best controls.
      trajectory: rollout of these controls.
      value: loss of this rollout.
      gradient: `(T, nu)`, derivatives of the loss with respect to the controls.
      status: "converged", "iterations" (the limit was reached) or "no improvement" (no step
        decreased the loss, because of a kink, or of rounding if the first controls are optimal).
      values: losses of all accepted iterates, the first one of which is that of the given controls.
      norms: norms of the gradients of these iterates.
      products: number of products with the Hessian.
    """

    controls: Array
    trajectory: Trajectory
    value: float
    gradient: Array
    status: str
    values: Array
    norms: Array
    products: int

    def __repr__(self) -> str:
        facts = [
            f"status {self.status!r}, {len(self.values) - 1} steps, {self.products} products",
            f"loss {self.values[0]:.6g} -> {self.value:.6g}",
            f"norm of the gradient {self.norms[0]:.2g} -> {self.norms[-1]:.2g}",
        ]
        return describe("Optimum", facts, controls=self.controls)


def minimize(
    model: mujoco.MjModel,
    state: mujoco.MjData | ArrayLike,
    controls: ArrayLike,
    loss: Cost | Loss,
    *,
    tolerance: float = 1e-9,
    iterations: int = 100,
    threads: int | None = None,
) -> Optimum:
    """Return the controls of a rollout that minimize a loss, by Newton's method.

    Derivatives are exact. Near a minimum with a positive definite Hessian, convergence is
    superlinear. There are no bounds: MuJoCo clamps controls to `ctrlrange`, beyond which the loss
    is flat.

    Args:
      model: any model whose second derivatives are covered, see `mujacobian.support`.
      state: the first state, as in `mujacobian.rollout`.
      controls: `(T, nu)`, initial controls.
      loss: a `control.Cost`, of which the mean over the T steps is minimized, with sensors at the
        state before each step; or a `Loss`.
      tolerance: norm of the gradient, relative to that of the initial controls, at which the
        method has converged; by default 1e-9.
      iterations: maximum number of iterations; by default 100.
      threads: as in `mujacobian.rollout`.

    Raises:
      UnsupportedFeatureError: if a step or sensor has no second derivative, or if the cost has
        user-defined residuals.
    """
    require_model(model)
    if not model.nu:
        raise ArgumentError("the model has no actuators, so there are no controls to optimize")
    if not tolerance > 0:
        raise ArgumentError(f"tolerance must be positive, got {tolerance!r}")
    count("iterations", iterations)
    first = numbers("controls", controls)
    if first.ndim != 2 or first.shape[1] != model.nu or not len(first):
        raise ArgumentError(f"controls must have shape (T, {model.nu}), got {first.shape}")
    problem = _Problem(model, state, first.shape, _evaluator(model, loss), threads)
    return problem.solve(first, tolerance, iterations)


@dataclass(eq=False)
class _Point:
    """Controls with their rollout and loss.

    Attributes:
      trajectory: the rollout.
      evaluation: the loss of the rollout.
      value: number that stands for the loss in comparisons.
      gradient: derivatives by the controls, as soon as they are needed.
    """

    trajectory: Trajectory
    evaluation: Evaluation
    value: float
    gradient: Array | None = None


class _Problem:
    """The loss as a function of the controls, with the rollouts of the last iterates."""

    def __init__(
        self,
        model: mujoco.MjModel,
        state: mujoco.MjData | ArrayLike,
        shape: tuple[int, ...],
        evaluate: Callable[[Trajectory, Array], Evaluation],
        threads: int | None,
    ) -> None:
        self.model, self.state, self.shape, self.threads = model, state, shape, threads
        self.evaluate = evaluate
        self.points: dict[bytes, _Point] = {}
        self.accepted: list[tuple[float, float]] = []  # losses and norms of gradients
        self.current: _Point | None = None
        self.products = 0

    def solve(self, first: Array, tolerance: float, iterations: int) -> Optimum:
        """Return the optimum from the first controls."""
        best, status = first.ravel(), "converged"
        norm = float(np.linalg.norm(self._gradient(self._at(best))))
        if norm > 0:
            # the accuracy of SciPy's products depends on the norm of the gradient: begin with 1
            radius = max(1.0, float(np.linalg.norm(best)))
            found = scipy_minimize(
                lambda u: self.value(u) / norm,
                best,
                jac=lambda u: self.gradient(u) / norm,
                hessp=lambda u, direction: self.product(u, direction) / norm,
                method="trust-ncg",
                options={
                    "gtol": tolerance,
                    "maxiter": iterations,
                    "initial_trust_radius": radius,
                    "max_trust_radius": np.inf,
                },
            )
            best = found.x
            status = {0: "converged", 1: "iterations"}.get(found.status, "no improvement")
        point = self._at(best)
        gradient = self.gradient(best).reshape(self.shape)
        values, norms = np.array(self.accepted).T
        return Optimum(
            best.reshape(self.shape),
            point.trajectory,
            point.evaluation.value,
            gradient,
            status,
            values,
            norms,
            self.products,
        )

    def value(self, u: Array) -> float:
        """Return the loss for comparisons with that of the current iterate.

        It is infinite if the rollout diverges. Within rounding, a smaller gradient is better.
        """
        try:
            point = self._at(u)
        except DivergedRolloutError:
            return np.inf
        current = self.current
        if current is not None and point is not current:
            now, then = current.evaluation.value, point.evaluation.value
            if abs(then - now) <= ROUNDING * abs(now):
                sizes = (np.linalg.norm(self._gradient(each)) for each in (point, current))
                is_better = next(sizes) < next(sizes)
                point.value = current.value + (-1 if is_better else 1) * ROUNDING * abs(now)
        return point.value

    def gradient(self, u: Array) -> Array:
        """Return the gradient of the loss with respect to the controls of an accepted iterate."""
        point = self._at(u)
        gradient = self._gradient(point)
        if point is not self.current:
            self.current = point
            self.accepted.append((point.evaluation.value, float(np.linalg.norm(gradient))))
        return gradient

    def product(self, u: Array, direction: Array) -> Array:
        """Return the product of the Hessian with a direction."""
        point = self._at(u)
        trajectory, slopes = point.trajectory, point.evaluation.gradient
        self.products += 1
        along = None, direction.reshape(self.shape)
        curved = trajectory.hvp(along, slopes.states, slopes.sensors).controls.ravel()
        states, sensors = trajectory.jvp(along, sensors=slopes.sensors is not None)
        turned = point.evaluation.product(Parts(states, sensors, along[1]))
        product: Array = curved + _pulled(trajectory, turned, self.shape)
        return product

    def _gradient(self, point: _Point) -> Array:
        if point.gradient is None:
            point.gradient = _pulled(point.trajectory, point.evaluation.gradient, self.shape)
        return point.gradient

    def _at(self, u: Array) -> _Point:
        """Return the rollout and the loss at these controls."""
        key = u.tobytes()
        if key not in self.points:
            v = u.reshape(self.shape)
            trajectory = rollout(self.model, self.state, v, threads=self.threads)
            if trajectory.is_batch:
                raise ArgumentError("a rollout begins at one state, got a batch of states")
            evaluation = self.evaluate(trajectory, v)
            while len(self.points) > 1:  # keep the point that was used last, the current iterate
                del self.points[next(iter(self.points))]
            self.points[key] = _Point(trajectory, evaluation, evaluation.value)
        else:
            self.points[key] = self.points.pop(key)
        return self.points[key]


def _pulled(trajectory: Trajectory, parts: Parts, shape: tuple[int, ...]) -> Array:
    """Return the derivatives by controls, also through the states and sensors of the rollout."""
    made = np.zeros(shape) if parts.controls is None else parts.controls.copy()
    if parts.states is not None or parts.sensors is not None:
        made += trajectory.gradient(parts.states, parts.sensors).controls
    return made.ravel()


def _evaluator(model: mujoco.MjModel, loss: object) -> Callable[[Trajectory, Array], Evaluation]:
    """Return the function that evaluates a loss on a rollout of controls."""
    if isinstance(loss, Loss):
        return lambda trajectory, controls: _OwnLoss(loss, trajectory, controls)
    if not isinstance(loss, Cost):
        raise ArgumentTypeError(
            f"loss must be a control.Cost or an optimize.Loss, got {type(loss).__name__}"
        )
    if (loss.ns, loss.nu, loss.nx) != (model.nsensordata, model.nu, tangent_size(model)):
        raise ArgumentError("the cost is of another model: numbers of sensors or controls differ")
    loss.require_second_derivatives()
    loss.require_unconstrained("optimize.minimize")
    return lambda trajectory, controls: _MeanCost(loss, trajectory, controls)


class _OwnLoss:
    """A user-defined loss of one rollout."""

    def __init__(self, loss: Loss, trajectory: Trajectory, controls: Array) -> None:
        self.loss = loss
        self.arrays = trajectory.states, trajectory.sensordata, controls
        value = numbers("value of the loss", loss.value(*self.arrays), finite=False)
        if value.shape or np.isnan(value):
            raise NotFiniteError(f"the loss must be a number, got {value}")
        self.value = float(value)
        self.gradient = self._parts("gradient", loss.gradient(*self.arrays))

    def product(self, moved: Parts) -> Parts:
        return self._parts("product", self.loss.product(*self.arrays, moved))

    def _parts(self, name: str, given: object) -> Parts:
        if not isinstance(given, tuple | list) or len(given) != 3:
            raise ArgumentTypeError(
                f"{name} of the loss must be a triple for states, sensordata and controls"
            )
        labels = ("states", "sensordata", "controls")
        return Parts(
            *(
                None if x is None else shaped(f"{name} of the loss by {label}", x, array.shape)
                for x, array, label in zip(given, self.arrays, labels, strict=True)
            )
        )


class _MeanCost:
    """The mean of a cost over the steps of one rollout, which are the knots of a plan."""

    def __init__(self, cost: Cost, trajectory: Trajectory, controls: Array) -> None:
        T = len(controls)
        self.ns = cost.ns
        times = trajectory.kept[0, 0, 0] + trajectory.model.opt.timestep * np.arange(T)
        self.value = float(cost(trajectory.sensordata, controls, times).mean())
        arguments = trajectory.sensordata, controls, cost.offsets(times)
        weights = cost.knot_weights(times) / T
        values, gradients = cost.differentiate_rows(*arguments)
        self.terms, slope = [], np.zeros((T, self.ns + cost.nu))
        for k, rows in cost.own_rows():
            r, matrix, weight = values[:, rows], gradients[:, rows], weights[:, k, None]
            _, slopes, curvatures, bends = expand_norm(cost.terms[k].norm, r)
            slope += np.einsum("tk,tkj->tj", weight * slopes, matrix)
            # rows that are off have a NaN residual
            self.terms.append((weight, matrix, np.nan_to_num(r), curvatures, bends))
        self.gradient = self._parts(slope)
        # of functions of rows
        self.curvature = cost.curve_rows(*arguments, cost.core_weights(weights))

    def product(self, moved: Parts) -> Parts:
        change = np.hstack([moved.sensors, moved.controls])  # type: ignore[list-item]
        made = np.einsum("tij,tj->ti", self.curvature, change)
        for weight, matrix, r, curvatures, bends in self.terms:
            dr = np.einsum("tkj,tj->tk", matrix, change)
            turned = curvatures * dr + (bends * (r * dr).sum(axis=1))[:, None] * r  # (ILQ-2)
            made += np.einsum("tk,tkj->tj", weight * turned, matrix)
        return self._parts(made)

    def _parts(self, rows: Array) -> Parts:
        return Parts(None, *np.split(rows, [self.ns], axis=1))
