"""Gradients of rollouts of rods agree with differences and with forward sensitivities."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mujacobian import _core, rods
from mujacobian._rotation import axial, right_jacobian, skew
from mujacobian.rods.body import moments
from mujacobian.rods.rotation import project
from mujacobian.rods.start import state_before
from mujacobian.rods.state import INPUTS, PARAMETERS, STATE, Inputs
from mujacobian.rods.trajectory import core_inputs
from tests.scenes.rods_cases import STEPS, everything, inputs, weights

DIFFERENCES = 1e-7  # relative to the gradient, along random directions of each family
SENSITIVITIES = 1e-10


@pytest.fixture(scope="module", params=["backward_euler", "bdf2"])
def case(request):
    world = everything(integrator=request.param)
    given = inputs(world)
    trajectory = rods.rollout(world, **given)
    return world, given, trajectory, weights(trajectory)


def test_the_case_has_contacts(case):
    """Both shapes have contacts with friction in all steps."""
    world, _, trajectory, _ = case
    ball, table = (world.points(b).start for b in world.bodies)
    R = trajectory.rotations
    for point in world.contacts[0].points:
        z = (
            trajectory.positions[:, table, 2]
            + (R[:, world.frames(world.bodies[1]).start] @ point.offset)[:, 2]
        )
        assert (z < 0.01).all()
    for point in world.contacts[1].points:
        at = (
            trajectory.positions[:, ball] + R[:, world.frames(world.bodies[0]).start] @ point.offset
        )
        seen = np.einsum("tji,tj->ti", R[:, -1], at - trajectory.positions[:, table])
        assert (seen[:, 2] < 0.12).all()
    assert trajectory.report.converged.all()


def extrapolated(f, size):
    """Return the derivative of f at 0 by central differences, extrapolated twice."""
    d = [(f(s) - f(-s)) / (2 * s) for s in (size, size / 2, size / 4)]
    e = [(4 * b - a) / 3 for a, b in pairwise(d)]
    return (16 * e[1] - e[0]) / 15


def varied(case, family, direction):
    """Return the scalar as a function of the distance along a direction of one family."""
    world, given, _, scalar = case

    def value(s):
        state, inputs_, params = world.state(), given, world.parameters()
        if family == "rotations":
            state = replace(state, rotations=rods.exp(s * direction) @ state.rotations)
        elif family in STATE:
            state = replace(state, **{family: getattr(state, family) + s * direction})
        elif family in INPUTS:
            inputs_ = given | {family: given[family] + s * direction}
        else:
            params = replace(params, **{family: getattr(params, family) + s * direction})
        made = rods.rollout(world, state, STEPS, params=params, **inputs_)
        return (made.positions * scalar[0]).sum() + (made.rotations * scalar[1]).sum()

    return value


def random_direction(world, family, shape, rng):
    """Return a valid change: fixed points do not move, and inertias are symmetric."""
    fixed = dict(zip(("velocities", "angular_velocities"), world.fixed(), strict=True))
    made = rng.normal(size=shape)
    if family in fixed:
        made[fixed[family] > 0] = 0
    if family in PARAMETERS:
        base = getattr(world.parameters(), family)
        if family != "inertia":
            return made * base
        made = np.trace(base, axis1=1, axis2=2)[:, None, None] * (made + np.swapaxes(made, 1, 2))
    return made


@pytest.mark.parametrize("family", STATE + INPUTS + PARAMETERS)
def test_gradient_against_central_differences(case, family):
    world, _, trajectory, scalar = case
    gradient = trajectory.gradient(*scalar)
    owner = gradient.state if family in STATE else gradient
    have = getattr(gradient.params if family in PARAMETERS else owner, family)
    if family == "rotations":
        have = project(trajectory.rotations[0], have)
    # contacts must persist; weak variables need large changes
    sizes = {"positions": 1e-4, "rotations": 1e-4}
    weak = {"stretch_damping": 0.1, "drag": 0.1, "spin_drag": 0.1, "attachment": 1e-2}
    size = (sizes | weak).get(family, 1e-3)
    rng = np.random.default_rng(3)
    for _ in range(2):
        direction = random_direction(world, family, have.shape, rng)
        product = (have * direction).sum()
        wanted = extrapolated(varied(case, family, direction), size)
        assert abs(wanted) > 1e-6
        assert abs(product - wanted) < DIFFERENCES * abs(wanted)


def step_matrices(case, k):
    """Return the dense Hessian and mixed derivatives of step k, from products of the core."""
    world, given, trajectory, _ = case
    n = 3 * (world.n_points + world.n_frames)
    x, R = trajectory.positions, trajectory.rotations
    before = state_before(world, trajectory.first)
    past = [(x[j], R[j]) if j >= 0 else before for j in range(k, max(k - 4, -2), -1)]
    past_x, past_R = (np.stack(each) for each in zip(*past, strict=True))
    rows = core_inputs(world, Inputs(**{name: u[k : k + 1] for name, u in given.items()}))
    at = (trajectory.model, k, past_x, past_R, rows, x[k + 1], R[k + 1])
    hessian = np.empty((n, n))
    halves = np.empty((world.n_points, 3)), np.empty((world.n_frames, 3))
    _core.rods_evaluate_into(*at, *halves, hessian)
    lines = []
    for z in np.eye(n):
        inputs_ = [np.zeros((1, *given[name].shape[1:])) for name in INPUTS]
        params = [np.zeros(np.shape(p)) for p in vars(world.parameters()).values()]
        bars = [tuple(np.zeros((m, 3)) for m in (world.n_points, world.n_frames)) for _ in past]
        points, frames = np.split(z, [3 * world.n_points])
        _core.rods_pull_back_step_into(*at, points, frames, inputs_, params, bars)
        params[1] = moments(params[1])
        made = {f"past {j}": np.concatenate(bar) for j, bar in enumerate(bars)}
        made |= dict(zip((*INPUTS, *PARAMETERS), (*inputs_, *params), strict=True))
        lines.append({name: values.ravel() for name, values in made.items()})
    return hessian, {name: np.array([line[name] for line in lines]) for name in lines[0]}


def skew_columns(vectors):
    """Return `[v]x` for each column of vectors `(frames, 3, columns)`."""
    return np.moveaxis(skew(np.swapaxes(vectors, 1, 2)), 1, -1)


def axial_columns(matrices):
    return np.swapaxes(axial(np.moveaxis(matrices, -1, 1)), 1, 2)


def test_adjoint_equals_forward_sensitivities(case):
    """This covers the first state and change, the inputs of step 2 and all parameters."""
    world, given, trajectory, scalar = case
    n, points, h = 3 * (world.n_points + world.n_frames), 3 * world.n_points, world.timestep
    fixed = np.repeat(np.concatenate(world.fixed()), 3) > 0
    free = ~fixed
    sizes = {"state": n, "step": n}
    sizes |= {name: given[name][0].size for name in INPUTS}
    sizes |= {name: values.size for name, values in vars(world.parameters()).items()}
    ends = np.cumsum(list(sizes.values()))
    columns = {name: slice(e - sizes[name], e) for name, e in zip(sizes, ends, strict=True)}
    first, before = np.zeros((n, ends[-1])), np.zeros((n, ends[-1]))
    first[:, columns["state"]] = before[:, columns["state"]] = np.eye(n)
    before[:, columns["step"]] = -np.eye(n)
    # derivatives of the matrices of the frames before the first state, (frames, 3, 3, columns)
    turn = before[points:].reshape(-1, 3, ends[-1])
    matrices = np.zeros((world.n_frames, 3, 3, ends[-1]))
    if world.order == 1:
        change = rods.exp(h * trajectory.first.angular_velocities)
        turned = np.swapaxes(change, 1, 2) @ turn
        before[points:] = turned.reshape(-1, ends[-1])
    else:
        # R - h [w]x R: only the inertia of frames depends on it
        R, spin = trajectory.first.rotations, h * trajectory.first.angular_velocities
        left = first[points:].reshape(-1, 3, ends[-1])
        rotated = np.einsum("fijc,fjk->fikc", skew_columns(left), R)
        matrices = rotated - np.einsum("fij,fjkc->fikc", skew(spin), rotated)
        matrices -= np.einsum("fijc,fjk->fikc", skew_columns(left - turn), R)
        before[points:] = 0
    R_bar = project(trajectory.rotations, scalar[1])

    def at(k):
        return np.concatenate([scalar[0][k].ravel(), R_bar[k].ravel()])

    states = [first, before]  # sensitivities, newest first
    total = at(0) @ first
    for k in range(STEPS):
        hessian, mixed = step_matrices(case, k)
        right = hessian[:, fixed] @ states[0][fixed]
        for j, state in enumerate(states[:4]):
            right += mixed[f"past {j}"] @ state
        # weights of the matrices before the first state in the steps 0 and 1           (ROD-39)
        weight = {0: -1.0, 1: 0.5}.get(k, 0.0) / h**2
        J = moments(world.parameters().inertia)
        W = weight * np.einsum("fijc,fjk->fikc", matrices, J)
        M = np.einsum("fij,fkjc->fikc", trajectory.rotations[k + 1], W)
        right[points:] += axial_columns(M).reshape(-1, ends[-1])
        for name in (*PARAMETERS, *(INPUTS if k == 2 else ())):
            right[:, columns[name]] += mixed[name]
        new = states[0].copy()
        new[free] = -np.linalg.solve(hessian[np.ix_(free, free)], right[free])
        states.insert(0, new)
        total = total + at(k + 1) @ new
    adjoint = trajectory.gradient(scalar[0], R_bar, tangent=True)
    first = adjoint.state
    spins = first.angular_velocities[:, :, None]
    if world.order == 1:
        turning = right_jacobian(h * trajectory.first.angular_velocities)
        spins = np.linalg.solve(turning, spins)
    made = {
        "state": np.concatenate([first.positions, first.rotations]),
        "step": np.concatenate([first.velocities, spins[:, :, 0]]) / h,
        **{name: getattr(adjoint, name)[2] for name in INPUTS},
        **vars(adjoint.params),
    }
    for name, values in made.items():
        wanted = total[columns[name]]
        assert np.abs(wanted).max() > 1e-6
        assert np.abs(values.ravel() - wanted).max() < SENSITIVITIES * np.abs(wanted).max()


def test_rollouts_in_threads(case):
    """Threads that share a world return the same bits as sequential calls."""
    world, given, _, scalar = case

    def last(seed):
        made = rods.rollout(world, **(given | {"forces": inputs(world, seed)["forces"]}))
        return made.gradient(*scalar).forces.tobytes()

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(last, range(8)))
    assert together == [last(seed) for seed in range(8)]
    assert len(set(together)) == 8


def test_rotations_as_matrices_and_as_tangents(case):
    _, _, trajectory, (x_bar, R_bar) = case
    matrices = trajectory.gradient(x_bar, R_bar)
    tangents = trajectory.gradient(x_bar, project(trajectory.rotations, R_bar), tangent=True)
    assert (matrices.forces == tangents.forces).all()
    first = trajectory.rotations[0]
    turned = project(first, matrices.state.rotations)
    assert np.abs(turned - tangents.state.rotations).max() < 1e-12
    symmetric = np.swapaxes(first, 1, 2) @ matrices.state.rotations
    assert np.abs(symmetric + np.swapaxes(symmetric, 1, 2)).max() < 1e-12


def test_energies_with_inputs(case):
    """The stored energy includes cables and moved anchors."""
    _, given, trajectory, _ = case
    energies = trajectory.energies()
    assert energies.total.shape == (STEPS + 1,)
    loose = rods.rollout(trajectory.world, **(given | {"tensions": 0 * given["tensions"]}))
    assert energies.stored[0] - loose.energies().stored[0] > 0.1


def test_what_was_not_given_has_no_gradient():
    world = everything()
    trajectory = rods.rollout(world, steps=2)
    gradient = trajectory.gradient(*weights(trajectory))
    assert gradient.forces is gradient.rest is gradient.targets is None
    assert gradient.params.mass.any()
    assert gradient.norms.shape == (3,)


def test_repeats_are_bitwise_equal_and_nothing_changes(case):
    world, given, trajectory, scalar = case
    kept = [trajectory.positions.copy(), trajectory.rotations.copy(), given["forces"].copy()]
    first, again = trajectory.gradient(*scalar), trajectory.gradient(*scalar)
    for name in ("positions", "rotations", "velocities", "angular_velocities"):
        assert getattr(first.state, name).tobytes() == getattr(again.state, name).tobytes()
    assert first.params.bend.tobytes() == again.params.bend.tobytes()
    assert (trajectory.positions == kept[0]).all()
    assert (trajectory.rotations == kept[1]).all()
    assert (given["forces"] == kept[2]).all()
    # the caller cannot change the trajectory
    given = {name: u.copy() for name, u in given.items()}
    spoiled = rods.rollout(world, **given)
    given["forces"][:] = 0
    assert spoiled.gradient(*scalar).forces.tobytes() == first.forces.tobytes()
