"""Checks whether the result of a fit can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mujacobian._arguments import Array
from mujacobian.sysid.linear_fit import LinearFit
from mujacobian.sysid.numerics import gammaincinv

# The reduced chi-square is far from 1 under two conditions. Noise of the stated size would produce
# such a value in fewer than one of a thousand fits. And it differs from 1 by more than this factor:
# a smaller factor hardly changes the standard errors, which scale with its square root.
CHANCE = 1e-3
FACTOR = 1.5
# A parameter is on a bound if the linearized optimum is beyond the bound and the value is near the
# bound, by these fractions of its standard error.
BEYOND = 1e-3
NEAR = 0.1


class IdentificationWarning(UserWarning):
    """The result of `identify` may be wrong; the message gives the reason and the remedy."""


def expected_chi_square(degrees_of_freedom: int) -> tuple[float, float]:
    """Return the interval of the reduced chi-square of a right model in 999 of 1000 fits."""
    tails = np.array([CHANCE / 2, 1 - CHANCE / 2])
    low, high = 2 * gammaincinv(degrees_of_freedom / 2, tails) / degrees_of_freedom
    return float(low), float(high)


def judge_chi_square(
    reduced: float, degrees_of_freedom: int, *, estimate: bool, window: int | None
) -> str | None:
    """Return a warning if the reduced chi-square is far from 1, or None."""
    low, high = expected_chi_square(degrees_of_freedom)
    found = (
        f"the reduced chi-square is {reduced:.3g} where {low:.3g} to {high:.3g} is expected"
        f" ({degrees_of_freedom} degrees of freedom): "
    )
    if reduced < min(low, 1 / FACTOR):
        return found + (
            "the residuals are smaller than the stated noise. State the noise of the measurements"
            " (sensor_noise, state_noise). The standard errors are scaled to the residuals"
        )
    if reduced <= max(high, FACTOR):
        return None
    causes = ["the stated noise is too small", "the model lacks an effect or a parameter"]
    if not estimate:
        causes.insert(0, 'first states were measured with noise (use initial_states="estimate")')
    if window is None:
        causes.insert(
            0,
            "the optimizer stopped in a local minimum, which is common for long logs of systems"
            " that swing or tumble (use window=, such as 100 steps, then pass the resulting values"
            " as start=)",
        )
    return found + (
        "the model with these values does not explain the logs, and neither the values nor the"
        " standard errors can be trusted. Possible causes: " + "; ".join(causes)
    )


def judge_rank(fit: LinearFit, names: Sequence[str]) -> str | None:
    """Return a warning about parameters that the logs do not determine, or None."""
    alone, together = [], []
    for group in fit.undetermined():
        if len(group) == 1:
            alone.append(names[group[0]])
        else:
            together.append(" with ".join(names[k] for k in group))
    if not alone and not together:
        return None
    text = []
    if alone:
        text.append(f"the logs do not depend on {', '.join(alone)}")
    if together:
        text.append(f"the logs show only a combination of {'; of '.join(together)}")
    return (
        " and ".join(text)
        + ". Their standard errors are inf and their values are arbitrary: leave them"
        " out of the parameters, or record logs that excite them separately"
    )


def judge_errors(
    names: Sequence[str], values: Array, errors: Array, start: Array, lower: Array
) -> str | None:
    """Return a warning about positive parameters with an error larger than their value, or None."""
    scale = np.maximum(np.abs(values), np.abs(start))
    places = np.flatnonzero((lower == 0) & np.isfinite(errors) & (errors > scale)).tolist()
    if not places:
        return None
    listed = ", ".join(f"{names[k]} = {values[k]:.2g} ± {errors[k]:.2g}" for k in places)
    return (
        f"hardly determined: {listed}. The standard error is larger than the value and the initial"
        " value: leave such parameters out, record logs that excite them, or use longer windows"
    )


def on_bounds(
    fit: LinearFit, values: Array, errors: Array, lower: Array, upper: Array
) -> list[int]:
    """Return the parameters whose unconstrained optimum is beyond their bounds."""
    step = fit.step()
    target = values + step
    beyond = np.maximum(lower - target, target - upper)
    room = np.where(step < 0, values - lower, upper - values)
    places = np.flatnonzero((beyond > BEYOND * errors) & (room <= NEAR * errors))
    return [int(k) for k in places]


def judge_bounds(names: Sequence[str], values: Array, places: Sequence[int]) -> str | None:
    """Return a warning about parameters on bounds, or None."""
    if not places:
        return None
    listed = ", ".join(f"{names[k]} = {values[k]:.4g}" for k in places)
    return (
        f"on a bound: {listed}. The logs would fit better beyond it, and the standard errors are"
        " not valid there: widen bounds= if they are narrower than the physics, otherwise look for"
        " effects that the model lacks, or fix these parameters and leave them out"
    )
