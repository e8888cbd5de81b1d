"""Gradients of rollouts: against products of step Jacobians, differences, and each other."""

import tracemalloc
import warnings

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian._manifold import Manifold
from mujacobian.reference import converge
from tests.scenes.cases import load, random_state, snapshot
from tests.scenes.rollout_cases import MODELS, STEPS, row, scene

# relative to the size of the compared quantities
PRODUCT_TOLERANCE = 1e-10
DIFFERENCE_TOLERANCE = 1e-6
TRANSPOSE_TOLERANCE = 1e-12
# so small that no contact begins or ends a step earlier
DIFFERENCE = 1e-6

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION


def cotangents(trajectory, seed=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=trajectory.states.shape), rng.normal(size=trajectory.sensordata.shape)


def same(gradient, other):
    """Return whether two gradients agree bitwise."""
    for name, values in vars(gradient).items():
        if values is None or name == "differenced":
            assert getattr(other, name) == values
        else:
            assert values.tobytes() == getattr(other, name).tobytes(), name
    return True


def close(values, wanted, tolerance):
    assert np.linalg.norm(wanted), "nothing to compare"
    assert np.linalg.norm(values - wanted) <= tolerance * np.linalg.norm(wanted)


@pytest.mark.parametrize("name", MODELS)
def test_product_of_step_jacobians(name):
    """The rollout has all inputs, and the scalar depends on all states and sensors."""
    model, data, controls = scene(name)
    rng = np.random.default_rng(3)
    forces = rng.normal(size=(STEPS, model.nv)) * 0.01
    wrenches = rng.normal(size=(STEPS, model.nbody, 6)) * 0.01
    trajectory = mujacobian.rollout(model, data, controls, forces=forces, wrenches=wrenches)
    nx = 2 * model.nv + model.na
    d_states = rng.normal(size=(STEPS + 1, nx))
    d_sensors = rng.normal(size=(STEPS, model.nsensordata))
    gradient = trajectory.gradient(d_states, d_sensors, tangent=True)

    y, step = d_states[-1], mujoco.MjData(model)
    made = {"controls": [], "forces": [], "wrenches": []}
    norms = [np.linalg.norm(y)]
    contacts = 0
    for t in reversed(range(STEPS)):
        mujoco.mj_setState(model, step, trajectory.kept[0, t], INTEGRATION)
        lin = mujacobian.linearize(model, step, forces=True)
        contacts = max(contacts, step.ncon)
        s = d_sensors[t]
        on_force = y @ lin.Bf + s @ lin.Df
        made["controls"].append(y @ lin.B + s @ lin.D)
        made["forces"].append(on_force)
        jacobian = np.zeros((model.nbody, 6, model.nv))
        for body in range(model.nbody):
            mujoco.mj_jacBodyCom(model, step, jacobian[body, :3], jacobian[body, 3:], body)
        made["wrenches"].append(jacobian @ on_force)
        y = y @ lin.A + s @ lin.C + d_states[t]
        norms.append(np.linalg.norm(y))
    assert contacts or name == "pendulum"
    close(gradient.state, y, PRODUCT_TOLERANCE)
    close(gradient.norms, norms[::-1], PRODUCT_TOLERANCE)
    for field, rows in made.items():
        close(getattr(gradient, field), rows[::-1], PRODUCT_TOLERANCE)
    assert gradient.params is None


