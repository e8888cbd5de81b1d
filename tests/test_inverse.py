"""Inverse dynamics: the seven blocks of `inverse` against differences, the solve and MuJoCo."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.reference import converge
from tests.scenes.cases import (
    CONSTRAINT_MODELS,
    INTEGRATORS,
    MODELS,
    constrained_states,
    load,
    random_state,
)

TOLERANCE = 1e-8
LEVELS = 9
RATIO = 2.0
LARGEST = 0.05  # largest length of a difference
ROUNDING = 50 * np.finfo(float).eps  # rounding of the values in a difference


ONE_STAGE = [name for name in INTEGRATORS if name != "rk4"]
INVDISCRETE = int(mujoco.mjtEnableBit.mjENBL_INVDISCRETE)
DISCRETE_MODELS = [
    "everything",
    "joint_dampers",
    "free_body_damped",
    "free_body_simple",
    "three_slides",
    "actuator_kinds",
    "spatial_tendon_across_branches",
    "tendon_force_scaling",
]


def blocks(model):
    nv, ns = model.nv, model.nsensordata
    shapes = [(nv, nv)] * 3 + [(nv, ns)] * 3 + [(nv, model.nC)]
    names = ("DfDq", "DfDv", "DfDa", "DsDq", "DsDv", "DsDa", "DmDq")
    return {name: np.full(shape, np.nan) for name, shape in zip(names, shapes, strict=True)}


def outputs(model, data, d, q, v, a, actuation):
    """Return force, sensors and inertia of mj_inverse at a perturbed state, computed in d."""
    mujoco.mj_copyData(d, model, data)
    mujoco.mj_integratePos(model, d.qpos, q, 1.0)
    d.qvel += v
    d.qacc += a
    mujoco.mj_inverse(model, d)
    force = d.qfrc_inverse.copy()
    if actuation:
        mujoco.mj_fwdActuation(model, d)
        force -= d.qfrc_actuator
    return np.concatenate([force, d.sensordata, d.M])


def differences(model, data, actuation):
    """Return all rows of all blocks by extrapolated central differences, with an error estimate."""
    nv = model.nv
    scratch = mujoco.MjData(model)
    rows, errors = [], []
    for kind in range(3):
        for k in range(nv):
            table, best, err = [], None, None
            for h in LARGEST / RATIO ** np.arange(LEVELS):
                z = np.zeros((3, nv))
                z[kind, k] = h
                hi = outputs(model, data, scratch, *z, actuation)
                lo = outputs(model, data, scratch, *-z, actuation)
                row = [(hi - lo) / (2 * h)]
                floor = ROUNDING * np.maximum(abs(hi), abs(hi).max() * 1e-3) / h
                for order, older in enumerate(table, 1):
                    row.append(row[-1] + (row[-1] - older) / (RATIO ** (2 * order) - 1))
                if best is None:
                    best, err = row[0], np.full(len(row[0]), np.inf)
                for new, old in zip(row[1:], table, strict=True):
                    spread = np.maximum(abs(new - old), floor)
                    take = spread < err
                    best, err = np.where(take, new, best), np.where(take, spread, err)
                table = row
            rows.append(best)
            errors.append(err)
    shape = 3 * nv, nv + model.nsensordata + model.nC
    return np.reshape(rows, shape), np.reshape(errors, shape)


def judge_inverse(model, data, actuation=False):
    given = blocks(model)
    state = [data.qpos.copy(), data.qvel.copy(), data.qacc.copy(), data.ctrl.copy()]
    mujacobian.inverse(model, data, **given, actuation=actuation)
    for kept, now in zip(state, (data.qpos, data.qvel, data.qacc, data.ctrl), strict=True):
        assert (kept == now).all(), "the state was changed"
    rows, errors = differences(model, data, actuation)
    nv, ns = model.nv, model.nsensordata
    force, sensor = slice(0, nv), slice(nv, nv + ns)
    expected = {
        "DfDq": (slice(0, nv), force), "DfDv": (slice(nv, 2 * nv), force),
        "DfDa": (slice(2 * nv, 3 * nv), force), "DsDq": (slice(0, nv), sensor),
        "DsDv": (slice(nv, 2 * nv), sensor), "DsDa": (slice(2 * nv, 3 * nv), sensor),
        "DmDq": (slice(0, nv), slice(nv + ns, None)),
    }  # fmt: skip
    trusted = []
    for name, place in expected.items():
        ref, err = rows[place], errors[place]
        scale = np.maximum(abs(ref).max(axis=1, initial=0.0), 1e-3 * abs(rows).max(initial=1e-6))
        sure = err < 0.2 * TOLERANCE * scale[:, None]
        error = np.where(sure, abs(given[name] - ref), 0) / scale[:, None]
        assert np.isfinite(given[name]).all()
        assert error.max(initial=0.0) <= TOLERANCE, f"{name}: {error.max():.2e}"
        trusted.append(sure.ravel())
    share = np.concatenate(trusted)
    return share.mean() if share.size else 1.0


@pytest.mark.parametrize("name", MODELS)
def test_smooth_models(name):
    model = load(name)
    rng = np.random.default_rng(3)
    data = random_state(model, rng)
    mujoco.mj_forward(model, data)
    data.qacc += rng.normal(size=model.nv)
    assert judge_inverse(model, data, actuation=bool(model.nu)) >= 0.85


@pytest.mark.parametrize("name", CONSTRAINT_MODELS)
def test_forward_and_inverse_are_consistent(name):
    """dv'/dx = dv/dx - h K^-1 df/dx for explicit Euler, and df/da is K."""
    model = converge(load(f"constraints/{name}"))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    nv = model.nv
    for label, data in constrained_states(model, name):
        data.xfrc_applied[:] = 0
        lin = mujacobian.linearize(model, data, sensors=False)
        K = mujacobian.diagnose(model, data).K
        given = blocks(model)
        mujacobian.inverse(model, data, **given, actuation=True)
        assert abs(given["DfDa"] - K).max() <= 1e-10 * abs(K).max(), label
        for first, block in ((0, "DfDq"), (nv, "DfDv")):
            expected = -model.opt.timestep * np.linalg.solve(K, given[block].T)
            rates = lin.A[nv:, first : first + nv] - (np.eye(nv) if first else 0)
            scale = abs(expected).max(initial=1e-9)
            assert abs(rates - expected).max() <= 1e-8 * scale, (label, block)


