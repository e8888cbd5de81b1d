"""Files of results, in JSON with all digits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mujacobian._arguments import Array
from mujacobian._files import FileError, require_file
from mujacobian._parameters import Parameters
from mujacobian.errors import ArgumentError
from mujacobian.sysid.fit import Fit
from mujacobian.sysid.problem import Iterate
from mujacobian.sysid.starts import Start

if TYPE_CHECKING:
    from mujacobian.sysid.result import Identification

FORMAT = "mujacobian identification 1"
# attributes that the caller of `load` gives, or that follow from the others
WITHOUT = ("parameters", "model")


def save(found: Identification, path: Path) -> None:
    """Write all attributes of a result but its parameters and its model."""
    given = {each.name: getattr(found, each.name) for each in fields(found)}
    plain = {name: _plain(value) for name, value in given.items() if name not in WITHOUT}
    path.write_text(json.dumps({"format": FORMAT, **plain}), encoding="utf-8")


def load(kind: type[Identification], path: Path, parameters: Parameters) -> Identification:
    """Return the result in a file, bound to parameters with the same names."""
    require_file(path)
    try:
        texts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileError(f"{path}: not a saved identification: {error}") from None
    if not isinstance(texts, dict) or texts.pop("format", None) != FORMAT:
        raise FileError(f"{path}: not a saved identification of this version")
    names = tuple(texts["names"])
    if parameters.names != names[: len(parameters)]:
        raise ArgumentError(
            f"{path} was saved with other parameters: {', '.join(names)}, got"
            f" {', '.join(parameters.names)}"
        )
    made = {name: _READERS.get(name, _same)(value) for name, value in texts.items()}
    model = parameters.apply(made["values"][: len(parameters)])
    return kind(parameters=parameters, model=model, **made)


def _plain(value: object) -> object:
    """Return a value as lists, dicts, strings and numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return value


def _same(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _array(value: list[Any]) -> Array:
    return np.array(value, np.float64)


def _arrays(value: list[Any]) -> tuple[Array, ...]:
    return tuple(_array(each) for each in value)


def _iterates(value: list[Any]) -> tuple[Iterate, ...]:
    return tuple(Iterate(each["cost"], _array(each["values"])) for each in value)


def _starts(value: list[Any]) -> tuple[Start, ...]:
    made = []
    for each in value:
        seed = None if each["seed"] is None else (each["seed"][0], each["seed"][1])
        arrays = {name: _array(each[name]) for name in ("initial", "values")}
        made.append(Start(**{**each, **arrays, "seed": seed}))
    return tuple(made)


def _fits(value: list[Any]) -> tuple[Fit, ...]:
    names = ("times", "measured", "predicted", "noise")
    return tuple(
        Fit(tuple(each["names"]), *(_array(each[name]) for name in names)) for each in value
    )


_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("values", "standard_errors", "covariance"), _array),
    **dict.fromkeys(("first_states", "residuals"), _arrays),
    "fits": _fits,
    "history": _iterates,
    "starts": _starts,
}
