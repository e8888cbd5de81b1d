"""Rotations of rods: exponential, logarithm, Jacobian, frames and Darboux vectors."""

import numpy as np
import pytest

from mujacobian import rods
from mujacobian._rotation import log, right_jacobian
from mujacobian.rods.rotation import lift, project

ANGLES = [0.0, 1e-12, 1e-5, 0.05, 0.0999, 0.1001, 1.0, 1.57, 1.58, 3.0]
ANGLES += [np.pi - 1e-6, np.pi - 1e-9, np.pi - 1e-13]


@pytest.mark.parametrize("angle", ANGLES)
def test_exp_log_and_jacobian(angle):
    rng = np.random.default_rng(1)
    axis = rng.normal(size=(4, 3))
    w = angle * axis / np.linalg.norm(axis, axis=1, keepdims=True)
    R = rods.exp(w)
    assert np.abs(np.swapaxes(R, 1, 2) @ R - np.eye(3)).max() < 1e-14
    assert np.abs(log(R) - w).max() < 1e-14
    change, s = rng.normal(size=(4, 3)), 1e-4
    ahead = [rods.exp(w + k * s * change) for k in (-2, -1, 1, 2)]
    slope = (ahead[0] - 8 * ahead[1] + 8 * ahead[2] - ahead[3]) / (12 * s)
    # exp(w + dw) = exp(w) exp(Jr dw): the left perturbation is exp(w) Jr dw
    turned = np.einsum("nij,njk,nk->ni", R, right_jacobian(w), change)
    assert np.abs(0.5 * project(R, slope) - turned).max() < 1e-10


def test_log_by_half_a_turn():
    """The axis may have either sign."""
    axis = np.array([[1, 0, 0], [0.6, 0, -0.8], [-1 / 3, 2 / 3, 2 / 3]])
    R = 2 * axis[:, :, None] * axis[:, None, :] - np.eye(3)
    w = log(R)
    assert np.abs(np.abs(np.sum(w * axis, axis=1)) - np.pi).max() < 1e-14
    assert np.abs(rods.exp(w) - R).max() < 1e-14


def test_lift_and_project():
    rng = np.random.default_rng(2)
    R, t = rods.exp(rng.normal(size=(5, 3))), rng.normal(size=(5, 3))
    assert np.abs(project(R, lift(R, t)) - t).max() < 1e-14


def test_frames_follow_the_curve_without_twist():
    s = np.linspace(0, 3, 40)
    x = np.stack([np.cos(s), np.sin(s), 0.3 * s], axis=1)
    frames = rods.frames_along(x, up=[0, 0, 1])
    along = np.diff(x, axis=0)
    lengths = np.linalg.norm(along, axis=1)
    assert np.abs(frames[:, :, 2] - along / lengths[:, None]).max() < 1e-14
    assert np.abs(np.linalg.det(frames) - 1).max() < 1e-14
    omega = rods.darboux(frames, lengths)
    assert np.abs(omega[:, 2]).max() < 1e-13
    curvature = 1 / (1 + 0.09)  # of a helix
    assert np.abs(np.linalg.norm(omega, axis=1) - curvature).max() < 1e-3
    for wrong in ("length zero", [[0, 0, 0], [0, 0, 0]]), ("shape", [[0, 0, 0]]):
        with pytest.raises(ValueError, match=wrong[0]):
            rods.frames_along(wrong[1])
    with pytest.raises(ValueError, match="lengths must be positive"):
        rods.darboux(frames, 0 * lengths)
    with pytest.raises(ValueError, match="frames must have shape"):
        rods.darboux(frames, lengths[1:])
    with pytest.raises(ValueError, match="w must have shape"):
        rods.exp([1, 2])
    with pytest.raises(ValueError, match="reverses the direction"):
        rods.frames_along([[0, 0, 0], [1, 0, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match="parallel"):
        rods.frames_along(x[:2], up=along[0])
