"""Rollouts, gradients and identification by workers: any map, the same bits, errors by index."""

import multiprocessing
import os
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import mujoco
import numpy as np
import pytest

import mujacobian
from examples import identify_arm
from mujacobian import _workers
from mujacobian._workers import Distribution
from mujacobian.errors import ArgumentTypeError, FailedItemsError
from mujacobian.sysid import identify

BATCH, STEPS = 5, 20

ARM = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 .1"/>
    <body name="arm" pos="0 0 .3">
      <joint name="pivot" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    </body>
    <body name="ball" pos="0 0 .5"><freejoint/><geom size=".05"/></body>
  </worldbody>
  <actuator><motor joint="pivot"/></actuator>
  <sensor><jointvel joint="pivot"/></sensor>
</mujoco>
"""


@pytest.fixture(scope="module")
def pool():
    """Yield two processes that share nothing with this one."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        yield executor


def batch(**options):
    model = mujoco.MjModel.from_xml_string(ARM)
    rng = np.random.default_rng(0)
    parameters = mujacobian.Parameters(model, ["body_mass", "dof_damping"])
    controls = rng.normal(size=(BATCH, STEPS, model.nu))
    states = np.zeros((BATCH, model.nq + model.nv))
    states[:, 1:8] = model.qpos0[1:8]
    states[:, 0] = rng.normal(size=BATCH)
    return mujacobian.rollout(model, states, controls, params=parameters, **options)


def same(a, b):
    """Compare two results number by number, bit by bit."""
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if a is None or isinstance(a, str | bool | int):
        return a is b or a == b
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and a.tobytes() == b.tobytes()
    return all(same(value, getattr(b, name)) for name, value in vars(a).items())


def derivatives(made):
    rng = np.random.default_rng(1)
    d_states, d_sensors = rng.normal(size=made.states.shape), rng.normal(size=made.sensordata.shape)
    direction = rng.normal(size=made.states[:, 0].shape), rng.normal(size=(BATCH, STEPS, 1))
    return (
        made.gradient(d_states, d_sensors),
        made.gradient(None, d_sensors, tangent=True, window=7),
        made.jvp(direction),
        made.hvp((*direction, rng.normal(size=(BATCH, len(made.params[0])))), d_states),
        made.jacobian("params", sensors=False),
        made.jacobian("state", tangent=True),
    )


@pytest.mark.parametrize("checkpoint", [None, 6])
def test_processes_give_the_bits_of_threads(pool, checkpoint):
    here, there = batch(checkpoint=checkpoint), batch(checkpoint=checkpoint, workers=pool.map)
    assert same(
        (here.states, here.sensordata, here.kept), (there.states, there.sensordata, there.kept)
    )
    made = derivatives(there)
    assert np.abs(made[0].controls).max() > 0
    assert same(derivatives(here), made)


@pytest.mark.parametrize("kind", ["map", "threads", "chunks", "pool"])
def test_any_map_serves(pool, kind):
    spawn = multiprocessing.get_context("spawn")
    wanted = batch()
    if kind == "map":
        made = batch(workers=map)
    elif kind == "threads":
        with ThreadPoolExecutor(3) as executor:
            made = batch(workers=executor.map)
    elif kind == "chunks":
        made = batch(workers=partial(pool.map, chunksize=2))
    else:
        with spawn.Pool(2) as processes:
            made = batch(workers=processes.map)
    assert same(wanted.states, made.states)


@pytest.mark.parametrize("window", [None, 40])
def test_identification_does_not_depend_on_workers(pool, window):
    """The result with one thread, with threads, and with workers is the same to the last bit."""
    model = mujoco.MjModel.from_xml_string(identify_arm.ARM)
    parameters = mujacobian.Parameters(model, ["body_mass", "dof_damping"])
    logs = [identify_arm.record(model, seed, 80) for seed in range(3)]
    start = parameters.values * 1.3
    ways = [{"threads": 1}, {"threads": 3}, {"workers": map}, {"workers": pool.map}]
    ways.append({"workers": partial(pool.map, chunksize=2)})
    for loss in ("squares", "huber"):
        options = {"start": start, "window": window, "loss": loss}
        first, *others = (identify(parameters, logs, **options, **way) for way in ways)
        assert first.steps > 0
        for other in others:
            for name in ("values", "covariance", "residuals", "first_states", "cost", "steps"):
                assert same(getattr(first, name), getattr(other, name)), name
            assert same(first.history, other.history)


def test_the_model_travels_once_to_each_worker():
    """A request carries the content only if the worker has said that it has none."""
    _workers._known.clear()
    sent = []

    def workers(function, requests):
        traveled = [pickle.loads(pickle.dumps(request)) for request in requests]
        sent.append([request.data is not None for request in traveled])
        return map(function, traveled)

    made = batch(workers=workers)
    made.gradient(np.ones_like(made.states))
    made.jacobian("params")
    assert sent == [[has_model] * BATCH for has_model in (False, True, False, False)]


