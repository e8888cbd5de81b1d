"""Contacts of Newton's pipeline: gradients against differences of Newton's own step.

The contacts are held, as they are between two calls of `collide`. Newton's arrays have single
precision, so that differences are accurate to about 1e-3. Gradients of states and inputs are also
compared with differences of the same step in double precision.
"""

from itertools import pairwise

import newton
import numpy as np
import pytest
import warp as wp
from given_oracle import GivenOracle
from losses import coordinates, inputs_of, inputs_only
from newton.solvers import SolverMuJoCo

from mujacobian.errors import ArgumentError, UnsupportedFeatureError
from mujacobian.newton import DifferentiableMuJoCo

DT = 0.002
# error of a directional difference in single precision: relative to the sum of its terms, and
# rounding of the loss, which is divided by the step
FLOOR, ROUNDING = 1e-3, 4e-7
# mujoco_warp's solver stops at a tolerance of 1e-6, where elliptic cones have not converged
ELLIPTIC_FLOOR = 5e-3
OPTIONS = {"use_mujoco_contacts": False, "tolerance": 1e-10, "iterations": 100}
FORCE_SPACE, DEFAULT = 0, 2
L_SHAPE = np.array([[0, 0], [0.3, 0], [0.3, 0.1], [0.1, 0.1], [0.1, 0.3], [0, 0.3]]) - 0.1


def l_mesh():
    """Return a mesh that is not convex: an extruded letter L."""
    n = len(L_SHAPE)
    points = np.concatenate([np.c_[L_SHAPE, np.full(n, z)] for z in (-0.08, 0.08)])
    cap = [(0, 1, 2), (0, 2, 3), (0, 3, 5), (3, 4, 5)]
    triangles = [(a, c, b) for a, b, c in cap] + [tuple(n + k for k in each) for each in cap]
    for k in range(n):
        last = (k + 1) % n
        triangles += [(k, last, n + last), (k, n + last, n + k)]
    return newton.Mesh(points.astype(np.float32), np.array(triangles, dtype=np.int32).ravel())


def build(kind, mode=DEFAULT):
    """Return a model of one shape on the ground, or of a box on an arm that touches another one."""
    b = newton.ModelBuilder()
    SolverMuJoCo.register_custom_attributes(b)
    stiff = 200.0 if mode == FORCE_SPACE else 1.0  # gains of forces, not of accelerations
    config = newton.ModelBuilder.ShapeConfig
    b.add_ground_plane(cfg=config(mu=0.3, ke=3000.0 * stiff, kd=90.0 * stiff))
    cfg = config(mu=0.5, ke=2000.0 * stiff, kd=80.0 * stiff)
    tilt = wp.quat_from_axis_angle(wp.normalize(wp.vec3(1.0, 2.0, 0.5)), 0.005)
    at = {"sphere": 0.096, "box": 0.096, "mesh": 0.096, "not convex": 0.076, "arm": 0.096}[kind]
    place = wp.transform((0.0, 0.0, at), tilt)
    if kind == "arm":
        root, tip = b.add_link(xform=place), b.add_link()
        b.add_shape_sphere(root, radius=0.1, cfg=cfg)
        b.add_shape_sphere(tip, radius=0.08, cfg=cfg)
        free = b.add_joint_free(root)
        reach = wp.transform((0.35, 0.0, -0.021), wp.quat_identity())
        turn = b.add_joint_revolute(root, tip, axis=(0.2, 1.0, 0.1), parent_xform=reach)
        b.add_articulation([free, turn])
        other = b.add_body(xform=wp.transform((0.512, 0.01, 0.084), wp.quat_identity()))
        b.add_shape_sphere(other, radius=0.09, cfg=cfg)
        b.joint_q[:7] = [0.0, 0.0, at, *tilt]
    else:
        body = b.add_body(xform=place)
        if kind == "sphere":
            b.add_shape_sphere(body, radius=0.1, cfg=cfg)
        elif kind == "box":
            b.add_shape_box(body, hx=0.1, hy=0.15, hz=0.1, cfg=cfg)
        elif kind == "mesh":
            box = newton.Mesh.create_box(0.1, 0.15, 0.1, duplicate_vertices=False)
            b.add_shape_mesh(body, mesh=box, cfg=cfg)
        else:
            b.add_shape_mesh(body, mesh=l_mesh(), cfg=cfg)
    model = b.finalize(requires_grad=True)
    model.mujoco.solref_mode.fill_(mode)
    return model


