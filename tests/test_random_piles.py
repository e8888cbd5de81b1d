"""Random piles on a plane: exact, or an `UnsupportedFeatureError`, and never NaN."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained
from tests.scenes.random_piles import random_pile

PILES = 14
BODIES = 4
TIMES = (0.15, 0.3, 0.6)  # s: falling onto one another, and nearly at rest
# Resting bodies are close to kinks: columns that leave their branch within 1e-7 are left out.
MEAN_SHARE = 0.8
# A contact at an edge between two regions of a collider is refused; this must be an exception.
REFUSED_SHARE = 0.1
CROWD = 20  # bodies in scenes that are only checked for NaN and crashes


def states(model, times):
    data = mujoco.MjData(model)
    for time in times:
        while data.time < time:
            mujoco.mj_step(model, data)
        kept = mujoco.MjData(model)
        mujoco.mj_copyData(kept, model, data)
        mujoco.mj_forward(model, kept)
        yield time, kept


def test_piles_are_exact():
    shares, refused = [], []
    for seed in range(PILES):
        model = reference.converge(random_pile(np.random.default_rng(seed), BODIES))
        for time, data in states(model, TIMES):
            if data.nefc == 0:
                continue
            try:
                shares.append(judge_constrained(model, data, CONTACT_TOLERANCE, forces=False))
            except mujacobian.UnsupportedFeatureError as error:
                refused.append(str(error))
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {time} s: {error}") from None
    assert len(shares) >= PILES
    assert np.mean(shares) >= MEAN_SHARE, shares
    assert len(refused) <= REFUSED_SHARE * len(shares), refused


@pytest.mark.parametrize("seed", range(4))
def test_crowds_are_finite(seed):
    """With default tolerances and many bodies, results are finite, or an error names an element."""
    model = random_pile(np.random.default_rng(1000 + seed), CROWD)
    done, refusals = 0, []
    for _, data in states(model, np.arange(0.1, 2.0, 0.1)):
        try:
            lin = mujacobian.linearize(model, data, sensors=False, forces=True)
        except (mujacobian.UnsupportedFeatureError, ValueError) as error:
            refusals.append(str(error))
            continue
        done += 1
        assert np.isfinite(lin.A).all()
        assert np.isfinite(lin.Bf).all()
    assert done > 10
    assert all("geom" in text or "iterations" in text for text in refusals), refusals
