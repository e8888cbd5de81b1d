"""Tasks of hands that turn a cube: the rotation, the cost, the initial state and the outcome."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.task import Outcome

TOLERANCE = 0.1  # largest error of the rotation, rad
PLACE = 0.02  # largest distance from the middle of the palm, m


@dataclass(frozen=True)
class Turn:
    """The desired rotation of a cube.

    Attributes:
      total: angle of the rotation about the vertical axis, rad.
      seconds: its duration, s.
    """

    total: float
    seconds: float

    def angle(self, times: Array) -> Array:
        """Return the desired rotation of the cube, rad, `(n,)`."""
        return self.total * np.clip(times / self.seconds, 0, 1)

    def heading(self, times: Array) -> Array:
        """Return the desired direction of the first axis of the cube, `(n, 2)`."""
        angle = self.angle(times)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def terms(
        self,
        model: mujoco.MjModel,
        *,
        gaps: control.Rows,
        speeds: control.Rows,
        torques: control.Rows,
        posture: control.Rows,
    ) -> list[control.Term]:
        """Return the terms of the cost.

        Args:
          model: model with the sensors `cube`, `cube_x` and `cube_z`.
          gaps: distances from the tips of the fingers to the cube, m.
          speeds: velocities of the joints, rad/s.
          torques: torques of the joints, N m.
          posture: difference from the open hand, rad.
        """
        ahead, up = control.sensor(model, "cube_x"), control.sensor(model, "cube_z")
        place = 20 * control.sensor(model, "cube")
        return [
            control.Term("turn", ahead[:2], control.L2(0.1), 2.0, self.heading),
            control.Term("level", up[:2], control.L2(0.1), 1.0),
            control.Term("place", place, control.L2(0.1), 1.0, (0, 0, 0.6)),
            control.Term("press", 20 * gaps, control.SmoothAbs(0.02), 0.5, -0.06),
            control.Term("still", speeds, control.Quadratic(), 0.001),
            control.Term("effort", torques, control.Quadratic(), 0.1),
            control.Term("open", posture, control.Quadratic(), 0.01),
        ]

    def judge(self, model: mujoco.MjModel, result: control.MPCResult) -> Outcome:
        """Return whether the cube has its desired rotation in the middle of the palm."""
        cube, ahead, up = readings(model, result, "cube", "cube_x", "cube_z")
        turned = np.unwrap(np.arctan2(ahead[:, 1], ahead[:, 0]))
        off = abs(turned[-1] - self.angle(result.times[-1:])[0])
        measures = {
            "turned (rad)": float(turned[-1]),
            "off the asked angle (rad)": float(off),
            "off the middle (m)": float(np.linalg.norm(cube[-1, :2])),
            "least level (cosine)": float(up[:, 2].min()),
        }
        in_place = measures["off the middle (m)"] < PLACE
        return Outcome(bool(off < TOLERANCE and in_place), measures)


def start(model: mujoco.MjModel, rng: np.random.Generator | None) -> mujoco.MjData:
    """Return the open hand with the cube in its middle, or at a random position near it."""
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("open").id)
    if rng is not None:
        data.qpos[:2] += rng.uniform(-0.004, 0.004, 2)
    mujoco.mj_forward(model, data)
    return data
