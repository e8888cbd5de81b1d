"""Second derivatives of a step of the Runge-Kutta integrator."""

import mujoco
import numpy as np
import pytest

from mujacobian import reference
from tests.oracle.second_order import (
    cotangent,
    judge,
    judge_brackets,
    judge_columns,
)
from tests.scenes.cases import INTEGRATORS, random_state, sample
from tests.scenes.contact_scenes import STATES
from tests.test_actuators import DYNAMICS, LAWS, MOTORS, PID, TRANSMISSIONS, state, world
from tests.test_contacts import CONES
from tests.test_fluid import scene
from tests.test_hessian import BRACKET_TOLERANCE, EQUALITY, EQUALITY_SHARE, SMOOTH_TOLERANCE, load
from tests.test_hessian import ROWS as ROW_SCENE
from tests.test_hessian_contacts import walker
from tests.test_hessian_sensors import machine
from tests.test_hvp import judge as judge_product
from tests.test_trajectory_hvp import Case

MODELS = (
    "ball_chain",
    "free_body_with_limbs",
    "ball_and_free_springs",
    "gravcomp_through_actuators",
    "spatial_tendon_across_trees",
    "actuator_ball_and_free",
    "actuator_site",
)


def check(model, data, **kwargs):
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    assert judge(model, data, tolerance=SMOOTH_TOLERANCE, **kwargs) > 0
    judge_product(model, data, cotangent(model))


@pytest.mark.parametrize("name", sample(2, MODELS))
def test_models(name):
    model = load(name)
    check(model, random_state(model, np.random.default_rng(0)))


@pytest.mark.parametrize("timestep", [0.02, 0.3])
def test_large_rotations_between_stages(timestep):
    """The angle from the first to the last stage is below 1, where a series is used, or above."""
    model = load("free_body")
    model.opt.timestep = timestep
    data = random_state(model, np.random.default_rng(0))
    data.qvel[3:] = 2, -4, 3
    assert (timestep * np.linalg.norm(data.qvel[3:]) > 1.5) == (timestep > 0.1)
    check(model, data)


def test_applied_forces():
    model = load("free_body_with_limbs")
    rng = np.random.default_rng(4)
    data = random_state(model, rng)
    data.xfrc_applied[:] = rng.normal(size=(model.nbody, 6))
    data.qfrc_applied[:] = rng.normal(size=model.nv)
    check(model, data, forces=True)


def test_a_medium():
    model = scene("heavy", "coefficients")
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data = random_state(model, np.random.default_rng(1), scale=0.3)
    assert judge_columns(model, data, tolerance=SMOOTH_TOLERANCE, step=2e-3) > 0.9


@pytest.mark.parametrize(
    ("dynamics", "transmission"), sample(3, DYNAMICS, ["hinge", "spatial tendon", "ball"])
)
def test_activations(dynamics, transmission):
    model = world(f"<general {TRANSMISSIONS[transmission]} {LAWS['affine']} {DYNAMICS[dynamics]}/>")
    data = state(model, 0, act=0.2, ctrl=0.4)
    data.act[:], data.ctrl[:] = abs(data.act), abs(data.ctrl)
    check(model, data)


@pytest.mark.parametrize("kind", ["warm current", "friction", "integral", "cogging"])
@pytest.mark.parametrize("transmission", ["hinge", "spatial tendon"])
def test_motors(kind, transmission):
    """The bristles of a motor depend on the speed of one stage."""
    motor = 'motorconst=".6" resistance="1.4"'
    model = world(f"<dcmotor {TRANSMISSIONS[transmission]} {motor} {MOTORS[kind]}/>")
    check(model, state(model, 0, act=0.2, ctrl=0.3))


def test_servos_with_integrals():
    model = world(f"<pid {TRANSMISSIONS['refsite rotation']} {PID['integral']}/>")
    check(model, state(model, 0, act=0.1, ctrl=0.3))


def test_constraint_rows():
    model = mujoco.MjModel.from_xml_string(ROW_SCENE.format(flag=""))
    INTEGRATORS["rk4"](model)
    data = random_state(model, np.random.default_rng(2))
    assert judge_columns(model, data, tolerance=1e-7) > EQUALITY_SHARE
    judge_product(model, data, cotangent(model))


@pytest.mark.parametrize("name", ["connect_bodies", "weld_bodies", "four_bar"])
def test_connect_and_weld(name):
    model = reference.converge(load(f"constraints/{name}"))
    INTEGRATORS["rk4"](model)
    data = random_state(model, np.random.default_rng(0))
    assert judge_columns(model, data, **EQUALITY) > EQUALITY_SHARE


@pytest.mark.parametrize(("cone", "condim"), sample(3, CONES, STATES))
def test_contacts(cone, condim):
    """Contacts of later stages are those of other states."""
    model, data = walker(cone, condim, "rk4")
    assert data.ncon > 0
    assert judge_columns(model, data, tolerance=1e-6) > 0.4  # each stage has kinks of its own
    judge_product(model, data, cotangent(model))


def test_sensors_are_those_of_the_first_stage():
    sensors = '<accelerometer site="end"/><framepos objtype="site" objname="claw"/>'
    model = world(f"</actuator><sensor>{sensors}</sensor><actuator>")
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data = state(model, 0)
    weights = np.random.default_rng(3).normal(size=model.nsensordata)
    judge(model, data, tolerance=SMOOTH_TOLERANCE, sensed=weights)
    judge_product(model, data, 1e-3 * cotangent(model), weights)


def test_the_antisymmetric_part_of_the_differences_is_that_of_lie_brackets():
    model = load("ball_chain")
    INTEGRATORS["rk4"](model)
    data = random_state(model, np.random.default_rng(0))
    judge_brackets(model, data, tolerance=BRACKET_TOLERANCE)


@pytest.mark.parametrize("sensors", [False, True])
def test_rollouts(sensors):
    model = machine("framepos", "rk4")
    Case(model, 5, sensors=sensors, scale=0.1 if sensors else 1.0).judge()
