"""States of a model in a file: a user's own states, or the log of a run."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array, numbers
from mujacobian._files import FileError, in_one_line, require_file
from mujacobian._manifold import require_rotations
from mujacobian.errors import MujacobianError

FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
KEYS = ("states", "controls")
CONTENTS = {
    ".npy": "an array of numbers",
    ".npz": "arrays of numbers",
    ".csv": "numbers and commas, without a header",
}


class StateFile:
    """The states in a `.npy`, `.npz` or `.csv` file, in the order of its rows.

    A row is (qpos, qvel, act) or the result of `mj_getState` with mjSTATE_FULLPHYSICS; a single
    state may also be a vector. A `.npz` file has the rows in its array `states`, and may have the
    array `controls` with one row per state. If it has one row less, as the controls of a rollout,
    the last state is left out. Without controls they are zero. Everything else is as after
    `mj_resetData`.
    """

    def __init__(self, model: mujoco.MjModel, path: Path) -> None:
        self.model = model
        require_file(path)
        try:
            arrays = _read(path)
            self.states, self.controls = _rows(model, arrays)
            if len(self) == 0:
                raise MujacobianError("there are no states to judge")
            _require_rotations(model, self.states)
        except MujacobianError as error:
            raise FileError(f"{path}: {in_one_line(error)}") from None

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[tuple[str, mujoco.MjData]]:
        model = self.model
        for k, (state, control) in enumerate(zip(self.states, self.controls, strict=True)):
            data = mujoco.MjData(model)
            if len(state) == _physics_size(model):
                data.qpos, data.qvel, data.act = np.split(state, [model.nq, model.nq + model.nv])
            else:
                mujoco.mj_setState(model, data, state, FULL)
            data.ctrl[:] = control
            yield f"row {k}", data


def _read(path: Path) -> Mapping[str, NDArray[np.generic]]:
    """Return the arrays of a file by name."""
    if path.suffix not in CONTENTS:
        raise MujacobianError(f"must be a file of type {', '.join(CONTENTS)}")
    try:
        if path.suffix == ".csv":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # no data: the shape shows it
                return {"states": np.loadtxt(path, delimiter=",", ndmin=2)}
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"states": loaded}
        with loaded:
            return {key: loaded[key] for key in loaded.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        expected = CONTENTS[path.suffix]
        raise MujacobianError(f"must contain {expected}: {in_one_line(error)}") from None


def _rows(model: mujoco.MjModel, arrays: Mapping[str, NDArray[np.generic]]) -> tuple[Array, Array]:
    """Return the states and their controls, one row per state."""
    if "states" not in arrays or not set(arrays) <= set(KEYS):
        names = ", ".join(arrays) or "no arrays"
        raise MujacobianError(f"must have the array states, and may have controls; it has {names}")
    states = numbers("states", arrays["states"])
    physics, full = _physics_size(model), mujoco.mj_stateSize(model, FULL)
    if states.ndim not in (1, 2) or states.shape[-1] not in (physics, full):
        raise MujacobianError(
            f"states must have shape (n, {physics}) for (qpos, qvel, act), or (n, {full}) for "
            f"mjSTATE_FULLPHYSICS, got {states.shape}"
        )
    states = np.atleast_2d(states)
    n, nu = len(states), model.nu
    if "controls" not in arrays:
        return states, np.zeros((n, nu))
    controls = numbers("controls", arrays["controls"])
    if controls.shape == (nu,) and n == 1:
        controls = controls[None]
    if controls.shape not in ((n, nu), (n - 1, nu)):
        raise MujacobianError(
            f"controls must have shape ({n}, {nu}), one row per state, or ({n - 1}, {nu}), "
            f"got {controls.shape}"
        )
    return states[: len(controls)], controls


def _require_rotations(model: mujoco.MjModel, states: Array) -> None:
    """Raise if a quaternion of a row is zero."""
    physics = _physics_size(model)
    first = 0 if states.shape[1] == physics else 1  # mjSTATE_FULLPHYSICS begins with the time
    for k, state in enumerate(states):
        try:
            require_rotations(model, state[first : first + physics])
        except MujacobianError as error:
            raise MujacobianError(f"row {k}: {error}") from None


def _physics_size(model: mujoco.MjModel) -> int:
    """Return the length of (qpos, qvel, act)."""
    return int(model.nq + model.nv + model.na)
