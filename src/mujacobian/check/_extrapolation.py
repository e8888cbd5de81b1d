"""Central differences of a step, extrapolated to step zero, with an estimate of their errors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mujacobian._arguments import Array
from mujacobian.check._collider import SURFACE_SENSORS
from mujacobian.check._comparison import scale_of
from mujacobian.check._probe import Step

RATIO = 1.5  # between steps of the ladder: small, so that high orders are reached at large steps
CLIMBS = 3  # ladders that may be climbed for a column
LEVELS = 34  # 1.5^33: from the map's scale down to a millionth of it
SETTLED = 3e-12  # relative error estimate at which a ladder stops early, unless told
NEARLY = 1e-7  # below it a ladder that no longer improves has met rounding
PATIENCE = 8  # levels without improvement, then
AMPLIFICATION = 8.0  # standard deviations of rounding, of two values and their extrapolation
Q_STEP = 0.4  # rad or m: inside the radius of convergence of M^-1 and of tendon paths
SENSED_STEP = 1e-3  # the same where sensors see surfaces, whose features show in no branch
V_STEP = 1.0  # rad/s or m/s: the step is nearly polynomial in velocities
KINK_STEPS = (1.0, 0.1)  # of the ladder's last step, which is inside one branch
KINK = 1e-3  # one-sided derivatives that differ by more are two derivatives


def differentiate(step: Step, directions: Array, settled: float) -> tuple[Array, Array]:
    """Derivatives of a step along `directions` (n, nz), one column each, and their errors."""
    J = np.empty((step.blocks[-1], len(directions)))
    err = np.empty_like(J)
    for j, direction in enumerate(directions):
        J[:, j], err[:, j] = _column(step, direction, settled)
    return J, err


def _column(step: Step, direction: Array, settled: float = SETTLED) -> tuple[Array, Array]:
    """Return one column and its error.

    Two steps of a ladder may agree by accident where the map is periodic, as with servos on
    rotations: a ladder that does not agree with its own last step, shortened, is climbed again
    from there.
    """
    step.forget()
    first = step.inside(direction, _first_step(step, direction))
    if first == 0:
        return np.zeros(step.blocks[-1]), np.full(step.blocks[-1], np.inf)
    for _ in range(CLIMBS):
        best, err, last = _ladder(step, direction, first, settled)
        limit = KINK * scale_of(best[:, None], step.blocks)[:, 0] + _kink_noise(step, last)
        first = KINK_STEPS[1] * last
        astray = (abs(_central(step, direction, first) - best) > limit) & (err <= limit)
        if not astray.any():
            break
    err[astray | _kinks(step, direction, last, best)] = np.inf
    return best, err


def _ladder(
    step: Step, direction: Array, first: float, settled: float
) -> tuple[Array, Array, float]:
    """Return one column, its error and the last step: Richardson's tableau from a first step on."""
    best = np.zeros(step.blocks[-1])
    err = np.full(step.blocks[-1], np.inf)
    previous: list[Array] = []
    idle = 0
    for level in range(LEVELS):
        h = first / RATIO**level
        row = [_central(step, direction, h)]
        for k, older in enumerate(previous):
            row.append(row[k] + (row[k] - older) / (RATIO ** (2 * k + 2) - 1))
        # a row that moved at all carries the rounding of both its values
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
    """Keep the entries of the tableau's newest row that spread less; return whether any does.

    The q, v and act rows are judged together, block by block: a single row may agree by accident.
    Sensor rows have scales of their own.
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
    """Return the largest step in a direction: the scale on which the map bends or moves at all."""
    nv = step.model.nv
    dq, dv = abs(direction[:nv]), abs(direction[nv : 2 * nv])
    largest = SENSED_STEP if np.isin(step.model.sensor_type, SURFACE_SENSORS).any() else Q_STEP
    limits = [largest / dq.max()] if dq.any() else []
    limits += [max(V_STEP, 0.5 * s) / d for s, d in zip(abs(step.speed), dv, strict=True) if d > 0]
    if direction[2 * nv :].any():
        limits.append(_force_step(step, direction))
    return float(min(limits, default=1.0))


def _force_step(step: Step, direction: Array) -> float:
    """Return the step at which activations, controls and forces move velocities by their size.

    The map is nearly affine in them.
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

    Their difference shrinks with the step where the map is smooth, and stays at a kink. A kink of
    the state touches all rows, that of a sensor only its own.
    """
    wide, narrow = (_jump(step, direction, last * h) for h in KINK_STEPS)
    limit = KINK * scale_of(best[:, None], step.blocks)[:, 0] + _kink_noise(step, last)
    kinks = np.asarray((narrow > limit) & (narrow > 0.5 * wide))
    return kinks | kinks[: step.nx].any()


def _kink_noise(step: Step, last: float) -> Array:
    """Return the rounding of slopes at the shortest step with which kinks are looked for."""
    return np.asarray(4 * AMPLIFICATION * step.noise / (last * KINK_STEPS[1]))


def _jump(step: Step, direction: Array, h: float) -> Array:
    """Return |right - left| one-sided derivative in a direction."""
    return abs(step(h * direction) + step(-h * direction) - 2 * step.value) / h
