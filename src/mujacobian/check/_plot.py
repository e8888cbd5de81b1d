"""A picture of a report: our errors and those of finite differences at each state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mujacobian.check._report import Report, StateReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOOR = 1e-16  # smaller errors are drawn here
COLORS = {"mujacobian": "#2563eb", "mjd_transitionFD, centered": "#94a3b8"}
MARKERS = {"A": "o", "B": "s", "C": "^", "D": "D"}
TOLERANCE = "#dc2626"
NAMED = 12  # with more states, the axis has their numbers and no names
WIDEST = 14.0  # in
LONGEST = 60  # characters of a title


def draw(report: Report, name: str, path: Path) -> None:
    """Write the picture; one column per state, one marker per block."""
    from matplotlib.figure import Figure

    count = len(report.states)
    width = min(WIDEST, max(6.0, 1.6 * count + 3))
    figure = Figure(figsize=(width, 4.2), layout="constrained")
    axes = figure.subplots()
    for label, color in COLORS.items():
        errors = [s.ours if label == "mujacobian" else s.fd for s in report.states]
        for block, marker in MARKERS.items():
            places = [x for x, error in enumerate(errors) if block in error]
            heights = [max(errors[x][block], FLOOR) for x in places]
            if places:
                text, size = f"{label}: {block}", 7 if count <= NAMED else 3
                axes.plot(places, heights, marker, color=color, markersize=size, label=text)
    for x, state in enumerate(report.states):
        if state.tolerance:
            axes.hlines(state.tolerance, x - 0.35, x + 0.35, color=TOLERANCE, linewidth=1)
    (_name_states if count <= NAMED else _number_states)(axes, report.states)
    axes.set_yscale("log")
    axes.set_ylim(FLOOR / 3, 1e2)
    axes.set_xlim(-0.5, max(count, 1) - 0.5)
    axes.set_ylabel("worst relative error (red: tolerance)")
    axes.grid(axis="y", linewidth=0.5, alpha=0.5)
    figure.suptitle(
        _shortened(name), x=0.01, ha="left", fontweight="bold", fontsize=10, parse_math=False
    )
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside right center", fontsize=8, frameon=False)
    figure.savefig(path, dpi=120)


def _name_states(axes: Axes, states: list[StateReport]) -> None:
    """Write the name of each state below its column, and its verdict if it is not exact."""
    names = [state.name for state in states]
    axes.set_xticks(range(len(states)), names, rotation=20, ha="right", parse_math=False)
    for x, state in enumerate(states):
        if not state.exact:
            note = state.verdict if state.verdict != "exact" else "sensors refused"
            axes.annotate(note, (x, FLOOR), ha="center", va="bottom", fontsize=8)


def _number_states(axes: Axes, states: list[StateReport]) -> None:
    """Number the columns, and mark those that are not exact."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("state")
    places = [x for x, state in enumerate(states) if not state.exact]
    if places:
        axes.plot(places, [FLOOR] * len(places), "x", color=TOLERANCE, label="not exact")


def _shortened(name: str) -> str:
    """Return a name that fits above the picture, without its middle if it is long."""
    half = LONGEST // 2
    return name if len(name) <= LONGEST else f"{name[:half]}…{name[-half:]}"
