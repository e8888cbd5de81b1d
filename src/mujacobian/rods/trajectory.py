"""A simulated trajectory of a world, its energies, and the gradient of a scalar of it."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core
from mujacobian._arguments import Array, shaped
from mujacobian._rotation import axial, exp, log, right_jacobian, skew
from mujacobian._summary import describe, summarize
from mujacobian.errors import MujacobianError
from mujacobian.rods.body import moments
from mujacobian.rods.description import flag, instance
from mujacobian.rods.forces import ContactForces, Internal, contact_forces, internal
from mujacobian.rods.gradient import Gradient
from mujacobian.rods.rotation import lift, project
from mujacobian.rods.start import state_before
from mujacobian.rods.state import Inputs, Parameters, State
from mujacobian.rods.world import World

STATUS = (
    "converged",
    "too many iterations",
    "no decrease along a line",
    "not finite",
    "no progress",
)


@dataclass(frozen=True, repr=False)
class Report:
    """Convergence of each time step.

    Attributes:
      status: "converged", or the reason why Newton's method stopped.
      iterations: numbers of Newton iterations; each assembles and factors one Hessian.
      corrections: largest entries of the last Newton steps, m or rad.
      residuals: largest entries of the gradients before these Newton steps, N or N m.
      unknowns: for steps that did not converge, the node, edge or body with the largest entry of
        the last Newton step; otherwise, or if this step is not finite, empty.
      contacts: the deepest contact there: its index in `World.contacts` and that of its point or
        segment; None if nothing touches.
    """

    status: list[str]
    iterations: NDArray[np.int64]
    corrections: Array
    residuals: Array
    unknowns: list[str]
    contacts: list[tuple[int, int] | None]

    def __repr__(self) -> str:
        counts = Counter(self.status)
        facts = [f"{each}: {counts[each]} steps" for each in STATUS if counts[each]]
        facts.append(f"at most {self.iterations.max(initial=0)} iterations")
        return describe("Report", facts, corrections=self.corrections, residuals=self.residuals)

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether each time step converged, `(T,)`."""
        return np.array([each == STATUS[0] for each in self.status], dtype=bool)

    @staticmethod
    def read(rows: Array, world: World) -> Report:
        """Return the report that the rows of the core contain."""
        return Report(
            [STATUS[int(k)] for k in rows[:, 0]],
            rows[:, 1].astype(np.int64),
            rows[:, 2].copy(),
            rows[:, 3].copy(),
            [world.unknown(int(slot)) for slot in rows[:, 4]],
            [world.contact(int(k)) for k in rows[:, 5]],
        )


@dataclass(frozen=True, repr=False)
class Energies:
    """Energies of a trajectory, J, each `(T + 1,)`.

    Attributes:
      kinetic: kinetic energy with the velocities of the integrator.
      stored: elastic energy of edges, bends, attachments, cables and contacts.
      gravity: potential energy in the gravity field.
    """

    kinetic: Array
    stored: Array
    gravity: Array

    __repr__ = summarize

    @property
    def total(self) -> Array:
        """The sum of the three energies."""
        return self.kinetic + self.stored + self.gravity


