"""Trusted numerical Jacobians of one mj_step, for judging analytic ones.

Every column is a ladder of central differences of the full `mj_step`, extrapolated to zero step
(Richardson). The ladder starts at a step as large as the map's own scale, where rounding is
harmless, and shrinks until the extrapolation has settled; the entry of the tableau with the
smallest error estimate is kept. The rounding of the map is measured, not guessed. A ladder that
straddles a clamp or a dead band does not settle until its steps are inside one branch, so the
estimate stays honest; a column whose left and right differences disagree at the smallest step sits
on a kink and is excluded (infinite error).

With constraints (`ConstrainedStep`), the solver is converged and every probe reports its branch:
which rows exist, their zones, saturated impedances. The ladder starts at the largest step whose two
probes are in the branch of the state itself; a column without such a step sits on a kink. MuJoCo's
convex collider stops short of the contact of curved geoms, smoothly, which no ladder sees: such
states are differentiated at two tolerances of the collider, and trusted as far as these agree; and
since it measures only distances, the slope of a contact point is known to about the root of
rounding.

`mujoco.mjd_transitionFD` is not used: it is what we want to be better than.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, product

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian.probe import (
    COLLIDER_TOLERANCES,
    CONE,
    LINEARNEG,
    LINEARPOS,
    QUADRATIC,
    SATISFIED,
    Array,
    ConstrainedStep,
    Step,
    branch,
    converge,
    quiet,
    zones,
)

__all__ = [
    "CONE",
    "LINEARNEG",
    "LINEARPOS",
    "QUADRATIC",
    "SATISFIED",
    "Comparison",
    "ConstrainedStep",
    "Reference",
    "Step",
    "branch",
    "compare",
    "converge",
    "differentiate",
    "directional",
    "is_deep",
    "jacobian",
    "meets_curved",
    "quiet",
    "zones",
]

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
TRUST = 2e-10  # of the scale of the block: five times better than the bar of 1e-9
BLOCK_FLOOR = 1e-3  # a block of rows weighs at least this share of its column
TRUNCATION = 1e-7  # relative, of slopes of contact points at the best tolerance
CURVED = {int(mujoco.mjtGeom.mjGEOM_ELLIPSOID), int(mujoco.mjtGeom.mjGEOM_CYLINDER)}
ROUND = {int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE)}
MESH = int(mujoco.mjtGeom.mjGEOM_MESH)
PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)  # has closed forms with everything
SPHERE_CYLINDER = {int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CYLINDER)}  # too
DISTANCES = [
    int(mujoco.mjtSensor.mjSENS_GEOMDIST),
    int(mujoco.mjtSensor.mjSENS_GEOMNORMAL),
    int(mujoco.mjtSensor.mjSENS_GEOMFROMTO),
]
SURFACE_SENSORS = [*DISTANCES, int(mujoco.mjtSensor.mjSENS_RANGEFINDER)]
WRAPPING = [int(mujoco.mjtWrap.mjWRAP_SPHERE), int(mujoco.mjtWrap.mjWRAP_CYLINDER)]
COLUMN_FLOOR = 1e-9  # below it a column counts as zero
ROUNDING = 1e-13  # of the largest entry of a block: what is left where a column is zero
ALL_ZERO = 1e-2  # stands for the largest entry of a block that is zero


@dataclass(frozen=True)
class Reference:
    """Derivatives of (q, v, act, sensors), with an estimate of their absolute error.

    The columns are those of (q, v, act, ctrl, qfrc_applied), or whichever were asked for.
    `blocks` are the boundaries of the four groups of rows, `evaluations` the steps it took.
    """

    J: Array
    err: Array
    blocks: list[int]
    nx: int
    nu: int
    evaluations: int

    @property
    def A(self) -> Array:
        """State with respect to state."""
        return self.J[: self.nx, : self.nx]

    @property
    def B(self) -> Array:
        """State with respect to controls."""
        return self.J[: self.nx, self.nx : self.nx + self.nu]

    @property
    def C(self) -> Array:
        """Sensors with respect to state."""
        return self.J[self.nx :, : self.nx]

    @property
    def D(self) -> Array:
        """Sensors with respect to controls."""
        return self.J[self.nx :, self.nx : self.nx + self.nu]

    @property
    def Bf(self) -> Array:
        """State with respect to applied forces."""
        return self.J[: self.nx, self.nx + self.nu :]

    @property
    def Df(self) -> Array:
        """Sensors with respect to applied forces."""
        return self.J[self.nx :, self.nx + self.nu :]


@dataclass(frozen=True)
class Comparison:
    """Worst relative error over trusted entries, share of trusted entries, error of each entry."""

    error: float
    share: float
    matrix: Array

    def worst(self) -> tuple[int, int]:
        """Row and column of the worst entry."""
        row, column = np.unravel_index(np.argmax(self.matrix), self.matrix.shape)
        return int(row), int(column)


def jacobian(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    forces: bool = False,
    constrained: bool = False,
    settled: float = SETTLED,
) -> Reference:
    """The Jacobian of one step at the state of `data`, which is left unchanged.

    With `forces`, columns with respect to `qfrc_applied` follow those of `ctrl`. `constrained`
    is for states with constraint rows, of a model whose solver has been made to `converge`.
    Columns whose relative error estimate is below `settled` are not improved any further.
    """
    nz = 2 * model.nv + model.na + model.nu + model.nv
    columns = nz if forces else nz - model.nv
    return directional(model, data, np.eye(nz)[:columns], constrained=constrained, settled=settled)


def directional(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    directions: ArrayLike,
    *,
    constrained: bool = False,
    settled: float = SETTLED,
) -> Reference:
    """Derivatives of one step along `directions` (n, nz), one column each; see `jacobian`.

    A direction is (dq, dv, dact, dctrl, dforce) in tangent coordinates, nz = 3 nv + na + nu.
    """
    directions = np.asarray(directions, dtype=np.float64)
    with quiet():
        wraps = np.isin(model.wrap_type, WRAPPING).any()
        branches = constrained or wraps or model.opt.density > 0
        kind = ConstrainedStep if branches else Step
        step = kind(model, data)
        truncated = meets_curved(model, step.data)
        J, err = differentiate(step, directions, settled)
        evaluations = step.evaluations
        if truncated and model.opt.ccd_tolerance == COLLIDER_TOLERANCES[0]:
            with _collider_tolerance(model, COLLIDER_TOLERANCES[1]):
                finer = kind(model, data)
                other, other_err = differentiate(finer, directions, settled)
            evaluations += finer.evaluations
            err = np.maximum(np.maximum(err, other_err), abs(J - other))
            moves = directions[:, : model.nv].any(axis=1)
            for lo, hi in pairwise(step.blocks):
                largest = abs(J[lo:hi, moves]).max(initial=0.0)
                err[lo:hi, moves] = np.maximum(err[lo:hi, moves], TRUNCATION * largest)
    return Reference(J, err, step.blocks, step.nx, model.nu, evaluations)


def meets_curved(model: mujoco.MjModel, data: mujoco.MjData) -> bool:
    """Whether a contact or distance is the limit of MuJoCo's convex collider on curved geoms."""
    if any(is_deep(model, contact) for contact in data.contact):
        return True
    pairs = [contact.geom for contact in data.contact]
    for k in np.flatnonzero(np.isin(model.sensor_type, DISTANCES)):
        first = _geoms(model, model.sensor_objtype[k], model.sensor_objid[k])
        second = _geoms(model, model.sensor_reftype[k], model.sensor_refid[k])
        pairs.extend(product(first, second))
    for pair in pairs:
        kinds = {int(model.geom_type[g]) for g in pair if g >= 0}
        if kinds & CURVED and PLANE not in kinds and kinds != SPHERE_CYLINDER:
            return True
    return False


