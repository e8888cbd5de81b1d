"""The tennis-racket effect: a wing nut in free fall flips repeatedly.

It spins about its middle principal axis. Each step of `mujacobian.rods` takes one Newton iteration.
"""

from pathlib import Path

import numpy as np

from examples.rods_picture import ACCENT, INK, PALE, panels, save
from mujacobian import rods

SPIN = 10.0  # rad/s


def world(timestep: float = 1e-3) -> rods.World:
    """Return the nut, which spins about its second axis with a deviation of 0.01 %."""
    body = rods.RigidBody(
        mass=0.1, inertia=[1e-5, 2e-5, 2.8e-5], angular_velocity=[1e-3, SPIN, 1e-3]
    )
    return rods.World(timestep=timestep, gravity=(0, 0, 0), bodies=[body])


def main(seconds: float = 8, folder: Path | None = None) -> rods.Trajectory:
    """Simulate and draw; return the trajectory."""
    nut = world()
    trajectory = rods.rollout(nut, steps=round(seconds / nut.timestep))
    axes = trajectory.rotations[:, 0]
    middle = axes[:, :, 1] @ [0, 1, 0]
    flips = int((np.diff(np.sign(middle)) != 0).sum())
    iterations = trajectory.report.iterations
    print(f"{flips} flips in {seconds} s, Newton iterations per step: at most {iterations.max()}")

    figure, (panel,) = panels(1, spatial=False, size=4)
    figure.set_size_inches(7, 3)
    time = nut.timestep * np.arange(len(middle))
    for k, color in ((0, PALE), (2, INK), (1, ACCENT)):
        panel.plot(time, axes[:, 1, k], color=color, lw=1.2, label=f"principal axis {k + 1}")
    panel.set(xlabel="s", title="height over the plane of spin of the principal axes")
    panel.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    save(figure, "rods_racket", folder)
    return trajectory


if __name__ == "__main__":
    main()
