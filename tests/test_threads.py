"""Calls from several Python threads, each on its own data, do not disturb each other."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mujacobian
from tests.scenes.cases import load, random_state

THREADS = 4
CALLS = 200


@pytest.mark.parametrize("names", [["everything"], ["everything", "hinge_chain", "ball_chain"]])
def test_concurrent_calls_agree_with_single_ones(names):
    """Calls share one model, or use models of different sizes at once."""
    models = [load(name) for name in names]
    jobs = [
        (models[k % len(models)], random_state(models[k % len(models)], np.random.default_rng(k)))
        for k in range(2 * THREADS)
    ]
    expected = [mujacobian.linearize(m, d, sensors=False, forces=True) for m, d in jobs]

    def repeat(job):
        return [mujacobian.linearize(*job, sensors=False, forces=True) for _ in range(CALLS)]

    with ThreadPoolExecutor(THREADS) as pool:
        for results, wanted in zip(pool.map(repeat, jobs), expected, strict=True):
            for lin in results:
                for block in ("A", "B", "Bf"):
                    assert getattr(lin, block).tobytes() == getattr(wanted, block).tobytes()
