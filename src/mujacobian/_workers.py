"""Work that any map-like callable distributes: over threads, processes or machines.

A request contains the key of its content (a model, a problem) instead of the content itself. A
worker that does not have the content yet says so, and receives it with the same request again.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import mujoco

from mujacobian import _notices
from mujacobian.errors import ArgumentTypeError, FailedItemsError, MujacobianError

# A map: it returns the results of a function for all items, in their order.
Workers = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

CONTENTS = 4  # contents that a worker keeps: those that were used last
COPIES = 64  # most copies of a content that travel in one call


class Content:
    """An object that travels to each worker once, identified by a hash of its pickled form."""

    def __init__(self, value: object) -> None:
        self._value = value

    @cached_property
    def data(self) -> bytes:
        """The pickled object."""
        return pickle.dumps(self._value, protocol=pickle.HIGHEST_PROTOCOL)

    @cached_property
    def key(self) -> str:
        """The hash of the pickled object."""
        import hashlib  # it loads OpenSSL, which most programs do not need

        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """The value or the error of one item, with its warnings: about the model, and all others."""

    value: Any = None
    error: Exception | None = None
    notices: tuple[Warning, ...] = ()
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True)
class Request:
    """Items for one worker, with the function `work(content, item)`."""

    work: Callable[[Any, Any], Any]
    key: str
    data: bytes | None
    items: tuple[Any, ...]


class Distribution:
    """A map-like callable and the content that all its items share."""

    def __init__(self, workers: Workers, content: object) -> None:
        require_workers(workers)
        self.workers, self.content = workers, Content(content)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()  # pools do not travel: a copied result works in threads

    def outcomes(self, work: Callable[[Any, Any], Any], items: Sequence[Any]) -> list[Outcome]:
        """Return the outcome of `work(content, item)` for all items, in their order."""
        content = self.content
        if share := getattr(self.workers, "share", None):
            share(content.key, content.data)
        given = [Request(work, content.key, None, (item,)) for item in items]
        answers = self._call(given)
        made = {k: answer[0] for k, answer in enumerate(answers) if answer is not None}
        missing = [k for k, answer in enumerate(answers) if answer is None]
        size = -(-len(missing) // COPIES) or 1
        parts = [missing[k : k + size] for k in range(0, len(missing), size)]
        again = [
            Request(work, content.key, content.data, tuple(items[k] for k in part))
            for part in parts
        ]
        for part, answer in zip(parts, self._call(again), strict=True):
            assert answer is not None
            made.update(zip(part, answer, strict=True))
        return [made[k] for k in range(len(items))]

    def run(
        self,
        work: Callable[[Any, Any], Any],
        items: Sequence[Any],
        noun: str,
        model: mujoco.MjModel,
        finish: Callable[[int, Any], Any] = lambda k, value: value,
    ) -> list[Any]:
        """Return `finish(k, value)` of all items; raise `FailedItemsError` after all have ended."""
        outcomes = self.outcomes(work, items)
        for k, outcome in enumerate(outcomes):
            show(model, outcome, f"{noun} {k}: ")
        errors = {k: made.error for k, made in enumerate(outcomes) if made.error is not None}
        values = [None if k in errors else finish(k, x.value) for k, x in enumerate(outcomes)]
        if errors:
            raise FailedItemsError(noun, errors, values)
        return values

    def _call(self, requests: list[Request]) -> list[list[Outcome] | None]:
        """Return the answers to all requests, in their order."""
        answers = list(self.workers(answer, requests)) if requests else []
        if len(answers) != len(requests):
            raise ArgumentTypeError(
                f"workers must return one result per item, in order, as `map` does, got"
                f" {len(answers)} results for {len(requests)} items"
            )
        for one in answers:
            if one is not None and not isinstance(one, list):
                raise ArgumentTypeError(
                    "workers must return results, as `map` does, got objects of type"
                    f" {type(one).__name__}: see docs/scale.md for wrappers"
                )
        return answers


def require_workers(workers: object) -> None:
    """Raise if these workers are not a map-like callable."""
    if not callable(workers):
        hint = ": pass its method `map`" if hasattr(workers, "map") else ""
        raise ArgumentTypeError(
            "workers must be a map-like callable, such as `executor.map`, got"
            f" {type(workers).__name__}{hint}"
        )


def show(model: mujoco.MjModel, outcome: Outcome, prefix: str) -> None:
    """Show the warnings of an outcome: those about the model once, others with the prefix."""
    _notices.show([(model, warning) for warning in outcome.notices])
    for warning in outcome.warnings:
        _notices.warn(type(warning)(f"{prefix}{warning}"))


_known: OrderedDict[str, Any] = OrderedDict()
_lock = Lock()


def keep(key: str, data: bytes) -> None:
    """Keep a content for the requests that contain its key."""
    with _lock:
        if key not in _known:
            _known[key] = pickle.loads(data)
        _known.move_to_end(key)
        while len(_known) > CONTENTS:
            _known.popitem(last=False)


def answer(request: Request) -> list[Outcome] | None:
    """Return the outcomes of a request, or None if its content is missing; runs in a worker."""
    if request.data is not None:
        keep(request.key, request.data)
    with _lock:
        if request.key not in _known:
            return None
        content = _known[request.key]
        _known.move_to_end(request.key)
    return [_attempt(request.work, content, item) for item in request.items]


def _attempt(work: Callable[[Any, Any], Any], content: object, item: object) -> Outcome:
    """Return the value of an item, or its error."""
    found: list[_notices.Found] = []
    value, error = None, None
    with _notices.waiting(found):
        try:
            value = work(content, item)
        except Exception as raised:
            error = _portable(raised)
    # one warning of each class about the model, as the caller shows no more
    once = {type(warning): warning for model, warning in reversed(found) if model is not None}
    others = [warning for model, warning in found if model is None]
    return Outcome(value, error, tuple(once.values()), tuple(others))


def _portable(error: Exception) -> Exception:
    """Return the error, or one with its text if it does not survive pickling."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return MujacobianError(f"{type(error).__name__}: {error}")
    return error
