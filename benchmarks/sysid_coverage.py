"""Count how often 95 % intervals contain the true parameters, with noisy first states.

An arm is simulated from random first states. Its sensors, its first states and, in one study, its
time stamps are measured with noise. Nine parameters are identified from these measurements. This is
repeated many times with new noise. Run as `python -m benchmarks.sysid_coverage`.
"""

import os

# the least-squares problems are small, so threads of BLAS would only disturb the timing
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import comb

import mujoco
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from scipy.interpolate import CubicSpline

import mujacobian
from examples import identify_arm
from mujacobian.sysid import Identification, IdentificationWarning, Log, identify

FIELDS = ["body_mass", "dof_damping", "dof_frictionloss"]
LEVEL = 0.95
# standard deviations of measured first states, rad and rad/s
FIRST_NOISE = np.repeat([0.01, 0.05], 3)
# standard deviation of recorded time stamps, in s
STAMP_NOISE = 1e-4


@dataclass
class Study:
    """The fits of one method, and the true values."""

    found: list[Identification]
    truth: np.ndarray
    seconds: float

    def coverage(self) -> np.ndarray:
        """Return for each parameter the share of intervals that contain its true value."""
        intervals = np.array([fit.intervals(LEVEL) for fit in self.found])
        inside = (intervals[..., 0] <= self.truth) & (self.truth <= intervals[..., 1])
        return inside.mean(axis=0)

    def scores(self) -> np.ndarray:
        """Return all errors in units of their standard errors, (repetitions, parameters)."""
        return np.array([(fit.values - self.truth) / fit.standard_errors for fit in self.found])


def record(model: mujoco.MjModel, rng: np.random.Generator, steps: int) -> Log:
    """Return a noisy log of the arm, from a random first state that is measured with noise."""
    quiet = identify_arm.record(model, int(rng.integers(1 << 30)), steps)
    true = rng.normal(size=model.nq + model.nv) * np.repeat([0.5, 1.0], 3)
    exact = mujacobian.rollout(model, true, quiet.controls).sensordata
    noise = np.repeat(model.sensor_noise, model.sensor_dim) * rng.normal(size=exact.shape)
    return Log(true + FIRST_NOISE * rng.normal(size=len(true)), quiet.controls, exact + noise)


def record_with_stamps(model: mujoco.MjModel, rng: np.random.Generator, steps: int) -> Log:
    """Return a noisy log with readings at random times, whose recorded stamps have noise."""
    quiet = identify_arm.record(model, int(rng.integers(1 << 30)), steps)
    true = rng.normal(size=model.nq + model.nv) * np.repeat([0.5, 1.0], 3)
    exact = mujacobian.rollout(model, true, quiet.controls).sensordata
    grid = model.opt.timestep * np.arange(steps)
    times = np.sort(rng.uniform(grid[1], grid[-2], size=steps))
    # one spline through all steps, so that the linear interpolation of the fit has an error
    readings = CubicSpline(grid, exact)(times)
    readings += np.repeat(model.sensor_noise, model.sensor_dim) * rng.normal(size=exact.shape)
    stamps = times + STAMP_NOISE * rng.normal(size=steps)
    order = np.argsort(stamps)
    return Log(
        true + FIRST_NOISE * rng.normal(size=len(true)),
        quiet.controls,
        readings[order],
        sensor_times=np.clip(stamps[order], 0, grid[-1]),
    )


def with_prior(log: Log) -> Log:
    """Return the log with the noise of its first state."""
    return replace(log, first_state_noise=FIRST_NOISE)


Record = Callable[[mujoco.MjModel, np.random.Generator, int], Log]
METHODS: dict[str, tuple[str, Record]] = {
    "given": ("given", record),
    "estimate": ("estimate", record),
    "estimate, with first_state_noise": ("estimate", lambda *of: with_prior(record(*of))),
    "estimate, noisy time stamps": ("estimate", record_with_stamps),
}


def simulate(
    method: str, repetitions: int, seed: int = 0, logs: int = 4, steps: int = 150
) -> Study:
    """Identify the arm repeatedly with new noise, from initial values that are wrong by 20 %."""
    model = mujoco.MjModel.from_xml_string(identify_arm.ARM)
    parameters = mujacobian.Parameters(model, FIELDS)
    initial_states, make = METHODS[method]
    found = []
    begin = time.process_time()
    for repetition in range(repetitions):
        rng = np.random.default_rng([seed, repetition])
        made = [make(model, rng, steps) for _ in range(logs)]
        start = parameters.values * rng.uniform(0.8, 1.2, size=len(parameters))
        with warnings.catch_warnings():
            # with given first states, intervals are too narrow: this study shows how often
            warnings.simplefilter("ignore", IdentificationWarning)
            found.append(identify(parameters, made, start=start, initial_states=initial_states))
    return Study(found, parameters.values, time.process_time() - begin)


def acceptance(repetitions: int, chance: float = 1e-3) -> tuple[int, int]:
    """Return the range of the number of correct intervals, except in `chance` of all studies."""
    weights = [
        comb(repetitions, k) * LEVEL**k * (1 - LEVEL) ** (repetitions - k)
        for k in range(repetitions + 1)
    ]
    sums = np.cumsum(weights)
    return int(np.searchsorted(sums, chance / 2)), int(np.searchsorted(sums, 1 - chance / 2))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sysid_coverage", description=__doc__
    )
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    studies = {
        method: simulate(method, arguments.repetitions, arguments.seed) for method in METHODS
    }
    table = Table(
        title=f"share of {arguments.repetitions} intervals of 95 % with the true value inside",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("")
    for method in METHODS:
        table.add_column(method, justify="right")
    names = next(iter(studies.values())).found[0].parameters.names
    for k, name in enumerate(names):
        table.add_row(name, *(f"{study.coverage()[k]:.2f}" for study in studies.values()))

    def row(title: str, text: Callable[[Study], str]) -> None:
        table.add_row(title, *(text(study) for study in studies.values()))

    row("all", lambda s: f"{s.coverage().mean():.3f}")
    row("rms error / standard error", lambda s: f"{np.sqrt((s.scores() ** 2).mean()):.2f}")
    row(
        "median reduced chi-square",
        lambda s: f"{np.median([f.reduced_chi_square for f in s.found]):.2f}",
    )
    row("fits that warn", lambda s: f"{np.mean([bool(f.warnings) for f in s.found]):.2f}")
    row("simulated steps per fit", lambda s: f"{np.mean([f.steps for f in s.found]):.0f}")
    row("CPU seconds per fit", lambda s: f"{s.seconds / len(s.found):.2f}")
    console = Console(width=120)
    console.print(table)
    low, high = acceptance(arguments.repetitions)
    console.print(
        f"Right intervals contain the true value in {low} to {high} of {arguments.repetitions}"
        " repetitions, except in one study of a thousand per parameter."
    )


if __name__ == "__main__":
    main()
