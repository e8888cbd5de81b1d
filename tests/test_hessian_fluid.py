"""Second derivatives of the forces of a medium."""

import zlib

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.oracle.second_order import brackets, cotangent, differences, joined, judge_columns
from tests.scenes.cases import INTEGRATORS, random_state, sample
from tests.test_fluid import ELLIPSOID, MEDIA, SHAPES, SWIMMER, scene
from tests.test_hessian import BRACKET_TOLERANCE, INTEGRATORS_COVERED, SMOOTH_TOLERANCE
from tests.test_hvp import judge as judge_product

STEP = 4e-3  # larger steps reach velocities of zero, where drag has a kink


def check(model, data):
    """Judge the trees one by one, because their entries differ by orders of magnitude.

    Slides with linear drag have no second derivative.
    """
    given = cotangent(model)
    found = joined(mujacobian.hessian(model, data, given))
    expected = differences(model, data, given, step=STEP)
    both = np.concatenate([model.dof_treeid] * 2)
    for tree in range(model.ntree):
        own = np.flatnonzero(both == tree)
        block = expected.hessian[np.ix_(own, own)]
        error = abs(found[np.ix_(own, own)] - block).max()
        assert error <= SMOOTH_TOLERANCE * abs(block).max(), f"tree {tree}"
    assert not found[both[:, None] != both].any()
    antisymmetric = expected.raw - expected.raw.T - brackets(model, data, given)
    assert abs(antisymmetric).max() < BRACKET_TOLERANCE * abs(expected.raw).max()
    judge_product(model, data, given)


@pytest.mark.parametrize(
    ("shape", "medium", "integrator"), sample(3, SHAPES, ["heavy", *MEDIA], INTEGRATORS_COVERED)
)
def test_media_and_shapes(shape, medium, integrator):
    model = scene(medium, shape)
    INTEGRATORS[integrator](model)
    assert mujacobian.support(model, order=2) == []
    check(model, random_state(model, np.random.default_rng(zlib.crc32(b"fluid")), scale=0.3))


@pytest.mark.parametrize("integrator", INTEGRATORS_COVERED)
def test_an_interaction_coefficient_that_is_not_one(integrator):
    """It scales the force, but not the matrix of the implicit integrators."""
    model = scene("heavy", "coefficients")
    model.geom_fluid[:, 0] *= 0.6
    INTEGRATORS[integrator](model)
    check(model, random_state(model, np.random.default_rng(zlib.crc32(b"fluid")), scale=0.3))


@pytest.mark.parametrize("shape", ["", ELLIPSOID])
@pytest.mark.parametrize("integrator", INTEGRATORS_COVERED)
def test_a_swimmer_in_contact(shape, integrator):
    model = mujoco.MjModel.from_xml_string(SWIMMER.format(shape=shape))
    model.opt.tolerance = 1e-15
    INTEGRATORS[integrator](model)
    data = mujoco.MjData(model)
    data.qpos[2], data.qpos[7] = 0.049, 0.11
    data.qvel[:] = 0.3, -0.2, -0.1, 0.2, 0.1, 0.4, 0.5
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    assert judge_columns(model, data, tolerance=1e-6) > 0.5
    judge_product(model, data, cotangent(model))


@pytest.mark.parametrize("shape", SHAPES)
def test_rest_gives_finite_numbers(shape):
    for integrator in INTEGRATORS_COVERED:
        model = scene("water", shape)
        INTEGRATORS[integrator](model)
        found = mujacobian.hessian(model, mujoco.MjData(model), cotangent(model))
        assert np.isfinite(found.xx).all()
