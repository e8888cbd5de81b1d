"""The unknowns of an identification: parameters of the model, then of its sensors."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._parameters import Parameters
from mujacobian.sysid.calibration import Calibration
from mujacobian.sysid.loss import Loss


@dataclass(frozen=True)
class Trial:
    """A simulated model with tangents, for one vector of values.

    Attributes:
      model: the model with the values.
      directions: tangents in the parameters of the core, one row per parameter.
      calibration: values of the calibration.
      loss: robust loss of the residuals; None for squares.
    """

    model: mujoco.MjModel
    directions: Array
    calibration: Array
    loss: Loss | None = None


class Unknowns:
    """Parameters of a model and of its sensors as one vector."""

    def __init__(self, parameters: Parameters, calibration: Calibration | None = None) -> None:
        self.parameters, self.calibration = parameters, calibration
        parts = (parameters,) if calibration is None else (parameters, calibration)
        self.names = tuple(name for part in parts for name in part.names)
        self.units = tuple(unit for part in parts for unit in part.units)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lower(self) -> Array:
        """Lower bounds."""
        return self._join("lower")

    @property
    def upper(self) -> Array:
        """Upper bounds."""
        return self._join("upper")

    @property
    def values(self) -> Array:
        """The values in the model, and of ideal sensors."""
        return self._join("values")

    def _join(self, name: str) -> Array:
        parts = [getattr(self.parameters, name)]
        if self.calibration is not None:
            parts.append(getattr(self.calibration, name))
        return np.concatenate(parts)

    def apply(self, values: Array) -> mujoco.MjModel:
        """Return the model with these values."""
        return self.parameters.apply(values[: len(self.parameters)])

    def trial(self, values: Array, loss: Loss | None = None) -> Trial:
        """Return the model and the tangents at these values."""
        of_model, calibration = np.split(values, [len(self.parameters)])
        model = self.parameters.apply(of_model)
        directions = np.ascontiguousarray(self.parameters.jacobian(of_model, model).T)
        return Trial(model, directions, calibration, loss)
