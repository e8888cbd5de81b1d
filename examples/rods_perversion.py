"""Helical perversion: the ends of a straight rod that is a coil at rest approach each other.

The ends cannot rotate, so the coil has as much left-handed as right-handed winding. The two halves
meet in a perversion, as in the tendrils of a climbing plant. The rod is that of figure 5 of
"Painless Differentiable Rotation Dynamics" (161 edges, 969 unknowns). Table 1 of the paper has 1000
steps of 10 ms, table 2 has steps of 1 ms.
"""

from pathlib import Path

import numpy as np

from examples.rods_picture import ACCENT, INK, panels, save
from examples.rods_picture import fit as fit_panel
from mujacobian import rods

EDGES, LENGTH, CURVATURE = 161, 8.0, 2.0
TOGETHER = 0.5  # final distance of the ends, relative to the length


def world(timestep: float, edges: int = EDGES) -> rods.World:
    """Return the straight rod with small random velocities, which break its symmetry."""
    nodes = np.linspace([-LENGTH / 2, 0, 0], [LENGTH / 2, 0, 0], edges + 1)
    rod = rods.Rod(
        nodes,
        mass=0.3,
        radius=0.02,
        stretch=2e3,
        shear=2e3,
        bend=[10, 10, 25],
        rest_curvature=[CURVATURE, 0, 0],
        velocities=1e-2 * np.random.default_rng(0).normal(size=nodes.shape),
        fixed_edges=[0, edges - 1],
    )
    ends = [rods.Attachment(rod.node(i), nodes[i], 1e4) for i in (0, -1)]
    return rods.World(timestep=timestep, gravity=(0, 0, 0), rods=[rod], attachments=ends)


def ends(steps: int) -> np.ndarray:
    """Return the positions of the ends `(steps, 2, 3)`, which approach each other, then stop."""
    progress = np.minimum(np.arange(1, steps + 1) / (0.7 * steps), 1)
    half = LENGTH / 2 * (1 - (1 - TOGETHER) * progress)
    places = np.zeros((steps, 2, 3))
    places[:, 0, 0], places[:, 1, 0] = -half, half
    return places


def handedness(nodes: np.ndarray) -> np.ndarray:
    """Return the sign of the torsion along the rod: 1 where it is a right-handed screw."""
    along = np.diff(nodes[::3], axis=0)
    binormal = np.cross(along[:-1], along[1:])
    return np.sign(np.einsum("ij,ij->i", np.cross(binormal[:-1], binormal[1:]), along[1:-1]))


def main(
    timestep: float = 0.01, steps: int = 1000, edges: int = EDGES, folder: Path | None = None
) -> tuple[float, float]:
    """Simulate and draw; return the mean handedness of the two halves."""
    held = world(timestep, edges)
    trajectory = rods.rollout(held, targets=ends(steps))
    shape = trajectory.positions[-1]
    signs = handedness(shape)
    middle = len(signs) // 2
    left, right = float(signs[3:middle].mean()), float(signs[middle:-3].mean())
    iterations = trajectory.report.iterations.mean()
    print(f"handedness of the halves {left:+.2f}, {right:+.2f}; {iterations:.1f} iterations a step")

    figure, axes = panels(3)
    for panel, k in zip(axes, (0, steps // 2, steps), strict=True):
        x = trajectory.positions[k]
        panel.plot(*x.T, color=INK, lw=1)
        panel.plot(*x[len(x) // 2 - 4 : len(x) // 2 + 5].T, color=ACCENT, lw=1.5)
        fit_panel(panel, [x, np.array([[0, -1.0, -1], [0, 1, 1]])])
        panel.set_title(f"{k * timestep:.2g} s", fontsize=9)
    save(figure, f"rods_perversion_{1000 * timestep:.0f}ms", folder)
    return left, right


if __name__ == "__main__":
    main()
    main(timestep=0.001)
