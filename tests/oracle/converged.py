"""MuJoCo's step with contacts of curved geoms at their optimum, as a reference for differences.

MuJoCo's convex collider stops within a tolerance of the contact of ellipsoids and cylinders, on a
facet of its polytope. Its result is a smooth map, but the slopes have errors of up to 1e-3 over any
length of a difference. Here the contact of the collider is only the start of Newton's method. The
method finds nearest or deepest points with a common normal, on the features (rim, side, cap, edge,
face ...) at the witness points. All other stages are MuJoCo's. The result is the map of the
converged contact, to rounding.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product

import mujoco
import numpy as np

from mujacobian import reference
from mujacobian.check._collider import CURVED, SPHERE_CYLINDER
from mujacobian.reference import ConstrainedStep

Array = np.ndarray
Geom = mujoco.mjtGeom
ON = 1e-6  # m: distance of a witness point of the collider from its feature
# rad: most errors of the direction of a line over a polygon and over a cap where the collider stops
COLLIDER_ANGLE, CAP_ANGLE = 1e-6, 1e-5
LONG = Geom.mjGEOM_CAPSULE, Geom.mjGEOM_CYLINDER  # geoms that lie along a face with a line
CAP_SIDES = 16  # sides of the polygon with which MuJoCo clips a cap
HALF_WIDTH = 0.5  # |n_y| above which the world's z axis, not y, directs a contact frame
DIFFERENCE = 1e-6  # steps of the derivatives of Newton's residual
ITERATIONS, SOLVED, ROUNDING = 20, 1e-17, 1e-13  # limits of Newton's method
SLOW = 10.0  # factor by which a step of Newton's method must reduce the residual
PARALLEL = 1e-8  # relative size of directions that the equations do not determine


@dataclass
class Side:
    """A feature of a geom in its frame: a point that moves with the outward normal, and slides."""

    geom: int
    point: Callable[[Array], Array]
    slides: list[Array] = field(default_factory=list)
    radius: float = 0.0  # radius around the point or line

    def pose(self, data: mujoco.MjData) -> "Pose":
        frame = data.geom_xmat[self.geom].reshape(3, 3)
        slides = np.reshape(self.slides, (-1, 3)) @ frame.T
        return Pose(self, data.geom_xpos[self.geom], frame, slides)


@dataclass
class Pose:
    """A feature in the world: the frame of its geom, and its slides."""

    side: Side
    position: Array
    frame: Array
    slides: Array

    def place(self, outward: Array, shift: Array) -> Array:
        return np.asarray(
            self.position + self.frame @ self.side.point(outward @ self.frame) + shift @ self.slides
        )


def find_side(
    model: mujoco.MjModel, data: mujoco.MjData, geom: int, x: Array, normal: Array
) -> Side:
    """Return the feature of a geom at the witness point x; raise ValueError if there is none."""
    local = _to_local(data, geom, x)
    size, kind = model.geom_size[geom], Geom(model.geom_type[geom])
    axis = np.array([0.0, 0, 1])
    if kind == Geom.mjGEOM_ELLIPSOID:
        return Side(geom, lambda n: size**2 * n / np.linalg.norm(size * n))
    if kind == Geom.mjGEOM_SPHERE:
        return Side(geom, _fixed(np.zeros(3)), radius=size[0])
    if kind == Geom.mjGEOM_CAPSULE:
        end = np.clip(local[2], -size[1], size[1]) * axis
        inside = abs(local[2]) < size[1]
        return Side(geom, _fixed(end), [axis] if inside else [], size[0])
    if kind == Geom.mjGEOM_CYLINDER:
        return _cylinder_side(geom, size, local)
    outward = data.geom_xmat[geom].reshape(3, 3).T @ normal
    for polygon in _polygons(model, geom, kind, local):
        across = np.cross(polygon[1] - polygon[0], polygon[2] - polygon[0])
        across /= np.linalg.norm(across)
        if abs(across @ (local - polygon[0])) < ON:
            found = _polygon_side(geom, polygon, local, abs(across @ outward) > 1 - ON)
            if found:
                return found
    raise ValueError(f"no feature of geom {geom} at {local}")


def _fixed(point: Array) -> Callable[[Array], Array]:
    return lambda normal: point


def _cylinder_side(geom: int, size: Array, local: Array) -> Side:
    axis, end = np.array([0.0, 0, 1]), np.sign(local[2]) * size[1]
    on_cap = abs(local[2] - end) < ON
    on_side = abs(np.hypot(*local[:2]) - size[0]) < ON
    if on_cap and on_side:

        def rim(n: Array) -> Array:
            with np.errstate(invalid="ignore"):  # along the axis, no point of the rim is farthest
                return np.append(size[0] * n[:2] / np.hypot(*n[:2]), end)

        return Side(geom, rim)
    if on_cap:
        return Side(geom, _fixed(end * axis), [np.array([1.0, 0, 0]), np.array([0.0, 1, 0])])
    if on_side:
        return Side(geom, _fixed(local[2] * axis), [axis], size[0])
    raise ValueError(f"not on the surface of cylinder {geom}")


def _polygon_side(geom: int, polygon: Array, local: Array, faces: bool) -> Side | None:
    """Return the vertex or edge of a point, or the face if the normal belongs to it."""
    for vertex in polygon:
        if np.linalg.norm(vertex - local) < ON:
            return Side(geom, _fixed(vertex))
    for a, b in pairwise([*polygon, polygon[0]]):
        along = (b - a) / np.linalg.norm(b - a)
        reach = along @ (local - a)
        on = np.linalg.norm(local - a - reach * along) < ON
        if on and 0 < reach < np.linalg.norm(b - a):
            return Side(geom, _fixed(local), [along])
    if not faces:
        return None
    first = (polygon[1] - polygon[0]) / np.linalg.norm(polygon[1] - polygon[0])
    second = np.cross(np.cross(first, polygon[2] - polygon[0]), first)
    return Side(geom, _fixed(local), [first, second / np.linalg.norm(second)])


def _polygons(model: mujoco.MjModel, geom: int, kind: Geom, local: Array) -> Iterator[Array]:
    """Yield the faces of a box or mesh, and the triangles of a height field, in its frame."""
    data = model.geom_dataid[geom]
    if kind == Geom.mjGEOM_BOX:
        square = np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]])
        for axis in range(3):
            for end in (-1, 1):
                yield np.insert(square, axis, end, axis=1) * model.geom_size[geom]
    elif kind == Geom.mjGEOM_MESH:
        vertices = model.mesh_vert[model.mesh_vertadr[data] :].astype(float)
        for k in range(model.mesh_polynum[data]):
            polygon = model.mesh_polyadr[data] + k
            start = model.mesh_polyvertadr[polygon]
            yield vertices[model.mesh_polyvert[start : start + model.mesh_polyvertnum[polygon]]]
    elif kind == Geom.mjGEOM_HFIELD:
        yield from _triangles(model, data, local)


def _triangles(model: mujoco.MjModel, field_id: int, local: Array) -> Iterator[Array]:
    """Yield the triangles of the cells around a point of a height field, and walls between them."""
    rows, columns = model.hfield_nrow[field_id], model.hfield_ncol[field_id]
    size, start = model.hfield_size[field_id], model.hfield_adr[field_id]
    step = 2 * size[:2] / (np.array([columns, rows]) - 1)
    at = ((local[:2] + size[:2]) / step).astype(int)

    def corner(row: int, column: int) -> Array:
        height = size[2] * model.hfield_data[start + row * columns + column]
        return np.array([*(step * [column, row] - size[:2]), height])

    for row in range(max(0, at[1] - 1), min(rows - 1, at[1] + 2)):
        for column in range(max(0, at[0] - 1), min(columns - 1, at[0] + 2)):
            first, last = corner(row, column), corner(row + 1, column + 1)
            yield np.array([first, last, corner(row + 1, column)])
            yield np.array([first, corner(row, column + 1), last])
            base = np.array([1.0, 1, 0]), np.array([0, 0, -size[3]])
            yield np.array([first, last, last * base[0] + base[1], first * base[0] + base[1]])


@dataclass
class Optimum:
    """Nearest or deepest points of two features, with a common normal.

    The unknowns z are the normal, the distance of the points along it, and their sliding motions.
    `inverse` is that of an earlier slope of the residual, which is used while it still converges.
    """

    sides: tuple[Side, Side]
    inverse: Array | None = None

    def poses(self, data: mujoco.MjData) -> tuple[Pose, Pose]:
        return self.sides[0].pose(data), self.sides[1].pose(data)

    def residual(self, poses: tuple[Pose, Pose], z: Array) -> Array:
        normal, distance = z[:3], z[3]
        x0, x1 = self.points(poses, z)
        slides = np.concatenate([pose.slides for pose in poses])
        gap = x1 - x0 - distance * normal
        return np.concatenate([gap, [normal @ normal - 1], slides @ normal])

    def points(self, poses: tuple[Pose, Pose], z: Array) -> tuple[Array, Array]:
        first, second = poses
        middle = 4 + len(first.slides)
        return first.place(z[:3], z[4:middle]), second.place(-z[:3], z[middle:])

    def find(self, data: mujoco.MjData, normal: Array, distance: float) -> tuple[Array, bool]:
        """Return the optimum near a normal and distance, and whether Newton's method succeeded."""
        slides = sum(len(side.slides) for side in self.sides)
        z, least = np.array([*normal, distance, *np.zeros(slides)]), np.inf
        poses = self.poses(data)
        for _ in range(ITERATIONS):
            value = self.residual(poses, z)
            size = abs(value).max()
            if size < SOLVED or (size < ROUNDING and size >= least):
                break
            inverse = self.inverse
            if inverse is None or size > max(least / SLOW, ROUNDING):
                inverse = self._invert_slope(poses, z)
            if inverse is None:  # far away from the optimum
                return z, False
            least = size
            z = z - inverse @ value
        z[:3] /= np.linalg.norm(z[:3])
        return z, bool(size < ROUNDING)

    def _invert_slope(self, poses: tuple[Pose, Pose], z: Array) -> Array | None:
        """Return the inverse of the slope of the residual; remember it if it has full rank."""
        steps = DIFFERENCE * np.eye(len(z))
        slope = [self.residual(poses, z + h) - self.residual(poses, z - h) for h in steps]
        slope = np.array(slope).T / (2 * DIFFERENCE)
        if not np.isfinite(slope).all():
            return None
        left, sizes, right = np.linalg.svd(slope, full_matrices=False)
        known = sizes > PARALLEL * sizes[0]
        inverse = np.asarray((right[known].T / sizes[known]) @ left[:, known].T)
        self.inverse = inverse if known.all() else None
        return inverse

    def solve(self, data: mujoco.MjData, contact: mujoco.MjContact) -> bool:
        """Move a contact of `data` to its optimum; return False if Newton's method fails."""
        radii = [side.radius for side in self.sides]
        z, found = self.find(data, contact.frame[:3], contact.dist + sum(radii))
        if not found:
            return False
        x0, x1 = self.points(self.poses(data), z)
        contact.dist = z[3] - sum(radii)
        contact.pos[:] = (x0 + radii[0] * z[:3] + x1 - radii[1] * z[:3]) / 2
        contact.frame[:] = _frame(z[:3])
        return True