class Scene:
    """A state with its contacts, and a weighted sum of the state after some steps."""

    def __init__(self, kind, steps=1, mode=DEFAULT, **options):
        self.model, self.steps = build(kind, mode), steps
        self.options = OPTIONS | options
        self.rng = np.random.default_rng(4)
        self.start, self.control = self.model.state(), self.model.control()
        speeds = 0.03 * self.rng.normal(size=self.model.joint_dof_count)
        speeds[2] = -0.1  # the shapes press on the ground, so that no contact is near its threshold
        self.start.joint_qd.assign(speeds.astype(np.float32))
        newton.eval_fk(self.model, self.start.joint_q, self.start.joint_qd, self.start)
        pipeline = newton.CollisionPipeline(self.model)
        self.contacts = pipeline.contacts()
        pipeline.collide(self.start, self.contacts)
        self.weights = {
            name: self.rng.normal(size=getattr(self.start, name).shape).astype(np.float32)
            for name in ("joint_q", "joint_qd")
        }

    def level(self, joint_q, direction):
        """Return a direction without the lengths of quaternions, which have no effect."""
        direction = direction.copy()
        starts, kinds = self.model.joint_q_start.numpy(), self.model.joint_type.numpy()
        for first in starts[:-1][kinds == newton.JointType.FREE]:
            q = joint_q[first + 3 : first + 7].astype(float)
            direction[first + 3 : first + 7] -= q * (q @ direction[first + 3 : first + 7])
        return direction

    def run(self, solver, kinematics):
        """Return all states; the first one gets its poses by forward kinematics, if asked."""
        states = [self.start, *(self.model.state() for _ in range(self.steps))]
        if kinematics:
            newton.eval_fk(self.model, self.start.joint_q, self.start.joint_qd, self.start)
        for before, after in pairwise(states):
            solver.step(before, after, self.control, self.contacts, DT)
        return states

    def loss(self, solver, kinematics=False):
        """Return the weighted sum in double precision."""
        solver.mjw_data.qacc_warmstart.zero_()
        solver._invalidate_contact_fast_path()
        last = self.run(solver, kinematics)[-1]
        return sum(
            (getattr(last, n).numpy().astype(float) * w).sum() for n, w in self.weights.items()
        )

    def gradients(self, arrays, kinematics=False, **options):
        """Return the gradients of arrays by a tape."""
        for array in arrays:
            array.requires_grad = True
        solver = DifferentiableMuJoCo(self.model, **self.options, **options)
        with wp.Tape() as tape:
            last = self.run(solver, kinematics)[-1]
        tape.backward(grads={getattr(last, n): wp.array(w) for n, w in self.weights.items()})
        found = [array.grad.numpy().astype(float) for array in arrays]
        tape.zero()
        assert int(solver.mjw_data.nacon.numpy()[0]) > 0
        return found

    def check(self, name, array, found, direction, h, kinematics=False, fresh=False):
        """Compare the gradient with a difference along a direction."""
        base, plain = array.numpy().copy(), SolverMuJoCo(self.model, **self.options)

        def slope(step):
            values = []
            for sign in (1, -1):
                array.assign((base + sign * step * direction).astype(base.dtype))
                solver = SolverMuJoCo(self.model, **self.options) if fresh else plain
                values.append(self.loss(solver, kinematics))
            array.assign(base)
            return (values[0] - values[1]) / (2 * step)

        wanted, coarse = slope(h), slope(2 * h)
        scale = np.abs(found * direction).sum()
        print(f"{name}: {(found * direction).sum():.6f}, {wanted:.6f}, floor"
              f" {abs(wanted - coarse) / scale:.1e}, error"
              f" {abs((found * direction).sum() - wanted) / scale:.1e}")  # fmt: skip
        assert scale > 10 * ROUNDING / h
        floor = ELLIPTIC_FLOOR if self.options.get("cone") == "elliptic" else FLOOR
        assert abs((found * direction).sum() - wanted) < floor * scale + ROUNDING / h


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("kind", ["sphere", "box", "mesh", "not convex", "arm"])
def test_states(kind, cone):
    """Coordinates, velocities and poses are inputs of their own."""
    scene = Scene(kind, cone=cone)
    arrays = {name: getattr(scene.start, name) for name in ("joint_q", "joint_qd", "body_q")}
    found = scene.gradients(arrays.values(), parameters=())
    for (name, array), gradient in zip(arrays.items(), found, strict=True):
        direction = scene.rng.normal(size=gradient.shape)
        if name == "joint_q":
            direction = scene.level(array.numpy(), direction)
        scene.check(name, array, gradient, direction, 2e-5 if name == "body_q" else 5e-4)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("kind", ["sphere", "box", "mesh", "not convex", "arm"])
