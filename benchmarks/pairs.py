"""Judge linearizations of random poses of every pair of geoms: python -m benchmarks.pairs.

Each pair gets `--poses` poses of every kind in tests/scenes/random_pairs.py, for each cone and
contact dimension. The verdicts are those of `benchmarks.scenes`. The program prints a table of the
pairs and a list of all refusals with their reasons, and writes both to build/pairs.md. The exit
status is 1 if any pose is wrong or crashes, or if too many poses of a pair raise
`UnsupportedFeatureError`.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mujacobian import reference
from tests.oracle import directional
from tests.scenes import random_pairs

Pair = tuple[str, str]
WORDS = (
    directional.EXACT,
    directional.CONVERGED,
    directional.LIMITED,
    directional.UNTRUSTED,
    directional.REFUSED,
    *directional.FAILURES,
)


def main() -> None:
    """Judge all pairs and print the verdicts on their poses."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pairs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--poses", type=int, default=400, help="poses per cone and dimension")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of the table")
    arguments = parser.parse_args()

    console = Console()
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn())
    rows, refusals, failed = [], Counter[tuple[str, str, str]](), False
    with (
        Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress,
        ProcessPoolExecutor() as pool,
    ):
        task = progress.add_task("pairs of geoms", total=len(random_pairs.PAIRS))
        judge = partial(judge_pair, poses=arguments.poses, seed=arguments.seed)
        for pair, verdicts in zip(
            random_pairs.PAIRS, pool.map(judge, random_pairs.PAIRS), strict=True
        ):
            rows.append(row(pair, verdicts))
            failed |= fails(verdicts)
            for k, verdict in enumerate(verdicts):
                kind = random_pairs.turn(k)[0]
                if verdict.word == directional.REFUSED:
                    refusals["-".join(pair), kind, verdict.why] += 1
                if verdict.word in directional.FAILURES:
                    why = f"{verdict.error:.1e}", verdict.why
                    console.print("-".join(pair), k, kind, verdict.word, *why)
            progress.advance(task)
    cells = [[*key, str(count)] for key, count in sorted(refusals.items())]
    head = ["pair", "poses", *WORDS, "worst of the exact"]
    text = "\n".join(
        [*table(head, rows), "", *table(["refused pair", "kind of pose", "reason", "poses"], cells)]
    )
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "pairs.md").write_text(text + "\n")
    console.print(Markdown(text))
    sys.exit(failed)


def judge_pair(pair: Pair, poses: int, seed: int) -> "list[directional.Verdict]":
    """Return the verdicts on all poses of a pair."""
    count = poses * len(random_pairs.CONES) * len(random_pairs.DIMENSIONS)
    with reference.quiet():
        return [
            directional.judge_directions(model, data, k)
            for k, (model, data) in enumerate(random_pairs.poses(*pair, range(count), seed))
        ]


def fails(verdicts: "list[directional.Verdict]") -> bool:
    """Return whether a pose is wrong, or too many poses are not supported."""
    counts = Counter(verdict.word for verdict in verdicts)
    allowed = random_pairs.REFUSED * len(verdicts)
    return any(counts[word] for word in directional.FAILURES) or counts["refused"] > allowed


def row(pair: Pair, verdicts: "list[directional.Verdict]") -> list[str]:
    """Return one row of the table."""
    counts = Counter(verdict.word for verdict in verdicts)
    worst = max((v.error for v in verdicts if v.word == directional.EXACT), default=0.0)
    shares = [f"{100 * counts[word] / len(verdicts):.2f} %" for word in WORDS]
    return ["-".join(pair), str(len(verdicts)), *shares, f"{worst:.1e}"]


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for cells in rows:
        yield "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
