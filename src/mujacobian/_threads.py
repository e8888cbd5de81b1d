"""Work on many rollouts in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Lock

import mujoco

from mujacobian import _core, _notices
from mujacobian._arguments import count

MOST_THREADS = 1024  # more is a mistake


def available_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """The number of threads to use, by default one per available core."""
    return available_cores() if threads is None else count("threads", threads, MOST_THREADS)


# Data for the next call: to make one takes as long as many steps. They are of the two models that
# were used last, because a rollout with parameters uses a model and an edited copy of it.
_lock = Lock()
_idle: dict[mujoco.MjModel, list[mujoco.MjData]] = {}
MODELS = 2


@contextmanager
def borrowed(model: mujoco.MjModel) -> Iterator[mujoco.MjData]:
    """A data of the model in whatever state, for one thread."""
    with _lock:
        of_model = _idle.pop(model, [])
        _idle[model] = of_model  # the last one now
        while len(_idle) > MODELS:
            del _idle[next(iter(_idle))]
        data = of_model.pop() if of_model else None
    data = data or mujoco.MjData(model)
    yield data
    # not after an error: it may have been MuJoCo's
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
    """Call `work(k, data)` for k = 0 .. n-1, in threads with a data each.

    Of several errors the one with the least k is raised, with a note: `label(k)`, or by default the
    number of the rollout. Warnings are shown by the calling thread, and an interrupt of the calling
    thread ends the others.
    """
    threads = max(1, min(threads, n))
    found: list[tuple[mujoco.MjModel, Warning]] = []
    errors: dict[int, Exception] = {}
    stop = _core.StopFlag()
    left = iter(range(n))  # threads take the next one in turn: some take longer than others

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
            except BaseException:  # the threads work in vain
                stop.set()
                raise
        if errors:
            raise errors[min(errors)]
        for job in jobs:
            job.result()
    _notices.show(found)
