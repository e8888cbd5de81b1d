"""Two seconds of a quadruped under model-predictive control, and the times of derivatives."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from rich.console import Console

import mujacobian
from mujacobian.control import plot, tasks

SECONDS = 2.0
COMPARED = 0.2  # simulated time with each backend, s
BACKENDS = {
    "fd_central": ("FD central", "#94a3b8"),
    "fd": ("FD", "#f59e0b"),
    "wasp": ("WASP", "#10b981"),
    "analytic": ("mujacobian", "#2563eb"),
}


def run(console: Console, path: Path) -> None:
    """Simulate, print the outcome and write the figure."""
    task = tasks.load("a1_trot")
    before = mujacobian.fd_count()
    result = task.mpc().run(task.start(None), SECONDS)
    differences = mujacobian.fd_count() - before
    outcome = task.judge(result)
    times = {name: derivative_time(task, name) for name in BACKENDS}
    path.parent.mkdir(parents=True, exist_ok=True)
    plot.draw(task, result, path, lambda axes, _: bars(axes, times))

    measures = outcome.measures
    console.print(
        f"[bold]A1 trot[/bold]: {measures['covered (m)']:.2f} m in {SECONDS:g} s, "
        f"swings of {1000 * measures['swing height, mean (m)']:.0f} mm, "
        f"feet as scheduled {100 * measures['feet as scheduled (share)']:.0f} % of the time, "
        f"{result.plans_per_second:.0f} plans per second on {result.threads} threads"
    )
    console.print(
        f"derivatives of a plan of {task.horizon} knots on one thread: "
        + ", ".join(f"{BACKENDS[name][0]} {ms:.1f} ms" for name, ms in times.items())
        + f"; finite differences in ours: {differences}; figure: [bold]{path}[/bold]"
    )


def derivative_time(task: tasks.Task, backend: str) -> float:
    """Return the time of the derivatives of one plan on one thread, ms."""
    result = task.mpc(backend, threads=1).run(task.start(None), COMPARED, progress=False)
    return result.statistics["derivatives"]["median"]


def bars(axes: Axes, times: dict[str, float]) -> None:
    """Draw the time of the derivatives of a plan with each backend."""
    labels, colors = zip(*(BACKENDS[name] for name in times), strict=True)
    places = np.arange(len(times))[::-1]
    axes.barh(places, list(times.values()), 0.62, color=colors)
    for y, ms in zip(places, times.values(), strict=True):
        axes.text(ms, y, f" {ms:.1f}", va="center")
    axes.set_yticks(places, labels)
    axes.set_xlim(0, 1.15 * max(times.values()))
    axes.tick_params(length=0)
    axes.set_xticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_title("derivatives of a plan (ms, one thread)")
