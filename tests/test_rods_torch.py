"""mujacobian.rods.torch passes gradcheck and returns the gradients of mujacobian.rods.rollout."""

import numpy as np
import pytest

from mujacobian import rods
from tests.scenes.rods_cases import everything, inputs, weights

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
bridge = pytest.importorskip("mujacobian.rods.torch")


def tensor(values, grad=True):
    return torch.tensor(np.asarray(values), dtype=torch.float64, requires_grad=grad)


def test_gradients_are_those_of_rollout():
    world = everything()
    given = inputs(world)
    trajectory = rods.rollout(world, **given)
    x_bar, R_bar = weights(trajectory)
    wanted = trajectory.gradient(x_bar, R_bar)
    tensors = {name: tensor(u) for name, u in given.items()}
    state = rods.State(**{name: tensor(x) for name, x in vars(world.state()).items()})
    params = rods.Parameters(**{name: tensor(x) for name, x in vars(world.parameters()).items()})
    positions, rotations = bridge.rollout(world, state, params=params, **tensors)
    assert positions.detach().numpy().tobytes() == trajectory.positions.tobytes()
    ((positions * tensor(x_bar, False)).sum() + (rotations * tensor(R_bar, False)).sum()).backward()
    for name in given:
        assert tensors[name].grad.numpy().tobytes() == getattr(wanted, name).tobytes()
    for given_, made in ((state, wanted.state), (params, wanted.params)):
        for name, gradient in vars(made).items():
            have = getattr(given_, name).grad.numpy()
            assert np.abs(have - gradient).max(initial=0) <= 1e-12 * np.abs(gradient).max(initial=1)


def test_gradcheck():
    rod = rods.Rod(
        np.linspace([0, 0, 0], [0.3, 0, 0], 4),
        mass=0.1,
        radius=0.01,
        stretch=50,
        shear=40,
        bend=[0.1, 0.2, 0.3],
        fixed_nodes=[0],
        fixed_edges=[0],
    )
    world = rods.World(timestep=0.02, rods=[rod])
    rng = np.random.default_rng(1)

    def states(forces, rest, stretch):
        params = rods.Parameters(**(vars(world.parameters()) | {"stretch": stretch}))
        return bridge.rollout(world, forces=forces, rest=rest, params=params)

    given = rng.normal(size=(3, 4, 3)), rng.normal(size=(3, 2, 3)), [50.0, 60.0, 70.0]
    assert torch.autograd.gradcheck(states, tuple(map(tensor, given)))


def test_invalid_arguments_raise():
    world = rods.World(timestep=0.1, bodies=[rods.RigidBody(mass=1, inertia=[1, 1, 1])])
    for name in ("world", "state", "params"):
        with pytest.raises(TypeError, match=f"{name} must be of type"):
            bridge.rollout(**({"world": world, "steps": 3} | {name: 0}))
    with pytest.raises(TypeError, match=r"forces must have double precision"):
        bridge.rollout(world, forces=torch.zeros(3, 1, 3))
    forces = tensor(np.zeros((3, 1, 3)))
    square = bridge.rollout(world, forces=forces)[0].square().sum()
    (slope,) = torch.autograd.grad(square, forces, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()
