"""Judge the derivative along one direction of a parameter family at one state.

The reference is extrapolated differences of `mj_step` as a function of the parameters. A verdict is
"exact" only if the differences are accurate enough for most entries.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Literal

import mujoco
import numpy as np

import mujacobian
from mujacobian import reference
from mujacobian.check._comparison import ROUNDING
from mujacobian.check._judge import CONTACT_TOLERANCE, SETTLED_MARGIN, TRUST_MARGIN, tolerance_at
from mujacobian.check._probe import NOISE_SAMPLES

EXACT, REFUSED, NOT_JUDGED, WRONG = "exact", "refused", "not judged", "wrong"
NO_EFFECT = "no effect"  # neither the product nor the step changes at all
LINEARIZING, JUDGING = "linearizing", "judging"  # stages
STEP = 0.01  # largest relative change of the parameters
# Relative change of the parameters between the samples that measure rounding. Rounding is constant
# over small changes: a warm-started solver returns the same bits for changes of 1e-8, as if there
# were no rounding. The distance of the samples must be similar to that of the differences, which is
# up to `STEP`. A smooth map adds only its fourth derivative times (1e-5)^4.
NOISE_STEP = 1e-5
SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
TINY_STEP = 1e-7  # relative change of the parameters that shows jumps of the step
ROUNDING_SIGMAS = 4
COLLIDER_SLOPE = 1e-4  # error of MuJoCo's collider on curved geoms, see tests/oracle/directional.py
# Tolerance with constraints. The forces of constraint rows are stiff functions of the acceleration.
# Products with parameters compute it with an inverse, and lose digits by its condition number.
SENSOR_TOLERANCE = CONTACT_TOLERANCE
# families that move geoms, and with them the contacts that the collider finds
MOVING = ("body_pos", "body_quat", "jnt_pos", "jnt_axis", "geom_pos", "geom_quat", "geom_size")
TRUSTED_SHARE = 0.5  # share of trusted entries below which a state is not judged

Change = Callable[[float], mujoco.MjModel]  # the model at a distance along the direction


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A verdict: its word, the largest relative error, the share of judged entries, the reason."""

    word: str
    error: float = 0.0
    share: float = 0.0
    why: str = ""


class ParameterStep(reference.ConstrainedStep):
    """A step as a function of the first coordinate of z, the distance along a direction."""

    def __init__(self, change: Change, data: mujoco.MjData) -> None:
        self._change = change
        super().__init__(change(0.0), data)

    def _outcome(self, z: np.ndarray) -> np.ndarray:
        self.model = self.bare = self._change(float(z[0]))
        if self.model.opt.noslip_iterations:
            self.bare = copy.copy(self.model)
            self.bare.opt.noslip_iterations = 0
        return super()._outcome(z)

    def _move(self, z: np.ndarray) -> None:
        super()._move(np.zeros(self.nz))
        # with the flag sleep, a step leaves static geoms where they were in the previous model
        if self.model.opt.enableflags & SLEEP:
            self.model.opt.enableflags &= ~SLEEP
            mujoco.mj_kinematics(self.model, self.data)
            self.model.opt.enableflags |= SLEEP

    def _noise(self) -> np.ndarray:
        """Return the rounding of each row, which is at least that of storing its value."""
        samples = np.array(
            [self(k * NOISE_STEP * np.eye(self.nz)[0]) for k in range(1, NOISE_SAMPLES + 1)]
        )
        noise = np.sqrt((np.diff(samples, 4, axis=0) ** 2).mean(axis=0) / 70)
        stored = abs(self.value)
        stored[: self.model.nv] = _position_sizes(self.model, self.center)
        return np.maximum(noise, np.finfo(float).eps * stored / 4)

    def inside(self, direction: np.ndarray, h: float) -> float:
        """Return the largest step that stays in the branch of the state, at most `STEP`."""
        return super().inside(direction, min(h, STEP))


