"""Sentences about parameters that logs determine only in combination."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from mujacobian._arguments import Array
from mujacobian.sysid.linear_fit import LinearFit

# relative accuracy at which a direction is that of a sum, a difference, a product or a ratio
SAME = 1e-4
# correlation from which on two parameters are reported together
CORRELATED = 0.95


def explain(
    fit: LinearFit, names: Sequence[str], values: Array, covariance: Array
) -> tuple[str, ...]:
    """Return one sentence per group of parameters that the logs do not separate.

    Directions that leave the logs unchanged to first order are singular vectors of the reduced
    Jacobian with singular value zero (SID-11). They say which combination is determined.
    """
    sentences = []
    null_space = fit.null_directions()
    for group in fit.undetermined():
        part = null_space[:, group]
        directions = part[np.abs(part).max(axis=1) > SAME * np.abs(null_space).max(axis=1)]
        if len(group) == 1:
            sentences.append(f"The logs do not depend on {names[group[0]]}.")
        elif len(directions) == 1:
            sentences.append(_of_direction([names[k] for k in group], values[group], directions[0]))
        else:
            listed = ", ".join(names[k] for k in group)
            count = len(group) - len(directions)
            noun = "combination" if count == 1 else "combinations"
            sentences.append(f"The logs determine only {count} {noun} of {listed}.")
    determined = np.flatnonzero(np.isfinite(np.diag(covariance)))
    for j, k in combinations(determined.tolist(), 2):
        if sentence := _of_pair(names, values, covariance, j, k):
            sentences.append(sentence)
    return tuple(sentences)


def _of_direction(names: Sequence[str], values: Array, direction: Array) -> str:
    """Return the sentence about a single direction along which the logs do not change."""
    if len(names) == 2:
        first, second = names
        alike = first.partition("[")[0] == second.partition("[")[0]
        linear = {"sum": np.array([1.0, -1.0]), "difference": np.array([1.0, 1.0])}
        scaling = {"product": values * [1, -1], "ratio": values}
        known = {**linear, **scaling} if alike else {**scaling, **linear}
        for kind, wanted in known.items():
            if _is_parallel(direction, wanted):
                return f"Only the {kind} of {first} and {second} is determined."
        weight = -direction[0] / direction[1]
        return f"Only {_combination(first, second, weight)} is determined."
    listed = ", ".join(names)
    if _is_parallel(direction, values):
        return f"Only the ratios of {listed} are determined."
    scaled = direction / np.abs(direction).max()
    changes = ", ".join(f"{name} by {x:.3g}" for name, x in zip(names, scaled, strict=True))
    return f"The logs do not change if these parameters change together: {changes}."


def _is_parallel(a: Array, b: Array) -> bool:
    """Return whether two vectors have the same or the opposite direction."""
    sizes = np.linalg.norm(a) * np.linalg.norm(b)
    return bool(sizes > 0 and 1 - abs(a @ b) / sizes < SAME**2)


def _of_pair(names: Sequence[str], values: Array, covariance: Array, j: int, k: int) -> str | None:
    """Return the sentence about two parameters that are hard to separate, or None."""
    first, second, both = covariance[j, j], covariance[k, k], covariance[j, k]
    if first * second == 0 or both**2 < CORRELATED**2 * first * second:
        return None
    weight = -both / second  # the combination with the least variance
    error = np.sqrt(max(0.0, first - both**2 / second))
    return (
        f"{names[j]} and {names[k]} are hard to separate (correlation"
        f" {both / np.sqrt(first * second):.3f}): {_combination(names[j], names[k], weight)} is"
        f" {values[j] + weight * values[k]:.4g} ± {error:.2g}, but {names[j]} alone is"
        f" {values[j]:.4g} ± {np.sqrt(first):.2g}."
    )


def _combination(first: str, second: str, weight: float) -> str:
    return f"{first} {'+' if weight > 0 else '-'} {abs(weight):.3g} {second}"
