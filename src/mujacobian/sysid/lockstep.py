"""Several optimizers that advance together, so that their simulations form one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Condition, Thread, local
from typing import Generic, TypeVar

from mujacobian._workers import Outcome
from mujacobian.sysid.simulations import Simulations, Task

Solution = TypeVar("Solution")


class Interrupted(Exception):
    """Raised in all threads to end their functions after the calling thread was interrupted."""


class Lockstep(Generic[Solution]):
    """Runs functions in threads and joins the tasks that they wait for.

    The calling thread alone simulates: as soon as all functions that have not ended wait, it
    simulates their tasks in the order of the functions.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._thread = local()
        self._requests: dict[int, tuple[Simulations, Sequence[Task]]] = {}
        self._answers: dict[int, list[Outcome]] = {}
        self._active = 0
        self._is_stopped = False

    def run(self, functions: Sequence[Callable[[], Solution]]) -> list[Solution | Exception]:
        """Return the results of all functions, or the errors that they raised."""
        results: dict[int, Solution | Exception] = {}

        def follow(k: int) -> None:
            self._thread.index = k
            try:
                results[k] = functions[k]()
            except Exception as error:
                results[k] = error
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

        self._active = len(functions)
        threads = [Thread(target=follow, args=(k,)) for k in range(len(functions))]
        for thread in threads:
            thread.start()
        try:
            while self._serve():
                pass
        finally:
            with self._changed:
                self._is_stopped = True
                self._changed.notify_all()
            for thread in threads:
                thread.join()
        return [results[k] for k in range(len(functions))]

    def outcomes(self, simulations: Simulations, tasks: Sequence[Task]) -> list[Outcome]:
        """Return the outcomes of the tasks of one function; called in its thread."""
        k = self._thread.index
        with self._changed:
            self._requests[k] = simulations, tasks
            self._changed.notify_all()
            self._changed.wait_for(lambda: k in self._answers or self._is_stopped)
            if k not in self._answers:
                raise Interrupted
            return self._answers.pop(k)

    def _serve(self) -> bool:
        """Simulate the tasks of all functions at once; return False after all have ended."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._requests) == self._active)
            requests, self._requests = dict(sorted(self._requests.items())), {}
        if not requests:
            return False
        answers: dict[int, list[Outcome]] = {}
        for simulations in dict.fromkeys(each for each, _ in requests.values()):
            own = {k: tasks for k, (each, tasks) in requests.items() if each is simulations}
            made = iter(simulations.outcomes([task for tasks in own.values() for task in tasks]))
            answers |= {k: [next(made) for _ in tasks] for k, tasks in own.items()}
        with self._changed:
            self._answers |= answers
            self._changed.notify_all()
        return True
