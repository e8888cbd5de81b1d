"""Static equilibria of a world, and the gradient of a scalar of an equilibrium."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, count, shaped
from mujacobian._summary import summarize
from mujacobian.errors import MujacobianError
from mujacobian.rods.body import moments
from mujacobian.rods.description import flag, instance
from mujacobian.rods.gradient import Gradient
from mujacobian.rods.model import compiled
from mujacobian.rods.quantity import positive
from mujacobian.rods.rollout import check_inputs, check_state, failure
from mujacobian.rods.rotation import lift, project
from mujacobian.rods.state import Inputs, Parameters, State
from mujacobian.rods.trajectory import Report, core_inputs, zeros
from mujacobian.rods.world import World


@dataclass(frozen=True, eq=False, repr=False)
class Equilibrium:
    """The result of `rods.equilibrium`.

    Attributes:
      world: world at rest.
      first: state from which the equilibrium was found.
      positions: `(points, 3)`, m; read-only.
      rotations: `(frames, 3, 3)`; read-only.
      report: convergence of Newton's method, as that of one step.
      inputs: forces and other inputs, each with a leading axis of length one.
      params: parameters, which `gradient` reads.
      model: compiled world, which `gradient` reads.
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
        return _restore, (*kept, self.inputs, self.params)

    @property
    def state(self) -> State:
        """The equilibrium as a state without velocities, from which a rollout can start."""
        x, R = self.positions.copy(), self.rotations.copy()
        return State(x, R, np.zeros_like(x), np.zeros((len(R), 3)))

    def gradient(
        self,
        d_positions: ArrayLike | None = None,
        d_rotations: ArrayLike | None = None,
        *,
        tangent: bool = False,
    ) -> Gradient:
        """Return the exact gradient of a scalar, given its derivatives with respect to this state.

        By the implicit function theorem, it costs one linear solve (ROD-44). The equilibrium
        depends on the first state only through fixed points and frames, and not on inertia, damping
        and friction.

        Args:
          d_positions: `(points, 3)`, derivatives with respect to `positions`; by default zero.
          d_rotations: `(frames, 3, 3)`, derivatives with respect to `rotations`, or `(frames, 3)`
            if `tangent`; by default zero.
          tangent: whether derivatives with respect to rotations are vectors of left perturbations;
            by default False.
        """
        world, tangent = self.world, flag("tangent", tangent)
        x_bar, R_bar = np.zeros((2, world.n_points, 3)), np.zeros((2, world.n_frames, 3))
        if d_positions is not None:
            x_bar[1] = shaped("d_positions", d_positions, self.positions.shape)
        if d_rotations is not None:
            shape = R_bar[1].shape if tangent else self.rotations.shape
            given = shaped("d_rotations", d_rotations, shape)
            R_bar[1] = given if tangent else project(self.rotations, given)
        inputs = Inputs(**{name: zeros(values) for name, values in vars(self.inputs).items()})
        params = Parameters(**{name: np.zeros_like(x) for name, x in vars(self.params).items()})
        points, frames = np.zeros((world.n_points, 3)), np.zeros((world.n_frames, 3))
        norms = np.empty(2)
        _core.rods_pull_back_into(
            self.model,
            before_x=self.first.positions,
            before_R=self.first.rotations,
            steps=1,
            inputs=core_inputs(world, self.inputs),
            positions=np.stack([self.first.positions, self.positions]),
            rotations=np.stack([self.first.rotations, self.rotations]),
            d_positions=x_bar,
            d_rotations=R_bar,
            d_step_x=np.zeros_like(points),
            d_step_R=np.zeros_like(frames),
            input_bars=list(vars(inputs).values()),
            parameter_bars=list(vars(params).values()),
            first_bars=[points, frames, np.zeros_like(points), np.zeros_like(self.rotations)],
            norms=norms,
        )
        if not np.isfinite(norms).all():
            raise MujacobianError("the gradient overflows: the equilibrium is not stable")
        turned = frames if tangent else lift(self.first.rotations, frames)
        params = replace(params, inertia=moments(params.inertia))
        still = np.zeros_like(points), np.zeros_like(frames)
        made = {name: None if x is None else x[0] for name, x in vars(inputs).items()}
        return Gradient(State(points, turned, *still), **made, params=params, norms=norms)


