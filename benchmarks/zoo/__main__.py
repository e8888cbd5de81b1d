"""Judge the models of the world: python -m benchmarks.zoo.

Every MJCF and URDF file of the packages of `benchmarks.zoo.sources`, of the checkouts that
MENAGERIE_ROOT and MUJOCO_ROOT name and of the folders given with --root is loaded. Every distinct
model is driven into three states under random controls, and every state is judged against
differences, with a converged solver and collider and with the model's own settings.

Appends to build/zoo.jsonl and writes build/zoo.md. A sweep that was interrupted goes on where it
was, unless mujacobian, MuJoCo or the seed have changed. The exit status is 1 if any state is wrong,
crashes, hangs, is not finite, changes the caller's state or is not repeatable.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import mujoco
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import mujacobian
from benchmarks.zoo import catalog, sources
from benchmarks.zoo.report import failures, report
from benchmarks.zoo.sweep import Sweep

COLUMNS = (TextColumn("{task.description:60.60}"), BarColumn(), MofNCompleteColumn())


def main() -> None:
    """Collect, judge and report."""
    arguments = parse()
    console = Console()
    with Progress(*COLUMNS, TimeElapsedColumn(), console=console, transient=True) as progress:
        try:
            found, failed = collect(progress, arguments)
        except FileNotFoundError as error:
            sys.exit(str(error))
        files = catalog.files(
            found, only=arguments.only, seed=arguments.seed if arguments.sample else None
        )
        if not files:
            sys.exit(f"no model file matches {arguments.only!r}")
        sweep = start(arguments)
        task = progress.add_task("", total=len(files))
        sweep.run(
            files,
            processes=arguments.processes,
            most=arguments.sample,
            advance=lambda label: progress.update(task, advance=1, description=label[-60:]),
        )
    wanted = {file.label for file in files}
    records = [record for record in sweep.records if record["file"] in wanted]
    text = report(records, found, failed)
    path = arguments.out / "zoo.md"
    path.write_text(text)
    console.print(Markdown(text.split("\n## Refused\n")[0]))
    console.print(f"written: {path}, {sweep.lines}")
    sys.exit(failures(records) > 0)


def parse() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.zoo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sample", type=int, metavar="N", help="stop after N distinct models")
    parser.add_argument("--seed", type=int, default=0, help="of the controls and of the sample")
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose name contains it")
    parser.add_argument("--root", type=Path, action="append", default=[], help="one more folder")
    parser.add_argument(
        "--installed", action="store_true", help="only packages that this environment has anyway"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="forget the results so far")
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of the results")
    return parser.parse_args()


def collect(
    progress: Progress, arguments: argparse.Namespace
) -> tuple[list[sources.Source], dict[str, str]]:
    """Return the sources, installing packages that are missing."""
    task = progress.add_task("", total=len(sources.PACKAGES))
    found, failed = sources.collect(
        installed=arguments.installed,
        roots=tuple(arguments.root),
        announce=lambda name: progress.update(task, advance=1, description=f"installing {name}"),
    )
    progress.remove_task(task)
    return found, failed


def start(arguments: argparse.Namespace) -> Sweep:
    """Return a sweep that goes on where the last one of the same build and seed was."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    lines, stamp = arguments.out / "zoo.jsonl", arguments.out / "zoo.build.json"
    build = {"mujoco": mujoco.__version__, "mujacobian": package_hash(), "seed": arguments.seed}
    same = stamp.exists() and json.loads(stamp.read_text()) == build
    if arguments.fresh or not same:
        lines.unlink(missing_ok=True)
    stamp.write_text(json.dumps(build))
    return Sweep(lines, arguments.out / "zoo.log", arguments.seed)


def package_hash() -> str:
    """Return a hash of all files of the installed mujacobian."""
    folder = Path(mujacobian.__file__).parent
    total = hashlib.sha1()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".so"):
            total.update(path.read_bytes())
    return total.hexdigest()


if __name__ == "__main__":
    main()
