"""One judgement of a linearization: accurate, not zero, repeatable, and without side effects."""

import mujoco
import numpy as np

import mujacobian
import reference
from cases import snapshot

# The bar of the project without constraints; the reference is five times better where trusted.
SMOOTH_TOLERANCE = 1e-9


def judge(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[float, int]:
    """Check A, B and Bf at one state; return the share of trusted entries and their number."""
    mujoco.mj_forward(model, data)
    assert data.nefc == 0, "a smooth test must not have constraint rows"
    before = snapshot(model, data)
    lin = mujacobian.linearize(model, data, sensors=False, forces=True)
    assert snapshot(model, data) == before, "the caller's state changed"
    again = mujacobian.linearize(model, data, sensors=False, forces=True)
    for block in ("A", "B", "Bf"):
        first, second = getattr(lin, block), getattr(again, block)
        assert first.tobytes() == second.tobytes(), f"{block} is not repeatable"
    assert mujacobian.fd_count() == 0

    ref = reference.jacobian(model, data, forces=True)
    J = np.hstack([lin.A, lin.B, lin.Bf])
    assert J.shape == ref.J[: ref.nx].shape
    result = reference.compare(J, ref.J[: ref.nx], ref.err[: ref.nx], ref.blocks[:4])
    assert result.error <= SMOOTH_TOLERANCE, describe(model, result, J, ref)
    if model.nv:
        assert np.any(np.eye(ref.nx) != lin.A), "A is trivial"
        assert np.any(lin.Bf), "Bf is zero"
    assert np.any(lin.B) == np.any(ref.B)
    return result.share, ref.J[: ref.nx].size


def describe(
    model: mujoco.MjModel,
    result: reference.Comparison,
    J: np.ndarray,
    ref: reference.Reference,
) -> str:
    """Say where the worst entry is and how many entries fail."""
    row, column = result.worst()
    rows = [("q", model.nv), ("v", model.nv), ("act", model.na)]
    columns = [*rows, ("ctrl", model.nu), ("qfrc_applied", model.nv)]
    bad = np.argwhere(result.matrix > SMOOTH_TOLERANCE)
    return (
        f"relative error {result.error:.2e} at d{_where(rows, row)}'/d{_where(columns, column)}: "
        f"{J[row, column]:.12g} given, {ref.J[row, column]:.12g} expected; "
        f"{len(bad)} of {J.size} entries fail, columns "
        f"{sorted({_where(columns, int(c)) for _, c in bad})}"
    )


def _where(groups: list[tuple[str, int]], index: int) -> str:
    for name, size in groups:
        if index < size:
            return f"{name}[{index}]"
        index -= size
    raise IndexError(index)
