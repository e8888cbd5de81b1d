"""Time per call, measured so that ratios of times are reliable on a noisy machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import mujoco
import numpy as np

from mujacobian.check._probe import STATE, may_sleep, same_state


def has_differences(model: mujoco.MjModel) -> bool:
    """Return whether `mjd_transitionFD` supports the model: not with RK4 or the flag `sleep`."""
    return bool(model.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4) and not may_sleep(model)


def beside_step(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    candidates: Mapping[str, Callable[[], object]],
    rounds: int = 25,
    budget: float = 0.004,
) -> dict[str, float]:
    """Return the best times of the candidates and of the `step` from the state in `data`."""
    scratch = same_state(model, data)
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)

    def reset() -> None:
        mujoco.mj_setState(model, scratch, state, STATE)

    def step() -> None:
        reset()
        mujoco.mj_step(model, scratch)

    times = best({"reset": reset, "step": step, **candidates}, rounds, budget)
    # restoring the state is not part of the step
    times["step"] -= times.pop("reset")
    return times


def best(
    candidates: Mapping[str, Callable[[], object]], rounds: int = 25, budget: float = 0.004
) -> dict[str, float]:
    """Return the best time per call of each candidate, in microseconds.

    The candidates take turns, so that a slow period of the machine affects all of them. Each turn
    lasts about `budget` seconds, and the fastest of the `rounds` turns counts.
    """
    counts = {name: _calls_within(budget, call) for name, call in candidates.items()}
    times = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, call in candidates.items():
            times[name] = min(times[name], _time(call, counts[name]))
    return {name: 1e6 * seconds for name, seconds in times.items()}


def once(call: Callable[[], object]) -> float:
    """Return the microseconds of one call, for calls that take many seconds."""
    return 1e6 * _time(call, 1)


def _time(call: Callable[[], object], count: int) -> float:
    """Return the seconds per call of `count` consecutive calls."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _calls_within(budget: float, call: Callable[[], object]) -> int:
    """Return how many calls fit into the budget, after a first call that fills caches."""
    call()
    return max(1, int(budget / _time(call, 1)))
