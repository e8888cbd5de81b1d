"""Judge `linearize` at one state against differences, at convergence and with own settings.

Every state is linearized twice: on a copy of the model whose solver and collider converge, and with
the settings of the model. The reference is `reference.directional` along a few directions. They
show a wrong entry at a fraction of the cost of all columns.

With its own settings, the step itself may differ from the converged step, because its solver stops
early or its collider stops on a facet. Such a state is never "exact". Its verdict is "solver" or
"collider": the part that must converge so that the step agrees with the converged one. If the step
agrees with the converged one and `linearize` does not, `linearize` is wrong.
"""

import copy
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import mujoco
import numpy as np

import mujacobian
from benchmarks import refusals
from benchmarks.zoo.differences import COLLIDER_UNKNOWN, Differences
from mujacobian import reference
from mujacobian.check._judge import converged, tolerance_at
from tests.scenes import cases

EXACT, REFUSED, NOT_JUDGED, WRONG = "exact", "refused", "not judged", "wrong"
SOLVER, COLLIDER = "solver", "collider"
NOT_FINITE, CHANGED, NOT_REPEATABLE = "NaN", "changed state", "not repeatable"
DIFFERENCED, RAISED = "finite difference", "unexpected exception"
LINEARIZING, JUDGING = "linearizing", "judging"  # stages
# Relative tolerance between linearizations at the settings of the model and at convergence.
OWN_TOLERANCE = 1e-5
# Relative error of the slopes of curved contacts that the facets of a converged collider cause. A
# larger error is an error of the step that MuJoCo takes.
FACET_TOLERANCE = 1e-2
# Two steps are different if they or their derivatives differ by more than this.
STEP_TOLERANCE = 1e-2


@dataclass
class Verdict:
    """A verdict: its word, the largest relative error, the share of judged entries, the reason."""

    word: str
    error: float | None = None
    share: float | None = None
    reason: str = ""


@dataclass
class Attempt:
    """The outcome of one call of `linearize`: a result or an error, flaws and warnings."""

    lin: mujacobian.Linearization | None = None
    refused: str = ""
    sensors_refused: str = ""
    flaws: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)


@dataclass
class State:
    """The verdicts on one state; `flaws` and `warned` are those at the settings of the model."""

    rows: int
    contacts: int
    own: Verdict
    converged: Verdict
    sensors_refused: str = ""
    flaws: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)


def judge(model: mujoco.MjModel, data: mujoco.MjData, seed: int) -> Iterator[str | dict[str, Any]]:
    """Yield the name of each stage before it begins, and finally a `State` as a dictionary."""
    with reference.quiet():
        yield LINEARIZING
        own = attempt(model, data)
        yield JUDGING
        try:
            twin, same = converged(model, data)
        except mujoco.FatalError as error:
            unknown = Verdict(NOT_JUDGED, reason=f"MuJoCo stops: {error}")
            yield _state(data, own, unknown, unknown)
            return
        yield LINEARIZING
        best = attempt(twin, same)
        yield JUDGING
        if own.lin is None and best.lin is None:
            refused = (Verdict(REFUSED, reason=found.refused) for found in (own, best))
            yield _state(same, own, *refused)
            return
        yield _judged(model, data, twin, same, own, best, seed)


def attempt(model: mujoco.MjModel, data: mujoco.MjData) -> Attempt:
    """Linearize twice, with sensors if they are supported, and record flaws other than errors."""
    before, differences = cases.snapshot(model, data), mujacobian.fd_count()
    found = Attempt()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found.lin, found.sensors_refused = refusals.linearize(model, data)
            again = mujacobian.linearize(model, data, sensors=found.lin.C is not None)
        except mujacobian.UnsupportedFeatureError as error:
            found.refused = refusals.reason(error)
        except (mujacobian.MujacobianError, ValueError) as error:
            found.refused = f"{type(error).__name__}: {error}"
        except Exception as error:  # an unexpected error
            found.refused = f"{type(error).__name__}: {error}"
            found.flaws.append(RAISED)
    found.warned = sorted({warning.category.__name__ for warning in caught})
    if cases.snapshot(model, data) != before:
        found.flaws.append(CHANGED)
    if mujacobian.fd_count() != differences:
        found.flaws.append(DIFFERENCED)
    if found.lin is not None:
        blocks = [(getattr(found.lin, name), getattr(again, name)) for name in "ABCD"]
        pairs = [(block, other) for block, other in blocks if block is not None]
        if not all(np.isfinite(block).all() for block, _ in pairs):
            found.flaws.append(NOT_FINITE)
        if any(block.tobytes() != other.tobytes() for block, other in pairs):
            found.flaws.append(NOT_REPEATABLE)
    return found


