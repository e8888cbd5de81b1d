"""Figures of rods and bodies, for the examples."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

INK, PALE, ACCENT = "#1f2937", "#cbd5e1", "#2563eb"
FOLDER = Path("build")


def panels(count: int, *, spatial: bool = True, size: float = 3.2) -> tuple[Figure, list]:
    """Return a figure with panels side by side."""
    keywords = {"projection": "3d"} if spatial else {}
    figure, axes = plt.subplots(
        1, count, figsize=(size * count, size), subplot_kw=keywords, squeeze=False
    )
    return figure, list(axes[0])


def fit(axes: plt.Axes, curves: Sequence[np.ndarray]) -> None:
    """Set the limits of the axes to show all points, with equal scales and without a frame."""
    points = np.concatenate([np.reshape(curve, (-1, 3)) for curve in curves])
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.maximum(high - low, 0.05 * (high - low).max())
    middle = 0.5 * (low + high)
    axes.set(
        **{
            f"{name}lim": (middle[k] - size[k] / 2, middle[k] + size[k] / 2)
            for k, name in enumerate("xyz")
        }
    )
    axes.set_box_aspect(size, zoom=1.1)
    axes.view_init(30, -75)
    axes.set_axis_off()


def save(figure: Figure, name: str, folder: Path | None) -> None:
    """Write the figure to a folder, by default `build`."""
    folder = FOLDER if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=110, bbox_inches="tight")
    plt.close(figure)
    print(f"written: {folder / name}.png")
