"""Short texts about results for `print`, and tables for notebooks: key figures only."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 50  # of a table
MOST_ITEMS = 8  # of a list


def describe_array(name: str, array: NDArray[np.float64]) -> str:
    """Return a line with the name, the shape and the largest entry of an array."""
    text = f"{name} {array.shape}"
    if not array.size:
        return text
    if not np.isfinite(array).all():
        return f"{text}, not finite"
    return f"{text}, entries up to {abs(array).max():.3g}"


def describe(title: str, facts: Iterable[str] = (), **arrays: NDArray[np.float64] | None) -> str:
    """Return a title and one line per fact and per array, without arrays that are None."""
    lines = [*facts, *(describe_array(k, v) for k, v in arrays.items() if v is not None)]
    return "\n".join([title, *(f"  {line}" for line in lines)])


def summarize(result: Any) -> str:  # noqa: ANN401
    """Return the name of a dataclass and a line per field: of arrays, the key figures only."""
    shown = [field.name for field in fields(result) if field.repr]
    found = ((name, getattr(result, name)) for name in shown)
    lines = [line for name, value in found for line in _describe_field(name, value)]
    return "\n".join([type(result).__name__, *(f"  {line}" for line in lines)])


def _describe_field(name: str, value: Any) -> list[str]:  # noqa: ANN401
    """Return the lines of a field, none if it is None or an empty array."""
    if value is None:
        return []
    if isinstance(value, np.ndarray):
        return [describe_array(name, value)] if value.size else []
    if is_dataclass(value):
        return [name, *repr(value).splitlines()[1:]]
    if isinstance(value, (list, tuple)) and len(value) > MOST_ITEMS:
        return [f"{name}: {len(value)} items"]
    return [f"{name} {value}"]


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for notebooks, with at most `MOST_ROWS` rows."""

    def line(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    lines = [line(header, "th"), *(line(row, "td") for row in rows[:MOST_ROWS])]
    if len(rows) > MOST_ROWS:
        lines.append(line([f"and {len(rows) - MOST_ROWS} more"], "td"))
    return f"<table><caption>{html.escape(title)}</caption>{''.join(lines)}</table>"
