"""Identification: solve the nonlinear least-squares problem and assess the solution."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import count, shaped
from mujacobian._parameters import Parameters
from mujacobian._workers import Workers
from mujacobian.errors import ArgumentError, ArgumentTypeError
from mujacobian.sysid.assessment import assess
from mujacobian.sysid.attempts import attempt_all, best, record
from mujacobian.sysid.bounds import Bounds, read_bounds
from mujacobian.sysid.calibration import Calibration
from mujacobian.sysid.log import Log
from mujacobian.sysid.loss import read_loss
from mujacobian.sysid.prior import Prior, Priors
from mujacobian.sysid.problem import Problem
from mujacobian.sysid.quality import IdentificationWarning
from mujacobian.sysid.result import Identification
from mujacobian.sysid.starts import draw
from mujacobian.sysid.unknowns import Unknowns

# tolerance of the first fit, which holds the first states at their given values
ROUGH = 1e-4


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
    starts: int = 1,
    seed: int = 0,
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
      starts: number of starts, by default 1. The first one is `start`. The others are drawn from
        the priors, or else uniformly between the bounds, which must then be finite. The result is
        that of the least cost, and its attribute `starts` lists all of them.
      seed: seed of the starts: that of start k is `(seed, k)`, whatever the number of starts.
      threads: number of windows simulated in parallel, by default one per available core.
      workers: a map-like callable, such as the method `map` of an executor, that distributes the
        windows of all starts over processes or machines; by default threads of this process are
        used. The result does not depend on it.

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

    problems = [problem_of(estimate=estimate, tolerance=tolerance)]
    if estimate and window is None:
        # far from the optimum, free first states would compensate for wrong parameters
        problems.insert(0, problem_of(estimate=False, tolerance=max(tolerance, ROUGH)))
    seeds = [(seed, k) for k in range(1, count("starts", starts))]
    firsts = [first, *(draw(unknowns, box, prior, pair) for pair in seeds)]
    attempts = attempt_all(problems, firsts, box, most_evaluations)
    records = [record(*each) for each in zip([None, *seeds], firsts, attempts, strict=True)]
    result = assess(best(attempts), box, tuple(records))
    for text in result.warnings:
        warnings.warn(text, IdentificationWarning, stacklevel=2)
    return result
