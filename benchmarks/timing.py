"""Times of calls, and how they grow with size."""

import numpy as np

from mujacobian.timing import best

__all__ = ["best", "exponent"]


def once(call: Callable[[], object]) -> float:
    """Return the microseconds of one call, for calls of many seconds."""
    return 1e6 * _time(call, 1)


def exponent(sizes: np.ndarray, times: np.ndarray) -> float:
    """Return the p of the least-squares fit time = c size^p."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
