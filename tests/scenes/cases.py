"""The test models, and the states, integrators and flags of the tests."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent / "models"
MODELS = sorted(path.stem for path in FOLDER.glob("*.xml"))
CONSTRAINT_MODELS = sorted(path.stem for path in (FOLDER / "constraints").glob("*.xml"))
CONTACT_MODELS = sorted(path.stem for path in (FOLDER / "contacts").glob("*.xml"))
SNAPSHOTS = (0.0, 0.04, 0.1, 0.2, 0.4, 0.8)  # seconds of simulation before a state with contacts
RANDOM_STATES = 3
# Scales of random states with constraints, rad or m. By default, impedances vary within 1e-3 and
# are saturated beyond; other models have a width of about 0.3.
SCALES = {"near": 3e-4, "middle": 0.1, "far": 0.5}
STATE = mujoco.mjtState.mjSTATE_INTEGRATION

Disable = mujoco.mjtDisableBit
Integrator = mujoco.mjtIntegrator


def _euler(model: mujoco.MjModel) -> None:
    model.opt.integrator = Integrator.mjINT_EULER


def _euler_explicit(model: mujoco.MjModel) -> None:
    model.opt.integrator = Integrator.mjINT_EULER
    model.opt.disableflags |= Disable.mjDSBL_EULERDAMP


def _implicitfast(model: mujoco.MjModel) -> None:
    model.opt.integrator = Integrator.mjINT_IMPLICITFAST


def _implicit(model: mujoco.MjModel) -> None:
    model.opt.integrator = Integrator.mjINT_IMPLICIT


def _rk4(model: mujoco.MjModel) -> None:
    model.opt.integrator = Integrator.mjINT_RK4


def _discrete(model: mujoco.MjModel) -> None:
    model.opt.integrator = Integrator.mjINT_DISCRETE
    model.opt.tolerance = 1e-15  # smooth accelerations are iterative solutions, too


INTEGRATORS: dict[str, Callable[[mujoco.MjModel], None]] = {
    "euler": _euler,
    "euler_explicit": _euler_explicit,
    "implicitfast": _implicitfast,
    "implicit": _implicit,
    "discrete": _discrete,
    "rk4": _rk4,
}


FLAGS = {
    "gravity": Disable.mjDSBL_GRAVITY,
    "spring": Disable.mjDSBL_SPRING,
    "damper": Disable.mjDSBL_DAMPER,
    "spring_and_damper": Disable.mjDSBL_SPRING | Disable.mjDSBL_DAMPER,
    "actuation": Disable.mjDSBL_ACTUATION,
    "clampctrl": Disable.mjDSBL_CLAMPCTRL,
    "constraint": Disable.mjDSBL_CONSTRAINT,
}


def sample(every: int, *axes: Iterable[Any]) -> list[Any]:
    """Return all combinations of the axes as parameters; only one in `every` is not marked slow.

    A combination is quick if its indices add up to a multiple of `every`. If no axis is shorter
    than `every`, the quick ones contain each value, and with three axes each pair of values.
    """
    return [
        pytest.param(
            *(value for _, value in combination),
            marks=[pytest.mark.slow] if sum(k for k, _ in combination) % every else [],
        )
        for combination in product(*(enumerate(axis) for axis in axes))
    ]


def load(name: str) -> mujoco.MjModel:
    """Return a test model; `name` is its path below `models`."""
    return mujoco.MjModel.from_xml_path(str(FOLDER / f"{name}.xml"))


def states(model: mujoco.MjModel, name: str) -> Iterator[tuple[str, mujoco.MjData]]:
    """Yield labeled states: every keyframe, then random ones, the last one with applied forces.

    A keyframe called "limit" is on a kink on purpose and has its own test.
    """
    for k in range(model.nkey):
        if model.key(k).name != "limit":
            data = mujoco.MjData(model)
            mujoco.mj_resetDataKeyframe(model, data, k)
            yield model.key(k).name, data
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for k in range(RANDOM_STATES):
        yield f"random{k}", random_state(model, rng, forces=k == RANDOM_STATES - 1)


def constrained_states(model: mujoco.MjModel, name: str) -> Iterator[tuple[str, mujoco.MjData]]:
    """Yield labeled states: keyframes, or random ones at every scale, the last one with forces."""
    for k in range(model.nkey):
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, k)
        yield model.key(k).name, data
    if model.nkey:
        return
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for label, scale in SCALES.items():
        yield label, random_state(model, rng, forces=label == "far", scale=scale)


def simulated_states(
    model: mujoco.MjModel, name: str, times: tuple[float, ...] = SNAPSHOTS
) -> Iterator[tuple[str, mujoco.MjData]]:
    """Yield states of a simulation with random controls, initial speeds and active constraints."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qvel[:] = rng.normal(size=model.nv) * 0.3
    drive = data.ctrl + rng.normal(size=model.nu) * 0.3
    data.ctrl[:] = drive
    for time in times:
        while data.time < time - 1e-9:
            mujoco.mj_step(model, data)
        kept = mujoco.MjData(model)
        mujoco.mj_copyData(kept, model, data)
        mujoco.mj_forward(model, kept)
        if kept.nefc:
            yield f"{time:g} s", kept


def random_state(
    model: mujoco.MjModel, rng: np.random.Generator, *, forces: bool = False, scale: float = 0.5
) -> mujoco.MjData:
    data = mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv) * scale, 1.0)
    data.qvel[:] = rng.normal(size=model.nv)
    data.ctrl[:] = rng.normal(size=model.nu)
    data.mocap_pos[:] += rng.normal(size=(model.nmocap, 3)) * 0.1
    data.mocap_quat[:] += rng.normal(size=(model.nmocap, 4)) * 0.2
    if forces:
        data.qfrc_applied[:] = rng.normal(size=model.nv)
        data.xfrc_applied[:] = rng.normal(size=(model.nbody, 6))
    return data


def snapshot(model: mujoco.MjModel, data: mujoco.MjData) -> bytes:
    """Return all data of a step's inputs, bit by bit."""
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    return state.tobytes()
