"""Run all benchmarks, print tables, and write build/bench.json and build/bench.png."""

import argparse
import json
from pathlib import Path
from typing import Any

import mujoco
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import mujacobian
from benchmarks import accuracy, report, robots, scaling, sensors, speed
from benchmarks.machine import machine

STATES = 3  # random states per robot in the accuracy table


def main() -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of the results")
    parser.add_argument("--rounds", type=int, default=25, help="timing rounds per candidate")
    arguments = parser.parse_args()

    console = Console()
    columns = (TextColumn("{task.description:32}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        results = measure(progress, arguments.rounds)
    console.print(f"[dim]{results['machine']}[/dim]")
    report.print_tables(console, results)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "bench.json").write_text(json.dumps(results, indent=1))
    report.plot(results, arguments.out / "bench.png")
    console.print(f"written: {arguments.out / 'bench.json'}, {arguments.out / 'bench.png'}")


def measure(progress: Progress, rounds: int) -> dict[str, Any]:
    """Return all results; each list of rows is one table."""
    steps = 2 * len(robots.ROBOTS) + 2
    steps += len(scaling.LINKS) + len(scaling.BODIES) + len(scaling.CROWDS)
    task = progress.add_task("", total=steps)
    results: dict[str, Any] = {"machine": machine(), "accuracy": [], "speed": []}

    models = {robot.name: robots.load(robot) for robot in robots.ROBOTS}
    for robot in robots.ROBOTS:
        model = models[robot.name]
        head = {"robot": robot.name, "nv": model.nv}
        progress.update(task, description=f"accuracy: {robot.name}")
        results["accuracy"].append(head | worst_errors(model))
        progress.update(task, advance=1, description=f"speed: {robot.name}")
        times = speed.measure(model, robots.random_data(model, seed=0), robot, rounds)
        results["speed"].append(head | times)
        progress.advance(task)

    progress.update(task, description="speed: sensors")
    results["sensors"] = sensors.measure(rounds)
    progress.advance(task)

    for key, build, sizes in (
        ("chains", scaling.chain, scaling.LINKS),
        ("bodies", scaling.free_bodies, scaling.BODIES),
    ):
        progress.update(task, description=f"scaling: {key}")
        results[key] = []
        for row in scaling.growth(build, sizes, rounds):
            results[key].append(row)
            progress.advance(task)

    progress.update(task, description="scaling: contacts")
    results["crowds"] = []
    for row in scaling.crowds(rounds):
        results["crowds"].append(row)
        progress.advance(task)

    progress.update(task, description="batch: talos")
    results["batch"] = scaling.batch(models["talos"], 2 * rounds)
    progress.advance(task)
    results["fd_count"] = mujacobian.fd_count()
    return results


def worst_errors(model: mujoco.MjModel) -> dict[str, float]:
    """Return the worst error of each method over a few random states."""
    worst = dict.fromkeys(accuracy.METHODS, 0.0)
    for seed in range(STATES):
        data = robots.random_data(model, seed)
        reference = accuracy.Reference(model, data)
        for method in worst:
            error = reference.error(accuracy.jacobian(method, model, data))
            worst[method] = max(worst[method], float(error.max()))
    return worst


if __name__ == "__main__":
    main()
