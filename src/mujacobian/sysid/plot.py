"""Figures of an identification: the fit, its residuals, and the intervals of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mujacobian._arguments import Array
from mujacobian.errors import MissingPackageError
from mujacobian.sysid.fit import Fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mujacobian.sysid.result import Identification

MEASURED, PREDICTED, LIMIT = "#94a3b8", "#2563eb", "#dc2626"
BINS = 41  # of the histogram, from -5 to 5 standard deviations
WIDTH = 8.0  # in


def _figure(height: float) -> Figure:
    """Return an empty figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError(
            "figures need matplotlib: pip install 'mujacobian[plot]'", name="matplotlib"
        ) from error
    return Figure(figsize=(WIDTH, height), layout="constrained")


def draw_fit(fit: Fit) -> Figure:
    """Return measured and predicted readings over time, one picture per measured column."""
    columns = np.flatnonzero(~np.isnan(fit.measured).all(axis=0))
    figure = _figure(1.0 + 1.4 * max(len(columns), 1))
    for axes, k in zip(_rows(figure, len(columns)), columns, strict=True):
        axes.plot(fit.times, fit.measured[:, k], ".", color=MEASURED, ms=3, label="measured")
        there = ~np.isnan(fit.predicted[:, k])
        axes.plot(fit.times[there], fit.predicted[there, k], color=PREDICTED, lw=1, label="fit")
        axes.set_ylabel(fit.names[k], parse_math=False)
        axes.grid(linewidth=0.5, alpha=0.5)
    figure.axes[0].legend(loc="upper right", fontsize=8)
    figure.axes[-1].set_xlabel("time in s")
    return figure


def draw_residuals(fits: tuple[Fit, ...], residuals: Array) -> Figure:
    """Return residuals of all sensors over time, and the histogram of all residuals.

    The histogram has the density of the normal distribution beside it.
    """
    figure = _figure(3.2)
    over_time, histogram = figure.subplots(1, 2, width_ratios=[2, 1])
    for k, fit in enumerate(fits):
        rows = fit.residuals
        times = np.broadcast_to(fit.times[:, None], rows.shape)
        over_time.plot(times.ravel(), rows.ravel(), ".", ms=2, color=f"C{k % 10}", label=f"log {k}")
    over_time.set_xlabel("time in s")
    over_time.set_ylabel("residual in units of the noise")
    for level in (-2, 2):
        over_time.axhline(level, color=LIMIT, linewidth=0.7)
    if len(fits) <= 10:
        over_time.legend(fontsize=8, loc="upper right")
    edges = np.linspace(-5, 5, BINS)
    histogram.hist(np.clip(residuals, -5, 5), edges, density=True, color=MEASURED)
    normal = np.exp(-(edges**2) / 2) / np.sqrt(2 * np.pi)
    histogram.plot(edges, normal, color=LIMIT, linewidth=1)
    histogram.set_xlabel("residual (red: normal)")
    histogram.set_yticks([])
    return figure


def draw_intervals(found: Identification, level: float) -> Figure:
    """Return one line per parameter with its value, its interval and its initial value."""
    intervals, initial = found.intervals(level), found.history[0].values
    figure = _figure(0.8 + 0.55 * len(found.values))
    for k, axes in enumerate(_rows(figure, len(found.values), share=False)):
        low, high = intervals[k]
        if np.isfinite([low, high]).all():
            axes.plot([low, high], [0, 0], color=PREDICTED, linewidth=4, alpha=0.4)
        else:
            axes.text(
                0.99, 0.6, "not determined", transform=axes.transAxes, ha="right", color=LIMIT
            )
        axes.plot(found.values[k], 0, "o", color=PREDICTED)
        axes.plot(initial[k], 0, "x", color=MEASURED)
        axes.set_yticks([0], [f"{found.names[k]}\n{found.units[k]}"], parse_math=False, fontsize=8)
        axes.tick_params(labelsize=8)
    title = f"values (dots), {100 * level:g} % intervals (bars), initial values (crosses)"
    figure.suptitle(title, fontsize=9)
    return figure


def _rows(figure: Figure, count: int, *, share: bool = True) -> Array:
    """Return a column of axes, at least one."""
    return np.asarray(figure.subplots(max(count, 1), 1, sharex=share, squeeze=False)[:count, 0])
