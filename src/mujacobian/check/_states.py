"""States of a model for comparisons: at home, driven by smooth controls, falling."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np
from numpy.typing import NDArray

SETTLE = 0.02  # s at home, until contacts and limits are active
DRIVE = 0.3  # s of smooth random controls
FALL = 0.5  # s without control, from random velocities
MAX_STEPS = 1000  # for each of these, however small the time step is
RETARGET = 25  # steps between new targets of the controls
SMOOTHING = 0.1  # share of the distance to its target that a control moves in a step
SHARE = 0.4  # the largest change of a control, relative to its range
SPEED = 0.3  # rad/s or m/s at the start of a fall
JITTER = 1e-3  # rad/s or m/s, so that no dry friction is exactly on its kink at rest; if awake


def states(model: mujoco.MjModel, count: int, seed: int) -> Iterator[tuple[str, mujoco.MjData]]:
    """Yield `count` states with labels, alternating between kinds and keyframes."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        kind, move = (("home", _settle), ("driven", _drive), ("falling", _fall))[k % 3]
        data = mujoco.MjData(model)
        label = kind
        if model.nkey:
            key = (k // 3) % model.nkey
            mujoco.mj_resetDataKeyframe(model, data, key)
            label += f" from {model.key(key).name or f'key {key}'}"
        move(model, data, rng)
        jitter = JITTER * rng.standard_normal(model.nv)
        jitter[data.tree_asleep[model.dof_treeid] >= 0] = 0  # it would wake the tree
        data.qvel += jitter
        yield label, data


def _settle(model: mujoco.MjModel, data: mujoco.MjData, rng: np.random.Generator) -> None:
    for _ in range(_steps(model, SETTLE)):
        mujoco.mj_step(model, data)


def _drive(model: mujoco.MjModel, data: mujoco.MjData, rng: np.random.Generator) -> None:
    low, high = _control_ranges(model)
    home = target = data.ctrl.copy()
    for i in range(_steps(model, DRIVE)):
        if i % RETARGET == 0:
            moved = home + rng.uniform(-SHARE, SHARE, model.nu) * (high - low)
            target = np.clip(moved, low, high)
        data.ctrl[:] += SMOOTHING * (target - data.ctrl)
        mujoco.mj_step(model, data)


def _fall(model: mujoco.MjModel, data: mujoco.MjData, rng: np.random.Generator) -> None:
    data.qvel[:] += SPEED * rng.standard_normal(model.nv)
    data.ctrl[:] = 0
    for _ in range(_steps(model, FALL)):
        mujoco.mj_step(model, data)


def _steps(model: mujoco.MjModel, duration: float) -> int:
    h = float(model.opt.timestep)
    return min(MAX_STEPS, max(1, round(duration / h))) if h > 0 else 1


def _control_ranges(
    model: mujoco.MjModel,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower and upper ends of the controls; -1 and 1 if there is no range."""
    limited = model.actuator_ctrllimited.astype(bool)
    ends = np.where(limited[:, None], model.actuator_ctrlrange, [-1.0, 1.0])
    return ends[:, 0], ends[:, 1]
