"""The environments: three robots of Gymnasium with its rewards, and the Unitree A1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import gymnasium
import mujoco
import numpy as np
import torch

from benchmarks.policies.environment import Environment, Tensor
from benchmarks.policies.shac import Settings
from mujacobian.control.tasks.task import load_model

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


class Robot(NamedTuple):
    """A robot, and how it is learned.

    Attributes:
      build: function that returns the environment.
      timestep: time step of the simplified model, s.
      width: width of contacts of the simplified model, m.
      settings: settings of the actor-critic; windows take 0.26 s to 0.4 s.
    """

    build: Callable[[], Environment]
    timestep: float
    width: float
    settings: Settings


def planar(file: str, heights: tuple[float, float], tilt: float) -> Environment:
    """Return Hopper-v5 or Walker2d-v5, which are healthy at these heights and tilts (m, rad)."""
    model = mujoco.MjModel.from_xml_path(str(ASSETS / file))
    substeps, nq = 4, model.nq

    def observe(states: Tensor) -> Tensor:
        return torch.cat([states[:, 1:nq], states[:, nq:].clamp(-10, 10)], dim=1)

    def reward(states: Tensor, actions: Tensor, next_states: Tensor) -> Tensor:
        speed = (next_states[:, 0] - states[:, 0]) / (substeps * 0.002)
        return speed + 1 - 1e-3 * (actions**2).sum(dim=1)

    def is_healthy(states: Tensor) -> Tensor:
        z, pitch = states[:, 1], states[:, 2]
        return (heights[0] < z) & (z < heights[1]) & (pitch.abs() < tilt)

    def start(rng: np.random.Generator, n: int) -> np.ndarray:
        rest = np.r_[model.qpos0, np.zeros(model.nv)]
        return rest + rng.uniform(-5e-3, 5e-3, (n, len(rest)))

    return Environment(model, substeps, observe, reward, is_healthy, start)


def hopper() -> Environment:
    """Return Hopper-v5."""
    return planar("hopper.xml", (0.7, np.inf), 0.2)


def walker() -> Environment:
    """Return Walker2d-v5."""
    return planar("walker2d_v5.xml", (0.8, 2.0), 1.0)


def ant() -> Environment:
    """Return Ant-v5 without contact forces, neither in observations nor in the reward."""
    model = mujoco.MjModel.from_xml_path(str(ASSETS / "ant.xml"))
    substeps, nq = 5, model.nq

    def reward(states: Tensor, actions: Tensor, next_states: Tensor) -> Tensor:
        speed = (next_states[:, 0] - states[:, 0]) / (substeps * 0.01)
        return speed + 1 - 0.5 * (actions**2).sum(dim=1)

    def is_healthy(states: Tensor) -> Tensor:
        return (states[:, 2] >= 0.2) & (states[:, 2] <= 1.0)

    def start(rng: np.random.Generator, n: int) -> np.ndarray:
        qpos = model.qpos0 + rng.uniform(-0.1, 0.1, (n, nq))
        qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
        return np.c_[qpos, 0.1 * rng.normal(size=(n, model.nv))]

    return Environment(model, substeps, without_place, reward, is_healthy, start)


def quadruped() -> Environment:
    """Return the Unitree A1, which walks as fast as it can.

    Actions are desired joint angles relative to the rest pose, for springs of limited torque.
    """
    model = load_model("a1")
    home = model.key("home").qpos
    reach, stiffness = np.tile([0.3, 0.6, 0.6], 4), 50.0
    model.actuator_gainprm[:, 0] = stiffness * reach
    model.actuator_biastype[:] = mujoco.mjtBias.mjBIAS_AFFINE
    model.actuator_biasprm[:, 0] = stiffness * home[7:]
    model.actuator_biasprm[:, 1] = -stiffness
    model.actuator_forcelimited[:] = True
    model.actuator_forcerange[:] = (-33.5, 33.5)
    substeps, nq = 10, model.nq

    def reward(states: Tensor, actions: Tensor, next_states: Tensor) -> Tensor:
        speed = (next_states[:, 0] - states[:, 0]) / (substeps * 0.002)
        drift, turn = next_states[:, nq + 1], next_states[:, nq + 5]
        effort = (actions**2).sum(dim=1)
        return speed + 1 - 0.5 * drift**2 - 0.1 * turn**2 - 0.05 * effort

    def is_healthy(states: Tensor) -> Tensor:
        up = 1 - 2 * (states[:, 4] ** 2 + states[:, 5] ** 2)
        return (states[:, 2] > 0.15) & (up > 0.6)

    def start(rng: np.random.Generator, n: int) -> np.ndarray:
        states = np.tile(np.r_[home, np.zeros(model.nv)], (n, 1))
        states[:, 7:] += rng.uniform(-0.05, 0.05, (n, nq - 7 + model.nv))
        return states

    return Environment(model, substeps, without_place, reward, is_healthy, start, length=500)


def without_place(states: Tensor) -> Tensor:
    """Return the states of a free body without its horizontal position."""
    return states[:, 2:]


ROBOTS = {
    "hopper": Robot(hopper, 0.008, 0.02, Settings(discount=0.995, falls=True)),
    "walker": Robot(walker, 0.008, 0.02, Settings()),
    "ant": Robot(ant, 0.025, 0.1, Settings(batch=128, horizon=8, limit=1e3)),
    "quadruped": Robot(quadruped, 0.01, 0.04, Settings(horizon=16)),
}
