"""Compare exact with finite-difference Jacobians, then make a quadruped trot. Draw two figures."""

import argparse
import time
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import mujacobian
from examples.demo import trot
from examples.demo.figure import draw
from examples.demo.study import BLOCKS, EPSILONS, LABELS, Study, load

MODELS = ("arm", "quadruped")


def main() -> None:
    """Measure, print the tables and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument(
        "--plot", type=Path, default=Path("build/demo.png"), help="file of the first figure"
    )
    parser.add_argument(
        "--trot", type=Path, default=Path("build/trot.png"), help="file of the second figure"
    )
    arguments = parser.parse_args()

    start, console = time.perf_counter(), Console()
    studies = [load(name) for name in MODELS]
    columns = (TextColumn("{task.description:36}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(studies) * (len(EPSILONS) + 2))
        for study in studies:
            for stage in study.run():
                progress.update(task, advance=1, description=f"{study.name}: {stage}")

    for study in studies:
        console.print(table(study))
    arguments.plot.parent.mkdir(parents=True, exist_ok=True)
    draw(studies, arguments.plot)
    console.print(
        f"finite differences inside mujacobian: {mujacobian.fd_count()}; "
        f"figure: [bold]{arguments.plot}[/bold] ({time.perf_counter() - start:.0f} s)"
    )
    trot.run(console, arguments.trot)


def table(study: Study) -> Table:
    """Return a table of errors and times per method; the speed-up is relative to FD central."""
    model = study.model
    title = f"{study.name} (nv {model.nv}, nu {model.nu}): worst relative error per block, and time"
    result = Table(title=title, box=box.SIMPLE_HEAD, padding=0)
    result.add_column("", no_wrap=True)
    for block in BLOCKS:
        result.add_column(block, justify="right")
    result.add_column("µs", justify="right")
    result.add_column("mj_steps", justify="right")
    result.add_column("speed-up", justify="right")
    for method, label in LABELS.items():
        us = study.times[method]
        result.add_row(
            label,
            *(f"{study.errors[method][block]:.0e}" for block in BLOCKS),
            f"{us:.1f}",
            f"{us / study.times['step']:.1f}",
            f"{study.times['fdc'] / us:.1f}",
            style="bold" if method == "ours" else None,
        )
    return result


if __name__ == "__main__":
    main()
