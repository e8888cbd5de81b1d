"""The feet of a model that follow a gait."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian.control.gait import Gait
from mujacobian.control.mpc_result import MPCResult
from mujacobian.control.tasks.readings import readings

TROT = Gait(offsets=(0.0, 0.5, 0.5, 0.0), duty=0.45, cadence=2.0, amplitude=0.03)


@dataclass(frozen=True)
class Feet:
    """The feet of a model and their gait.

    Attributes:
      gait: gait that the feet follow.
      sensors: names of the position sensors, in the order of the offsets of the gait.
      ground: sensor reading of the height of a foot that is down, m.
      down: height above the ground, m, below which a foot counts as down; by default 0.005.
    """

    gait: Gait
    sensors: tuple[str, ...]
    ground: float
    down: float = 0.005

    def lifted(self, model: mujoco.MjModel, result: MPCResult) -> Array:
        """Return the measured height of each foot above the ground, m, `(n, feet)`."""
        places = readings(model, result, *self.sensors)
        return np.stack([place[:, 2] for place in places], axis=1) - self.ground

    def measures(self, times: Array, lifted: Array) -> dict[str, float]:
        """Return measures of how well the feet followed the gait."""
        swings = self.gait.swing_heights(times, lifted)
        agree = (self.gait.lift(times) > self.down) == (lifted > self.down)
        return {
            "phase error, worst foot (cycles)": float(self.gait.phase_error(times, lifted)),
            "swing height, mean (m)": float(swings.mean()) if swings.size else 0.0,
            "feet as scheduled (share)": float(agree.mean()),
        }
