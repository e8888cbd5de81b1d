"""Second derivatives of a step by extrapolated differences of the analytic A, B and Bf."""

from dataclasses import dataclass
from itertools import pairwise

import mujoco
import numpy as np

import mujacobian
from tests.oracle.extrapolation import derivative

FIRST_STEP = 0.02  # rad, m, and the units of velocities, activations, controls and forces
LEVELS = 7  # halvings of the step
# Contacts have their impedance and their zones within a millimeter. A larger step would be on other
# branches on both sides, where differences settle, too.
CONTACT_STEP = 3e-4
CONTACT_LEVELS = 9
ACCURATE = 0.1  # error of differences that are trusted, as a share of the tolerance
SETTLED = 3  # halvings of the step before extrapolated differences of smooth functions settle
NEGLIGIBLE = 1e-2  # of the largest entry: smaller blocks are relative to this share
TINY = 1e-12
SPEC = mujoco.mjtState.mjSTATE_INTEGRATION


@dataclass
class Differences:
    """Derivatives of `(A, B)^T cotangent` and their error estimate, relative to the largest."""

    raw: np.ndarray  # row: entry of the product; column: direction
    error: float

    @property
    def hessian(self) -> np.ndarray:
        """The second derivative in exponential coordinates: the symmetric part."""
        return 0.5 * (self.raw + self.raw.T)


class Pulled:
    """The function `(A, B, Bf)^T cotangent` of a change of `(state, controls, applied forces)`.

    If `sensed`, a cotangent of the sensors, is given, `(C, D, Df)^T sensed` is added.
    """

    def __init__(self, model, data, cotangent, sensed=None, *, forces=False):
        self.model, self.cotangent, self.sensed, self.forces = model, cotangent, sensed, forces
        self.size = 2 * model.nv + model.na + model.nu + (model.nv if forces else 0)
        self.data = mujoco.MjData(model)
        self.start = np.empty(mujoco.mj_stateSize(model, SPEC))
        mujoco.mj_getState(model, data, self.start, SPEC)

    def __call__(self, change):
        model, data = self.model, self.data
        mujoco.mj_setState(model, data, self.start, SPEC)
        sizes = np.cumsum([model.nv, model.nv, model.na, model.nu])
        dq, dv, da, du, df = np.split(change, sizes)
        mujoco.mj_integratePos(model, data.qpos, dq, 1.0)
        data.qvel += dv
        data.act += da
        data.ctrl += du
        if self.forces:
            data.qfrc_applied += df
        lin = mujacobian.linearize(model, data, sensors=self.sensed is not None, forces=self.forces)
        blocks = [lin.A, lin.B, *([lin.Bf] if self.forces else [])]
        pulled = np.concatenate([block.T @ self.cotangent for block in blocks])
        if self.sensed is None:
            return pulled
        blocks = [lin.C, lin.D, *([lin.Df] if self.forces else [])]
        return pulled + np.concatenate([block.T @ self.sensed for block in blocks])


def differences(
    model, data, cotangent, sensed=None, *, forces=False, step=FIRST_STEP
) -> Differences:
    """Return the derivatives of the pulled-back cotangent along all coordinates."""
    function = Pulled(model, data, cotangent, sensed, forces=forces)
    raw = np.empty((function.size, function.size))
    errors = np.empty(function.size)
    for k in range(function.size):
        raw[:, k], errors[k] = _extrapolate(function, k, step)
    return Differences(raw, errors.max() / (abs(raw).max() or 1.0))


def _extrapolate(function, k, first=FIRST_STEP, levels=LEVELS):
    """Return the derivative along coordinate k, and its error estimate."""
    along = np.eye(function.size)[k]
    return derivative(lambda step: function(step * along), first, levels)


def brackets(model, data, cotangent, sensed=None) -> np.ndarray:
    """Return the antisymmetric part of the derivative of `(A, B)^T cotangent`, twice.  (HES-3)

    `(C, D)^T sensed` is added to the function if `sensed` is given.
    """
    lin = mujacobian.linearize(model, data, sensors=sensed is not None)
    A = np.hstack([lin.A, lin.B])
    pulled = A.T @ cotangent
    if sensed is not None:
        pulled += np.hstack([lin.C, lin.D]).T @ sensed
    result = np.zeros((A.shape[1], A.shape[1]))
    for first in _rotations(model):
        rows = slice(first, first + 3)
        result -= np.einsum("i,ijk->jk", cotangent[rows], _crossed(A[rows]))
        result[rows, rows] += np.einsum("i,ijk->jk", pulled[rows], _crossed(np.eye(3)))
    return result


