"""One `mj_step` as a function of tangent coordinates, for differences.

With constraints, every evaluation also has a branch: which rows exist, in which zones, with which
saturated impedances, and the outcomes of the noslip updates. The function is smooth only within a
branch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian._manifold import tangent_size
from mujacobian.check._branch import branch
from mujacobian.check._noslip import sweep
from mujacobian.errors import NotFiniteError

STATE = mujoco.mjtState.mjSTATE_INTEGRATION
NOISE_STEP = 1e-8  # between the samples that measure rounding errors
NOISE_SAMPLES = 16
BRANCH_RATIO = 3.0  # between step sizes, until both evaluations are in the branch of the state
SMALLEST = 1e-7  # a branch narrower than this is a kink
TURNING = 1e-6  # rounding errors dominate below this step
RK4_NODES = (0.5, 0.5, 1.0)  # of the time step, from one stage to the next


def may_sleep(model: mujoco.MjModel) -> bool:
    """Return whether the flag `sleep` is enabled."""
    return bool(model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP)


# MuJoCo has one handler of warnings for all threads: the first one saves it, the last one restores
# it
_lock = Lock()
_handlers: list[Callable[[str], None] | None] = []


def same_state(model: mujoco.MjModel, data: mujoco.MjData) -> mujoco.MjData:
    """Return new data of `model` in the state of `data`, without old warnings.

    With the flag `sleep`, the state is all of mjData: which trees sleep, and what they have cached.
    """
    same = mujoco.MjData(model)
    if may_sleep(model):
        mujoco.mj_copyData(same, model, data)
        same.warning.number[:] = 0
    else:
        state = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, state, STATE)
        mujoco.mj_setState(model, same, state, STATE)
    return same


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress MuJoCo's warnings, for example about a singular matrix far from the state."""
    with _lock:
        _handlers.append(mujoco.get_mju_user_warning())
        if len(_handlers) == 1:
            mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        with _lock:
            if len(_handlers) == 1:
                mujoco.set_mju_user_warning(_handlers[0])
            _handlers.pop()


class Step:
    """The function z = (dq, dv, dact, dctrl, dforce) -> (q', v', act', sensors).

    It uses tangent coordinates: `mj_integratePos` moves the state by dq, and `mj_differentiatePos`
    measures q' from its value at z = 0. Its derivative at zero therefore follows the conventions of
    `mjd_transitionFD`. `evaluations` counts the steps.

    Any change of a sleeping tree wakes it, and the step jumps. The function is that of the branch
    in which the tree sleeps (INT-16): its entries of z are added to q' and v' and have no other
    effect.
    """

    zero_is_exact = True  # with large steps, a row that does not change does not depend on z

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        nv = model.nv
        self.evaluations = 0
        self._known: dict[bytes, Array] = {}  # outcomes, by z
        self.nx = tangent_size(model)
        self.nz = self.nx + model.nu + nv
        self.blocks = [0, nv, 2 * nv, self.nx, self.nx + model.nsensordata]
        self.origin = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, self.origin, STATE)
        self._whole: mujoco.MjData | None = None  # the state of sleeping trees is all of mjData
        self._asleep = np.zeros(nv, dtype=bool)  # dofs
        if may_sleep(model):
            self._whole = same_state(model, data)
            mujoco.mj_forward(model, self._whole)  # which may wake trees, as the step does
            self._asleep = self._whole.tree_asleep[model.dof_treeid] >= 0
        self.center = data.qpos.copy()
        self.speed = data.qvel.copy()
        self._take(np.zeros(self.nz))
        self.center = self.data.qpos.copy()
        self.forget()
        self.value = self(np.zeros(self.nz))
        if not np.isfinite(self.value).all():
            raise NotFiniteError("the step is not finite at this state")
        self.noise = self._noise()

    def __call__(self, z: Array) -> Array:
        """Return the outcome of the step at z; NaN if MuJoCo warns or stops with an error."""
        outcome = self._known.get(z.tobytes())
        return self._take(z) if outcome is None else outcome

    def forget(self) -> None:
        """Forget the outcomes found so far."""
        self._known.clear()

    def _take(self, z: Array) -> Array:
        """Take the step at z in `data`; return and remember its outcome."""
        self.evaluations += 1
        outcome = self._known[z.tobytes()] = self._outcome(z)
        return outcome

    def _outcome(self, z: Array) -> Array:
        m, d = self.model, self.data
        self._move(z)
        try:
            mujoco.mj_step(m, d)
        except mujoco.FatalError:  # the arena is full far from the state; the data is of no use now
            self.data = mujoco.MjData(m)
            return np.full(self.blocks[-1], np.nan)
        if d.warning.number.any():  # singular or not finite here
            d.warning.number[:] = 0
            return np.full(self.blocks[-1], np.nan)
        return self._measure(z)

    def _measure(self, z: Array) -> Array:
        """Return (q', v', act', sensors) of the step that was taken at z in `data`."""
        m, d, nv = self.model, self.data, self.model.nv
        out = np.empty(self.blocks[-1])
        mujoco.mj_differentiatePos(m, out[:nv], 1.0, self.center, d.qpos)
        out[nv:] = np.concatenate([d.qvel, d.act, d.sensordata])
        if self._asleep.any():
            out[: 2 * nv] += np.where(np.tile(self._asleep, 2), z[: 2 * nv], 0.0)
        return out

    def _move(self, z: Array) -> None:
        """Set the state to the origin, moved by z except for sleeping trees."""
        m, d, nv = self.model, self.data, self.model.nv
        if self._whole is not None:
            mujoco.mj_copyData(d, m, self._whole)
        if self._asleep.any():
            columns = np.tile(self._asleep, 2), np.zeros(m.na + m.nu, dtype=bool), self._asleep
            z = np.where(np.concatenate(columns), 0.0, z)
        mujoco.mj_setState(m, d, self.origin, STATE)
        before = d.qpos.copy()
        mujoco.mj_integratePos(m, d.qpos, z[:nv], 1.0)
        if self._asleep.any():  # not even a quaternion is normalized
            sizes = np.diff([*m.jnt_qposadr, m.nq])
            np.copyto(d.qpos, before, where=np.repeat(self._asleep[m.jnt_dofadr], sizes))
        d.qvel += z[nv : 2 * nv]
        d.act += z[2 * nv : self.nx]
        d.ctrl += z[self.nx : self.nx + m.nu]
        d.qfrc_applied += z[self.nx + m.nu :]

    def inside(self, direction: Array, h: float) -> float:
        """Return the largest step <= h in a direction that stays in the branch of the state."""
        return h

    def _noise(self) -> Array:
        """Return the standard deviation of each row's rounding errors.

        It comes from fourth differences of samples that are so close together that only rounding
        errors are left. Fourth differences of independent errors have 1 + 16 + 36 + 16 + 1 = 70
        times their variance. The state itself is not a sample, because it may be on a kink, such as
        a control at its bound.
        """
        direction = np.random.default_rng(0).uniform(0.5, 1.0, self.nz) * NOISE_STEP
        samples = np.array([self(k * direction) for k in range(1, NOISE_SAMPLES + 1)])
        noise = np.sqrt((np.diff(samples, 4, axis=0) ** 2).mean(axis=0) / 70)
        return np.asarray(np.maximum(noise, np.finfo(float).eps * abs(self.value) / 4))


