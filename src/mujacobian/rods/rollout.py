"""Simulation of many steps of a world, and the checks of its arguments."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, count, shaped
from mujacobian.errors import ArgumentError
from mujacobian.rods.description import flag, instance
from mujacobian.rods.errors import ConvergenceError
from mujacobian.rods.quantity import positive
from mujacobian.rods.rotation import rotations
from mujacobian.rods.segment import SegmentContact
from mujacobian.rods.start import state_before
from mujacobian.rods.state import Inputs, Parameters, State
from mujacobian.rods.trajectory import Report, Trajectory, core_inputs
from mujacobian.rods.world import World


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
    """Return the trajectory of T steps. Its method `gradient` differentiates it.

    Args:
      world: world to simulate.
      state: initial state; by default `world.state()`.
      steps: number of steps T; by default the length of the first input that is given.
      forces: `(T, points, 3)`, N, forces on the nodes of rods and the centers of mass of bodies, in
        world axes; by default zero.
      torques: `(T, frames, 3)`, N m, torques on the edges of rods and on bodies, in world axes; by
        default zero.
      tensions: `(T, cables)`, N, tensions of the cables; by default zero.
      rest: `(T, bends, 3)`, 1/m, Darboux vectors at rest; by default those of the rods.
      targets: `(T, anchors, 3)`, m, positions of the anchors of attachments to the world; by
        default `world.anchors`.
      params: parameters such as masses and stiffnesses; by default `world.parameters()`.
      tolerance: largest entry of a Newton step, m or rad, at which a time step counts as converged;
        by default 1e-10. The simulation still takes this Newton step.
      iterations: maximum number of Newton iterations per time step; by default 100.
      strict: whether a time step that does not converge raises `ConvergenceError`, the default. If
        False, the simulation continues from the best state found, and `Trajectory.report` records
        the failure.

    Example:
      >>> import numpy as np
      >>> from mujacobian import rods
      >>> ball = rods.RigidBody(mass=1, inertia=[1, 1, 1])
      >>> world = rods.World(timestep=0.1, gravity=(0, 0, 0), bodies=[ball])
      >>> trajectory = rods.rollout(world, forces=np.ones((10, 1, 3)))
      >>> trajectory.positions[-1, 0].round(3)
      array([0.55, 0.55, 0.55])
    """
    # check the arguments
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
    # simulate
    positions = np.empty((T + 1, world.n_points, 3))
    rotations_ = np.empty((T + 1, world.n_frames, 3, 3))
    positions[0], rotations_[0] = first.positions, first.rotations
    reports = np.zeros((T, 6))
    before_x, before_R = state_before(world, first)
    taken = _core.rods_simulate_into(
        model,
        before_x=before_x,
        before_R=before_R,
        steps=T,
        inputs=core_inputs(world, inputs),
        tolerance=positive("tolerance", tolerance),
        iterations=min(count("iterations", iterations), np.iinfo(np.int32).max),
        persist=not strict,
        positions=positions,
        rotations=rotations_,
        reports=reports,
    )
    # report the convergence
    if taken < T:
        raise failure(world, Report.read(reports[: taken + 1], world), rotations_[taken])
    report = Report.read(reports, world)
    for states in (positions, rotations_):
        states.flags.writeable = False  # `Trajectory.gradient` reads them later
    return Trajectory(world, first, positions, rotations_, report, inputs, chosen, model)


def failure(world: World, report: Report, before: Array) -> ConvergenceError:
    """Return the error of the last step, given the rotations at its beginning."""
    step, residual = len(report.status) - 1, float(report.residuals[-1])
    unknown, contact = report.unknowns[-1], report.contacts[-1]
    message = (
        f"step {step} does not converge: {report.status[-1]} after {report.iterations[-1]} "
        f"iterations, Newton step {report.corrections[-1]:.1e}, residual {residual:.1e}"
    )
    if unknown:
        message += f"; the largest correction is at {unknown}"
    if contact is not None:
        part = "segment" if isinstance(world.contacts[contact[0]], SegmentContact) else "point"
        message += f", where {part} {contact[1]} of contact {contact[0]} is deepest"
    return ConvergenceError(message + folded(world, before), step, residual, unknown, contact)


def folded(world: World, rotations: Array) -> str:
    """Return a sentence that names a node with a bending angle above 90 degrees, or nothing."""
    for number, rod in enumerate(world.rods):
        if rod.bending == "tangent":
            continue
        R = rotations[world.frames(rod)]
        R = np.concatenate([R, R[: rod.closed]])
        between = np.swapaxes(R[:-1], -1, -2) @ R[1:]
        cosines = 0.5 * (np.trace(between, axis1=-2, axis2=-1) - 1)
        if cosines.min(initial=1) < 0:
            node = (int(np.argmin(cosines)) + 1) % rod.sizes[0]
            angle = np.degrees(np.arccos(np.clip(cosines.min(), -1, 1)))
            return (
                f". Rod {number} is bent by {angle:.0f} degrees at node {node}; above 90 degrees, "
                "its bending energy softens: use shorter edges or bending='tangent'"
            )
    return ""


def check_state(world: World, state: State) -> State:
    """Return copies of the arrays of a state in the core's layout, or raise if they are invalid."""
    instance("state", state, State)
    points, frames = world.n_points, world.n_frames
    x = shaped("positions", state.positions, (points, 3))
    v = shaped("velocities", state.velocities, (points, 3))
    w = shaped("angular_velocities", state.angular_velocities, (frames, 3))
    R = rotations("rotations", state.rotations, (frames, 3, 3))
    fixed_points, fixed_frames = world.fixed()
    if v[fixed_points > 0].any() or w[fixed_frames > 0].any():
        raise ArgumentError("fixed points and frames must not have a velocity")
    # a rotation by more than half a turn per step equals one in the opposite direction
    with np.errstate(over="ignore"):
        fastest = np.linalg.norm(w, axis=1).max(initial=0) * world.timestep
    if fastest >= np.pi:
        raise ArgumentError(
            f"angular_velocities must be below half a turn per step, got {fastest:.3g} rad"
        )
    for rod in world.rods:
        lengths = np.linalg.norm(rod.along(x[world.points(rod)]), axis=1)
        if not lengths.min() > 0:
            raise ArgumentError(f"edge {int(np.argmin(lengths))} of a rod has length zero")
    for number, cable in enumerate(world.cables):
        path = [world.place(p, x, R) for p in cable.path]
        if not np.linalg.norm(np.diff(path, axis=0), axis=1).min() > 0:
            raise ArgumentError(f"two consecutive points of cable {number} coincide")
    return State(x.copy(), R, v.copy(), w.copy())


def check_inputs(
    world: World, steps: int | None, given: dict[str, ArrayLike | None]
) -> tuple[int, Inputs]:
    """Return the number of steps and copies of the inputs in the core's layout."""
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
    """Return the given number of steps, or the length of the first input."""
    if steps is not None:
        return count("steps", steps)
    for values in inputs:
        if values is not None:
            return count("steps", np.shape(values)[0] if np.ndim(values) else 0)
    raise ArgumentError("steps must be given if there are no inputs")
