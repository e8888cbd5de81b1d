"""Long runs do not use more memory: results, workspaces, exceptions and batches are released."""

import gc
import itertools
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.scenes.cases import load, random_state

CALLS = 100_000
WARM_UP = 2_000
ROUNDS = 4
PAGE = 4096
# Allocators keep a few pages; a leak of 100 bytes per call would be 10 MB.
ALLOWED_GROWTH = 4 * 1024 * 1024


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def growth(call, calls: int) -> int:
    """Return the bytes that this many calls keep.

    They are measured in rounds, the least of which counts: a leak grows in every round. The heap
    may also grow once, in the middle of a round, because of what earlier tests left in it.
    """
    for _ in range(min(WARM_UP, calls)):
        call()
    sizes = [resident_bytes()]
    for _ in range(ROUNDS):
        for _ in range(calls // ROUNDS):
            call()
        sizes.append(resident_bytes())
    return ROUNDS * min(after - before for before, after in itertools.pairwise(sizes))


def test_linearize_does_not_leak():
    model = load("free_body_with_limbs")
    data = random_state(model, np.random.default_rng(0))
    assert growth(lambda: mujacobian.linearize(model, data, forces=True), CALLS) < ALLOWED_GROWTH


def test_failed_calls_do_not_leak():
    model = load("hinge_chain")
    data = random_state(model, np.random.default_rng(0))
    data.qvel[0] = np.nan

    def call():
        with pytest.raises(ValueError, match="qvel"):
            mujacobian.linearize(model, data)

    assert growth(call, CALLS // 10) < ALLOWED_GROWTH


def test_batches_do_not_leak():
    model = load("everything")
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = np.zeros((20, mujoco.mj_stateSize(model, spec)))
    rng = np.random.default_rng(0)
    for row in states:
        mujoco.mj_getState(model, random_state(model, rng), row, spec)
    controls = np.zeros((20, model.nu))

    def call():
        mujacobian.linearize_batch(model, states, controls, threads=2)

    assert growth(call, CALLS // 50) < ALLOWED_GROWTH


def test_models_do_not_leak():
    """No data about a model outlive the model."""

    def call():
        model = load("everything")
        mujacobian.linearize(model, random_state(model, np.random.default_rng(0)))

    assert growth(call, 1_000) < 4 * ALLOWED_GROWTH
