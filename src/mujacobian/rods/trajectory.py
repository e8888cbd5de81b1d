"""A simulated trajectory of a world, and the gradient of a scalar through it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core
from mujacobian.arguments import shaped
from mujacobian.errors import MujacobianError
from mujacobian.rods.body import moments
from mujacobian.rods.description import flag
from mujacobian.rods.gradient import Gradient
from mujacobian.rods.rotation import exp, lift, log, project, right_jacobian
from mujacobian.rods.state import Inputs, Parameters, State
from mujacobian.rods.world import World

Array = NDArray[np.float64]

STATUS = ("converged", "too many iterations", "no decrease along a line", "not finite")


@dataclass(frozen=True)
class Report:
    """How the steps converged.

    status: of each step, "converged" or what stopped it.
    iterations: Newton iterations: assemblies and factorizations of a Hessian.
    corrections: largest entry of the last Newton step, m or rad.
    residuals: largest entry of the gradient before that step, N or N m.
    """

    status: list[str]
    iterations: NDArray[np.int64]
    corrections: Array
    residuals: Array

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether each step converged."""
        return np.array([each == STATUS[0] for each in self.status], dtype=bool)

    @staticmethod
    def read(rows: Array) -> Report:
        """The report from the core's rows."""
        status = [STATUS[int(k)] for k in rows[:, 0]]
        return Report(status, rows[:, 1].astype(np.int64), rows[:, 2].copy(), rows[:, 3].copy())


@dataclass(frozen=True)
class Energies:
    """Energies of a trajectory `(T + 1,)`, J: of motion over the last step, stored, of height."""

    kinetic: Array
    stored: Array
    gravity: Array

    @property
    def total(self) -> Array:
        """Their sum."""
        return self.kinetic + self.stored + self.gravity


