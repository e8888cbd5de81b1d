"""Two-dimensional drawings of geoms. All primitives are convex, so outlines are convex hulls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CIRCLE = np.linspace(0, 2 * np.pi, 32, endpoint=False)
RING = np.stack([np.cos(CIRCLE), np.sin(CIRCLE), np.zeros_like(CIRCLE)], axis=1)
LATITUDES = np.linspace(-np.pi / 2, np.pi / 2, 13)
BALL = np.concatenate([RING * np.cos(a) + [0, 0, np.sin(a)] for a in LATITUDES])
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
DIGITS = 6  # of depths, m
SHADE = 0.18  # how much darker the farthest geom is
DRAWN = tuple(
    int(kind)
    for kind in (
        mujoco.mjtGeom.mjGEOM_SPHERE,
        mujoco.mjtGeom.mjGEOM_CAPSULE,
        mujoco.mjtGeom.mjGEOM_ELLIPSOID,
        mujoco.mjtGeom.mjGEOM_CYLINDER,
        mujoco.mjtGeom.mjGEOM_BOX,
    )
)


class Sketch:
    """A drawing of a model in one pose, in meters to the right of and above the world's origin.

    It has the geoms, from back to front, and the spatial tendons; planes and meshes are omitted.
    `left`, `right`, `bottom` and `top` are its limits. `near` and `far` are the heights in the
    drawing of the floor in front of the model and behind it.

    Args:
      model: model to draw.
      data: data with current kinematics.
      azimuth: azimuth of the direction from the model to the viewer, degrees.
      elevation: elevation of this direction, degrees.
    """

    def __init__(
        self, model: mujoco.MjModel, data: mujoco.MjData, azimuth: float, elevation: float
    ) -> None:
        right, up, toward = _camera(np.radians(azimuth), np.radians(elevation))
        picture = np.stack([right, up], axis=1)
        drawn = [g for g in range(model.ngeom) if model.geom_type[g] in DRAWN]
        if not drawn:
            raise ArgumentError("nothing to draw: all geoms are planes, meshes or height fields")
        # geoms in one plane keep their order, whatever rounding does
        depths = np.round(data.geom_xpos[drawn] @ toward, DIGITS)
        order = np.argsort(depths, kind="stable")
        light = 1 - SHADE * (depths.max() - depths) / max(np.ptp(depths), 1e-9)
        surfaces = [
            data.geom_xpos[g] + _surface(model, g) @ data.geom_xmat[g].reshape(3, 3).T
            for g in drawn
        ]
        # outlines with their colors, back to front
        self.shapes = [
            (_hull(surfaces[k] @ picture), _color(model, drawn[k]) * light[k]) for k in order
        ]
        self.paths = [path @ picture for path in _tendon_paths(model, data)]
        corners = np.concatenate([*(outline for outline, _ in self.shapes), *self.paths])
        self.left, self.bottom = map(float, corners.min(axis=0))
        self.right, self.top = map(float, corners.max(axis=0))
        points = np.concatenate(surfaces)
        points[:, 2] = floor_height(model)
        floor = points @ up
        self.near, self.far = float(floor.min()), float(floor.max())

    def draw(self, axes: Axes, shift: float = 0.0) -> None:
        """Draw on Matplotlib axes, shifted to the right."""
        from matplotlib.patches import Polygon

        for outline, color in self.shapes:
            corners = outline + np.array([shift, 0.0])
            axes.add_patch(Polygon(corners, facecolor=color, edgecolor="#475569", linewidth=0.7))
        for path in self.paths:
            x, y = path.T
            axes.plot(x + shift, y, color="#dc2626", linewidth=1.6, solid_capstyle="round")
        axes.set_aspect("equal")
        axes.autoscale_view()
        axes.axis("off")


def sketch(
    axes: Axes, model: mujoco.MjModel, data: mujoco.MjData, azimuth: float, elevation: float
) -> None:
    """Draw a model in one pose; see `Sketch`."""
    Sketch(model, data, azimuth, elevation).draw(axes)


def floor_height(model: mujoco.MjModel) -> float:
    """Return the height of the first plane of the world, or 0."""
    for g in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE):
        if model.geom_bodyid[g] == 0:
            return float(model.geom_pos[g, 2])
    return 0.0


def _camera(azimuth: float, elevation: float) -> tuple[Array, Array, Array]:
    """Return unit vectors to the right, up, and toward the viewer."""
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    flat = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
    toward = np.cos(elevation) * flat + np.array([0, 0, np.sin(elevation)])
    return right, np.cross(toward, right), toward


def _surface(model: mujoco.MjModel, g: int) -> Array:
    """Return points on the surface of a geom, in its own frame, that determine its outline."""
    size, kind = model.geom_size[g], mujoco.mjtGeom(model.geom_type[g])
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return np.asarray(CORNERS * size)
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return np.asarray(BALL * size[0])
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        return np.asarray(BALL * size)
    ends = RING if kind == mujoco.mjtGeom.mjGEOM_CYLINDER else BALL
    axis = np.array([0, 0, size[1]])
    return np.concatenate([ends * size[0] + axis, ends * size[0] - axis])


def _color(model: mujoco.MjModel, g: int) -> Array:
    material = model.geom_matid[g]
    return np.asarray((model.mat_rgba[material] if material >= 0 else model.geom_rgba[g])[:3])


def _hull(points: Array) -> Array:
    """Return the convex hull of points in the plane (Andrew's monotone chain)."""
    ordered = sorted(map(tuple, points))
    halves = []
    for sequence in (ordered, ordered[::-1]):
        half: list[tuple[float, float]] = []
        for x, y in sequence:
            while len(half) > 1 and _turns_right(half[-2], half[-1], (x, y)):
                half.pop()
            half.append((x, y))
        halves += half[:-1]
    return np.array(halves)


Point = tuple[float, float]


def _turns_right(a: Point, b: Point, c: Point) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) <= 0


def _tendon_paths(model: mujoco.MjModel, data: mujoco.MjData) -> list[Array]:
    """Return the points of each spatial tendon in world coordinates."""
    points = data.wrap_xpos.reshape(-1, 3)
    spans = zip(data.ten_wrapadr, data.ten_wrapnum, strict=True)
    return [points[first : first + count] for first, count in spans if count]
