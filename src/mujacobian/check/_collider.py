"""Contacts and distances at which MuJoCo's convex collider is the least accurate part of a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import mujoco
import numpy as np

CURVED = {int(mujoco.mjtGeom.mjGEOM_ELLIPSOID), int(mujoco.mjtGeom.mjGEOM_CYLINDER)}
ROUND = {int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE)}
MESH = int(mujoco.mjtGeom.mjGEOM_MESH)
HEIGHT_FIELD = int(mujoco.mjtGeom.mjGEOM_HFIELD)
SHARP = {int(mujoco.mjtGeom.mjGEOM_BOX), MESH}
# MuJoCo has closed forms for planes with all geoms, and for spheres with cylinders
PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)
SPHERE_CYLINDER = {int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CYLINDER)}
DISTANCES = [
    int(mujoco.mjtSensor.mjSENS_GEOMDIST),
    int(mujoco.mjtSensor.mjSENS_GEOMNORMAL),
    int(mujoco.mjtSensor.mjSENS_GEOMFROMTO),
]
# sensors that measure surfaces of geoms, whose features are in no branch
SURFACE_SENSORS = [*DISTANCES, int(mujoco.mjtSensor.mjSENS_RANGEFINDER)]


def meets_curved(model: mujoco.MjModel, data: mujoco.MjData) -> bool:
    """Return whether a contact or distance comes from the convex collider on curved geoms."""
    if any(is_deep(model, contact) or is_rounded(model, contact) for contact in data.contact):
        return True
    pairs = [contact.geom for contact in data.contact]
    for k in np.flatnonzero(np.isin(model.sensor_type, DISTANCES)):
        first = _geoms(model, model.sensor_objtype[k], model.sensor_objid[k])
        second = _geoms(model, model.sensor_reftype[k], model.sensor_refid[k])
        pairs.extend(product(first, second))
    for pair in pairs:
        kinds = {int(model.geom_type[g]) for g in pair if g >= 0}
        if kinds & CURVED and PLANE not in kinds and kinds != SPHERE_CYLINDER:
            return True
    return False


def is_deep(model: mujoco.MjModel, contact: mujoco.MjContact) -> bool:
    """Return whether the center line of a sphere or capsule is in a mesh or in a height field.

    The collider then uses the whole round geom instead of its center line.
    """
    first, second = contact.geom
    if first < 0 or second < 0:
        return False
    if model.geom_type[first] == HEIGHT_FIELD:
        first, second = second, first
    if model.geom_type[second] not in (MESH, HEIGHT_FIELD):
        return False
    return bool(model.geom_type[first] in ROUND and contact.dist < -model.geom_size[first, 0])


def is_rounded(model: mujoco.MjModel, contact: mujoco.MjContact) -> bool:
    """Return whether a margin rounds a mesh and a box or mesh that penetrate each other."""
    kinds = [int(model.geom_type[g]) for g in contact.geom if g >= 0]
    margin = float(contact.includemargin) > 0 or bool(model.geom_margin[contact.geom].any())
    return MESH in kinds and SHARP.issuperset(kinds) and margin and contact.dist < 0


def _geoms(model: mujoco.MjModel, kind: int, index: int) -> range:
    """Return the geoms of a body, or the geom itself."""
    if kind != mujoco.mjtObj.mjOBJ_BODY:
        return range(index, index + 1)
    first = int(model.body_geomadr[index])
    return range(first, first + int(model.body_geomnum[index]))


@contextmanager
def collider_tolerance(model: mujoco.MjModel, tolerance: float) -> Iterator[None]:
    before = model.opt.ccd_tolerance
    model.opt.ccd_tolerance = tolerance
    try:
        yield
    finally:
        model.opt.ccd_tolerance = before
