"""Workers on a cluster of Ray: `workers=` of `mujacobian.rollout` and `mujacobian.sysid.identify`.

Ray is an optional package: pip install 'mujacobian[ray]'.

Example:
  >>> import ray  # doctest: +SKIP
  >>> from mujacobian.ray import Actors  # doctest: +SKIP
  >>> ray.init()  # doctest: +SKIP
  >>> with Actors(8) as workers:  # doctest: +SKIP
  ...     found = identify(parameters, logs, workers=workers)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from mujacobian import _workers
from mujacobian._arguments import count
from mujacobian.errors import MissingPackageError, MujacobianError

try:
    import ray
    from ray.exceptions import RayActorError
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.ray needs Ray: pip install 'mujacobian[ray]'", name="ray"
    ) from error

__all__ = ["Actors", "LostActorError"]

Item = TypeVar("Item")
Result = TypeVar("Result")

CHUNKS = 4  # chunks per actor, so that actors with quick items receive more of them


class LostActorError(MujacobianError):
    """The actors that worked on some items died again and again; the message names the items."""


@dataclass
class _Chunk:
    """Items that one actor receives at once, and the number of actors that died with them."""

    places: range
    losses: int = 0


class _Worker:
    """The class of the actors. The process of an actor keeps the contents."""

    def keep(self, key: str, data: bytes) -> None:
        """Keep a model for the items that refer to it."""
        _workers.keep(key, data)

    def run(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Return the results of a chunk."""
        return [function(item) for item in items]


class Actors:
    """Actors of Ray that keep models and work on chunks of items, as a map-like callable.

    Results are in the order of the items. If an actor dies, another one replaces it and works on
    its chunk again; all other chunks are not affected. Models travel through the object store of
    Ray, once per node.

    Args:
      number: number of actors, usually the number of cores of the cluster.
      retries: how many more actors may die with the same chunk before `LostActorError` is raised,
        by default 3.
      options: options of each actor, such as `{"num_cpus": 2}` or `{"resources": {...}}`; by
        default each needs one core.

    Use the object in a `with` statement, which ends its actors, or call `close`.
    """

    def __init__(
        self, number: int, *, retries: int = 3, options: Mapping[str, Any] | None = None
    ) -> None:
        self._number, self._retries = count("number", number), retries
        self._make = ray.remote(_Worker).options(**{"num_cpus": 1, **(options or {})}).remote
        self._contents: dict[str, Any] = {}  # references to models in the object store, by key
        self._actors = [self._make() for _ in range(self._number)]

    def __enter__(self) -> Actors:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all actors."""
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []

    def share(self, key: str, data: bytes) -> None:
        """Send a model to all actors, unless they have it already."""
        if key in self._contents:
            return
        while len(self._contents) >= _workers.CONTENTS:
            del self._contents[next(iter(self._contents))]
        self._contents[key] = ray.put(data)
        for actor in self._actors:
            actor.keep.remote(key, self._contents[key])

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return the results of the function for all items, in their order."""
        if not self._actors:
            raise MujacobianError("the actors are closed")
        given = list(items)
        size = -(-len(given) // (CHUNKS * self._number)) or 1
        waiting = deque(
            _Chunk(range(k, min(k + size, len(given)))) for k in range(0, len(given), size)
        )
        idle, running = deque(range(self._number)), dict[Any, tuple[int, _Chunk]]()
        made: dict[int, Result] = {}
        while waiting or running:
            while waiting and idle:
                place, chunk = idle.popleft(), waiting.popleft()
                part = [given[k] for k in chunk.places]
                running[self._actors[place].run.remote(function, part)] = place, chunk
            (done,), _ = ray.wait(list(running), num_returns=1)
            place, chunk = running.pop(done)
            try:
                made.update(zip(chunk.places, ray.get(done), strict=True))
            except RayActorError as error:
                self._replace(place)
                chunk.losses += 1
                if chunk.losses > self._retries:
                    raise LostActorError(
                        f"{chunk.losses} actors died while they worked on items"
                        f" {chunk.places.start} to {chunk.places.stop - 1}"
                    ) from error
                waiting.append(chunk)
            idle.append(place)
        return [made[k] for k in range(len(given))]

    def _replace(self, place: int) -> None:
        """Start an actor in the place of a dead one, with the models of the others."""
        self._actors[place] = actor = self._make()
        for key, reference in self._contents.items():
            actor.keep.remote(key, reference)