@dataclass(frozen=True)
class Bars:
    """Cotangents of the first state, of the step before it, of the inputs and of the parameters."""

    positions: Array
    rotations: Array
    step_positions: Array
    step_rotations: Array
    inputs: Inputs
    params: Parameters
    norms: Array


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """The result of `rods.rollout`.

    Attributes:
      world: simulated world.
      first: initial state.
      positions: `(T + 1, points, 3)`, m, initially and after each step; read-only.
      rotations: `(T + 1, frames, 3, 3)`, initially and after each step; read-only.
      report: convergence of the steps.
      inputs: forces and other inputs, which `gradient` reads.
      params: parameters, which `gradient` and `energies` read.
      model: compiled world, which `gradient` and `energies` read.
    """

    world: World
    first: State
    positions: Array
    rotations: Array
    report: Report
    inputs: Inputs = field(repr=False)
    params: Parameters = field(repr=False)
    model: _core.RodModel = field(repr=False)

    __repr__ = summarize

    def __reduce__(self) -> tuple[object, ...]:
        # the compiled model is made again
        kept = self.world, self.first, self.positions, self.rotations, self.report
        return restore, (*kept, self.inputs, self.params)

    @property
    def steps(self) -> int:
        """The number of steps T."""
        return len(self.positions) - 1

    @property
    def velocities(self) -> Array:
        """The initial velocities, then those of the integrator, `(T + 1, points, 3)`, m/s.

        With backward Euler they are the mean velocities of the steps, with BDF2 the derivatives at
        their ends (ROD-39).
        """
        return np.concatenate([self.first.velocities[None], self._rates(self.positions)])

    @property
    def state(self) -> State:
        """The last state, from which another rollout can continue.

        With backward Euler, both rollouts together are one longer rollout. BDF2 begins each rollout
        with a step of backward Euler, which does not change its order.
        """
        h, R = self.world.timestep, self.rotations
        turned = log(R[-1] @ np.swapaxes(R[-2], -1, -2)) / h
        if self.world.order > 1 and self.steps > 1:
            before = log(R[-2] @ np.swapaxes(R[-3], -1, -2)) / h
            turned = 1.5 * turned - 0.5 * before
        return State(self.positions[-1].copy(), R[-1].copy(), self.velocities[-1], turned)

    def _rates(self, states: Array) -> Array:
        """Return the derivatives of arrays of states with respect to time after each step."""
        rates: Array = np.diff(states, axis=0) / self.world.timestep
        if self.world.order > 1:
            rates[1:] = 1.5 * rates[1:] - 0.5 * rates[:-1].copy()
        return rates

    def energies(self) -> Energies:
        """Return the kinetic, stored and gravitational energy of each state."""
        world, T, h = self.world, self.steps, self.world.timestep
        p = self.params
        first = (self.rotations[0] - state_before(world, self.first)[1])[None] / h
        rate = np.concatenate([first, self._rates(self.rotations)])
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

    def internal(self) -> Internal:
        """Return strains, tensions and moments of the rods in each state."""
        return internal(self)

    def contact_forces(self) -> ContactForces:
        """Return the forces and torques of all contacts at the end of each step."""
        return contact_forces(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trajectory with its world to a file, which `Trajectory.load` reads."""
        with open(path, "wb") as file:
            pickle.dump(self, file)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Trajectory:
        """Return the trajectory in a file.

        The file is a pickle, which can run any code: load only files that you trust.
        """
        with open(path, "rb") as file:
            made = pickle.load(file)
        return instance("the content of the file", made, Trajectory)  # type: ignore[no-any-return]

    def gradient(
        self,
        d_positions: ArrayLike | None = None,
        d_rotations: ArrayLike | None = None,
        *,
        tangent: bool = False,
    ) -> Gradient:
        """Return the exact gradient of a scalar, given its derivatives with respect to all states.

        The cost is about one Newton iteration per step, for any number of inputs. Velocities are
        differences of positions, so a scalar of velocities is also a scalar of positions.

        Args:
          d_positions: `(T + 1, points, 3)`, derivatives with respect to `positions`; by default
            zero.
          d_rotations: `(T + 1, frames, 3, 3)`, derivatives with respect to `rotations`, of which
            only the tangential part matters; by default zero.
          tangent: whether derivatives with respect to rotations are vectors `(..., 3)` of left
            perturbations R -> exp(t) R, in the argument and in the result; by default False, for
            matrices.

        Example:
          >>> import numpy as np
          >>> from mujacobian import rods
          >>> ball = rods.RigidBody(mass=1, inertia=[1, 1, 1])
          >>> world = rods.World(timestep=0.1, bodies=[ball])
          >>> trajectory = rods.rollout(world, steps=10)
          >>> d_positions = np.zeros_like(trajectory.positions)
          >>> d_positions[-1, 0, 2] = 1  # the scalar is the final height
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
        spin = h * bars.step_rotations
        if world.order == 1:
            turning = right_jacobian(h * self.first.angular_velocities)
            spin = np.einsum("fij,fj->fi", turning, spin)
        return Gradient(
            State(bars.positions, turned, h * bars.step_positions, spin),
            **vars(bars.inputs),
            params=bars.params,
            norms=bars.norms,
        )

    def pull_back(self, x_bar: Array, R_bar: Array, last_step: tuple[Array, Array]) -> Bars:
        """Return cotangents in tangent coordinates, given those of all states and the last step."""
        if not self.report.converged.all():
            k = int(np.argmin(self.report.converged))
            raise MujacobianError(f"step {k} did not converge, so it has no gradient")
        world, T, h = self.world, self.steps, self.world.timestep
        inputs = Inputs(**{name: zeros(values) for name, values in vars(self.inputs).items()})
        params = Parameters(**{name: np.zeros_like(x) for name, x in vars(self.params).items()})
        first = [np.zeros((n, 3)) for n in (world.n_points, world.n_frames, world.n_points)]
        first.append(np.zeros((world.n_frames, 3, 3)))
        norms = np.empty(T + 1)
        before_x, before_R = state_before(world, self.first)
        _core.rods_pull_back_into(
            self.model,
            before_x=before_x,
            before_R=before_R,
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
            raise MujacobianError("the gradient overflows in the reverse pass: see docs/rods.md")
        # the map from inertias to moments is its own adjoint                        (ROD-5)
        params = replace(params, inertia=moments(params.inertia))
        # the state before the first one                                             (ROD-40)
        x, R, before_x_bar, before_R_bar = first
        own, step = self.first.rotations, h * self.first.angular_velocities
        pulled = own @ np.swapaxes(before_R_bar, -1, -2)
        if world.order == 1:
            change = exp(step)
            R = R + project(own, change @ before_R_bar)
            step_R = project(change, pulled)
        else:
            R = R + project(own, before_R_bar + skew(step) @ before_R_bar)
            step_R = axial(pulled)
        return Bars(x + before_x_bar, R, -before_x_bar, step_R, inputs, params, norms)


def restore(
    world: World,
    first: State,
    positions: Array,
    rotations: Array,
    report: Report,
    inputs: Inputs,
    params: Parameters,
) -> Trajectory:
    """Return a trajectory with read-only states and a compiled model."""
    for states in (positions, rotations):
        states.flags.writeable = False  # `Trajectory.gradient` reads them later
    model = world.model(params)
    return Trajectory(world, first, positions, rotations, report, inputs, params, model)


def core_inputs(world: World, inputs: Inputs) -> list[Array | None]:
    """Return the inputs in the order of the core.

    Rest curvatures are always present, and targets are displacements of the anchors.
    """
    rest = world.rest() if inputs.rest is None else inputs.rest
    targets = None if inputs.targets is None else inputs.targets - world.anchors
    return [inputs.forces, inputs.torques, inputs.tensions, rest, targets]


def _repeat_first(rows: list[Array | None]) -> list[Array | None]:
    """Return the inputs of each state; the first state has those of the first step."""
    rest = rows[3]
    made = [None if x is None else np.concatenate([x[:1], x]) for x in rows]
    if rest is not None and rest.ndim == 2:
        made[3] = rest
    return made


def zeros(values: Array | None) -> Array | None:
    """Return zeros in the shape of an input, or None if there is no such input."""
    return None if values is None else np.zeros_like(values)
