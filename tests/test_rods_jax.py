"""mujacobian.rods.jax returns the gradients of mujacobian.rods.rollout, under jit and vmap."""

import numpy as np
import pytest

from mujacobian import rods
from tests.scenes.rods_cases import everything, inputs, weights

jax = pytest.importorskip("jax", reason="JAX is not installed")
bridge = pytest.importorskip("mujacobian.rods.jax")
pytestmark = pytest.mark.usefixtures("double_precision")


def test_gradients_are_those_of_rollout():
    world = everything()
    given = inputs(world)
    trajectory = rods.rollout(world, **given)
    x_bar, R_bar = weights(trajectory)
    wanted = trajectory.gradient(x_bar, R_bar)

    def scalar(given, state, params):
        state, params = rods.State(**state), rods.Parameters(**params)
        positions, rotations = bridge.rollout(world, state, params=params, **given)
        return (positions * x_bar).sum() + (rotations * R_bar).sum()

    start = given, vars(world.state()), vars(world.parameters())
    made = jax.jit(jax.grad(scalar, argnums=(0, 1, 2)))(*start)
    for have, want in zip(made, (wanted, wanted.state, wanted.params), strict=True):
        for name, gradient in have.items():
            exact = getattr(want, name)
            error = np.abs(gradient - exact).max(initial=0)
            assert error <= 1e-12 * np.abs(exact).max(initial=1)


def test_vmap():
    world = rods.World(timestep=0.1, bodies=[rods.RigidBody(mass=1, inertia=[1, 1, 1])])

    def height(forces):
        return bridge.rollout(world, forces=forces)[0][-1, 0, 2]

    forces = np.random.default_rng(1).normal(size=(3, 5, 1, 3))
    made = jax.vmap(jax.grad(height))(forces)
    for each, gradient in zip(forces, made, strict=True):
        assert (jax.grad(height)(each) == gradient).all()


def test_invalid_arguments_raise():
    world = rods.World(timestep=0.1, bodies=[rods.RigidBody(mass=1, inertia=[1, 1, 1])])
    for name in ("world", "state", "params"):
        with pytest.raises(TypeError, match=f"{name} must be of type"):
            bridge.rollout(**({"world": world, "steps": 3} | {name: 0}))
    with pytest.raises(ValueError, match="steps must be given"):
        bridge.rollout(world)
    assert bridge.rollout(world, steps=3)[0].shape == (4, 1, 3)