def is_deep(model: mujoco.MjModel, contact: mujoco.MjContact) -> bool:
    """Whether the core of a sphere or capsule is in a mesh, where the collider sees its surface."""
    first, second = contact.geom
    if first < 0 or second < 0 or model.geom_type[second] != MESH:
        return False
    return bool(model.geom_type[first] in ROUND and contact.dist < -model.geom_size[first, 0])


def _geoms(model: mujoco.MjModel, kind: int, index: int) -> range:
    """Return the geoms of a body, or the geom itself."""
    if kind != mujoco.mjtObj.mjOBJ_BODY:
        return range(index, index + 1)
    first = int(model.body_geomadr[index])
    return range(first, first + int(model.body_geomnum[index]))


@contextmanager
def _collider_tolerance(model: mujoco.MjModel, tolerance: float) -> Iterator[None]:
    before = model.opt.ccd_tolerance
    model.opt.ccd_tolerance = tolerance
    try:
        yield
    finally:
        model.opt.ccd_tolerance = before


def differentiate(step: Step, directions: Array, settled: float) -> tuple[Array, Array]:
    """Derivatives of a step along `directions` (n, nz), one column each, and their errors."""
    J = np.empty((step.blocks[-1], len(directions)))
    err = np.empty_like(J)
    for j, direction in enumerate(directions):
        J[:, j], err[:, j] = _column(step, direction, settled)
    return J, err


