"""Judge the models of the world: python -m benchmarks.zoo.

Every MJCF and URDF file of the packages of `benchmarks.zoo.sources`, of the checkouts that
MENAGERIE_ROOT and MUJOCO_ROOT name and of the folders given with --root is loaded. Every distinct
model is driven into three states under random controls, and every state is judged against
differences, with a converged solver and collider and with the model's own settings.

Appends to build/zoo.jsonl and writes build/zoo.md. A sweep that was interrupted goes on where it
was, unless mujacobian, MuJoCo or the seed have changed. The exit status is 1 if any state is wrong,
crashes, hangs, is not finite, changes the caller's state or is not repeatable.
"""

import sys

from rich.console import Console
from rich.markdown import Markdown

from benchmarks.zoo import command
from benchmarks.zoo.report import failures, report
from benchmarks.zoo.sweep import Sweep


def main() -> None:
    """Collect, judge and report."""
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
