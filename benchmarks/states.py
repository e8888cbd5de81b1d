"""States that a model reaches in simulation: at home, under smooth random controls, falling."""

from collections.abc import Iterator

import mujoco
import numpy as np

STEPS = (10, 120, 300)  # steps before each state, in turn: settling, moving, fallen
HOLD = 25  # steps between two targets of the controls
APPROACH = 0.1  # fraction of the distance to its target that a control moves in one step
REACH = 0.4  # fraction of the range of a control, around its value at home
JOLT = 1e-3  # rad/s or m/s: a state exactly at rest is at a kink of dry friction


def driven(model: mujoco.MjModel, count: int, seed: int = 0) -> Iterator[tuple[str, mujoco.MjData]]:
    """Yield `count` named states, beginning with the keyframes without controls.

    States that are not finite, or that caused a warning of MuJoCo, are left out.
    """
    rng = np.random.default_rng(seed)
    lowest, highest = control_range(model)
    for k in range(count):
        data = mujoco.MjData(model)
        if model.nkey:
            mujoco.mj_resetDataKeyframe(model, data, k % model.nkey)
        home = data.ctrl.copy()
        target = home
        steps = STEPS[k % len(STEPS)]
        for i in range(steps):
            if k > 0 and i % HOLD == 0:
                reach = REACH * (highest - lowest)
                target = np.clip(home + rng.uniform(-1, 1, model.nu) * reach, lowest, highest)
            data.ctrl += APPROACH * (target - data.ctrl)
            mujoco.mj_step(model, data)
        data.qvel += JOLT * rng.standard_normal(model.nv)
        if np.isfinite(data.qpos).all() and not data.warning.number.any():
            yield f"state {k} after {steps} steps", data


def control_range(model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Return the range of each control, or [-1, 1] if it has none."""
    limited = model.actuator_ctrllimited.astype(bool)[:, None]
    lowest, highest = np.where(limited, model.actuator_ctrlrange, [-1.0, 1.0]).T
    return lowest, highest