def compare(
    J: Array, ref: Array, err: Array, blocks: list[int], trust: float = TRUST
) -> Comparison:
    """Compare J with a reference, entry by entry where the reference is trusted.

    Errors are relative to the largest entry of the same column within the same block of rows, at
    least `BLOCK_FLOOR` of the column's largest; those within the rounding of the block's largest
    entry are relative to that.
    """
    scale = _scale(ref, blocks)
    trusted = err <= trust * scale
    wrong = abs(J - ref)
    for lo, hi in pairwise(blocks):
        largest = max(abs(ref[lo:hi]).max(initial=0.0), ALL_ZERO)
        rounding = wrong[lo:hi] <= ROUNDING * largest
        scale[lo:hi] = np.where(rounding, np.maximum(scale[lo:hi], largest), scale[lo:hi])
    matrix = np.where(trusted, wrong / scale, 0.0)
    matrix[trusted & ~np.isfinite(J)] = np.inf
    share = float(trusted.mean()) if trusted.size else 1.0
    return Comparison(float(matrix.max(initial=0.0)), share, matrix)


def _scale(ref: Array, blocks: list[int]) -> Array:
    """Return the size against which an error counts, for every entry.

    The first three blocks are those of the state, others of sensors, which have other units.
    """
    scale, size = np.empty_like(ref), abs(ref)
    state = blocks[min(3, len(blocks) - 1)]
    for begin, end in ((0, state), (state, blocks[-1])):
        if begin == end:
            continue
        floor = BLOCK_FLOOR * np.maximum(size[begin:end].max(axis=0), COLUMN_FLOOR)
        for lo, hi in pairwise(blocks):
            if begin <= lo < hi <= end:
                scale[lo:hi] = np.maximum(size[lo:hi].max(axis=0), floor)
    return scale


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
        limit = KINK * _scale(best[:, None], step.blocks)[:, 0] + _kink_noise(step, last)
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
        relative = (err / _scale(best[:, None], step.blocks)[:, 0]).max(initial=0.0)
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
    limit = KINK * _scale(best[:, None], step.blocks)[:, 0] + _kink_noise(step, last)
    kinks = np.asarray((narrow > limit) & (narrow > 0.5 * wide))
    return kinks | kinks[: step.nx].any()


def _kink_noise(step: Step, last: float) -> Array:
    """Return the rounding of slopes at the shortest step with which kinks are looked for."""
    return np.asarray(4 * AMPLIFICATION * step.noise / (last * KINK_STEPS[1]))


def _jump(step: Step, direction: Array, h: float) -> Array:
    """Return |right - left| one-sided derivative in a direction."""
    return abs(step(h * direction) + step(-h * direction) - 2 * step.value) / h
