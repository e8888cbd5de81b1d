"""The examples of mujacobian.rods run at reduced size and reach their goals."""

import numpy as np

from examples import (
    rods_chain,
    rods_die,
    rods_endoscope,
    rods_letters,
    rods_perversion,
    rods_racket,
    rods_tip,
)


def test_racket(tmp_path):
    """The nut flips, with one Newton iteration per step."""
    trajectory = rods_racket.main(seconds=3, folder=tmp_path)
    assert (trajectory.report.iterations == 1).all()
    assert trajectory.rotations[:, 0, 1, 1].min() < -0.95
    assert (tmp_path / "rods_racket.png").exists()


def test_perversion(tmp_path):
    """The halves wind in opposite directions."""
    left, right = rods_perversion.main(folder=tmp_path)
    assert left * right < 0
    assert min(abs(left), abs(right)) > 0.9


def test_endoscope(tmp_path):
    """The rod advances, and it penetrates the wall by a few centimeters at most."""
    depth, aside = rods_endoscope.main(steps=600, edges=60, folder=tmp_path)
    assert depth > 1
    assert aside < rods_endoscope.BORE - rods_endoscope.RADIUS + 0.05


def test_chain(tmp_path):
    """Every step of a chain of twenty rings converges, and no ring leaves its neighbor."""
    trajectory = rods_chain.main(folder=tmp_path)
    assert trajectory.report.iterations.max() < 20
    apart = np.linalg.norm(np.diff(trajectory.positions, axis=1), axis=2)
    assert apart.max() < 2 * (rods_chain.STRAIGHT + rods_chain.BEND - rods_chain.WIRE) + 1e-3
    assert apart.min() > 0.05
    assert np.ptp(trajectory.positions[:, -1, 0]) > 0.05  # it swings


def test_die(tmp_path):
    before, after, iterations = rods_die.main(folder=tmp_path)
    assert before < 0.9
    assert after > 0.999
    assert iterations <= 25


def test_letters(tmp_path):
    for losses in rods_letters.main("SIR", folder=tmp_path).values():
        assert losses[-1] < rods_letters.LOSS
        assert (np.diff(losses) <= 0).all()


def test_tip(tmp_path):
    """The error is a few centimeters for a curve with a width of half a meter."""
    distances = rods_tip.main(iterations=30, folder=tmp_path)
    assert len(distances) == 4
    assert max(distances.values()) < 0.06
