"""Three states of a model on one trajectory: its start, and two states under random controls."""

import time
from collections.abc import Iterator

import mujoco
import numpy as np

from benchmarks.states import control_range

STEPS = (0, 60, 140)  # steps before each state; the first state is keyframe 0 or the reset
HOLD = 20  # steps between two draws of the controls
PATIENCE = 8.0  # seconds of simulation per state, after which a large model is judged


def driven(model: mujoco.MjModel, seed: int) -> Iterator[tuple[int, mujoco.MjData]]:
    """Yield the number of steps since the start, and the data, for each state.

    All states share one `MjData`: a state is valid until the next one is requested.
    """
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    done = 0
    for steps in STEPS:
        done += _simulate(model, data, steps, rng)
        yield done, data


def _simulate(
    model: mujoco.MjModel, data: mujoco.MjData, steps: int, rng: np.random.Generator
) -> int:
    """Simulate under controls drawn from their ranges; return the number of steps taken."""
    started = time.monotonic()
    for k in range(steps):
        if time.monotonic() - started > PATIENCE:
            return k
        if k % HOLD == 0:
            data.ctrl[:] = rng.uniform(*control_range(model))
        mujoco.mj_step(model, data)
    return steps
