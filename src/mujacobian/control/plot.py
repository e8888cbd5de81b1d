"""The figure of a run: poses, the gait, the cost, and computing times."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian.control.mpc_result import PHASES, MPCResult
from mujacobian.control.sketch import Sketch
from mujacobian.control.tasks import Feet, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSES = 7
MARGIN = 0.02  # above and below the poses, relative to their height
GAP = 0.12  # between neighbors, relative to the width of a pose or of a window
TRAVEL = 0.5  # the largest shift of a model that travels, relative to the length of its way
WIDTH, TALLEST, TEXT = 11.0, 2.6, 0.5  # in: the figure, its poses, and the text around the poses
INK, MUTED, GRID, FLOOR = "#1f2937", "#64748b", "#e5e7eb", "#f1f5f9"
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
        poses = Poses(task, result)
        heights = [TEXT + poses.height, *gait, 2.2]
        figure = Figure(figsize=(WIDTH, 0.4 + sum(heights)), layout="constrained")
        rows = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        poses.draw(rows[0].subplots())
        if task.feet is not None:
            draw_gait(rows[1].subplots(), task.feet, task.model, result)
        left, right = rows[-1].subplots(1, 2, width_ratios=(1.5, 1))
        draw_costs(left, result)
        (last or draw_times)(right, result)
        figure.suptitle(f"{task.name}: {task.summary}", x=0.01, ha="left", fontweight="bold")
        figure.savefig(path, dpi=120)


class Poses:
    """Drawings of a model at evenly spaced times in one frame: one scale, one floor.

    A model that stays around its place is drawn side by side, in windows that show the same part of
    the world. A model that travels is drawn along its way, stretched by `shift` from each pose to
    the next so that neighbors do not cover one another.
    """

    def __init__(self, task: Task, result: MPCResult) -> None:
        model, data = task.model, mujoco.MjData(task.model)
        rows = np.unique(np.linspace(0, len(result.times) - 1, POSES).astype(int))
        self.times = result.times[rows]
        self.sketches = []
        for state in result.states[rows]:
            data.qpos[:] = state[: model.nq]
            mujoco.mj_kinematics(model, data)
            self.sketches.append(Sketch(model, data, *task.view))
        left = min(pose.left for pose in self.sketches)
        right = max(pose.right for pose in self.sketches)
        gap = GAP * max(pose.right - pose.left for pose in self.sketches)
        overlaps = [a.right - b.left for a, b in pairwise(self.sketches)]
        self.shift = max(0.0, max(overlaps, default=np.inf) + gap)
        self.travels = self.shift < TRAVEL * (right - left)
        if not self.travels:
            self.shift = (1 + GAP) * (right - left)
        self.left, self.right = left, right + (len(rows) - 1) * self.shift
        self.near = min(pose.near for pose in self.sketches)
        self.far = max(pose.far for pose in self.sketches)
        self.bottom = min(self.near, *(pose.bottom for pose in self.sketches))
        self.top = max(self.far, *(pose.top for pose in self.sketches))

    @property
    def height(self) -> float:
        """The height of the axes, in, if they are as wide as the figure."""
        return min(TALLEST, WIDTH * (self.top - self.bottom) / (self.right - self.left))

    def draw(self, axes: Axes) -> None:
        """Draw the floor and the poses, with their times below."""
        shifts = self.shift * np.arange(len(self.sketches))
        floors = [(self.left, self.right)]
        middles = [(pose.left + pose.right) / 2 for pose in self.sketches] + shifts
        if not self.travels:
            end = self.right - shifts[-1]
            floors = [(self.left + shift, end + shift) for shift in shifts]
            middles = (self.left + end) / 2 + shifts
        for floor in floors:
            axes.fill_between(floor, self.near, self.far, color=FLOOR, linewidth=0)
            axes.plot(floor, (self.near, self.near), color=MUTED, linewidth=1, zorder=0)
        for pose, shift, middle, time in zip(
            self.sketches, shifts, middles, self.times, strict=True
        ):
            pose.draw(axes, shift)
            axes.annotate(
                f"{time:.2f} s", (middle, self.bottom), (0, -4), textcoords="offset points",
                ha="center", va="top", color=MUTED,
            )  # fmt: skip
        axes.set_xlim(self.left, self.right)
        margin = MARGIN * (self.top - self.bottom)
        axes.set_ylim(self.bottom - margin, self.top + margin)
        if self.travels and self.shift > 0:
            axes.set_title(f"poses, each shifted by {self.shift:.2g} m", fontweight="normal")


def draw_gait(axes: Axes, feet: Feet, model: mujoco.MjModel, result: MPCResult) -> None:
    """Draw the scheduled and the measured intervals in which each foot is in the air."""
    times = result.times
    asked = feet.gait.lift(times) > feet.down
    measured = feet.lifted(model, result) > feet.down
    for y in range(len(feet.sensors)):
        axes.broken_barh(_spans(times, asked[:, y]), (y - 0.4, 0.8), facecolors=ASKED)
        axes.broken_barh(_spans(times, measured[:, y]), (y - 0.15, 0.3), facecolors=MEASURED)
    axes.set_yticks(range(len(feet.sensors)), [_label(name) for name in feet.sensors])
    axes.set_ylim(len(feet.sensors) - 0.4, -0.6)
    axes.set_xlim(times[0], times[-1])
    axes.tick_params(length=0)
    axes.set_title("feet in the air: scheduled (gray), measured (blue)")
    axes.set_xlabel("s")


def draw_costs(axes: Axes, result: MPCResult) -> None:
    """Draw the cost over time and its largest terms."""
    terms = result.weighted
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


def _label(sensor: str) -> str:
    """Return the name of a foot from the name of its sensor, which may begin with a quantity."""
    return sensor.split(":")[-1].removesuffix("_foot")


def _spans(times: Array, is_up: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Return starts and lengths of the intervals in which `is_up` holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_up, [False]]).astype(int)))
    ends = np.append(times, times[-1])
    return [
        (float(times[a]), float(ends[b] - times[a]))
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