def judge_brackets(model, data, *, tolerance, least=1e-4, step=FIRST_STEP) -> None:
    """Assert (HES-3): the differences of A and B are those of the derivative of one function.

    `tolerance` is relative to the largest entry, and the brackets reach at least `least`.
    """
    given = cotangent(model)
    raw = differences(model, data, given, step=step).raw
    expected = brackets(model, data, given)
    assert abs(expected).max() > least
    np.testing.assert_allclose(raw - raw.T, expected, atol=tolerance * abs(raw).max())


def _rotations(model):
    """Yield the first dof of every rotation of a ball or free joint."""
    for kind, dof in zip(model.jnt_type, model.jnt_dofadr, strict=True):
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            yield dof + 3
        elif kind == mujoco.mjtJoint.mjJNT_BALL:
            yield dof


def _crossed(columns):
    """Return [i, j, k]: component i of column k times column j."""
    return np.cross(columns[:, None, :], columns[:, :, None], axis=0)


def judge_columns(
    model, data, *, tolerance, sensed=None, seed=0, step=CONTACT_STEP, levels=CONTACT_LEVELS
) -> float:
    """Assert that `hessian` agrees with the columns that differences determine; return their share.

    A column near a kink, where a contact leaves its branch, has differences that do not settle. The
    other ones are compared by blocks of positions, velocities and other inputs, relative to the
    largest entry of the block. An entry of the Hessian follows from one column, because the
    antisymmetric part of the differences is known. A block that is so small beside A that rounding
    hides it from all differences is compared up to this rounding.
    """
    given = _given(model, sensed, seed)
    found = joined(mujacobian.hessian(model, data, given, sensed))
    assert (found == found.T).all()
    function = Pulled(model, data, given, sensed)
    values = abs(function(np.zeros(function.size))).max(initial=0)
    rounding = np.finfo(float).eps * values * 2**SETTLED / step
    least = max(NEGLIGIBLE * abs(found).max(), rounding / (ACCURATE * tolerance), TINY)
    half = 0.5 * brackets(model, data, given, sensed)
    edges = [0, model.nv, 2 * model.nv, function.size]
    blocks = [slice(*pair) for pair in pairwise(edges)]
    compared = trusted = 0
    for across in blocks:
        for k in range(across.start, across.stop):
            column, error = _extrapolate(function, k, step, levels)
            for rows in blocks:
                scale = max(abs(found[rows, across]).max(initial=0), least)
                compared += 1
                if error > ACCURATE * tolerance * scale:
                    continue
                trusted += 1
                off = abs(column - half[:, k] - found[:, k])[rows].max(initial=0)
                assert off <= tolerance * scale, f"column {k}: {off / scale:.1e} of {scale:.1e}"
    return trusted / max(compared, 1)


def column_errors(model, data, *, columns, trust, seed=0) -> list[float]:
    """Return the errors of some columns of `hessian`, relative to its largest entry.

    Columns whose differences are less accurate than `trust` are left out.
    """
    given = cotangent(model, seed)
    found = joined(mujacobian.hessian(model, data, given))
    function = Pulled(model, data, given)
    half = 0.5 * brackets(model, data, given)
    scale = abs(found).max()
    errors = []
    for k in np.random.default_rng(seed).permutation(function.size)[:columns]:
        try:
            column, error = _extrapolate(function, k, CONTACT_STEP, CONTACT_LEVELS)
        except mujacobian.UnsupportedFeatureError:  # a neighboring state
            continue
        if error < trust * scale:
            errors.append(abs(column - half[:, k] - found[:, k]).max() / scale)
    return errors


def joined(h: mujacobian.Hessian) -> np.ndarray:
    """Return the blocks of a result as one matrix."""
    if h.ff is None:
        return np.block([[h.xx, h.xu], [h.xu.T, h.uu]])
    return np.block([[h.xx, h.xu, h.xf], [h.xu.T, h.uu, h.uf], [h.xf.T, h.uf.T, h.ff]])


def cotangent(model, seed=0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=2 * model.nv + model.na)


def _given(model, sensed, seed):
    """Return a cotangent of the next state, which is small beside a cotangent of sensors."""
    given = cotangent(model, seed)
    # the second derivatives of the step alone have their own tests
    return given if sensed is None else 1e-3 * given


def judge(model, data, *, tolerance, sensed=None, forces=False, seed=0) -> float:
    """Assert that `hessian` agrees with the differences; return the largest entry."""
    given = _given(model, sensed, seed)
    found = joined(mujacobian.hessian(model, data, given, sensed, forces=forces))
    expected = differences(model, data, given, sensed, forces=forces)
    scale = abs(expected.hessian).max()
    assert expected.error < tolerance, f"the differences are accurate to {expected.error:.1e} only"
    error = abs(found - expected.hessian).max()
    assert error <= tolerance * scale, f"error {error / (scale or 1):.1e} of {scale:.1e}"
    return scale
