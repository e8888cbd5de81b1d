"""Threads that work on many rollouts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Lock

import mujoco

from mujacobian import _core, _notices
from mujacobian._arguments import count

MOST_THREADS = 1024  # a larger number is probably a mistake


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """Return the number of threads, by default one per available core."""
    return available_cores() if threads is None else count("threads", threads, MOST_THREADS)


# MjData objects for the next call, because to make one takes as long as many steps. They belong to
# the two models that were used last: a rollout with parameters uses a model and an edited copy.
_lock = Lock()
_idle: dict[mujoco.MjModel, list[mujoco.MjData]] = {}
MODELS = 2


@contextmanager
def borrowed(model: mujoco.MjModel) -> Iterator[mujoco.MjData]:
    """Lend an `MjData` of the model, in any state, to one thread."""
    with _lock:
        of_model = _idle.pop(model, [])
        _idle[model] = of_model  # as the last one
        while len(_idle) > MODELS:
            del _idle[next(iter(_idle))]
        data = of_model.pop() if of_model else None
    data = data or mujoco.MjData(model)
    yield data
    # not after an error, which may have come from MuJoCo
    with _lock:
        if len(of_model) < available_cores():
            of_model.append(data)


def each(
    model: mujoco.MjModel,
    n: int,
    threads: int,
    work: Callable[[int, mujoco.MjData], None],
    label: Callable[[int], str] | None = None,
) -> None:
    """Call `work(k, data)` for k = 0 .. n-1, in threads that have an `MjData` each.

    If there are several errors, the one with the least k is raised, with the note `label(k)`, by
    default the number of the rollout. The calling thread shows the warnings. If it is interrupted,
    the other threads stop.
    """
    threads = max(1, min(threads, n))
    found: list[_notices.Found] = []
    errors: dict[int, Exception] = {}
    stop = _core.StopFlag()
    left = iter(range(n))  # each thread takes the next one, because some take longer than others

    def some() -> None:
        with borrowed(model) as data, _notices.waiting(found), stop:
            for k in left:
                if errors:
                    return
                try:
                    work(k, data)
                except Exception as error:
                    if label is not None or n > 1:
                        error.add_note(f"in rollout {k} of {n}" if label is None else label(k))
                    errors[k] = error
                    raise

    if threads == 1:
        some()
    else:
        with ThreadPoolExecutor(threads) as pool:
            jobs = [pool.submit(some) for _ in range(threads)]
            try:
                wait(jobs)
            except BaseException:  # nobody needs the results of the threads
                stop.set()
                raise
        if errors:
            raise errors[min(errors)]
        for job in jobs:
            job.result()
    _notices.show(found)
