"""A state exactly on a tie between two branches, compared with the two one-sided derivatives."""

from dataclasses import dataclass, field

import mujoco
import numpy as np

import mujacobian
from mujacobian import reference

SMOOTH, AVERAGE, LEFT, RIGHT, RAISES = "smooth", "average", "left", "right", "raises"
ONE_SIDE, SUBGRADIENT, JUMPS = "one side", "subgradient", "jumps"
STEP = 4e-6  # length of the one-sided differences, extrapolated from STEP and STEP / 2
# The extrapolated differences have an error of STEP^2 f''' and of rounding / STEP, relative to the
# largest entry of their column.
TOLERANCE = 2e-5
KINK = 1e-4  # smallest distance between the sides of a kink, relative to the same
LEAST = 1e-3  # a column whose entries are smaller is compared absolutely
GROWTH = 8.0  # growth of the differences over a jump, for steps that are shorter by the same factor


@dataclass(frozen=True)
class Tie:
    """One comparison that selects a branch, a state exactly on it, and the required result.

    rule: SMOOTH: both sides agree. AVERAGE: the average of the two sides, which differ. LEFT,
        RIGHT: the derivative of that side, because MuJoCo is on it or because it is the only
        feasible one. ONE_SIDE: the derivative of either side. SUBGRADIENT: each entry lies between
        the sides, for a minimum of several numbers that MuJoCo does not report. JUMPS: the step is
        not continuous on either side, and the derivative is finite. RAISES: an
        UnsupportedFeatureError.
    along: the inputs, such as q0, v1, act0, u0, q0+q6, or (field, element, component) of a
        parameter.
    step: length of the differences, larger where the rounding of the collider matters.
    """

    name: str
    tie: str  # name of the comparison in cpp/ that is marked "// tie:"
    rule: str
    along: tuple[str | tuple[str, str, int], ...]
    xml: str
    state: dict[str, list[float]] = field(default_factory=dict)
    step: float = STEP


def load(tie: Tie) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return the model with a converged solver, and the state on the tie."""
    model = reference.converge(mujoco.MjModel.from_xml_string(tie.xml))
    data = mujoco.MjData(model)
    for name, values in tie.state.items():
        if name == "time":
            data.time = values[0]
        else:
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
        given = derivative(model, data, along)
        assert np.isfinite(given).all(), f"{tie.name} along {along}"
        if tie.rule == JUMPS:
            assert_jumps(tie, along, model, data)
            continue
        left, right = (one_sided(model, data, along, side, tie.step) for side in (-1.0, 1.0))
        assert_rule(tie, along, given, left, right)


def assert_jumps(tie: Tie, along: object, model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Assert that the step jumps on both sides: its differences grow as one over their length."""
    for side in (-1.0, 1.0):
        sizes = [abs(one_sided(model, data, along, side, h)).max() for h in (STEP, STEP / GROWTH)]
        assert sizes[1] > 0.9 * GROWTH * sizes[0], f"no jump: {tie.name} along {along}: {sizes}"


def assert_rule(
    tie: Tie, along: object, given: np.ndarray, left: np.ndarray, right: np.ndarray
) -> None:
    """Assert that the derivative is the one that the rule requires.

    Differences are relative to the largest entry of the required derivative, because the other side
    has no meaning if the step jumps.
    """
    what = f"{tie.name} along {along}: given {given}\nleft {left}\nright {right}"
    wanted = {LEFT: left, RIGHT: right}.get(tie.rule, (left + right) / 2)
    if tie.rule == ONE_SIDE:
        wanted = min(left, right, key=lambda side: float(abs(given - side).max()))
    scale = max(abs(wanted).max(), LEAST)
    apart = abs(left - right).max() / scale
    if tie.rule == SMOOTH:
        assert apart < TOLERANCE, f"not smooth: {what}"
    else:
        assert apart > KINK, f"no kink: {what}"
    if tie.rule == SUBGRADIENT:
        inside = (given - left) * (right - given) / scale**2
        assert (inside > -TOLERANCE).all(), what
        return
    assert abs(given - wanted).max() / scale < TOLERANCE, what


def derivative(model: mujoco.MjModel, data: mujoco.MjData, along: object) -> np.ndarray:
    """Return the analytic derivative of the next state and the sensors along one input."""
    if isinstance(along, tuple):
        params = mujacobian.Parameters(model, [along[:2]])
        direction = np.eye(len(params))[along[2]]
        return np.concatenate(mujacobian.jvp(model, data, params=params, d_params=direction))
    lin = mujacobian.linearize(model, data)
    nx = 2 * model.nv + model.na
    first = {"q": 0, "v": model.nv, "act": 2 * model.nv, "u": nx}
    columns = [first[kind] + index for kind, index in _split(along)]
    full = np.block([[lin.A, lin.B], [lin.C, lin.D]])
    return full[:, columns].sum(axis=1)


def one_sided(
    model: mujoco.MjModel, data: mujoco.MjData, along: object, side: float, step: float = STEP
) -> np.ndarray:
    """Return the one-sided derivative of mj_step, from two steps to that side."""
    here = advance(model, data, along, 0.0)
    differences = []
    for h in (step, step / 2):
        there = advance(model, data, along, side * h)
        nq, nv = model.nq, model.nv
        moved = np.zeros(nv)
        mujoco.mj_differentiatePos(model, moved, 1, here[:nq], there[:nq])
        differences.append(np.concatenate([moved, there[nq:] - here[nq:]]) / (side * h))
    return 2 * differences[1] - differences[0]


def advance(model: mujoco.MjModel, data: mujoco.MjData, along: object, h: float) -> np.ndarray:
    """Return the next state and the sensors after a step from a state displaced by h."""
    if isinstance(along, tuple):
        params = mujacobian.Parameters(model, [along[:2]])
        model = params.apply(params.values + h * np.eye(len(params))[along[2]])
        reference.converge(model)
    moved = mujoco.MjData(model)
    for name in ("qpos", "qvel", "act", "ctrl", "qacc_warmstart"):
        getattr(moved, name)[:] = getattr(data, name)
    if not isinstance(along, tuple):
        for kind, index in _split(along):
            if kind == "q":
                mujoco.mj_integratePos(model, moved.qpos, np.eye(model.nv)[index], h)
            else:
                getattr(moved, {"v": "qvel", "act": "act", "u": "ctrl"}[kind])[index] += h
    moved.time = data.time
    mujoco.mj_step(model, moved)
    return np.concatenate([moved.qpos, moved.qvel, moved.act, moved.sensordata])


def _split(along: str) -> list[tuple[str, int]]:
    """Return the kinds and indices of inputs that change together."""
    kinds = [(part.rstrip("0123456789"), part) for part in along.split("+")]
    return [(kind, int(part[len(kind) :])) for kind, part in kinds]
