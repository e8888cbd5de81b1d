"""The command line: `mujacobian check MODEL.xml`, `mujacobian mpc TASK`, `mujacobian info`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import mujoco
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mujacobian import _core
from mujacobian._info import gather
from mujacobian._packages import require_matplotlib
from mujacobian.check import Study
from mujacobian.check._format import as_dict, as_text
from mujacobian.check._plot import draw
from mujacobian.check._probe import quiet
from mujacobian.check._terminal import printable
from mujacobian.control import command
from mujacobian.errors import MujacobianError

PIPED_WIDTH = 120  # columns of a table that does not go to a terminal

CHECK = """\
Drive a model (MJCF, URDF or MJB) into a few states and compare A, B, C, D there with a trusted
reference and with mjd_transitionFD.

exit status:
  0  every state is exact in every block
  1  a result is wrong, not supported or could not be compared, or MuJoCo's solver or
     collider stops before it converges at the model's own settings
  2  the file is missing or broken, or the command line is wrong
"""


class InputError(MujacobianError):
    """A file cannot be used, or an output cannot be written."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return COMMANDS[options.command](options)
    except MujacobianError as error:
        print(f"mujacobian: {printable(str(error))}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"mujacobian: out of memory {printable(_in_one_line(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mujacobian", description="Exact analytic derivatives of one MuJoCo step."
    )
    parser.add_argument("--version", action="version", version=f"mujacobian {_core.version()}")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser(
        "check",
        help="how exact and how fast the derivatives of a model are",
        description=CHECK,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add_argument("model", type=Path, metavar="MODEL.xml", help="an MJCF, URDF or MJB file")
    check.add_argument("--states", type=_positive, default=3, metavar="N", help="how many states")
    check.add_argument("--seed", type=_natural, default=0, help="seed of the random controls")
    check.add_argument("--json", action="store_true", help="print JSON and nothing else")
    check.add_argument("--plot", type=Path, metavar="FILE", help="draw the errors into a picture")
    mpc = commands.add_parser(
        "mpc",
        help="run a task under model-predictive control",
        description=command.DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(mpc)
    commands.add_parser("info", help="versions, processor and MuJoCo's layout")
    return parser


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {value}")
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _info(_: argparse.Namespace) -> int:
    facts = gather()
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:{width}}  {value}")
    return 0


def _check(options: argparse.Namespace) -> int:
    if options.plot is not None:
        require_matplotlib()
        _require_writable(options.plot)
    study = Study(load(options.model), options.states, options.seed)
    name = str(options.model)
    try:
        _run(study)
    except mujoco.FatalError as error:  # no memory for its contacts, say
        raise InputError(f"{name}: MuJoCo stopped: {_in_one_line(error)}") from None
    if options.plot is not None:
        _draw(study, name, options.plot)
    if options.json:
        print(json.dumps(as_dict(study.report, name, options.seed), indent=2, allow_nan=False))
    else:
        console = Console()
        if not console.is_terminal:
            console = Console(width=PIPED_WIDTH)
        console.print(as_text(study.report, name))
    sys.stdout.flush()
    return 0 if study.report.exact else 1


def load(path: Path) -> mujoco.MjModel:
    """Return the model in a file; raise InputError with one line if it cannot be loaded."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file():
        raise InputError(f"{path}: not a file")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    try:
        with quiet():
            if path.suffix == ".mjb":
                return mujoco.MjModel.from_binary_path(str(path))
            # MuJoCo does not find all files that nested includes name under a relative path
            return mujoco.MjModel.from_xml_path(str(path.resolve()))
    except MemoryError:
        raise InputError(f"{path}: it needs more memory than is available") from None
    except (ValueError, OSError, RuntimeError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        raise InputError(f"{path}: {_in_one_line(error)}") from None


def _in_one_line(error: Exception) -> str:
    return "; ".join(filter(None, (line.strip() for line in str(error).splitlines())))


def _require_writable(path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written, not a file in an existing folder")


def _draw(study: Study, name: str, path: Path) -> None:
    try:
        draw(study.report, name, path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {_in_one_line(error)}") from None


def _run(study: Study) -> None:
    """Run the study, with a progress bar if stderr is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:32}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=study.stages)
        for k, stage in enumerate(study.run()):
            progress.update(task, completed=k, description=stage)


COMMANDS = {"check": _check, "mpc": command.run, "info": _info}
