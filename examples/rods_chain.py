"""A chain of twenty linked rings swings, with frictional contact of the rings.

The rings are rigid bodies of capsules. Figure 6 of "Painless Differentiable Rotation Dynamics" has
a chain of links, too.
"""

import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from examples.rods_picture import ACCENT, INK, fit, panels, save
from mujacobian import rods

WIRE, STRAIGHT, BEND, PIECES = 0.006, 0.03, 0.02, 24  # radius of the wire and shape of a ring, m


def ring() -> np.ndarray:
    """Return the closed center line of a ring: two half circles, apart from each other."""
    t = np.linspace(0, 2 * np.pi, PIECES + 1)
    side = np.sign(np.cos(t)) * (np.abs(np.cos(t)) > 1e-9)
    return np.stack([BEND * np.sin(t), 0 * t, STRAIGHT * side + BEND * np.cos(t)], axis=1)


def world(links: int, friction: float = 0.3) -> rods.World:
    """Return a chain that hangs from its first ring and starts to swing."""
    line = ring()
    pitch = 2 * (STRAIGHT + BEND - WIRE) - 5e-4
    bodies = [
        rods.RigidBody(
            mass=0.05,
            inertia=[4e-5, 5e-5, 1.2e-5],
            position=[0, 0, -k * pitch],
            rotation=rods.exp([0, 0, np.pi / 2 * (k % 2)]),
            velocity=[0.3 * k / links, 0.1, 0] if k else [0, 0, 0],
            drag=0.02,
            spin_drag=1e-5,
            fixed=k == 0,
        )
        for k in range(links)
    ]
    segments = [b.segment(*ends, WIRE) for b in bodies for ends in pairwise(line)]
    contact = rods.SegmentContact(segments, 2e4, friction, slip=1e-2)
    return rods.World(timestep=2e-3, bodies=bodies, contacts=[contact])


def main(links: int = 20, steps: int = 300, folder: Path | None = None) -> rods.Trajectory:
    """Return the trajectory of the chain."""
    chain = world(links)
    begin = time.process_time()
    trajectory = rods.rollout(chain, steps=steps)
    seconds = time.process_time() - begin
    iterations = trajectory.report.iterations
    print(f"{links} rings, {steps} steps: all converged, {iterations.mean():.1f} iterations each")
    print(f"(at most {iterations.max()}), {1e3 * seconds / steps:.1f} ms each")

    figure, axes = panels(3)
    for panel, k in zip(axes, (0, steps // 2, steps), strict=True):
        x, R = trajectory.positions[k], trajectory.rotations[k]
        curves = [at + ring() @ turn.T for at, turn in zip(x, R, strict=True)]
        for i, curve in enumerate(curves):
            panel.plot(*curve.T, color=(INK, ACCENT)[i % 2], lw=1.5)
        fit(panel, curves)
        panel.set_title(f"{k * chain.timestep:.2g} s", fontsize=9)
    save(figure, "rods_chain", folder)
    return trajectory


if __name__ == "__main__":
    main()
