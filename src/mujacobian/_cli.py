"""The command line: `mujacobian check MODEL.xml`, `mujacobian mpc TASK`, `mujacobian info`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import mujoco
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mujacobian import _core
from mujacobian._files import STDOUT, FileError, in_one_line, require_file, write, write_json
from mujacobian._info import gather
from mujacobian._options import add_outputs, natural, positive, require_outputs, settle_json
from mujacobian.check import Study
from mujacobian.check._format import as_dict, as_text
from mujacobian.check._plot import draw
from mujacobian.check._probe import quiet
from mujacobian.check._terminal import printable
from mujacobian.control import command
from mujacobian.errors import MujacobianError

PIPED_WIDTH = 120  # columns of a table that does not go to a terminal
INFO = "versions, processor and MuJoCo's layout"

EXAMPLES = """\
examples:
  mujacobian check robot.xml           compare the derivatives of a model with differences
  mujacobian mpc cartpole              run a task under model-predictive control
  mujacobian info                      print versions and features, for a bug report

`mujacobian COMMAND --help` has more examples.
"""

CHECK = """\
Drive a model (MJCF, URDF or MJB) into a few states and compare A, B, C, D there with a trusted
reference and with mjd_transitionFD. Or do so at your own states, which a file lists.

exit status:
  0  every state is exact in every block
  1  a result is wrong, not supported or could not be compared, or MuJoCo's solver or
     collider stops before it converges at the model's own settings
  2  a file is missing or broken, or the command line is wrong
"""

CHECK_EXAMPLES = """\
file of states:
  A .npy, .npz or .csv file with one state per row: (qpos, qvel, act), or the result of
  mj_getState with mjSTATE_FULLPHYSICS. A .npz file has the array `states`, and may have the array
  `controls` with one row per state, or one row less. Other controls are zero.

examples:
  mujacobian check robot.xml                           three states: home, driven, falling
  mujacobian check robot.xml --states 12 --seed 1      twelve other states
  mujacobian check robot.xml --states log.npz          the states of a log
  mujacobian check robot.xml --json | jq .exact        JSON on standard output
  mujacobian check robot.xml --json check.json --plot check.png
"""

INFO_EXAMPLES = """\
example:
  mujacobian info
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return COMMANDS[options.command](options)
    except MujacobianError as error:
        print(f"mujacobian: {printable(str(error))}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"mujacobian: out of memory {printable(in_one_line(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mujacobian",
        description="Exact analytic derivatives of one MuJoCo step.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mujacobian {_core.version()}")
    commands = parser.add_subparsers(dest="command", required=True)

    def add(name: str, text: str, description: str, examples: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=text,
            description=description,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    check = add(
        "check", "how exact and how fast the derivatives of a model are", CHECK, CHECK_EXAMPLES
    )
    check.usage = "%(prog)s MODEL.xml [--states N|FILE] [--seed N] [--json [FILE]] [--plot FILE]"
    check.add_argument(
        "model", nargs="?", type=Path, metavar="MODEL.xml", help="an MJCF, URDF or MJB file"
    )
    check.add_argument(
        "--states",
        type=_states,
        default=3,
        metavar="N|FILE",
        help="number of states (default 3), or a file with states",
    )
    check.add_argument(
        "--seed", type=natural, default=0, metavar="N", help="seed of the random controls"
    )
    add_outputs(check, "the errors")
    mpc = add(
        "mpc", "run a task under model-predictive control", command.DESCRIPTION, command.EXAMPLES
    )
    command.add_arguments(mpc)
    add("info", INFO, f"Print {INFO}.", INFO_EXAMPLES)
    return parser


def _states(text: str) -> int | Path:
    """Return the number of states, or the path of a file with states."""
    try:
        int(text)
    except ValueError:
        return Path(text)
    return positive(text)


def _info(_: argparse.Namespace) -> int:
    facts = gather()
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:{width}}  {value}")
    return 0


def _check(options: argparse.Namespace) -> int:
    settle_json(options, "model")
    if options.model is None:
        raise MujacobianError("check needs a MODEL.xml: see mujacobian check --help")
    require_outputs(options)
    path, name = options.model, str(options.model)
    study = Study(load(path), options.states, options.seed)
    try:
        _run(study)
    except mujoco.FatalError as error:  # no memory for its contacts, say
        raise FileError(f"{name}: MuJoCo stopped: {in_one_line(error)}") from None
    if options.plot is not None:
        write(options.plot, lambda file: draw(study.report, path.name, file))
    if options.json is not None:
        write_json(options.json, as_dict(study.report, name, options.seed), indent=2)
    if options.json != STDOUT:
        console = Console()
        if not console.is_terminal:
            console = Console(width=PIPED_WIDTH)
        console.print(as_text(study.report, name))
    sys.stdout.flush()
    return 0 if study.report.exact else 1


def load(path: Path) -> mujoco.MjModel:
    """Return the model in a file; raise FileError with one line if it cannot be loaded."""
    require_file(path)
    try:
        with quiet():
            if path.suffix == ".mjb":
                return mujoco.MjModel.from_binary_path(str(path))
            # MuJoCo does not find all files that nested includes name under a relative path
            return mujoco.MjModel.from_xml_path(str(path.resolve()))
    except MemoryError:
        raise FileError(f"{path}: it needs more memory than is available") from None
    except (ValueError, OSError, RuntimeError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        raise FileError(f"{path}: {in_one_line(error)}") from None


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
