"""Identify ten parameters of an arm with exact Jacobians and with the differences of mujoco.sysid.

Both methods have the same logs, objective and initial values. Run as `python -m benchmarks.sysid`,
which needs `mujoco[sysid]`.
"""

import os

# the least-squares problems are small, so threads of BLAS would only disturb the timing
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
from mujoco import sysid
from rich import box
from rich.console import Console
from rich.table import Table

import mujacobian
from examples import identify_arm
from mujacobian import mujoco_sysid
from mujacobian.sysid import Log, identify

ITEMS = ["body_mass", "dof_damping", "dof_frictionloss", ("dof_armature", "shoulder")]
LOGS, STEPS = 4, 500
BOUNDS = 0.2, 5.0  # factors of the true values; mujoco.sysid needs bounds


Found = tuple[np.ndarray, float, int]  # values, objective, steps as counted by the method


@dataclass
class Run:
    """The result of one method, and its cost."""

    name: str
    values: np.ndarray
    objective: float
    steps: int
    seconds: float
    cpu: float  # seconds of all threads


class Study:
    """The arm, its logs in both formats, and initial values that are wrong by up to 40%."""

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_string(identify_arm.ARM)
        self.parameters = mujacobian.Parameters(self.model, ITEMS)
        self.truth = self.parameters.values
        self.start = self.truth * np.random.default_rng(3).uniform(0.6, 1.4, size=len(self.truth))
        self.lower, self.upper = (factor * self.truth for factor in BOUNDS)
        self.logs = [self.record(seed) for seed in range(LOGS)]

    def record(self, seed: int) -> Log:
        """Return a log that is weighted as in mujoco.sysid, by the size of each signal."""
        log = identify_arm.record(self.model, seed, STEPS)
        return replace(log, sensor_noise=np.linalg.norm(log.sensordata, axis=0) / np.sqrt(2))

    def sequences(self) -> list[sysid.ModelSequences]:
        """Return the logs in the format of mujoco.sysid, longer by a reading and a control."""
        times = np.arange(STEPS + 1) * self.model.opt.timestep
        mapping = sysid.TimeSeries.compute_all_sensor_mapping(self.model)
        return [
            sysid.ModelSequences(
                "arm",
                mujoco.MjSpec.from_string(identify_arm.ARM),
                [f"log {k}" for k in range(LOGS)],
                [sysid.create_initial_state(self.model, np.zeros(self.model.nq))] * LOGS,
                [
                    sysid.TimeSeries(times, np.pad(log.controls, ((0, 1), (0, 0))))
                    for log in self.logs
                ],
                [
                    sysid.TimeSeries(times, np.pad(log.sensordata, ((1, 0), (0, 0))), mapping)
                    for log in self.logs
                ],
            )
        ]

    def dictionary(self) -> sysid.ParameterDict:
        """Return the parameters of mujoco.sysid, with modifiers that write them into its spec."""
        result = mujoco_sysid.parameter_dict(self.parameters, self.lower, self.upper)
        result.update_from_vector(self.start)
        for parameter in result.values():
            parameter.modifier = write
        return result

    def optimize(self, residual: Callable[..., Any], **options: object) -> Found:
        """Return the optimum of mujoco.sysid.optimize."""
        given = self.dictionary()
        with redirect_stdout(StringIO()):
            found = sysid.optimize(given, residual, verbose=False, **options)[1]
        return found.x, float(found.extras["objective"][-1]), 0

    def methods(self) -> dict[str, Callable[[], Found]]:
        """Return the methods that are compared."""
        sequences = self.sequences()
        # the samples are at the steps, so there is nothing to interpolate
        options = {"models_sequences": sequences, "resample_true": False}
        shipped = sysid.build_residual_fn(**options)
        held = sysid.build_residual_fn(
            **options,
            build_model=lambda params, _: self.parameters.apply(params.as_vector()),
        )

        def exact() -> Found:
            residual, jacobian = mujoco_sysid.exact_residual(self.parameters, **options)
            return self.optimize(residual, jacobian=jacobian)

        def ours() -> Found:
            found = identify(
                self.parameters,
                self.logs,
                start=self.start,
                bounds=(self.lower, self.upper),
                initial_states="given",  # as in mujoco.sysid
            )
            return found.values, found.cost, found.steps

        return {
            "mujoco.sysid, recompiling": lambda: self.optimize(shipped),
            "mujoco.sysid, constants held": lambda: self.optimize(held),
            "mujoco.sysid, exact Jacobian": exact,
            "mujacobian.sysid.identify": ours,
        }


