"""A quick check of a state: the derivative along a few directions instead of all columns.

A wrong entry of A shows along almost any direction, at a thirtieth of the cost of all columns.
"""

import re
from dataclasses import dataclass

import mujoco
import numpy as np

import mujacobian
from mujacobian import reference
from mujacobian.check._judge import CONTACT_TOLERANCE as TOLERANCE
from mujacobian.check._judge import SETTLED_MARGIN, TRUST_MARGIN
from tests.oracle.converged import ConvergedStep

# Witness points of curved geoms are the last iterates of MuJoCo's collider. Compared with closed
# forms (rim of a cylinder on an edge, 2.5 mm apart), their slopes have errors of up to 3e-5.
COLLIDER_SLOPE = 1e-4
COARSER = 1e-11  # tolerance of the collider for a second reference
EXACT, LIMITED, UNTRUSTED = "exact", "limited by the collider", "untrusted"
CONVERGED = "exact where the collider converges"
REFUSED, WRONG, CRASHED = "refused", "wrong", "crashed"
FAILURES = (WRONG, CRASHED)
RATIO = 10.0
SHORT = tuple(RATIO**-k for k in range(4, 10))  # lengths shorter than those of the extrapolation
CONFIRMED = 2  # shortest differences above rounding that must agree with the extrapolation
ROUNDING = 8.0  # standard deviations
TRUSTED_SHARE = 0.5  # share of trusted entries below which a state is not judged


@dataclass(frozen=True)
class Verdict:
    """A verdict (one of the words above), the worst error, and the reason."""

    word: str
    error: float = 0.0
    why: str = ""


def judge_directions(model: mujoco.MjModel, data: mujoco.MjData, seed: int) -> Verdict:
    """Judge A along one direction of positions and one of velocities.

    The model must have been passed to `reference.converge`. A state is "untrusted" if the reference
    is not accurate enough along both directions, because of a kink or rounding. Contacts of curved
    geoms, for which the collider stops early, are judged at their optimum. A state is "limited" if
    the optimum is unknown and the error is within the error of the collider.
    """
    try:
        lin = mujacobian.linearize(model, data, sensors=False)
    except mujacobian.UnsupportedFeatureError as error:
        return Verdict(REFUSED, why=_pair(error))
    except Exception as error:
        return Verdict(CRASHED, why=f"{type(error).__name__}: {error}")
    if not np.isfinite(lin.A).all():
        return Verdict(WRONG, np.inf, "not finite")
    directions = random_directions(model, seed)
    ref = reference.directional(
        model, data, directions, constrained=True, settled=TOLERANCE / SETTLED_MARGIN
    )
    rows = slice(ref.nx)
    given = lin.A @ directions[:, rows].T
    result = reference.compare(
        given, ref.J[rows], ref.err[rows], ref.blocks[:4], trust=TOLERANCE / TRUST_MARGIN
    )
    if result.error <= TOLERANCE and result.share > TRUSTED_SHARE:
        return Verdict(EXACT, result.error)
    converged = compare_converged(model, data, directions)
    if converged and converged.share > TRUSTED_SHARE and converged.error <= TOLERANCE:
        return Verdict(CONVERGED, converged.error)
    if result.error <= TOLERANCE:
        return Verdict(EXACT if result.share > 0 else UNTRUSTED, result.error)
    row, column = result.worst()
    step = reference.ConstrainedStep(model, data)
    if is_kink(step, directions[column], row, ref.J[row, column], given[row, column]):
        return Verdict(UNTRUSTED, result.error, "kink")
    where = f"{'qv'[row // model.nv]}'[{row % model.nv}] along {'qv'[column]}"
    limited = not converged and is_limited(model, data, directions, ref, result.error)
    return Verdict(LIMITED if limited else WRONG, result.error, where)


