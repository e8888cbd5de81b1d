"""Animations of trajectories with Matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mujacobian._arguments import Array, count
from mujacobian.errors import MissingPackageError
from mujacobian.rods.description import instance
from mujacobian.rods.quantity import positive
from mujacobian.rods.segment import SegmentContact
from mujacobian.rods.trajectory import Trajectory
from mujacobian.rods.world import World

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.artist import Artist


def animate(trajectory: Trajectory, *, every: int = 1, speed: float = 1) -> FuncAnimation:
    """Return an animation of a trajectory.

    In a notebook, `HTML(animation.to_jshtml())` shows it; `animation.save("scene.gif")` writes it.
    It shows the center lines of rods, the segments of bodies that `SegmentContact` has, and the
    centers of mass of the other bodies.

    Args:
      trajectory: trajectory of `rods.rollout`.
      every: number of steps between frames; by default 1.
      speed: factor of the speed; by default 1, real time.
    """
    try:
        import matplotlib.pyplot as plt
        from matplotlib.animation import FuncAnimation
    except ImportError as error:
        raise MissingPackageError(
            "rods.animate needs Matplotlib: pip install 'mujacobian[plot]'"
        ) from error
    instance("trajectory", trajectory, Trajectory)
    world = trajectory.world
    curves = drawn(world, trajectory.positions, trajectory.rotations)
    every, speed = count("every", every), positive("speed", speed)
    figure = plt.figure()
    axes = figure.add_subplot(projection="3d")
    lines = [axes.plot(*c[0].T, marker="o" if c.shape[1] == 1 else None)[0] for c in curves]
    points = np.concatenate([c.reshape(-1, 3) for c in curves])
    low, high = points.min(axis=0), points.max(axis=0)
    half = 0.5 * np.maximum(high - low, 0.05 * (high - low).max() + 1e-9)
    middle = 0.5 * (low + high)
    for name, m, h in zip("xyz", middle, half, strict=True):
        axes.set(**{f"{name}lim": (m - h, m + h), f"{name}label": f"{name} (m)"})
    axes.set_box_aspect(half)

    def show(k: int) -> list[Artist]:
        for line, curve in zip(lines, curves, strict=True):
            line.set_data_3d(*curve[k].T)
        axes.set_title(f"{k * world.timestep:.3f} s")
        return lines

    frames = range(0, trajectory.steps + 1, every)
    interval = 1e3 * every * world.timestep / speed
    made = FuncAnimation(figure, show, frames=frames, interval=interval)
    plt.close(figure)  # so that notebooks do not show a still picture, too
    return made


def drawn(world: World, positions: Array, rotations: Array) -> list[Array]:
    """Return the curves to draw, each `(T + 1, points, 3)`."""
    curves = []
    for rod in world.rods:
        x = positions[:, world.points(rod)]
        curves.append(np.concatenate([x, x[:, : rod.closed]], axis=1))
    segments = [s for c in world.contacts if isinstance(c, SegmentContact) for s in c.all_segments]
    for body in world.bodies:
        own = [s for s in segments if s.owner is body]
        for s in own:
            ends = [world.place(p, positions, rotations) for p in (s.start, s.end)]
            curves.append(np.stack(ends, axis=1))
        if not own:
            curves.append(positions[:, world.points(body)])
    return curves