def _state(data: mujoco.MjData, attempt: Attempt, own: Verdict, best: Verdict) -> dict[str, Any]:
    state = State(int(data.nefc), int(data.ncon), own, best)
    state.sensors_refused, state.flaws = attempt.sensors_refused, attempt.flaws
    state.warned = attempt.warned
    return asdict(state)


def _judged(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    twin: mujoco.MjModel,
    same: mujoco.MjData,
    own: Attempt,
    best: Attempt,
    seed: int,
) -> dict[str, Any]:
    try:
        differences = Differences(twin, same, seed, tolerance_at(same))
    except ArithmeticError as error:
        verdicts = [_unknown(found, str(error)) for found in (own, best)]
        return _state(same, own, *verdicts)
    at_best = judge_converged(best, differences)
    at_own = judge_own(model, data, own, differences, at_best)
    own.flaws += [flaw for flaw in best.flaws if flaw not in own.flaws]
    return _state(same, own, at_own, at_best)


def _unknown(attempt: Attempt, reason: str) -> Verdict:
    if attempt.lin is None:
        return Verdict(REFUSED, reason=attempt.refused)
    return Verdict(NOT_JUDGED, reason=reason)


def judge_converged(attempt: Attempt, differences: Differences) -> Verdict:
    """Return the verdict on a linearization at convergence."""
    if attempt.lin is None:
        return Verdict(REFUSED, reason=attempt.refused)
    tolerance = differences.tolerance
    differences.drop_kinks(attempt.lin)
    result = differences.compare(attempt.lin, tolerance)
    unknown = differences.unknown
    if result.error <= tolerance and not unknown:
        return Verdict(EXACT, result.error, result.share)
    better = None
    if unknown or result.error <= FACET_TOLERANCE:
        better = differences.compare_better(result)
    if better is not None and better.error <= tolerance:
        return Verdict(EXACT, better.error, better.share)
    if better is None and (unknown or differences.collider_is_limit(result)):
        return Verdict(NOT_JUDGED, result.error, result.share, unknown or COLLIDER_UNKNOWN)
    if differences.agrees_in_full(attempt.lin):
        differences.distrust(result)  # also at the settings of the model
        return Verdict(EXACT, tolerance, result.share)
    why = differences.describe(attempt.lin, result)
    if better is not None:
        why = f"{better.error:.1e} with converged contacts of curved geoms; {why}"
    return Verdict(WRONG, result.error, result.share, why)


def judge_own(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    attempt: Attempt,
    differences: Differences,
    at_best: Verdict,
) -> Verdict:
    """Return the verdict on a linearization with the settings of the model."""
    if attempt.lin is None:
        return Verdict(REFUSED, reason=attempt.refused)
    tolerance = differences.tolerance
    result = differences.compare(attempt.lin, tolerance)
    if at_best.word == REFUSED:  # there is no verdict at convergence to rely on
        known = result.error <= tolerance and not differences.unknown
        at_best = Verdict(EXACT if known else NOT_JUDGED, reason="refused where converged")
    if differences.is_smooth:
        return _copied(at_best, result)
    # if the derivative of the converged step is unknown, only its value is compared
    known = at_best.word != NOT_JUDGED
    drift = differences.drift(model, data) if known else differences.gap(model, data)
    if drift > STEP_TOLERANCE:
        why = f"the step differs by {drift:.0e}"
        return Verdict(_cause(model, data, differences), result.error, result.share, why)
    if at_best.word != EXACT or result.error <= OWN_TOLERANCE:
        return _copied(at_best, result)
    if result.error > STEP_TOLERANCE:
        why = f"right at convergence; {differences.describe(attempt.lin, result)}"
        return Verdict(WRONG, result.error, result.share, why)
    return Verdict(_cause(model, data, differences), result.error, result.share)


def _copied(verdict: Verdict, result: reference.Comparison) -> Verdict:
    """Return the verdict at convergence with the error at the settings of the model."""
    return Verdict(verdict.word, result.error, result.share, verdict.reason)


def _cause(model: mujoco.MjModel, data: mujoco.MjData, differences: Differences) -> str:
    """Return the part, solver or collider, that must converge so that the steps agree."""
    solved = reference.converge(copy.copy(model))
    solved.opt.ccd_tolerance = model.opt.ccd_tolerance
    solved.opt.ccd_iterations = model.opt.ccd_iterations
    found = attempt(solved, data)
    if found.lin is None or differences.drift(solved, data) > STEP_TOLERANCE:
        return COLLIDER
    error = differences.compare(found.lin, OWN_TOLERANCE).error
    return SOLVER if error <= OWN_TOLERANCE else COLLIDER