@dataclass
class Line:
    """An end of the line of a surface, of a cylinder or capsule, over a face of another geom.

    The line points toward the optimum of the cylinder or capsule with a side of the face. It is off
    the axis by the radius, for a capsule times the part of this direction across the axis. It ends
    in a plane through a side, or at the end of the axis, and its distance is measured from the
    face. Planes are normals and offsets in the frame of the other geom. `start` is the optimum in
    the frame of the cylinder or capsule, and `radius` its radius.
    """

    optimum: Optimum
    start: tuple[Array, float]
    face: tuple[Array, float]
    end: tuple[Array | None, float]
    radius: float
    unit: bool  # for a cylinder: the part of the direction across the axis counts as a unit vector

    def solve(self, data: mujoco.MjData, contact: mujoco.MjContact) -> bool:
        """Move a contact of `data` to the line's end; return False if Newton's method fails."""
        owner, other = contact.geom.tolist()
        frame, turn = (data.geom_xmat[g].reshape(3, 3) for g in (owner, other))
        axis = frame[:, 2]
        z, found = self.optimum.find(data, frame @ self.start[0], self.start[1])
        if not found:
            return False
        x = data.geom_xpos[owner] + self.radius * frame @ _across(frame.T @ z[:3], self.unit)
        plane, offset = self.end
        if plane is None:
            x = x + offset * axis
        else:
            away = offset - plane @ _to_local(data, other, x)
            x = x + away / (turn @ plane @ axis) * axis
        outward = turn @ self.face[0]
        contact.dist = self.face[0] @ _to_local(data, other, x) - self.face[1]
        contact.pos[:] = x - contact.dist / 2 * outward
        contact.frame[:] = _frame(-outward)
        return True


