"""The table and the figure of the trials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

mpl.use("Agg")
import matplotlib.pyplot as plt

COLORS = {"shac": "#2563eb", "shac-given": "#10b981", "ppo": "#f59e0b", "ppo-given": "#94a3b8"}
LABELS = {
    "shac": "SHAC, wide contacts first",
    "shac-given": "SHAC, contacts of the model",
    "ppo": "PPO, wide contacts first",
    "ppo-given": "PPO, contacts of the model",
}
COLUMNS = ("seeds", "s", "actions", "return at half time", "return", "lowest", "highest", "length")

Record = dict[str, Any]


def table(records: list[Record]) -> str:
    """Return a Markdown table with one row per robot and learner; most columns are medians."""
    lines = [f"| robot | learner | {' | '.join(COLUMNS)} |", "|---|---|" + "---:|" * len(COLUMNS)]
    for robot in dict.fromkeys(record["robot"] for record in records):
        for learner, group in by_learner(records, robot):
            lines.append(f"| {robot} | {LABELS[learner]} | {' | '.join(row(group))} |")
    return "\n".join(lines)


def row(group: list[Record]) -> tuple[str, ...]:
    """Return the columns that describe the trials of one learner on one robot."""
    curves = [record["points"] for record in group]
    last = np.array([curve[-1]["value"] for curve in curves])
    half = np.median([curve[len(curve) // 2 - 1]["value"] for curve in curves])
    return (
        str(len(group)),
        f"{group[0]['budget']:g}",
        f"{np.median([curve[-1]['actions'] for curve in curves]) / 1e6:.2f} M",
        f"{half:.0f}",
        f"{np.median(last):.0f}",
        f"{last.min():.0f}",
        f"{last.max():.0f}",
        f"{np.median([curve[-1]['length'] for curve in curves]):.0f}",
    )


def by_learner(records: list[Record], robot: str) -> Iterator[tuple[str, list[Record]]]:
    """Yield the learners of a robot with their trials."""
    for learner in LABELS:
        group = [r for r in records if (r["robot"], r["learner"]) == (robot, learner)]
        if group:
            yield learner, group


def plot(records: list[Record], path: Path) -> None:
    """Draw the returns of each robot."""
    robots = list(dict.fromkeys(record["robot"] for record in records))
    size = 3.6 * len(robots), 3.4
    figure, axes = plt.subplots(1, len(robots), figsize=size, layout="constrained", squeeze=False)
    for place, robot in zip(axes[0], robots, strict=True):
        for learner, group in by_learner(records, robot):
            draw(place, learner, [record["points"] for record in group])
        place.set_title(robot, loc="left", weight="bold", fontsize=10)
        place.set_xlabel("processor time, s")
        place.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("return")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw(place: Axes, learner: str, curves: list[list[Record]]) -> None:
    """Draw the returns of a learner over processor time: their median and range over the seeds."""
    seconds, values = (
        np.array([[point[key] for point in curve] for curve in curves])
        for key in ("seconds", "value")
    )
    x, color = np.median(seconds, axis=0), COLORS[learner]
    place.plot(x, np.median(values, axis=0), color=color, label=LABELS[learner])
    place.fill_between(x, values.min(axis=0), values.max(axis=0), color=color, alpha=0.2, lw=0)
