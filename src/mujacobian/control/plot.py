"""The figure of a run: poses, the gait, the cost, and computing times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian.control.mpc import PHASES, MPCResult
from mujacobian.control.sketch import sketch
from mujacobian.control.tasks import Feet, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSES = 7
HALVES = np.array([-0.5, 0.5])
INK, MUTED, GRID = "#1f2937", "#64748b", "#e5e7eb"
ASKED, MEASURED = "#cbd5e1", "#2563eb"
LARGEST = 3  # number of terms of the cost that are drawn
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "xtick.color": MUTED,
    "ytick.color": INK,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(
    task: Task,
    result: MPCResult,
    path: Path,
    last: Callable[[Axes, MPCResult], None] | None = None,
) -> None:
    """Write the figure; `last` draws the last axes, by default the computing times of a plan."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        gait = [] if task.feet is None else [0.5 + 0.3 * len(task.feet.sensors)]
        heights = [1.8, *gait, 2.2]
        figure = Figure(figsize=(11, 0.4 + sum(heights)), layout="constrained")
        rows = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        draw_poses(rows[0].subplots(1, POSES), task, result)
        if task.feet is not None:
            draw_gait(rows[1].subplots(), task.feet, task.model, result)
        left, right = rows[-1].subplots(1, 2, width_ratios=(1.5, 1))
        draw_costs(left, result)
        (last or draw_times)(right, result)
        figure.suptitle(f"{task.name}: {task.summary}", x=0.01, ha="left", fontweight="bold")
        figure.savefig(path, dpi=120)


def draw_poses(strip: Sequence[Axes], task: Task, result: MPCResult) -> None:
    """Draw the model at evenly spaced times."""
    data = mujoco.MjData(task.model)
    chosen = np.linspace(0, len(result.times) - 1, len(strip)).astype(int)
    for axes, k in zip(strip, chosen, strict=True):
        data.qpos[:] = result.states[k, : task.model.nq]
        mujoco.mj_kinematics(task.model, data)
        sketch(axes, task.model, data, *task.view)
        axes.set_title(f"{result.times[k]:.2f} s", loc="center", fontweight="normal", color=MUTED)
    widest = max(np.ptp(axes.get_xlim()) for axes in strip)
    tallest = max(np.ptp(axes.get_ylim()) for axes in strip)
    for axes in strip:
        axes.set_xlim(np.mean(axes.get_xlim()) + widest * HALVES)
        axes.set_ylim(np.mean(axes.get_ylim()) + tallest * HALVES)


def draw_gait(axes: Axes, feet: Feet, model: mujoco.MjModel, result: MPCResult) -> None:
    """Draw the scheduled and the measured intervals in which each foot is in the air."""
    times = result.times
    asked = feet.gait.lift(times) > feet.down
    measured = feet.lifted(model, result) > feet.down
    for y in range(len(feet.sensors)):
        axes.broken_barh(_spans(times, asked[:, y]), (y - 0.4, 0.8), facecolors=ASKED)
        axes.broken_barh(_spans(times, measured[:, y]), (y - 0.15, 0.3), facecolors=MEASURED)
    axes.set_yticks(range(len(feet.sensors)), [name.removesuffix("_foot") for name in feet.sensors])
    axes.set_ylim(len(feet.sensors) - 0.4, -0.6)
    axes.set_xlim(times[0], times[-1])
    axes.tick_params(length=0)
    axes.set_title("feet in the air: scheduled (gray), measured (blue)")
    axes.set_xlabel("s")


def draw_costs(axes: Axes, result: MPCResult) -> None:
    """Draw the cost over time and its largest terms."""
    terms = result.terms * result.weights
    for k in np.argsort(-terms.mean(axis=0))[:LARGEST]:
        axes.plot(result.times, terms[:, k], linewidth=1, label=result.names[k])
    axes.plot(result.times, result.costs, color=INK, linewidth=1.6, label="cost")
    axes.set_yscale("log")
    axes.set_ylim(bottom=max(1e-3 * np.median(result.costs), 1e-8))
    axes.set_xlim(result.times[0], result.times[-1])
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.legend(frameon=False, fontsize=8, ncols=LARGEST + 1, loc="upper right")
    axes.set_title(f"cost, {np.mean(result.costs):.4g} on average")
    axes.set_xlabel("s")


def draw_times(axes: Axes, result: MPCResult) -> None:
    """Draw the milliseconds per phase of a plan: medians, with lines to the 95th percentile."""
    phases = [phase for phase in PHASES if phase != "total"]
    for y, phase in enumerate(reversed(phases)):
        spent = result.statistics[phase]
        axes.barh(y, spent["median"], 0.6, color=MEASURED)
        axes.plot([spent["median"], spent["p95"]], [y, y], color=MUTED, linewidth=1)
    axes.set_yticks(range(len(phases)), phases[::-1])
    axes.tick_params(length=0)
    axes.set_xlim(left=0)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_title(f"ms per plan, {result.derivatives}: {result.plans_per_second:.0f} plans/s")
    axes.set_xlabel("ms, median and 95 %")


def _spans(times: Array, is_up: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Return starts and lengths of the intervals in which `is_up` holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_up, [False]]).astype(int)))
    ends = np.append(times, times[-1])
    return [
        (float(times[a]), float(ends[b] - times[a]))
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
