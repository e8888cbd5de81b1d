"""Frames and bounds that MuJoCo's compiler precomputes, for models whose frames are edited.

MuJoCo does not read the position of a geom or site whose frame is the body's or the inertial frame
(`geom_sameframe`, `site_sameframe`). It stores the boxes around the geoms of a body in the inertial
frame (`bvh_aabb`). After an edit of a frame, both must be updated.
"""

from __future__ import annotations

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._rotation import quaternion_matrix

_FRAME = mujoco.mjtSameFrame
_NONE, _BODY, _INERTIA, _BODYROT, _INERTIAROT = (
    int(getattr(_FRAME, f"mjSAMEFRAME_{name}"))
    for name in ("NONE", "BODY", "INERTIA", "BODYROT", "INERTIAROT")
)
_GEOM = mujoco.mjtGeom
_SPHERE, _CAPSULE, _CYLINDER = (
    int(kind) for kind in (_GEOM.mjGEOM_SPHERE, _GEOM.mjGEOM_CAPSULE, _GEOM.mjGEOM_CYLINDER)
)
_IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])


def release(model: mujoco.MjModel, kind: str, index: int) -> None:
    """Make MuJoCo read the frame of a "geom" or "site", without moving it."""
    flags = getattr(model, f"{kind}_sameframe")
    flag, body = int(flags[index]), getattr(model, f"{kind}_bodyid")[index]
    pos, quat = getattr(model, f"{kind}_pos")[index], getattr(model, f"{kind}_quat")[index]
    if flag in (_BODY, _INERTIA):
        pos[:] = model.body_ipos[body] if flag == _INERTIA else 0
    if flag in (_INERTIA, _INERTIAROT):
        quat[:] = model.body_iquat[body]
    elif flag != _NONE:
        quat[:] = _IDENTITY
    flags[index] = _NONE


def release_inertial_frame(model: mujoco.MjModel, body: int) -> None:
    """Make geoms and sites independent of the body's inertial frame, before an edit of it."""
    for kind in ("geom", "site"):
        flags = getattr(model, f"{kind}_sameframe")
        of_body = getattr(model, f"{kind}_bodyid") == body
        for index in np.flatnonzero(of_body & np.isin(flags, (_INERTIA, _INERTIAROT))):
            release(model, kind, int(index))
    model.body_sameframe[body] = _NONE


def bound_geom(model: mujoco.MjModel, geom: int) -> None:
    """Update the bounds of a sphere, capsule, cylinder or box whose size was edited."""
    size, kind = model.geom_size[geom], int(model.geom_type[geom])
    if kind == _SPHERE:
        half, reach = np.full(3, size[0]), size[0]
    elif kind == _CAPSULE:
        reach = size[0] + size[1]
        half = np.array([size[0], size[0], reach])
    elif kind == _CYLINDER:
        half, reach = size[[0, 0, 1]], np.hypot(size[0], size[1])
    else:
        half, reach = size, np.linalg.norm(size)
    model.geom_rbound[geom] = reach
    model.geom_aabb[geom][3:] = half


def bound_body(model: mujoco.MjModel, body: int) -> None:
    """Update the tree of boxes around the geoms of a body, in its inertial frame."""
    first, count = model.body_bvhadr[body], model.body_bvhnum[body]
    for node in reversed(range(first, first + count)):  # children come after their parents
        geom = model.bvh_nodeid[node]
        if geom >= 0:
            model.bvh_aabb[node] = _box_of_geom(model, body, geom)
            continue
        a, b = (model.bvh_aabb[first + child] for child in model.bvh_child[node])
        low = np.minimum(a[:3] - a[3:], b[:3] - b[3:])
        high = np.maximum(a[:3] + a[3:], b[:3] + b[3:])
        model.bvh_aabb[node] = np.concatenate([(high + low) / 2, (high - low) / 2])


def _box_of_geom(model: mujoco.MjModel, body: int, geom: int) -> Array:
    """Return the center and half sizes of a box around the geom, in its body's inertial frame."""
    center, half = model.geom_aabb[geom][:3], model.geom_aabb[geom][3:]
    if half.max() >= mujoco.mjMAXVAL:
        return np.concatenate([np.zeros(3), np.full(3, mujoco.mjMAXVAL)])
    of_geom = quaternion_matrix(model.geom_quat[geom])
    of_body = quaternion_matrix(model.body_iquat[body])
    place = model.geom_pos[geom] + of_geom @ center - model.body_ipos[body]
    return np.concatenate([of_body.T @ place, np.abs(of_body.T @ of_geom) @ half])
