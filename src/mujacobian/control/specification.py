"""Elements of a model specification, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco

from mujacobian._arguments import require_one_of, suggestion
from mujacobian.errors import ArgumentError

# the name of the list of elements of a kind, and their type in sensors
Kinds = Mapping[str, tuple[str, mujoco.mjtObj]]


def find_element(what: str, name: str, elements: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return the element with this name; `what` is its kind in an error."""
    for element in elements:
        if name and element.name == name:
            return element
    raise _unknown(what, name, _names(elements))


def find_kind(
    spec: mujoco.MjSpec, what: str, name: str, kinds: Kinds, kind: str = ""
) -> tuple[mujoco.mjtObj, str]:
    """Return the type and the name of the only element of these kinds with this name.

    Args:
      spec: specification of the model.
      what: all kinds in an error.
      name: name of the element.
      kinds: kinds to choose from.
      kind: the kind, if elements of several kinds have this name.
    """
    if kind:
        require_one_of("kind", kind, kinds)
    known = {each: _names(getattr(spec, kinds[each][0])) for each in ([kind] if kind else kinds)}
    found = [each for each, names in known.items() if name in names]
    if not found:
        every = dict.fromkeys(other for names in known.values() for other in names)
        raise _unknown(kind or what, name, list(every))
    if len(found) > 1:
        raise ArgumentError(
            f'"{name}" is the name of a {" and of a ".join(found)}: choose one with kind='
        )
    return kinds[found[0]][1], name


def unused_name(name: str, elements: Sequence[Any]) -> str:
    """Return a name that no element has: this one, or this one with a number."""
    taken, number, made = _names(elements), 2, name
    while made in taken:
        made, number = f"{name}:{number}", number + 1
    return made


def _names(elements: Sequence[Any]) -> list[str]:
    return [element.name for element in elements if element.name]


def _unknown(what: str, name: str, known: list[str]) -> ArgumentError:
    hint = suggestion(name, known) if known else f"it has no {what} with a name"
    return ArgumentError(f'the specification has no {what} "{name}": {hint}')
