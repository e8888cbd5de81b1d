"""The Jacobian of one `mj_step` by extrapolated differences: the implementation of `reference`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array
from mujacobian._manifold import tangent_size
from mujacobian._summary import summarize
from mujacobian.check._collider import collider_tolerance, meets_curved
from mujacobian.check._convergence import COLLIDER_TOLERANCES
from mujacobian.check._extrapolation import SETTLED, differentiate
from mujacobian.check._probe import ConstrainedStep, Step, may_sleep, quiet

TRUNCATION = 1e-7  # relative error of derivatives of contact points at the best tolerance
WRAPPING = [int(mujoco.mjtWrap.mjWRAP_SPHERE), int(mujoco.mjtWrap.mjWRAP_CYLINDER)]


@dataclass(frozen=True, repr=False)
class Reference:
    """Derivatives of (q, v, act, sensors), with an estimate of their absolute error.

    The columns are those of (q, v, act, ctrl, qfrc_applied), or those that were requested. `blocks`
    are the boundaries of the four groups of rows, and `evaluations` is the number of steps.
    """

    J: Array
    err: Array
    blocks: list[int]
    nx: int
    nu: int
    evaluations: int

    __repr__ = summarize

    @property
    def A(self) -> Array:
        """State with respect to state."""
        return self.J[: self.nx, : self.nx]

    @property
    def B(self) -> Array:
        """State with respect to controls."""
        return self.J[: self.nx, self.nx : self.nx + self.nu]

    @property
    def C(self) -> Array:
        """Sensors with respect to state."""
        return self.J[self.nx :, : self.nx]

    @property
    def D(self) -> Array:
        """Sensors with respect to controls."""
        return self.J[self.nx :, self.nx : self.nx + self.nu]

    @property
    def Bf(self) -> Array:
        """State with respect to applied forces."""
        return self.J[: self.nx, self.nx + self.nu :]

    @property
    def Df(self) -> Array:
        """Sensors with respect to applied forces."""
        return self.J[self.nx :, self.nx + self.nu :]


def jacobian(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    forces: bool = False,
    constrained: bool = False,
    settled: float = SETTLED,
) -> Reference:
    """Return the Jacobian of one step at the state of `data`, which is not changed.

    With `forces`, columns with respect to `qfrc_applied` follow those of `ctrl`. Use `constrained`
    for states with constraint rows, after `converge(model)`. A column is finished when its relative
    error estimate is below `settled`.

    Any change of a sleeping tree wakes it, so `mj_step` has no derivative along its coordinates. As
    in `linearize`, their columns are those of the identity: the tree keeps its state, and nothing
    else changes.

    Example:
      >>> import mujoco, mujacobian, numpy as np
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody></mujoco>")
      >>> data = mujoco.MjData(model)
      >>> reference = mujacobian.reference.jacobian(model, data)
      >>> lin = mujacobian.linearize(model, data)
      >>> bool(np.abs(reference.A - lin.A).max() < 1e-9)
      True
    """
    nz = tangent_size(model) + model.nu + model.nv
    columns = nz if forces else nz - model.nv
    return directional(model, data, np.eye(nz)[:columns], constrained=constrained, settled=settled)


def directional(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    directions: ArrayLike,
    *,
    constrained: bool = False,
    settled: float = SETTLED,
) -> Reference:
    """Return derivatives of one step along `directions` (n, nz), one column each; see `jacobian`.

    A direction is (dq, dv, dact, dctrl, dforce) in tangent coordinates, nz = 3 nv + na + nu.
    """
    directions = np.asarray(directions, dtype=np.float64)
    with quiet():
        wraps = np.isin(model.wrap_type, WRAPPING).any()
        branches = constrained or wraps or model.opt.density > 0 or may_sleep(model)
        kind = ConstrainedStep if branches else Step
        step = kind(model, data)
        truncated = meets_curved(model, step.data)
        J, err = differentiate(step, directions, settled)
        evaluations = step.evaluations
        if truncated and model.opt.ccd_tolerance == COLLIDER_TOLERANCES[0]:
            with collider_tolerance(model, COLLIDER_TOLERANCES[1]):
                finer = kind(model, data)
                other, other_err = differentiate(finer, directions, settled)
            evaluations += finer.evaluations
            err = np.maximum(np.maximum(err, other_err), abs(J - other))
            moves = directions[:, : model.nv].any(axis=1)
            for lo, hi in pairwise(step.blocks):
                largest = abs(J[lo:hi, moves]).max(initial=0.0)
                err[lo:hi, moves] = np.maximum(err[lo:hi, moves], TRUNCATION * largest)
    return Reference(J, err, step.blocks, step.nx, model.nu, evaluations)
