"""The tip of a hanging rod follows a curve: by the tensions of eight cables, and by its rest shape.

After figures 10 and 11 of "Painless Differentiable Rotation Dynamics": four cables along the sides
of each half of the rod; or, without cables, the rest curvature at every node and time step. All
steps are optimised at once by L-BFGS; inertia keeps the motion smooth.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from examples.rods_picture import ACCENT, PALE, panels, save
from mujacobian import rods

EDGES, LENGTH, RADIUS = 15, 1.5, 0.05
TIMESTEP = 0.01
TENSION = 10.0  # N, the unit of tensions
EFFORT = 1e-6  # weight of the squares of what is optimised


def world() -> rods.World:
    """Return the rod, clamped at its upper end, with its cables."""
    nodes = np.linspace([0, 0, 0], [0, 0, -LENGTH], EDGES + 1)
    rod = rods.Rod(
        nodes,
        mass=0.15,
        radius=RADIUS,
        stretch=5e2,
        shear=50,
        bend=[1, 1, 1],
        fixed_nodes=[0],
        fixed_edges=[0],
    )
    cables = []
    for half in (range(EDGES // 2 + 1), range(EDGES // 2, EDGES)):
        for angle in np.pi / 2 * np.arange(4):
            side = RADIUS * np.array([np.cos(angle), np.sin(angle), 0])
            cables.append(rods.Cable([rod.beside(edge, side) for edge in half]))
    return rods.World(timestep=TIMESTEP, gravity=(0, 0, 0), rods=[rod], cables=cables)


def circle(steps: int) -> np.ndarray:
    """Return a circle, seen from above `(steps, 2)`, after a way out to it."""
    time = np.arange(1, steps + 1) / steps
    way = np.minimum(time / 0.2, 1)
    angle = 2 * np.pi * np.maximum((time - 0.2) / 0.8, 0)
    radius = 0.4 * way**2 * (3 - 2 * way)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def eight(steps: int) -> np.ndarray:
    """Return an eight, seen from above `(steps, 2)`."""
    angle = 2 * np.pi * np.arange(1, steps + 1) / steps
    return np.stack([0.4 * np.sin(angle), 0.2 * np.sin(2 * angle)], axis=-1)


class Follower:
    """The optimization: `tensions` or `rest` of all steps, so that the tip follows the curve."""

    def __init__(self, control: str, curve: np.ndarray) -> None:
        self.world, self.control, self.curve = world(), control, curve
        cables, bends = len(self.world.cables), self.world.n_bends
        rows = {"tensions": (cables,), "rest": (bends, 3)}
        self.shape = (len(curve), *rows[control])
        self.unit = {"tensions": TENSION, "rest": 1.0}[control]
        self.slack = np.zeros((len(curve), cables))

    def run(self, controls: np.ndarray) -> rods.Trajectory:
        """Return the motion under these controls."""
        given = {"tensions": self.slack} | {self.control: self.unit * controls.reshape(self.shape)}
        return rods.rollout(self.world, **given, tolerance=1e-8)

    def loss(self, controls: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the squared distance from the curve over that of the rod at rest, and effort."""
        try:
            motion = self.run(controls)
        except rods.ConvergenceError:  # too wild: the line search takes a shorter step
            return 1e3, np.zeros_like(controls)
        off = motion.positions[1:, -1, :2] - self.curve
        scale = np.sum(self.curve**2)
        d_positions = np.zeros_like(motion.positions)
        d_positions[1:, -1, :2] = 2 * off / scale
        gradient = self.unit * getattr(motion.gradient(d_positions), self.control).ravel()
        value = np.sum(off**2) / scale + EFFORT * np.sum(controls**2)
        return float(value), gradient + 2 * EFFORT * controls

    def optimize(self, iterations: int) -> tuple[rods.Trajectory, float]:
        """Return the best motion, and how far from the curve its tip is at most, m."""
        size = int(np.prod(self.shape))
        least = 0 if self.control == "tensions" else None  # cables do not push
        found = minimize(
            self.loss,
            np.zeros(size),
            jac=True,
            method="L-BFGS-B",
            bounds=[(least, None)] * size,
            options={"maxiter": iterations},
        )
        motion = self.run(found.x)
        off = motion.positions[1:, -1, :2] - self.curve
        return motion, float(np.linalg.norm(off, axis=1).max())


def main(
    steps: int = 100, iterations: int = 60, folder: Path | None = None
) -> dict[tuple[str, str], float]:
    """Return the greatest distance of the tip from each curve by each control, m."""
    curves: tuple[Callable[[int], np.ndarray], ...] = (circle, eight)
    figure, axes = panels(4, spatial=False)
    distances = {}
    cases = [(control, curve) for control in ("tensions", "rest") for curve in curves]
    for panel, (control, curve) in zip(axes, cases, strict=True):
        wanted = curve(steps)
        motion, off = Follower(control, wanted).optimize(iterations)
        distances[control, curve.__name__] = off
        print(f"{control}, {curve.__name__}: the tip is at most {1e3 * off:.0f} mm from the curve")
        for k in range(0, steps + 1, max(1, steps // 12)):
            panel.plot(*motion.positions[k, :, :2].T, color=PALE, lw=1)
        panel.plot(*wanted.T, color="black", lw=1)
        panel.plot(*motion.positions[:, -1, :2].T, "--", color=ACCENT, lw=2)
        panel.set(aspect="equal", title=f"{curve.__name__} by {control}")
        panel.set_axis_off()
    save(figure, "rods_tip", folder)
    return distances


if __name__ == "__main__":
    main()
