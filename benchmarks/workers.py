"""Cost of `workers=`: bytes that travel, time per item, and efficiency of two processes.

`python -m benchmarks.workers` prints the tables of docs/scale.md. Rows for Ray appear if it is
installed, for example with PYTHONPATH=build/ray after `make test-ray`. The efficiency is the time
of one process divided by twice the time of two.
"""

import argparse
import multiprocessing
import os
import pickle
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import mujacobian
from examples import identify_arm
from mujacobian import _workers
from mujacobian._workers import Distribution
from mujacobian.control import tasks
from mujacobian.sysid import identify

HOPPER = Path(__file__).parent.parent / "examples" / "hopper.xml"
BATCH, STEPS = 64, 200
SHORT_LOG, LONG_LOG = 400, 4000  # steps
LOOPS, LOOP_TIME = 8, 1.0  # closed loops, s
ITEMS = 400
CORES = (10, 100, 1000)

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=int, default=5, help="repetitions, of which the best counts"
    )
    rounds = parser.parse_args().rounds
    report_bytes()
    with ExitStack() as stack:
        maps = open_maps(stack)
        overhead = report_overhead(maps, rounds)
        report_efficiency(maps, rounds)
    report_prediction(overhead)


def open_maps(stack: ExitStack) -> dict[str, tuple[Map, Map]]:
    """Return maps with one and with two processes, by the name of their library."""
    spawn = multiprocessing.get_context("spawn")
    maps: dict[str, tuple[Map, Map]] = {}
    one, two = (stack.enter_context(ProcessPoolExecutor(n, spawn)).map for n in (1, 2))
    maps["ProcessPoolExecutor"] = one, two
    if find_spec("ray"):
        import ray

        from mujacobian.ray import Actors

        folders = [str(HOPPER.parent.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        paths = {"env_vars": {"PYTHONPATH": os.pathsep.join(folders)}}
        stack.enter_context(ray.init(num_cpus=4, runtime_env=paths, log_to_driver=False))
        first, second = (stack.enter_context(Actors(n)) for n in (1, 2))
        maps["Ray"] = first, second
    return maps


def hopper(workers: Map | None = None, **options: object) -> mujacobian.Trajectory:
    """Simulate a batch of hoppers."""
    model = mujacobian.converged(mujoco.MjModel.from_xml_path(str(HOPPER)))
    controls = 0.1 * np.random.default_rng(0).normal(size=(BATCH, STEPS, model.nu))
    data = mujoco.MjData(model)
    states = np.tile(np.concatenate([data.qpos, data.qvel, data.act]), (BATCH, 1))
    return mujacobian.rollout(model, states, controls, workers=workers, threads=1, **options)


def arm(steps: int) -> tuple[mujacobian.Parameters, list[mujacobian.sysid.Log]]:
    """Return parameters and eight logs of an arm."""
    model = mujoco.MjModel.from_xml_string(identify_arm.ARM)
    fields = ["body_mass", "dof_damping", "dof_frictionloss"]
    logs = [identify_arm.record(model, seed, steps) for seed in range(8)]
    return mujacobian.Parameters(model, fields), logs


class Identify:
    """Identifies an arm from logs that are the same in every call."""

    def __init__(self, steps: int) -> None:
        self.parameters, self.logs = arm(steps)

    def __call__(self, workers: Map) -> None:
        """Identify the arm."""
        identify(self.parameters, self.logs, start=1.2 * self.parameters.values, workers=workers)


def run_loops(workers: Map) -> None:
    """Run closed loops of the cart-pole from different angles."""
    starts = [[0.0, np.pi - 0.1 * k, 0.0, 0.0] for k in range(LOOPS)]
    tasks.load("cartpole").mpc().run_batch(starts, LOOP_TIME, workers=workers)


class Measured:
    """A map in this process that notes the bytes that would travel."""

    def __init__(self) -> None:
        self.contents: list[int] = []
        self.calls: list[tuple[list[int], list[int]]] = []

    def share(self, key: str, data: bytes) -> None:
        """Note the size of a content, and keep it."""
        self.contents.append(len(data))
        _workers.keep(key, data)

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return all results, and note their sizes and those of the items."""
        given = list(items)
        made = list(map(function, given))
        sizes = [[len(pickle.dumps(each)) for each in those] for those in (given, made)]
        self.calls.append((sizes[0], sizes[1]))
        return made


def report_bytes() -> None:
    """Print the bytes that travel: once per worker, and with each item."""
    print(
        "| work | once per worker | to the worker, per item | back, per item |\n|---|---|---|---|"
    )
    for name, run in {
        "rollout": hopper,
        "gradient": gradient,
        "gradient, `checkpoint=200`": lambda workers: gradient(workers, checkpoint=STEPS),
        "`identify`": lambda workers: identify(*arm(SHORT_LOG), workers=workers),
    }.items():
        workers = Measured()
        run(workers)
        there, back = (float(np.mean(sizes)) for sizes in workers.calls[-1])
        print(f"| {name} | {kilo(workers.contents[-1])} | {kilo(there)} | {kilo(back)} |")


def kilo(size: float) -> str:
    """Return a size in kilobytes."""
    return f"{size / 1e3:.1f} kB"


def gradient(workers: Map | None, **options: object) -> None:
    """Compute the gradients of a batch."""
    made = hopper(workers, **options)
    made.gradient(np.ones_like(made.states))


def seconds(function: Callable[..., object], *arguments: object) -> float:
    """Return the wall-clock time of a call."""
    begin = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begin


def nothing(content: object, item: object) -> None:
    """Do no work."""


def report_overhead(maps: dict[str, tuple[Map, Map]], rounds: int) -> float:
    """Print the time per item without work; return the largest in seconds."""
    print("\n| workers | time per item without work |\n|---|---|")
    times = []
    for name, (_, two) in maps.items():
        distribution = Distribution(two, "content")
        distribution.outcomes(nothing, range(ITEMS))
        times.append(
            min(seconds(distribution.outcomes, nothing, range(ITEMS)) for _ in range(rounds))
        )
        times[-1] /= ITEMS
        print(f"| {name} | {1e6 * times[-1]:.0f} us |")
    return max(times)


def report_efficiency(maps: dict[str, tuple[Map, Map]], rounds: int) -> None:
    """Print times with one and with two processes."""
    print("\n| work | workers | one process | two processes | efficiency |\n|---|---|---|---|---|")
    jobs: dict[str, Callable[[Map], object]] = {
        f"gradients of {BATCH} x {STEPS} steps": lambda workers: gradient(
            workers, checkpoint=STEPS
        ),
        f"`identify`, 8 logs of {SHORT_LOG} steps": Identify(SHORT_LOG),
        f"`identify`, 8 logs of {LONG_LOG} steps": Identify(LONG_LOG),
        f"`MPC.run_batch`, {LOOPS} closed loops of {LOOP_TIME:g} s": run_loops,
    }
    for title, job in jobs.items():
        for name, both in maps.items():
            best = [np.inf, np.inf]
            for workers in both:
                job(workers)
            for _ in range(rounds):
                for k, workers in enumerate(both):
                    best[k] = min(best[k], seconds(job, workers))
            cells = f"{best[0]:.2f} s | {best[1]:.2f} s | {best[0] / best[1] / 2:.2f}"
            print(f"| {title} | {name} | {cells} |")


def report_prediction(overhead: float) -> None:
    """Print the efficiency that the overhead per item allows."""
    print("\n| work per item | " + " | ".join(f"{n} cores" for n in CORES) + " |")
    print("|---|" + "---|" * len(CORES))
    for work in (1e-3, 1e-2, 1e-1, 1.0):
        cells = [f"{min(1.0, work / (n * overhead)):.2f}" for n in CORES]
        print(f"| {1e3 * work:g} ms | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
