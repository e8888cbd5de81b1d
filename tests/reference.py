"""Trusted numerical Jacobians of one mj_step, for judging analytic ones.

Every column is a ladder of central differences of the full `mj_step`, extrapolated to zero step
(Richardson). The ladder starts at a step as large as the map's own scale, where rounding is
harmless, and shrinks until the extrapolation has settled; the entry of the tableau with the
smallest error estimate is kept. The rounding of the map is measured, not guessed. A ladder that
straddles a clamp or a dead band does not settle until its steps are inside one branch, so the
estimate stays honest; a column whose left and right differences disagree at the smallest step sits
on a kink and is excluded (infinite error).

With constraints (`ConstrainedStep`), the solver is converged and every probe reports its branch:
which rows exist, their zones, saturated impedances. The ladder starts at the largest step whose two
probes are in the branch of the state itself; a column without such a step sits on a kink.

`mujoco.mjd_transitionFD` is not used: it is what we want to be better than.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import mujoco
import numpy as np

STATE = mujoco.mjtState.mjSTATE_INTEGRATION

RATIO = 1.5  # between steps of the ladder: small, so that high orders are reached at large steps
LEVELS = 34  # 1.5^33: from the map's scale down to a millionth of it
SETTLED = 3e-12  # relative error estimate at which a ladder stops early, unless told
NEARLY = 1e-7  # below it a ladder that no longer improves has met rounding
PATIENCE = 8  # levels without improvement, then
NOISE_STEP = 1e-8  # between the samples from which rounding is measured
NOISE_SAMPLES = 16
AMPLIFICATION = 8.0  # standard deviations of rounding, of two values and their extrapolation
Q_STEP = 0.4  # rad or m: inside the radius of convergence of M^-1 and of tendon paths
V_STEP = 1.0  # rad/s or m/s: the step is nearly polynomial in velocities
KINK_STEPS = (1.0, 0.1)  # of the ladder's last step, which is inside one branch
KINK = 1e-3  # one-sided derivatives that differ by more are two derivatives
TRUST = 2e-10  # of the scale of the block: five times better than the bar of 1e-9
BLOCK_FLOOR = 1e-3  # a block of rows weighs at least this share of its column
COLUMN_FLOOR = 1e-9  # below it a column counts as zero
BRANCH_RATIO = 3.0  # between the steps tried until both probes are in the branch of the state
WRAPPING = [mujoco.mjtWrap.mjWRAP_SPHERE, mujoco.mjtWrap.mjWRAP_CYLINDER]
SMALLEST = 1e-7  # a branch narrower than this is a kink
SOLVER_ITERATIONS = 20  # Newton is quadratic: enough from a warm start, and always all of them
EQUALITY = int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
FRICTION = [
    int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF),
    int(mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON),
]
ELLIPTIC = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_ELLIPTIC)
SATISFIED, QUADRATIC, LINEARNEG, LINEARPOS, CONE = range(5)


@dataclass(frozen=True)
class Reference:
    """Rows (q, v, act, sensors), columns (q, v, act, ctrl, qfrc_applied); `err` is absolute."""

    J: np.ndarray
    err: np.ndarray
    blocks: list[int]
    nx: int
    nu: int

    @property
    def A(self) -> np.ndarray:
        return self.J[: self.nx, : self.nx]

    @property
    def B(self) -> np.ndarray:
        return self.J[: self.nx, self.nx : self.nx + self.nu]

    @property
    def Bf(self) -> np.ndarray:
        return self.J[: self.nx, self.nx + self.nu :]


@dataclass(frozen=True)
class Comparison:
    """Worst relative error over trusted entries, share of trusted entries, error of each entry."""

    error: float
    share: float
    matrix: np.ndarray

    def worst(self) -> tuple[int, int]:
        """Row and column of the worst entry."""
        row, column = np.unravel_index(np.argmax(self.matrix), self.matrix.shape)
        return int(row), int(column)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep MuJoCo's warnings (a singular matrix far from the state) out of stderr and log files."""
    previous = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(previous)


