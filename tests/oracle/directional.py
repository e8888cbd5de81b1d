"""A quick check of a state: the derivative along a few directions instead of all columns.

A wrong entry of A shows along almost any direction, at a thirtieth of the cost of all columns.
Most states are decided by three short differences in each direction, extrapolated, with an error
estimate and the same tolerances. All others are compared with the full reference.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

import mujoco
import numpy as np

import mujacobian
from mujacobian import reference
from mujacobian.check._judge import CONTACT_TOLERANCE as TOLERANCE
from mujacobian.check._judge import SETTLED_MARGIN, TRUST_MARGIN
from tests.oracle.converged import COLLIDER_ANGLE, ConvergedStep, is_manifold, is_truncated

# Witness points of curved geoms are the last iterates of MuJoCo's collider. Compared with closed
# forms (rim of a cylinder on an edge, 2.5 mm apart), their slopes have errors of up to 3e-5.
COLLIDER_SLOPE = 1e-4
COARSER = 1e-11  # tolerance of the collider for a second reference
EXACT, LIMITED, UNTRUSTED = "exact", "limited by the collider", "untrusted"
CONVERGED = "exact where the collider converges"
REFUSED, WRONG, CRASHED = "refused", "wrong", "crashed"
FAILURES = (WRONG, CRASHED)
RATIO = 10.0
BRIEF = 1e-4, 1e-2  # first length of the brief differences of positions and of velocities
BRIEF_RATIO = 3.0  # the lengths at which `ConstrainedStep.inside` compares branches
KINK = 1e-3  # share of the column by which the slopes of both sides may differ
SHORT = tuple(RATIO**-k for k in range(3, 10))  # lengths at which both sides are compared
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
    brief = compare_briefly(reference.ConstrainedStep(model, data), lin, directions)
    if is_exact(brief):
        return Verdict(EXACT, brief.error)
    found = converge_contacts(model, data)
    if found:
        brief = compare_briefly(*found, directions)
        if is_exact(brief):
            return Verdict(CONVERGED, brief.error)
    ref = reference.directional(
        model, data, directions, constrained=True, settled=TOLERANCE / SETTLED_MARGIN
    )
    rows = slice(ref.nx)
    given = lin.A @ directions[:, rows].T
    result = reference.compare(
        given, ref.J[rows], ref.err[rows], ref.blocks[:4], trust=TOLERANCE / TRUST_MARGIN
    )
    if is_exact(result):
        return Verdict(EXACT, result.error)
    converged = found and _compare_fully(*found, directions)
    if converged and is_exact(converged):
        return Verdict(CONVERGED, converged.error)
    if result.error <= TOLERANCE:
        return Verdict(EXACT if result.share > 0 else UNTRUSTED, result.error)
    row, column = result.worst()
    step = reference.ConstrainedStep(model, data)
    lines = (is_truncated(model, data, k) and is_manifold(model, data, k) for k in range(data.ncon))
    shortest = COLLIDER_ANGLE if any(lines) else 0.0
    if is_kink(step, directions[column], row, ref.J[row, column], given[row, column], shortest):
        return Verdict(UNTRUSTED, result.error, "kink")
    if not is_linear(step, directions[column], row, ref.J[row, column], given[row, column]):
        return Verdict(UNTRUSTED, result.error, "kink of several coordinates")
    where = f"{'qv'[row // model.nv]}'[{row % model.nv}] along {'qv'[column]}"
    limited = not converged and is_limited(model, data, directions, ref, result.error)
    return Verdict(LIMITED if limited else WRONG, result.error, where)


def compare_briefly(
    step: reference.ConstrainedStep, lin: mujacobian.Linearization, directions: np.ndarray
) -> reference.Comparison:
    """Compare A with brief differences, whose entries are trusted as those of the reference."""
    columns = [_brief_difference(step, direction) for direction in directions]
    J, err = (np.column_stack(part)[: step.nx] for part in zip(*columns, strict=True))
    given = lin.A @ directions[:, : step.nx].T
    return reference.compare(given, J, err, step.blocks[:4], trust=TOLERANCE / TRUST_MARGIN)


def _brief_difference(
    step: reference.ConstrainedStep, direction: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return central differences of three lengths within the branch, extrapolated, and errors."""
    step.forget()
    first = step.inside(direction, BRIEF[0 if direction[: step.model.nv].any() else 1])
    if first == 0:
        return np.zeros_like(step.value), np.full_like(step.value, np.inf)
    lengths = first / BRIEF_RATIO ** np.arange(3)
    sides = [np.array([step(s * h * direction) for s in (1, -1)]) for h in lengths]
    slopes = [(right - left) / (2 * h) for (right, left), h in zip(sides, lengths, strict=True)]
    once = [fine + (fine - rough) / (BRIEF_RATIO**2 - 1) for rough, fine in pairwise(slopes)]
    best = once[1] + (once[1] - once[0]) / (BRIEF_RATIO**4 - 1)
    floor = ROUNDING / 2 * step.noise / lengths[-1]
    err = np.maximum(np.maximum(abs(best - once[0]), abs(best - once[1])), floor)
    for lo, hi in pairwise(step.blocks):  # a single row may agree by accident
        err[lo:hi] = err[lo:hi].max(initial=0.0)
    wide, narrow = (abs(sides[k].sum(axis=0) - 2 * step.value) / lengths[k] for k in (0, -1))
    limit = KINK * abs(best).max() + 8 * floor
    if ((narrow > limit) & (narrow > wide / 2)).any():
        err[:] = np.inf
    return best, err


