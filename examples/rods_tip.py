"""Move the tip of a hanging rod along a curve, by tensions of eight cables or by its rest shape.

The examples are similar to figures 10 and 11 of "Painless Differentiable Rotation Dynamics". The
inputs are the tensions of four cables along the sides of each half of the rod, or the rest
curvature at each node and time step. L-BFGS optimizes all steps at once; inertia keeps the motion
smooth.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from examples.rods_picture import ACCENT, PALE, panels, save
from mujacobian import rods

EDGES, LENGTH, RADIUS = 15, 1.5, 0.05
TIMESTEP = 0.01
TENSION = 10.0  # unit of tensions, N
EFFORT = 1e-6  # weight of the squared inputs


def world() -> rods.World:
    """Return the rod with its cables, clamped at its upper end."""
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
    """Return a circle in the horizontal plane `(steps, 2)`, after a path to it."""
    time = np.arange(1, steps + 1) / steps
    way = np.minimum(time / 0.2, 1)
    angle = 2 * np.pi * np.maximum((time - 0.2) / 0.8, 0)
    radius = 0.4 * way**2 * (3 - 2 * way)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def eight(steps: int) -> np.ndarray:
    """Return a figure eight in the horizontal plane `(steps, 2)`."""
    angle = 2 * np.pi * np.arange(1, steps + 1) / steps
    return np.stack([0.4 * np.sin(angle), 0.2 * np.sin(2 * angle)], axis=-1)


class Follower:
    """Optimization of `tensions` or `rest` of all steps, so that the tip follows a curve."""

    def __init__(self, control: str, curve: np.ndarray) -> None:
        self.world, self.control, self.curve = world(), control, curve
        cables, bends = len(self.world.cables), self.world.n_bends
        rows = {"tensions": (cables,), "rest": (bends, 3)}
        self.shape = (len(curve), *rows[control])
        self.unit = {"tensions": TENSION, "rest": 1.0}[control]
        self.slack = np.zeros((len(curve), cables))

    def run(self, controls: np.ndarray) -> rods.Trajectory:
        """Return the motion with these inputs."""
        given = {"tensions": self.slack} | {self.control: self.unit * controls.reshape(self.shape)}
        return rods.rollout(self.world, **given, tolerance=1e-8)

    def loss(self, controls: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss, from the squared distance to the curve and effort, and its gradient."""
        try:
            motion = self.run(controls)
        except (
            rods.ConvergenceError
        ):  # the inputs are too large: the line search takes a shorter step
            return 1e3, np.zeros_like(controls)
        off = motion.positions[1:, -1, :2] - self.curve
        scale = np.sum(self.curve**2)
        d_positions = np.zeros_like(motion.positions)
        d_positions[1:, -1, :2] = 2 * off / scale
        gradient = self.unit * getattr(motion.gradient(d_positions), self.control).ravel()
        value = np.sum(off**2) / scale + EFFORT * np.sum(controls**2)
        return float(value), gradient + 2 * EFFORT * controls

    def optimize(self, iterations: int) -> tuple[rods.Trajectory, float]:
        """Return the best motion, and the largest distance of its tip from the curve, m."""
        size = int(np.prod(self.shape))
        least = 0 if self.control == "tensions" else None  # cables cannot push
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
    """Return the largest distance of the tip from each curve with each kind of input, m."""
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