class Step:
    """z = (dq, dv, dact, dctrl, dforce) -> (q', v', act', sensors) in tangent coordinates.

    dq moves the state by `mj_integratePos`; q' is measured by `mj_differentiatePos` from the q' of
    z = 0, so the derivative at zero is that of `mjd_transitionFD`'s conventions.
    """

    zero_is_exact = True  # with large steps, a row that does not move at all is independent

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        nv, na = model.nv, model.na
        self.nx = 2 * nv + na
        self.nz = self.nx + model.nu + nv
        self.blocks = [0, nv, 2 * nv, self.nx, self.nx + model.nsensordata]
        self.origin = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, self.origin, STATE)
        self.center = data.qpos.copy()
        self.speed = data.qvel.copy()
        self(np.zeros(self.nz))
        self.center = self.data.qpos.copy()
        self.value = self(np.zeros(self.nz))
        if not np.isfinite(self.value).all():
            raise ArithmeticError("the step is not finite at this state")
        self.noise = self._noise()

    def __call__(self, z: np.ndarray) -> np.ndarray:
        m, d, nv, na = self.model, self.data, self.model.nv, self.model.na
        mujoco.mj_setState(m, d, self.origin, STATE)
        mujoco.mj_integratePos(m, d.qpos, z[:nv], 1.0)
        d.qvel += z[nv : 2 * nv]
        d.act += z[2 * nv : 2 * nv + na]
        d.ctrl += z[self.nx : self.nx + m.nu]
        d.qfrc_applied += z[self.nx + m.nu :]
        mujoco.mj_step(m, d)
        if d.warning.number.any():  # singular or not finite here: no use to a ladder
            d.warning.number[:] = 0
            return np.full(self.blocks[-1], np.nan)
        out = np.empty(self.blocks[-1])
        mujoco.mj_differentiatePos(m, out[:nv], 1.0, self.center, d.qpos)
        out[nv:] = np.concatenate([d.qvel, d.act, d.sensordata])
        return out

    def inside(self, j: int, h: float) -> float:
        """Return the largest step <= h of column j that stays in the branch of the state."""
        return h

    def _noise(self) -> np.ndarray:
        """Return the standard deviation of each row's rounding.

        Fourth differences of equidistant samples so close together that only rounding is left;
        those of independent errors have 1 + 16 + 36 + 16 + 1 = 70 times their variance.
        """
        direction = np.random.default_rng(0).uniform(0.5, 1.0, self.nz) * NOISE_STEP
        samples = np.array([self(k * direction) for k in range(NOISE_SAMPLES)])
        noise = np.sqrt((np.diff(samples, 4, axis=0) ** 2).mean(axis=0) / 70)
        return np.maximum(noise, np.finfo(float).eps * abs(self.value) / 4)


class ConstrainedStep(Step):
    """A step whose map is smooth only within a branch of its constraint rows and tendons."""

    zero_is_exact = False  # small steps move a row by less than its resolution

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        warm = mujoco.MjData(model)
        mujoco.mj_copyData(warm, model, data)
        mujoco.mj_forward(model, warm)
        warm.qacc_warmstart[:] = warm.qacc
        super().__init__(model, warm)
        self(np.zeros(self.nz))
        self.branch = branch(model, self.data)

    def inside(self, j: int, h: float) -> float:
        while h > SMALLEST:
            if all(self._same_branch(j, s) for s in (h, -h)):
                return h
            h /= BRANCH_RATIO
        return 0.0

    def _same_branch(self, j: int, h: float) -> bool:
        finite = np.isfinite(_moved(self, j, h)).all()
        return bool(finite and branch(self.model, self.data) == self.branch)


def converge(model: mujoco.MjModel) -> mujoco.MjModel:
    """Make the solver of `model` stop at machine precision only; return the model."""
    model.opt.tolerance = 0
    model.opt.iterations = SOLVER_ITERATIONS
    model.opt.ls_iterations = 50
    model.opt.ls_tolerance = 1e-12
    model.opt.ccd_tolerance = 1e-13
    model.opt.ccd_iterations = 500
    return model


