"""A, B and Bf of fifty or five hundred random kinematic trees against the reference."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.oracle.judge import judge
from tests.scenes.cases import sample
from tests.scenes.random_trees import random_tree

TREES = 500
BATCH = 25  # trees per test; a failure lists its seeds
# Masses span six orders of magnitude: some columns are below rounding, most are not.
TRUSTED_SHARE_OF_BATCH = 0.95


@pytest.mark.parametrize("first", sample(10, range(0, TREES, BATCH)))
def test_random_trees(first):
    failures, shares, sizes = [], [], []
    for seed in range(first, first + BATCH):
        model, data = random_tree(seed)
        try:
            share, size = judge(model, data)
        except AssertionError as error:
            failures.append(f"seed {seed}: {error}")
        else:
            shares.append(share)
            sizes.append(size)
    assert not failures, "\n".join(failures)
    assert np.average(shares, weights=sizes) >= TRUSTED_SHARE_OF_BATCH


def test_a_seed_gives_one_tree():
    """The tree is the same in every process, so nothing depends on the order of a set."""
    code = (
        "from tests.scenes.random_trees import random_tree; print(random_tree(7)[1].ctrl.tolist())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parent.parent,
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert printed == {str(random_tree(7)[1].ctrl.tolist())}


def test_trees_are_diverse():
    models = [random_tree(seed)[0] for seed in range(60)]
    assert {kind for model in models for kind in model.jnt_type} == {0, 1, 2, 3}
    assert {int(model.opt.integrator) for model in models} == {0, 2, 3}
    assert max(np.ptp(np.log10(model.body_mass[1:])) for model in models) > 5
    assert min(model.nbody for model in models) == 2
    assert max(model.nbody for model in models) > 12
    assert {int(t) for model in models for t in model.actuator_trntype} == {0, 3, 4}
