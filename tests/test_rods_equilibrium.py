"""Static equilibria of rods and bodies, and their gradients."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mujacobian import _core, rods
from mujacobian.rods.body import moments
from mujacobian.rods.rotation import project
from mujacobian.rods.state import PARAMETERS
from mujacobian.rods.trajectory import core_inputs

DIFFERENCES = 1e-7  # relative to the gradient
STATIC = ("mass", "length", "stretch", "shear", "bend", "attachment", "contact")


def scene():
    """Return a world with all static elements: a bridge with a load, a cable and a floor."""
    bridge = rods.Rod(
        np.linspace([0, 0, 0], [1, 0, 0], 9),
        mass=0.4,
        radius=0.02,
        stretch=300,
        shear=200,
        bend=[0.3, 0.4, 0.5],
        rest_curvature=[0.2, -0.3, 0.1],
        clamp_start=True,
        bending="tangent",
        fixed_nodes=[8],
    )
    load = rods.RigidBody(0.3, [1e-3, 2e-3, 2.5e-3], position=[0.5, 0.05, -0.2])
    feet = [load.at([x, y, -0.1]) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    return rods.World(
        timestep=1,
        rods=[bridge],
        bodies=[load],
        attachments=[
            rods.Attachment(bridge.node(4), load.at([0, 0, 0.1]), 50),
            rods.Attachment(load.at([0.1, 0, 0]), [0.7, 0.1, -0.2], 20),
            rods.Weld(bridge.frame(3), load.frame, 0.2),
        ],
        cables=[rods.Cable([bridge.node(1), bridge.beside(4, [0, 0.05, 0]), load.at([0, 0.1, 0])])],
        contacts=[rods.Contact(feet, rods.Plane([0, 0.1, 1], -0.33), 400, 0.5, radius=0.02)],
    )


def inputs(world):
    rng = np.random.default_rng(1)
    return {
        "forces": 0.2 * rng.normal(size=(world.n_points, 3)),
        "tensions": np.array([0.7]),
        "rest": 0.3 * rng.normal(size=(world.n_bends, 3)),
        "targets": world.anchors + 0.01,
    }


@pytest.fixture(scope="module")
def case():
    world = scene()
    given = inputs(world)
    rng = np.random.default_rng(2)
    made = rods.equilibrium(world, **given)
    scalar = rng.normal(size=made.positions.shape), rng.normal(size=made.rotations.shape)
    return world, given, made, scalar


def test_it_is_where_a_damped_motion_ends(case):
    world, given, made, _ = case
    assert made.report.converged.all()
    plane = world.contacts[0].shape
    depths = [
        0.02 - (plane.normal @ world.place(p, made.positions, made.rotations) - plane.offset)
        for p in world.contacts[0].points
    ]
    assert max(depths) > 1e-4  # it rests on the floor
    slow = rods.World(
        timestep=10,
        rods=world.rods,
        bodies=world.bodies,
        attachments=world.attachments,
        cables=world.cables,
        contacts=[replace(world.contacts[0], friction=0)],
    )
    long = {name: np.tile(x, (40,) + (1,) * x.ndim) for name, x in given.items()}
    last = rods.rollout(slow, made.state, **long)
    assert np.abs(last.positions - made.positions).max() < 1e-9
    assert np.abs(last.rotations - made.rotations).max() < 1e-8


def extrapolated(f, size):
    d = [(f(s) - f(-s)) / (2 * s) for s in (size, size / 2, size / 4)]
    e = [(4 * b - a) / 3 for a, b in pairwise(d)]
    return (16 * e[1] - e[0]) / 15


@pytest.mark.parametrize("family", ["positions", "forces", "tensions", "rest", "targets", *STATIC])
def test_gradient_against_central_differences(case, family):
    world, given, made, scalar = case
    gradient = made.gradient(*scalar)
    if family == "positions":
        have = gradient.state.positions
    else:
        have = getattr(gradient.params if family in STATIC else gradient, family)
    rng = np.random.default_rng(3)
    direction = rng.normal(size=have.shape)
    if family in STATIC:
        direction *= getattr(world.parameters(), family)

    def value(s):
        state, inputs_, params = made.state, given, world.parameters()
        if family == "positions":
            state = replace(state, positions=state.positions + s * direction)
        elif family in given:
            inputs_ = given | {family: given[family] + s * direction}
        else:
            params = replace(params, **{family: getattr(params, family) + s * direction})
        new = rods.equilibrium(world, state, params=params, tolerance=1e-12, **inputs_)
        return (new.positions * scalar[0]).sum() + (new.rotations * scalar[1]).sum()

    wanted = extrapolated(value, 1e-3)
    assert abs(wanted) > 1e-5
    assert abs((have * direction).sum() - wanted) < DIFFERENCES * abs(wanted)


def test_adjoint_equals_forward_sensitivities(case):
    """The derivatives of the equilibrium with respect to forces and all parameters."""
    world, _, made, scalar = case
    n, points = 3 * (world.n_points + world.n_frames), 3 * world.n_points
    past = [np.stack([each] * 2) for each in (made.first.positions, made.first.rotations)]
    rows = core_inputs(world, made.inputs)
    at = (made.model, 0, *past, rows, made.positions, made.rotations)
    hessian = np.empty((n, n))
    halves = np.empty((world.n_points, 3)), np.empty((world.n_frames, 3))
    _core.rods_evaluate_into(*at, *halves, hessian)
    lines = []
    for z in np.eye(n):
        bars = [None if x is None else np.zeros_like(x) for x in vars(made.inputs).values()]
        params = [np.zeros(np.shape(p)) for p in vars(world.parameters()).values()]
        split = np.split(z, [points])
        _core.rods_pull_back_step_into(*at, *split, bars, params, [])
        lines.append(np.concatenate([bars[0].ravel(), *(p.ravel() for p in params)]))
    free = np.repeat(np.concatenate(world.fixed()), 3) == 0
    sensitivities = -np.linalg.solve(hessian[np.ix_(free, free)], np.array(lines)[free])
    R_bar = project(made.rotations, scalar[1])
    wanted = np.concatenate([scalar[0].ravel(), R_bar.ravel()])[free] @ sensitivities
    gradient = made.gradient(*scalar)
    params = replace(gradient.params, inertia=moments(gradient.params.inertia))
    have = np.concatenate([gradient.forces.ravel(), *(p.ravel() for p in vars(params).values())])
    ends = np.cumsum([gradient.forces.size, *(np.size(p) for p in vars(params).values())])
    for one, other in zip(np.split(have, ends), np.split(wanted, ends), strict=True):
        assert np.abs(one - other).max(initial=0) < 1e-10 * np.abs(other).max(initial=1e-3)


def test_only_fixed_points_of_the_first_state_matter(case):
    world, _, made, scalar = case
    gradient = made.gradient(*scalar)
    fixed = world.fixed()[0] > 0
    assert np.abs(gradient.state.positions[fixed]).min() > 1e-6
    assert not gradient.state.positions[~fixed].any()
    assert not gradient.state.velocities.any()
    for name in set(PARAMETERS) - set(STATIC):
        assert not getattr(gradient.params, name).any()


def test_tangents_repeats_and_copies(case):
    _, _, made, (x_bar, R_bar) = case
    first = made.gradient(x_bar, R_bar)
    assert made.gradient(x_bar, R_bar).params.bend.tobytes() == first.params.bend.tobytes()
    other = made.gradient(x_bar, project(made.rotations, R_bar), tangent=True)
    assert (other.forces == first.forces).all()
    again = pickle.loads(pickle.dumps(made))
    assert again.gradient(x_bar, R_bar).params.bend.tobytes() == first.params.bend.tobytes()
    assert not again.positions.flags.writeable


def test_a_free_body_has_no_equilibrium():
    world = rods.World(timestep=1, bodies=[rods.RigidBody(1, [1, 1, 1])])
    with pytest.raises(rods.ConvergenceError):
        rods.equilibrium(world)
