"""Random poses of pairs of geoms.

In a pose, features of the two geoms face each other:

vertex, edge    random vertices and edges
face            roughly aligned faces
clipped         faces that overlap in part
aligned         faces aligned to between 1e-6 and 0.1 rad
deep            penetration as deep as the cores of spheres and capsules
flush           faces aligned to rounding
rim             sides of faces over one another, aligned to between 1e-9 and 1e-2 rad
margin          geoms that are apart, within their margin
parallel        sides along a common axis, to which all motions of the bodies are confined

Depths are random. Cones, dimensions and motions take turns.
"""

import zlib
from collections.abc import Iterator
from functools import cache

import mujoco
import numpy as np

from mujacobian import reference
from tests.scenes.contact_scenes import (
    FREE,
    JOINTS,
    STATES,
    UP,
    Pair,
    press_together,
    scene,
    set_motion,
)

STATIC = ("plane", "field")
TYPES = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
# the first geom is on a body with a slide and a ball joint, and the second one is on a free body
PAIRS = [(first, second) for first in STATIC + TYPES for second in TYPES]
KINDS = (
    *("vertex", "edge", "face", "clipped", "aligned"),
    *("deep", "flush", "rim", "margin", "parallel"),
)
CONES = ("pyramidal", "elliptic")
DIMENSIONS = (1, 3, 4, 6)
DEEP = 0.02, 0.1  # m: spheres and capsules penetrate as deep as their cores
JUMP = 1e-9  # m: error of the depth of a pose
MARGIN = 0.02  # m: of both geoms of the kind "margin"
FIELDS_HAVE_MARGINS = mujoco.mj_version() >= 3016000
# rad: angle between features that face each other; a pair gives the exponents of its range
TILTS = {
    **{"vertex": 0.5, "edge": 0.15, "face": 0.15, "clipped": 8e-4, "aligned": (-6, -1)},
    **{"deep": 0.5, "flush": 0.0, "rim": (-9, -2), "margin": (-3, -0.3)},
}
ASIDE = {"rim": (0.08, 0.12, 0.16)}  # m: distance of the centers across the normal

# joints of the kind "parallel", which keep the z axes of both bodies parallel
PLANAR = """<joint name="lift" type="slide" axis="1 .2 0" stiffness="50" damping="2"/>
  <joint name="spin" type="hinge" axis="0 0 1" damping=".5"/>
  <inertial pos=".05 -.02 .03" mass="3" fullinertia=".2 .3 .25 .02 -.01 .03"/>"""
PLANAR_TOP = """<joint name="top" type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
  <joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 0 1"/>"""

CURVED = {"ellipsoid", "cylinder"}
CLOSED = ({"plane", "ellipsoid"}, {"plane", "cylinder"}, {"sphere", "cylinder"})
REFUSED = 0.001  # share of the poses of a pair that may raise UnsupportedFeatureError


def is_curved(first: str, second: str) -> bool:
    """Return whether the pair uses the iterative collider and has a curved geom."""
    return bool({first, second} & CURVED) and {first, second} not in CLOSED


def poses(
    first: str, second: str, turns: range, seed: int = 0
) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
    """Yield touching poses; the index selects kind, cone, dimension and motion in turn."""
    rng = np.random.default_rng([zlib.crc32(f"{first}-{second}".encode()), seed])
    for k in turns:
        kind, cone, condim = turn(k)
        if kind == "margin" and first == "field" and not FIELDS_HAVE_MARGINS:
            kind = "face"
        model = _model(first, second, cone, condim, kind)
        data = None
        while data is None or data.nefc == 0:
            data = _parallel(model, first, rng) if kind == "parallel" else _pose(model, kind, rng)
            if data is None:
                continue
            if kind == "parallel":
                data.qvel[:] = rng.normal(size=model.nv) * rng.choice([1e-3, 0.3, 2.0])
                press_together(data, 20.0)
            else:
                set_motion(model, data, STATES[condim][k % len(STATES[condim])], rng)
            mujoco.mj_forward(model, data)
        yield model, data


def turn(k: int) -> tuple[str, str, int]:
    """Return the kind, cone and contact dimension of a pose."""
    k, kind = divmod(k, len(KINDS))
    k, cone = divmod(k, len(CONES))
    return KINDS[kind], CONES[cone], DIMENSIONS[k % len(DIMENSIONS)]


@cache
def _model(first: str, second: str, cone: str, condim: int, kind: str) -> mujoco.MjModel:
    geom = f'margin="{MARGIN}"' if kind == "margin" else ""
    joints, free = JOINTS, FREE
    if kind == "parallel":
        first, second = ("prism" if name == "mesh" else name for name in (first, second))
        joints, free = PLANAR, PLANAR_TOP
    pair = Pair(first, second, UP)
    text = scene(pair, cone, condim, geom=geom, joints=joints, free=free)
    return reference.converge(mujoco.MjModel.from_xml_string(text))


