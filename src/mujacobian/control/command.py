"""The command `mujacobian mpc TASK`: run a task, print the outcome, draw figures."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mujacobian._files import STDOUT, require_writable, write, write_json
from mujacobian._options import add_outputs, natural, positive, require_outputs, settle_json
from mujacobian.control import BACKENDS, MPCResult, plot, tasks, video
from mujacobian.control.ilqr import FORMER_BACKENDS
from mujacobian.errors import MujacobianError

DESCRIPTION = """\
Simulate a task under model-predictive control. Print measures of success and computing times.
Without a task, list the tasks.

exit status:
  0  the task succeeded
  1  the task did not succeed in this time
  2  the command line is invalid, or a file cannot be written
"""

EXAMPLES = """\
examples:
  mujacobian mpc                                       list the tasks
  mujacobian mpc cartpole                              run one
  mujacobian mpc arm --seed 7 --derivatives fd         random start, finite differences
  mujacobian mpc a1_trot --json | jq .mean_cost        JSON on standard output
  mujacobian mpc a1_trot --seconds 5 --plot trot.png --video trot.mp4 --json trot.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to a parser."""
    parser.add_argument("task", nargs="?", metavar="TASK", help=", ".join(tasks.names()))
    parser.add_argument(
        "--derivatives", default="analytic", metavar="NAME", help=", ".join(BACKENDS)
    )
    parser.add_argument("--seconds", type=_seconds, metavar="S", help="simulated time")
    parser.add_argument("--threads", type=positive, metavar="N", help="threads of the planner")
    parser.add_argument(
        "--seed", type=natural, metavar="N", help="random initial state with this seed"
    )
    parser.add_argument(
        "--video", type=Path, metavar="FILE", help="render a video, if a GL backend exists"
    )
    add_outputs(parser, "poses, gait, cost and times")


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    settle_json(options, "task")
    if options.task is None:
        width = max(map(len, tasks.names()))
        for name in tasks.names():
            print(f"{name:{width}}  {tasks.load(name).summary}")
        return 0
    _require(options)
    task = tasks.load(str(options.task))
    result = task.run(
        options.seconds,
        seed=options.seed,
        derivatives=options.derivatives,
        threads=options.threads,
        progress=sys.stderr.isatty(),
    )
    outcome = task.judge(result)
    if options.plot is not None:
        write(options.plot, lambda path: plot.draw(task, result, path))
    if options.json is not None:
        write_json(options.json, _report(task.name, result, outcome))
    if options.json != STDOUT:
        console = Console()
        console.print(f"[bold]{task.name}[/bold], {result.derivatives}: {task.summary}")
        console.print(_table(task, result, outcome))
    if options.video is not None:
        _write_video(task, result, options.video)
    sys.stdout.flush()
    return 0 if outcome.success else 1


def _require(options: argparse.Namespace) -> None:
    """Raise an error now if something would fail after the run."""
    if options.derivatives not in (*BACKENDS, *FORMER_BACKENDS):
        known = ", ".join(BACKENDS)
        raise MujacobianError(f'unknown derivatives "{options.derivatives}": use one of {known}')
    require_outputs(options)
    if options.video is not None:
        video.require_writer()
        require_writable(options.video)


def _table(task: tasks.Task, result: MPCResult, outcome: tasks.Outcome) -> Table:
    """Return a table of measures and milliseconds per plan."""
    table = Table(show_header=False, min_width=60)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_row("simulated (s)", f"{len(result.times) * task.model.opt.timestep:.3g}")
    table.add_row("done", "yes" if outcome.success else "no")
    for name, value in outcome.measures.items():
        table.add_row(name, "" if math.isnan(value) else f"{value:.3g}")
    table.add_row("cost, mean", f"{result.costs.mean():.4g}", end_section=True)
    for phase, statistics in result.statistics.items():
        table.add_row(f"{phase} (ms per plan)", f"{statistics['mean']:.2f}")
    table.add_row("plans per second", f"{result.plans_per_second:.1f}")
    table.add_row("threads", str(result.threads))
    return table


def _report(name: str, result: MPCResult, outcome: tasks.Outcome) -> dict[str, Any]:
    """Return the outcome and all recorded data, for JSON."""
    return {
        "task": name,
        "success": outcome.success,
        "measures": {k: None if math.isnan(v) else v for k, v in outcome.measures.items()},
        **result.to_dict(),
    }


def _write_video(task: tasks.Task, result: MPCResult, path: Path) -> None:
    """Write the video, or print the reason why this is not possible."""
    try:
        video.write(task.model, result.times, result.states, path)
    except video.NoRendererError as error:
        print(f"mujacobian: no video: {error}", file=sys.stderr)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return value
