"""Two-dimensional drawings of geoms. All primitives are convex, so outlines are convex hulls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from mujacobian._arguments import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CIRCLE = np.linspace(0, 2 * np.pi, 32, endpoint=False)
RING = np.stack([np.cos(CIRCLE), np.sin(CIRCLE), np.zeros_like(CIRCLE)], axis=1)
LATITUDES = np.linspace(-np.pi / 2, np.pi / 2, 13)
BALL = np.concatenate([RING * np.cos(a) + [0, 0, np.sin(a)] for a in LATITUDES])
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
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


def sketch(
    axes: Axes, model: mujoco.MjModel, data: mujoco.MjData, azimuth: float, elevation: float
) -> None:
    """Draw the geoms, from back to front, and the spatial tendons; planes and meshes are omitted.

    Args:
      axes: Matplotlib axes to draw on.
      model: model to draw.
      data: data with current kinematics.
      azimuth: azimuth of the direction from the model to the viewer, degrees.
      elevation: elevation of this direction, degrees.
    """
    from matplotlib.patches import Polygon

    right, up, toward = _camera(np.radians(azimuth), np.radians(elevation))
    shapes = []
    for g in range(model.ngeom):
        if model.geom_type[g] not in DRAWN:
            continue
        points = data.geom_xpos[g] + _surface(model, g) @ data.geom_xmat[g].reshape(3, 3).T
        outline = _hull(np.stack([points @ right, points @ up], axis=1))
        shapes.append((data.geom_xpos[g] @ toward, outline, _color(model, g)))
    depths = [depth for depth, _, _ in shapes]
    near, far = max(depths), min(depths)
    for depth, outline, color in sorted(shapes, key=lambda shape: shape[0]):
        light = 0.82 + 0.18 * (depth - far) / max(near - far, 1e-9)
        axes.add_patch(
            Polygon(outline, facecolor=color * light, edgecolor="#475569", linewidth=0.7)
        )
    for path in _tendon_paths(model, data):
        axes.plot(path @ right, path @ up, color="#dc2626", linewidth=1.6, solid_capstyle="round")
    axes.set_aspect("equal")
    axes.autoscale_view()
    axes.axis("off")


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
