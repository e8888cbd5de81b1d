"""Central differences of a step, extrapolated to step zero, with an estimate of their errors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian.check._collider import SURFACE_SENSORS
from mujacobian.check._comparison import scale_of
from mujacobian.check._probe import Step

RATIO = 1.5  # between step sizes: small, so that large steps already reach high orders
ATTEMPTS = 3  # extrapolations of a column, each from a shorter first step
LEVELS = 34  # number of step sizes: 1.5^33 is about a million
SETTLED = 3e-12  # relative error estimate at which an extrapolation stops, by default
NEARLY = 1e-7  # below this error, no further improvement means rounding errors
PATIENCE = 8  # number of step sizes without improvement
AMPLIFICATION = 8.0  # rounding error of an extrapolated difference, in standard deviations
Q_STEP = 0.4  # rad or m: inside the radius of convergence of M^-1 and of tendon paths
SENSED_STEP = 1e-3  # the same with sensors of surfaces, whose features are in no branch
V_STEP = 1.0  # rad/s or m/s: the step is nearly polynomial in velocities
KINK_STEPS = (1.0, 0.1)  # relative to the last step, which is inside one branch
MEAN_STEP = 1e-3  # of the mean slope in a direction in which no step stays in one branch
KINK = 1e-3  # one-sided derivatives that differ by more are two derivatives


def differentiate(step: Step, directions: Array, settled: float) -> tuple[Array, Array]:
    """Return derivatives along `directions` (n, nz), one column each, and their errors."""
    J = np.empty((step.blocks[-1], len(directions)))
    err = np.empty_like(J)
    for j, direction in enumerate(directions):
        _core.poll_interrupt()
        J[:, j], err[:, j] = _column(step, direction, settled)
    return J, err


def _column(step: Step, direction: Array, settled: float = SETTLED) -> tuple[Array, Array]:
    """Return one column and its error.

    If the step is periodic, as with servos on rotations, two step sizes may agree by accident. The
    result is therefore compared with a difference at a shorter step. If they disagree, that step is
    the first one of another extrapolation.
    """
    step.forget()
    first = step.inside(direction, _first_step(step, direction))
    if first == 0:
        mean = _central(step, direction, MEAN_STEP)
        known = mean if np.isfinite(mean).all() else np.zeros_like(mean)
        return known, np.full(step.blocks[-1], np.inf)
    for _ in range(ATTEMPTS):
        best, err, last = _extrapolate(step, direction, first, settled)
        limit = KINK * scale_of(best[:, None], step.blocks)[:, 0] + _kink_noise(step, last)
        first = KINK_STEPS[1] * last
        astray = (abs(_central(step, direction, first) - best) > limit) & (err <= limit)
        if not astray.any():
            break
    err[astray | _kinks(step, direction, last, best)] = np.inf
    return best, err


def _extrapolate(
    step: Step, direction: Array, first: float, settled: float
) -> tuple[Array, Array, float]:
    """Return one column, its error and the last step size, by Richardson extrapolation."""
    best = np.zeros(step.blocks[-1])
    err = np.full(step.blocks[-1], np.inf)
    previous: list[Array] = []
    idle = 0
    for level in range(LEVELS):
        h = first / RATIO**level
        row = [_central(step, direction, h)]
        for k, older in enumerate(previous):
            row.append(row[k] + (row[k] - older) / (RATIO ** (2 * k + 2) - 1))
        # a row that changes has the rounding errors of both values
        floor = AMPLIFICATION / 2 * step.noise / h
        if step.zero_is_exact:
            floor[row[0] == 0] = 0.0
        improved = bool(previous) and _keep(step.blocks, row, previous, floor, best, err)
        previous = row
        relative = (err / scale_of(best[:, None], step.blocks)[:, 0]).max(initial=0.0)
        idle = 0 if improved else idle + 1
        if relative <= settled or (relative <= NEARLY and idle >= PATIENCE):
            break
    return best, err, h


def _keep(
    blocks: list[int], row: list[Array], older: list[Array], floor: Array, best: Array, err: Array
) -> bool:
    """Keep the entries of the newest row of the tableau that vary less; return whether any does.

    The q, v and act rows are compared block by block, because a single row may agree by accident.
    Sensor rows have different scales and are compared one by one.
    """
    values = np.array(row)
    spread = np.maximum(abs(values[1:] - values[:-1]), abs(values[1:] - older))
    spread = np.maximum(spread, floor)
    for lo, hi in pairwise(blocks[:-1]):
        spread[:, lo:hi] = spread[:, lo:hi].max(axis=1, initial=0.0, keepdims=True)
    spread[np.isnan(spread)] = np.inf
    k, entry = spread.argmin(axis=0), np.arange(len(err))
    take = np.flatnonzero(spread[k, entry] < err)
    best[take], err[take] = values[k[take] + 1, take], spread[k[take], take]
    return take.size > 0


def _central(step: Step, direction: Array, h: float) -> Array:
    return (step(h * direction) - step(-h * direction)) / (2 * h)


def _first_step(step: Step, direction: Array) -> float:
    """Return the first step in a direction: the scale on which the function is nonlinear."""
    nv = step.model.nv
    dq, dv = abs(direction[:nv]), abs(direction[nv : 2 * nv])
    largest = SENSED_STEP if np.isin(step.model.sensor_type, SURFACE_SENSORS).any() else Q_STEP
    limits = [largest / dq.max()] if dq.any() else []
    limits += [max(V_STEP, 0.5 * s) / d for s, d in zip(abs(step.speed), dv, strict=True) if d > 0]
    if direction[2 * nv :].any():
        limits.append(_force_step(step, direction))
    return float(min(limits, default=1.0))


def _force_step(step: Step, direction: Array) -> float:
    """Return the step at which activations, controls and forces change velocities by their size.

    The function is nearly affine in these inputs.
    """
    nv = step.model.nv
    forces = np.where(np.arange(step.nz) < 2 * nv, 0.0, direction)
    rows = slice(nv, 2 * nv)
    size = max(1.0, abs(step.value[rows]).max(initial=0.0))
    h = 1e-3
    while h < 1e6:
        moved = max(abs(step(s * forces) - step.value)[rows].max(initial=0.0) for s in (h, -h))
        if moved > 1e-4 * size:
            return float(h * min(size / moved, 1e3))
        h *= 30.0
    return 1.0


def _kinks(step: Step, direction: Array, last: float, best: Array) -> np.ndarray:
    """Return the rows whose left and right derivatives differ.

    Their difference decreases with the step if the function is smooth, and is constant at a kink. A
    kink of the state affects all rows, a kink of a sensor only its own.
    """
    wide, narrow = (_jump(step, direction, last * h) for h in KINK_STEPS)
    limit = KINK * scale_of(best[:, None], step.blocks)[:, 0] + _kink_noise(step, last)
    kinks = np.asarray((narrow > limit) & (narrow > 0.5 * wide))
    return kinks | kinks[: step.nx].any()


def _kink_noise(step: Step, last: float) -> Array:
    """Return the rounding errors of derivatives at the shortest step of the search for kinks."""
    return np.asarray(4 * AMPLIFICATION * step.noise / (last * KINK_STEPS[1]))


def _jump(step: Step, direction: Array, h: float) -> Array:
    """Return the difference of the one-sided derivatives in a direction."""
    return abs(step(h * direction) + step(-h * direction) - 2 * step.value) / h
