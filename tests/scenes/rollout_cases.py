"""Rollouts for tests of gradients: a swing, a landing, a grasp, a fall."""

import mujoco
import numpy as np

from tests.scenes.cases import load

STEPS = 200
MODELS = {
    "pendulum": "rollouts/pendulum",
    "quadruped": "contacts/quadruped",
    "hand": "rollouts/hand_with_ball",
    "humanoid": "rollouts/humanoid",
}


def scene(name: str, steps: int = STEPS) -> tuple[mujoco.MjModel, mujoco.MjData, np.ndarray]:
    """Return a model, its first state and controls."""
    model = load(MODELS[name])
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    if name == "quadruped":
        data.qpos[2] += 0.05  # lands after about 50 steps
    rng = np.random.default_rng(1)
    data.qvel[:] = rng.normal(size=model.nv) * 0.1
    return model, data, data.ctrl + rng.normal(size=(steps, model.nu)) * 0.1


def row(data: mujoco.MjData) -> np.ndarray:
    """Return the state in the format of rollouts."""
    return np.concatenate([data.qpos, data.qvel, data.act])
