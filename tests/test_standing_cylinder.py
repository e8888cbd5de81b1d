"""A cylinder that almost stands on a plane: rounding errors of MuJoCo's points do not enter."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import control
from tests.oracle.extrapolation import derivative
from tests.oracle.second_order import Pulled, brackets, cotangent, joined

RADIUS, HALF, DEPTH = 0.0872, 0.0324, 1e-3
FLAT = 'euler="0 0 0"'
SLOPE = 'euler="10 -20 30"'
# MuJoCo's distances have an error of rounding over tilt, which is 4e-9 m at a tilt of 1e-8 rad.
TILTS = (1e-7, 1e-8, 1e-10)
# Tilts at which this error is negligible, and the weights that extrapolate their results to zero.
TILTED, WEIGHTS = 1.5e-4 * np.arange(1, 5), (4, -6, 4, -1)
TOLERANCE = 2e-4  # of the extrapolation; the derivative changes by 1% over the first tilt
HESSIAN_TOLERANCE = 1e-5
SHARE_OF_TILT = 1 / 40  # length of the longest differences


def standing(tilt, *, cone="elliptic", floor=FLAT, integrator="Euler"):
    """Return a moving cylinder that leans in one direction by `tilt`."""
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option timestep=".002" cone="{cone}" integrator="{integrator}" tolerance="1e-15"/>
        <worldbody>
          <geom name="floor" type="plane" size="5 5 1" {floor}/>
          <body>
            <freejoint/>
            <geom type="cylinder" size="{RADIUS} {HALF}" solimp=".85 .97 .003 .5 2"/>
            <site name="center"/>
          </body>
        </worldbody>
        <actuator><motor site="center" gear="0 0 1 0 0 0"/></actuator>
        <sensor><velocimeter name="speed" site="center"/></sensor>
      </mujoco>""")
    data = mujoco.MjData(model)
    plane = model.geom_quat[0]
    mujoco.mju_rotVecQuat(data.qpos[:3], np.array([0, 0, HALF - DEPTH]), plane)
    lean = np.array([1, 0.49 * tilt, 0.1 * tilt, 0.1])
    mujoco.mju_mulQuat(data.qpos[3:], plane, lean / np.linalg.norm(lean))
    data.qvel[:] = 0.01, 0.02, -0.01, 0.03, 0.02, 0.01
    mujoco.mj_forward(model, data)
    assert data.ncon == 3
    return model, data


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
@pytest.mark.parametrize("floor", [FLAT, SLOPE], ids=["flat", "slope"])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_the_derivative_has_a_limit_for_small_tilts(cone, floor, integrator):
    """All points turn with the direction of the tilt, however small it is."""

    def derivative_at(tilt):
        return mujacobian.linearize(
            *standing(tilt, cone=cone, floor=floor, integrator=integrator)
        ).A

    expected = np.tensordot(WEIGHTS, [derivative_at(tilt) for tilt in TILTED], 1)
    atol = TOLERANCE * abs(expected).max()
    assert abs(derivative_at(0) - expected).max() > 5 * atol  # the points do not turn there
    for tilt in TILTS:
        np.testing.assert_allclose(derivative_at(tilt), expected, atol=atol)
        assert (derivative_at(tilt) == derivative_at(tilt)).all()


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("tilt", TILTS[:2])
def test_the_second_derivative_is_the_slope_of_the_first(cone, tilt):
    model, data = standing(tilt, cone=cone)
    given = cotangent(model)
    found = joined(mujacobian.hessian(model, data, given))
    found += 0.5 * brackets(model, data, given)
    assert abs(found).max() > 0.1 / tilt
    function = Pulled(model, data, given)
    for k in (3, 4):
        along = np.eye(function.size)[k]
        column, _ = derivative(lambda step, a=along: function(step * a), SHARE_OF_TILT * tilt, 4)
        np.testing.assert_allclose(found[:, k], column, atol=HESSIAN_TOLERANCE * abs(found).max())


def test_products_use_the_same_points_and_the_data_keeps_its_own():
    model, data = standing(1e-8)
    before = data.contact.dist.copy()
    A = mujacobian.linearize(model, data).A
    row = np.random.default_rng(0).normal(size=2 * model.nv)
    pulled = mujacobian.vjp(model, data, row)
    np.testing.assert_allclose(pulled.state, A.T @ row, atol=1e-12 * abs(A).max())
    assert (data.contact.dist == before).all()
    mujoco.mj_forward(model, data)
    assert (data.contact.dist == before).all()


def test_evaluations_that_use_the_points_of_mujoco_raise():
    reason = "tilt below 1e-5 rad"
    model, data = standing(1e-8)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=reason):
        mujacobian.inverse(model, data, np.zeros((model.nv, model.nv)))
    if hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"):
        with pytest.raises(mujacobian.UnsupportedFeatureError, match=reason):
            mujacobian.linearize(*standing(1e-8, integrator="discrete"))
        # a planner that keeps its steps
        model, data = standing(1e-8, integrator="discrete")
        cost = control.Cost(model, [control.Term("speed", control.sensor(model, "speed"))])
        planner = control.ILQR(model, cost, 3, hessian="exact", threads=1)
        assert reason in planner.improve(data).refused
        assert np.isfinite(mujacobian.linearize(*standing(1e-4, integrator="discrete")).A).all()
    model, data = standing(1e-4)
    mujacobian.inverse(model, data, np.zeros((model.nv, model.nv)))
