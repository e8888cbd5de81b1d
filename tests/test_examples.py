"""The examples run and reach their goals."""

from pathlib import Path

import numpy as np
import pytest

from examples import identify_arm, identify_box, mpc_own_model, swing_up, throw_die

STANDARD_ERRORS = 4  # largest error of an estimate that the test accepts


def close(found, truth):
    known = np.isfinite(found.standard_errors)
    off = np.abs(found.values - truth)[known] / found.standard_errors[known]
    assert found.converged
    assert off.max() < STANDARD_ERRORS
    return known


def test_arm():
    found, truth = identify_arm.main()
    assert close(found, truth).all()


def test_box():
    """The log determines friction and mass, but not torsional and rolling friction."""
    found, truth = identify_box.main()
    assert close(found, truth).tolist() == [True, True, False, False]
    np.testing.assert_array_equal(found.values[2:], truth[2:])


def test_swing_up():
    angle, speed = swing_up.main()[-1]
    assert abs(abs(angle) - np.pi) < 0.1
    assert abs(speed) < 0.2


def test_mpc_on_your_own_model():
    result = mpc_own_model.main()
    np.testing.assert_allclose(result.sensordata[-1], [1, 0, -1, 0, 0, 0], atol=0.02)
    assert np.abs(result.controls).max() <= 1


def test_the_readme_shows_the_example():
    """The README quotes lines of the example, fewer than 25."""
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    block = next(part for part in readme.split("```") if "control.ILQR" in part)
    shown = [line.strip() for line in block.splitlines()[1:] if line.strip()]
    example = [line.strip() for line in Path(mpc_own_model.__file__).read_text().splitlines()]
    assert [line for line in shown if line not in example] == []
    assert len(shown) < 25


def test_die():
    before, after = np.array(throw_die.main()).T
    assert (after > 0.99).sum() >= 3
    assert (before > 0.99).sum() <= 1


def test_torch_policy():
    pytest.importorskip("torch")
    from examples import torch_policy

    before, after = torch_policy.main()
    assert after < before / 5


def test_imitation(tmp_path):
    pytest.importorskip("torch")
    from examples import imitate_mpc

    picture = tmp_path / "imitation.png"
    errors, weights = imitate_mpc.main(str(picture))
    assert errors[-1] < 1e-4 * errors[0]
    np.testing.assert_allclose(weights[-1], imitate_mpc.EXPERT, rtol=0.05)
    assert picture.stat().st_size > 10_000
