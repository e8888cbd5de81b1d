"""Products of the second derivative of a step with a direction."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.errors import ArgumentError, ArgumentTypeError
from tests.oracle.second_order import cotangent, joined
from tests.scenes.cases import INTEGRATORS, random_state, sample
from tests.scenes.contact_scenes import STATES
from tests.test_contacts import CONES
from tests.test_hessian import INTEGRATORS_COVERED, ROWS, SMOOTH, load, pendulum
from tests.test_hessian_contacts import walker

TOLERANCE = 1e-12


def direction(model, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=2 * model.nv + model.na), rng.normal(size=model.nu)


def product(model, data, dx, du, *cotangents):
    made = mujacobian.hvp(model, data, dx, du, *cotangents)
    return np.concatenate([made.state, made.controls])


def judge(model, data, *cotangents):
    dx, du = direction(model)
    expected = joined(mujacobian.hessian(model, data, *cotangents)) @ np.concatenate([dx, du])
    found = product(model, data, dx, du, *cotangents)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * abs(expected).max())
    assert abs(expected).max() > 0


@pytest.mark.parametrize(("name", "integrator"), sample(3, SMOOTH, INTEGRATORS_COVERED))
def test_it_is_the_product_with_the_hessian(name, integrator):
    model = load(name)
    INTEGRATORS[integrator](model)
    judge(model, random_state(model, np.random.default_rng(0)), cotangent(model))


@pytest.mark.parametrize("integrator", [*INTEGRATORS_COVERED, "euler_explicit"])
def test_constraints(integrator):
    """Some components solve both systems of the integrator, and some only the second one."""
    model = mujoco.MjModel.from_xml_string(ROWS.format(flag=""))
    INTEGRATORS[integrator](model)
    for seed in range(3):
        data = random_state(model, np.random.default_rng(seed))
        judge(model, data, cotangent(model))


@pytest.mark.parametrize(
    ("cone", "condim", "integrator"), sample(3, CONES, STATES, (*INTEGRATORS_COVERED,))
)
def test_contacts(cone, condim, integrator):
    model, data = walker(cone, condim, integrator)
    judge(model, data, cotangent(model))


def test_it_is_symmetric_repeatable_and_changes_nothing():
    model = load("actuator_ball_and_free")
    data = random_state(model, np.random.default_rng(1))
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    before, after = np.empty((2, mujoco.mj_stateSize(model, spec)))
    mujoco.mj_getState(model, data, before, spec)
    count = mujacobian.fd_count()
    given, a, b = cotangent(model), direction(model, 2), direction(model, 3)
    first, second = (product(model, data, *a, given) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    other = product(model, data, *b, given)
    assert np.concatenate(b) @ first == pytest.approx(np.concatenate(a) @ other, rel=1e-11)
    mujoco.mj_getState(model, data, after, spec)
    assert (before == after).all()
    assert mujacobian.fd_count() == count
    evaluated = mujacobian.hvp(model, data, *a, given, forward=False)
    assert (evaluated.state == first[: len(given)]).all()


def test_wrong_arguments():
    model, data = pendulum()
    good = {"dx": [1, 2], "du": [], "d_state": [3, 4]}
    for name, message in {
        "dx": r"dx must have shape \(2,\), got \(1,\)",
        "du": r"du must have shape \(0,\), got \(1,\)",
        "d_state": r"d_state must have shape \(2,\), got \(1,\)",
        "d_sensors": r"d_sensors must have shape \(0,\), got \(1,\)",
    }.items():
        with pytest.raises(ArgumentError, match=message):
            mujacobian.hvp(model, data, **good | {name: [0]})
    for name in ("dx", "d_state"):
        with pytest.raises(ArgumentError, match=rf"{name} must be finite, but {name}\[1\] is nan"):
            mujacobian.hvp(model, data, **good | {name: [0, np.nan]})
        with pytest.raises(ArgumentTypeError, match=f"{name} must be an array of numbers"):
            mujacobian.hvp(model, data, **good | {name: "a"})
    with pytest.raises(ArgumentTypeError, match=r"data must be a mujoco\.MjData"):
        mujacobian.hvp(model, None, **good)
    model, data = pendulum(option='integrator="discrete"', joint='range="-60 10"', qpos=0.3)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="discrete"):
        mujacobian.hvp(model, data, **good)
