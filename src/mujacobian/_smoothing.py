"""A copy of a model with softer contacts, which act before the bodies touch."""

from __future__ import annotations

import copy
import math

import mujoco

from mujacobian._arguments import require_model
from mujacobian.errors import ArgumentError


def smoothed(model: mujoco.MjModel, margin: float = 0.005) -> mujoco.MjModel:
    """Return a copy of the model in which contact forces start from zero, before bodies touch.

    Every contact acts from a distance of `margin` (in m). Its impedance grows from zero there
    (solimp d0 = 0) to its full value over a width of at least `margin`. Forces therefore do not
    jump where a contact begins, and bodies that are about to touch have a gradient. In exchange,
    bodies rest at a distance of up to `margin`. This is another model, not an approximation of a
    derivative: its own derivatives are exact. Limits of joints and tendons do not change.

    Example:
      >>> import mujoco, mujacobian
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 .103'>"
      ...     "<freejoint/><geom size='.1'/></body></worldbody></mujoco>")
      >>> soft = mujacobian.smoothed(model, margin=0.01)
      >>> float(mujacobian.linearize(model, mujoco.MjData(model)).A[8, 2])  # 3 mm above the floor
      0.0
      >>> bool(mujacobian.linearize(soft, mujoco.MjData(soft)).A[8, 2] < 0)
      True
    """
    require_model(model)
    if not (math.isfinite(margin) and margin > 0):
        raise ArgumentError(f"margin must be a positive length, got {margin!r}")
    soft = copy.copy(model)
    soft.geom_margin += margin / 2  # margins of two geoms add up
    soft.pair_margin += margin
    for solimp in (soft.geom_solimp, soft.pair_solimp):
        solimp[:, 0] = 0
        solimp[:, 2] = solimp[:, 2].clip(min=margin)
    return soft
