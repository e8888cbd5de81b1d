"""Identification: solve the nonlinear least-squares problem and assess the solution."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, count, shaped
from mujacobian._parameters import Parameters
from mujacobian._workers import Workers
from mujacobian.errors import ArgumentError, ArgumentTypeError
from mujacobian.sysid.bounds import Bounds, read_bounds
from mujacobian.sysid.calibration import Calibration
from mujacobian.sysid.identifiability import explain
from mujacobian.sysid.log import Log
from mujacobian.sysid.loss import read_loss
from mujacobian.sysid.numerics import least_squares
from mujacobian.sysid.prior import Prior, Priors
from mujacobian.sysid.problem import Evaluation, Iterate, Problem, Stop
from mujacobian.sysid.quality import (
    IdentificationWarning,
    judge_bounds,
    judge_chi_square,
    judge_errors,
    judge_rank,
    on_bounds,
)
from mujacobian.sysid.result import Identification
from mujacobian.sysid.unknowns import Unknowns

# tolerance of the first fit, which holds the first states at their given values
ROUGH = 1e-4
_REMEDY = "Use a better start=, window= for long logs, or a larger max_evaluations"


def identify(
    parameters: Parameters,
    logs: Log | Sequence[Log],
    *,
    start: ArrayLike | None = None,
    bounds: Bounds | None = None,
    priors: Priors | None = None,
    calibration: Calibration | None = None,
    loss: str = "squares",
    loss_scale: float | None = None,
    initial_states: Literal["estimate", "given"] = "estimate",
    window: int | None = None,
    tolerance: float = 1e-8,
    max_evaluations: int = 200,
    threads: int | None = None,
    workers: Workers | None = None,
) -> Identification:
    """Return the parameter values that minimize the squared errors between simulation and logs.

    The optimizer is `scipy.optimize.least_squares` (trust region with bounds). Its Jacobian is
    exact and computed in forward mode, with one tangent per parameter. Reverse mode would need one
    pass per measured number.

    Args:
      parameters: parameters to identify, with their model.
      logs: one log or several, of any lengths.
      start: initial values, by default the values in the model.
      bounds: pair (lower, upper) of arrays, or a dict of pairs by the name of a parameter or of a
        field, such as `{"dof_damping": (0, 1)}`; by default the bounds of `parameters`.
      priors: a dict of pairs (mean, standard deviation), by the names that `bounds` accepts. A
        prior counts as one more measurement of the parameter.
      calibration: biases, gains and delays of sensors to identify, too. They follow the parameters
        in all vectors, such as `start`.
      loss: "squares" (default), "huber" or "cauchy". The last two limit the effect of outliers.
      loss_scale: residual, in units of the noise, beyond which a robust loss is not a square; by
        default 1.345 (huber) or 2.385 (cauchy).
      initial_states: "estimate" (default) or "given". With "estimate", the first state of every
        log is an unknown with the given state as its initial value. `first_state_noise` of a log
        adds a prior, and the standard errors include the uncertainty of the first state. With
        "given", first states are exact, which saves `2 nv + na` tangents per log; if they are not
        exact, the values are wrong by many standard errors.
      window: length of the windows, in steps, that logs are cut into; by default logs are not cut.
        The first state of every window is estimated. Use windows for long logs of systems that
        swing or tumble, because the cost of a whole log has many local minima.
      tolerance: relative change of cost or values, or norm of the gradient, at which to stop, by
        default 1e-8. The optimizer also stops if the predicted distance to the optimum is below
        `sqrt(tolerance)` standard errors.
      max_evaluations: maximum number of simulations of all logs, by default 200.
      threads: number of windows simulated in parallel, by default one per available core.
      workers: a map-like callable, such as the method `map` of an executor, that distributes the
        windows over processes or machines; by default threads of this process are used. The result
        does not depend on it.

    Measured quaternions are compared by the nearer of q and -q. If a log diverges at a trial value,
    the optimizer takes a shorter step; if it diverges at the initial values, `identify` raises
    `MujacobianError`. A measured sensor whose dependence on a parameter is not supported raises
    `UnsupportedFeatureError`.

    `identify` issues an `IdentificationWarning` if the optimizer did not converge, if the reduced
    chi-square is far from 1, or if parameters are undetermined, poorly determined or on a bound.

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
      >>> abs(found.values[0] - 0.1) < 1e-4
      np.True_
    """
    if not isinstance(parameters, Parameters):
        raise ArgumentTypeError(
            f"parameters must be mujacobian.Parameters, got {type(parameters).__name__}"
        )
    if calibration is not None and not isinstance(calibration, Calibration):
        raise ArgumentTypeError(
            f"calibration must be mujacobian.sysid.Calibration, got {type(calibration).__name__}"
        )
    unknowns = Unknowns(parameters, calibration)
    if not len(unknowns):
        raise ArgumentError("there are no parameters to identify")
    if initial_states not in ("estimate", "given"):
        raise ArgumentError(f'initial_states must be "estimate" or "given", got {initial_states!r}')
    if not np.finfo(np.float64).eps < tolerance < 1:
        raise ArgumentError(f"tolerance must be between 2.3e-16 and 1, got {tolerance:g}")
    most_evaluations = count("max_evaluations", max_evaluations)
    length = None if window is None else count("window", window)
    box = read_bounds(unknowns, bounds)
    prior, robust = Prior(unknowns, priors), read_loss(loss, loss_scale)
    first = unknowns.values if start is None else shaped("start", start, box[0].shape)
    for name, value, least, most in zip(unknowns.names, first, *box, strict=True):
        if not least <= value <= most:
            raise ArgumentError(f"start: {name} is {value:g}, not between {least:g} and {most:g}")
    estimate = initial_states == "estimate"

    def problem_of(*, estimate: bool, tolerance: float) -> Problem:
        return Problem(
            unknowns,
            logs,
            tolerance,
            threads,
            estimate=estimate,
            window=length,
            max_evaluations=most_evaluations,
            prior=prior,
            loss=robust,
            workers=workers,
        )

    problem = problem_of(estimate=estimate, tolerance=tolerance)
    if estimate and window is None:
        # far from the optimum, free first states would compensate for wrong parameters
        given_problem = problem_of(estimate=False, tolerance=max(tolerance, ROUGH))
        first = _solve(given_problem, first, box, most_evaluations)[0]
        problem.follow(given_problem)
    values, converged, message = _solve(problem, first, box, most_evaluations)
    result = _report(problem, problem.evaluate(values), box, converged, message)
    for text in result.warnings:
        warnings.warn(text, IdentificationWarning, stacklevel=2)
    return result


def _solve(
    problem: Problem, first: Array, bounds: tuple[Array, Array], max_evaluations: int
) -> tuple[Array, bool, str]:
    """Return the values, whether they have converged, and the message of the optimizer."""
    problem.evaluate(first)  # raises if the initial values diverge
    # the optimizer receives a triangular factor with the same norms and products, not all rows
    try:
        found = least_squares(
            problem.residuals,
            first,
            problem.jacobian,
            bounds=bounds,
            x_scale="jac",
            ftol=problem.tolerance,
            xtol=problem.tolerance,
            gtol=problem.tolerance,
            max_nfev=max_evaluations,
        )
    except Stop as end:
        return end.values, end.converged, str(end)
    return found.x, bool(found.status > 0), str(found.message)


def _report(
    problem: Problem,
    optimum: Evaluation,
    bounds: tuple[Array, Array],
    converged: bool,
    message: str,
) -> Identification:
    """Return the result at the optimum, with all warnings."""
    unknowns, values, plain = problem.unknowns, optimum.values, problem.without_loss(optimum)
    fit, residuals = plain.fit, plain.residuals()
    names = unknowns.names
    freedom = problem.degrees_of_freedom(plain)
    reduced = optimum.squares / freedom if freedom > 0 else np.nan
    if problem.loss is not None and freedom > 0:
        reduced = problem.loss.variance(np.concatenate(residuals), freedom)
    covariance = reduced * fit.covariance() if freedom > 0 else np.full((len(values),) * 2, np.inf)
    errors = np.sqrt(np.diag(covariance))
    bound = on_bounds(optimum.fit, values, errors, *bounds)
    unsettled = problem.unsettled(optimum)
    texts = [
        None if converged else f"the optimizer did not converge: {message} {_REMEDY}",
        _judge_first_states(unsettled),
        _judge_residuals(problem, reduced, freedom),
        judge_rank(fit, names),
        judge_errors(names, values, errors, problem.history[0].values, unknowns.lower),
        judge_bounds(names, values, bound),
    ]
    undetermined = sorted(k for group in fit.undetermined() for k in group)
    return Identification(
        parameters=unknowns.parameters,
        names=names,
        units=unknowns.units,
        values=values,
        standard_errors=errors,
        covariance=covariance,
        model=unknowns.apply(values),
        first_states=tuple(np.array([p.state for p in of_log]) for of_log in optimum.points),
        residuals=residuals,
        cost=optimum.squares / 2,
        degrees_of_freedom=freedom,
        reduced_chi_square=reduced,
        undetermined=tuple(names[k] for k in undetermined),
        identifiability=explain(fit, names, values, covariance),
        on_bounds=tuple(names[k] for k in bound),
        history=(*problem.history, Iterate(optimum.squares / 2, values)),
        steps=problem.steps,
        converged=converged and not unsettled,
        message=message,
        warnings=tuple(text for text in texts if text is not None),
    )


def _judge_first_states(unsettled: Sequence[int]) -> str | None:
    """Return a warning about first states that are not at their optimum, or None."""
    if not unsettled:
        return None
    return (
        f"the first states of logs {', '.join(map(str, unsettled))} did not converge: use shorter"
        " windows (window=), better first states in these logs, or first_state_noise"
    )


def _judge_residuals(problem: Problem, reduced: float, freedom: int) -> str | None:
    """Return a warning about the size of the residuals, or None."""
    if freedom < 1:
        return (
            f"the {problem.size} measured numbers are as many as the unknowns that they determine,"
            " so the noise cannot be estimated and all standard errors are inf. Record more"
        )
    if not problem.is_noise_known:
        return None
    return judge_chi_square(reduced, freedom, estimate=problem.is_estimated, window=problem.window)
