"""Throw a die so that it comes to rest with the six up and the five toward the camera.

L-BFGS finds the initial angular velocity, with gradients through contacts and friction. The initial
guess is a throw that ends with another face up.
"""

from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from examples.rods_picture import ACCENT, INK, fit, panels, save
from mujacobian import rods

HALF = 0.05  # half of the edge length, m
STEPS, REST = 100, 60  # numbers of steps of 5 ms up to the loss, and afterward
GUESS = (-8.0, 0.5, 0.5)  # rad/s
GOAL = np.diag([1.0, -1, -1])  # upside down, with the same front
CORNERS = HALF * np.array(list(product((-1, 1), repeat=3)))


def world() -> rods.World:
    """Return the die above a table, which its corners can touch."""
    die = rods.RigidBody(
        0.1, [0.1 * HALF**2 * 2 / 3] * 3, position=[0, -0.6, 0.4], velocity=[0, 1.2, 0.5]
    )
    corners = [die.at(corner) for corner in CORNERS]
    table = rods.Contact(corners, rods.Plane(), stiffness=2e3, friction=0.6, slip=1e-2)
    return rods.World(timestep=0.005, bodies=[die], contacts=[table])


def throw(scene: rods.World, spin: np.ndarray, steps: int = STEPS) -> rods.Trajectory:
    """Return the throw with this angular velocity."""
    hand = scene.state()
    state = rods.State(hand.positions, hand.rotations, hand.velocities, spin.reshape(1, 3))
    return rods.rollout(scene, state, steps)


def loss(scene: rods.World, spin: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the squared error of final orientation and height, and its gradient."""
    flight = throw(scene, spin)
    turn = flight.rotations[-1, 0] - GOAL
    lift = flight.positions[-1, 0, 2] / HALF - 1
    d_positions, d_rotations = np.zeros_like(flight.positions), np.zeros_like(flight.rotations)
    d_positions[-1, 0, 2] = lift / HALF
    d_rotations[-1, 0] = turn
    gradient = flight.gradient(d_positions, d_rotations).state.angular_velocities[0]
    return 0.5 * float(np.sum(turn**2) + lift**2), gradient


def main(folder: Path | None = None) -> tuple[float, float, int]:
    """Return the height of the six at rest, before and after, and the number of iterations."""
    scene = world()
    found = minimize(lambda w: loss(scene, w), GUESS, jac=True, method="L-BFGS-B")
    before, after = (throw(scene, np.array(w), STEPS + REST) for w in (GUESS, found.x))
    heights = [-float(flight.rotations[-1, 0, 2, 2]) for flight in (before, after)]
    print(
        f"spin {np.round(found.x, 2)}: loss {found.fun:.1e} after {found.nit} iterations,", end=" "
    )
    print(f"the six's height at rest is {heights[0]:+.3f} before and {heights[1]:+.3f} after")

    figure, (panel,) = panels(1, size=5)
    shown = [before.positions[-1, 0]]
    for flight, color in ((before, "#cbd5e1"), (after, INK)):
        for k in (*range(0, STEPS, 12), STEPS + REST):
            corners = flight.positions[k, 0] + CORNERS @ flight.rotations[k, 0].T
            shown.append(corners)
            for a, b in product(range(8), repeat=2):
                if a < b and np.sum(CORNERS[a] != CORNERS[b]) == 1:
                    six = CORNERS[a, 2] < 0 and CORNERS[b, 2] < 0 and flight is after
                    line = corners[[a, b]].T
                    panel.plot(*line, color=ACCENT if six else color, lw=1.5 if six else 0.7)
    fit(panel, shown)
    save(figure, "rods_die", folder)
    return heights[0], heights[1], int(found.nit)


if __name__ == "__main__":
    main()
