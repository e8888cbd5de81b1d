"""Priors of the unknowns: values that are known with a standard deviation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mujacobian._arguments import Array
from mujacobian.errors import ArgumentError
from mujacobian.sysid.bounds import places_by_name
from mujacobian.sysid.unknowns import Unknowns

Priors = Mapping[str, tuple[float, float]]


class Prior:
    """Residuals `(value - mean) / deviation` of some unknowns (SID-10).

    Attributes:
      given: mean and standard deviation by the place of the unknown.
    """

    def __init__(self, unknowns: Unknowns, given: Priors | None) -> None:
        self._count = len(unknowns)
        self.given: dict[int, tuple[float, float]] = {}
        for key, pair in (given or {}).items():
            if np.shape(pair) != (2,) or not np.isfinite(pair).all() or not pair[1] > 0:
                raise ArgumentError(
                    f"priors: {key} must have a mean and a positive standard deviation,"
                    f" got {pair!r}"
                )
            for k in places_by_name("priors", unknowns, key):
                self.given[k] = pair
        self._places = np.array(list(self.given), dtype=int)
        self._means, self._deviations = np.array(list(self.given.values())).reshape(-1, 2).T

    def __len__(self) -> int:
        return len(self._places)

    def rows(self, values: Array) -> Array:
        """Return the slopes of the residuals, with the residuals as last column."""
        made = np.zeros((len(self), self._count + 1))
        made[np.arange(len(self)), self._places] = 1 / self._deviations
        made[:, -1] = (values[self._places] - self._means) / self._deviations
        return made
