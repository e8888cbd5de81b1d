"""Print a hash of the derivatives of some models: python -m benchmarks.fingerprint [MODEL.xml ...].

The hashes on one machine are the same before and after a change that must not affect results, such
as a renaming. The models are the ten below, or the given files. The hash of a model covers A, B, C
and D at three states of a simulation with random controls, and the gradient of a rollout with
respect to its first state, controls and masses. An unsupported element is included by its name, so
that the wording of messages does not matter.
"""

import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import mujoco
import numpy as np

import mujacobian

ROOT = Path(__file__).resolve().parent.parent
TASKS, MODELS = ROOT / "src/mujacobian/control/tasks", ROOT / "tests/models"
NAMES = (
    TASKS / "a1.xml",
    TASKS / "hand.xml",
    TASKS / "humanoid.xml",
    TASKS / "cartpole.xml",
    MODELS / "everything.xml",
    MODELS / "actuator_kinds.xml",
    MODELS / "spatial_tendon_armature.xml",
    MODELS / "constraints/all_rows.xml",
    MODELS / "contacts/hand_grasping_itself.xml",
    MODELS / "contacts/explicit_pairs.xml",
)
STATES, STEPS, HORIZON = 3, 40, 20


def main() -> None:
    """Print one line per model, and a last one for all of them."""
    total = hashlib.sha256()
    for path in map(Path, sys.argv[1:] or NAMES):
        digest = fingerprint(mujoco.MjModel.from_xml_path(str(path)))
        total.update(digest.encode())
        print(f"{digest[:16]}  {path.parent.name}/{path.name}", flush=True)
    print(f"{total.hexdigest()[:16]}  all")


def fingerprint(model: mujoco.MjModel) -> str:
    """Return the hash of the derivatives of a model."""
    digest = hashlib.sha256()
    rng = np.random.default_rng(0)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)

    def add(compute: Callable[[], Iterable[np.ndarray]]) -> None:
        try:
            for array in compute():
                digest.update(np.ascontiguousarray(array).tobytes())
        except mujacobian.UnsupportedFeatureError as error:
            digest.update(error.element.encode())

    for _ in range(STATES):
        for _ in range(STEPS):
            data.ctrl[:] = 0.3 * rng.standard_normal(model.nu)
            mujoco.mj_step(model, data)
        add(lambda: linearization(model, data))
    add(lambda: gradient(model, data, rng))
    return digest.hexdigest()


def linearization(model: mujoco.MjModel, data: mujoco.MjData) -> list[np.ndarray]:
    """Return A, B, C and D."""
    lin = mujacobian.linearize(model, data)
    return [lin.A, lin.B, lin.C, lin.D]


def gradient(
    model: mujoco.MjModel, data: mujoco.MjData, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return the gradient of a random scalar of the last state of a rollout."""
    controls = 0.3 * rng.standard_normal((HORIZON, model.nu))
    params = mujacobian.Parameters(model, ["body_mass"])
    trajectory = mujacobian.rollout(model, data, controls, params=params)
    weights = np.zeros((HORIZON + 1, 2 * model.nv + model.na))
    weights[-1] = rng.standard_normal(weights.shape[1])
    found = trajectory.gradient(weights, tangent=True)
    return [found.state, found.controls, found.params]


if __name__ == "__main__":
    main()
