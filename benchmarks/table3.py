"""Compare derivative backends on the trotting A1: time, closed-loop cost, exact or not.

All backends have the same first state and planner, and one thread. Every control step computes one
plan. Derivatives are timed by processor time. The backends take turns, so that a slow period of the
machine affects all of them.
"""

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import mujacobian
from benchmarks.machine import machine
from mujacobian.control import ILQR, MPC, Plan, Timings, tasks

# name of the row: label, backend, whether differences start from the solver's solution
ROWS = {
    "fd": ("`mjd_transitionFD`, one-sided, as in MuJoCo MPC", "fd", False),
    "fd_central": ("`mjd_transitionFD`, central", "fd_central", False),
    "fd_warm": ("one-sided, warm-started", "fd", True),
    "wasp": ("WASP", "wasp", False),
    "wasp_warm": ("WASP, warm-started", "wasp", True),
    "analytic": ("analytic", "analytic", False),
    "isolation": ("analytic A, B; one-sided C, D", "isolation", False),
}
TURNS = 10


@dataclass
class Run:
    """The run of one backend, which continues in every turn."""

    mpc: MPC
    data: mujoco.MjData
    plan: Plan | None = None
    costs: list[np.ndarray] = field(default_factory=list)
    timings: list[Timings] = field(default_factory=list)
    seconds: float = 0.0
    processor: float = 0.0
    differences: int = 0

    def advance(self, seconds: float) -> None:
        """Continue the simulation for some seconds of simulated time."""
        before, begun = mujacobian.fd_count(), time.process_time()
        result = self.mpc.run(self.data, seconds, plan=self.plan, progress=False)
        self.processor += time.process_time() - begun
        self.differences += mujacobian.fd_count() - before
        self.plan = result.plan
        self.costs.append(result.costs)
        self.timings += result.timings
        self.seconds += result.seconds

    def row(self) -> dict[str, float]:
        """Return the numbers of the table."""
        return {
            "derivatives": sum(timing.derivatives for timing in self.timings),
            "wall_clock": self.seconds,
            "processor": self.processor,
            "cost": float(np.concatenate(self.costs).mean()),
            "differences": self.differences,
            "plans": len(self.timings),
        }


def measure(steps: int, threads: int = 1) -> dict[str, dict[str, float]]:
    """Return the rows of the table, by backend."""
    task = tasks.load("a1_trot")
    runs = {}
    for name, (_, backend, warm) in ROWS.items():
        planner = ILQR(
            task.planned, task.cost, task.horizon,
            derivatives=backend, threads=threads, warm_start=warm,
        )  # fmt: skip
        mpc = MPC(task.model, planner, steps_per_plan=task.steps_per_plan)
        runs[name] = Run(mpc, task.start(None))
    turn = steps // TURNS * task.steps_per_plan * task.model.opt.timestep
    columns = (TextColumn("{task.description:12}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=TURNS * len(runs))
        for _ in range(TURNS):
            for name, run in runs.items():
                progress.update(bar, description=name)
                run.advance(turn)
                progress.advance(bar)
    return {name: run.row() for name, run in runs.items()}


def markdown(rows: dict[str, dict[str, float]]) -> str:
    """Return the table, with ratios of processor time, which other programs disturb least."""
    ours = rows["analytic"]
    names = (
        "backend", "derivatives (s)", "wall-clock (s)", "processor (s)", "average cost", "exact",
        "derivatives / analytic", "processor / analytic",
    )  # fmt: skip
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for name, row in rows.items():
        times = [f"{row[key]:.2f}" for key in ("derivatives", "wall_clock", "processor")]
        ratios = [f"{row[key] / ours[key]:.1f}" for key in ("derivatives", "processor")]
        exact = "no" if row["differences"] else "yes"
        cells = (ROWS[name][0], *times, f"{row['cost']:.5f}", exact, *ratios)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print the table, write build/table3.md and build/table3.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table3", description=__doc__)
    parser.add_argument("--steps", type=int, default=250, help="control steps, a multiple of 10")
    parser.add_argument("--threads", type=int, default=1, help="threads of the planner")
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of the results")
    options = parser.parse_args()
    if options.steps < TURNS or options.steps % TURNS:
        parser.error(f"--steps must be a multiple of {TURNS}")
    rows = measure(options.steps, options.threads)
    text = f"a1_trot, {options.steps} control steps, {options.threads} planning thread(s), "
    text += f"{machine()}\n\n{markdown(rows)}"
    print(text)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "table3.md").write_text(text)
    (options.out / "table3.json").write_text(json.dumps({"machine": machine(), "rows": rows}))


if __name__ == "__main__":
    main()
