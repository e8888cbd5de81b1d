"""Checks of a linearization: accurate, not zero, repeatable, and without side effects."""

import mujoco
import numpy as np

import mujacobian
from mujacobian import reference
from mujacobian.check._judge import (
    CONTACT_TOLERANCE,
    ROW_TOLERANCE,
    SETTLED_MARGIN,
    SMOOTH_TOLERANCE,
    TRUST_MARGIN,
    describe,
)
from tests.scenes.cases import snapshot

__all__ = [
    "CONTACT_TOLERANCE",
    "ROW_TOLERANCE",
    "SMOOTH_TOLERANCE",
    "judge",
    "judge_constrained",
    "linearize_twice",
]


def judge(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[float, int]:
    """Check A, B and Bf at one state; return the share of trusted entries and their number."""
    mujoco.mj_forward(model, data)
    assert data.nefc == 0, "a smooth test must not have constraint rows"
    lin = linearize_twice(model, data)
    ref = reference.jacobian(model, data, forces=True)
    J = np.hstack([lin.A, lin.B, lin.Bf])
    assert J.shape == ref.J[: ref.nx].shape
    result = reference.compare(J, ref.J[: ref.nx], ref.err[: ref.nx], ref.blocks[:4])
    assert result.error <= SMOOTH_TOLERANCE, describe(model, result, J, ref.J, SMOOTH_TOLERANCE)
    if model.nv:
        assert np.any(np.eye(ref.nx) != lin.A), "A is trivial"
        assert np.any(lin.Bf), "Bf is zero"
    assert np.any(lin.B) == np.any(ref.B)
    return result.share, ref.J[: ref.nx].size


def judge_constrained(
    model: mujoco.MjModel, data: mujoco.MjData, tolerance: float, *, forces: bool = True
) -> float:
    """Check A, B and Bf at a state with constraint rows; return the share of trusted entries.

    The model must have been passed to `reference.converge`.
    """
    mujoco.mj_forward(model, data)
    assert data.nefc > 0, "no constraint row in this state"
    lin = linearize_twice(model, data)
    ref = reference.jacobian(
        model, data, forces=forces, constrained=True, settled=tolerance / SETTLED_MARGIN
    )
    J = np.hstack([lin.A, lin.B, lin.Bf])[:, : ref.J.shape[1]]
    assert np.isfinite(J).all(), "not finite"
    result = reference.compare(
        J, ref.J[: ref.nx], ref.err[: ref.nx], ref.blocks[:4], trust=tolerance / TRUST_MARGIN
    )
    assert result.error <= tolerance, describe(model, result, J, ref.J, tolerance)
    assert np.any(lin.Bf), "Bf is zero"
    return result.share


def linearize_twice(model: mujoco.MjModel, data: mujoco.MjData) -> mujacobian.Linearization:
    """Linearize; check that the state does not change and that a repetition is bitwise equal."""
    before, differences = snapshot(model, data), mujacobian.fd_count()
    lin = mujacobian.linearize(model, data, sensors=False, forces=True)
    assert snapshot(model, data) == before, "the caller's state changed"
    again = mujacobian.linearize(model, data, sensors=False, forces=True)
    for block in ("A", "B", "Bf"):
        first, second = getattr(lin, block), getattr(again, block)
        assert first.tobytes() == second.tobytes(), f"{block} is not repeatable"
    assert mujacobian.fd_count() == differences
    return lin
