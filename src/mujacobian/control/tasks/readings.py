"""Sensor readings of a run by name."""

from __future__ import annotations

import mujoco

from mujacobian._arguments import Array
from mujacobian.control.mpc_result import MPCResult


def readings(model: mujoco.MjModel, result: MPCResult, *names: str) -> list[Array]:
    """Return the readings of these sensors at all steps, each `(n, dim)`."""
    found = []
    for name in names:
        sensor = model.sensor(name)
        found.append(result.sensordata[:, sensor.adr[0] : sensor.adr[0] + sensor.dim[0]])
    return found