def is_exact(result: reference.Comparison) -> bool:
    """Return whether all errors are within the tolerance, and enough entries are trusted."""
    return result.error <= TOLERANCE and result.share > TRUSTED_SHARE


def random_directions(model: mujoco.MjModel, seed: int) -> np.ndarray:
    """Return a direction of positions and a direction of velocities, with entries up to one."""
    rng = np.random.default_rng(seed)
    nv = model.nv
    directions = np.zeros((2, 3 * nv + model.na + model.nu))
    directions[0, :nv] = rng.uniform(-1, 1, nv)
    directions[1, nv : 2 * nv] = rng.uniform(-1, 1, nv)
    return directions


def is_kink(
    step: reference.Step,
    direction: np.ndarray,
    row: int,
    expected: float,
    given: float,
    shortest: float = 0.0,
) -> bool:
    """Return whether an entry may be right although the extrapolation disagrees.

    The extrapolation can miss a kink that is nearer than its last step, or jumps of the collider
    that cancel by chance. Then the shortest differences do not confirm it. It can also miss a kink
    that is small relative to the largest entry of the column. Then the slopes of both sides differ
    for any length. Kinks of several contacts may partly cancel, and the derivative of their branch
    need not be between the slopes of the two sides. Below the length `shortest`, the collider does
    not resolve the two sides.
    """
    error = abs(given - expected)
    slopes = []
    for h in SHORT:
        if h < shortest or ROUNDING * step.noise[row] / h > error / 20:
            break
        slopes.append([s * (step(s * h * direction) - step.value)[row] / h for s in (-1, 1)])
    if not slopes:
        return False
    sides = np.array(slopes)
    if (abs(sides[-CONFIRMED:].mean(axis=1) - expected) > error / 2).any():
        return True
    if len(sides) < CONFIRMED:
        return False
    # the difference of the two slopes is linear in the length, and its limit at zero is the kink
    jumps = np.diff(sides, axis=1)[:, 0]
    limits = (RATIO * jumps[1:] - jumps[:-1]) / (RATIO - 1)
    if abs(limits[-1]) <= error / 10:
        return False
    # a limit across zero is an extrapolation, which the next longer pair must confirm
    confirmed = len(limits) > 1 and 0.5 < limits[-2] / limits[-1] < 2
    return bool(limits[-1] * jumps[-1] > 0 or confirmed)


