"""Cross sections of rods: areas and moments, from which a material makes stiffnesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mujacobian.errors import ArgumentError
from mujacobian.rods.quantity import nonnegative, positive

TERMS = np.arange(1, 200, 2)  # of the series of the torsion constant


@dataclass(frozen=True)
class Section:
    """A cross section of a rod. `Section.circle` and `Section.rectangle` make sections.

    Attributes:
      area: area, m^2.
      first: second moment of area about the first axis, m^4.
      second: second moment of area about the second axis, m^4.
      torsion: torsion constant, m^4.
      radius: radius for contacts, m: that of a circle, or half of the shorter side of a rectangle.
      shear: numbers (a, b, c, d) of the shear coefficient (a + b nu) / (c + d nu) (ROD-55).
    """

    area: float
    first: float
    second: float
    torsion: float
    radius: float
    shear: tuple[float, float, float, float]

    def __post_init__(self) -> None:
        for name in ("area", "first", "second", "torsion", "radius"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    @classmethod
    def circle(cls, radius: float, inner: float = 0) -> Section:
        """Return a disk, or a ring with an inner radius, m."""
        r, hole = positive("radius", radius), nonnegative("inner", inner)
        if hole >= r:
            raise ArgumentError(f"inner must be less than radius, got {inner} and {radius}")
        moment, m = np.pi / 4 * (r**4 - hole**4), (hole / r) ** 2
        square = (1 + m) ** 2
        shear = (6 * square, 6 * square, 7 * square + 20 * m, 6 * square + 12 * m)
        return cls(np.pi * (r**2 - hole**2), moment, moment, 2 * moment, r, shear)

    @classmethod
    def rectangle(cls, width: float, height: float) -> Section:
        """Return a rectangle whose sides are `width` along the first axis and `height`, m."""
        a, b = positive("width", width), positive("height", height)
        long, short = max(a, b), min(a, b)
        series = (np.tanh(TERMS * np.pi * long / (2 * short)) / TERMS**5.0).sum()
        torsion = long * short**3 * (1 / 3 - 64 / np.pi**5 * short / long * series)
        moments = a * b**3 / 12, b * a**3 / 12
        return cls(a * b, *moments, torsion, short / 2, (10, 10, 12, 11))

    def shear_factor(self, nu: float) -> float:
        """Return the shear coefficient of Timoshenko beams for Poisson's ratio `nu` (ROD-55)."""
        a, b, c, d = self.shear
        return (a + b * nu) / (c + d * nu)