class ConstrainedStep(Step):
    """A step whose map is smooth only within a branch of its constraint rows."""

    zero_is_exact = False  # small steps may change a row by less than its resolution

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        warm = mujoco.MjData(model)
        mujoco.mj_copyData(warm, model, data)
        mujoco.mj_forward(model, warm)
        warm.qacc_warmstart[:] = warm.qacc
        self.bare = model  # without noslip
        if model.opt.noslip_iterations > 0:
            self.bare = copy.copy(model)
            self.bare.opt.noslip_iterations = 0
        super().__init__(model, warm)
        self.branch = self._branch(np.zeros(self.nz))

    def inside(self, direction: Array, h: float) -> float:
        """Return the largest step <= h in a direction that stays in the branch of the state."""
        while h > SMALLEST:
            # shorter steps, too: a large step may end one contact and begin a similar one
            steps = (s * h / BRANCH_RATIO**k for k in range(3) for s in (1, -1))
            if all(self._branch(s * direction) == self.branch for s in steps):
                return self._short_of_turning(direction, h)
            h /= BRANCH_RATIO
        return 0.0

    def _short_of_turning(self, direction: Array, h: float) -> float:
        """Return the largest step <= h over which no fluid velocity changes sign, or h at rest.

        Drag |v| v has a kink in its second derivative, which disturbs the extrapolation a little.
        """
        shorter = h
        while self.model.opt.density > 0 and shorter > TURNING:
            ways = [self._drag(s * direction) for s in (0.0, shorter, -shorter)]
            if all((way == ways[0]).all() for way in ways):
                return shorter
            shorter /= BRANCH_RATIO
        return h

    def _drag(self, z: Array) -> NDArray[np.bool_]:
        """Return the signs of the velocities v that cause a drag |v| v."""
        m, d = self.model, self.data
        self._move(z)
        mujoco.mj_forward(m, d)
        signs = np.empty((m.nbody, 6), dtype=bool)
        velocity = np.empty(6)
        for body in range(m.nbody):
            mujoco.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 1)
            velocity[3:] -= d.ximat[body].reshape(3, 3).T @ m.opt.wind
            signs[body] = velocity > 0
        return signs

    def _branch(self, z: Array) -> bytes:
        """Return the branch of the step at z, of all its stages; empty if it is not finite."""
        if not np.isfinite(self._take(z)).all():
            return b""
        if self.model.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4:
            if self.model.opt.noslip_iterations == 0:
                return branch(self.model, self.data)
            self._move(z)
            return self._swept_branch()
        return b"".join(self._stage_branches(z))

    def _swept_branch(self) -> bytes:
        """Return the branch of the state in `data`, including noslip."""
        mujoco.mj_forward(self.bare, self.data)
        rows, option = branch(self.bare, self.data), self.model.opt
        if self.data.nefc == 0 or option.noslip_iterations == 0:
            return rows
        found = sweep(self.bare, self.data, option.noslip_iterations, option.noslip_tolerance)
        return rows + np.array([*found.counts, *found.outcomes], dtype=np.int32).tobytes()

    def _stage_branches(self, z: Array) -> Iterator[bytes]:
        """Yield the branches of the four stages of the Runge-Kutta step."""
        m, d = self.model, self.data
        self._move(z)
        q, v, act = d.qpos.copy(), d.qvel.copy(), d.act.copy()
        for share in (*RK4_NODES, None):
            yield self._swept_branch()
            mujoco.mj_forward(m, d)
            if share is None:
                return
            h = share * m.opt.timestep
            speed = d.qvel.copy()
            d.qpos[:] = q
            mujoco.mj_integratePos(m, d.qpos, speed, h)
            d.qvel[:], d.act[:] = v + h * d.qacc, act + h * d.act_dot