def random_directions(model: mujoco.MjModel, seed: int) -> np.ndarray:
    """Return a direction of positions and a direction of velocities, with entries up to one."""
    rng = np.random.default_rng(seed)
    nv = model.nv
    directions = np.zeros((2, 3 * nv + model.na + model.nu))
    directions[0, :nv] = rng.uniform(-1, 1, nv)
    directions[1, nv : 2 * nv] = rng.uniform(-1, 1, nv)
    return directions


def is_kink(
    step: reference.Step, direction: np.ndarray, row: int, expected: float, given: float
) -> bool:
    """Return whether an entry may be right although the extrapolation disagrees.

    The extrapolation can miss a kink that is nearer than its last step, or jumps of the collider
    that cancel by chance. Then the shortest differences do not confirm it. It can also miss a kink
    that is small relative to the largest entry of the column. Then the slopes of both sides differ
    for any length. Kinks of several contacts may partly cancel, and the derivative of their branch
    need not be between the slopes of the two sides.
    """
    error = abs(given - expected)
    slopes = []
    for h in SHORT:
        if ROUNDING * step.noise[row] / h > error / 20:
            break
        slopes.append([s * (step(s * h * direction) - step.value)[row] / h for s in (-1, 1)])
    if not slopes:
        return False
    sides = np.array(slopes[-CONFIRMED:])
    if (abs(sides.mean(axis=1) - expected) > error / 2).any():
        return True
    if len(sides) < CONFIRMED:
        return False
    # the difference of the two slopes is linear in the length, and its limit at zero is the kink
    longer, shorter = np.diff(sides, axis=1)[:, 0]
    limit = (RATIO * shorter - longer) / (RATIO - 1)
    return bool(limit * np.sign(shorter) > error / 10)


def is_limited(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    directions: np.ndarray,
    ref: reference.Reference,
    error: float,
) -> bool:
    """Return whether an error is within the error of the collider."""
    # within a margin of a height field, the collider also rounds boxes and meshes
    field = int(mujoco.mjtGeom.mjGEOM_HFIELD) in model.geom_type[data.contact.geom[:, 0]]
    return bool(
        (field or reference.meets_curved(model, data))
        and error <= max(COLLIDER_SLOPE, 2 * _collider_error(model, data, directions, ref))
    )


def compare_converged(
    model: mujoco.MjModel, data: mujoco.MjData, directions: np.ndarray
) -> reference.Comparison | None:
    """Compare with contacts of curved geoms at their optimum; return None if it is unknown."""
    try:
        step = ConvergedStep(model, data)
        if not step.optima:
            return None
        lin = mujacobian.linearize(step.model, step.converged, sensors=False, forward=False)
    except (ValueError, ArithmeticError, mujacobian.UnsupportedFeatureError):
        return None
    J, err = reference.differentiate(step, directions, TOLERANCE / SETTLED_MARGIN)
    rows = slice(step.nx)
    given = lin.A @ directions[:, rows].T
    trust = TOLERANCE / TRUST_MARGIN
    return reference.compare(given, J[rows], err[rows], step.blocks[:4], trust)


def _collider_error(
    model: mujoco.MjModel, data: mujoco.MjData, directions: np.ndarray, ref: reference.Reference
) -> float:
    """Return the change of the reference with the tolerance of the collider."""
    before = model.opt.ccd_tolerance
    model.opt.ccd_tolerance = COARSER
    other = reference.directional(
        model, data, directions, constrained=True, settled=TOLERANCE / SETTLED_MARGIN
    )
    model.opt.ccd_tolerance = before
    rows = slice(ref.nx)
    known = np.maximum(ref.err[rows], other.err[rows])
    return reference.compare(
        other.J[rows], ref.J[rows], known, ref.blocks[:4], trust=TOLERANCE / TRUST_MARGIN
    ).error


def _pair(error: mujacobian.UnsupportedFeatureError) -> str:
    """Return the refused pair of geom types, which begin the names of the geoms, and the reason."""
    kinds = re.findall(r'geom "([a-z]+)\d', error.element)
    return f"{'-'.join(sorted(kinds)) or error.element}: {error.reason}"
