"""Cost of estimated first states with many logs: eliminated, or as dense unknowns.

Both methods solve the same problem with the same exact Jacobians. `identify` eliminates the first
states log by log. The dense method passes all unknowns to `scipy.optimize.least_squares`. Run as
`python -m benchmarks.sysid_logs`.
"""

import os

# only the dense problem could use threads of BLAS; both methods have one thread
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time

import mujoco
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from scipy.optimize import least_squares

import mujacobian
from benchmarks.sysid_coverage import FIELDS, record
from examples import identify_arm
from mujacobian.sysid import Log, identify
from mujacobian.sysid.problem import Problem
from mujacobian.sysid.unknowns import Unknowns

STEPS = 50


def dense(parameters: mujacobian.Parameters, logs: list[Log], start: np.ndarray) -> np.ndarray:
    """Return the solution of the problem with all unknowns at once."""
    unknowns = Unknowns(parameters)
    windows = [window for (window,) in Problem(unknowns, logs, estimate=True).logs]
    n, nx = len(parameters), len(windows[0].first.unknown)
    data = mujoco.MjData(parameters.model)
    last: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def evaluate(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if at.tobytes() not in last:
            last.clear()
            trial = unknowns.trial(at[:n])
            slopes = np.zeros((sum(window.size for window in windows), len(at)))
            residuals, row = np.empty(len(slopes)), 0
            for k, window in enumerate(windows):
                own = slice(n + k * nx, n + (k + 1) * nx)
                state = window.first.moved(window.first.given, at[own])
                made = window.evaluate(trial, data, state)[0]
                place = slice(row, row + len(made))
                slopes[place, own], slopes[place, :n] = made[:, :nx], made[:, nx:-1]
                residuals[place] = made[:, -1]
                row += len(made)
            last[at.tobytes()] = residuals, slopes
        return last[at.tobytes()]

    found = least_squares(
        lambda at: evaluate(at)[0],
        np.concatenate([start, np.zeros(nx * len(logs))]),
        lambda at: evaluate(at)[1],
        x_scale="jac",
    )
    return found.x[:n]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sysid_logs", description=__doc__)
    parser.add_argument("--logs", type=int, nargs="+", default=[5, 20, 80, 320])
    parser.add_argument("--dense", type=int, default=80, help="most logs for the dense method")
    arguments = parser.parse_args()
    model = mujoco.MjModel.from_xml_string(identify_arm.ARM)
    parameters = mujacobian.Parameters(model, FIELDS)
    table = Table(title=f"nine parameters, logs of {STEPS} steps", box=box.SIMPLE_HEAD)
    for column in ("logs", "unknowns", "CPU s", "per log", "dense CPU s", "difference / s.e."):
        table.add_column(column, justify="right")
    for count in arguments.logs:
        rng = np.random.default_rng(0)
        logs = [record(model, rng, STEPS) for _ in range(count)]
        start = parameters.values * rng.uniform(0.8, 1.2, size=len(parameters))
        begin = time.process_time()
        found = identify(parameters, logs, start=start)
        seconds = time.process_time() - begin
        row = [f"{count}", f"{len(start) + count * 6}", f"{seconds:.2f}", f"{seconds / count:.3f}"]
        if count <= arguments.dense:
            begin = time.process_time()
            values = dense(parameters, logs, start)
            row.append(f"{time.process_time() - begin:.2f}")
            row.append(f"{np.abs((values - found.values) / found.standard_errors).max():.0e}")
        table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