@dataclass(frozen=True)
class Bars:
    """Derivatives with respect to the first state and the step before it, inputs and parameters."""

    positions: Array
    rotations: Array
    step_positions: Array
    step_rotations: Array
    inputs: Inputs
    params: Parameters
    norms: Array


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What `rods.rollout` has simulated.

    world: what was simulated.
    first: the state it started from.
    positions: `(T + 1, points, 3)`, at the start and after every step; read-only.
    rotations: `(T + 1, frames, 3, 3)`, likewise.
    report: how the steps converged.

    The rest is what gradients are taken from.
    """

    world: World
    first: State
    positions: Array
    rotations: Array
    report: Report
    inputs: Inputs = field(repr=False)
    params: Parameters = field(repr=False)
    model: _core.RodModel = field(repr=False)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.positions) - 1

    @property
    def velocities(self) -> Array:
        """`(T + 1, points, 3)`, m/s: at the start, then over each step."""
        moved = np.diff(self.positions, axis=0) / self.world.timestep
        return np.concatenate([self.first.velocities[None], moved])

    @property
    def state(self) -> State:
        """The last state, from which another rollout can go on with the same step."""
        h = self.world.timestep
        turned = self.rotations[-1] @ np.swapaxes(self.rotations[-2], -1, -2)
        return State(
            self.positions[-1].copy(),
            self.rotations[-1].copy(),
            (self.positions[-1] - self.positions[-2]) / h,
            log(turned) / h,
        )

    def energies(self) -> Energies:
        """Kinetic, stored and gravitational energy of every state."""
        world, T, h = self.world, self.steps, self.world.timestep
        p = self.params
        step = exp(h * self.first.angular_velocities)
        before = np.concatenate(
            [(np.swapaxes(step, -1, -2) @ self.rotations[0])[None], self.rotations]
        )
        rate = np.diff(before, axis=0) / h
        kinetic = 0.5 * np.einsum("p,tpi,tpi->t", p.mass, self.velocities, self.velocities)
        kinetic += 0.5 * np.einsum("tfij,fjk,tfik->t", rate, moments(p.inertia), rate)
        stored = np.empty(T + 1)
        rows = _repeat_first(core_inputs(world, self.inputs))
        _core.rods_stored_energies_into(
            self.model,
            rows=T + 1,
            inputs=rows,
            positions=self.positions,
            rotations=self.rotations,
            energies=stored,
        )
        gravity = -np.einsum("p,tpi,i->t", p.mass, self.positions, world.gravity)
        return Energies(kinetic, stored, gravity)

    def gradient(
        self,
        d_positions: ArrayLike | None = None,
        d_rotations: ArrayLike | None = None,
        *,
        tangent: bool = False,
    ) -> Gradient:
        """The exact gradient of a scalar, given its derivatives with respect to all states.

        Costs about one Newton iteration per step, whatever the number of inputs. A scalar of
        velocities is one of positions: their differences over the time step.

        Args:
          d_positions: like `positions`.
          d_rotations: like `rotations`; only the part that turns them counts.
          tangent: give and take derivatives with respect to rotations as vectors `(..., 3)` of left
            perturbations R -> exp(t) R instead of as matrices.

        Example:
          >>> import numpy as np
          >>> from mujacobian import rods
          >>> ball = rods.RigidBody(mass=1, inertia=[1, 1, 1])
          >>> world = rods.World(timestep=0.1, bodies=[ball])
          >>> trajectory = rods.rollout(world, steps=10)
          >>> d_positions = np.zeros_like(trajectory.positions)
          >>> d_positions[-1, 0, 2] = 1  # the scalar is the last height
          >>> float(trajectory.gradient(d_positions).state.velocities[0, 2].round(12))
          1.0
        """
        world, h = self.world, self.world.timestep
        x_bar, R_bar = np.zeros_like(self.positions), np.zeros((*self.rotations.shape[:2], 3))
        tangent = flag("tangent", tangent)
        if d_positions is not None:
            x_bar = shaped("d_positions", d_positions, self.positions.shape)
        if d_rotations is not None:
            shape = R_bar.shape if tangent else self.rotations.shape
            R_bar = shaped("d_rotations", d_rotations, shape)
            R_bar = R_bar if tangent else np.ascontiguousarray(project(self.rotations, R_bar))
        no_step = np.zeros((world.n_points, 3)), np.zeros((world.n_frames, 3))
        bars = self.pull_back(x_bar, R_bar, no_step)
        turned = bars.rotations if tangent else lift(self.rotations[0], bars.rotations)
        turning = right_jacobian(h * self.first.angular_velocities)
        spin = h * np.einsum("fij,fj->fi", turning, bars.step_rotations)
        return Gradient(
            State(bars.positions, turned, h * bars.step_positions, spin),
            **vars(bars.inputs),
            params=bars.params,
            norms=bars.norms,
        )

    def pull_back(self, x_bar: Array, R_bar: Array, last_step: tuple[Array, Array]) -> Bars:
        """Derivatives in tangent coordinates, from those to all states and to the last step."""
        if not self.report.converged.all():
            k = int(np.argmin(self.report.converged))
            raise MujacobianError(f"step {k} did not converge: it has no gradient")
        world, T, h = self.world, self.steps, self.world.timestep
        inputs = Inputs(**{name: _zeros(values) for name, values in vars(self.inputs).items()})
        params = Parameters(**{name: np.zeros_like(x) for name, x in vars(self.params).items()})
        first = [np.zeros((n, 3)) for n in (world.n_points, world.n_frames) * 2]
        norms = np.empty(T + 1)
        _core.rods_pull_back_into(
            self.model,
            step_x=h * self.first.velocities,
            step_R=np.ascontiguousarray(exp(h * self.first.angular_velocities)),
            steps=T,
            inputs=core_inputs(world, self.inputs),
            positions=self.positions,
            rotations=self.rotations,
            d_positions=x_bar,
            d_rotations=R_bar,
            d_step_x=last_step[0],
            d_step_R=last_step[1],
            input_bars=list(vars(inputs).values()),
            parameter_bars=list(vars(params).values()),
            first_bars=first,
            norms=norms,
        )
        if not np.isfinite(norms).all():
            raise MujacobianError("the gradient overflows on its way back: see docs/rods.md")
        # the map from inertias to moments is its own adjoint                        (ROD-5)
        params = replace(params, inertia=moments(params.inertia))
        x, R, step_x, step_R = first
        return Bars(x, R, step_x, step_R, inputs, params, norms)


def core_inputs(world: World, inputs: Inputs) -> list[Array | None]:
    """Inputs in the core's order: rest is never missing, targets are moves of the anchors."""
    rest = world.rest() if inputs.rest is None else inputs.rest
    targets = None if inputs.targets is None else inputs.targets - world.anchors
    return [inputs.forces, inputs.torques, inputs.tensions, rest, targets]


def _repeat_first(rows: list[Array | None]) -> list[Array | None]:
    """Inputs of every state: of the first, those of the first step."""
    rest = rows[3]
    made = [None if x is None else np.concatenate([x[:1], x]) for x in rows]
    if rest is not None and rest.ndim == 2:
        made[3] = rest
    return made


def _zeros(values: Array | None) -> Array | None:
    return None if values is None else np.zeros_like(values)
