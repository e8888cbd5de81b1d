"""Second derivatives of the flag diagexact and of the noslip solver."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.oracle.second_order import (
    CONTACT_STEP,
    cotangent,
    differences,
    joined,
    judge_brackets,
    judge_columns,
)
from tests.scenes.cases import (
    CONSTRAINT_MODELS,
    INTEGRATORS,
    constrained_states,
    random_state,
    sample,
)
from tests.test_constraint_rows import load_converged
from tests.test_contacts import CONES
from tests.test_hessian import BRACKET_TOLERANCE, EQUALITY, ROWS, pendulum
from tests.test_hessian_contacts import BRACKET_STEP, LEAST_SHARE, TOLERANCE, walker
from tests.test_hvp import judge as judge_product
from tests.test_noslip import SCENE, SLIDE, scene, settled

STEPPED = ("euler", "implicitfast", "implicit", "euler_explicit")
EXACT = int(mujoco.mjtEnableBit.mjENBL_DIAGEXACT)
CONDIMS = (1, 3, 4, 6)
# Columns of bodies that friction holds are rounding, and others are near a kink of the sweeps.
SWEPT_SHARE = 0.5


def exact(model):
    model.opt.enableflags |= EXACT
    return model


@pytest.mark.parametrize(("cone", "condim", "integrator"), sample(3, CONES, CONDIMS, STEPPED))
def test_exact_diagonal_of_contacts(cone, condim, integrator):
    model, data = walker(cone, condim, integrator)
    before = joined(mujacobian.hessian(model, data, cotangent(model)))
    exact(model)
    assert judge_columns(model, data, tolerance=TOLERANCE) >= LEAST_SHARE
    judge_product(model, data, cotangent(model))
    after = joined(mujacobian.hessian(model, data, cotangent(model)))
    assert abs(after - before).max() > 1e-3 * abs(before).max()


@pytest.mark.parametrize("name", sample(3, CONSTRAINT_MODELS))
def test_exact_diagonal_of_rows(name):
    model = exact(load_converged(name))
    INTEGRATORS["implicitfast"](model)
    shares = []
    for _, data in constrained_states(model, name):
        shares.append(judge_columns(model, data, tolerance=TOLERANCE))
        judge_product(model, data, cotangent(model))
    assert np.mean(shares) >= SWEPT_SHARE


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_exact_diagonal_of_couplings(integrator):
    model = exact(mujoco.MjModel.from_xml_string(ROWS.format(flag="")))
    INTEGRATORS[integrator](model)
    data = random_state(model, np.random.default_rng(0))
    assert judge_columns(model, data, **EQUALITY) >= LEAST_SHARE
    judge_product(model, data, cotangent(model))


def test_brackets_with_the_exact_diagonal():
    model, data = walker("elliptic", 4)
    judge_brackets(exact(model), data, tolerance=BRACKET_TOLERANCE, least=1, step=BRACKET_STEP)


GRIP = {"sticks": (2.0, 0.1), "mixed": (1.0, 0.1), "slides": (0.4, 1.0)}  # friction, share of speed


def swept(cone, condim, integrator, grip="mixed", iterations=3):
    """Return the walker with the noslip solver."""
    model, data = walker(cone, condim, integrator)
    model.opt.noslip_iterations = iterations
    model.opt.noslip_tolerance = 0
    model.geom_friction[:, 0], share = GRIP[grip]
    data.qvel[:] *= share
    return model, data


@pytest.mark.parametrize(
    ("cone", "condim", "integrator", "grip"), sample(3, CONES, CONDIMS, STEPPED, GRIP)
)
def test_noslip(cone, condim, integrator, grip):
    model, data = swept(cone, condim, integrator, grip)
    assert judge_columns(model, data, tolerance=TOLERANCE) >= LEAST_SHARE
    judge_product(model, data, cotangent(model))


@pytest.mark.parametrize("iterations", [1, 10])
@pytest.mark.parametrize("cone", CONES)
def test_the_number_of_sweeps(cone, iterations):
    model, data = swept(cone, 4, "implicitfast", iterations=iterations)
    assert judge_columns(model, data, tolerance=TOLERANCE) >= LEAST_SHARE


@pytest.mark.parametrize("slide", [0, SLIDE])
@pytest.mark.parametrize(("cone", "condim"), sample(2, CONES, CONDIMS))
def test_noslip_of_piles_with_dry_friction(cone, condim, slide):
    """Dry friction of dofs and tendons next to contacts that stick and slip."""
    model = scene(cone, condim, SCENE)
    data = settled(model, slide)
    assert judge_columns(model, data, tolerance=TOLERANCE) >= SWEPT_SHARE
    judge_product(model, data, cotangent(model))


@pytest.mark.parametrize("cone", CONES)
def test_noslip_changes_the_result(cone):
    model, data = swept(cone, 3, "euler")
    given = cotangent(model)
    found = joined(mujacobian.hessian(model, data, given))
    model.opt.noslip_iterations = 0
    without = joined(mujacobian.hessian(model, data, given))
    assert abs(found - without).max() > 0.1 * abs(without).max()


def test_brackets_with_noslip():
    model, data = swept("elliptic", 4, "euler", "slides")
    judge_brackets(model, data, tolerance=BRACKET_TOLERANCE, least=1, step=BRACKET_STEP)


def test_forces_and_batches_with_noslip():
    """The columns of applied forces, and states of a batch, are those of one step."""
    model, data = swept("elliptic", 4, "implicitfast")
    given = cotangent(model)
    one = mujacobian.hessian(model, data, given, forces=True)
    expected = differences(model, data, given, forces=True, step=CONTACT_STEP)
    assert expected.error < TOLERANCE
    error = abs(joined(one) - expected.hessian)[:, -model.nv :]
    assert error.max() < TOLERANCE * abs(expected.hessian).max()
    assert abs(one.ff).max() > 0
    state = np.concatenate([[data.time], data.qpos, data.qvel])
    batch = mujacobian.hessian_batch(model, [state], [data.ctrl], [given])
    np.testing.assert_allclose(batch.xx[0], one.xx, rtol=0, atol=1e-9 * abs(one.xx).max())


def test_parameters_raise():
    model, data = walker("elliptic", 3)
    params = mujacobian.Parameters(exact(model), ["dof_damping"])
    state = np.concatenate([data.qpos, data.qvel])
    trajectory = mujacobian.rollout(model, state, np.zeros((1, model.nu)), params=params)
    weights = np.ones_like(trajectory.states)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"diagexact.*parameters"):
        trajectory.hessian("params", d_states=weights)


@pytest.mark.parametrize("kind", ["RK4", "diagexact"])
def test_what_is_missing_raises(kind):
    """It is listed, too."""
    model, data = swept("elliptic", 3, "rk4" if kind == "RK4" else "euler")
    element = "option noslip_iterations" if kind == "RK4" else "flag diagexact"
    if kind == "diagexact":
        exact(model)
    mujacobian.linearize(model, data)
    with pytest.raises(mujacobian.UnsupportedFeatureError) as raised:
        mujacobian.hessian(model, data, cotangent(model))
    assert raised.value.element == element
    assert element in [u.element for u in mujacobian.support(model, order=2)]


def test_sensors_of_accelerations_raise_after_the_sweeps():
    sensors = '<sensor><accelerometer name="imu" site="bob"/></sensor>'
    joint = 'frictionloss=".1" range="-60 10"'
    model, data = pendulum(option='noslip_iterations="3"', joint=joint, rest=sensors)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="sensors of accelerations"):
        mujacobian.hessian(model, data, [1, 2], [1, 1, 1])


@pytest.mark.parametrize("options", ["noslip", "diagexact"])
def test_sensors_of_constraint_forces_raise(options):
    """They are exact without these options."""
    sensors = '<sensor><jointlimitfrc name="stop" joint="hinge"/></sensor>'
    model, data = pendulum(joint='range="-60 10"', rest=sensors)
    assert abs(mujacobian.hessian(model, data, [0, 0], [1.0]).xx).max() > 0
    if options == "noslip":
        model.opt.noslip_iterations = 3
    else:
        exact(model)
    mujoco.mj_forward(model, data)
    mujacobian.linearize(model, data)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=f'"stop".*{options}'):
        mujacobian.hessian(model, data, [1, 2], [1.0])