@pytest.mark.parametrize("name", MODELS)
def test_differences_of_the_loss(name):
    model, data, controls = scene(name)
    converge(model)
    trajectory = mujacobian.rollout(model, data, controls)
    d_states, d_sensors = cotangents(trajectory)
    rng = np.random.default_rng(4)
    along = rng.normal(size=controls.shape)
    turn, *rest = np.split(rng.normal(size=2 * model.nv + model.na), [model.nv, 2 * model.nv])

    def loss(eps):
        moved = mujoco.MjData(model)
        mujoco.mj_copyData(moved, model, data)
        mujoco.mj_integratePos(model, moved.qpos, turn, eps)
        moved.qvel += eps * rest[0]
        moved.act += eps * rest[1]
        made = mujacobian.rollout(model, moved, controls + eps * along)
        return np.sum(d_states * made.states) + np.sum(d_sensors * made.sensordata)

    def central(eps):
        return (loss(eps) - loss(-eps)) / (2 * eps)

    gradient = trajectory.gradient(d_states, d_sensors)
    on_state = Manifold(model).pull(trajectory.states[0], gradient.state)
    slope = np.sum(gradient.controls * along) + on_state @ np.concatenate([turn, *rest])
    wanted = (4 * central(DIFFERENCE / 2) - central(DIFFERENCE)) / 3
    assert slope == pytest.approx(wanted, rel=DIFFERENCE_TOLERANCE)
    assert slope != 0


@pytest.mark.parametrize("name", MODELS)
def test_forward_and_reverse_mode_are_transposes(name):
    model, data, controls = scene(name)
    trajectory = mujacobian.rollout(model, data, controls)
    jacobian = trajectory.jacobian("state")
    d_states, d_sensors = cotangents(trajectory)
    gradient = trajectory.gradient(d_states, d_sensors)
    pulled = np.einsum("tij,ti->j", jacobian.states, d_states)
    pulled += np.einsum("tij,ti->j", jacobian.sensordata, d_sensors)
    scale = np.linalg.norm(jacobian.states) * np.linalg.norm(d_states)
    assert np.linalg.norm(pulled - gradient.state) <= TRANSPOSE_TOLERANCE * scale
    inside = trajectory.jacobian("state", tangent=True, sensors=False)
    assert inside.sensordata is None
    assert (inside.states[0] == np.eye(2 * model.nv + model.na)).all()


