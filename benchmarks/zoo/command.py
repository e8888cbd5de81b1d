"""The command line that all sweeps over models share: selection of models, folder of results."""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import mujacobian
from benchmarks.zoo import catalog, sources
from benchmarks.zoo.sweep import Record, Sweep

COLUMNS = (TextColumn("{task.description:60.60}"), BarColumn(), MofNCompleteColumn())


@dataclass(frozen=True)
class Outcome:
    """The records of the selected files, and the sources of the files."""

    records: list[Record]
    sources: list[sources.Source]
    failed: dict[str, str]  # packages that could not be installed, with the reasons
    lines: Path


def make_parser(prog: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the arguments for the models and the folder of the results."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sample", type=int, metavar="N", help="stop after N distinct models")
    parser.add_argument("--seed", type=int, default=0, help="seed of controls and sample")
    parser.add_argument("--only", default="", metavar="TEXT", help="select files by name")
    parser.add_argument("--root", type=Path, action="append", default=[], help="another folder")
    parser.add_argument(
        "--installed", action="store_true", help="use only packages that are already installed"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="delete earlier results")
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of the results")
    return parser


def run(
    arguments: argparse.Namespace,
    name: str,
    settings: dict[str, Any],
    make: Callable[[Path, Path], Sweep],
    console: Console,
) -> Outcome:
    """Collect models and judge those that are not finished.

    `make` returns the sweep, given the files of its results and of its log. Results of another
    build or of other `settings` are deleted.
    """
    with Progress(*COLUMNS, TimeElapsedColumn(), console=console, transient=True) as progress:
        try:
            found, failed = _collect(progress, arguments)
        except FileNotFoundError as error:
            sys.exit(str(error))
        files = catalog.files(
            found, only=arguments.only, seed=arguments.seed if arguments.sample else None
        )
        if not files:
            sys.exit(f"no model file matches {arguments.only!r}")
        lines = _lines(arguments, name, settings)
        sweep = make(lines, lines.with_suffix(".log"))
        task = progress.add_task("", total=len(files))
        sweep.run(
            files,
            processes=arguments.processes,
            most=arguments.sample,
            advance=lambda label: progress.update(task, advance=1, description=label[-60:]),
        )
    wanted = {file.label for file in files}
    records = [record for record in sweep.records if record["file"] in wanted]
    return Outcome(records, found, failed, lines)


def _collect(
    progress: Progress, arguments: argparse.Namespace
) -> tuple[list[sources.Source], dict[str, str]]:
    """Return the sources, after installing missing packages."""
    task = progress.add_task("", total=len(sources.PACKAGES))
    found, failed = sources.collect(
        installed=arguments.installed,
        roots=tuple(arguments.root),
        announce=lambda name: progress.update(task, advance=1, description=f"installing {name}"),
    )
    progress.remove_task(task)
    return found, failed


def _lines(arguments: argparse.Namespace, name: str, settings: dict[str, Any]) -> Path:
    """Return the file of the results; it is kept if build, seed and settings are the same."""
    folder = arguments.out
    folder.mkdir(parents=True, exist_ok=True)
    lines, stamp = folder / f"{name}.jsonl", folder / f"{name}.build.json"
    build = {"mujoco": mujoco.__version__, "mujacobian": _package_hash(), "seed": arguments.seed}
    build |= settings
    same = stamp.exists() and json.loads(stamp.read_text()) == build
    if arguments.fresh or not same:
        lines.unlink(missing_ok=True)
    stamp.write_text(json.dumps(build))
    return Path(lines)


def _package_hash() -> str:
    """Return a hash of all files of the installed mujacobian."""
    folder = Path(mujacobian.__file__).parent
    total = hashlib.sha1()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".so"):
            total.update(path.read_bytes())
    return total.hexdigest()
