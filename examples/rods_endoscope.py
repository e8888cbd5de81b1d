"""Push an endoscope into a winding tube, whose wall guides it.

The rod is that of figure 7 of "Painless Differentiable Rotation Dynamics" (969 unknowns). Forces
act on the nodes at the entrance. Table 1 of the paper has 2000 steps of 1 ms, table 2 has steps of
0.1 ms.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np

from examples.rods_picture import ACCENT, PALE, fit, panels, save
from mujacobian import rods

LENGTH, RADIUS, BORE = 16.0, 0.1, 0.6
SPEED = 6.0  # speed at which the hand stops pushing, m/s
PUSH, ENTRANCE = 20.0, 2.0  # N per meter of rod, along the last two meters before the tube
CHUNK = 10  # number of steps with the same forces


def axis() -> np.ndarray:
    """Return the center line of the tube: straight outside, then bends in various planes."""
    turns = ((0.45, 0, 2.2), (-0.45, 0.2, 2.8), (0.1, 0.45, 2.8), (0.4, -0.3, 2.5))
    points = [np.array([-LENGTH - 1, 0, 0]), np.zeros(3)]
    yaw = pitch = 0.0
    for yaw_rate, pitch_rate, length in turns:
        for _ in range(round(length / 0.2)):
            yaw, pitch = yaw + 0.2 * yaw_rate, pitch + 0.2 * pitch_rate
            ahead = np.array(
                [np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)]
            )
            points.append(points[-1] + 0.2 * ahead)
    return np.array(points)


def world(timestep: float, edges: int) -> rods.World:
    """Return the endoscope in front of the tube."""
    nodes = np.linspace([-LENGTH, 0, 0], [0, 0, 0], edges + 1)
    rod = rods.Rod(nodes, mass=1, radius=RADIUS, stretch=5e3, shear=1e2, bend=[2e3] * 3, drag=0.01)
    wall = rods.Outside(rods.Tube(axis(), BORE))
    touch = rods.Contact(
        [rod.node(i) for i in range(edges + 1)],
        wall,
        stiffness=1e4,
        friction=0.05,
        radius=RADIUS,
        rolling=False,  # as in the paper, whose friction acts on nodes
    )
    return rods.World(timestep=timestep, gravity=(0, 0, 0), rods=[rod], contacts=[touch])


def push(state: rods.State) -> np.ndarray:
    """Return the forces of the hand, which push the rod toward its speed at the entrance."""
    x, v = state.positions, state.velocities
    held = (x[:, 0] > -ENTRANCE) & (x[:, 0] < 0)
    forces = np.zeros_like(x)
    spacing = LENGTH / (len(x) - 1)
    forces[held, 0] = PUSH * spacing * np.clip(1 - v[held, 0] / SPEED, 0, 1)
    return forces


def insert(scope: rods.World, steps: int) -> tuple[list[np.ndarray], float]:
    """Return the shapes after each `CHUNK` steps, and the mean number of Newton iterations."""
    state, shapes, iterations = scope.state(), [], []
    for _ in range(steps // CHUNK):
        shapes.append(state.positions)
        forces = np.broadcast_to(push(state), (CHUNK, *state.positions.shape))
        trajectory = rods.rollout(scope, state, forces=forces, tolerance=1e-8)
        iterations.append(trajectory.report.iterations)
        state = trajectory.state
    return [*shapes, state.positions], float(np.mean(iterations))


def depth(tip: np.ndarray) -> float:
    """Return the distance of a point from the entrance along the tube, m."""
    points = axis()
    nearest = int(np.argmin(np.linalg.norm(points - tip, axis=1)))
    return float(np.linalg.norm(np.diff(points[1 : nearest + 1], axis=0), axis=1).sum())


def main(
    timestep: float = 1e-3, steps: int = 2000, edges: int = 161, folder: Path | None = None
) -> tuple[float, float]:
    """Return the depth of the tip, and the largest distance of the rod from the center line, m."""
    shapes, iterations = insert(world(timestep, edges), steps)
    line = axis()
    inside = shapes[-1][shapes[-1][:, 0] > -ENTRANCE]
    fine = np.concatenate([np.linspace(a, b, 100) for a, b in pairwise(line)])
    aside = np.linalg.norm(inside[:, None] - fine, axis=2).min(axis=1).max()
    reached = depth(shapes[-1][-1])
    print(f"{1e3 * timestep:g} ms: {reached:.1f} m deep after {steps * timestep:g} s,", end=" ")
    print(f"at most {aside:.2f} m from the center line, {iterations:.1f} iterations a step")

    figure, axes = panels(3)
    for panel, k in zip(axes, (0, len(shapes) // 2, len(shapes) - 1), strict=True):
        panel.plot(*line[1:].T, color=PALE, lw=16, alpha=0.6, solid_capstyle="butt")
        visible = shapes[k][shapes[k][:, 0] > -4]
        panel.plot(*visible.T, color=ACCENT, lw=2)
        fit(panel, [line[1:], np.array([[-4.0, 0, 0]])])
        panel.set_title(f"{k * CHUNK * timestep:.2g} s", fontsize=9)
    save(figure, f"rods_endoscope_{1e6 * timestep:.0f}us", folder)
    return reached, float(aside)


if __name__ == "__main__":
    main()
    main(timestep=1e-4)
