"""Batches of rollouts in the core, whose memory and threads last from call to call.

The core serves calls in which everything is as it should be. Otherwise these functions return None,
and the caller runs the same work through `Trajectory`, which raises errors and shows warnings.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import mujoco
import numpy as np

from mujacobian import _core

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION


class Memory(NamedTuple):
    """The arrays of a library, in double precision and on the CPU.

    Attributes:
      empty: returns an array of a shape.
      contiguous: returns the same numbers in row-major order.
      address: returns the address of the first number.
    """

    empty: Callable[[tuple[int, ...]], Any]
    contiguous: Callable[[Any], Any]
    address: Callable[[Any], int]


NUMPY = Memory(np.empty, np.ascontiguousarray, lambda array: int(array.ctypes.data))


class Stepper:
    """The core's stepper of a model, which does not keep the model alive.

    The stepper reads the model in every call, so that edits of the model count. The sizes of a
    model cannot change. All arrays have the same batch axes in front, of which there may be any
    number. The caller has checked their shapes.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self.core = _core.Stepper(model)
        self.size = int(model.nq + model.nv + model.na)
        self.sensors = int(model.nsensordata)
        self.row = int(mujoco.mj_stateSize(model, INTEGRATION))
        # shapes of the inputs of one step
        self.widths: dict[str, tuple[int, ...]] = {
            "state": (self.size,),
            "controls": (int(model.nu),),
            "forces": (int(model.nv),),
            "wrenches": (int(model.nbody), 6),
            "mocap": (int(model.nmocap), 7),
        }

    def simulate(
        self,
        model: mujoco.MjModel,
        inputs: Mapping[str, Any],
        first: Any,  # noqa: ANN401
        threads: int,
        tape: _core.Tape | None = None,
        memory: Memory = NUMPY,
    ) -> tuple[Any, Any, Any] | None:
        """Return the states, the sensordata, and mjSTATE_INTEGRATION before every step.

        Args:
          model: the model of the stepper.
          inputs: arrays by the names of `mujacobian.rollout`.
          first: a row of mjSTATE_INTEGRATION, an array of NumPy, in which all rollouts start; None:
            that after `mj_resetData`.
          threads: the number of threads.
          tape: keeps the differentiated steps for `pull_back`.
          memory: the library of the arrays.
        """
        *lead, T, _ = inputs["controls"].shape
        states = memory.empty((*lead, T + 1, self.size))
        sensordata = memory.empty((*lead, T, self.sensors))
        kept = memory.empty((*lead, T, self.row))
        address = memory.address
        given = {name: memory.contiguous(x) for name, x in inputs.items()}
        at = {name: address(x) for name, x in given.items()}
        good = self.core.simulate(
            model,
            n=math.prod(lead),
            steps=T,
            threads=threads,
            first=0 if first is None else NUMPY.address(first),
            state=at.get("state", 0),
            ctrl=at["controls"],
            force=at.get("forces", 0),
            wrench=at.get("wrenches", 0),
            mocap=at.get("mocap", 0),
            states=address(states),
            sensors=address(sensordata),
            kept=address(kept),
            tape=tape,
            forces="forces" in inputs or "wrenches" in inputs,
        )
        return (states, sensordata, kept) if good else None

    def pull_back(
        self,
        model: mujoco.MjModel,
        inputs: Mapping[str, Any],
        recorded: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[str],
        threads: int,
        tape: _core.Tape | None = None,
        memory: Memory = NUMPY,
    ) -> dict[str, Any] | None:
        """Return gradients by the name of the input.

        `recorded` are states and kept rows of `simulate`, and `cotangents` belong to the states and
        the sensordata. None stands for zeros.
        """
        *lead, T, _ = inputs["controls"].shape
        arrays = [None if x is None else memory.contiguous(x) for x in (*recorded, *cotangents)]
        addresses = [0 if x is None else memory.address(x) for x in arrays]
        poses = memory.contiguous(inputs["mocap"]) if "mocap" in wanted else None
        made = {name: memory.empty(tuple(inputs[name].shape)) for name in wanted}
        at = {name: memory.address(x) for name, x in made.items()}
        good = self.core.pull_back(
            model,
            n=math.prod(lead),
            steps=T,
            threads=threads,
            poses=0 if poses is None else memory.address(poses),
            states=addresses[0],
            kept=addresses[1],
            d_states=addresses[2],
            d_sensors=addresses[3],
            state=at.get("state", 0),
            ctrl=at.get("controls", 0),
            force=at.get("forces", 0),
            wrench=at.get("wrenches", 0),
            mocap=at.get("mocap", 0),
            tape=tape,
        )
        return made if good else None

    def push(
        self,
        model: mujoco.MjModel,
        recorded: Sequence[Any],
        moved: Sequence[Any],
        threads: int,
        *,
        sensors: bool,
    ) -> tuple[Any, ...] | None:
        """Return the changes of states and sensors for changes of the state and the controls.

        A change that is None is zero.
        """
        given = [None if x is None else NUMPY.contiguous(x) for x in (*recorded, *moved)]
        *lead, rows, _ = recorded[0].shape
        d_states = NUMPY.empty(recorded[0].shape)
        d_sensors = NUMPY.empty((*lead, rows - 1, self.sensors)) if sensors else None
        arrays = (*given, d_states, d_sensors)
        addresses = [0 if x is None else NUMPY.address(x) for x in arrays]
        good = self.core.push(
            model,
            n=math.prod(lead),
            steps=rows - 1,
            threads=threads,
            states=addresses[0],
            kept=addresses[1],
            moved=addresses[2],
            moved_ctrl=addresses[3],
            d_states=addresses[4],
            d_sensors=addresses[5],
        )
        if not good:
            return None
        return (d_states,) if d_sensors is None else (d_states, d_sensors)


_steppers: WeakKeyDictionary[mujoco.MjModel, Stepper] = WeakKeyDictionary()
_forgotten: list[Any] = []


def stepper(model: mujoco.MjModel) -> Stepper:
    """Return the stepper of a model. It ends with the model."""
    found = _steppers.get(model)
    if found is None:
        found = _steppers[model] = Stepper(model)
    return found


def _forget() -> None:
    """Forget the steppers and threads of the parent process, some of which may be in use."""
    global _steppers
    _forgotten.append(_steppers)
    _steppers = WeakKeyDictionary()
    _core.forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
