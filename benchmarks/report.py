"""The tables and the figure of `make bench`."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table

from benchmarks.timing import exponent

mpl.use("Agg")
import matplotlib.pyplot as plt

INK, GRID, FD, FDC, OURS, PIN = "#1f2937", "#e5e7eb", "#f59e0b", "#94a3b8", "#2563eb", "#10b981"


def accuracy_table(rows: list[dict[str, Any]]) -> Table:
    """Return the worst relative error of [A B] per robot."""
    table = Table(title="worst relative error of A and B, against extrapolated differences")
    for name in ("robot", "nv", "FD", "FD centered", "ours"):
        table.add_column(name, justify="left" if name == "robot" else "right")
    for row in rows:
        values = (f"{row[method]:.1e}" for method in ("fd", "fdc", "ours"))
        table.add_row(row["robot"], str(row["nv"]), *values)
    return table


def time_table(rows: list[dict[str, Any]]) -> Table:
    """Return the table of microseconds per call."""
    table = Table(title="time of A and B on one thread (microseconds)")
    columns = {
        "mj_step": "step", "FD": "fd", "FD centered": "fdc", "Pinocchio": "pinocchio",
        "ours": "ours", "ours, no forward": "bare",
    }  # fmt: skip
    return _filled(table, columns, rows)


def ratio_table(rows: list[dict[str, Any]]) -> Table:
    """Return the table of speed ratios."""
    table = Table(title="ratios: how many times faster; the last column in steps")
    columns = {
        "FDc / ours": "fdc/ours", "FD / ours": "fd/ours", "FDc / Pinocchio": "fdc/pinocchio",
        "no forward / mj_step": "bare/step",
    }  # fmt: skip
    return _filled(table, columns, rows)


def sensor_table(row: dict[str, Any]) -> Table:
    """Return the table of the time for C and D in addition to A and B."""
    table = Table(title="A1 on its feet: time of sensors (microseconds)")
    table.add_column("")
    for name in ("A B", "A B C D", "ratio"):
        table.add_column(name, justify="right")
    for label, key in (("with mj_forward", "ours"), ("no forward", "bare")):
        state, everything = row[f"{key}, A B"], row[f"{key}, all"]
        table.add_row(label, *_numbers(state, everything, everything / state))
    sizes = f"{row['sensors']} sensors of {row['rows']} rows, {row['contacts']} contacts"
    table.caption = f"{sizes}; the limit is 1.3"
    return table


def _filled(table: Table, columns: dict[str, str], rows: list[dict[str, Any]]) -> Table:
    """Return the table with one row per robot."""
    table.add_column("robot")
    for name in columns:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row["robot"], *(_number(row[key]) for key in columns.values()))
    return table


def chain_table(rows: list[dict[str, Any]]) -> Table:
    """Return times per length of the chain; the time of the dense solve grows as nv^3."""
    table = Table(title="chains of hinges (microseconds)")
    for name in ("nv", "mj_forward", "ours", "no forward, apart from the solve"):
        table.add_column(name, justify="right")
    for row in rows:
        unsolved = _number(row["unsolved"]) if "unsolved" in row else ""
        table.add_row(str(row["nv"]), *_numbers(row["forward"], row["ours"]), unsolved)
    power = growth_exponent([row for row in rows if "unsolved" in row], "unsolved")
    table.caption = f"the last column grows as nv^{power:.2f}"
    return table


def body_table(rows: list[dict[str, Any]]) -> Table:
    """Return times per number of free bodies; the time to write dense outputs grows as nv^2."""
    table = Table(title="free bodies (microseconds)")
    for name in ("bodies", "nv", "mj_forward", "writing A", "ours", "ours - writing"):
        table.add_column(name, justify="right")
    for row in rows:
        row["beyond"] = row["ours"] - row["fill"]
        times = _numbers(row["forward"], row["fill"], row["ours"], row["beyond"])
        table.add_row(str(row["size"]), str(row["nv"]), *times)
    power = growth_exponent([row for row in rows if row["size"] >= 5], "beyond")
    table.caption = f"from 5 bodies on the last column grows as nv^{power:.2f}"
    return table


def crowd_table(rows: list[dict[str, Any]]) -> Table:
    """Return times of scenes with many contacts."""
    table = Table(title="many contacts: stacks, heaps, cylinders on boxes, a hand with a prism")
    table.add_column("scene", no_wrap=True)
    for name in ("nv", "cont.", "isl.", "step", "FDc ms", "ours", "/isl.", "/step"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        sizes = (str(row[key]) for key in ("nv", "contacts", "islands"))
        times = _numbers(row["step"], row["fdc"] / 1000, row["bare"], row["per island"])
        table.add_row(row["name"], *sizes, *times, _number(row["bare"] / row["step"]))
    table.caption = (
        "contacts, islands; microseconds of mj_step and of ours without mj_forward, the same per "
        "island beyond writing A, and in steps"
    )
    return table


def growth_exponent(rows: list[dict[str, Any]], key: str) -> float:
    """Return the fitted power of nv."""
    return exponent(np.array([row["nv"] for row in rows]), np.array([row[key] for row in rows]))


def batch_table(row: dict[str, Any]) -> Table:
    """Return microseconds per state on one thread and on two."""
    table = Table(title=f"linearize_batch of {row['states']} talos states (microseconds per state)")
    for name in ("one thread", "two threads", "speed-up"):
        table.add_column(name, justify="right")
    table.add_row(*_numbers(row["one"], row["two"], row["speedup"]))
    return table


def print_tables(console: Console, results: dict[str, Any]) -> None:
    """Print everything that was measured."""
    console.print(accuracy_table(results["accuracy"]))
    console.print(time_table(results["speed"]))
    console.print(ratio_table(results["speed"]))
    console.print(sensor_table(results["sensors"]))
    console.print(chain_table(results["chains"]))
    console.print(body_table(results["bodies"]))
    console.print(crowd_table(results["crowds"]))
    console.print(batch_table(results["batch"]))


def plot(results: dict[str, Any], path: Path) -> None:
    """Draw speed-up bars and scaling curves."""
    style = {"font.size": 10, "text.color": INK, "axes.edgecolor": GRID, "axes.labelcolor": INK}
    with plt.rc_context(style):
        figure, (bars, chains, bodies) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
        _speed_bars(bars, results["speed"])
        _growth_curves(chains, results["chains"], "chain of hinges: nv")
        _growth_curves(bodies, results["bodies"], "free bodies: nv")
        figure.savefig(path, dpi=110)
        plt.close(figure)


def _speed_bars(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Draw the speed-up over centered differences, per robot."""
    series = (("FD", "fd", FD), ("Pinocchio\n(rigid bodies only)", "pinocchio", PIN))
    series += (("mujacobian", "ours", OURS),)
    place = np.arange(len(rows))
    for k, (label, key, color) in enumerate(series):
        ratios = [row["fdc"] / row[key] for row in rows]
        bars = axes.bar(place + 0.27 * (k - 1), ratios, 0.25, color=color, label=label)
        axes.bar_label(bars, fmt="%.0f", padding=2, fontsize=9)
    axes.set_xticks(place, [f"{row['robot']}\nnv {row['nv']}" for row in rows])
    axes.set_title("times faster than centered differences", loc="left", weight="bold", fontsize=10)
    axes.margins(y=0.2)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)


def _growth_curves(axes: Axes, rows: list[dict[str, Any]], label: str) -> None:
    """Draw time over nv with logarithmic axes."""
    curves = (
        ("ours", "mujacobian", OURS),
        ("unsolved", "no forward, apart from the solve", PIN),
        ("forward", "mj_forward", FDC),
        ("fill", "writing the outputs", FD),
    )
    for key, name, color in curves:
        points = [(row["nv"], row[key]) for row in rows if key in row]
        if points:
            axes.loglog(*zip(*points, strict=True), "o-", color=color, label=name, markersize=4)
    axes.set_xlabel(label)
    axes.set_title("microseconds", loc="left", weight="bold", fontsize=10)
    axes.grid(color=GRID)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _numbers(*values: float) -> list[str]:
    return [_number(value) for value in values]


def _number(value: float) -> str:
    """Format numbers with about three significant digits."""
    return (
        f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    )