def _position_sizes(model: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray:
    """Return the size of the stored number with the position of each dof.

    The rows of a step are positions relative to the result at zero; rounding depends on the size of
    the stored numbers instead.
    """
    sizes = np.ones(model.nv)  # the components of unit quaternions
    for kind, dof, adr in zip(model.jnt_type, model.jnt_dofadr, model.jnt_qposadr, strict=True):
        count = {int(mujoco.mjtJoint.mjJNT_FREE): 3, int(mujoco.mjtJoint.mjJNT_BALL): 0}.get(
            int(kind), 1
        )
        sizes[dof : dof + count] = abs(qpos[adr : adr + count])
    return sizes


def choose(
    model: mujoco.MjModel, family: str, derived: Literal["recompute", "hold"]
) -> mujacobian.Parameters | None:
    """Return all elements of the family that can be parameters; None if there are none."""
    item: object = family
    if family in ("body_ipos", "body_log_cholesky"):
        chosen = [b for b in range(1, model.nbody) if not model.body_simple[b]]
        if family == "body_log_cholesky":
            chosen = [b for b in chosen if _is_physical(model, b)]
        item = (family, chosen)
    parameters = mujacobian.Parameters(model, [item], derived=derived)  # type: ignore[list-item]
    return parameters if len(parameters) else None


def _is_physical(model: mujoco.MjModel, body: int) -> bool:
    """Return whether a distribution of mass with this inertia exists, with a margin."""
    inertia = np.sort(model.body_inertia[body])
    return bool(model.body_mass[body] > 0 and inertia[0] + inertia[1] > (1 + 1e-6) * inertia[2])


def random_direction(parameters: mujacobian.Parameters, rng: np.random.Generator) -> np.ndarray:
    """Return a random change relative to the values; values that may be negative change by 0.1."""
    values = parameters.values
    size = np.where(parameters.lower == 0, abs(values), np.maximum(abs(values), 0.1))
    return np.asarray(rng.uniform(-1, 1, len(values)) * size)


def tolerance_of(family: str, model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Return the largest relative error that counts as exact for a family at a state."""
    if family in MOVING and reference.meets_curved(model, data):
        return COLLIDER_SLOPE
    return tolerance_at(data)


def judge_family(
    parameters: mujacobian.Parameters,
    data: mujoco.MjData,
    direction: np.ndarray,
    tolerance: float,
    *,
    change: Change | None = None,
    sensors: bool = True,
) -> Iterator[str | Verdict]:
    """Yield the name of each stage before it begins, and finally the verdict.

    `change` returns the model for the differences, by default `Parameters.apply`. The model of the
    parameters must have been passed to `converge`.
    """
    model, values = parameters.model, parameters.values
    if not direction.any():
        yield Verdict(NOT_JUDGED, why="all values are zero")
        return
    sensors &= model.nsensordata > 0
    yield LINEARIZING
    try:
        column, why = _product_with_sensors(parameters, data, direction, sensors)
    except mujacobian.MujacobianError as error:
        yield Verdict(REFUSED, why=str(error))
        return
    sensors &= not why
    yield JUDGING
    if not np.isfinite(column).all():
        yield Verdict(WRONG, np.inf, why="not finite")
        return
    change = change or (lambda t: parameters.apply(values + t * direction))
    try:
        verdict = _compare(column, ParameterStep(change, data), tolerance, sensors)
    except ArithmeticError as error:  # the step is not finite
        verdict = Verdict(NOT_JUDGED, why=str(error))
    yield verdict if not why or verdict.why else dataclasses.replace(verdict, why=why)


def _product_with_sensors(
    parameters: mujacobian.Parameters, data: mujoco.MjData, direction: np.ndarray, sensors: bool
) -> tuple[np.ndarray, str]:
    """Return the product, and the reason if it excludes sensors that are not supported."""
    try:
        return product(parameters, data, direction, sensors), ""
    except mujacobian.UnsupportedFeatureError as error:
        if not sensors or not error.element.startswith("sensor"):
            raise
        return product(parameters, data, direction, sensors=False), str(error)


def _compare(column: np.ndarray, step: ParameterStep, tolerance: float, sensors: bool) -> Verdict:
    model, one = step.model, np.eye(step.nz)[0]
    if not column.any() and all((step(h * one) == step.value).all() for h in (STEP, -STEP)):
        return Verdict(NO_EFFECT, share=1.0)
    J, err = reference.differentiate(step, np.eye(1, step.nz), tolerance / SETTLED_MARGIN)
    blocks = step.blocks[:4]
    if sensors:
        blocks = [*blocks, *(step.nx + model.sensor_adr + model.sensor_dim).tolist()]
    rows = slice(blocks[-1])
    result = reference.compare(
        column[:, None], J[rows], err[rows], blocks, trust=tolerance / TRUST_MARGIN
    )
    wrong = result.matrix[:, 0]
    limits = np.full(len(wrong), tolerance)
    limits[step.nx :] = max(tolerance, SENSOR_TOLERANCE) if step.data.nefc else tolerance
    judged = abs(column - J[rows, 0]) > _rounding(step, blocks)
    excess = np.where(judged, wrong / limits, 0.0)
    row = int(excess.argmax())
    if excess[row] > 1:
        if _one_sided_error(step, J[row, 0], row) > abs(column[row] - J[row, 0]):
            return Verdict(NOT_JUDGED, share=result.share, why=f"row {row} has a kink or a jump")
        why = f"row {row} of {step.nx} and sensors: {column[row]:.9g} for {J[row, 0]:.9g}"
        return Verdict(WRONG, float(wrong[row]), result.share, why)
    error = float(wrong[wrong <= limits].max(initial=0.0))
    if result.share < TRUSTED_SHARE:
        return Verdict(NOT_JUDGED, error, result.share, "a kink, or rounding")
    return Verdict(EXACT, error, result.share)


def _one_sided_error(step: ParameterStep, slope: float, row: int) -> float:
    """Return by how much one-sided slopes of a row over a tiny change differ from its slope.

    Differences straddle the state. At a tie between branches, such as a cylinder that stands
    upright on a plane, they miss a jump of the step at the state itself. Rounding does not count.
    """
    z = TINY_STEP * np.eye(step.nz)[0]
    ahead, behind = step(z)[row] - step.value[row], step.value[row] - step(-z)[row]
    apart = max(abs(ahead / TINY_STEP - slope), abs(behind / TINY_STEP - slope))
    return float(apart - ROUNDING_SIGMAS * step.noise[row] / TINY_STEP)


def _rounding(step: ParameterStep, blocks: list[int]) -> np.ndarray:
    """Return the rounding of derivatives along a relative change, per row."""
    result = np.empty(blocks[-1])
    values = abs(step.value)
    values[: step.model.nv] = _position_sizes(step.model, step.center)
    for lo, hi in pairwise(blocks):
        result[lo:hi] = ROUNDING * values[lo:hi].max(initial=0.0)
    return result


def product(
    parameters: mujacobian.Parameters, data: mujoco.MjData, direction: np.ndarray, sensors: bool
) -> np.ndarray:
    """Return the derivative of the next state and of the sensors along the direction."""
    state, sensed = mujacobian.jvp(
        parameters.model, data, params=parameters, d_params=direction, sensors=sensors
    )
    return state if sensed is None else np.concatenate([state, sensed])
