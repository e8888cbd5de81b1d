"""A picture of a report: our errors and those of finite differences at each state."""

from __future__ import annotations

from pathlib import Path

from mujacobian.check._report import Report

FLOOR = 1e-16  # smaller errors are drawn here
COLORS = {"mujacobian": "#2563eb", "mjd_transitionFD, centered": "#94a3b8"}
MARKERS = {"A": "o", "B": "s", "C": "^", "D": "D"}


def draw(report: Report, name: str, path: Path) -> None:
    """Write the picture; one column per state, one marker per block."""
    from matplotlib.figure import Figure

    count = len(report.states)
    figure = Figure(figsize=(max(6.0, 1.6 * count + 3), 4.2), layout="constrained")
    axes = figure.subplots()
    for label, color in COLORS.items():
        for block, marker in MARKERS.items():
            errors = [s.ours if label == "mujacobian" else s.fd for s in report.states]
            places = [x for x, error in enumerate(errors) if block in error]
            heights = [max(errors[x][block], FLOOR) for x in places]
            if places:
                text = f"{label}: {block}"
                axes.plot(places, heights, marker, color=color, markersize=7, label=text)
    for x, state in enumerate(report.states):
        if state.tolerance:
            axes.hlines(state.tolerance, x - 0.35, x + 0.35, color="#dc2626", linewidth=1)
        if not state.exact:
            note = state.verdict if state.verdict != "exact" else "sensors refused"
            axes.annotate(note, (x, FLOOR), ha="center", va="bottom", fontsize=8)
    axes.set_yscale("log")
    axes.set_ylim(FLOOR / 3, 1e2)
    axes.set_xlim(-0.5, max(count, 1) - 0.5)
    axes.set_xticks(range(count), [state.name for state in report.states], rotation=20, ha="right")
    axes.set_ylabel("worst relative error (red: tolerance)")
    axes.set_title(name, loc="left", fontweight="bold", fontsize=10)
    axes.grid(axis="y", linewidth=0.5, alpha=0.5)
    if any(state.ours for state in report.states):
        figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    figure.savefig(path, dpi=120)
