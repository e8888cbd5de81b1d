"""Short texts about results, for `print` and notebooks: shapes and key figures only."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


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