def _pose(model: mujoco.MjModel, kind: str, rng: np.random.Generator) -> mujoco.MjData | None:
    """Return a state in which the geoms touch in this way, or None if they miss each other."""
    data = mujoco.MjData(model)
    quat = data.mocap_quat[0] if model.nmocap else data.joint("tilt").qpos
    quat[:] = _unit(rng.normal(size=4))
    mujoco.mj_kinematics(model, data)
    outward = data.geom("first").xmat.reshape(3, 3) @ _direction(model, "first", kind, rng)
    inward = _direction(model, "second", kind, rng)
    tilt = TILTS[kind]
    angle = 10 ** rng.uniform(*tilt) if isinstance(tilt, tuple) else tilt
    facing = _facing(inward, -outward, rng)
    if angle > 0:
        facing = _rotation(angle * _unit(rng.normal(size=3))) @ facing
    second = model.geom("second")
    frame = np.empty(9)
    mujoco.mju_quat2Mat(frame, second.quat)
    body = facing @ frame.reshape(3, 3).T
    mujoco.mju_mat2Quat(data.qpos[-4:], body.ravel())
    aside = np.cross(outward, rng.normal(size=3)) * rng.choice(ASIDE.get(kind, (0.01, 0.05, 0.1)))
    start = data.geom("first").xpos + 0.45 * outward + aside - body @ second.pos
    depth = 10 ** rng.uniform(-4.5, -2.5)
    if kind == "deep":
        depth = rng.uniform(*DEEP)
    elif kind == "margin":
        depth = -rng.uniform(0.01, 0.9) * MARGIN
    return data if _sink(model, data, slice(-7, -4), start, outward, depth) else None


def _parallel(model: mujoco.MjModel, first: str, rng: np.random.Generator) -> mujoco.MjData | None:
    """Return a state in which the z axes of both bodies are parallel, or None if they miss."""
    data = mujoco.MjData(model)
    data.qpos[-1] = rng.uniform(-np.pi, np.pi)
    if not model.nmocap:
        data.joint("spin").qpos = rng.uniform(-np.pi, np.pi)
    mujoco.mj_kinematics(model, data)
    outward = np.array(UP)
    standing = first in STATIC or rng.random() < 0.3
    if not standing:
        outward = np.append(_unit(rng.normal(size=2)), 0.0)
    aside = np.cross(outward, rng.normal(size=3)) * rng.choice([0.01, 0.05, 0.1])
    start = data.geom("first").xpos + 0.45 * outward + aside
    depth = 10 ** rng.uniform(-4.5, -2.5)
    return data if _sink(model, data, slice(-4, -1), start, outward, depth) else None


def _sink(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    position: slice,
    start: np.ndarray,
    outward: np.ndarray,
    depth: float,
) -> bool:
    """Move the second body inward from `start` until the deepest contact has this depth.

    Return whether it has: the geoms may miss each other, or a contact appears with a greater depth.
    In the second case the state is on a jump, where the collider changes the number of contacts.
    """

    def deepest(way: float) -> float:
        data.qpos[position] = start - way * outward
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        return -float(data.contact.dist.min(initial=1.0))

    def above(way: float) -> bool:
        return deepest(way) < depth

    high = next((way for way in np.arange(0.01, 0.6, 0.01) if not above(way)), None)
    if high is None:
        return False
    low = high - 0.01
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    reached = deepest(high)
    mujoco.mj_forward(model, data)
    return data.ncon > 0 and reached < depth + JUMP


def _direction(model: mujoco.MjModel, name: str, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return a direction in which the geom has a vertex, an edge or a face."""
    feature = kind if kind in ("vertex", "edge") else "face"
    if kind == "margin":
        feature = rng.choice(["vertex", "edge", "face"])
    if kind == "vertex" and name == "first":
        feature = rng.choice(["vertex", "edge", "face"])
    if kind in ("clipped", "aligned") and name == "second" and rng.random() < 0.2:
        feature = "edge"
    around = np.append(_unit(rng.normal(size=2)), 0.0)
    up = np.array([0.0, 0.0, rng.choice([-1.0, 1.0])])
    geom = model.geom(name)
    match mujoco.mjtGeom(geom.type[0]):
        case mujoco.mjtGeom.mjGEOM_PLANE | mujoco.mjtGeom.mjGEOM_HFIELD:
            return np.array([0.0, 0.0, 1.0])
        case mujoco.mjtGeom.mjGEOM_BOX:
            axes = rng.permutation(3)[: {"face": 1, "edge": 2, "vertex": 3}[feature]]
            direction = np.zeros(3)
            direction[axes] = rng.choice([-1.0, 1.0], size=len(axes))
            return _unit(direction)
        case mujoco.mjtGeom.mjGEOM_MESH:
            return _mesh_direction(model, int(geom.dataid[0]), feature, rng)
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            return _unit({"face": around, "edge": around + up, "vertex": up}[feature])
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            face = around if rng.random() < 0.5 else up
            return _unit({"face": face, "edge": around + up, "vertex": up}[feature])
        case _:
            return _unit(rng.normal(size=3))


def _mesh_direction(
    model: mujoco.MjModel, mesh: int, feature: str, rng: np.random.Generator
) -> np.ndarray:
    adr, num = model.mesh_polyadr[mesh], model.mesh_polynum[mesh]
    normals = model.mesh_polynormal[adr : adr + num]
    if feature == "vertex":
        adr, num = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        return _unit(model.mesh_vert[adr + rng.integers(num)].astype(float))
    one = normals[rng.integers(num)]
    if feature == "face":
        return one
    near = normals[(normals @ one > -0.5) & (normals @ one < 1 - 1e-9)]
    return _unit(one + near[rng.integers(len(near))])


def _facing(start: np.ndarray, end: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a rotation from `start` to `end`, with a random spin."""
    spin = _rotation(rng.uniform(-np.pi, np.pi) * end)
    return spin @ _basis(end) @ _basis(start).T


def _basis(axis: np.ndarray) -> np.ndarray:
    tangent = _unit(np.cross(axis, np.eye(3)[np.argmin(abs(axis))]))
    return np.column_stack([axis, tangent, np.cross(axis, tangent)])


def _rotation(vector: np.ndarray) -> np.ndarray:
    quat, matrix = np.empty(4), np.empty(9)
    angle = float(np.linalg.norm(vector))
    mujoco.mju_axisAngle2Quat(quat, vector / angle, angle)
    mujoco.mju_quat2Mat(matrix, quat)
    return matrix.reshape(3, 3)


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)