@pytest.mark.parametrize("actuation", [False, True])
@pytest.mark.parametrize("integrator", ONE_STAGE)
@pytest.mark.parametrize("name", DISCRETE_MODELS)
def test_accelerations_of_discrete_time(name, integrator, actuation):
    """qacc is (v' - v) / h, which is not the acceleration in the balance of forces."""
    model = load(name)
    INTEGRATORS[integrator](model)
    model.opt.enableflags |= INVDISCRETE
    rng = np.random.default_rng(5)
    data = random_state(model, rng)
    mujoco.mj_forward(model, data)
    data.qacc += rng.normal(size=model.nv)
    assert judge_inverse(model, data, actuation=actuation) >= 0.85


@pytest.mark.parametrize("integrator", ONE_STAGE)
def test_disabled_dampers_in_discrete_time(integrator):
    """Before MuJoCo 4.0, the inverse of Euler includes dampers that are disabled."""
    model = load("joint_dampers")
    INTEGRATORS[integrator](model)
    model.opt.enableflags |= INVDISCRETE
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_DAMPER)
    data = random_state(model, np.random.default_rng(6))
    mujoco.mj_forward(model, data)
    assert judge_inverse(model, data) >= 0.85


@pytest.mark.parametrize("integrator", ONE_STAGE)
@pytest.mark.parametrize("name", CONSTRAINT_MODELS)
def test_forward_and_inverse_steps_are_consistent(name, integrator):
    """dv'/dx = dv/dx - h (df/dw)^-1 df/dx at w = (v' - v) / h holds for every integrator."""
    model = load(f"constraints/{name}")
    INTEGRATORS[integrator](model)
    converge(model)
    model.opt.enableflags |= INVDISCRETE
    nv, h = model.nv, model.opt.timestep
    for label, data in constrained_states(model, name):
        data.xfrc_applied[:] = 0
        lin = mujacobian.linearize(model, data, sensors=False)
        after = mujoco.MjData(model)
        mujoco.mj_copyData(after, model, data)
        mujoco.mj_step(model, after)
        data.qacc[:] = (after.qvel - data.qvel) / h
        given = blocks(model)
        mujacobian.inverse(model, data, **given, actuation=True)
        for first, block in ((0, "DfDq"), (nv, "DfDv")):
            expected = -h * np.linalg.solve(given["DfDa"].T, given[block].T)
            rates = lin.A[nv:, first : first + nv] - (np.eye(nv) if first else 0)
            scale = abs(expected).max(initial=1e-6)
            assert abs(rates - expected).max() <= 1e-8 * scale, (label, block)


def test_runge_kutta_has_no_inverse_in_discrete_time():
    model = load("hinge_chain")
    INTEGRATORS["rk4"](model)
    model.opt.enableflags |= INVDISCRETE
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="invdiscrete"):
        mujacobian.inverse(model, mujoco.MjData(model))


def test_blocks_are_optional_and_checked():
    model = load("hinge_chain")
    data = mujoco.MjData(model)
    mujacobian.inverse(model, data)
    with pytest.raises(ValueError, match="DfDa"):
        mujacobian.inverse(model, data, DfDa=np.zeros((1, 1)))
    data.qacc[0] = np.nan
    with pytest.raises(ValueError, match="qacc"):
        mujacobian.inverse(model, data, DfDa=np.zeros((model.nv, model.nv)))
