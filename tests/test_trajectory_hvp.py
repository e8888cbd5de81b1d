"""Hessian-vector products of rollouts against differences of gradients, and their errors."""

from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.errors import ArgumentError, ArgumentTypeError
from tests.oracle.extrapolation import derivative
from tests.scenes.cases import random_state
from tests.scenes.rollout_cases import row
from tests.test_hessian import ROWS, load, pendulum
from tests.test_hessian_contacts import walker
from tests.test_hessian_sensors import machine

STEPS = 12
TOLERANCE = 1e-7
SYMMETRY = 1e-11
MODELS = (
    "hinge_chain",
    "ball_chain",
    "free_body_with_limbs",
    "actuator_ball_and_free",
    "actuator_kinds",
)
IMU = '<gyro site="trunk"/><accelerometer site="trunk"/>'
SENSED = ("framepos", "framelinvel", "framequat", "subtreecom", "accelerometer")


class Case:
    """A rollout with random inputs, weights and directions."""

    def __init__(self, model, steps=STEPS, *, sensors=False, scale=1.0, start=None):
        self.model, self.rng = model, np.random.default_rng(0)
        self.state = row(random_state(model, self.rng, scale=0.3)) if start is None else start
        # quaternions that are not normalized
        self.state += 0.01 * self.rng.normal(size=len(self.state))
        self.controls = 0.3 * self.rng.normal(size=(steps, model.nu))
        self.trajectory = self.rollout()
        self.d_states = scale * self.rng.normal(size=self.trajectory.states.shape)
        self.d_states[0] = 0  # the stored numbers of this state are not those of q / |q|
        self.d_sensors = self.rng.normal(size=self.trajectory.sensordata.shape) if sensors else None

    def rollout(self, state=0, controls=0, **options):
        start, inputs = self.state + state, self.controls + controls
        return mujacobian.rollout(self.model, start, inputs, threads=1, **options)

    def direction(self, *, tangent=False):
        size = 2 * self.model.nv + self.model.na if tangent else len(self.state)
        return self.rng.normal(size=size), self.rng.normal(size=self.controls.shape)

    def gradient(self, direction, step):
        moved = self.rollout(*(step * x for x in direction))
        return joined(moved.gradient(self.d_states, self.d_sensors))

    def judge(self):
        along = self.direction()
        expected, error = derivative(lambda step: self.gradient(along, step))
        scale = abs(expected).max()
        assert error < TOLERANCE * scale
        found = joined(self.trajectory.hvp(along, self.d_states, self.d_sensors))
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * scale)


def joined(gradient):
    return np.concatenate([gradient.state, gradient.controls.ravel()])


@pytest.mark.parametrize("tangent", [False, True])
def test_jvp_is_the_transpose_of_the_gradient(tangent):
    case = Case(machine("framepos"), 5, sensors=True)
    along = case.direction(tangent=tangent)
    moved, sensed = case.trajectory.jvp(along, tangent=tangent)
    weights = case.rng.normal(size=moved.shape)
    gradient = case.trajectory.gradient(weights, case.d_sensors, tangent=tangent)
    left = (weights * moved).sum() + (case.d_sensors * sensed).sum()
    right = along[0] @ gradient.state + (along[1] * gradient.controls).sum()
    assert left == pytest.approx(right, rel=1e-12)
    assert case.trajectory.jvp(along, tangent=tangent, sensors=False)[1] is None


@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_derivative_of_the_gradient(name):
    Case(load(name)).judge()


@pytest.mark.parametrize("kind", SENSED)
def test_sensors(kind):
    model = machine(kind)
    Case(model, 5, sensors=True, scale=0.1).judge()


