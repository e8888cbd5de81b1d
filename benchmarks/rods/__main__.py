"""Compare left perturbations with rotation vectors, print tables, draw build/bench_rods.png."""

import argparse
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.rods import cores, measure
from benchmarks.timing import exponent
from examples.rods_picture import ACCENT, INK, panels, save

NAMES = {"lie": "left perturbations", "vectors": "rotation vectors, automatic"}
TIMESTEPS = 0.001, 0.01  # timesteps of the free body [s]; the last one is drawn
ANALYTIC = {"vectors_analytic": "rotation vectors, closed form"}


def main() -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rods", description=__doc__)
    parser.add_argument("--cores", type=Path, default=cores.BUILD, help="folder of the cores")
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of the picture")
    parser.add_argument("--rounds", type=int, default=7, help="timing rounds per candidate")
    arguments = parser.parse_args()
    compared = cores.load(arguments.cores)
    console = Console(width=110)

    rod = measure.helical(compared, arguments.rounds)
    total = measure.simulation(compared, max(1, arguments.rounds // 3))
    console.print(rod_table(rod, total))
    console.print(inertia_table(measure.inertia(compared, arguments.rounds)))
    for timestep in TIMESTEPS:
        body = measure.free_body(compared, timestep)
        console.print(body_table(body, timestep))
    times = measure.growth(compared["lie"], max(1, arguments.rounds // 3))
    console.print(growth_table(times))
    draw(body, times, arguments.out)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD)
    for k, column in enumerate(columns):
        table.add_column(column, justify="right" if k else "left")
    return table


def rod_table(rod: dict[str, np.ndarray], total: dict[str, np.ndarray]) -> Table:
    """Return the table of the helical rod."""
    columns = ("assembly, us", "solve, us", "simulation, s", "iterations per step")
    table = _table("helical perversion: 161 edges, 969 unknowns, 1000 steps", "", *columns)
    for key, name in NAMES.items():
        row = [f"{x:.1f}" for x in rod[key]] + [f"{total[key][0]:.3f}", f"{total[key][1]:.2f}"]
        table.add_row(name, *row)
    ratios = [f"{x:.1f}" for x in rod["vectors"] / rod["lie"]]
    ratios += [f"{x:.2f}" for x in total["vectors"] / total["lie"]]
    table.add_row("ratio", *ratios)
    table.caption = f"gradients agree to {rod['disagreement']:.0e} of the largest entry"
    return table


def inertia_table(times: dict[str, np.ndarray]) -> Table:
    """Return the table of the inertia terms alone."""
    table = _table("inertia of a free body: gradient and Hessian", "", "ns", "ratio")
    for key, name in (NAMES | ANALYTIC).items():
        ratio = times[key][0] / times["lie"][0]
        table.add_row(name, f"{times[key][0]:.1f}", f"{ratio:.2f}")
    table.caption = f"gradients agree to {times['disagreement']:.0e} of the largest entry"
    return table


def body_table(body: dict[str, dict[str, np.ndarray]], timestep: float) -> Table:
    """Return the table of iterations and condition numbers of the free body."""
    columns = ("iterations per step", "most", "residual left by one", "condition", "worst")
    table = _table(f"free body, tennis racket, {1e3 * timestep:.0f} ms", "", *columns)
    for key, name in (NAMES | ANALYTIC).items():
        if key not in body:
            continue
        row = body[key]
        table.add_row(
            name,
            f"{row['iterations'].mean():.2f}",
            f"{row['iterations'].max()}",
            f"{np.median(row['residual']):.0e}",
            f"{np.median(row['condition']):.2f}",
            f"{row['condition'].max():.2f}",
        )
    table.caption = "medians over the flight, but for the columns `most` and `worst`"
    return table


def growth_table(times: np.ndarray) -> Table:
    """Return the table of times per edge."""
    table = _table("one iteration of a hanging rod", "edges", "us per edge")
    for size, each in zip(measure.SIZES, times, strict=True):
        table.add_row(str(size), f"{each:.3f}")
    sizes = np.array(measure.SIZES)
    table.caption = f"grows as edges^{exponent(sizes, times * sizes):.2f}"
    return table


def draw(body: dict[str, dict[str, np.ndarray]], times: np.ndarray, folder: Path) -> None:
    """Draw the content of figure 4 of the paper, and the growth with the number of edges."""
    figure, (left, middle, right) = panels(3, spatial=False, size=3.6)
    colors = {"lie": ACCENT, "vectors_analytic": INK}
    for key, row in body.items():
        label = (NAMES | ANALYTIC)[key]
        left.semilogy(row["residual"], color=colors[key], lw=0.8, label=label)
        middle.plot(row["condition"], color=colors[key], lw=0.8, label=label)
    left.set_title("residual left by one iteration", fontsize=9)
    middle.set_title("condition number of inertia's Hessian", fontsize=9)
    middle.legend(frameon=False, fontsize=8)
    sizes = np.array(measure.SIZES)
    right.loglog(sizes, 1e-3 * times * sizes, "o-", color=ACCENT)
    right.set_title("ms per iteration, by edges", fontsize=9)
    figure.tight_layout()
    save(figure, "bench_rods", folder)


if __name__ == "__main__":
    main()
