"""A process that works on tasks one by one; the parent survives if it crashes or hangs."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Work = Callable[[Any], Iterator[Any]]
START_LIMIT = 120.0  # s until a new process answers


class CrashError(Exception):
    """The process died."""


class HangError(Exception):
    """The process was silent for too long, and was killed."""


class _End:
    """Message that a process sends after the last message of a task."""


class Worker:
    """Runs a generator function in a separate process, which is replaced if it is lost.

    The file `log` receives all output of the process and its libraries.
    """

    def __init__(self, work: Work, log: Path) -> None:
        self.work, self.log = work, log
        self.process: Any = None
        self.connection: Connection | None = None

    def run(self, task: Any, limit: Callable[[Any], float]) -> Iterator[Any]:  # noqa: ANN401
        """Yield the items of `work(task)`; raise CrashError or HangError if the process is lost.

        limit: maximum time between two messages [s].
        """
        connection = self._started()
        connection.send(task)
        message: Any = None
        while True:
            message = self._receive(connection, limit(message))
            if isinstance(message, _End):
                return
            if isinstance(message, Exception):
                raise message
            yield message

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = self.connection = None

    def _started(self) -> Connection:
        if self.connection is not None:
            return self.connection
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(self.work, theirs, self.log), daemon=True
        )
        self.process.start()
        theirs.close()
        self._receive(self.connection, START_LIMIT)
        return self.connection

    def _receive(self, connection: Connection, limit: float) -> Any:  # noqa: ANN401
        try:
            if connection.poll(limit):
                return connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            status = self.process.exitcode
            self.stop()
            raise CrashError(f"the process ended with status {status}") from None
        self.stop()
        raise HangError(f"no answer within {limit:.0f} s")


def _serve(work: Work, connection: Connection, log: Path) -> None:
    """Work on tasks until the parent closes the connection."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    connection.send(_End())
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            for message in work(task):
                connection.send(message)
            connection.send(_End())
        except Exception as error:  # an error of the harness, which is raised again in the parent
            connection.send(RuntimeError(f"{type(error).__name__}: {error}"))