def equilibrium(
    world: World,
    state: State | None = None,
    *,
    forces: ArrayLike | None = None,
    tensions: ArrayLike | None = None,
    rest: ArrayLike | None = None,
    targets: ArrayLike | None = None,
    params: Parameters | None = None,
    tolerance: float = 1e-10,
    iterations: int = 1000,
) -> Equilibrium:
    """Return a static equilibrium: a minimum of the potential energy near a state.

    There is no inertia, damping and friction, and a torque that is constant in the world has no
    potential. If nothing holds a body or rod, there is no equilibrium. If large loads prevent the
    convergence, increase them in several calls, each from the `Equilibrium.state` of the previous
    one.

    Args:
      world: world whose equilibrium is needed.
      state: state from which Newton's method starts; by default `world.state()`. Its velocities do
        not matter.
      forces: `(points, 3)`, N, in world axes; by default zero.
      tensions: `(cables,)`, N; by default zero.
      rest: `(bends, 3)`, 1/m, Darboux vectors at rest; by default those of the rods.
      targets: `(anchors, 3)`, m, positions of the anchors; by default `world.anchors`.
      params: parameters such as stiffnesses; by default `world.parameters()`.
      tolerance: largest entry of the last Newton step, m or rad; by default 1e-10.
      iterations: maximum number of Newton iterations; by default 1000.

    Example:
      >>> import numpy as np
      >>> from mujacobian import rods
      >>> beam = rods.Rod(np.linspace([0, 0, 0], [1, 0, 0], 21), mass=0.1, radius=0.01,
      ...                 stretch=1e5, shear=1e5, bend=[1, 1, 1], clamp_start=True)
      >>> made = rods.equilibrium(rods.World(timestep=1, rods=[beam]))
      >>> float(made.positions[-1, 2].round(3))  # of the tip
      -0.122
    """
    instance("world", world, World)
    first = check_state(world, world.state() if state is None else state)
    given = {"forces": forces, "tensions": tensions, "rest": rest, "targets": targets}
    rows = {name: None if x is None else np.asarray(x)[None] for name, x in given.items()}
    _, inputs = check_inputs(world, 1, {"torques": None, **rows})
    chosen = world.parameters() if params is None else world.checked(params)
    model = compiled(world, chosen, order=0)
    positions, rotations = np.empty((2, world.n_points, 3)), np.empty((2, world.n_frames, 3, 3))
    positions[0], rotations[0] = first.positions, first.rotations
    reports = np.zeros((1, 6))
    taken = _core.rods_simulate_into(
        model,
        before_x=first.positions,
        before_R=first.rotations,
        steps=1,
        inputs=core_inputs(world, inputs),
        tolerance=positive("tolerance", tolerance),
        iterations=min(count("iterations", iterations), np.iinfo(np.int32).max),
        persist=False,
        positions=positions,
        rotations=rotations,
        reports=reports,
    )
    report = Report.read(reports, world)
    if not taken:
        raise failure(world, report, rotations[0])
    for states in (positions, rotations):
        states.flags.writeable = False
    return Equilibrium(world, first, positions[1], rotations[1], report, inputs, chosen, model)


def _restore(
    world: World,
    first: State,
    positions: Array,
    rotations: Array,
    report: Report,
    inputs: Inputs,
    params: Parameters,
) -> Equilibrium:
    """Return an equilibrium with a read-only state and a compiled model."""
    for states in (positions, rotations):
        states.flags.writeable = False
    model = compiled(world, params, order=0)
    return Equilibrium(world, first, positions, rotations, report, inputs, params, model)