@pytest.mark.parametrize("every", [1, 7, 64, STEPS, 10 * STEPS])
@pytest.mark.parametrize("name", ["pendulum", "hand"])
def test_checkpoints_change_nothing(name, every):
    model, data, controls = scene(name)
    full = mujacobian.rollout(model, data, controls)
    sparse = mujacobian.rollout(model, data, controls, checkpoint=every)
    assert sparse.kept.shape[1] == -(-STEPS // every)
    assert sparse.states.tobytes() == full.states.tobytes()
    given = cotangents(full)
    assert same(full.gradient(*given), sparse.gradient(*given))
    assert same(full.gradient(*given, window=45), sparse.gradient(*given, window=45))
    assert same(full.jacobian("state"), sparse.jacobian("state"))


def test_checkpoints_save_the_memory_that_they_promise():
    """Memory for T / k steps is kept, and for k more while gradients are computed."""
    model, data, controls = scene("hand", 1000)
    every, peaks = 50, []
    for checkpoint in (None, every):
        tracemalloc.start()
        trajectory = mujacobian.rollout(model, data, controls, checkpoint=checkpoint)
        trajectory.gradient(np.ones_like(trajectory.states))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    row_size = trajectory.kept[0, 0].nbytes
    saved = (1000 - 1000 / every - every) * row_size
    assert peaks[0] - peaks[1] > 0.99 * saved


def test_batches_are_single_rollouts():
    """Batches of states and controls, with any number of threads, of one step or many."""
    model, data, controls = scene("hand")
    rng = np.random.default_rng(5)
    states = row(data) + rng.normal(size=(5, model.nq + model.nv)) * 1e-3
    batch = controls + rng.normal(size=(5, *controls.shape)) * 0.01
    forces = rng.normal(size=(STEPS, model.nv)) * 1e-3
    single = [
        mujacobian.rollout(model, x, u, forces=forces) for x, u in zip(states, batch, strict=True)
    ]
    for threads in (1, 2, 7):
        trajectory = mujacobian.rollout(model, states, batch, forces=forces, threads=threads)
        gradient = trajectory.gradient(*cotangents(trajectory))
        jacobian = trajectory.jacobian("state")
        d_states, d_sensors = cotangents(trajectory)
        for k, one in enumerate(single):
            assert one.states.tobytes() == trajectory.states[k].tobytes()
            assert one.sensordata.tobytes() == trajectory.sensordata[k].tobytes()
            made = one.gradient(d_states[k], d_sensors[k])
            for field in ("state", "controls", "forces", "norms"):
                assert getattr(made, field).tobytes() == getattr(gradient, field)[k].tobytes()
            wanted = one.jacobian("state").states
            assert wanted.tobytes() == np.ascontiguousarray(jacobian.states[k]).tobytes()
    shared = mujacobian.rollout(model, states[0], batch)
    assert shared.states.shape[0] == 5
    assert (shared.states[:, 0] == states[0]).all()


def test_the_state_that_is_given_stays_as_it_is():
    model, data, controls = scene("quadruped")
    before = snapshot(model, data)
    trajectory = mujacobian.rollout(model, data, controls)
    trajectory.gradient(*cotangents(trajectory))
    assert snapshot(model, data) == before
    simulated = mujoco.MjData(model)
    mujoco.mj_copyData(simulated, model, data)
    for t, u in enumerate(controls):
        simulated.ctrl[:] = u
        mujoco.mj_step(model, simulated)
        assert row(simulated).tobytes() == trajectory.states[t + 1].tobytes()


def test_mocap_bodies_and_inputs_of_the_first_state():
    """An input without rows keeps its value in the first state."""
    model = load("constraints/weld_mocap")
    data = random_state(model, np.random.default_rng(6), forces=True, scale=1e-3)
    controls = np.zeros((20, model.nu))
    poses = np.hstack([data.mocap_pos, data.mocap_quat])
    still = mujacobian.rollout(model, data, controls)
    moved = np.tile(poses, (20, 1, 1))
    wrenches = np.tile(data.xfrc_applied, (20, 1, 1))
    given = mujacobian.rollout(model, data, controls, mocap=moved, wrenches=wrenches)
    assert still.states.tobytes() == given.states.tobytes()
    moved[10:, 0, :3] += 0.01
    assert (mujacobian.rollout(model, data, controls, mocap=moved).states != still.states).any()
    d_states = cotangents(still)[0]
    gradient = given.gradient(d_states)
    assert gradient.wrenches.shape == wrenches.shape
    assert gradient.state.tobytes() == still.gradient(d_states).state.tobytes()
    assert still.gradient(d_states).wrenches is None


def test_quaternions_of_any_length():
    """Gradients belong to functions of q / |q|: differences of every stored number agree."""
    model = load("free_body_with_limbs")
    state = row(random_state(model, np.random.default_rng(7)))
    state[3:7] *= 1.7
    controls = np.zeros((20, model.nu))
    trajectory = mujacobian.rollout(model, state, controls)
    d_states = cotangents(trajectory)[0]
    d_states[0] = 0  # the first state is not normalized
    gradient = trajectory.gradient(d_states).state
    eps = 1e-6

    def loss(x):
        return np.sum(d_states * mujacobian.rollout(model, x, controls).states)

    wanted = [(loss(state + e) - loss(state - e)) / (2 * eps) for e in eps * np.eye(len(state))]
    np.testing.assert_allclose(gradient, wanted, rtol=0, atol=1e-7 * np.abs(wanted).max())
    assert abs(gradient[3:7] @ state[3:7]) <= 1e-14 * np.abs(gradient[3:7]).max()


def test_windows():
    """Each window is a separate rollout, from the state before it."""
    model, data, controls = scene("pendulum")
    trajectory = mujacobian.rollout(model, data, controls)
    given = cotangents(trajectory)
    cut = trajectory.gradient(*given, window=64)
    for first in range(0, STEPS, 64):
        last = min(first + 64, STEPS)
        start = mujoco.MjData(model)
        mujoco.mj_setState(model, start, trajectory.kept[0, first], INTEGRATION)
        part = mujacobian.rollout(model, start, controls[first:last])
        made = part.gradient(given[0][first : last + 1], given[1][first:last])
        assert made.controls.tobytes() == cut.controls[first:last].tobytes()
        assert first or made.state.tobytes() == cut.state.tobytes()
    assert same(trajectory.gradient(*given, window=STEPS), trajectory.gradient(*given))
    assert (cut.controls != trajectory.gradient(*given).controls).any()


def unstable(stiffness):
    """Return a mass on a spring that pushes it away, and a rollout that stays at rest."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><option timestep='.01' gravity='0 0 0'/><worldbody><body>"
        f"<joint type='slide' stiffness='{stiffness}'/><geom size='.1' mass='1'/>"
        "</body></worldbody></mujoco>"
    )
    return mujacobian.rollout(model, [0, 0], np.zeros((STEPS, 0)))


def test_an_exploding_gradient_is_reported_with_its_step():
    trajectory = unstable(-150)
    d_states = np.zeros((STEPS + 1, 2))
    d_states[-1, 0] = 1
    with pytest.warns(RuntimeWarning, match=r"explodes: in step \d+") as caught:
        norms = trajectory.gradient(d_states).norms
    step = int(str(caught[0].message).split("in step ")[1].split(",")[0])
    assert norms[step] > 1e8 >= norms[step + 1]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trajectory.gradient(d_states, window=50)
        trajectory.gradient(1e9 * d_states[::-1])


def test_overflow_is_an_error_with_the_step():
    trajectory = unstable(-1e6)
    with pytest.raises(mujacobian.MujacobianError, match=r"overflows in step \d+"):
        trajectory.gradient(np.ones((STEPS + 1, 2)))
    with pytest.raises(mujacobian.MujacobianError, match=r"overflows in the state before step \d+"):
        trajectory.jacobian("state")


def test_a_rollout_that_diverges_is_reported_with_its_step():
    model = load("hinge_chain")
    controls = np.zeros((30, model.nu))
    controls[17:] = 1e12
    state = np.zeros(model.nq + model.nv)
    with pytest.raises(mujacobian.MujacobianError, match="the rollout diverges in step 17"):
        mujacobian.rollout(model, state, controls)
    batch = np.stack([np.zeros_like(controls), controls])
    with pytest.raises(mujacobian.MujacobianError, match="rollout 1 diverges in step 17"):
        mujacobian.rollout(model, state, batch)


def test_errors_name_the_step():
    """The gradient raises, not the rollout; in batches the error also names the rollout."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody>"
        "<sensor><user name='encoder' dim='1'/></sensor></mujoco>"
    )
    trajectory = mujacobian.rollout(model, np.zeros((2, 2)), np.zeros((3, 0)))
    trajectory.gradient(np.ones((2, 4, 2)))
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="encoder") as caught:
        trajectory.gradient(d_sensors=np.ones((2, 3, 1)))
    assert "in rollout 0 of 2" in caught.value.__notes__


