"""Batches of rollouts in the core: the numbers of mujacobian.rollout, and which memory they use."""

import copy
import gc
import multiprocessing
import subprocess
import sys
import threading
import weakref

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import _core
from mujacobian._host import HostRollout
from mujacobian._stepper import stepper
from tests.scenes.cases import load, random_state
from tests.scenes.rollout_cases import row, scene

STEPS = 7
# free and ball joints, activations, contacts, mocap bodies
NAMES = ["hand", "pendulum", "everything"]


def batch(name, n=3, **more):
    """Return a model, inputs of n rollouts, and the trajectory of `mujacobian.rollout`."""
    if name == "everything":
        model = load(name)
        data = random_state(model, np.random.default_rng(2), scale=0.1)
        controls = np.random.default_rng(3).normal(size=(STEPS, model.nu)) * 0.3
    else:
        model, data, controls = scene(name, STEPS)
    rng = np.random.default_rng(1)
    inputs = {
        "state": row(data) + 1e-3 * rng.normal(size=(n, len(row(data)))),
        "controls": controls + 1e-2 * rng.normal(size=(n, *controls.shape)),
        **{key: rng.normal(size=(n, STEPS, *shape(model))) for key, shape in more.items()},
    }
    return model, inputs, mujacobian.rollout(model, **inputs)


def host_of(model, threads=1):
    return HostRollout(model, None, 1, threads, None)


FORCES = {"forces": lambda model: (model.nv,), "wrenches": lambda model: (model.nbody, 6)}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("more", [{}, FORCES], ids=["plain", "forces"])
def test_numbers_are_those_of_rollout(name, more, threads):
    model, inputs, trajectory = batch(name, **more)
    host = host_of(model, threads)
    tape = stepper(model).core.tape(3, STEPS)
    rng = np.random.default_rng(4)
    weights = [rng.normal(size=x.shape) for x in (trajectory.states, trajectory.sensordata)]
    weights[1][:] = 0
    expected = trajectory.gradient(weights[0])
    count = mujacobian.fd_count()
    for kept in (None, tape):
        states, sensordata, rows = host.attempt_simulation(inputs, kept)
        assert states.tobytes() == trajectory.states.tobytes()
        assert sensordata.tobytes() == trajectory.sensordata.tobytes()
        assert rows.tobytes() == trajectory.kept.tobytes()
        for _ in range(2):  # a tape can be used again
            made = host.attempt_gradient(inputs, (states, rows), weights, tuple(inputs), kept)
            for key, x in made.items():
                assert x.any()
                assert x.tobytes() == getattr(expected, key).tobytes(), key
    assert mujacobian.fd_count() == count


@pytest.mark.parametrize("name", ["hand", "pendulum"])
def test_sensors_and_forward_mode(name):
    model, inputs, trajectory = batch(name)
    host = host_of(model)
    rng = np.random.default_rng(4)
    weights = [rng.normal(size=x.shape) for x in (trajectory.states, trajectory.sensordata)]
    recorded = trajectory.states, trajectory.kept
    made = host.attempt_gradient(inputs, recorded, weights, ("state", "controls"))
    expected = trajectory.gradient(*weights)
    assert made["state"].tobytes() == expected.state.tobytes()
    assert made["controls"].tobytes() == expected.controls.tobytes()
    along = [rng.normal(size=x.shape) for x in inputs.values()]
    pushed = stepper(model).push(model, recorded, along, 1, sensors=True)
    for x, y in zip(pushed, trajectory.jvp(tuple(along)), strict=True):
        assert x.any()
        assert x.tobytes() == y.tobytes()


def test_mocap_bodies():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body name='hand' mocap='true' pos='0 0 .1'><geom size='.02'/></body>"
        "<body pos='0 0 .5'><freejoint/><geom size='.1' mass='1'/></body></worldbody>"
        "<equality><weld body1='hand' body2='world'/></equality></mujoco>"
    )
    model.eq_obj2id[0] = 2
    rng = np.random.default_rng(1)
    mocap = rng.normal(size=(2, STEPS, 1, 7))
    state = np.array([0, 0, 0.5, 1, 0.1, 0, 0, *np.zeros(6)])
    inputs = {
        "state": np.array([state, state]),
        "controls": np.zeros((2, STEPS, 0)),
        "mocap": mocap,
    }
    trajectory = mujacobian.rollout(model, **inputs)
    host = host_of(model)
    states, sensordata, rows = host.attempt_simulation(inputs)
    assert states.tobytes() == trajectory.states.tobytes()
    weights = rng.normal(size=states.shape)
    made = host.attempt_gradient(inputs, (states, rows), (weights, sensordata), ("mocap",))
    expected = trajectory.gradient(weights).mocap
    assert expected.any()
    assert made["mocap"].tobytes() == expected.tobytes()


