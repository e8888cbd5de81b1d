"""Judge a large collection of public models: python -m benchmarks.zoo.

The program loads every MJCF and URDF file of the packages in `benchmarks.zoo.sources`, of the
checkouts in MENAGERIE_ROOT and MUJOCO_ROOT, and of the folders given with --root. It simulates
every distinct model to three states under random controls. Every state is judged against
differences, both with a converged solver and collider and with the settings of the model.

Results are appended to build/zoo.jsonl, and a report is written to build/zoo.md. An interrupted
sweep continues where it stopped, unless mujacobian, MuJoCo or the seed have changed. The exit
status is 1 if any state is wrong, crashes, hangs, is not finite, changes the caller's state or is
not repeatable.
"""

import sys

from rich.console import Console
from rich.markdown import Markdown

from benchmarks.zoo import command
from benchmarks.zoo.report import failures, report
from benchmarks.zoo.sweep import Sweep


def main() -> None:
    """Collect the models, judge them and write the report."""
    arguments = command.make_parser("python -m benchmarks.zoo", __doc__).parse_args()
    console = Console()
    outcome = command.run(
        arguments, "zoo", {}, lambda lines, log: Sweep(lines, log, arguments.seed), console
    )
    text = report(outcome.records, outcome.sources, outcome.failed)
    path = arguments.out / "zoo.md"
    path.write_text(text)
    console.print(Markdown(text.split("\n## Refused\n")[0]))
    console.print(f"written: {path}, {outcome.lines}")
    sys.exit(failures(outcome.records) > 0)


if __name__ == "__main__":
    main()
