"""A state exactly on a tie between two branches, judged by the two one-sided derivatives."""

from dataclasses import dataclass, field

import mujoco
import numpy as np

import mujacobian
from mujacobian import reference

SMOOTH, AVERAGE, LEFT, RIGHT, RAISES = "smooth", "average", "left", "right", "raises"
ONE_SIDE, BETWEEN, JUMPS = "one side", "between", "jumps"
STEP = 4e-6  # of the one-sided differences; extrapolated from STEP and STEP / 2
# The extrapolated differences have an error of STEP^2 f''' and of rounding / STEP, relative to the
# largest entry of their column.
TOLERANCE = 2e-5
JUMP = 0.1  # a derivative relative to the differences over a jump, which grow as 1 / STEP
KINK = 1e-4  # how far the sides of a kink are apart at least, relative to the same


@dataclass(frozen=True)
class Tie:
    """One comparison that selects a branch, a state exactly on it, and what must be returned.

    rule: SMOOTH: both sides agree. AVERAGE: of the two sides, which differ. LEFT, RIGHT: of that
    side, because MuJoCo is on it or because it is the only feasible one. ONE_SIDE: of either side.
    BETWEEN: each entry lies between the sides. JUMPS: the step is not continuous, and the
    derivative is finite. RAISES: an UnsupportedFeatureError.
    along: the inputs, such as q0, v1, act0, u0, or (field, element, component) of a parameter.
    """

    name: str
    source: str  # file in cpp/
    comparison: str  # what stands there
    rule: str
    along: tuple[str | tuple[str, str, int], ...]
    xml: str
    state: dict[str, list[float]] = field(default_factory=dict)


def load(tie: Tie) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return the model with a converged solver, and the state on the tie."""
    model = reference.converge(mujoco.MjModel.from_xml_string(tie.xml))
    data = mujoco.MjData(model)
    for name, values in tie.state.items():
        getattr(data, name)[: len(values)] = values
    mujoco.mj_forward(model, data)
    return model, data


def judge(tie: Tie) -> None:
    """Compare the analytic derivative with the one-sided differences of mj_step."""
    model, data = load(tie)
    if tie.rule == RAISES:
        try:
            mujacobian.linearize(model, data)
        except mujacobian.UnsupportedFeatureError:
            return
        raise AssertionError(f"{tie.name}: no error")
    for along in tie.along:
        left, right = one_sided(model, data, along, -1.0), one_sided(model, data, along, 1.0)
        given = derivative(model, data, along)
        assert np.isfinite(given).all(), f"{tie.name} along {along}"
        scale = max(abs(left).max(), abs(right).max(), 1e-3)
        assert_rule(tie, along, given / scale, left / scale, right / scale)


def assert_rule(
    tie: Tie, along: object, given: np.ndarray, left: np.ndarray, right: np.ndarray
) -> None:
    """Assert that the derivative is the one that the rule asks for."""
    apart = abs(left - right).max()
    what = f"{tie.name} along {along}: given {given}\nleft {left}\nright {right}"
    if tie.rule == JUMPS:
        assert apart > KINK, what
        assert abs(given).max() < JUMP, what
        return
    if tie.rule == SMOOTH:
        assert apart < TOLERANCE, f"not smooth: {what}"
    else:
        assert apart > KINK, f"no kink: {what}"
    if tie.rule == BETWEEN:
        low, high = np.minimum(left, right), np.maximum(left, right)
        assert (given > low - TOLERANCE).all(), what
        assert (given < high + TOLERANCE).all(), what
        return
    wanted = {LEFT: left, RIGHT: right}.get(tie.rule, (left + right) / 2)
    if tie.rule == ONE_SIDE:
        wanted = min(left, right, key=lambda side: float(abs(given - side).max()))
    assert abs(given - wanted).max() < TOLERANCE, what


def derivative(model: mujoco.MjModel, data: mujoco.MjData, along: object) -> np.ndarray:
    """Return the analytic derivative of the next state and the sensors along one input."""
    if isinstance(along, tuple):
        params = mujacobian.Parameters(model, [along[:2]])
        direction = np.eye(len(params))[along[2]]
        return np.concatenate(mujacobian.jvp(model, data, params=params, d_params=direction))
    lin = mujacobian.linearize(model, data)
    kind, index = _split(along)
    if kind == "u":
        return np.concatenate([lin.B[:, index], lin.D[:, index]])
    column = index + {"q": 0, "v": model.nv, "act": 2 * model.nv}[kind]
    return np.concatenate([lin.A[:, column], lin.C[:, column]])


def one_sided(model: mujoco.MjModel, data: mujoco.MjData, along: object, side: float) -> np.ndarray:
    """Return the one-sided derivative of mj_step, from two steps to that side."""
    here = advance(model, data, along, 0.0)
    differences = []
    for h in (STEP, STEP / 2):
        there = advance(model, data, along, side * h)
        nq, nv = model.nq, model.nv
        moved = np.zeros(nv)
        mujoco.mj_differentiatePos(model, moved, 1, here[:nq], there[:nq])
        differences.append(np.concatenate([moved, there[nq:] - here[nq:]]) / (side * h))
    return 2 * differences[1] - differences[0]


def advance(model: mujoco.MjModel, data: mujoco.MjData, along: object, h: float) -> np.ndarray:
    """Return the next state and the sensors after a step from a state that is moved by h."""
    if isinstance(along, tuple):
        params = mujacobian.Parameters(model, [along[:2]])
        model = params.apply(params.values + h * np.eye(len(params))[along[2]])
        reference.converge(model)
    moved = mujoco.MjData(model)
    for name in ("qpos", "qvel", "act", "ctrl", "qacc_warmstart"):
        getattr(moved, name)[:] = getattr(data, name)
    if not isinstance(along, tuple):
        kind, index = _split(along)
        if kind == "q":
            direction = np.eye(model.nv)[index]
            mujoco.mj_integratePos(model, moved.qpos, direction, h)
        else:
            getattr(moved, {"v": "qvel", "act": "act", "u": "ctrl"}[kind])[index] += h
    mujoco.mj_step(model, moved)
    return np.concatenate([moved.qpos, moved.qvel, moved.act, moved.sensordata])


def _split(along: str) -> tuple[str, int]:
    kind = along.rstrip("0123456789")
    return kind, int(along[len(kind) :])
