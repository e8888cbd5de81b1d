"""Norms of residuals: functions that map the rows of a term to a cost (ILQ-2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian.errors import ArgumentError


@dataclass(frozen=True)
class Norm:
    """A function of the rows r of a term; unless stated otherwise, its minimum is 0 at r = 0.

    Attributes:
      p: half-width of the region near 0 in which the norm is smoothed, in the unit of the rows; for
        `Power`, the exponent.
      q: exponent that determines the shape within this region.
    """

    kind: ClassVar[str]

    @property
    def parameters(self) -> tuple[float, float]:
        """The numbers p and q."""
        return 0.0, 0.0


@dataclass(frozen=True)
class Null(Norm):
    """sum r_i, which is linear, and negative if the sum of the rows is."""

    kind: ClassVar[str] = "null"


@dataclass(frozen=True)
class Quadratic(Norm):
    """r'r / 2."""

    kind: ClassVar[str] = "quadratic"


@dataclass(frozen=True)
class _OneParameter(Norm):
    p: float

    def __post_init__(self) -> None:
        _require_positive("p", self.p)

    @property
    def parameters(self) -> tuple[float, float]:
        """The numbers p and q."""
        return float(self.p), 0.0


@dataclass(frozen=True)
class L2(_OneParameter):
    """sqrt(r'r + p^2) - p: quadratic within p, beyond it the length of r."""

    kind: ClassVar[str] = "l2"


@dataclass(frozen=True)
class SmoothAbs(_OneParameter):
    """sum sqrt(r_i^2 + p^2) - p: quadratic within p, beyond it |r_i|."""

    kind: ClassVar[str] = "smooth_abs"


@dataclass(frozen=True)
class Cosh(_OneParameter):
    """sum p^2 (cosh(r_i / p) - 1): quadratic within p, beyond it exponential."""

    kind: ClassVar[str] = "cosh"


@dataclass(frozen=True)
class Rectify(_OneParameter):
    """sum p log(1 + exp(r_i / p)): max(r_i, 0), smoothed within p. At 0 it is p log 2."""

    kind: ClassVar[str] = "rectify"


@dataclass(frozen=True)
class Power(_OneParameter):
    """sum |r_i|^p with p >= 2. For a smaller p, the second derivative would be infinite at 0."""

    kind: ClassVar[str] = "power"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.p) and self.p >= 2):
            raise ArgumentError(f"p must be at least 2, got {self.p!r}: use SmoothAbs2 instead")


@dataclass(frozen=True)
class _TwoParameters(Norm):
    p: float
    q: float

    def __post_init__(self) -> None:
        _require_positive("p", self.p)
        if not (math.isfinite(self.q) and self.q >= 2):
            raise ArgumentError(f"q must be at least 2, got {self.q!r}")

    @property
    def parameters(self) -> tuple[float, float]:
        """The numbers p and q."""
        return float(self.p), float(self.q)


@dataclass(frozen=True)
class L22(_TwoParameters):
    """((r'r)^(q/2) + p^q)^(1/q) - p: `L2`, but flatter near 0 if q > 2."""

    kind: ClassVar[str] = "l22"


@dataclass(frozen=True)
class SmoothAbs2(_TwoParameters):
    """sum (|r_i|^q + p^q)^(1/q) - p: `SmoothAbs`, but flatter near 0 if q > 2."""

    kind: ClassVar[str] = "smooth_abs2"


def _require_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(f"{name} must be a number above 0, got {value!r}")


def expand_norm(norm: Norm, rows: Array) -> tuple[Array, Array, Array, Array]:
    """Return values `(n,)`, slopes and curvatures `(n, k)` and bends `(n,)` of a norm (ILQ-2).

    `rows` is `(n, k)`. Rows that are NaN are off: their slopes and curvatures are zero.
    """
    n, k = rows.shape
    values, bends = np.empty(n), np.empty(n)
    slopes, curvatures = np.empty((n, k)), np.empty((n, k))
    p, q = norm.parameters
    _core.norm_into(
        norm.kind,
        p=p,
        q=q,
        rows=np.ascontiguousarray(rows),
        values=values,
        slopes=slopes,
        curvatures=curvatures,
        bends=bends,
    )
    return values, slopes, curvatures, bends