def write(spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
    """Write a parameter such as `body_mass["hand"]` into the spec."""
    field, element = parameter.name.rstrip('"]').split('["')
    value = float(parameter.value[0])
    if field == "body_mass":
        spec.body(element).mass = value
        return
    joint, name = spec.joint(element), field.removeprefix("dof_")
    if np.ndim(getattr(joint, name)):
        getattr(joint, name)[0] = value
    else:
        setattr(joint, name, value)


@contextmanager
def counted_steps() -> Iterator[list[int]]:
    """Count the steps that mujoco.sysid simulates, in its own rollouts or in ours."""
    counts: list[int] = []
    theirs, ours = mujoco.rollout.rollout, mujoco_sysid.rollout

    def count_theirs(*args: object, **kwargs: object) -> tuple[np.ndarray, np.ndarray]:
        states, sensordata = theirs(*args, **kwargs)
        counts.append(states.shape[0] * states.shape[1])
        return states, sensordata

    def count_ours(*args: object, **kwargs: object) -> mujacobian.Trajectory:
        trajectory = ours(*args, **kwargs)
        counts.append(trajectory.steps)
        return trajectory

    mujoco.rollout.rollout, mujoco_sysid.rollout = count_theirs, count_ours
    try:
        yield counts
    finally:
        mujoco.rollout.rollout, mujoco_sysid.rollout = theirs, ours


def measure(study: Study, rounds: int) -> list[Run]:
    """Return the best time of each method; the methods take turns."""
    runs: dict[str, Run] = {}
    for _ in range(rounds):
        for name, method in study.methods().items():
            with counted_steps() as counts:
                begin = time.perf_counter(), time.process_time()
                values, objective, steps = method()
                seconds, cpu = time.perf_counter() - begin[0], time.process_time() - begin[1]
            if last := runs.get(name):
                seconds, cpu = min(seconds, last.seconds), min(cpu, last.cpu)
            runs[name] = Run(name, values, objective, steps + sum(counts), seconds, cpu)
    return list(runs.values())


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sysid", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="timing rounds per method")
    arguments = parser.parse_args()
    logging.getLogger("absl").setLevel(logging.ERROR)

    study = Study()
    runs = measure(study, arguments.rounds)
    base, best = runs[0], runs[-1]
    table = Table(
        title=f"{len(study.truth)} parameters, {LOGS} logs of {STEPS} steps", box=box.SIMPLE_HEAD
    )
    for column in ("", "objective", "from identify"):
        table.add_column(column, justify="right" if column else "left")
    for column in ("steps", "seconds", "CPU"):
        table.add_column(column, justify="right")
        table.add_column("ratio", justify="right")
    for run in runs:
        off = np.max(np.abs(run.values / best.values - 1))
        table.add_row(
            run.name,
            f"{run.objective:.9f}",
            f"{off:.0e}",
            f"{run.steps}",
            f"{base.steps / run.steps:.1f}",
            f"{run.seconds:.3f}",
            f"{base.seconds / run.seconds:.1f}",
            f"{run.cpu:.3f}",
            f"{base.cpu / run.cpu:.1f}",
        )
    console = Console(width=120)
    console.print(table)
    console.print("Ratios are to the first row.")


if __name__ == "__main__":
    main()
