"""Judge linearizations of random scenes: python -m benchmarks.scenes --count 10000.

Every scene is a seed of tests/scenes/random_scenes.py: shapes of all kinds dropped onto one
another. The verdict on a derivative is one of these: exact, exact with a converged collider,
limited by the precision of the collider, untrusted (the reference is at a kink or below rounding),
not supported, wrong, or a crash. Wrong results and crashes are listed by seed, and make the exit
status 1.
"""

import argparse
import sys
from collections import Counter

import mujoco
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mujacobian import reference
from tests.oracle import directional
from tests.scenes import random_scenes


def main() -> None:
    """Judge many scenes and print the shares."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scenes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=1000, help="number of scenes")
    parser.add_argument("--first", type=int, default=0, help="seed of the first scene")
    arguments = parser.parse_args()

    console = Console()
    verdicts: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    columns = (TextColumn("{task.description:36}"), BarColumn(), MofNCompleteColumn())
    with (
        Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress,
        reference.quiet(),
    ):
        task = progress.add_task("", total=arguments.count)
        for seed in range(arguments.first, arguments.first + arguments.count):
            failed = sum(verdicts[word] for word in directional.FAILURES)
            progress.update(task, description=f"seed {seed}, {failed} wrong or crashed")
            verdict = judge_seed(seed)
            verdicts[verdict.word] += 1
            if verdict.word == directional.REFUSED:
                refusals[verdict.why] += 1
            if verdict.word in directional.FAILURES:
                console.print(f"seed {seed} {verdict.word}: {verdict.error:.1e} {verdict.why}")
            progress.advance(task)
    console.print(share_table(f"{arguments.count} scenes", verdicts, arguments.count))
    console.print(share_table("refused", refusals, arguments.count))
    sys.exit(any(verdicts[word] for word in directional.FAILURES))


def judge_seed(seed: int) -> "directional.Verdict":
    """Return the verdict on the scene of a seed."""
    model, data = random_scenes.random_scene(seed)
    reference.converge(model)
    mujoco.mj_forward(model, data)
    return directional.judge_directions(model, data, seed)


def share_table(title: str, counts: Counter[str], total: int) -> Table:
    """Return a table of counts and shares, largest first."""
    table = Table(title=title)
    table.add_column("")
    table.add_column("scenes", justify="right")
    table.add_column("share", justify="right")
    for name, count in counts.most_common():
        table.add_row(name, str(count), f"{100 * count / total:.2f} %")
    return table


if __name__ == "__main__":
    main()
