"""The second-order integrator of rods and bodies, against solutions of differential equations."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mujacobian import rods
from mujacobian._rotation import log, skew

INERTIA = np.array([1.0, 2.0, 2.5])
SPIN = np.array([0.3, 5.0, 0.2])


def orders(errors):
    return np.log2(np.array(errors[:-1]) / errors[1:])


def top(duration, torque=(0, 0, 0), drag=0.0):
    """Return the rotation and angular velocity of a free body, by scipy."""

    def rates(_, y):
        R = y[:9].reshape(3, 3)
        w = R @ (R.T @ y[9:] / INERTIA)  # from the angular momentum
        return np.concatenate([(skew(w) @ R).ravel(), np.asarray(torque) - drag * w])

    start = np.concatenate([np.eye(3).ravel(), INERTIA * SPIN])
    y = solve_ivp(rates, (0, duration), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    R = y[:9].reshape(3, 3)
    return R, R @ (R.T @ y[9:] / INERTIA)


@pytest.mark.parametrize(
    ("torque", "drag"), [((0, 0, 0), 0.0), ((0.5, -0.3, 2.0), 0.0), ((0, 0, 0), 0.7)]
)
def test_a_body_turns_with_second_order(torque, drag):
    R, w = top(1.0, torque, drag)
    angles, spins = [], []
    for steps in (200, 400, 800):
        body = rods.RigidBody(1, INERTIA, angular_velocity=SPIN, spin_drag=drag)
        world = rods.World(timestep=1 / steps, gravity=(0, 0, 0), bodies=[body], integrator="bdf2")
        torques = np.tile(np.array(torque, dtype=float), (steps, 1, 1))
        trajectory = rods.rollout(world, torques=torques)
        angles.append(np.linalg.norm(log(trajectory.rotations[-1, 0] @ R.T)))
        spins.append(np.linalg.norm(trajectory.state.angular_velocities[0] - w))
    assert angles[-1] < 3e-3
    assert orders(angles)[-1] > 1.9
    assert orders(spins)[-1] > 1.9


def test_a_beam_swings_with_second_order():
    """With damping of stretch, bending and motion; the reference is extrapolated."""

    def swing(steps, integrator):
        beam = rods.Rod(
            np.linspace([0, 0, 0], [1, 0, 0], 11),
            mass=0.5,
            radius=0.02,
            stretch=1e3,
            shear=1e3,
            bend=[0.1] * 3,
            bend_damping=2e-3,
            stretch_damping=1.0,
            drag=0.01,
            spin_drag=1e-4,
            clamp_start=True,
        )
        world = rods.World(timestep=0.3 / steps, rods=[beam], integrator=integrator)
        return rods.rollout(world, steps=steps)

    fine = [swing(steps, "bdf2") for steps in (1600, 3200)]
    tips = [each.positions[-1, -1] for each in fine]
    exact = (4 * tips[1] - tips[0]) / 3
    errors = [
        np.linalg.norm(swing(steps, "bdf2").positions[-1, -1] - exact) for steps in (100, 200, 400)
    ]
    first = np.linalg.norm(swing(400, "backward_euler").positions[-1, -1] - exact)
    assert orders(errors)[-1] > 1.9
    assert errors[-1] < 0.05 * first
    speeds = [swing(steps, "bdf2").velocities[-1, -1] for steps in (100, 200, 400)]
    exact = (4 * fine[1].velocities[-1, -1] - fine[0].velocities[-1, -1]) / 3
    assert orders([np.linalg.norm(v - exact) for v in speeds])[-1] > 1.9


def test_a_free_fall_is_exact_except_for_the_first_step():
    """BDF2 is exact for parabolas, and its first step is one of backward Euler."""
    h, g = 0.1, 9.81
    ball = rods.RigidBody(1, [1, 1, 1], velocity=[1, 0, 2])
    world = rods.World(timestep=h, bodies=[ball], integrator="bdf2")
    z = rods.rollout(world, steps=60).positions[:, 0, 2]
    t = h * np.arange(61)
    error = z - (2 * t - g / 2 * t**2)
    assert abs(error[1] + g * h**2 / 2) < 1e-12
    assert np.ptp(error[20:]) < 1e-9  # a constant offset of second order
    assert abs(error[-1]) < 2 * g * h**2


def test_energy_and_damping():
    """The energy of a swinging beam decays far less than with backward Euler."""
    lost = {}
    for integrator in ("backward_euler", "bdf2"):
        beam = rods.Rod(
            np.linspace([0, 0, 0], [1, 0, 0], 11),
            mass=0.5,
            radius=0.02,
            stretch=1e4,
            shear=1e4,
            bend=[1.0] * 3,
            velocities=np.linspace([0, 0, 0], [0, 0, 0.3], 11),
            clamp_start=True,
        )
        world = rods.World(timestep=2e-3, gravity=(0, 0, 0), rods=[beam], integrator=integrator)
        energy = rods.rollout(world, steps=500).energies().total
        lost[integrator] = 1 - energy[-1] / energy[5]
    assert lost["backward_euler"] > 0.05
    assert -1e-3 < lost["bdf2"] < 0.1 * lost["backward_euler"]


def test_a_rollout_goes_on_with_second_order():
    """It begins with a step of backward Euler again, whose error is of second order."""
    R, _ = top(1.0)
    errors = []
    for steps in (200, 400, 800):
        body = rods.RigidBody(1, INERTIA, angular_velocity=SPIN)
        world = rods.World(timestep=1 / steps, gravity=(0, 0, 0), bodies=[body], integrator="bdf2")
        half = rods.rollout(world, steps=steps // 2)
        made = rods.rollout(world, half.state, steps=steps // 2)
        errors.append(np.linalg.norm(log(made.rotations[-1, 0] @ R.T)))
    assert orders(errors)[-1] > 1.9


def test_unknown_integrators_are_errors():
    ball = rods.RigidBody(1, [1, 1, 1])
    with pytest.raises(ValueError, match="integrator must be in"):
        rods.World(timestep=0.1, bodies=[ball], integrator="midpoint")
