"""Contacts of ellipsoids at MuJoCo's default settings are polished to the optimum, to rounding.

A second collision is not as accurate: at a `ccd_tolerance` of 1e-13 rounding stops the collider
before the optimum.
"""

import copy

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.converged import ConvergedStep
from tests.test_collider_tolerance import SHAPES, touching, two_bodies

EXACT = 1e-8  # relative, against differences of a step with the contact at its optimum
SAME = 1e-12  # relative: the same contact, to rounding
FAR = 50  # m
SHIFTED = 1e-9  # relative: a second collision would differ by 1e-6
OTHERS = ("sphere", "capsule", "ellipsoid", "box")
POSES = 3
DEFAULT = mujoco.MjModel.from_xml_string("<mujoco/>").opt

# An ellipsoid in the middle of a thin plate. Two opposite directions have almost the same depth, so
# that polishing MuJoCo's contact does not show which one is the optimum.
PLATE, LENS = 'type="box" size=".3 .3 .004"', 'type="ellipsoid" size=".02 .03 .002"'
STATES = 20


def loosen(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy with the default settings of the collider."""
    loose = copy.copy(model)
    loose.opt.ccd_tolerance = DEFAULT.ccd_tolerance
    loose.opt.ccd_iterations = DEFAULT.ccd_iterations
    return loose


@pytest.mark.filterwarnings("ignore::mujacobian.ColliderNotConvergedWarning")
@pytest.mark.parametrize("other", OTHERS)
def test_the_derivative_is_that_of_the_optimum(other: str) -> None:
    model = reference.converge(two_bodies(SHAPES["ellipsoid"], SHAPES[other]))
    rng = np.random.default_rng(2)
    for pose in range(POSES):
        data = touching(model, rng)
        step = ConvergedStep(model, data)
        directions = np.zeros((2, step.nz))
        directions[:, : model.nv] = rng.uniform(-1, 1, (2, model.nv))
        J, err = reference.differentiate(step, directions, EXACT / 100)
        for settings in (model, loosen(model)):
            A = mujacobian.linearize(settings, data, sensors=False).A
            given = A @ directions[:, : step.nx].T
            result = reference.compare(
                given, J[: step.nx], err[: step.nx], step.blocks[:4], trust=EXACT / 5
            )
            assert result.error <= EXACT, f"pose {pose}: {result.error:.1e} at {result.worst()}"
            assert result.share > 0


@pytest.mark.filterwarnings("ignore::mujacobian.ColliderNotConvergedWarning")
def test_the_collider_decides_between_two_optima() -> None:
    model = two_bodies(PLATE, LENS)
    converged = mujacobian.converged(model)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    opposite = 0
    for state in range(STATES):
        data.qpos[7:10] = 0.01, 0.02, rng.uniform(-0.5, 0.5) * model.opt.ccd_tolerance
        data.qpos[3:7], data.qpos[10:14] = (1, 0, 0, 0), rng.normal(size=4)
        normals = []
        for settings in (model, converged):
            mujoco.mj_forward(settings, data)
            normals.append(data.contact[0].frame[:3].copy())
        opposite += normals[0] @ normals[1] < 0
        wanted = mujacobian.linearize(converged, data).A
        given = mujacobian.linearize(model, data).A
        assert abs(given - wanted).max() <= SAME * abs(wanted).max(), f"state {state}"
    assert opposite > 0


@pytest.mark.filterwarnings("ignore::mujacobian.ColliderNotConvergedWarning")
@pytest.mark.parametrize("other", OTHERS)
def test_the_result_is_the_same_far_from_the_origin(other: str) -> None:
    model = mujacobian.converged(two_bodies(SHAPES["ellipsoid"], SHAPES[other]))
    data = touching(model, np.random.default_rng(4))
    near = mujacobian.linearize(loosen(model), data).A
    for place in (data.qpos[:3], data.qpos[7:10]):
        place += FAR
    far = mujacobian.linearize(loosen(model), data).A
    assert abs(far - near).max() <= SHIFTED * abs(near).max()


@pytest.mark.parametrize("other", OTHERS)
def test_rounding_stops_a_converged_collider(other: str) -> None:
    model = mujacobian.converged(two_bodies(SHAPES["ellipsoid"], SHAPES[other]))
    rng = np.random.default_rng(0)
    errors = [mujacobian.diagnose(model, touching(model, rng)).contact_error for _ in range(20)]
    assert 1e-8 < max(errors) < 1e-5
