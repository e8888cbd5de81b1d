"""Compare policies that learn from gradients with PPO: python -m benchmarks.policies.

Both learners have the same environments and the same budget of processor time, one thread and one
core. They learn on a model with longer time steps, and returns are those of the original model,
without noise, from fixed first states. `shac` and `ppo` have wide contacts in the first three
quarters of the budget and those of the model in the last one. `shac-given` and `ppo-given` always
have those of the model.

Every finished trial is one line of build/policies.jsonl, and a trial with the same budget is not
repeated. The program writes the table build/policies.md and the figure build/policies.png.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import torch
from rich.console import Console
from rich.markdown import Markdown

from benchmarks.machine import machine
from benchmarks.policies import ppo, report, shac
from benchmarks.policies.robots import ROBOTS
from benchmarks.policies.trial import Trial

LEARNERS = ("shac", "shac-given", "ppo", "ppo-given")


def main() -> None:
    """Run the trials that are missing, and write the table and the figure."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.policies",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--budget", type=float, default=60, help="processor time of a trial, s")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=ROBOTS, default=list(ROBOTS), metavar="ROBOT")
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=["shac", "ppo-given"])
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of the results")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "policies.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    finished = [json.loads(line) for line in lines]
    for seed in range(arguments.seeds):
        for robot in arguments.only:
            for learner in arguments.learners:
                head = {"robot": robot, "learner": learner, "seed": seed}
                head["budget"] = arguments.budget
                if not any(record.items() >= head.items() for record in finished):
                    finished.append({**head, **run(robot, learner, seed, arguments.budget)})
                    with path.open("a") as file:
                        print(json.dumps(finished[-1]), file=file)
    write_report(finished, arguments)


def run(robot: str, learner: str, seed: int, budget: float) -> report.Record:
    """Return the evaluations of one trial."""
    build, timestep, width, settings = ROBOTS[robot]
    original = build()
    given, wide = (original.simplified(timestep, w) for w in (0.0, width))
    environments = [given] if learner.endswith("-given") else [wide, given]
    trial = Trial(original, budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MuJoCo's solver stops early in some states
        if learner.startswith("ppo"):
            ppo.learn(environments, trial, seed)
        else:
            shac.learn(environments, trial, seed, settings)
    return {"points": trial.record()}


def write_report(records: list[report.Record], arguments: argparse.Namespace) -> None:
    """Write the table and the figure of the trials with this budget."""
    chosen = [record for record in records if record["budget"] == arguments.budget]
    text = (
        f"{arguments.budget:g} s of processor time per trial on {machine()}\n\n"
        f"{report.table(chosen)}"
    )
    (arguments.out / "policies.md").write_text(text + "\n")
    report.plot(chosen, arguments.out / "policies.png")
    Console().print(Markdown(text))


if __name__ == "__main__":
    main()
