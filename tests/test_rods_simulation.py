"""Simulation of rods and bodies: convergence, conservation laws and closed-form solutions."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from mujacobian import rods
from mujacobian._rotation import axial, log

BALANCE = 1e-9  # relative tolerance of conserved quantities


def straight(n, length=1.0, **options):
    nodes = np.linspace([0, 0, 0], [length, 0, 0], n + 1)
    given = {"mass": 0.3, "radius": 0.01, "stretch": 2e3, "shear": 2e3, "bend": [1, 1, 1]}
    return rods.Rod(nodes, **(given | options))


def racket(timestep):
    """Return a world with a free body that spins almost about its middle axis."""
    body = rods.RigidBody(
        mass=0.4,
        inertia=[1e-3, 2e-3, 2.8e-3],
        angular_velocity=[0.01, 10, 0.01],
        velocity=[1, 2, 3],
    )
    return rods.World(timestep=timestep, gravity=(0, 0, 0), bodies=[body])


def test_one_iteration_per_step_for_the_free_body():
    """The body also flips, as a tennis racket does."""
    trajectory = rods.rollout(racket(1e-3), steps=4000)
    assert (trajectory.report.iterations == 1).all()
    axis = trajectory.rotations[:, 0, :, 1] @ [0, 1, 0]
    assert axis.min() < -0.9
    assert axis.max() > 0.9


def test_linear_momentum_is_conserved():
    body = racket(0.01)
    v = rods.rollout(body, steps=300).velocities
    assert np.abs(v - [1, 2, 3]).max() < BALANCE
    rng = np.random.default_rng(1)
    rod = straight(20, velocities=rng.normal(size=(21, 3)), bend_damping=0.01, stretch_damping=1)
    world = rods.World(timestep=0.005, gravity=(0, 0, 0), rods=[rod])
    momentum = np.einsum(
        "p,tpi->ti", world.parameters().mass, rods.rollout(world, steps=100).velocities
    )
    assert np.abs(momentum[0]).max() > 0.01
    assert np.abs(momentum - momentum[0]).max() < BALANCE


def angular_momentum(world, trajectory):
    """Return the angular momentum after each step, and its changes by backward Euler (ROD-28)."""
    h, p = world.timestep, world.parameters()
    moment = 0.5 * np.trace(p.inertia, axis1=1, axis2=2)[:, None, None] * np.eye(3) - p.inertia
    x, v, R = trajectory.positions[1:], trajectory.velocities[1:], trajectory.rotations
    rate = np.diff(R, axis=0) / h
    L = np.einsum("p,tpi->ti", p.mass, np.cross(x, v))
    L += axial(np.einsum("tfij,fjk,tflk->til", rate, moment, R[1:]))
    lag = np.einsum("p,tpi->ti", p.mass, np.cross(v[1:], v[:-1]))
    lag += axial(np.einsum("tfij,fjk,tflk->til", rate[:-1], moment, rate[1:]))
    return L, h * lag


@pytest.mark.parametrize("kind", ["body", "rod"])
def test_angular_momentum_changes_as_backward_euler_makes_it(kind):
    """The change is exactly h v_k x v_{k-1}, which vanishes in the limit of small steps."""
    drift = []
    for steps in (100, 200):
        h = 0.2 / steps
        if kind == "body":
            world = racket(h)
        else:
            s = np.linspace(-1, 1, 9)[:, None]
            rod = straight(
                8, velocities=s * [0, 1, 0] + s**2 * [0, 0, 0.5], rest_curvature=[1, 0, 1]
            )
            world = rods.World(timestep=h, gravity=(0, 0, 0), rods=[rod])
        L, lag = angular_momentum(world, rods.rollout(world, steps=steps))
        assert np.abs(np.diff(L, axis=0) - lag).max() < BALANCE * np.abs(L).max()
        drift.append(np.abs(L[-1] - L[0]).max())
    assert abs(drift[1] / drift[0] - 0.5) < 0.05  # first order in the time step


@pytest.mark.parametrize("kind", ["body", "rod"])
def test_a_spin_decays_as_no_conserved_momentum_allows(kind):
    """By (ROD-31), the spin decays to zero, so no angular momentum of two states is conserved."""
    h, angle, steps = 0.01, 0.5, 50
    if kind == "body":
        made = rods.RigidBody(mass=1, inertia=[1, 2, 2.5], angular_velocity=[0, angle / h, 0])
        world = rods.World(timestep=h, gravity=(0, 0, 0), bodies=[made])
    else:  # about its own axis, which does not change the elastic energy
        made = straight(5, angular_velocities=[angle / h, 0, 0])
        world = rods.World(timestep=h, gravity=(0, 0, 0), rods=[made])
    R = rods.rollout(world, steps=steps).rotations
    turned = np.linalg.norm(log(R[1:] @ np.swapaxes(R[:-1], -1, -2)), axis=-1)
    for k in range(steps):
        angle = np.arctan2(np.sin(angle), 2 - np.cos(angle))
        assert np.abs(turned[k] - angle).max() < 1e-12
    small = turned[-1, 0]
    assert abs(np.arctan2(np.sin(small), 2 - np.cos(small)) - small + small**3) < 10 * small**5


@pytest.mark.parametrize("damping", [0.0, 1e-2])
def test_energy_decays_monotonically(damping):
    rng = np.random.default_rng(3)
    rod = straight(
        15,
        velocities=rng.normal(size=(16, 3)),
        rest_curvature=[3, 0, 1],
        bend_damping=damping,
        stretch_damping=damping,
        drag=damping,
        spin_drag=damping * 1e-3,
    )
    body = rods.RigidBody(mass=1, inertia=[1, 2, 2.5], angular_velocity=[1, 2, 3], drag=damping)
    world = rods.World(timestep=0.005, gravity=(0, 0, 0), rods=[rod], bodies=[body])
    energy = rods.rollout(world, steps=300).energies().total
    assert energy[0] > 1
    assert (np.diff(energy) < 0).all()


def test_cantilever_against_euler_and_bernoulli():
    """The deflection under a small load at the tip is P L^3 / (3 EI) + P L / GA."""
    deflections, n = [], 200
    bend, shear, load = 2.0, 1e4, 1e-3
    for edges in (n // 2, n):
        beam = straight(
            edges, bend=[bend] * 3, shear=shear, stretch=1e5, fixed_nodes=[0], fixed_edges=[0]
        )
        world = rods.World(timestep=1e6, gravity=(0, 0, 0), rods=[beam])
        forces = np.zeros((4, edges + 1, 3))
        forces[:, -1, 2] = load
        tip = rods.rollout(world, forces=forces).positions[-1, -1]
        deflections.append(tip[2])
    # the clamped edge does not bend, so the beam is half an edge shorter
    exact = load / (3 * bend) + load / (shear / 2)
    errors = [abs(d / exact - 1) for d in deflections]
    assert errors[1] < 0.01
    assert errors[1] < 0.6 * errors[0]
    assert abs(2 * deflections[1] - deflections[0] - exact) < 1e-4 * exact


def test_cantilever_under_end_moment_is_a_circle():
    """The curvature is M / EI; the discrete rod has EI sin(angle) cos(angle) = M l (ROD-16)."""
    n, bend, moment = 50, 2.0, 3.0
    beam = straight(n, bend=[bend] * 3, fixed_nodes=[0], fixed_edges=[0])
    world = rods.World(timestep=1e6, gravity=(0, 0, 0), rods=[beam])
    torques = np.zeros((40, n, 3))
    torques[:, -1, 1] = moment
    R = rods.rollout(world, torques=torques, iterations=1000).rotations[-1]
    curvature = np.linalg.norm(rods.darboux(R, beam.rest_lengths), axis=1)
    exact = n * np.sin(0.5 * np.arcsin(2 * moment / (n * bend)))
    assert np.abs(curvature - exact).max() < 1e-9
    assert abs(exact / (moment / bend) - 1) < 1e-3


@pytest.mark.parametrize(("part", "buckles"), [(0.97, False), (1.03, True)])
def test_euler_buckling(part, buckles):
    """A clamped column buckles at pi^2 EI / (4 L^2); a straight one stays, but is unstable."""
    n, bend = 100, 2.0
    column = straight(
        n, bend=[bend] * 3, shear=1e5, stretch=1e5, fixed_nodes=[0], fixed_edges=[0], drag=1.0
    )
    free = 1 - 0.5 / n  # the clamped edge does not bend
    load = part * np.pi**2 * bend / (4 * free**2)
    forces = np.zeros((100, n + 1, 3))
    forces[:, -1, 0] = -load
    world = rods.World(timestep=10, gravity=(0, 0, 0), rods=[column])
    tip = rods.rollout(world, forces=forces).positions[:, -1]
    assert np.abs(tip[:, 1:]).max() < 1e-9
    forces[:, -1, 2] = 1e-5 * load
    tip = rods.rollout(world, forces=forces).positions[-1, -1]
    assert (tip[2] > 0.1) == buckles


def test_a_rod_with_intrinsic_curvature_relaxes_to_a_helix():
    """Its radius is kappa/(kappa^2 + tau^2), its pitch 2 pi tau/(kappa^2 + tau^2)."""
    n, length, kappa, tau = 400, 2.0, 4.0, 3.0
    rod = straight(n, length, rest_curvature=[kappa, 0, tau], drag=1e-3, spin_drag=1e-6)
    slow = rods.World(timestep=5e-3, gravity=(0, 0, 0), rods=[rod])
    fast = rods.World(timestep=0.1, gravity=(0, 0, 0), rods=[rod])
    trajectory = rods.rollout(fast, rods.rollout(slow, steps=40).state, steps=400)
    assert trajectory.energies().stored[-1] < 1e-12
    # the chord of a helix for an arc s
    square = kappa**2 + tau**2
    s = np.linspace(0, length, n + 1)
    angle = np.sqrt(square) * s
    exact = np.sqrt((2 * kappa / square * np.sin(angle / 2)) ** 2 + (tau / square * angle) ** 2)
    x = trajectory.positions[-1]
    chords = np.linalg.norm(x - x[0], axis=1)
    assert np.abs(chords - exact).max() < 1e-3 * length


def test_a_long_rod_is_simulated():
    """The rod has ten thousand edges; cost and memory are linear in their number."""
    rod = straight(10_000, 100.0, mass=10.0, fixed_nodes=[0], fixed_edges=[0])
    trajectory = rods.rollout(rods.World(timestep=0.01, rods=[rod]), steps=2)
    assert trajectory.report.converged.all()
    assert trajectory.positions[-1, -1, 2] < 0


@pytest.mark.parametrize("kind", ["chain", "ring", "towed", "bodies"])
def test_the_hessian_grows_linearly(kind):
    """This also holds for rods that are attached to each other, to themselves and to bodies."""

    def blocks(n):
        one, other = straight(n), straight(n)
        body = rods.RigidBody(mass=1, inertia=[1, 1, 1])
        links = {
            "chain": [rods.Attachment(one.node(-1), other.node(n // 2), 1)],
            "ring": [rods.Attachment(one.node(0), one.node(-1), 1)],
            "towed": [rods.Attachment(one.node(0), body.at(), 1)],
            "bodies": [
                rods.Weld(one.frame(0), body.frame, 1),
                rods.Weld(other.frame(5), body.frame, 1),
            ],
        }[kind]
        world = rods.World(timestep=1, rods=[one, other], bodies=[body], attachments=links)
        return world.model().hessian_blocks()

    assert abs(blocks(4000) / blocks(2000) - 2) < 0.01


def net(count):
    """Return a square net of rods with an edge in each mesh, knotted where they cross."""
    at = np.linspace(0, 1, count + 2)
    ropes, knots = ([], []), []
    for y in at[1:-1]:
        for axis in (0, 1):
            x = np.zeros((count + 2, 3))
            x[:, axis], x[:, 1 - axis] = at, y
            options = {"mass": 0.01, "radius": 0.002, "stretch": 10, "shear": 10, "bend": 1e-4}
            ropes[axis].append(rods.Rod(x, **options, fixed_nodes=[0, -1]))
    for i, one in enumerate(ropes[0]):
        for j, other in enumerate(ropes[1]):
            knots.append(rods.Attachment(one.node(j + 1), other.node(i + 1), 100))
    return rods.World(timestep=0.01, rods=[*ropes[0], *ropes[1]], attachments=knots)


def test_a_net_is_eliminated_with_little_fill():
    """In its natural order, the first factor has 24120 blocks. The net sags symmetrically."""
    assert net(10).model().hessian_blocks() < 6000
    assert net(20).model().hessian_blocks() < 50000
    world = net(5)
    trajectory = rods.rollout(world, steps=20)
    x = trajectory.positions[-1].reshape(2, 5, 7, 3)
    assert x[..., 2].min() < -0.01
    assert np.abs(x[0] - x[0, ::-1] * [1, -1, 1] - [0, 1, 0]).max() < 1e-9
    d_positions = np.zeros_like(trajectory.positions)
    d_positions[-1, :, 2] = 1
    stretch = trajectory.gradient(d_positions).params.stretch.reshape(2, 5, 6)
    assert np.abs(stretch).max() > 1e-4
    assert np.abs(stretch[0] - stretch[1]).max() < 1e-9 * np.abs(stretch).max()


def test_the_shortest_rod():
    """A rod with one edge has no bend."""
    world = rods.World(timestep=0.01, rods=[straight(1, fixed_nodes=[0])])
    trajectory = rods.rollout(world, steps=20)
    assert trajectory.positions[-1, 1, 2] < 0
    d_positions = np.ones_like(trajectory.positions)
    assert trajectory.gradient(d_positions).params.bend.shape == (0, 3)


def test_repeats_are_bitwise_equal_and_inputs_unchanged():
    rod = straight(10, fixed_nodes=[0], fixed_edges=[0])
    world = rods.World(timestep=0.01, rods=[rod])
    forces = np.random.default_rng(4).normal(size=(20, 11, 3))
    kept, state = forces.copy(), world.state()
    first, again = (rods.rollout(world, state, forces=forces) for _ in range(2))
    assert first.positions.tobytes() == again.positions.tobytes()
    assert (forces == kept).all()
    assert (state.positions == rod.nodes).all()
    assert (first.positions[:, 0] == rod.nodes[0]).all()  # clamped


def test_a_rollout_goes_on_from_the_last_state():
    world = rods.World(timestep=0.01, rods=[straight(10, fixed_nodes=[0], fixed_edges=[0])])
    whole = rods.rollout(world, steps=20)
    half = rods.rollout(world, steps=10)
    rest = rods.rollout(world, half.state, steps=10)
    assert np.abs(rest.positions - whole.positions[10:]).max() < 1e-12
    assert np.abs(rest.rotations - whole.rotations[10:]).max() < 1e-12


def test_a_step_that_does_not_converge_is_an_error_or_a_status():
    world = rods.World(timestep=0.1, rods=[straight(30, fixed_nodes=[0], fixed_edges=[0])])
    with pytest.raises(rods.ConvergenceError, match="step 0 does not converge") as caught:
        rods.rollout(world, steps=5, iterations=1)
    assert caught.value.step == 0
    assert caught.value.residual > 0
    trajectory = rods.rollout(world, steps=5, iterations=1, strict=False)
    assert not trajectory.report.converged[0]
    assert trajectory.report.status[0] == "too many iterations"
    with pytest.raises(Exception, match="did not converge"):
        trajectory.gradient()


@pytest.mark.parametrize("n", [5, 10, 20])
def test_the_inertia_of_a_rod_is_not_counted_twice(n):
    """Lumped masses have the factor 1 + 2 / n^2 of the transverse inertia (ROD-37)."""
    rod = straight(n)
    masses, inertias = rod.lumped()
    x = rod.nodes[:, 0] - 0.5
    transverse = (masses * x**2).sum() + inertias[:, 0, 0].sum()
    exact = 0.3 * (1 / 12 * (1 + 2 / n**2) + 0.01**2 / 4)
    assert abs(transverse - exact) < 1e-14
    assert abs(inertias[:, 2, 2].sum() - 0.3 * 0.01**2 / 2) < 1e-14


def elastica(load):
    """Return the tip of an inextensible cantilever of length and stiffness one, by shooting."""

    def bent(s, y):
        return [y[1], -load * np.cos(y[0]), np.cos(y[0]), np.sin(y[0])]

    def moment_at_tip(first):
        made = solve_ivp(bent, (0, 1), [0, first, 0, 0], rtol=1e-12, atol=1e-12)
        return made.y[1, -1]

    first = brentq(moment_at_tip, 0, load + 1, xtol=1e-13)
    made = solve_ivp(bent, (0, 1), [0, first, 0, 0], rtol=1e-12, atol=1e-12)
    return made.y[2:, -1]


def orders(errors):
    return np.log2(np.array(errors[:-1]) / errors[1:])


def settled(world, force):
    """Return the tip under a force that grows in long steps."""
    forces = np.zeros((30, world.n_points, 3))
    forces[:, -1] = np.minimum(np.arange(1, 31)[:, None] / 20, 1) * force
    return rods.rollout(world, forces=forces, iterations=300).positions[-1, -1]


@pytest.mark.parametrize("bending", ["sine", "tangent"])
@pytest.mark.parametrize("load", [1.0, 5.0])
def test_the_clamp_is_second_order(bending, load):
    """Half a bend against the wall (ROD-38) converges to the elastica with the second order."""
    exact, errors = elastica(load), []
    for n in (20, 40, 80):
        beam = straight(n, stretch=1e7, shear=1e7, clamp_start=True, bending=bending)
        world = rods.World(timestep=1e4, gravity=(0, 0, 0), rods=[beam])
        tip = settled(world, np.array([0, 0, load]))
        errors.append(np.hypot(tip[0] - exact[0], tip[2] - exact[1]))
    assert errors[0] < 4e-3
    assert orders(errors)[-1] > 1.9


def test_a_clamped_end_mirrors_a_clamped_start():
    start = straight(10, bend=[1, 2, 3], clamp_start=True)
    nodes, turn = np.asarray(start.nodes)[::-1], rods.exp([0, np.pi, 0])
    end = rods.Rod(
        nodes,
        mass=0.3,
        radius=0.01,
        stretch=2e3,
        shear=2e3,
        bend=[1, 2, 3],
        frames=np.asarray(start.frames)[::-1] @ turn,
        clamp_end=True,
    )
    one, other = (
        rods.rollout(rods.World(timestep=0.01, rods=[rod]), steps=10).positions[-1]
        for rod in (start, end)
    )
    assert one[-1, 2] < -1e-3
    assert np.abs(one - other[::-1]).max() < 1e-12


def test_both_ends_of_a_rod_are_clamped():
    """The middle of a clamped beam sinks by q L^4 / (384 EI) under a small uniform load."""
    load, errors = 1e-3, []
    for n in (20, 40, 80):
        beam = straight(n, stretch=1e7, shear=1e7, clamp_start=True, clamp_end=True)
        assert beam.bends == n + 1
        assert list(beam.fixed_nodes) == [0, n]
        world = rods.World(timestep=1e4, gravity=(0, 0, -load / 0.3), rods=[beam])
        middle = rods.rollout(world, steps=8).positions[-1, n // 2, 2]
        errors.append(abs(-384 * middle / load - 1))
    assert errors[0] < 0.03
    assert (orders(errors) > 1.9).all()


def test_a_tangent_bends_beyond_ninety_degrees():
    """The cantilever whose clamp folds with the sine converges in a few iterations per step."""
    area, second = np.pi * 2.5e-3**2, np.pi * 2.5e-3**4 / 4
    options = {"stretch": 1e7 * area, "shear": 2 / 3 * 1e7 * area, "radius": 2.5e-3}
    bend = [1e7 * second, 1e7 * second, 2 / 3 * 1e7 * second]
    beam = straight(50, **options, mass=1e3 * area, bend=bend, clamp_start=True, bending="tangent")
    report = rods.rollout(rods.World(timestep=0.01, rods=[beam]), steps=100).report
    assert report.iterations.max() < 40
    # a joint under a growing moment: 2 EI tan(a / 2) / cos(a / 2)^2 = M l
    pair = straight(2, bend=[1, 1, 1], stretch=1e5, shear=1e5, bending="tangent", fixed_edges=[0])
    world = rods.World(timestep=1e4, gravity=(0, 0, 0), rods=[pair])
    torques = np.zeros((40, 2, 3))
    torques[:, 1, 1] = np.minimum(np.linspace(0, 20, 40), 16)
    R = rods.rollout(world, torques=torques, iterations=300).rotations[-1]
    angle = np.linalg.norm(log(R[0].T @ R[1]))
    assert np.degrees(angle) > 95
    assert abs(2 * np.tan(angle / 2) / np.cos(angle / 2) ** 2 - 16 * 0.5) < 1e-6


def test_arguments_of_clamps():
    with pytest.raises(ValueError, match="with clamp_start, edge 0 must not be fixed"):
        straight(3, clamp_start=True, fixed_edges=[0])
    with pytest.raises(ValueError, match="bending must be 'sine' or 'tangent'"):
        straight(3, bending="cosine")
    with pytest.raises(TypeError, match="clamp_end must be"):
        straight(3, clamp_end=2)