def test_threads_of_the_caller_share_a_stepper():
    model, inputs, trajectory = batch("hand", n=8)
    made = [None] * 4

    def work(k):
        made[k] = host_of(model, threads=2).attempt_simulation(inputs)[0].tobytes()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(made))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [trajectory.states.tobytes()] * len(made)


def test_edits_of_the_model_count():
    """Steppers belong to a model, whose numbers they read in every call."""
    model, inputs, _ = batch("pendulum")
    first = host_of(model).attempt_simulation(inputs)[0]
    other = copy.copy(model)
    other.opt.timestep *= 2
    assert stepper(other) is not stepper(model)
    expected = mujacobian.rollout(other, **inputs).states
    assert host_of(other).attempt_simulation(inputs)[0].tobytes() == expected.tobytes()
    assert host_of(model).attempt_simulation(inputs)[0].tobytes() == first.tobytes()
    model.opt.timestep *= 2
    assert host_of(model).attempt_simulation(inputs)[0].tobytes() == expected.tobytes()


def test_a_stepper_ends_with_its_model():
    model = load("hinge_chain")
    inputs = {
        "state": np.zeros((2, model.nq + model.nv)),
        "controls": np.zeros((2, STEPS, model.nu)),
    }
    assert host_of(model).attempt_simulation(inputs) is not None
    ends = weakref.ref(stepper(model)), weakref.ref(model)
    del model
    gc.collect()
    assert [end() for end in ends] == [None, None]


def test_a_stepper_is_for_one_model():
    model = load("hinge_chain")
    with pytest.raises(ValueError, match="the stepper was made for"):
        stepper(model).core.simulate(copy.copy(model), 0, 1, 1, *[0] * 9, None, False)


@pytest.mark.parametrize("name", ["state", "controls"])
def test_what_is_wrong_is_left_to_rollout(name):
    model, inputs, _ = batch("hand")
    inputs[name] = np.full(inputs[name].shape, np.nan)
    assert host_of(model).attempt_simulation(inputs) is None
    inputs[name][:] = 1e300  # diverges
    assert host_of(model).attempt_simulation(inputs) is None


def test_derivatives_that_are_wrong_are_left_to_gradient():
    model, inputs, trajectory = batch("hand")
    host, recorded = host_of(model), (trajectory.states, trajectory.kept)
    weights = [np.full(x.shape, np.nan) for x in (trajectory.states, trajectory.sensordata)]
    assert host.attempt_gradient(inputs, recorded, weights, ("state",)) is None


def test_long_batches_are_not_kept():
    model, _, _ = batch("hand")
    assert stepper(model).core.tape(16, 4) is not None
    assert stepper(model).core.tape(64, 50) is None
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    assert stepper(model).core.tape(1, 1) is None


def _simulate(model, inputs, queue):
    queue.put(HostRollout(model, None, 1, 2, None).attempt_simulation(inputs)[0].tobytes())


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="the system has no fork"
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_forked_process_has_threads_of_its_own():
    model, inputs, trajectory = batch("hand", n=64)
    assert host_of(model, threads=2).attempt_simulation(inputs) is not None
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_simulate, args=(model, inputs, queue))
    child.start()
    assert queue.get(timeout=60) == trajectory.states.tobytes()
    child.join()


INTERRUPTED = """
import os, signal, sys, threading, mujoco, numpy as np
from mujacobian._host import HostRollout
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
model = mujoco.MjModel.from_xml_string(sys.stdin.read())
inputs = {"state": np.zeros((4, 2)), "controls": np.zeros((4, 2000000, 0))}
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    HostRollout(model, None, 1, 2, None).attempt_simulation(inputs)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_interrupts_stop_all_threads():
    pendulum = (
        "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='.1 0 0'/></body>"
        "</worldbody></mujoco>"
    )
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        input=pendulum,
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert run.stdout == "interrupted\n", run.stderr


def test_versions_of_xla():
    first, last = _core.ffi_versions()
    assert 0 <= first <= last
