"""Times of calls, and their growth with size."""

import numpy as np

from mujacobian.check._timing import beside_step, best, has_differences, once

__all__ = ["beside_step", "best", "exponent", "has_differences", "once"]


def exponent(sizes: np.ndarray, times: np.ndarray) -> float:
    """Return the exponent p of the least-squares fit time = c size^p."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
