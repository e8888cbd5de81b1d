"""Random poses of pairs of geoms.

In a pose, features of the two geoms face each other: random vertices and edges, roughly aligned
faces, faces that overlap in part, faces aligned to between 1e-6 and 0.1 rad, and deep penetration.
Depths are random. Cones, dimensions and motions take turns.
"""

import zlib
from collections.abc import Iterator
from functools import cache

import mujoco
import numpy as np

from mujacobian import reference
from tests.scenes.contact_scenes import STATES, Pair, scene, set_motion

TYPES = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
PAIRS = [
    (first, second) for k, first in enumerate(TYPES) for second in TYPES[k:] if second != "plane"
]
KINDS = ("vertex", "edge", "face", "clipped", "aligned", "deep")
CONES = ("pyramidal", "elliptic")
DIMENSIONS = (1, 3, 4, 6)
DEEP = 0.02, 0.1  # m: spheres and capsules penetrate as deep as their cores

CURVED = {"ellipsoid", "cylinder"}
CLOSED = {("plane", "ellipsoid"), ("plane", "cylinder"), ("sphere", "cylinder")}
REFUSED, REFUSED_CURVED = 0.01, 0.05


def refused_share(first: str, second: str) -> float:
    """Return the share of poses that may raise `UnsupportedFeatureError`."""
    return REFUSED_CURVED if is_curved(first, second) else REFUSED


def is_curved(first: str, second: str) -> bool:
    """Return whether the pair uses the iterative collider and has a curved geom."""
    return bool({first, second} & CURVED) and (first, second) not in CLOSED


def poses(
    first: str, second: str, turns: range, seed: int = 0
) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
    """Yield touching poses; the index selects kind, cone, dimension and motion in turn."""
    rng = np.random.default_rng([zlib.crc32(f"{first}-{second}".encode()), seed])
    for k in turns:
        kind, cone, condim = _turn(k)
        model = _model(first, second, cone, condim)
        data = None
        while data is None or data.nefc == 0:
            data = _pose(model, kind, rng)
            if data is None:
                continue
            set_motion(model, data, STATES[condim][k % len(STATES[condim])], rng)
            mujoco.mj_forward(model, data)
        yield model, data


def _turn(k: int) -> tuple[str, str, int]:
    k, kind = divmod(k, len(KINDS))
    k, cone = divmod(k, len(CONES))
    return KINDS[kind], CONES[cone], DIMENSIONS[k % len(DIMENSIONS)]


@cache
def _model(first: str, second: str, cone: str, condim: int) -> mujoco.MjModel:
    text = scene(Pair(first, second, (0, 0, 1)), cone, condim)
    return reference.converge(mujoco.MjModel.from_xml_string(text))


def _pose(model: mujoco.MjModel, kind: str, rng: np.random.Generator) -> mujoco.MjData | None:
    """Return a state in which the geoms touch in this way, or None if they miss each other."""
    data = mujoco.MjData(model)
    quat = data.mocap_quat[0] if model.nmocap else data.joint("tilt").qpos
    quat[:] = _unit(rng.normal(size=4))
    mujoco.mj_kinematics(model, data)
    outward = data.geom("first").xmat.reshape(3, 3) @ _direction(model, "first", kind, rng)
    inward = _direction(model, "second", kind, rng)
    tilt = {"vertex": 0.5, "edge": 0.15, "face": 0.15, "clipped": 8e-4, "deep": 0.5}.get(kind)
    tilt = tilt or 10 ** rng.uniform(-6, -1)
    turn = _rotation(tilt * _unit(rng.normal(size=3))) @ _facing(inward, -outward, rng)
    second = model.geom("second")
    frame = np.empty(9)
    mujoco.mju_quat2Mat(frame, second.quat)
    body = turn @ frame.reshape(3, 3).T
    mujoco.mju_mat2Quat(data.qpos[-4:], body.ravel())
    aside = np.cross(outward, rng.normal(size=3)) * rng.choice([0.01, 0.05, 0.1])
    data.qpos[-7:-4] = data.geom("first").xpos + 0.45 * outward + aside - body @ second.pos
    depth = rng.uniform(*DEEP) if kind == "deep" else 10 ** rng.uniform(-4.5, -2.5)
    return data if _sink(model, data, outward, depth) else None


def _sink(model: mujoco.MjModel, data: mujoco.MjData, outward: np.ndarray, depth: float) -> bool:
    """Move the free body inward until the deepest contact has this depth."""
    start = data.qpos[-7:-4].copy()

    def above(way: float) -> bool:
        data.qpos[-7:-4] = start - way * outward
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        return min((contact.dist for contact in data.contact), default=1.0) > -depth

    high = next((way for way in np.arange(0.01, 0.6, 0.01) if not above(way)), None)
    if high is None:
        return False
    low = high - 0.01
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    above(high)
    mujoco.mj_forward(model, data)
    return data.ncon > 0


def _direction(model: mujoco.MjModel, name: str, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return a direction in which the geom has a vertex, an edge or a face."""
    feature = kind if kind in ("vertex", "edge") else "face"
    if kind == "vertex" and name == "first":
        feature = rng.choice(["vertex", "edge", "face"])
    if kind in ("clipped", "aligned") and name == "second" and rng.random() < 0.2:
        feature = "edge"
    around = np.append(_unit(rng.normal(size=2)), 0.0)
    up = np.array([0.0, 0.0, rng.choice([-1.0, 1.0])])
    geom = model.geom(name)
    match mujoco.mjtGeom(geom.type[0]):
        case mujoco.mjtGeom.mjGEOM_PLANE:
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