def test_copies_of_the_content_are_limited(monkeypatch):
    monkeypatch.setattr(_workers, "COPIES", 2)
    _workers._known.clear()
    sent = []

    def workers(function, requests):
        sent.append([len(request.items) for request in requests])
        return map(function, requests)

    assert same(batch().states, batch(workers=workers).states)
    assert sent == [[1] * BATCH, [3, 2]]


def test_workers_that_share_receive_the_content_before_the_items():
    class Sharing:
        calls = 0

        def share(self, key, data):
            _workers.keep(key, data)

        def __call__(self, function, requests):
            self.calls += 1
            assert all(request.data is None for request in requests)
            return map(function, requests)

    workers = Sharing()
    _workers._known.clear()
    assert same(batch().states, batch(workers=workers).states)
    assert workers.calls == 1


def test_a_worker_keeps_few_contents():
    for k in range(2 * _workers.CONTENTS):
        made = Distribution(map, f"content {k}").outcomes(_combine, ["a", "b"])
        assert [each.value for each in made] == [f"content {k} a", f"content {k} b"]
    assert len(_workers._known) == _workers.CONTENTS


def _combine(content, item):
    return f"{content} {item}"


def test_failed_rollouts_are_named_and_the_others_end(pool):
    model = mujoco.MjModel.from_xml_string(ARM)
    controls = np.zeros((4, 3, 1))
    states = np.tile([0, *model.qpos0[1:8], *np.zeros(model.nv)], (4, 1))
    states[1, 8:] = states[3, 8:] = 1e12
    with pytest.raises(
        FailedItemsError, match=r"2 of 4 rollouts failed: rollout 1: .*step 0"
    ) as info:
        mujacobian.rollout(model, states, controls, workers=pool.map)
    error = info.value
    assert sorted(error.errors) == [1, 3]
    assert error.results[1] is error.results[3] is None
    single = mujacobian.rollout(model, states[2], controls[2])
    assert same(error.results[2].states, single.states)
    d_states = np.ones_like(single.states)
    assert same(error.results[2].gradient(d_states).state, single.gradient(d_states).state)
    assert str(pickle.loads(pickle.dumps(error.errors))) == str(error.errors)


def test_the_error_of_a_log_names_it(pool):
    model = mujoco.MjModel.from_xml_string(identify_arm.ARM)
    parameters = mujacobian.Parameters(model, ["dof_damping"])
    logs = [identify_arm.record(model, seed, 20) for seed in range(2)]
    logs[1].controls[5] = 1e12
    for way in ({}, {"workers": pool.map}):
        with pytest.raises(mujacobian.MujacobianError, match=r"step 5: ctrl\[0\] is 1e+") as info:
            identify(parameters, logs, **way)
        assert info.value.__notes__ == ["in log 1"]


def _unpicklable(content, item):
    class Local(Exception):
        pass

    raise Local(f"{item} has a lock {threading.Lock() is not None}")


def test_errors_that_do_not_pickle_keep_their_text(pool):
    (made,) = Distribution(pool.map, None).outcomes(_unpicklable, ["it"])
    assert type(made.error) is mujacobian.MujacobianError
    assert str(made.error) == "Local: it has a lock True"


def test_warnings_of_workers_reach_the_caller(pool):
    """Warnings name the rollout; tests/test_convergence.py tests those about the model."""
    pole = (
        "<mujoco><worldbody><body><joint axis='0 1 0' stiffness='-3000'/><geom size='.1'/></body>"
    )
    model = mujoco.MjModel.from_xml_string(pole + "</worldbody></mujoco>")
    made = mujacobian.rollout(model, np.zeros((2, 2)), np.zeros((2, 400, 0)), workers=pool.map)
    d_states = np.zeros_like(made.states)
    d_states[1, -1] = 1
    with pytest.warns(RuntimeWarning, match="rollout 1: the gradient explodes"):
        made.gradient(d_states)


def test_workers_must_be_a_map(pool):
    with pytest.raises(ArgumentTypeError, match="ProcessPoolExecutor: pass its method `map`"):
        batch(workers=pool)
    with pytest.raises(ArgumentTypeError, match=r"such as `executor\.map`, got int"):
        batch(workers=4)
    with pytest.raises(ArgumentTypeError, match="got objects of type Future"):
        batch(workers=lambda function, items: [pool.submit(os.getpid) for _ in items])
    with pytest.raises(ArgumentTypeError, match="got 0 results for 5 items"):
        batch(workers=lambda function, items: [])


def test_a_trajectory_with_workers_pickles(pool):
    made = batch(workers=pool.map)
    copy = pickle.loads(pickle.dumps(made))
    assert copy.distribution is None
    d_states = np.ones_like(made.states)
    assert same(made.gradient(d_states), copy.gradient(d_states))