def branch(model: mujoco.MjModel, data: mujoco.MjData) -> bytes:
    """Return which rows exist, in which zones, with which impedances saturated, and what wraps."""
    rows = [
        data.ten_wrapnum,
        data.efc_type,
        data.efc_id,
        zones(model, data),
        data.efc_KBIP[:, 3] == 0,
    ]
    return b"".join(np.asarray(row, dtype=np.int32).tobytes() for row in (*rows, data.contact.geom))


def zones(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Return the state of every row at `data.qacc`; MuJoCo's own `efc_state` may be stale."""
    if data.nefc == 0:
        return np.zeros(0, dtype=int)
    jar = np.empty(data.nefc)
    mujoco.mj_mulJacVec(model, data, jar, data.qacc)
    jar -= data.efc_aref
    kind = data.efc_type
    zone = np.where(jar < 0, QUADRATIC, SATISFIED)
    zone[kind == EQUALITY] = QUADRATIC
    for i in np.flatnonzero(np.isin(kind, FRICTION)):
        bound = data.efc_R[i] * data.efc_frictionloss[i]
        zone[i] = LINEARNEG if jar[i] <= -bound else LINEARPOS if jar[i] >= bound else QUADRATIC
    if (kind != ELLIPTIC).all():
        return zone
    contacts = data.contact
    for i, dim, mu, friction in zip(
        contacts.efc_address, contacts.dim, contacts.mu, contacts.friction, strict=True
    ):
        if i >= 0 and kind[i] == ELLIPTIC:
            zone[i : i + dim] = _cone_zone(float(mu), friction[: dim - 1], jar[i : i + dim])
    return zone


def _cone_zone(mu: float, friction: np.ndarray, jar: np.ndarray) -> int:
    normal, tangential = mu * jar[0], float(np.linalg.norm(friction * jar[1:]))
    if normal >= mu * tangential:
        return SATISFIED
    return QUADRATIC if mu * normal + tangential <= 0 else CONE


def jacobian(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    forces: bool = False,
    constrained: bool = False,
    settled: float = SETTLED,
) -> Reference:
    """Return the Jacobian of one step at the state of `data`, which is left unchanged.

    With `forces`, columns with respect to `qfrc_applied` follow those of `ctrl`. `constrained`
    is for states with constraint rows, of a model whose solver has been made to `converge`.
    Columns whose relative error estimate is below `settled` are not improved any further.
    """
    with quiet():
        wraps = np.isin(model.wrap_type, WRAPPING).any()
        step = ConstrainedStep(model, data) if constrained or wraps else Step(model, data)
        columns = step.nz if forces else step.nx + model.nu
        J = np.empty((step.blocks[-1], columns))
        err = np.empty_like(J)
        for j in range(columns):
            J[:, j], err[:, j] = _column(step, j, settled)
    return Reference(J, err, step.blocks, step.nx, model.nu)


def compare(
    J: np.ndarray, ref: np.ndarray, err: np.ndarray, blocks: list[int], trust: float = TRUST
) -> Comparison:
    """Compare J with a reference, entry by entry where the reference is trusted.

    Errors are relative to the largest entry of the same column within the same block of rows, at
    least `BLOCK_FLOOR` of the column's largest.
    """
    scale = _scale(ref, blocks)
    trusted = err <= trust * scale
    matrix = np.where(trusted, abs(J - ref) / scale, 0.0)
    matrix[trusted & ~np.isfinite(J)] = np.inf
    share = float(trusted.mean()) if trusted.size else 1.0
    return Comparison(float(matrix.max(initial=0.0)), share, matrix)


def _scale(ref: np.ndarray, blocks: list[int]) -> np.ndarray:
    """Return the size against which an error counts, for every entry."""
    column = np.maximum(abs(ref).max(axis=0, initial=0.0), COLUMN_FLOOR)
    scale = np.empty_like(ref)
    for lo, hi in pairwise(blocks):
        largest = abs(ref[lo:hi]).max(axis=0, initial=0.0)
        scale[lo:hi] = np.maximum(largest, BLOCK_FLOOR * column)
    return scale


def _column(step: Step, j: int, settled: float = SETTLED) -> tuple[np.ndarray, np.ndarray]:
    """Return one column and its error: Richardson's tableau over a shrinking ladder of steps."""
    first = step.inside(j, _first_step(step, j))
    best = np.zeros(step.blocks[-1])
    err = np.full(step.blocks[-1], np.inf)
    if first == 0:
        return best, err
    previous: list[np.ndarray] = []
    idle = 0
    for level in range(LEVELS):
        h = first / RATIO**level
        before = err.copy()
        row = [_central(step, j, h)]
        for k, older in enumerate(previous):
            row.append(row[k] + (row[k] - older) / (RATIO ** (2 * k + 2) - 1))
            spread = np.maximum(abs(row[k + 1] - row[k]), abs(row[k + 1] - older))
            # a row that moved at all carries the rounding of both its values
            floor = AMPLIFICATION / 2 * step.noise / h
            if step.zero_is_exact:
                floor[row[0] == 0] = 0.0
            _keep(step.blocks, row[k + 1], np.maximum(spread, floor), best, err)
        previous = row
        relative = (err / _scale(best[:, None], step.blocks)[:, 0]).max(initial=0.0)
        idle = 0 if (err < before).any() else idle + 1
        if relative <= settled or (relative <= NEARLY and idle >= PATIENCE):
            break
    if _is_kink(step, j, h, best):
        err[:] = np.inf
    return best, err


def _keep(
    blocks: list[int], value: np.ndarray, spread: np.ndarray, best: np.ndarray, err: np.ndarray
) -> None:
    """Keep a tableau entry where its spread is smaller.

    The q, v and act rows are judged together, block by block: a single row may agree by accident.
    Sensor rows have scales of their own.
    """
    for lo, hi in pairwise(blocks[:-1]):
        worst = spread[lo:hi].max(initial=0.0)
        if hi > lo and worst < err[lo]:
            best[lo:hi], err[lo:hi] = value[lo:hi], worst
    take = np.flatnonzero(spread[blocks[-2] :] < err[blocks[-2] :]) + blocks[-2]
    best[take], err[take] = value[take], spread[take]


def _central(step: Step, j: int, h: float) -> np.ndarray:
    return (_moved(step, j, h) - _moved(step, j, -h)) / (2 * h)


def _moved(step: Step, j: int, h: float) -> np.ndarray:
    z = np.zeros(step.nz)
    z[j] = h
    return step(z)


def _first_step(step: Step, j: int) -> float:
    """Return the largest step of column j: the scale on which the map bends or moves at all."""
    nv = step.model.nv
    if j < nv:
        return Q_STEP
    if j < 2 * nv:
        return max(V_STEP, 0.5 * abs(step.speed[j - nv]))
    # the map is nearly affine in controls and forces: move the velocities by about their own size
    rows = slice(nv, 2 * nv)
    size = max(1.0, abs(step.value[rows]).max(initial=0.0))
    h = 1e-3
    while h < 1e6:
        moved = max(abs(_moved(step, j, s) - step.value)[rows].max(initial=0.0) for s in (h, -h))
        if moved > 1e-4 * size:
            return h * min(size / moved, 1e3)
        h *= 30.0
    return 1.0


def _is_kink(step: Step, j: int, last: float, best: np.ndarray) -> bool:
    """Return whether the left and right derivatives of column j differ.

    Their difference shrinks with the step where the map is smooth, and stays at a kink.
    """
    wide, narrow = (_jump(step, j, last * h) for h in KINK_STEPS)
    noise = 4 * AMPLIFICATION * step.noise / (last * KINK_STEPS[1])
    limit = KINK * _scale(best[:, None], step.blocks)[:, 0] + noise
    return bool(((narrow > limit) & (narrow > 0.5 * wide)).any())


def _jump(step: Step, j: int, h: float) -> np.ndarray:
    """Return |right - left| one-sided derivative of column j."""
    return abs(_moved(step, j, h) + _moved(step, j, -h) - 2 * step.value) / h
