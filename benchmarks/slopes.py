"""Count states with wrong slopes, and warnings: python -m benchmarks.slopes FILE...

The models are simulated under random controls, with a converged solver and their own collider.
Slopes are central differences of the velocities after `mj_step`. The table counts the states with a
contact error, by the error of the slopes and by the warning of `linearize`.
"""

import copy
import sys
import warnings
from collections import Counter
from collections.abc import Iterator

import mujoco
import numpy as np

import mujacobian

SEEDS, STEPS, HOLD, EVERY = 6, 400, 40, 80
LENGTHS = (1e-6, 1e-5)  # m or rad; the better one counts
LARGE = 1e-2  # relative error of a slope


def states(model: mujoco.MjModel) -> Iterator[mujoco.MjData]:
    """Yield states of trajectories that begin at the default pose or at a keyframe."""
    low, high = model.actuator_ctrlrange.T
    limited = model.actuator_ctrllimited.astype(bool)
    for seed in range(SEEDS):
        rng, data = np.random.default_rng(seed), mujoco.MjData(model)
        if model.nkey and seed % 2:
            mujoco.mj_resetDataKeyframe(model, data, rng.integers(model.nkey))
        for step in range(STEPS):
            if step % HOLD == 0:
                data.ctrl[:] = np.where(limited, rng.uniform(low, high), rng.normal(size=model.nu))
            mujoco.mj_step(model, data)
            if step % EVERY == EVERY - 1:
                mujoco.mj_forward(model, data)
                yield data


def slopes(model: mujoco.MjModel, data: mujoco.MjData, length: float) -> np.ndarray:
    """Return differences of velocities after a step over changes of positions and velocities."""
    columns, twin = [], mujoco.MjData(model)
    for along in length * np.eye(2 * model.nv):
        ends = []
        for sign in (1, -1):
            mujoco.mj_copyData(twin, model, data)
            mujoco.mj_integratePos(model, twin.qpos, sign * along[: model.nv], 1)
            twin.qvel += sign * along[model.nv :]
            mujoco.mj_step(model, twin)
            ends.append(twin.qvel.copy())
        columns.append((ends[0] - ends[1]) / (2 * length))
    return np.array(columns).T


def judge(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[bool, str] | None:
    """Return whether slopes differ and which warning appears; None without a contact error."""
    if mujacobian.diagnose(model, data).contact_error == 0:
        return None
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        lin = mujacobian.linearize(copy.copy(model), data, sensors=False)
    A = lin.A[model.nv : 2 * model.nv, : 2 * model.nv]
    errors = [abs(slopes(model, data, length) - A).max() / abs(A).max() for length in LENGTHS]
    text = " ".join(str(each.message) for each in found if "collider" in str(each.message))
    kind = "silent" if not text else "slope" if "follows facets" in text else "value"
    return min(errors) > LARGE, kind


def main(paths: list[str]) -> None:
    """Print the table for the states of all models."""
    counts: Counter[tuple[bool, str]] = Counter()
    for path in paths:
        model = mujoco.MjModel.from_xml_path(path)
        model.opt.iterations, model.opt.tolerance = 200, 1e-14
        model.opt.ls_iterations, model.opt.ls_tolerance = 100, 1e-6
        for data in states(model):
            verdict = judge(model, data)
            if verdict:
                counts[verdict] += 1
    for large, name in ((True, "above 1 %"), (False, "below 1 %")):
        row = {kind: counts[large, kind] for kind in ("value", "slope", "silent")}
        print(f"slopes {name}: {sum(row.values())} states, {row}")


if __name__ == "__main__":
    main(sys.argv[1:])
