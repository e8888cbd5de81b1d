"""Rollouts of rods as JAX functions, with exact gradients: `pip install 'mujacobian[jax]'`.

They work under `jit`, `grad` and `vmap`; `vmap` evaluates the rollouts sequentially. Arrays have
double precision, which needs `jax.config.update("jax_enable_x64", True)`. Only first derivatives
are available.

Example:
  >>> import jax, numpy as np, mujacobian.rods.jax
  >>> from mujacobian import rods
  >>> jax.config.update("jax_enable_x64", True)
  >>> ball = rods.RigidBody(mass=1, inertia=[1, 1, 1])
  >>> world = rods.World(timestep=0.1, bodies=[ball])
  >>> def last_height(forces):
  ...     positions, rotations = mujacobian.rods.jax.rollout(world, forces=forces)
  ...     return positions[-1, 0, 2]
  >>> jax.jit(jax.grad(last_height))(np.zeros((20, 1, 3))).shape
  (20, 1, 3)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array
from mujacobian.errors import MissingPackageError
from mujacobian.rods.description import instance
from mujacobian.rods.rollout import check_inputs, check_state, step_count
from mujacobian.rods.rollout import rollout as simulate
from mujacobian.rods.state import INPUTS, PARAMETERS, STATE, Parameters, State
from mujacobian.rods.trajectory import Report, Trajectory
from mujacobian.rods.world import World

try:
    import jax
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.rods.jax needs JAX: pip install 'mujacobian[jax]'"
    ) from error

from mujacobian.jax import as_array

Values = dict[str, Any]


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
) -> tuple[jax.Array, jax.Array]:
    """Return the positions `(T + 1, points, 3)` and rotations `(T + 1, frames, 3, 3)` of a rollout.

    The arguments are those of `rods.rollout`. All values may be JAX arrays, also the fields of
    `rods.State` and `rods.Parameters`. The gradient with respect to a rotation is a matrix in the
    tangent space at this rotation.
    """
    instance("world", world, World)
    given = dict(zip(INPUTS, (forces, torques, tensions, rest, targets), strict=True))
    values = {name: as_array(name, x) for name, x in given.items() if x is not None}
    T = step_count(steps, values.values())
    first = world.state() if state is None else instance("state", state, State)
    numbers = world.parameters() if params is None else instance("params", params, Parameters)
    values |= {name: as_array(name, getattr(first, name)) for name in STATE}
    values |= {name: as_array(name, getattr(numbers, name)) for name in PARAMETERS}
    options = {"tolerance": tolerance, "iterations": iterations}
    made: tuple[jax.Array, jax.Array] = _function(world, T, options)(values)
    return made


def _function(world: World, T: int, options: Values) -> Any:  # noqa: ANN401
    """Return a differentiable function from all values to positions and rotations."""
    # NumPy functions for positions and rotations, and for the reverse pass
    shapes = (T + 1, world.n_points, 3), (T + 1, world.n_frames, 3, 3)
    results = tuple(jax.ShapeDtypeStruct(s, np.float64) for s in shapes)  # type: ignore[no-untyped-call]

    def run(values: Values) -> tuple[Array, Array]:
        state, params, inputs = _split(values)
        trajectory = simulate(world, state, T, params=params, **inputs, **options)
        return trajectory.positions, trajectory.rotations

    def pull_back(values: Values, x: Array, R: Array, x_bar: Array, R_bar: Array) -> Values:
        state, params, given = _split(values)
        _, inputs = check_inputs(world, T, given)
        report = Report.read(np.tile([0.0, 0, 0, 0, -1, -1], (T, 1)), world)  # all converged
        trajectory = Trajectory(
            world,
            check_state(world, state),
            np.asarray(x),
            np.asarray(R),
            report,
            inputs,
            params,
            world.model(params),
        )
        gradient = trajectory.gradient(np.asarray(x_bar), np.asarray(R_bar))
        made = vars(gradient.state) | vars(gradient.params) | vars(gradient)
        return {name: made[name] for name in values}

    # the same as JAX functions
    def forward(values: Values) -> Any:  # noqa: ANN401
        made = jax.pure_callback(run, results, values, vmap_method="sequential")
        return made, (values, *made)

    def backward(residuals: Any, cotangents: Any) -> Any:  # noqa: ANN401
        like = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, np.float64),  # type: ignore[no-untyped-call]
            residuals[0],
        )
        args = *residuals, *cotangents
        return (jax.pure_callback(pull_back, like, *args, vmap_method="sequential"),)

    function = jax.custom_vjp(lambda values: forward(values)[0])
    function.defvjp(forward, backward)
    return function


def _split(values: Values) -> tuple[State, Parameters, Values]:
    """Return the state, the parameters and the inputs that are among the values."""
    arrays = {name: np.array(x, dtype=np.float64) for name, x in values.items()}
    state = State(**{name: arrays.pop(name) for name in STATE})
    params = Parameters(**{name: arrays.pop(name) for name in PARAMETERS})
    return state, params, arrays