def is_linear(
    step: reference.Step, direction: np.ndarray, row: int, expected: float, given: float
) -> bool:
    """Return False if it is certain that the step has no derivative at the state.

    The slopes of a differentiable step along a direction are the sum of those along its
    coordinates. The faces of two parallel boxes are an example of the contrary: the signs of
    several tilts decide which box MuJoCo clips (CON-26). The step has no derivative if the slopes
    along the coordinates exist and confirm the given entry, but not the expected one, or if the
    slopes of the two sides of a coordinate differ for any length.
    """
    error = abs(given - expected)
    lengths = [h for h in SHORT if ROUNDING * step.noise[row] / h <= error / 20][-CONFIRMED:]
    if len(lengths) < CONFIRMED:
        return True
    totals, axes = np.zeros(CONFIRMED), np.flatnonzero(direction)
    for axis in axes:
        z = np.zeros_like(direction)
        sides = []
        for h in lengths:
            z[axis] = h
            sides.append([s * (step(s * z) - step.value)[row] / h for s in (-1, 1)])
        slopes = direction[axis] * np.array(sides)
        longer, shorter = abs(np.diff(slopes, axis=1)[:, 0])
        if shorter > error / 4 and shorter > longer / 2:
            return False
        totals += slopes.mean(axis=1)
    return not bool((abs(totals - given) < error / 4).all())


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
    inside = any(is_line_inside(model, data, contact) for contact in data.contact)
    return bool(
        (field or inside or reference.meets_curved(model, data))
        and error <= max(COLLIDER_SLOPE, 2 * _collider_error(model, data, directions, ref))
    )


def is_line_inside(model: mujoco.MjModel, data: mujoco.MjData, contact: mujoco.MjContact) -> bool:
    """Return whether the center line of a capsule is in a mesh, so that the collider iterates.

    The distance of a manifold is measured from a face and does not show it. The point on the
    capsule does: it is off the center line in the direction of least depth. The line is in the mesh
    if no vertex of the mesh is beyond it along this direction.
    """
    capsule, mesh = contact.geom.tolist()
    kinds = [int(kind) for kind in model.geom_type[[capsule, mesh]]]
    if kinds != [int(mujoco.mjtGeom.mjGEOM_CAPSULE), int(mujoco.mjtGeom.mjGEOM_MESH)]:
        return False
    center, axis = data.geom_xpos[capsule], data.geom_xmat[capsule].reshape(3, 3)[:, 2]
    off = contact.pos - contact.dist / 2 * contact.frame[:3] - center
    off -= (off @ axis) * axis
    id_, frame = model.geom_dataid[mesh], data.geom_xmat[mesh].reshape(3, 3)
    first = model.mesh_vertadr[id_]
    vertices = model.mesh_vert[first : first + model.mesh_vertnum[id_]].astype(float)
    beyond = (data.geom_xpos[mesh] + vertices @ frame.T - center) @ off
    return bool(beyond.min() < 0)


def compare_converged(
    model: mujoco.MjModel, data: mujoco.MjData, directions: np.ndarray
) -> reference.Comparison | None:
    """Compare with contacts of curved geoms at their optimum; return None if it is unknown."""
    found = converge_contacts(model, data)
    return _compare_fully(*found, directions) if found else None


def converge_contacts(
    model: mujoco.MjModel, data: mujoco.MjData
) -> tuple[ConvergedStep, mujacobian.Linearization] | None:
    """Return the step with contacts of curved geoms at their optimum, and our derivative of it.

    Return None if there is no such contact, or if its optimum is unknown.
    """
    try:
        if not any(is_truncated(model, data, k) for k in range(data.ncon)):
            return None
        step = ConvergedStep(model, data)
        lin = mujacobian.linearize(step.model, step.converged, sensors=False, forward=False)
    except (ValueError, ArithmeticError, mujacobian.UnsupportedFeatureError):
        return None
    return step, lin


def _compare_fully(
    step: ConvergedStep, lin: mujacobian.Linearization, directions: np.ndarray
) -> reference.Comparison:
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
