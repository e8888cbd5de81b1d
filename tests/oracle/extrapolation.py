"""Derivatives of vector functions of one number by extrapolated central differences."""

import numpy as np


def derivative(function, first=2e-2, levels=7):
    """Return the derivative at zero and its error estimate.

    The largest step, `first`, is in rad, m, or the units of velocities, controls and forces. The
    estimate is at least the rounding error of the function over the step: two differences can
    agree by chance.
    """
    table: list[list[np.ndarray]] = []
    best, error = np.zeros(()), np.inf
    for level in range(levels):
        step = first / 2**level
        ahead, behind = function(step), function(-step)
        rounding = np.finfo(float).eps * max(abs(ahead).max(), abs(behind).max()) / step
        row = [(ahead - behind) / (2 * step)]
        for order, last in enumerate(table[-1] if table else (), start=1):
            row.append(row[-1] + (row[-1] - last) / (4**order - 1))
            spread = max(abs(row[-1] - row[-2]).max(), abs(row[-1] - last).max(), rounding)
            if spread < error:
                best, error = row[-1], spread
        table.append(row)
    return best, error
