"""The figure of the demo: drawing, errors and speed of each model in one row."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes

from examples.demo.study import BLOCKS, EPSILONS, LABELS, Study
from mujacobian.control import plot
from mujacobian.control.sketch import sketch

mpl.use("Agg")
import matplotlib.pyplot as plt

COLORS = {"fd": "#f59e0b", "fdc": "#94a3b8", "ours": "#2563eb"}
VIEWS = {"arm": (-60, 18), "quadruped": (-60, 25)}
STYLE = plot.STYLE | {"font.size": 10}


def draw(studies: list[Study], path: Path) -> None:
    """Write the figure."""
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(
            len(studies), 4, figsize=(14, 3.3 * len(studies)), width_ratios=(0.9, 1.3, 1.3, 1.2),
            layout="constrained", squeeze=False,
        )  # fmt: skip
        for row, study in zip(grid, studies, strict=True):
            sketch(row[0], study.model, study.data, *VIEWS[study.name])
            row[0].set_title(f"{study.name}, nv = {study.model.nv}")
            _errors_by_block(row[1], study)
            _errors_by_step(row[2], study)
            _times(row[3], study)
        legend = [LABELS[method].replace("FD", "mjd_transitionFD", 1) for method in COLORS]
        handles = [plt.Line2D([], [], marker="o", linestyle="", color=c) for c in COLORS.values()]
        figure.legend(handles, legend, loc="outside upper center", ncols=3, frameon=False)
        figure.savefig(path, dpi=100)
        plt.close(figure)


def _errors_by_block(axes: Axes, study: Study) -> None:
    """Draw one line per block with one dot per method."""
    for y, block in enumerate(reversed(BLOCKS)):
        errors = [study.errors[method][block] for method in COLORS]
        axes.plot([min(errors), max(errors)], [y, y], color=plot.GRID, linewidth=3, zorder=1)
        for method, color in COLORS.items():
            axes.scatter(study.errors[method][block], y, s=55, color=color, zorder=2)
    names = [rf"$\partial {block[0]}'/\partial {block[-1]}$" for block in reversed(BLOCKS)]
    axes.set_yticks(range(len(BLOCKS)), names)
    axes.set_xscale("log")
    axes.set_xlim(1e-16, 1e-2)
    axes.tick_params(length=0)
    axes.grid(axis="x", color=plot.GRID, linewidth=0.6)
    axes.spines["left"].set_visible(False)
    axes.set_title("worst relative error, by block")


def _errors_by_step(axes: Axes, study: Study) -> None:
    """Draw the error as a function of the step size; analytic derivatives have none."""
    for method, errors in study.sweep.items():
        axes.loglog(EPSILONS, errors, color=COLORS[method], linewidth=2.2)
    ours = max(study.errors["ours"].values())
    axes.axhline(ours, color=COLORS["ours"], linewidth=2.2)
    axes.text(
        EPSILONS[-1], 1.6 * ours, "exact: no step to choose", color=COLORS["ours"], ha="right"
    )
    axes.set_ylim(1e-16, 1e2)
    axes.set_xlabel("step eps of the finite differences")
    axes.grid(color=plot.GRID, linewidth=0.6)
    axes.tick_params(length=0)
    axes.set_title("worst relative error, by eps")


def _times(axes: Axes, study: Study) -> None:
    """Draw one bar per method with its time and its speed-up over central differences."""
    methods = list(reversed(COLORS))
    times = [study.times[method] for method in methods]
    axes.barh(range(len(methods)), times, 0.62, color=[COLORS[m] for m in methods])
    for y, us in enumerate(times):
        faster = study.times["fdc"] / us
        axes.text(us + 0.02 * max(times), y, f"{us:.0f} µs\n{faster:.1f}x", va="center")
    step = study.times["step"]
    axes.axvline(step, color=plot.INK, linewidth=1, linestyle=":")
    axes.text(step, len(methods) - 0.52, " one mj_step", fontsize=8, color=plot.MUTED, va="bottom")
    axes.set_xlim(0, 1.25 * max(times))
    axes.set_ylim(-0.5, len(methods) - 0.25)
    axes.set_yticks([])
    axes.set_xticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_title("time of A and B, speed-up over central")
