"""Differentiated steps, which all Hessian-vector products of one trajectory share."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from mujacobian import _core

# The steps of the rollouts whose product was computed last, for the next one. They live as long as
# the object that owns them. An owner may be deleted while its own thread has the lock.
_lock = RLock()
_last: list[tuple[weakref.ref[object], list[_core.KeptTrajectory]]] = []


def _forget(owner: weakref.ref[object]) -> None:
    """Free the steps of an object that has been deleted."""
    with _lock:
        _last[:] = [one for one in _last if one[0] is not owner]


@contextmanager
def kept_steps(owner: object, rollouts: int) -> Iterator[list[_core.KeptTrajectory]]:
    """Lend the steps that are kept for each rollout of an owner; at first there are none."""
    with _lock:
        found = _last[:]
        _last.clear()
    reference, steps = found[0] if found else (None, [])
    if reference is None or reference() is not owner or len(steps) != rollouts:
        reference, steps = weakref.ref(owner, _forget), steps[:rollouts]
        for one in steps:
            one.clear()
        steps += [_core.KeptTrajectory() for _ in range(rollouts - len(steps))]
    yield steps
    # not after an error
    with _lock:
        _last[:] = [(reference, steps)]