def test_no_steps():
    model, data, _ = scene("pendulum")
    trajectory = mujacobian.rollout(model, data, np.zeros((0, 1)), checkpoint=3)
    assert trajectory.states.shape == (1, 3)
    gradient = trajectory.gradient([[1, 2, 3]])
    assert gradient.state.tolist() == [1, 2, 3]
    assert gradient.controls.shape == (0, 1)


BAD_ROLLOUTS = [
    ({"model": None}, TypeError, "model must be a mujoco.MjModel"),
    ({"state": np.zeros(2)}, ValueError, r"state must have shape \(3,\) or \(n, 3\), got \(2,\)"),
    ({"state": [0, np.nan, 0]}, ValueError, r"state must be finite, but state\[1\] is nan"),
    ({"state": "here"}, TypeError, "state must be an array of numbers"),
    ({"state": None}, TypeError, "state must be an array of numbers"),
    ({"controls": np.zeros(9)}, ValueError, r"controls must have shape \(T, 1\) or \(n, T, 1\)"),
    ({"controls": np.zeros((9, 2))}, ValueError, r"got \(9, 2\)"),
    ({"controls": np.full((9, 1), np.nan)}, ValueError, r"controls\[0, 0\] is nan"),
    ({"controls": np.ones((9, 1), complex)}, TypeError, "elements are of type complex"),
    ({"forces": np.zeros((8, 1))}, ValueError, r"forces must have shape \(9, 1\)"),
    ({"wrenches": np.zeros((9, 6))}, ValueError, r"wrenches must have shape \(9, 2, 6\)"),
    ({"mocap": np.zeros((9, 7))}, ValueError, r"mocap must have shape \(9, 0, 7\)"),
    ({"checkpoint": 0}, ValueError, "checkpoint must be an integer of at least 1, got 0"),
    ({"checkpoint": 2.5}, ValueError, "checkpoint must be an integer"),
    ({"threads": 0}, ValueError, "threads must be an integer"),
    (
        {"state": np.zeros((2, 3)), "controls": np.zeros((3, 9, 1))},
        ValueError,
        "batches must be of one size, got state 2, controls 3",
    ),
]


