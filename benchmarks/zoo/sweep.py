"""The sweep: it judges files in separate processes, survives their loss, and writes records."""

import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import mujoco
import numpy as np

from benchmarks.zoo.catalog import File, fingerprint, load
from benchmarks.zoo.drive import STEPS, driven
from benchmarks.zoo.judge import LINEARIZING, NOT_JUDGED, judge
from benchmarks.zoo.worker import CrashError, HangError, Worker

Record = dict[str, Any]
LOAD_LIMIT = 300.0  # seconds for loading; large meshes take long
LIMIT = 150.0  # seconds without a message of the simulation or the judge
LINEARIZE_LIMIT = 60.0  # seconds for `linearize`, which usually takes milliseconds
MAX_NV = 1500  # dense matrices of larger models take gigabytes
DRIVING = "driving"
CRASHED, HUNG, FAILED = "crashed", "hung", "judge failed"


@dataclass(frozen=True)
class Task:
    """A task: load a file, or judge the states of its model from a first one on."""

    path: Path
    seed: int
    first: int | None = None  # None: load only


def work(task: Task) -> Iterator[Any]:
    """Yield the sizes of a model, or the stages and records of its states."""
    if task.first is None:
        yield loaded(task.path)
        return
    model, known = cached_model(task.path)
    seed = zlib.crc32(f"{known} {task.seed}".encode())
    yield DRIVING
    for k, (steps, data) in enumerate(driven(model, seed)):
        if k >= task.first:
            yield from _judged(model, data, {"state": k, "steps": steps}, seed)
        yield DRIVING


def _judged(
    model: mujoco.MjModel, data: mujoco.MjData, head: Record, seed: int
) -> Iterator[str | Record]:
    if model.nv > MAX_NV:
        yield head | {"fate": NOT_JUDGED, "reason": f"more than {MAX_NV} degrees of freedom"}
    elif not (np.isfinite(data.qpos).all() and np.isfinite(data.qvel).all()):
        yield head | {"fate": NOT_JUDGED, "reason": "the simulation diverged"}
    else:
        try:
            for message in judge(model, data, seed):
                yield message if isinstance(message, str) else head | message
        except Exception as error:  # an error of the judge: the sweep continues, the report fails
            yield head | {"fate": FAILED, "reason": f"{type(error).__name__}: {error}"}


@lru_cache(maxsize=1)
def cached_model(path: Path) -> tuple[mujoco.MjModel, str]:
    """Return the model of a file and its hash; the last result is cached."""
    model = load(path)
    return model, fingerprint(model)


def loaded(path: Path) -> Record:
    """Return the sizes of the model of a file, or the reason why MuJoCo does not load it."""
    try:
        model, known = cached_model(path)
    except (ValueError, mujoco.FatalError) as error:
        return {"error": str(error)}
    return {"hash": known, "nv": model.nv, "nu": model.nu, "na": model.na, "ns": model.nsensordata}


class Sweep:
    """Judges files in parallel processes and appends a line of JSON for each file.

    A file with a line is finished, so an interrupted sweep continues where it stopped. `work`
    yields at most `count` records for a model, numbered by their key `number`. Models with more
    than `largest` degrees of freedom are left out.
    """

    number = "state"

    def __init__(
        self,
        lines: Path,
        log: Path,
        seed: int,
        work: Any = work,  # noqa: ANN401
        count: int = len(STEPS),
        largest: int | None = None,
    ) -> None:
        self.lines, self.log, self.seed, self.work = lines, log, seed, work
        self.count, self.largest = count, largest
        self.records = read(lines)
        self.seen = {
            record["hash"] for record in self.records if self._is_wanted(record.get("nv", 0))
        }
        self._lock = threading.Lock()

    def run(
        self,
        files: list[File],
        *,
        processes: int,
        most: int | None,
        advance: Callable[[str], object],
    ) -> None:
        """Judge unfinished files until `most` distinct models are finished."""
        done = {record["file"] for record in self.records if "states" in record}
        queue: SimpleQueue[File] = SimpleQueue()
        for file in files:
            if file.label in done:
                advance(file.label)
            else:
                queue.put(file)
        errors: list[BaseException] = []
        threads = [
            threading.Thread(target=self._serve, args=(queue, most, advance, errors), daemon=True)
            for _ in range(processes)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def _serve(
        self,
        queue: "SimpleQueue[File]",
        most: int | None,
        advance: Callable[[str], object],
        errors: list[BaseException],
    ) -> None:
        worker = Worker(self.work, self.log)
        try:
            while not errors and (most is None or len(self.seen) < most):
                try:
                    file = queue.get_nowait()
                except Empty:
                    return
                self._write(self._file(worker, file))
                advance(file.label)
        except BaseException as error:  # raised again by `run`, in the main thread
            errors.append(error)
        finally:
            worker.stop()

    def _file(self, worker: Worker, file: File) -> Record:
        """Return the record of a file, with the states of its model if the model is new."""
        head = {"file": file.label, "source": file.source, "states": []}
        started = time.monotonic()
        try:
            (loaded,) = worker.run(Task(file.path, self.seed), lambda _: LOAD_LIMIT)
        except (CrashError, HangError) as error:
            return head | {"error": f"while loading: {error}"}
        head |= loaded
        with self._lock:
            new = self._is_wanted(head.get("nv", 0)) and head["hash"] not in self.seen
            if new:
                self.seen.add(head["hash"])
        if new:
            head["states"] = list(self._states(worker, file))
            head["seconds"] = round(time.monotonic() - started, 1)
        return head

    def _is_wanted(self, nv: int) -> bool:
        return nv > 0 and (self.largest is None or nv <= self.largest)

    def _states(self, worker: Worker, file: File, first: int = 0) -> Iterator[Record]:
        """Yield the records of a model from a first one on, including lost states.

        If a process is lost during the simulation, there are no further records of the model.
        """
        stage = DRIVING
        while first < self.count:
            try:
                task = Task(file.path, self.seed, first)
                for message in worker.run(task, _limit):
                    if isinstance(message, str):
                        stage = message
                    else:
                        yield message
                        first = message[self.number] + 1
                return
            except (CrashError, HangError) as error:
                yield {self.number: first, **_lost(error, stage)}
                first = self.count if stage == DRIVING else first + 1

    def _write(self, record: Record) -> None:
        with self._lock, self.lines.open("a") as output:
            self.records.append(record)
            output.write(json.dumps(record) + "\n")


def _limit(message: Any) -> float:  # noqa: ANN401
    return LINEARIZE_LIMIT if message == LINEARIZING else LIMIT


def _lost(error: CrashError | HangError, stage: str) -> Record:
    """Return the record of a lost state; the loss is our error only while linearizing."""
    if stage == LINEARIZING:
        fate = CRASHED if isinstance(error, CrashError) else HUNG
        return {"fate": fate, "reason": str(error)}
    what = "MuJoCo crashed" if isinstance(error, CrashError) else "it took too long"
    return {"fate": NOT_JUDGED, "reason": f"{what} while {stage}"}


def read(lines: Path) -> list[Record]:
    """Return the records of a file of JSON lines, or none if the file does not exist."""
    if not lines.exists():
        return []
    return [json.loads(line) for line in lines.read_text().splitlines() if line.strip()]