def test_constraints():
    """Limits, dry friction and couplings act in all steps."""
    model = mujoco.MjModel.from_xml_string(ROWS.format(flag=""))
    case = Case(model, 6)
    along = case.direction()
    expected, error = derivative(lambda step: case.gradient(along, step), first=1e-5, levels=4)
    found = joined(case.trajectory.hvp(along, case.d_states))
    scale = abs(expected).max()
    assert error < 1e-6 * scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * scale)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contacts(cone):
    """A walker slides on a floor."""
    model, data = walker(cone, 3)
    case = Case(model, 3)
    case.state = row(data)
    case.trajectory = case.rollout()
    along = case.direction()
    expected, error = derivative(lambda step: case.gradient(along, step), first=1e-6, levels=4)
    found = joined(case.trajectory.hvp(along, case.d_states))
    scale = abs(expected).max()
    assert error < 1e-7 * scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * scale)


@pytest.mark.parametrize("tangent", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_it_is_symmetric(name, tangent):
    case = Case(load(name))
    shape = (STEPS + 1, len(case.direction(tangent=tangent)[0]))
    d_states = case.rng.normal(size=shape)
    a, b = (case.direction(tangent=tangent) for _ in range(2))
    products = [case.trajectory.hvp(x, d_states, tangent=tangent) for x in (a, b)]
    left, right = (
        x[0] @ y.state + (x[1] * y.controls).sum() for x, y in zip((b, a), products, strict=True)
    )
    size = np.linalg.norm(joined(products[0])) * np.sqrt(len(b[0]) + b[1].size)
    assert abs(left - right) < SYMMETRY * size
    assert abs(left) > 1e-6 * size


def test_one_step_is_that_of_hvp():
    model = load("actuator_ball_and_free")
    case = Case(model, 1)
    d_states = case.rng.normal(size=(2, 2 * model.nv + model.na))
    dx, du = case.direction(tangent=True)
    found = case.trajectory.hvp((dx, du), d_states, tangent=True)
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.act = np.split(case.state, [model.nq, model.nq + model.nv])
    data.ctrl[:] = case.controls[0]
    expected = mujacobian.hvp(model, data, dx, du[0], d_states[1])
    np.testing.assert_allclose(found.state, expected.state, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.controls[0], expected.controls, rtol=1e-12, atol=1e-15)


def test_parts_of_the_direction_and_of_the_scalar():
    case = Case(load("actuator_kinds"))
    (dx, du), weights = case.direction(), case.d_states
    whole = joined(case.trajectory.hvp((dx, du), weights))
    parts = [case.trajectory.hvp(along, weights) for along in ((dx, None), (None, du))]
    np.testing.assert_allclose(whole, sum(map(joined, parts)), atol=1e-12 * abs(whole).max())
    made = case.trajectory.hvp((dx, du))
    assert not joined(made).any()
    assert made.forces is made.wrenches is made.mocap is made.params is None
    assert made.norms.shape == (STEPS + 1,)


def test_checkpoints_threads_and_batches_do_not_matter():
    case = Case(load("actuator_ball_and_free"))
    along = case.direction()
    count = mujacobian.fd_count()
    expected = case.trajectory.hvp(along, case.d_states)
    again = case.trajectory.hvp(along, case.d_states)
    assert joined(again).tobytes() == joined(expected).tobytes()
    sparse = case.rollout(checkpoint=5).hvp(along, case.d_states)
    assert joined(sparse).tobytes() == joined(expected).tobytes()
    assert mujacobian.fd_count() == count

    several = np.array([case.controls, 2 * case.controls, case.controls])
    batch = mujacobian.rollout(case.model, case.state, several, threads=2)
    given = [np.stack([x] * 3) for x in (*along, case.d_states)]
    made = batch.hvp((given[0], given[1]), given[2])
    assert made.state.shape == (3, len(case.state))
    for k in (0, 2):
        assert made.state[k].tobytes() == expected.state.tobytes()
        assert made.controls[k].tobytes() == expected.controls.tobytes()
    assert (made.controls[1] != expected.controls).any()


@pytest.mark.parametrize("kind", ["", "framelinvel", "accelerometer"])
def test_kept_steps_give_the_same_bits(kind):
    """With checkpoints nothing is kept. Accelerometers need more than kept steps have."""
    case = Case(machine(kind), sensors=True) if kind else Case(load("actuator_ball_and_free"))
    first, second = case.direction(), case.direction()
    given = case.d_states, case.d_sensors
    wanted = [joined(case.rollout(checkpoint=5).hvp(along, *given)) for along in (first, second)]
    assert abs(wanted[0] - wanted[1]).max() > 0
    other = case.rollout(controls=0.1)
    elsewhere = joined(other.hvp(first, *given))
    for along, expected in zip((first, second, first), (*wanted, wanted[0]), strict=True):
        found = joined(case.trajectory.hvp(along, *given))
        assert found.tobytes() == expected.tobytes()
    # the steps of one trajectory are not those of another
    assert joined(other.hvp(first, *given)).tobytes() == elsewhere.tobytes()
    assert abs(elsewhere - wanted[0]).max() > 0


@pytest.mark.parametrize("weight", [0, 1])
def test_kept_steps_give_the_same_bits_in_contact(weight):
    """An accelerometer without a cotangent does not need more."""
    model, data = walker("elliptic", 3, sensors=IMU)
    case = Case(model, sensors=True, start=row(data))
    case.d_sensors[:, 3:] *= weight
    expected = case.rollout(checkpoint=5).hvp(along := case.direction(), None, case.d_sensors)
    for _ in range(2):
        found = case.trajectory.hvp(along, None, case.d_sensors)
        assert joined(found).tobytes() == joined(expected).tobytes()
    assert abs(joined(found)).max() > 0


def test_steps_that_are_not_kept_follow_a_shorter_trajectory():
    """Nothing is kept of RK4, but the memory for steps of the other trajectory is there."""
    model = load("actuator_ball_and_free")
    case = Case(model)
    along = case.direction()
    short = mujacobian.rollout(model, case.state, case.controls[:2])
    short.hvp((along[0], None), np.ones_like(short.states))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    longer = [case.rollout(checkpoint=every) for every in (None, 5)]
    found, expected = (joined(each.hvp(along, case.d_states)) for each in longer)
    assert found.tobytes() == expected.tobytes()
    assert abs(found).max() > 0


def test_products_in_threads_do_not_share_steps():
    case = Case(load("actuator_ball_and_free"))
    along = [case.direction() for _ in range(8)]
    expected = [joined(case.trajectory.hvp(x, case.d_states)).tobytes() for x in along]
    with ThreadPoolExecutor(4) as pool:
        made = pool.map(lambda x: joined(case.trajectory.hvp(x, case.d_states)).tobytes(), along)
        assert list(made) == expected


def test_wrong_arguments():
    case = Case(load("actuator_kinds"), 3)
    dx, du = case.direction()
    hvp = case.trajectory.hvp
    with pytest.raises(ArgumentTypeError, match="direction must be a pair"):
        hvp(dx, case.d_states)
    with pytest.raises(ArgumentError, match=r"direction\[0\] must have shape"):
        hvp((dx[1:], du), case.d_states)
    with pytest.raises(ArgumentError, match=r"direction\[1\] must have shape"):
        hvp((dx, du[1:]), case.d_states)
    with pytest.raises(ArgumentError, match=r"direction\[0\] must be finite"):
        hvp((np.full_like(dx, np.nan), du), case.d_states)
    with pytest.raises(ArgumentError, match="d_states must have shape"):
        hvp((dx, du), case.d_states[1:])
    with pytest.raises(ArgumentTypeError, match="d_states must be an array of numbers"):
        hvp((dx, du), case.d_states + 1j)
    with pytest.raises(ArgumentError, match="d_sensors must have shape"):
        hvp((dx, du), None, np.zeros((3, case.model.nsensordata + 1)))


def test_steps_without_second_derivative_raise():
    sensor = '<sensor><accelerometer name="imu" site="bob"/></sensor>'
    joint = 'frictionloss=".1"'
    model, data = pendulum(option='noslip_iterations="3"', joint=joint, rest=sensor)
    trajectory = mujacobian.rollout(model, data, np.zeros((8, 0)))
    weights = np.zeros((8, 3))
    weights[:4] = 1
    assert np.isfinite(trajectory.gradient(d_sensors=weights).state).all()
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='step 3: sensor "imu"'):
        trajectory.hvp(([1, 1], None), d_sensors=weights)
