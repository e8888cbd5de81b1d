"""Simulation of many steps of a world, kept so that gradients can be taken through it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core
from mujacobian.arguments import count, shaped
from mujacobian.errors import ArgumentError
from mujacobian.rods.description import flag, instance
from mujacobian.rods.errors import ConvergenceError
from mujacobian.rods.quantity import positive
from mujacobian.rods.rotation import exp, rotations
from mujacobian.rods.state import Inputs, Parameters, State
from mujacobian.rods.trajectory import Report, Trajectory, core_inputs
from mujacobian.rods.world import World

Array = NDArray[np.float64]


def rollout(
    world: World,
    state: State | None = None,
    steps: int | None = None,
    *,
    forces: ArrayLike | None = None,
    torques: ArrayLike | None = None,
    tensions: ArrayLike | None = None,
    rest: ArrayLike | None = None,
    targets: ArrayLike | None = None,
    params: Parameters | None = None,
    tolerance: float = 1e-10,
    iterations: int = 100,
    strict: bool = True,
) -> Trajectory:
    """The trajectory of T steps of backward Euler, of which gradients can be taken.

    Args:
      world: what is simulated.
      state: where it starts; by default `world.state()`.
      steps: T; not needed when an input has it.
      forces: `(T, points, 3)`, N, on nodes of rods and centres of mass of bodies, world axes.
      torques: `(T, frames, 3)`, N m, on edges of rods and bodies, world axes.
      tensions: `(T, cables)`, N.
      rest: `(T, bends, 3)`, 1/m, Darboux vectors at rest; by default those of the rods.
      targets: `(T, anchors, 3)`, m, where the anchors of attachments to the world are.
      params: masses, stiffnesses and so on instead of those of the world.
      tolerance: m and rad, largest entry of the Newton step at which a step has converged. That
        step is still taken.
      iterations: most Newton iterations of a step.
      strict: whether a step that does not converge raises `ConvergenceError`. Otherwise the
        simulation goes on from the best state found, and `Trajectory.report` says so.

    Example:
      >>> import numpy as np
      >>> from mujacobian import rods
      >>> ball = rods.RigidBody(mass=1, inertia=[1, 1, 1])
      >>> world = rods.World(timestep=0.1, gravity=(0, 0, 0), bodies=[ball])
      >>> trajectory = rods.rollout(world, forces=np.ones((10, 1, 3)))
      >>> trajectory.positions[-1, 0].round(3)
      array([0.55, 0.55, 0.55])
    """
    instance("world", world, World)
    strict = flag("strict", strict)
    first = check_state(world, world.state() if state is None else state)
    given = {
        "forces": forces,
        "torques": torques,
        "tensions": tensions,
        "rest": rest,
        "targets": targets,
    }
    T, inputs = check_inputs(world, steps, given)
    chosen = world.parameters() if params is None else world.checked(params)
    model = world.model(None if params is None else chosen)
    positions = np.empty((T + 1, world.n_points, 3))
    rotations_ = np.empty((T + 1, world.n_frames, 3, 3))
    positions[0], rotations_[0] = first.positions, first.rotations
    reports = np.zeros((T, 4))
    step_x, step_R = first_step(world, first)
    taken = _core.rods_simulate_into(
        model,
        step_x=step_x,
        step_R=step_R,
        steps=T,
        inputs=core_inputs(world, inputs),
        tolerance=positive("tolerance", tolerance),
        iterations=min(count("iterations", iterations), np.iinfo(np.int32).max),
        persist=not strict,
        positions=positions,
        rotations=rotations_,
        reports=reports,
    )
    report = Report.read(reports)
    if taken < T:
        raise ConvergenceError(
            f"step {taken} does not converge: {report.status[taken]} after "
            f"{report.iterations[taken]} iterations, Newton step {report.corrections[taken]:.1e}, "
            f"residual {report.residuals[taken]:.1e}",
            taken,
            float(report.residuals[taken]),
        )
    for states in (positions, rotations_):
        states.flags.writeable = False  # gradients are taken from them
    return Trajectory(world, first, positions, rotations_, report, inputs, chosen, model)


def first_step(world: World, first: State) -> tuple[Array, Array]:
    """Changes of positions and rotations over the step before the first. (ROD-2)."""
    h = world.timestep
    return h * first.velocities, np.ascontiguousarray(exp(h * first.angular_velocities))


def check_state(world: World, state: State) -> State:
    """The state as the core takes it."""
    instance("state", state, State)
    points, frames = world.n_points, world.n_frames
    x = shaped("positions", state.positions, (points, 3))
    v = shaped("velocities", state.velocities, (points, 3))
    w = shaped("angular_velocities", state.angular_velocities, (frames, 3))
    R = rotations("rotations", state.rotations, (frames, 3, 3))
    fixed_points, fixed_frames = world.fixed()
    if v[fixed_points > 0].any() or w[fixed_frames > 0].any():
        raise ArgumentError("fixed points and frames must not have a velocity")
    # a step is a rotation: of more than half a turn it would be another one, the other way round
    with np.errstate(over="ignore"):
        fastest = np.linalg.norm(w, axis=1).max(initial=0) * world.timestep
    if fastest >= np.pi:
        raise ArgumentError(
            f"angular_velocities must be below half a turn per step, got {fastest:.3g} rad"
        )
    for rod in world.rods:
        lengths = np.linalg.norm(np.diff(x[world.points(rod)], axis=0), axis=1)
        if not lengths.min() > 0:
            raise ArgumentError(f"edge {int(np.argmin(lengths))} of a rod has length zero")
    for number, cable in enumerate(world.cables):
        path = [world.place(p, x, R) for p in cable.path]
        if not np.linalg.norm(np.diff(path, axis=0), axis=1).min() > 0:
            raise ArgumentError(f"two points of cable {number} that follow each other are the same")
    return State(x.copy(), R, v.copy(), w.copy())


def check_inputs(
    world: World, steps: int | None, given: dict[str, ArrayLike | None]
) -> tuple[int, Inputs]:
    """The number of steps, and inputs as the core takes them."""
    rows = {
        "forces": (world.n_points, 3),
        "torques": (world.n_frames, 3),
        "tensions": (len(world.cables),),
        "rest": (world.n_bends, 3),
        "targets": (len(world.anchors), 3),
    }
    T = step_count(steps, given.values())
    made = {
        name: None if values is None else shaped(name, values, (T, *rows[name])).copy()
        for name, values in given.items()
    }
    return T, Inputs(**made)


def step_count(steps: int | None, inputs: Iterable[ArrayLike | None]) -> int:
    """The number of steps: as given, or that of the first input."""
    if steps is not None:
        return count("steps", steps)
    for values in inputs:
        if values is not None:
            return count("steps", np.shape(values)[0] if np.ndim(values) else 0)
    raise ArgumentError("steps must be given where there are no inputs")
