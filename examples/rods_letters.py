"""Throw straight rods so that they spell SIGGRAPH after 0.15 s.

L-BFGS with exact gradients finds the initial velocities of all nodes. The stiffnesses and numbers
of nodes are those of figure 1 of "Painless Differentiable Rotation Dynamics", which does not state
the size of the letters and the time. The loss is the sum of the squared distances of nodes from
their positions in the letter, relative to its initial value. The optimization stops at 1e-3 or
after 100 iterations.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from examples.rods_picture import ACCENT, INK, PALE, panels, save
from mujacobian import rods

STEPS, TIMESTEP = 15, 0.01
SIZE = 4.5  # meters per unit of the strokes, which have a height of four units
ROUND = 1.6  # length along a stroke over which corners are rounded, in units
LOSS, ITERATIONS = 1e-3, 100


def arc(center: tuple[float, float], radii: tuple[float, float], start: float, end: float) -> list:
    """Return points on an ellipse; angles are in degrees."""
    angles = np.radians(np.linspace(start, end, 24))
    x, z = center[0] + radii[0] * np.cos(angles), center[1] + radii[1] * np.sin(angles)
    return list(zip(x, z, strict=True))


BOWL = [(0, 0), (0, 4), *arc((0.8, 3), (1, 1), 90, -90)]
# the number of edges, from the paper, and the stroke of each letter
STROKES = {
    "S": (60, [*arc((0, 1), (1, 1), -150, 90), *arc((0, 3), (1, 1), 270, 30)[1:]]),
    "I": (16, [(0, 0), (0, 4)]),
    "G": (64, [*arc((0, 2), (1.5, 2), 50, 350), (1.5, 2), (0.3, 2)]),
    "R": (68, [*BOWL, (0.2, 2), (1.8, 0)]),
    "A": (48, [(-1.5, 0), (0, 4), (1.1, 1.1), (-1.1, 1.1)]),
    "P": (85, [*BOWL, (0, 2)]),
    "H": (
        60,
        [(0, 0), (0, 4), (0.15, 4), (0.15, 2), (1.85, 2), (1.85, 4), (2, 4), (2, 0)],
    ),
}


def along(points: np.ndarray, count: int) -> np.ndarray:
    """Return `count` points at equal distances along a polyline."""
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    place = np.concatenate([[0], np.cumsum(steps)])
    wanted = np.linspace(0, place[-1], count)
    return np.stack([np.interp(wanted, place, points[:, k]) for k in range(2)], axis=-1)


def outline(letter: str) -> np.ndarray:
    """Return the desired positions of the nodes in the plane: a stroke with rounded corners."""
    edges, stroke = STROKES[letter]
    fine = along(np.array(stroke, dtype=float), 2001)
    spacing = np.linalg.norm(np.diff(fine, axis=0), axis=1).sum() / 2000
    width = int(ROUND / spacing) | 1
    window = np.hanning(width + 2)[1:-1]
    ends = 2 * fine[0] - fine[width:0:-1], 2 * fine[-1] - fine[-2 : -width - 2 : -1]
    padded = np.concatenate([ends[0], fine, ends[1]])
    smooth = [np.convolve(padded[:, k], window / window.sum(), "same") for k in range(2)]
    return SIZE * along(np.stack(smooth, axis=-1)[width:-width], edges + 1)


@dataclass
class Throw:
    """A straight rod, and the letter that it should become."""

    letter: str

    def __post_init__(self) -> None:
        flat = outline(self.letter)
        edges = np.diff(flat, axis=0)
        self.target = np.stack([flat[:, 0], np.zeros(len(flat)), flat[:, 1]], axis=-1)
        heading = np.unwrap(np.arctan2(edges[:, 1], edges[:, 0]))
        # the initial direction is the mean of the extreme directions of edges, so none turns far
        angle = 0.5 * (heading.min() + heading.max()) - (0.5 if self.letter == "I" else 0)
        lengths = np.linalg.norm(edges, axis=1)
        place = np.concatenate([[0], np.cumsum(lengths)]) - lengths.sum() / 2
        direction = np.array([np.cos(angle), 0, np.sin(angle)])
        self.nodes = place[:, None] * direction + self.target.mean(axis=0)
        rod = rods.Rod(self.nodes, mass=0.5, radius=0.05, stretch=4e2, shear=1e2, bend=[1e2] * 3)
        self.world = rods.World(timestep=TIMESTEP, gravity=(0, 0, 0), rods=[rod])
        self.scale = np.sum((self.nodes - self.target) ** 2)
        self.losses = [1.0]

    def fly(self, velocities: np.ndarray) -> rods.Trajectory:
        """Return the flight with these initial velocities of the nodes."""
        first = self.world.state()
        given = velocities.reshape(-1, 3)
        state = rods.State(first.positions, first.rotations, given, first.angular_velocities)
        return rods.rollout(self.world, state, STEPS, tolerance=1e-7)

    def loss(self, velocities: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient."""
        try:
            flight = self.fly(velocities)
        except (
            rods.ConvergenceError
        ):  # the velocities are too large: the line search takes a shorter step
            return 1e3, np.zeros_like(velocities)
        off = flight.positions[-1] - self.target
        d_positions = np.zeros_like(flight.positions)
        d_positions[-1] = 2 * off / self.scale
        gradient = flight.gradient(d_positions).state.velocities
        return float(np.sum(off**2)) / self.scale, gradient.ravel()

    def optimize(self) -> np.ndarray:
        """Return the optimal velocities, and record the losses of all iterations."""

        def note(intermediate_result: OptimizeResult) -> None:
            self.losses.append(float(intermediate_result.fun))
            if self.losses[-1] < LOSS:
                raise StopIteration

        found = minimize(
            self.loss,
            np.zeros(self.nodes.size),
            jac=True,
            method="L-BFGS-B",
            callback=note,
            options={"maxiter": ITERATIONS, "ftol": 0, "gtol": 0},
        )
        print(f"{self.letter}: loss {self.losses[-1]:.1e} after {len(self.losses) - 1} iterations")
        return np.asarray(found.x)


def main(word: str = "SIGGRAPH", folder: Path | None = None) -> dict[str, list[float]]:
    """Throw and draw the letters; return the losses of all iterations of each letter."""
    throws = {letter: Throw(letter) for letter in dict.fromkeys(word)}
    flights = {letter: throw.fly(throw.optimize()) for letter, throw in throws.items()}
    figure, axes = panels(len(word), spatial=False, size=1.6)
    figure.set_size_inches(1.6 * len(word), 2.6)
    for panel, letter in zip(axes, word, strict=True):
        for k in range(0, STEPS + 1, 3):
            x = flights[letter].positions[k] - throws[letter].target.mean(axis=0)
            panel.plot(
                x[:, 0], x[:, 2], color=INK if k == STEPS else PALE, lw=3 if k == STEPS else 1
            )
        target = throws[letter].target - throws[letter].target.mean(axis=0)
        panel.plot(target[:, 0], target[:, 2], ":", color=ACCENT, lw=1)
        panel.set(aspect="equal", xlim=(-12, 12), ylim=(-19, 19))
        panel.set_axis_off()
    save(figure, "rods_letters", folder)
    return {letter: throw.losses for letter, throw in throws.items()}


if __name__ == "__main__":
    main()