@pytest.mark.parametrize(("given", "error", "text"), BAD_ROLLOUTS)
def test_bad_input(given, error, text):
    model = scene("pendulum")[0]
    arguments = {"model": model, "state": np.zeros(3), "controls": np.zeros((9, 1)), **given}
    with pytest.raises(error, match=text):
        mujacobian.rollout(**arguments)


def test_bad_states():
    other = mujoco.MjData(load("hinge_chain"))
    with pytest.raises(ValueError, match="state was made from another model"):
        mujacobian.rollout(scene("pendulum")[0], other, np.zeros((9, 1)))
    model = load("free_body")
    with pytest.raises(ValueError, match=r"a quaternion of length 0 at qpos\[3\]"):
        mujacobian.rollout(model, np.zeros(model.nq + model.nv), np.zeros((9, model.nu)))


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"d_states": np.zeros((9, 3))}, ValueError, r"d_states must have shape \(10, 3\)"),
        ({"d_states": np.zeros((10, 4))}, ValueError, r"d_states must have shape \(10, 3\)"),
        ({"d_states": np.full((10, 3), np.nan)}, ValueError, r"d_states\[0, 0\] is nan"),
        ({"d_sensors": np.zeros((10, 8))}, ValueError, r"d_sensors must have shape \(9, 8\)"),
        ({"d_sensors": np.full((9, 8), np.inf)}, ValueError, r"d_sensors\[0, 0\] is inf"),
        ({"window": 0}, ValueError, "window must be an integer of at least 1"),
    ],
)
def test_bad_cotangents(given, error, text):
    trajectory = mujacobian.rollout(scene("pendulum")[0], np.zeros(3), np.zeros((9, 1)))
    with pytest.raises(error, match=text):
        trajectory.gradient(**given)


def test_bad_jacobian():
    trajectory = mujacobian.rollout(scene("pendulum")[0], np.zeros(3), np.zeros((9, 1)))
    with pytest.raises(ValueError, match='wrt must be "params" or "state"'):
        trajectory.jacobian("controls")
    with pytest.raises(ValueError, match="the rollout was given no params"):
        trajectory.jacobian()


def test_numbers_of_other_types_are_converted():
    model = scene("pendulum")[0]
    wanted = mujacobian.rollout(model, np.zeros(3), np.ones((9, 1)))
    for dtype in (int, np.float32):
        made = mujacobian.rollout(model, np.zeros(3, dtype), np.ones((9, 1), dtype))
        assert made.states.tobytes() == wanted.states.tobytes()