class ConvergedStep(ConstrainedStep):
    """A step with contacts of curved geoms at their optimum; raises ValueError if it is unknown.

    `converged` is the data of the state with these contacts, as after `mj_forward`.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        twin = mujoco.MjData(model)
        mujoco.mj_copyData(twin, model, data)
        mujoco.mj_forward(model, twin)
        self.optima: dict[int, Optimum | Line] = {}
        for k in range(twin.ncon):
            if is_truncated(model, twin, k):
                self.optima[k] = _find_optimum(model, twin, k)
        super().__init__(model, data)
        self._move(np.zeros(self.nz))
        self._forward()
        self.converged = mujoco.MjData(model)
        mujoco.mj_copyData(self.converged, model, self.data)

    def _outcome(self, z: Array) -> Array:
        m, d = self.model, self.data
        self._move(z)
        if not self._forward():  # far away: useless for the extrapolation
            return np.full(self.blocks[-1], np.nan)
        implicit = m.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        (mujoco.mj_implicit if implicit else mujoco.mj_Euler)(m, d)
        return self._measure(z)

    def _forward(self) -> bool:
        """Run mj_forward without sensors, and move the contacts to their optimum in between."""
        stages = "kinematics comPos camlight flex tendon makeM factorM collision"
        rest = "makeConstraint island projectConstraint transmission fwdVelocity fwdActuation"
        for name in stages.split():
            getattr(mujoco, f"mj_{name}")(self.model, self.data)
        found = [
            optimum.solve(self.data, self.data.contact[k])
            for k, optimum in self.optima.items()
            if k < self.data.ncon  # otherwise this is another branch
        ]
        for name in [*rest.split(), "fwdAcceleration", "fwdConstraint"]:
            getattr(mujoco, f"mj_{name}")(self.model, self.data)
        return all(found)


def is_truncated(model: mujoco.MjModel, data: mujoco.MjData, k: int) -> bool:
    """Return whether a contact is accurate only to the tolerance of the convex collider."""
    contact = data.contact[k]
    kinds = {int(t) for t in model.geom_type[contact.geom]}
    closed = Geom.mjGEOM_PLANE in kinds or kinds == SPHERE_CYLINDER
    curved = bool(kinds & CURVED) and not closed
    return curved or reference.is_deep(model, contact)


def is_manifold(model: mujoco.MjModel, data: mujoco.MjData, k: int) -> bool:
    """Return whether a contact is one of several that the convex collider made from features."""
    pair = data.contact[k].geom
    alike = (data.contact.geom == pair).all(axis=1).sum()
    return Geom(model.geom_type[pair[0]]) != Geom.mjGEOM_HFIELD and bool(alike > 1)


def _find_optimum(model: mujoco.MjModel, data: mujoco.MjData, k: int) -> Optimum | Line:
    contact = data.contact[k]
    points = _witnesses(contact)
    if is_manifold(model, data, k):
        if Geom(model.geom_type[contact.geom[0]]) not in LONG:
            raise ValueError("a manifold of other geoms than a cylinder or capsule and a face")
        return _find_line(model, data, contact, points[0])
    normal = contact.frame[:3]
    first, second = contact.geom.tolist()
    return Optimum(
        (
            find_side(model, data, first, points[0], normal),
            find_side(model, data, second, points[1], -normal),
        )
    )


def _find_line(
    model: mujoco.MjModel, data: mujoco.MjData, contact: mujoco.MjContact, x: Array
) -> Line:
    """Return the line that ends at x, toward the optimum that explains it best."""
    owner, other = contact.geom.tolist()
    frame, (radius, half, _) = data.geom_xmat[owner].reshape(3, 3), model.geom_size[owner]
    unit = model.geom_type[owner] == Geom.mjGEOM_CYLINDER
    at, outward = (
        _to_local(data, owner, x),
        -data.geom_xmat[other].reshape(3, 3).T @ contact.frame[:3],
    )
    face, sides, optima = _face(model, owner, other, outward)
    end: tuple[Array | None, float] = (None, at[2])
    if abs(abs(at[2]) - half) > ON:
        ends = [p for p in sides if abs(p[0] @ _to_local(data, other, x) - p[1]) < ON]
        if len(ends) != 1:
            raise ValueError("a line that does not end at one side of a face")
        end = ends[0]
    toward = np.append(at[:2], 0) / np.hypot(*at[:2])
    best: Line | None = None
    over_cap = model.geom_type[other] == Geom.mjGEOM_CYLINDER
    least = CAP_ANGLE if over_cap else COLLIDER_ANGLE
    for optimum, lean in product(optima, np.linspace(-1.5, 1.5, 31)):
        normal = frame @ (np.cos(lean) * toward + [0, 0, np.sin(lean)])
        slides = sum(len(side.slides) for side in optimum.sides)
        x0, x1 = optimum.points(optimum.poses(data), np.array([*normal, 0, *np.zeros(slides)]))
        z, found = optimum.find(data, normal, normal @ (x1 - x0))
        local = frame.T @ z[:3]
        error = np.linalg.norm(_across(local, unit)[:2] - at[:2] / radius)
        if found and error < least and _is_support(model, data, optimum, z):
            best = Line(optimum, (local, z[3]), face, end, radius, unit)
            least = float(error)
            if least < COLLIDER_ANGLE:
                break
    if best is None:
        raise ValueError("no optimum explains the line")
    return best


def _is_support(model: mujoco.MjModel, data: mujoco.MjData, optimum: Optimum, z: Array) -> bool:
    """Return whether an optimum is on the surfaces: at the lower end of the axis, over the cap."""
    (owner, other), (x0, x1) = optimum.sides, optimum.points(optimum.poses(data), z)
    lean = z[:3] @ data.geom_xmat[owner.geom].reshape(3, 3)[:, 2]
    lower = len(owner.slides) > 0 or lean * _to_local(data, owner.geom, x0)[2] > -ROUNDING
    within = np.hypot(*_to_local(data, other.geom, x1)[:2]) < model.geom_size[other.geom, 0]
    return bool(lower and (len(other.slides) < 2 or within))


def _across(direction: Array, unit: bool) -> Array:
    """Return the part of a direction across the z axis, as a unit vector if `unit` is set."""
    part = np.append(direction[:2], 0.0)
    return part / np.linalg.norm(part) if unit else part


def _face(
    model: mujoco.MjModel, owner: int, other: int, outward: Array
) -> tuple[tuple[Array, float], list[tuple[Array, float]], list[Optimum]]:
    """Return the plane of a face, those of its sides, and the optima of a line over them."""
    size, axis = model.geom_size[other], np.array([0.0, 0, 1])
    radius, half = model.geom_size[owner, :2]
    line = Side(owner, _fixed(np.zeros(3)), [axis], radius)
    if model.geom_type[owner] == Geom.mjGEOM_CAPSULE:
        own = [Side(owner, _fixed(h * axis), radius=radius) for h in (-half, half)]
    else:
        ends = [np.array([radius, 0, h]) for h in (-half, half)]
        own = [_cylinder_side(owner, model.geom_size[owner], end) for end in ends]
    if model.geom_type[other] != Geom.mjGEOM_CYLINDER:
        polygon, normal = _facing(model, other, outward)
        edges, sides = [], []
        for a, b in pairwise([*polygon, polygon[0]]):
            along = (b - a) / np.linalg.norm(b - a)
            way = _cross(along, normal)
            way *= np.sign(way @ (a - polygon.mean(axis=0)))
            sides.append((way, float(way @ a)))
            edges.append(Side(other, _fixed((a + b) / 2), [along]))
        vertices = [Side(other, _fixed(vertex)) for vertex in polygon]
        pairs = product((line, *own), (*edges, *vertices))
        return (normal, float(normal @ polygon[0])), sides, [Optimum(pair) for pair in pairs]
    if abs(outward[2]) < 1 - ON:
        raise ValueError("a normal that is not that of a face")
    normal = np.sign(outward[2]) * axis
    angles = 2 * np.pi / CAP_SIDES * (np.arange(CAP_SIDES) + 0.5)
    apothem = size[0] * np.cos(np.pi / CAP_SIDES)
    sides = [(np.array([np.cos(t), np.sin(t), 0]), apothem) for t in angles]
    rim = _cylinder_side(other, size, np.array([size[0], 0, normal[2] * size[1]]))
    cap = _cylinder_side(other, size, np.array([0, 0, normal[2] * size[1]]))
    pairs = product((line, *own), (rim, cap))
    return (normal, size[1]), sides, [Optimum(pair) for pair in pairs if pair != (line, cap)]


def _facing(model: mujoco.MjModel, geom: int, outward: Array) -> tuple[Array, Array]:
    """Return the face of a box or mesh that has an outward normal, and this normal to rounding."""
    kind, data = Geom(model.geom_type[geom]), model.geom_dataid[geom]
    polygons = list(_polygons(model, geom, kind, outward))
    if kind == Geom.mjGEOM_MESH:
        normals = model.mesh_polynormal[model.mesh_polyadr[data] :][: len(polygons)]
    else:
        normals = np.array([polygon.mean(axis=0) for polygon in polygons])
        normals /= np.linalg.norm(normals, axis=1)[:, None]
    k = int((normals @ outward).argmax())
    if normals[k] @ outward < 1 - ON:
        raise ValueError("a normal that is not that of a face")
    return polygons[k], normals[k]


def _witnesses(contact: mujoco.MjContact) -> tuple[Array, Array]:
    half = contact.dist / 2 * contact.frame[:3]
    return contact.pos - half, contact.pos + half


def _to_local(data: mujoco.MjData, geom: int, x: Array) -> Array:
    return data.geom_xmat[geom].reshape(3, 3).T @ (x - data.geom_xpos[geom])


def _frame(normal: Array) -> Array:
    hint = np.array([0.0, 1, 0]) if abs(normal[1]) < HALF_WIDTH else np.array([0.0, 0, 1])
    tangent = hint - (normal @ hint) * normal
    tangent /= np.linalg.norm(tangent)
    return np.concatenate([normal, tangent, _cross(normal, tangent)])


def _cross(a: Array, b: Array) -> Array:
    """Return the cross product; `np.cross` takes much longer for single vectors."""
    return a[[1, 2, 0]] * b[[2, 0, 1]] - a[[2, 0, 1]] * b[[1, 2, 0]]
