"""Judge linearizations of random poses of every pair of geoms: python -m benchmarks.pairs.

Each pair gets `--poses` poses of every kind in tests/scenes/random_pairs.py, for each cone and
contact dimension. The verdicts are those of `benchmarks.scenes`. The program prints a table of the
pairs, a list of the wrong poses and a list of all refusals with their reasons, and writes them to
build/pairs.md. The verdicts on each finished pair are one line of build/pairs.jsonl. With
`--resume`, an interrupted run continues after these pairs. The exit status is 1 if any pose is
wrong or crashes, or if too many poses of a pair raise `UnsupportedFeatureError`.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple
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
    parser.add_argument("--resume", action="store_true", help="keep the pairs that are finished")
    parser.add_argument("--only", default="", help="part of the names of the pairs, as in box-mesh")
    arguments = parser.parse_args()

    console = Console()
    pairs = [pair for pair in random_pairs.PAIRS if arguments.only in "-".join(pair)]
    finished = judge_pairs(pairs, arguments, console)
    text = report({pair: finished[pair] for pair in pairs})
    (arguments.out / "pairs.md").write_text(text + "\n")
    console.print(Markdown(text))
    sys.exit(any(fails(finished[pair]) for pair in pairs))


def judge_pairs(
    pairs: list[Pair], arguments: argparse.Namespace, console: Console
) -> dict[Pair, list[directional.Verdict]]:
    """Judge all pairs that are not finished; return the verdicts on these and the others."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "pairs.jsonl"
    lines = path.read_text().splitlines() if arguments.resume and path.exists() else []
    head = {"poses": arguments.poses, "seed": arguments.seed}
    finished = dict(load(line) for line in lines if json.loads(line).items() >= head.items())
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn())
    with (
        Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress,
        ProcessPoolExecutor() as pool,
        path.open("a" if arguments.resume else "w") as file,
    ):
        task = progress.add_task("pairs of geoms", total=len(pairs))
        jobs = {
            pool.submit(judge_pair, pair, **head): pair for pair in pairs if pair not in finished
        }
        progress.advance(task, len(pairs) - len(jobs))
        for job in as_completed(jobs):
            pair = jobs[job]
            finished[pair] = job.result()
            verdicts = [astuple(verdict) for verdict in finished[pair]]
            print(json.dumps({"pair": pair, **head, "verdicts": verdicts}), file=file, flush=True)
            progress.advance(task)
    return finished


def load(line: str) -> tuple[Pair, list[directional.Verdict]]:
    """Return the pair and the verdicts of a line of build/pairs.jsonl."""
    record = json.loads(line)
    first, second = record["pair"]
    return (first, second), [directional.Verdict(*verdict) for verdict in record["verdicts"]]


def report(finished: dict[Pair, list[directional.Verdict]]) -> str:
    """Return the tables of pairs, failures and refusals."""
    rows, failures, refusals = [], [], Counter[tuple[str, str, str]]()
    for pair, verdicts in finished.items():
        name = "-".join(pair)
        rows.append(row(pair, verdicts))
        for k, verdict in enumerate(verdicts):
            kind = random_pairs.turn(k)[0]
            if verdict.word == directional.REFUSED:
                refusals[name, kind, verdict.why] += 1
            if verdict.word in directional.FAILURES:
                error = f"{verdict.error:.1e}"
                failures.append([name, str(k), kind, verdict.word, error, verdict.why])
    cells = [[*key, str(count)] for key, count in sorted(refusals.items())]
    tables = [table(["pair", "poses", *WORDS, "worst of the exact"], rows)]
    if failures:
        tables.append(table(["pair", "pose", "kind", "verdict", "error", "entry"], failures))
    tables.append(table(["refused pair", "kind of pose", "reason", "poses"], cells))
    return "\n\n".join("\n".join(lines) for lines in tables)


def judge_pair(pair: Pair, poses: int, seed: int) -> list[directional.Verdict]:
    """Return the verdicts on all poses of a pair."""
    count = poses * len(random_pairs.CONES) * len(random_pairs.DIMENSIONS)
    with reference.quiet():
        return [
            directional.judge_directions(model, data, k)
            for k, (model, data) in enumerate(random_pairs.poses(*pair, range(count), seed))
        ]


def fails(verdicts: list[directional.Verdict]) -> bool:
    """Return whether a pose is wrong, or too many poses are not supported."""
    counts = Counter(verdict.word for verdict in verdicts)
    allowed = random_pairs.REFUSED * len(verdicts)
    return any(counts[word] for word in directional.FAILURES) or counts["refused"] > allowed


def row(pair: Pair, verdicts: list[directional.Verdict]) -> list[str]:
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