PARAMETERS = ["body_mass", "dof_damping", "geom_friction", "actuator_gainprm", "gravity"]


@pytest.mark.parametrize("name", MODELS)
def test_parameters(name):
    """Forward and reverse mode are transposes, and differences of the loss agree."""
    model, data, controls = scene(name)
    converge(model)
    # a contact has the larger friction of its geoms, with a kink where they are equal
    model.geom_friction[:] *= np.linspace(0.9, 1.1, model.ngeom)[:, None]
    parameters = mujacobian.Parameters(model, PARAMETERS)
    trajectory = mujacobian.rollout(model, data, controls, params=parameters)
    d_states = cotangents(trajectory)[0]
    gradient = trajectory.gradient(d_states)
    assert gradient.params.shape == (len(parameters),)
    plain = mujacobian.rollout(model, data, controls)
    assert plain.states.tobytes() == trajectory.states.tobytes()
    assert plain.gradient(d_states).controls.tobytes() == gradient.controls.tobytes()

    jacobian = trajectory.jacobian(sensors=False).states
    pulled = np.einsum("tij,ti->j", jacobian, d_states)
    scale = np.linalg.norm(jacobian) * np.linalg.norm(d_states)
    assert np.linalg.norm(pulled - gradient.params) <= TRANSPOSE_TOLERANCE * scale

    values = parameters.values
    along = np.random.default_rng(8).normal(size=len(values)) * np.maximum(np.abs(values), 1e-3)
    along[values == 0] = 0  # values at their bounds

    def loss(eps):
        params = parameters, values + eps * along
        made = mujacobian.rollout(model, data, controls, params=params)
        return np.sum(d_states * made.states)

    def central(eps):
        return (loss(eps) - loss(-eps)) / (2 * eps)

    wanted = (4 * central(DIFFERENCE / 2) - central(DIFFERENCE)) / 3
    assert gradient.params @ along == pytest.approx(wanted, rel=DIFFERENCE_TOLERANCE)
    assert wanted != 0


def test_parameters_of_batches_checkpoints_and_models():
    model, data, controls = scene("hand", 30)
    parameters = mujacobian.Parameters(model, ["body_mass", ("geom_friction", "ball")])
    values = parameters.values * 1.1
    batch = np.stack([controls, controls + 0.01])
    many = mujacobian.rollout(model, data, batch, params=(parameters, values), checkpoint=7)
    d_states = cotangents(many)[0]
    gradient, jacobian = many.gradient(d_states), many.jacobian()
    assert gradient.params.shape == (2, len(values))
    # the same numbers, written into the model
    written = parameters.apply(values)
    for k in range(2):
        one = mujacobian.rollout(written, data, batch[k], params=parameters)
        assert one.states.tobytes() == many.states[k].tobytes()
        made = one.gradient(d_states[k])
        assert made.params.tobytes() == gradient.params[k].tobytes()
        assert (one.jacobian().states == jacobian.states[k]).all()
    assert (model.body_mass == parameters.model.body_mass).all()


def test_bad_parameters():
    model, data, controls = scene("pendulum", 9)
    parameters = mujacobian.Parameters(model, ["body_mass"])
    with pytest.raises(ValueError, match=r"params must have shape \(1,\), got \(2,\)"):
        mujacobian.rollout(model, data, controls, params=(parameters, [1, 2]))
    with pytest.raises(ValueError, match=r'body_mass\["pole"\] must be at least 0'):
        mujacobian.rollout(model, data, controls, params=(parameters, [-1]))
    with pytest.raises(ValueError, match="params are of another model"):
        mujacobian.rollout(load("hinge_chain"), np.zeros(6), np.zeros((9, 2)), params=parameters)
    with pytest.raises(TypeError, match=r"params must be mujacobian\.Parameters, got list"):
        mujacobian.rollout(model, data, controls, params=["body_mass"])
