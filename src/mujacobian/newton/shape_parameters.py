"""The dependence of geoms on the transforms and scales of Newton's shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from mujacobian._rotation import cross, lifted, matrix, to_xyzw, unit
from mujacobian.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from mujacobian.newton.parameters import WorldParameters

_PLANE, _HFIELD, _MESH = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}")) for name in ("PLANE", "HFIELD", "MESH")
)
# numbers of geom_size that determine a shape
_SIZES = {
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}")): count
    for name, count in (("SPHERE", 1), ("CAPSULE", 2), ("CYLINDER", 2), ("BOX", 3))
}
_SITE_ACTUATOR = int(mujoco.mjtTrn.mjTRN_SITE)
_SITE_WRAP = int(mujoco.mjtWrap.mjWRAP_SITE)


def add_scale(world: WorldParameters, name: str) -> None:
    """Add the terms of the sizes of geoms. Planes are infinite."""
    for g, shape in world.colliding():
        kind = int(world.mj.geom_type[g])
        if kind == _PLANE:
            continue
        if kind not in _SIZES:
            raise UnsupportedFeatureError(
                f'geom "{world.mj.geom(g).name}"',
                f"{name} of meshes, height fields and ellipsoids is not supported",
            )
        for k in range(_SIZES[kind]):
            world.add(name, 3 * shape + k, "geom_size", g, k, 1.0)


def add_transform(world: WorldParameters, name: str) -> None:
    """Add the terms of the frames of geoms (NWT-15)."""
    mj = world.mj
    if (mj.actuator_trntype == _SITE_ACTUATOR).any() or (mj.wrap_type == _SITE_WRAP).any():
        raise UnsupportedFeatureError(name, "actuators or tendons act on sites, which it moves")
    transforms = world.model.shape_transform.numpy().astype(np.float64)
    for g, shape in world.colliding():
        if mj.geom_type[g] == _HFIELD:
            raise UnsupportedFeatureError(
                f'geom "{mj.geom(g).name}"', f"{name} of height fields is not supported"
            )
        # MuJoCo moves the frame of a mesh to its center and principal axes
        offset, turned = np.zeros(3), np.eye(3)
        if mj.geom_type[g] == _MESH:
            offset = mj.mesh_pos[mj.geom_dataid[g]]
            turned = matrix(to_xyzw(mj.mesh_quat[mj.geom_dataid[g]]))
        q = transforms[shape, 3:]
        R = matrix(unit(q))
        for k in range(3):
            world.add(name, 7 * shape + k, "geom_position", g, k, 1.0)
            by_position, by_rotation = lifted(q, cross(offset, R[k])), lifted(q, turned[:, k])
            for c in range(4):
                place = 7 * shape + 3 + c
                world.add(name, place, "geom_rotation", g, k, float(by_rotation[c]))
                if offset.any():
                    world.add(name, place, "geom_position", g, k, float(by_position[c]))
