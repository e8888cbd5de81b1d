"""Second derivatives of the discrete integrator, without active constraints."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.oracle.second_order import cotangent, joined, judge
from tests.scenes.cases import INTEGRATORS, random_state, sample
from tests.test_actuators import LAWS, TRANSMISSIONS, state, world
from tests.test_hessian import SMOOTH, SMOOTH_TOLERANCE, load
from tests.test_hessian_paths import MODELS as PATHS
from tests.test_hvp import judge as judge_product
from tests.test_parameter_hvp import INERTIA, Case, make_positive

ARMATURES = ("spatial_tendon_armature", "tendon_armature_across_trees")
SCALED = ("tendon_force_scaling",)
STABLE = [law for law in LAWS if law != "motor"]  # the others have slopes

# Springs with all powers on all kinds of joints, a tendon that is stretched, and a medium.
SPRINGS = """
<mujoco>
  <option timestep=".004" integrator="discrete" tolerance="1e-15" density="{density}"
          viscosity="{density}" wind=".3 .1 -.2"/>
  <default><geom contype="0" conaffinity="0" fluidshape="{shape}"/></default>
  <worldbody>
    <site name="anchor" pos="0 .2 1.4"/>
    <body pos="0 0 1">
      <freejoint name="base"/>
      <geom type="box" size=".1 .2 .1" mass="2"/>
      <body pos=".1 .2 0">
        <joint name="a" axis="0 1 .3" stiffness="3" damping=".4"/>
        <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04"/>
        <body pos=".3 0 0">
          <joint name="b" type="ball" stiffness="2" damping=".2"/>
          <geom type="ellipsoid" size=".05 .03 .1" pos="0 .05 .05"/>
          <site name="lower" pos=".05 .1 .15"/>
        </body>
      </body>
    </body>
    <body pos="2 0 1"><freejoint name="ball"/><geom type="ellipsoid" size=".1 .2 .15"/></body>
  </worldbody>
  <tendon>
    <spatial name="rope" stiffness="30" damping="2" springlength=".1">
      <site site="anchor"/><site site="lower"/>
    </spatial>
  </tendon>
</mujoco>"""


def discrete(model):
    INTEGRATORS["discrete"](model)
    return model


def check(model, data):
    assert judge(model, data, tolerance=SMOOTH_TOLERANCE) > 0
    judge_product(model, data, cotangent(model))


def springs(density=0, shape="ellipsoid"):
    model = mujoco.MjModel.from_xml_string(SPRINGS.format(density=density, shape=shape))
    model.jnt_stiffness[:] = [2, 3, 2, 0]
    model.jnt_stiffnesspoly[:3] = [[0.7, 0.3], [0.8, 0.5], [0.4, 0.6]]
    model.dof_dampingpoly[:] = [0.2, 0.3]
    model.tendon_stiffnesspoly[:] = [4, 2]
    model.tendon_dampingpoly[:] = [0.5, 0.2]
    return model, random_state(model, np.random.default_rng(1))


@pytest.mark.parametrize("name", [*SMOOTH, *PATHS, *ARMATURES, *SCALED])
def test_models(name):
    model = discrete(load(name))
    check(model, random_state(model, np.random.default_rng(0)))


@pytest.mark.parametrize(("transmission", "law"), sample(5, TRANSMISSIONS, STABLE))
def test_actuators(transmission, law):
    model = discrete(world(f"<general {TRANSMISSIONS[transmission]} {LAWS[law]}/>"))
    if mujacobian.support(model):
        pytest.skip("the discrete integrator does not support this actuator")
    data = state(model, 0, ctrl=0.4)
    data.ctrl[:] = abs(data.ctrl)  # muscles only pull
    check(model, data)


def test_springs_of_all_powers():
    check(*springs())


@pytest.mark.parametrize("linear", [0, 3])
def test_cubic_springs_and_dampers_at_rest(linear):
    """Without a linear part, stiffness and damping touch zero. They are twice differentiable."""
    model, data = springs()
    model.jnt_stiffness[:] = model.dof_damping[:] = model.tendon_damping[:] = linear
    model.jnt_stiffnesspoly[:] = model.dof_dampingpoly[:] = model.tendon_dampingpoly[:] = [0, 9]
    data.qpos[:], data.qvel[:] = model.qpos_spring, 0
    check(model, data)


def test_quadratic_springs_at_rest_up_to_rounding():
    """Their contribution is zero, whatever the direction of the rounding error is."""
    model, data = springs()
    data.qpos[:] = model.qpos_spring
    expected = joined(mujacobian.hessian(model, data, cotangent(model)))
    data.qpos[np.flatnonzero(abs(data.qpos) > 0.1)] *= 1 + 1e-15
    data.qpos[np.flatnonzero(data.qpos == 0)] = 1e-16
    found = joined(mujacobian.hessian(model, data, cotangent(model)))
    np.testing.assert_allclose(found, expected, atol=1e-9 * abs(expected).max())


@pytest.mark.parametrize("shape", ["none", "ellipsoid"])
def test_a_medium(shape):
    """A free body without couplings has the rate of its bias force in its matrix."""
    check(*springs(density=8, shape=shape))


def test_the_metric_changes_the_result():
    model, data = springs()
    given = cotangent(model)
    found = joined(mujacobian.hessian(model, data, given))
    INTEGRATORS["implicitfast"](model)
    other = joined(mujacobian.hessian(model, data, given))
    assert abs(found - other).max() > 1e-3 * abs(other).max()


@pytest.mark.parametrize("name", ["hinge_chain", "free_body_with_limbs", "joint_springs"])
@pytest.mark.parametrize("items", [INERTIA, ["body_log_cholesky", "gravity"]])
def test_inertia_as_parameters(name, items):
    model = discrete(load(name))
    make_positive(model)
    Case(model, items, 2).judge(SMOOTH_TOLERANCE)


def test_other_parameters_raise():
    model = discrete(load("hinge_chain"))
    params = mujacobian.Parameters(model, ["dof_damping"])
    state = np.zeros(model.nq + model.nv)
    trajectory = mujacobian.rollout(model, state, np.zeros((1, model.nu)), params=params)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"damping.*discrete") as raised:
        trajectory.hessian("params", d_states=np.ones_like(trajectory.states))
    listed = [u.element for u in mujacobian.support(model, order=2, params=params)]
    assert raised.value.element.removeprefix("step 0: ") in listed