def test_double_precision(kind, cone):
    """Gradients of three steps against differences of the step in double precision."""
    scene = Scene(kind, steps=3, cone=cone)
    arrays = {name: getattr(scene.start, name) for name in ("joint_q", "joint_qd")}
    arrays |= {"joint_f": scene.control.joint_f}
    for array in arrays.values():
        array.requires_grad = True
    solver = DifferentiableMuJoCo(scene.model, **scene.options, parameters=())
    with wp.Tape() as tape:
        states = scene.run(solver, kinematics=True)
    tape.backward(grads={getattr(states[-1], n): wp.array(w) for n, w in scene.weights.items()})
    found = {name: array.grad.numpy().astype(float) for name, array in arrays.items()}

    oracle = GivenOracle(solver, scene.contacts)
    base = {**inputs_of(scene.start, scene.control), **arrays}
    base = {name: array.numpy().astype(float) for name, array in base.items()}
    visited, added = [coordinates(each) for each in states], []
    for before, after in pairwise(visited):
        made = oracle.given_step(*before, inputs_only(base), oracle.body_q(*before), DT)
        added.append([end - start for end, start in zip(after, made, strict=True)])

    def value(x):
        q, v = x["joint_q"], x["joint_qd"]
        for dq, dv in added:  # the states of the tape, which are rounded
            q, v = oracle.given_step(q, v, inputs_only(x), oracle.body_q(q, v), DT)
            q, v = q + dq, v + dv
        return scene.weights["joint_q"].astype(float) @ q + scene.weights["joint_qd"] @ v

    for name, gradient in found.items():
        direction = scene.rng.normal(size=gradient.shape)
        if name == "joint_q":
            direction = scene.level(base["joint_q"], direction)
        size = np.abs(gradient * direction).sum()
        h = 1e-6 if name == "joint_q" else 1e-5

        def central(step, name=name, direction=direction):
            ends = [value({**base, name: base[name] + s * step * direction}) for s in (1, -1)]
            return (ends[0] - ends[1]) / (2 * step)

        wanted = (4 * central(h / 2) - central(h)) / 3
        error = abs((gradient * direction).sum() - wanted) / size
        print(f"{kind}, {cone}, {name}: {wanted:.7f}, error {error:.1e}")
        assert error < 1e-6


def test_states_with_kinematics():
    """With eval_fk on the tape, the gradient of joint_q includes the motion of the contacts."""
    scene = Scene("arm", steps=3)
    array = scene.start.joint_q
    (alone,) = scene.gradients([array], parameters=())
    (found,) = scene.gradients([array], kinematics=True, parameters=())
    direction = scene.level(array.numpy(), scene.rng.normal(size=found.shape))
    scene.check("joint_q", array, found, direction, 2e-5, kinematics=True)
    assert np.abs(found - alone).max() > 1e-2 * np.abs(found).max()


@pytest.mark.parametrize("kind", ["sphere", "box", "arm"])
def test_contacts(kind):
    """Gradients reach the arrays of the contacts."""
    scene = Scene(kind)
    names = ("point0", "point1", "offset0", "offset1", "margin0", "margin1", "normal")
    arrays = [getattr(scene.contacts, f"rigid_contact_{name}") for name in names]
    used = int(scene.contacts.rigid_contact_count.numpy()[0])
    for name, array, found in zip(
        names, arrays, scene.gradients(arrays, parameters=()), strict=True
    ):
        direction = scene.rng.normal(size=found.shape)
        direction[used:] = 0
        if found.any():
            scene.check(name, array, found, direction, 1e-3 if name == "normal" else 2e-5)
        else:
            assert name.startswith("offset")  # of shapes without a radius


@pytest.mark.parametrize("mode", [FORCE_SPACE, DEFAULT])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_parameters(mode, cone):
    """Materials and masses, against a new solver per edit."""
    names = ["shape_material_mu", "shape_material_ke", "shape_material_kd", "body_mass",
             "body_inertia", "joint_armature"]  # fmt: skip
    scene = Scene("arm", mode=mode, cone=cone)
    scene.model.joint_armature.fill_(0.02)
    arrays = [getattr(scene.model, name) for name in names]
    for name, array, found in zip(
        names, arrays, scene.gradients(arrays, parameters=names), strict=True
    ):
        factor = scene.rng.uniform(0.5, 1, len(found))
        direction = array.numpy().astype(float) * factor.reshape(-1, *[1] * (found.ndim - 1))
        scene.check(name, array, found, direction, 1e-2, fresh=True)


