"""Comparison of a linearization with the reference: tolerances, and the worst entry by name."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian._linearization import Linearization, linearize_without_selfcheck
from mujacobian._manifold import tangent_size
from mujacobian.check._comparison import Comparison, compare
from mujacobian.check._convergence import converge
from mujacobian.check._entry_names import block_of, column_name, row_name
from mujacobian.check._extrapolation import SETTLED
from mujacobian.check._probe import Step, quiet, same_state
from mujacobian.check._reference import directional
from mujacobian.errors import MujacobianError

# The tolerance without constraints.
SMOOTH_TOLERANCE = 1e-9
# The tolerances with constraint rows, and with contacts.
ROW_TOLERANCE = 1e-8
CONTACT_TOLERANCE = 1e-6
# An entry is compared if the reference is this many times more accurate than the tolerance.
TRUST_MARGIN = 5
# The step of central differences at a model's own settings, where they are most accurate.
OWN_STEP = 1e-6
# The reference stops when it is this many times more accurate than the tolerance.
SETTLED_MARGIN = 1000


def tolerance_at(data: mujoco.MjData) -> float:
    """Return the tolerance for the state in `data`, on which `mj_forward` has been called."""
    if data.nefc == 0:
        return SMOOTH_TOLERANCE
    return CONTACT_TOLERANCE if data.ncon else ROW_TOLERANCE


def converged(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a copy of the model whose solver converges, and its own data in the same state."""
    other = converge(copy.copy(model))
    same = same_state(other, data)
    mujoco.mj_forward(other, same)
    return other, same


def stack(lin: Linearization) -> Array:
    """Return [[A, B, Bf], [C, D, Df]], without the blocks that are None."""
    rows = [[lin.A, lin.B, lin.Bf], [lin.C, lin.D, lin.Df]]
    present = [[block for block in row if block is not None] for row in rows]
    return np.vstack([np.hstack(row) for row in present if row])


class Judge:
    """The reference at one state of a model, and comparisons of Jacobians with it.

    Neither model nor data are changed: a copy whose solver converges is differentiated. `columns`
    selects columns of [q, v, act, ctrl, qfrc_applied], by default all but those of qfrc_applied.
    `blocks` are the boundaries of the groups of rows: q, v, act and every sensor.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        *,
        columns: Sequence[int] | None = None,
        forces: bool = False,
    ) -> None:
        with quiet():
            other, same = converged(model, data)
        nz = 3 * model.nv + model.na + model.nu
        chosen = range(nz if forces else nz - model.nv) if columns is None else columns
        self.model = model
        self.columns = np.array(chosen, dtype=int)
        self.tolerance = tolerance_at(same)
        smooth = same.nefc == 0
        self.reference = directional(
            other,
            same,
            np.eye(nz)[self.columns],
            constrained=not smooth,
            settled=SETTLED if smooth else self.tolerance / SETTLED_MARGIN,
        )
        nv, nx = model.nv, tangent_size(model)
        sensors = (nx + model.sensor_adr + model.sensor_dim).tolist()
        self.blocks = [0, nv, 2 * nv, nx, *sensors]

    def compare(self, J: Array) -> Comparison:
        """Compare all columns of [[A, B, ...], [C, D, ...]]; the sensors' rows may be missing."""
        rows, ref = len(J), self.reference
        blocks = self.blocks if rows > ref.nx else self.blocks[:4]
        trust = self.tolerance / TRUST_MARGIN
        return compare(J[:, self.columns], ref.J[:rows], ref.err[:rows], blocks, trust)

    def at_own_settings(self, data: mujoco.MjData) -> Array:
        """Return central differences of `mj_step` at the model's own settings.

        The columns are those of `compare`. They are not extrapolated, because a solver that stops
        early takes other branches at larger steps.
        """
        with quiet():
            step = Step(self.model, data)
            directions = OWN_STEP * np.eye(step.nz)[self.columns]
            slopes = [(step(z) - step(-z)) / (2 * OWN_STEP) for z in directions]
        return np.array(slopes).T.reshape(-1, len(self.columns))

    def compare_with(self, own: Array, J: Array) -> Comparison:
        """Compare J with the result of `at_own_settings`."""
        blocks = self.blocks if len(J) > self.reference.nx else self.blocks[:4]
        own = own[: len(J)]
        return compare(J[:, self.columns], own, np.zeros_like(own), blocks)

    def error_when_converged(self, data: mujoco.MjData, *, sensors: bool) -> float:
        """Return our error on a copy with a converged solver and collider, infinite if it raises.

        For curved geoms the collider stops within `opt.ccd_tolerance`. If this causes an error, the
        error on the copy is smaller than on the model itself.
        """
        try:
            with quiet():
                lin = linearize_without_selfcheck(*converged(self.model, data), sensors=sensors)
        except MujacobianError:
            return float("inf")
        return self.compare(stack(lin)).error

    def block_errors(self, result: Comparison) -> dict[str, float]:
        """Return the worst error of each block that has entries in a comparison."""
        nx, nu = self.reference.nx, self.reference.nu
        groups = [self.columns < nx, (self.columns >= nx) & (self.columns < nx + nu)]
        errors = {}
        for names, rows in (("AB", result.matrix[:nx]), ("CD", result.matrix[nx:])):
            for name, group in zip(names, groups, strict=True):
                if rows[:, group].size:
                    errors[name] = float(rows[:, group].max())
        return errors

    def describe(self, result: Comparison, J: Array) -> str:
        """Return a text with the worst entry, its expected value, and the number of errors."""
        given, expected = J[:, self.columns], self.reference.J
        return describe(self.model, result, given, expected, self.tolerance, self.columns)


def describe(
    model: mujoco.MjModel,
    result: Comparison,
    given: Array,
    expected: Array,
    tolerance: float,
    columns: NDArray[np.int_] | None = None,
) -> str:
    """Return a text with the worst entry, the expected value, and the number of wrong entries.

    `columns` are the indices of the columns of `given`, if it does not have all of them.
    """
    row, j = result.worst()
    column = j if columns is None else int(columns[j])
    block, i, k = block_of(model, row, column)
    bad = int((result.matrix > tolerance).sum())
    return (
        f"relative error {result.error:.1e} in {block}[{i}, {k}], the derivative of "
        f"{row_name(model, row)} with respect to {column_name(model, column)}: "
        f"{given[row, j]:.12g} given, {expected[row, j]:.12g} expected; "
        f"{bad} of {result.matrix.size} entries are off by more than {tolerance:.0e}"
    )
