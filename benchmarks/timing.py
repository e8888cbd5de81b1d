"""Times of calls, and their growth with size."""

import time
from collections.abc import Callable, Mapping

import numpy as np

from mujacobian.check._timing import beside_step, best, has_differences, once

__all__ = ["beside_step", "best", "exponent", "has_differences", "once", "processor"]


def exponent(sizes: np.ndarray, times: np.ndarray) -> float:
    """Return the exponent p of the least-squares fit time = c size^p."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def processor(candidates: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the least processor time of a call of each candidate, in milliseconds.

    The candidates take turns. Unlike wall-clock time, processor time excludes other processes.
    """
    times = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, call in candidates.items():
            start = time.process_time()
            call()
            times[name] = min(times[name], 1e3 * (time.process_time() - start))
    return times