@pytest.mark.parametrize("mode", [FORCE_SPACE, DEFAULT])
def test_frames(mode):
    """Frames and centers move bodies and dofs, but not the contacts, which follow body_q."""
    names = ["body_com", "joint_X_p", "joint_X_c"]
    scene = Scene("arm", mode=mode)
    arrays = [getattr(scene.model, name) for name in names]
    for name, array, found in zip(
        names, arrays, scene.gradients(arrays, parameters=names), strict=True
    ):
        direction = scene.rng.normal(size=found.shape)
        if name != "body_com":
            q = array.numpy()[:, 3:]
            direction[:, 3:] -= q * (q * direction[:, 3:]).sum(axis=1, keepdims=True)
        h = 1e-3 if name == "body_com" else 2e-4
        scene.check(name, array, found, direction, h, fresh=True)


def test_worlds():
    """Each world has the gradient that it has alone."""
    two = Scene("sphere")
    (other,) = two.gradients([two.start.joint_qd], parameters=())
    assert other.any()
    several = Scene("sphere")
    several.model = _replicated(3)
    state = several.model.state()
    q, speeds = two.start.joint_q.numpy(), two.start.joint_qd.numpy()
    state.joint_q.assign(np.tile(q, 3))
    state.joint_qd.assign(np.tile(speeds, 3))
    newton.eval_fk(several.model, state.joint_q, state.joint_qd, state)
    several.start, several.control = state, several.model.control()
    pipeline = newton.CollisionPipeline(several.model)
    several.contacts = pipeline.contacts()
    pipeline.collide(state, several.contacts)
    several.weights = {name: np.tile(w, 3) for name, w in two.weights.items()}
    (found,) = several.gradients([state.joint_qd], parameters=())
    for part in np.split(found, 3):
        np.testing.assert_allclose(part, other, rtol=0, atol=1e-5 * np.abs(other).max())


def _replicated(count):
    """Return worlds with a sphere each on a common ground."""
    one = newton.ModelBuilder()
    SolverMuJoCo.register_custom_attributes(one)
    cfg = newton.ModelBuilder.ShapeConfig(mu=0.5, ke=2000.0, kd=80.0)
    one.add_shape_sphere(one.add_body(), radius=0.1, cfg=cfg)
    every = newton.ModelBuilder()
    every.replicate(one, count)
    every.add_ground_plane(cfg=newton.ModelBuilder.ShapeConfig(mu=0.3, ke=3000.0, kd=90.0))
    model = every.finalize(requires_grad=True)
    model.mujoco.solref_mode.fill_(DEFAULT)
    return model


def test_no_contacts():
    """A shape in the air has the gradient of a free flight."""
    scene = Scene("sphere")
    scene.start.joint_q.assign(np.array([0, 0, 1, 0, 0, 0, 1], dtype=np.float32))
    newton.eval_fk(scene.model, scene.start.joint_q, scene.start.joint_qd, scene.start)
    pipeline = newton.CollisionPipeline(scene.model)
    pipeline.collide(scene.start, scene.contacts)
    solver = DifferentiableMuJoCo(scene.model, **scene.options)
    after = scene.model.state()
    with wp.Tape() as tape:
        solver.step(scene.start, after, scene.control, scene.contacts, DT)
    tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})
    np.testing.assert_allclose(scene.start.joint_qd.grad.numpy()[:3], 1, rtol=1e-6)
    assert not scene.start.body_q.grad.numpy().any()


def test_refusals():
    scene = Scene("sphere")
    solver = DifferentiableMuJoCo(scene.model, **scene.options)
    with pytest.raises(ArgumentError, match="needs contacts"), wp.Tape():
        solver.step(scene.start, scene.model.state(), scene.control, None, DT)
    with pytest.raises(UnsupportedFeatureError, match="linearize"):
        solver.linearize(scene.start, scene.control, DT)
    with pytest.raises(UnsupportedFeatureError, match="use_mujoco_cpu"):
        DifferentiableMuJoCo(scene.model, use_mujoco_contacts=False, use_mujoco_cpu=True)
    scene.options["integrator"] = "rk4"
    scene.start.body_f.requires_grad = False
    with pytest.raises(UnsupportedFeatureError, match="RK4"):
        scene.gradients([scene.start.joint_qd], parameters=())
