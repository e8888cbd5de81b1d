"""The sweep over models, states and families: one line of JSON for each verdict."""

import dataclasses
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import mujoco
import numpy as np

from benchmarks.parameters import constrained
from benchmarks.parameters.judge import (
    NOT_JUDGED,
    Verdict,
    choose,
    judge_family,
    random_direction,
    tolerance_of,
)
from benchmarks.zoo import sweep
from benchmarks.zoo.catalog import File
from benchmarks.zoo.sweep import Record, Task
from benchmarks.zoo.worker import Worker
from mujacobian import reference
from mujacobian.check._judge import converged
from mujacobian.check._states import states


@dataclass(frozen=True)
class Families:
    """Judges parameter families at states of a model, in a separate process."""

    families: tuple[str, ...]
    states: int
    derived: Literal["recompute", "hold"] = "recompute"
    constrained: bool = False  # judge by mj_setConst where derived constants matter

    def __len__(self) -> int:
        return self.states * len(self.families)

    def __call__(self, task: Task) -> Iterator[Any]:
        """Yield the sizes of a model, or its stages and verdicts from a first index on."""
        if task.first is None:
            yield sweep.loaded(task.path)
            return
        model, known = sweep.cached_model(task.path)
        with reference.quiet():
            yield sweep.DRIVING
            # the first state is often at rest, where many parameters have no effect
            found = states(model, self.states + 1, seed=task.seed)
            next(found)
            for k, (label, data) in enumerate(found):
                for j, family in enumerate(self.families):
                    item = k * len(self.families) + j
                    if item >= task.first:
                        seed = zlib.crc32(f"{known} {task.seed} {label} {family}".encode())
                        yield from self._judged(model, data, family, item, label, seed)
                yield sweep.DRIVING

    def _judged(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        family: str,
        item: int,
        label: str,
        seed: int,
    ) -> Iterator[str | Record]:
        head = {"item": item, "state": label, "family": family}
        if not (np.isfinite(data.qpos).all() and np.isfinite(data.qvel).all()):
            yield head | {"fate": NOT_JUDGED, "reason": "the simulation diverged"}
            return
        try:
            twin, same = converged(model, data)
            head |= {"rows": int(same.nefc), "contacts": int(same.ncon)}
            rng = np.random.default_rng(seed)
            for message in self._verdict(twin, same, family, rng):
                if isinstance(message, Verdict):
                    yield head | dataclasses.asdict(message)
                else:
                    yield message
        except Exception as error:  # an error of the judge: the sweep continues, the report fails
            yield head | {"fate": sweep.FAILED, "reason": f"{type(error).__name__}: {error}"}

    def _verdict(
        self, twin: mujoco.MjModel, same: mujoco.MjData, family: str, rng: np.random.Generator
    ) -> Iterator[str | Verdict]:
        if self.constrained:
            yield from constrained.judge_field(twin, same, family, rng)
            return
        parameters = choose(twin, family, self.derived)
        if parameters is None:
            return
        direction, tolerance = random_direction(parameters, rng), tolerance_of(family, twin, same)
        yield from judge_family(parameters, same, direction, tolerance)


class ParameterSweep(sweep.Sweep):
    """Writes each verdict immediately; an unfinished model continues after its last verdict."""

    number = "item"

    def _states(self, worker: Worker, file: File, first: int = 0) -> Iterator[Record]:
        """Write a line for each verdict on a model; yield none for the record of its file."""
        done = [r["item"] for r in self.records if r["file"] == file.label and "item" in r]
        for verdict in super()._states(worker, file, max(done, default=first - 1) + 1):
            self._write({"file": file.label, **verdict})
        return iter(())
