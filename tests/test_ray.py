"""Workers on Ray, with several nodes on this machine and with actors that die: `make test-ray`."""

import os
import signal
import threading
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mujacobian
from examples import identify_arm
from mujacobian.sysid import identify
from tests.test_workers import batch, derivatives, same

ray = pytest.importorskip("ray", reason="Ray is not installed")

from mujacobian.ray import Actors, LostActorError  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Start three nodes with four cores each, as far as Ray counts them."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 4})
    for _ in range(2):
        made.add_node(num_cpus=4)
    folders = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    paths = {"PYTHONPATH": os.pathsep.join(folders)}  # the actors import this module
    ray.init(address=made.address, runtime_env={"env_vars": paths}, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def arm_problem():
    model = mujoco.MjModel.from_xml_string(identify_arm.ARM)
    parameters = mujacobian.Parameters(model, ["body_mass", "dof_damping"])
    logs = [identify_arm.record(model, seed, 150) for seed in range(4)]
    return parameters, logs, {"start": parameters.values * 1.3, "window": 50}


def process_id(item):
    return os.getpid()


def node_and_process(item):
    return ray.get_runtime_context().get_node_id(), os.getpid()


def test_actors_are_processes_on_several_nodes(cluster):
    with Actors(8) as workers:
        places = set(workers(node_and_process, range(64)))
    assert len({node for node, _ in places}) > 1
    assert os.getpid() not in {process for _, process in places}


@pytest.mark.parametrize("number", [1, 2, 4, 8])
def test_results_do_not_depend_on_the_number_of_actors(number):
    parameters, logs, options = arm_problem()
    with Actors(number) as workers:
        found = identify(parameters, logs, **options, workers=workers)
        wanted = identify(parameters, logs, **options, threads=1)
        for name in ("values", "covariance", "residuals", "first_states", "cost", "steps"):
            assert same(getattr(found, name), getattr(wanted, name)), name
        assert same(derivatives(batch()), derivatives(batch(workers=workers)))


class DieOnce:
    """Kills its process at one item, unless a file says that this has happened."""

    def __init__(self, folder, item):
        self.folder, self.item = folder, item

    def __call__(self, item):
        log = self.folder / f"{item}-{os.getpid()}-{len(list(self.folder.iterdir()))}"
        log.touch()
        if item == self.item and not (self.folder / "dead").exists():
            (self.folder / "dead").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item**2


def test_a_killed_actor_costs_only_its_chunk(tmp_path):
    with Actors(2) as workers:
        assert workers(DieOnce(tmp_path, 21), range(32)) == [k**2 for k in range(32)]
        assert len(workers._actors) == 2
    ran = sorted(
        int(file.name.partition("-")[0]) for file in tmp_path.iterdir() if "-" in file.name
    )
    assert sorted(set(ran)) == list(range(32))
    again = sorted(k for k in set(ran) if ran.count(k) > 1)
    assert again == [20, 21]  # chunks of four items: those before the death, and the one itself


def test_identification_survives_a_killed_actor():
    parameters, logs, options = arm_problem()
    wanted = identify(parameters, logs, **options)
    calls, killed = [], []
    with Actors(2) as workers:

        def watched(function, items):
            """Kill an actor in the middle of the third evaluation."""
            calls.append(len(items))
            if len(calls) == 3:
                victim = ray.get(workers._actors[0].run.remote(process_id, [0]))[0]
                killed.append(victim)
                timer = threading.Timer(0.002, os.kill, (victim, signal.SIGKILL))
                timer.start()
            return workers(function, items)

        watched.share = workers.share
        found = identify(parameters, logs, **options, workers=watched)
        later = ray.get(workers._actors[0].run.remote(process_id, [0]))[0]
    assert killed
    assert later not in killed
    assert len(calls) > 3
    assert same(found.values, wanted.values)
    assert same(found.covariance, wanted.covariance)


def always_die(item):
    os.kill(os.getpid(), signal.SIGKILL)


def test_items_that_kill_every_actor_are_named():
    with (
        Actors(1, retries=1) as workers,
        pytest.raises(LostActorError, match="2 actors died while they worked on items 0 to 1"),
    ):
        workers(always_die, range(8))


def test_models_travel_once(monkeypatch):
    """The driver puts a model into the object store once, and requests contain only its key."""
    stored = []
    put = ray.put
    monkeypatch.setattr(ray, "put", lambda data: stored.append(len(data)) or put(data))
    with Actors(2) as workers:
        requests = []

        def watched(function, items):
            requests.extend(items)
            return workers(function, items)

        watched.share = workers.share
        made = batch(workers=watched)
        made.gradient(np.ones_like(made.states))
        made.jacobian("params")
    assert len(stored) == 1
    assert all(request.data is None for request in requests)


def test_closed_actors_and_bad_numbers_raise():
    with Actors(1) as workers:
        pass
    with pytest.raises(mujacobian.MujacobianError, match="the actors are closed"):
        workers(process_id, [0])
    with pytest.raises(mujacobian.MujacobianError, match="number must be an integer"):
        Actors(0)
