"""Random poses of every pair of geoms: few are refused, and all others are exact.

`python -m benchmarks.pairs` checks many more.
"""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from mujacobian.check._convergence import COLLIDER_TOLERANCES
from mujacobian.check._judge import CONTACT_TOLERANCE, SETTLED_MARGIN, TRUST_MARGIN, describe
from tests.oracle.directional import is_kink
from tests.scenes.random_pairs import KINDS, PAIRS, REFUSED, is_curved, poses

# Even a converged collider may leave an angle between its normal and the surface at its witness
# point. The force of a stiff contact then has an error of some hundred times this angle, and so
# does the derivative. In about one pose of a hundred it exceeds CONTACT_TOLERANCE.
COLLIDER_ANGLE = 1e-9
COLLIDER_TOLERANCE = 1e-5

POSES, JUDGED = 2 * len(KINDS), 4
SLOW_POSES, SLOW_JUDGED = 200, 8
APART = len(KINDS) + 1  # the judged poses of a pair have different kinds, cones and dimensions


# the order of the geoms only changes which joints move them
ORDERED = [
    pytest.param(*pair, marks=[pytest.mark.slow] if pair[::-1] in PAIRS[:k] else [])
    for k, pair in enumerate(PAIRS)
]


@pytest.mark.parametrize(("first", "second"), ORDERED)
def test_random_poses(first: str, second: str) -> None:
    # with so few poses, a rare refusal has a large share
    assert _refused(first, second, POSES) <= max(1 / POSES, REFUSED)
    _judge_some(first, second, JUDGED, seed=1)


@pytest.mark.slow
def test_few_poses_are_refused() -> None:
    shares = {pair: _refused(*pair, SLOW_POSES) for pair in PAIRS}
    print()
    for (first, second), share in shares.items():
        print(f"{first + '-' + second:22s} {share:6.1%} refused")
    # one refusal of 200 is more than the permitted share
    assert not {pair: share for pair, share in shares.items() if share > 1 / SLOW_POSES}


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_more_random_poses(first: str, second: str) -> None:
    _judge_some(first, second, SLOW_JUDGED, seed=2)


def _refused(first: str, second: str, count: int) -> float:
    """Return the share of refused poses; the derivatives of the others must be finite."""
    refused = 0
    for model, data in poses(first, second, range(count)):
        try:
            lin = mujacobian.linearize(model, data, sensors=False)
        except mujacobian.UnsupportedFeatureError:
            refused += 1
        else:
            assert np.isfinite(lin.A).all()
    return refused / count


def _judge_some(first: str, second: str, count: int, seed: int) -> None:
    """Compare some poses, of every kind, cone and dimension in turn, with the reference."""
    if is_curved(first, second):
        count //= 2  # the reference is twice as slow there
    start = PAIRS.index((first, second)) % len(KINDS)  # so that all kinds are judged
    for model, data in poses(first, second, range(start, start + APART * count, APART), seed):
        try:
            J, tolerance = _linearize(model, data)
        except mujacobian.UnsupportedFeatureError:
            continue  # another test checks their share
        ref = reference.jacobian(
            model, data, constrained=True, settled=CONTACT_TOLERANCE / SETTLED_MARGIN
        )
        trust = CONTACT_TOLERANCE / TRUST_MARGIN
        blocks = ref.blocks[:4]
        result = reference.compare(J, ref.J[: ref.nx], ref.err[: ref.nx], blocks, trust=trust)
        row, column = result.worst()
        if result.error > tolerance and is_kink(
            reference.ConstrainedStep(model, data),
            np.eye(3 * model.nv + model.na + model.nu)[column],
            row,
            ref.J[row, column],
            J[row, column],
        ):
            continue  # the reference has missed a kink
        assert result.error <= tolerance, describe(model, result, J, ref.J, tolerance)


def _linearize(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, float]:
    """Return the derivative with a converged collider, and the required accuracy."""
    tolerance = CONTACT_TOLERANCE
    if reference.meets_curved(model, data):
        model.opt.ccd_tolerance = COLLIDER_TOLERANCES[1]
        mujoco.mj_forward(model, data)
        if collider_error(model, data) > COLLIDER_ANGLE:
            tolerance = COLLIDER_TOLERANCE
    try:
        lin = mujacobian.linearize(model, data, sensors=False)
    finally:
        model.opt.ccd_tolerance = COLLIDER_TOLERANCES[0]
        mujoco.mj_forward(model, data)
    return np.hstack([lin.A, lin.B]), tolerance


def collider_error(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Return the largest angle between a contact's normal and the curved surface at its point."""
    worst = 0.0
    for contact in data.contact:
        for geom, side in zip(contact.geom, (-1, 1), strict=True):
            R = data.geom_xmat[geom].reshape(3, 3)
            point = contact.pos + side * contact.dist / 2 * contact.frame[:3] - data.geom_xpos[geom]
            worst = max(
                worst,
                _angle(
                    model.geom_type[geom],
                    model.geom_size[geom],
                    R.T @ contact.frame[:3],
                    R.T @ point,
                ),
            )
    return worst


def _angle(kind: int, size: np.ndarray, normal: np.ndarray, point: np.ndarray) -> float:
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        surface = point / size**2
        return float(np.linalg.norm(np.cross(surface, normal)) / np.linalg.norm(surface))
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER and np.hypot(*normal[:2]) > 1e-6:
        lateral = np.linalg.norm(point[:2]) * np.hypot(*normal[:2])
        return float(abs(point[0] * normal[1] - point[1] * normal[0]) / lateral)
    return 0.0
