"""Work on many rollouts in threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import mujoco


def available_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def each(
    model: mujoco.MjModel, n: int, threads: int, work: Callable[[int, mujoco.MjData], None]
) -> None:
    """Call `work(k, data)` for k = 0 .. n-1, in threads with a data each."""

    def some(first: int) -> None:
        data = mujoco.MjData(model)
        for k in range(first, n, threads):
            try:
                work(k, data)
            except Exception as error:
                if n > 1:
                    error.add_note(f"in rollout {k} of {n}")
                raise

    if min(threads, n) <= 1:
        threads = 1
        some(0)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(some, range(min(threads, n))):
            pass
