"""Reference derivatives of the converged step along a few random directions."""

import copy
import itertools
import time

import mujoco
import numpy as np

import mujacobian
from mujacobian import reference
from mujacobian.check._judge import SETTLED_MARGIN, TRUST_MARGIN, Judge, stack
from mujacobian.check._study import ENOUGH, MAX_COLUMNS
from tests.oracle import directional

Array = np.ndarray
PATIENCE = 20.0  # seconds after which no other directions are tried
# Single coordinates, used with constraints: in the sum of a random direction, a stiff coordinate
# hides errors of soft ones.
SINGLES = 3
RETRIES = 3  # single coordinates that replace a random direction without derivative
PAIRED = (1e-3, 1e-4, 1e-5, 1e-6)  # lengths of differences that compare two steps
COLLIDER_UNKNOWN = "collider not converged"
CONVERGED_INTEGRATORS = (
    mujoco.mjtIntegrator.mjINT_EULER,
    mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
)  # those that tests/oracle/converged.py supports
STANDARD_GRAVITY = 9.81  # m/s^2


class Differences:
    """The reference at one state of a model that was passed to `converge`.

    There is a random direction of the positions, velocities, activations and controls each, with
    entries up to one. With constraints, some single coordinates are added. A direction on a kink is
    replaced by other single coordinates of the same kind.
    """

    def __init__(
        self, model: mujoco.MjModel, data: mujoco.MjData, seed: int, tolerance: float
    ) -> None:
        self.model, self.data, self.tolerance = model, data, tolerance
        self.is_smooth = data.nefc == 0 and not reference.meets_curved(model, data)
        nv, na = model.nv, model.na
        self.nx, self.nz = 2 * nv + na, 3 * nv + na + model.nu
        ends = (self.nx + model.sensor_adr + model.sensor_dim).tolist()
        self.blocks = [0, nv, 2 * nv, self.nx, *ends]
        rng = np.random.default_rng(seed)
        parts = [(0, nv), (nv, 2 * nv), (2 * nv, self.nx), (self.nx, self.nx + model.nu)]
        self.starts = [lo for lo, _ in parts]
        parts = [part for part in parts if part[0] < part[1]]
        self.directions = np.zeros((len(parts), self.nz))
        for direction, (lo, hi) in zip(self.directions, parts, strict=True):
            direction[lo:hi] = rng.uniform(-1, 1, hi - lo)
        if not self.is_smooth:
            singles = rng.permutation(nv)[:SINGLES]
            parts += [(0, nv)] * len(singles)
            self.directions = np.vstack([self.directions, np.eye(self.nz)[singles]])
        started = time.monotonic()
        self.J, self.err = self._differentiate(self.directions)
        for _ in range(RETRIES):
            again = np.flatnonzero(~self._known())
            if not again.size or time.monotonic() - started > PATIENCE:
                break
            for k in again:
                self.directions[k] = 0
                self.directions[k, rng.integers(*parts[k])] = 1
            self.J[:, again], self.err[:, again] = self._differentiate(self.directions[again])

    def _differentiate(self, directions: Array) -> tuple[Array, Array]:
        settled = reference.SETTLED if self.is_smooth else self.tolerance / SETTLED_MARGIN
        found = reference.directional(
            self.model, self.data, directions, constrained=self.data.nefc > 0, settled=settled
        )
        return found.J, found.err

    def _known(self) -> Array:
        """Return which directions have trusted derivatives of most of the state."""
        trust = self.tolerance / TRUST_MARGIN
        known = [
            reference.compare(
                self.J[: self.nx, [k]],
                self.J[: self.nx, [k]],
                self.err[: self.nx, [k]],
                self.blocks[:4],
                trust,
            ).share
            for k in range(self.J.shape[1])
        ]
        return np.array(known) >= ENOUGH

    @property
    def unknown(self) -> str:
        """The reason why most directions have no trusted derivative; empty if they have one."""
        known = self._known()
        if known.mean() >= ENOUGH:
            return ""
        lost = np.isinf(self.err[: self.nx, ~known]).all(axis=0)
        never = lost & ~self.J[:, ~known].any(axis=0)  # no step stays in the branch of the state
        if never.any():
            return "kink"
        if reference.meets_curved(self.model, self.data):
            return COLLIDER_UNKNOWN
        return "kink" if lost.any() else "differences lost in rounding"

    def compare(self, lin: mujacobian.Linearization, tolerance: float) -> reference.Comparison:
        """Compare a linearization along all directions; sensors may be missing."""
        return self._compare(self._along(lin), self.J, self.err, tolerance)

    def _along(self, lin: mujacobian.Linearization) -> Array:
        return stack(lin) @ self.directions[:, : self.nx + self.model.nu].T

    def _compare(
        self, given: Array, J: Array, err: Array, tolerance: float
    ) -> reference.Comparison:
        rows = len(given)
        blocks = self.blocks if rows > self.nx else self.blocks[:4]
        return reference.compare(given, J[:rows], err[:rows], blocks, tolerance / TRUST_MARGIN)

    def drop_kinks(self, lin: mujacobian.Linearization) -> None:
        """Distrust differences that disagree with a linearization because of a missed kink."""
        while True:
            result = self.compare(lin, self.tolerance)
            row, column = result.worst()
            if result.error <= self.tolerance or not self._is_kink(
                row, column, float(self._along(lin)[row, column])
            ):
                return
            # a kink of the state affects all rows, a kink of a sensor only its own row
            self.err[row if row >= self.nx else slice(None), column] = np.inf

    def collider_is_limit(self, result: reference.Comparison) -> bool:
        """Return whether an error is within that of the collider at contacts of curved geoms."""
        return directional.is_limited(
            self.model, self.data, self.directions, self._reference(), result.error
        )

    def compare_better(self, result: reference.Comparison) -> reference.Comparison | None:
        """Compare A with converged contacts of curved geoms; return None if they are unknown.

        The result is also None if B, C or D have errors.
        """
        state = ~self.directions[:, self.nx :].any(axis=1)
        others = result.matrix.copy()
        others[: self.nx, state] = 0
        if self.model.opt.integrator not in CONVERGED_INTEGRATORS or others.max() > self.tolerance:
            return None
        found = directional.compare_converged(self.model, self.data, self.directions[state])
        return found if found and found.share > directional.TRUSTED_SHARE else None

    def _reference(self) -> reference.Reference:
        return reference.Reference(self.J, self.err, self.blocks, self.nx, self.model.nu, 0)

    def _is_kink(self, row: int, column: int, given: float) -> bool:
        """Return whether an entry may be right although the extrapolation disagrees."""
        kind = reference.Step if self.data.nefc == 0 else reference.ConstrainedStep
        step, direction = kind(self.model, self.data), self.directions[column]
        return directional.is_kink(step, direction, row, self.J[row, column], given)

    def agrees_in_full(self, lin: mujacobian.Linearization) -> bool:
        """Return whether all columns of the Jacobian agree; False if there are too many columns."""
        if self.nx + self.model.nu > MAX_COLUMNS:
            return False
        full = Judge(self.model, self.data).compare(stack(lin))
        return full.error <= self.tolerance and full.share >= ENOUGH

    def distrust(self, result: reference.Comparison) -> None:
        """Distrust the directions with errors, after all columns of the Jacobian have agreed."""
        self.err[:, (result.matrix > self.tolerance).any(axis=0)] = np.inf

    def describe(self, lin: mujacobian.Linearization, result: reference.Comparison) -> str:
        """Return a description of the worst entry, from all columns if there are not too many."""
        if self.nx + self.model.nu <= MAX_COLUMNS:
            judge, J = Judge(self.model, self.data), stack(lin)
            full = judge.compare(J)
            if full.error > self.tolerance:
                return judge.describe(full, J)
        row, column = result.worst()
        given = self._along(lin)
        return (
            f"relative error {result.error:.1e} in row {row} along random direction {column}: "
            f"{given[row, column]:.9g} given, {self.J[row, column]:.9g} expected"
        )

    def drift(self, model: mujoco.MjModel, data: mujoco.MjData) -> float:
        """Return the relative difference of another step from the converged one.

        The other step is that of the same model with other settings, at the same state. Two things
        are compared: the velocities after the step (see `gap`), and central differences over the
        same lengths. A difference is relative to the largest entry in the same group of rows, along
        directions of the same kind, of the converged step with or without constraints. The scales
        of velocities and positions are at least the changes by gravity in a step, per unit of the
        direction: a muscle without effect moves them by rounding only. For each direction, the
        length with the best agreement counts: solvers and colliders that stop early are not smooth
        over short lengths, and both steps have the same kinks.
        """
        free = copy.copy(self.model)
        free.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        kinds = np.array(
            [np.searchsorted(self.starts, np.flatnonzero(z)[0], "right") for z in self.directions]
        )
        units = np.array([self._unit(z) for z in self.directions])
        fall = self.model.opt.timestep * STANDARD_GRAVITY / units
        best = np.full(len(self.directions), np.inf)
        for h in PAIRED:
            try:
                own, other, loose = (
                    self._central(each, start, h)
                    for each, start in ((model, data), (self.model, self.data), (free, self.data))
                )
            except ArithmeticError:
                continue
            error = np.zeros(len(best))
            for lo, hi in itertools.pairwise(self.blocks[:4]):
                size = np.maximum(abs(other[lo:hi]), abs(loose[lo:hi])).max(axis=0, initial=0.0)
                if lo == 0:
                    size = np.maximum(size, self.model.opt.timestep * fall)
                elif lo == self.model.nv:
                    size = np.maximum(size, fall)
                scale = np.array([size[kinds == kind].max() for kind in kinds])
                apart = abs(own - other)[lo:hi].max(axis=0, initial=0.0)
                error = np.maximum(error, apart / np.where(scale > 0, scale, 1.0))
            best = np.minimum(best, error)
        return max(self.gap(model, data), best.max())

    def _unit(self, direction: Array) -> float:
        """Return the unit of length along a direction.

        It is 1 for positions and 10 for velocities. For controls, which may have any unit, it is
        their largest range.
        """
        nv, model = self.model.nv, self.model
        if direction[self.nx :].any():
            limited = model.actuator_ctrllimited > 0
            return max(1.0, np.diff(model.actuator_ctrlrange[limited]).max(initial=0.0))
        return 10.0 if direction[nv : 2 * nv].any() else 1.0

    def _central(self, model: mujoco.MjModel, data: mujoco.MjData, h: float) -> Array:
        """Return central differences of the state along all directions, over h units."""
        step, columns = reference.Step(model, data), []
        for z in self.directions:
            length = h * self._unit(z)
            columns.append((step(length * z) - step(-length * z))[: self.nx] / (2 * length))
        return np.transpose(columns)

    def gap(self, model: mujoco.MjModel, data: mujoco.MjData) -> float:
        """Return the difference of the velocities after a step, relative to their change.

        Balanced forces do not change velocities, so the scale is at least the change by gravity.
        """
        ends = []
        for each, start in ((model, data), (self.model, self.data)):
            scratch = mujoco.MjData(each)
            mujoco.mj_copyData(scratch, each, start)
            mujoco.mj_step(each, scratch)
            ends.append(scratch.qvel.copy())
        free = max(abs(self.data.qacc_smooth).max(initial=0.0), STANDARD_GRAVITY)
        change = max(model.opt.timestep * free, abs(ends[1] - self.data.qvel).max(initial=0.0))
        return float(abs(ends[0] - ends[1]).max(initial=0.0) / change)
