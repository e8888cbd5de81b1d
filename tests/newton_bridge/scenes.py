"""Newton models that have every kind of joint, contact, constraint and actuator."""

import newton
import numpy as np
import warp as wp

wp.config.quiet = True
DOF = newton.ModelBuilder.JointDofConfig
INERTIA = wp.mat33(0.02, 0.001, 0.0, 0.001, 0.03, 0.002, 0.0, 0.002, 0.025)


class Builder(newton.ModelBuilder):
    """A builder with random frames."""

    def __init__(self, seed=0, **options):
        super().__init__(**options)
        newton.solvers.SolverMuJoCo.register_custom_attributes(self)
        self.rng = np.random.default_rng(seed)

    def quat(self):
        q = self.rng.normal(size=4)
        return wp.quat(*(q / np.linalg.norm(q)).tolist())

    def vec(self, scale):
        return wp.vec3(*(scale * self.rng.normal(size=3)).tolist())

    def frames(self, scale=0.2):
        return {
            "parent_xform": wp.transform(self.vec(scale), self.quat()),
            "child_xform": wp.transform(self.vec(scale), self.quat()),
        }

    def body(self, label, com=0.1, **options):
        return self.add_link(mass=1.0, inertia=INERTIA, com=self.vec(com), label=label, **options)


def add_tree(b):
    """Return a free base with a hinge, a slide, a ball and a D6 joint, with random frames."""
    base, arm, slider, ball, six = (
        b.body(name) for name in ("base", "arm", "slider", "ball", "six")
    )
    drive = {"target_ke": 3.0, "target_kd": 0.2}
    position = newton.JointTargetMode.POSITION
    both = newton.JointTargetMode.POSITION_VELOCITY
    b.add_articulation(
        [
            b.add_joint_free(parent=-1, child=base, label="free", **b.frames()),
            b.add_joint_revolute(
                base, arm, axis=(0, 1, 0), label="hinge", actuator_mode=position, damping=0.1,
                armature=0.01, **drive, **b.frames(),
            ),
            b.add_joint_prismatic(
                arm, slider, axis=(1, 0, 0), label="slide", actuator_mode=both, **drive,
                **b.frames(),
            ),
            b.add_joint_ball(arm, ball, label="ball", **b.frames()),
            b.add_joint_d6(
                ball,
                six,
                linear_axes=[DOF(axis=(1, 0, 0))],
                angular_axes=[
                    DOF(axis=a, target_ke=1.0, target_kd=0.1, actuator_mode=both)
                    for a in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
                ],
                label="six",
                **b.frames(),
            ),
        ]
    )  # fmt: skip


def tree(seed=0, **finalize):
    b = Builder(seed)
    add_tree(b)
    return b.finalize(requires_grad=True, **finalize)


def random_state(model, seed=1, scale=0.3):
    """Return a random state and control, with normalized quaternions."""
    rng = np.random.default_rng(seed)
    state, control = model.state(), model.control()
    q = state.joint_q.numpy() + scale * rng.normal(size=model.joint_coord_count)
    starts, kinds = model.joint_q_start.numpy(), model.joint_type.numpy()
    for start, kind in zip(starts, kinds, strict=False):
        if kind in (newton.JointType.FREE, newton.JointType.BALL):
            first = start + (3 if kind == newton.JointType.FREE else 0)
            q[first : first + 4] /= np.linalg.norm(q[first : first + 4])
    state.joint_q.assign(q.astype(np.float32))
    state.joint_qd.assign(rng.normal(size=model.joint_dof_count).astype(np.float32))
    state.body_f.assign(rng.normal(size=(model.body_count, 6)).astype(np.float32))
    control.joint_f.assign(rng.normal(size=model.joint_dof_count).astype(np.float32))
    for name in ("joint_target_q", "joint_target_qd"):
        array = getattr(control, name)
        values = array.numpy() + 0.3 * rng.normal(size=array.shape)
        array.assign(values.astype(np.float32))
    direct = getattr(getattr(control, "mujoco", None), "ctrl", None)
    if direct is not None:
        direct.assign(rng.normal(size=direct.shape).astype(np.float32))
    return state, control


def ball_targets(mode):
    """Return a hinge, a ball joint with targets, and a hinge."""
    b = Builder(3)
    first, second, third = (b.body(name) for name in ("first", "second", "third"))
    b.add_articulation(
        [
            b.add_joint_revolute(-1, first, axis=(0, 1, 0), label="one", **b.frames()),
            b.add_joint_ball(first, second, label="ball", actuator_mode=mode, **b.frames()),
            b.add_joint_revolute(second, third, axis=(1, 0, 0), label="two", **b.frames()),
        ]
    )
    ball = slice(1, 4)
    b.joint_target_ke[ball], b.joint_target_kd[ball] = [2.0] * 3, [0.3] * 3
    return b.finalize(requires_grad=True)


def limits(lower, upper, **options):
    """Return a chain of limited joints: hinge, slide and a D6 joint with two rotations."""
    b = Builder(4)
    a, c, d = (b.body(name) for name in ("a", "c", "d"))
    bounds = {"limit_lower": lower, "limit_upper": upper, "limit_ke": 500.0, "limit_kd": 5.0}
    b.add_articulation(
        [
            b.add_joint_revolute(-1, a, axis=(0, 1, 0), **bounds, **options, **b.frames()),
            b.add_joint_prismatic(a, c, axis=(1, 0, 0), **bounds, **options, **b.frames()),
            b.add_joint_d6(
                c,
                d,
                angular_axes=[DOF(axis=x, **bounds) for x in ((1, 0, 0), (0, 1, 0))],
                **b.frames(),
            ),
        ]
    )
    return b.finalize(requires_grad=True)


def add_shape(b, kind, body):
    """Return a shape of this kind, with a size of about 0.1."""
    if kind == "sphere":
        b.add_shape_sphere(body, radius=0.1)
    elif kind == "capsule":
        b.add_shape_capsule(body, radius=0.08, half_height=0.1)
    elif kind == "cylinder":
        b.add_shape_cylinder(body, radius=0.08, half_height=0.1)
    elif kind == "box":
        b.add_shape_box(body, hx=0.1, hy=0.08, hz=0.06)
    elif kind == "ellipsoid":
        b.add_shape_ellipsoid(body, rx=0.12, ry=0.1, rz=0.08)
    elif kind == "cone":
        b.add_shape_cone(body, radius=0.1, half_height=0.1)
    elif kind == "mesh":
        b.add_shape_mesh(body, mesh=octahedron())
    else:
        raise ValueError(kind)


def octahedron():
    points = 0.1 * np.array(
        [[1, 0, 0], [-1, 0, 0], [0, 1.1, 0], [0, -1, 0], [0, 0, 1.2], [0, 0, -1]]
    )
    faces = [
        [0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5],
    ]  # fmt: skip
    return newton.Mesh(points.astype(np.float32), np.array(faces, dtype=np.int32).ravel())


def resting(kind, ground="plane"):
    """Return a free body of this shape, tilted, that touches the ground."""
    b = Builder(5)
    body = b.add_link(mass=1.0, inertia=INERTIA, com=wp.vec3(0.01, 0.02, 0.0), label="body")
    b.add_articulation([b.add_joint_free(parent=-1, child=body, label="free")])
    b.default_shape_cfg.density = 0.0
    add_shape(b, kind, body)
    if ground == "plane":
        b.add_ground_plane()
    elif ground == "box":
        b.add_shape_box(-1, hx=1.0, hy=1.0, hz=0.5, xform=wp.transform(wp.vec3(0, 0, -0.5)))
    else:
        rng = np.random.default_rng(0)
        field = newton.Heightfield(
            data=(0.05 * rng.random((8, 8))).astype(np.float32), nrow=8, ncol=8, hx=1.0, hy=1.0
        )
        b.add_shape_heightfield(heightfield=field)
    return b.finalize(requires_grad=True)


def rough(model, torsional=0.02, rolling=0.003):
    """Add torsional and rolling friction; the ground, the last shape, has less."""
    model.mujoco.condim.fill_(6)
    less = np.where(np.arange(model.shape_count) < model.shape_count - 1, 1.0, 0.5)
    model.shape_material_mu_torsional.assign((torsional * less).astype(np.float32))
    model.shape_material_mu_rolling.assign((rolling * less).astype(np.float32))
    return model


def touching(model, solver, depth=0.002, seed=2, turn=0.2):
    """Return a state in which the free body of `resting` moves and penetrates the ground."""
    rng = np.random.default_rng(seed)
    state, control = random_state(model, seed, scale=0.0)
    q = np.zeros(7, dtype=np.float32)
    vector = turn * rng.normal(size=3)
    q[3:] = np.append(vector, 1) / np.linalg.norm(np.append(vector, 1))
    # lower it until it touches
    import mujoco

    data = mujoco.MjData(solver.mj_model)
    for height in np.arange(0.5, -0.2, -0.0005):
        data.qpos[:3], data.qpos[3:] = (0.03, 0.02, height), np.roll(q[3:], 1)
        mujoco.mj_kinematics(solver.mj_model, data)
        mujoco.mj_comPos(solver.mj_model, data)
        mujoco.mj_collision(solver.mj_model, data)
        if any(contact.dist < -depth for contact in data.contact):
            break
    q[:3] = data.qpos[:3]
    state.joint_q.assign(q)
    state.joint_qd.assign((0.1 * rng.normal(size=6) - [0, 0, 0.1, 0, 0, 0]).astype(np.float32))
    state.body_f.assign(0.1 * state.body_f.numpy())
    control.joint_f.assign(0.1 * control.joint_f.numpy())
    return state, control


MACHINE = """
<mujoco>
  <worldbody>
    <site name="anchor" pos="0 0.3 1"/>
    <body name="a" pos="0 0 1">
      <joint name="ja" axis="0 1 0" damping="0.1" armature="0.01" ref="0.2"/>
      <inertial pos="0.02 0 -0.2" mass="1" diaginertia="0.02 0.03 0.025"/>
      <site name="sa" pos="0.05 0 -0.2"/>
      <body name="b" pos="0 0 -0.4">
        <joint name="jb" axis="1 0 0" frictionloss="0.2" stiffness="1" springref="0.1"/>
        <inertial pos="0 0.03 -0.2" mass="0.7" diaginertia="0.01 0.02 0.015"/>
        <site name="sb" pos="0 0.05 -0.3"/>
        <body name="c" pos="0 0 -0.4">
          <joint name="jc" type="slide" axis="0 0 1" range="-0.1 0.1" limited="true"/>
          <inertial pos="0 0 -0.1" mass="0.4" diaginertia="0.01 0.01 0.015"/>
          <site name="sc" pos="0 0 -0.1"/>
        </body>
      </body>
    </body>
    <body name="d" pos="0 1 1">
      <joint name="jd" axis="0 1 0" damping="0.05"/>
      <inertial pos="0.1 0 -0.2" mass="1" diaginertia="0.02 0.03 0.025"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="fixed" stiffness="3" damping="0.2">
      <joint joint="ja" coef="1"/><joint joint="jb" coef="-0.7"/>
    </fixed>
    <spatial name="spatial" stiffness="5" damping="0.3" springlength="0.2">
      <site site="anchor"/><site site="sb"/>
    </spatial>
  </tendon>
  <actuator>
    <motor name="m" joint="ja" gear="2"/>
    <general name="filtered" joint="jb" dyntype="filter" dynprm="0.05" gainprm="1.5"
      biastype="affine" biasprm="0 -0.5 -0.1"/>
    <general name="integrated" tendon="fixed" dyntype="integrator" gainprm="0.8"/>
    <general name="site" site="sc" gear="1 0.5 0 0 0 0" gainprm="0.6"/>
    <position name="servo" joint="jc" kp="4" kv="0.5"/>
  </actuator>
  EXTRA
</mujoco>
"""


def machine(extra=""):
    """Return tendons, activations, transmissions to sites and tendons, dry friction, references."""
    b = Builder(6)
    b.add_mjcf(MACHINE.replace("EXTRA", extra))
    return b.finalize(requires_grad=True)


def dry_machine():
    """Return the machine with dry friction of a tendon."""
    b = Builder(6)
    dry = MACHINE.replace("EXTRA", "").replace('damping="0.2"', 'damping="0.2" frictionloss="0.1"')
    b.add_mjcf(dry)
    return b.finalize(requires_grad=True)


TRANSMISSIONS = {
    "jointinparent": '<general jointinparent="ja" gainprm="0.7"/>',
    "slidercrank": """<general cranksite="sc" slidersite="anchor" cranklength="1.2"
      gainprm="0.7"/>""",
}


def driven(kind):
    """Return the machine with one more actuator."""
    b = Builder(6)
    actuators = TRANSMISSIONS[kind] + "</actuator>"
    b.add_mjcf(MACHINE.replace("EXTRA", "").replace("</actuator>", actuators))
    return b.finalize(requires_grad=True)


PAIR = """
<mujoco>
  <worldbody>
    <geom name="ground" type="plane" size="5 5 0.1" contype="0" conaffinity="0"/>
    <body name="body">
      <freejoint/>
      <inertial pos="0.01 0.02 0" mass="1" diaginertia="0.02 0.03 0.025"/>
      <geom name="box" type="box" size="0.1 0.08 0.06" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <contact>
    <pair geom1="ground" geom2="box" condim="6" friction="0.7 0.5 0.02 0.002 0.001"
      solref="0.03 1.1"/>
  </contact>
  EXTRA
</mujoco>
"""
ADHESION = '<actuator><general body="body" gainprm="3"/></actuator>'


def pair(extra=""):
    """Return a box that touches the ground only through an explicit pair, with its own friction."""
    b = Builder(12)
    b.add_mjcf(PAIR.replace("EXTRA", extra))
    return b.finalize(requires_grad=True)


def crowd(count, worlds=1):
    """Return two bodies of many spheres each, all of which touch all spheres of the other."""
    b, every = Builder(13), Builder(13)
    b.default_shape_cfg.density = 0.0
    for x in (0.0, 0.15):
        body = b.add_link(mass=1.0, inertia=INERTIA)
        b.add_articulation([b.add_joint_free(parent=-1, child=body)])
        for _ in range(count):
            b.add_shape_sphere(body, radius=0.1)
        b.joint_q[-7:-4] = [x, 0.0, 0.0]
    for _ in range(worlds):
        every.add_world(b)
    return every.finalize(requires_grad=True)


EQUALITIES = {
    "connect": '<equality><connect body1="b" body2="d" anchor="0 0.4 -0.2"/></equality>',
    "weld": '<equality><weld body1="b" body2="d"/></equality>',
    "joint": '<equality><joint joint1="ja" joint2="jd" polycoef="0.1 0.8 0.2 0 0"/></equality>',
}


def loop(kind):
    """Return two pendulums whose ends are connected by a joint outside the tree."""
    b = Builder(7)
    a, c = b.body("a"), b.body("c")
    joints = [
        b.add_joint_revolute(-1, a, axis=(0, 1, 0), label="ja", **b.frames()),
        b.add_joint_ball(-1, c, label="jc", **b.frames()),
    ]
    b.add_articulation(joints)
    options = {"parent": a, "child": c, "label": "loop", **b.frames()}
    if kind == "revolute":
        b.add_joint_revolute(axis=(0, 0, 1), **options)
    elif kind == "ball":
        b.add_joint_ball(**options)
    elif kind == "prismatic":
        b.add_joint_prismatic(axis=(0, 0, 1), **options)
    else:
        b.add_joint_fixed(**options)
    return b.finalize(requires_grad=True)


def mimic(joint=True):
    """Return a hinge that follows another one, by a property of the joint or by a constraint."""
    b = Builder(8)
    add_mimic(b, joint)
    return b.finalize(requires_grad=True)


def add_mimic(b, joint=True):
    """Add the two hinges."""
    a, c = b.body("a"), b.body("c")
    joints = [
        b.add_joint_revolute(-1, a, axis=(0, 1, 0), label="leader", **b.frames()),
        b.add_joint_revolute(a, c, axis=(1, 0, 0), label="follower", **b.frames()),
    ]
    b.add_articulation(joints)
    if joint:
        b.set_joint_mimic(joints[1], joints[0], coeffs=(0.1, 0.7))
    else:
        b.add_constraint_mimic(joints[1], joints[0], coef0=0.1, coef1=0.7)


def roots():
    """Return a kinematic root with a child, a fixed root with a child, and a nested fixed body."""
    b = Builder(9)
    moved, child, fixed, swing, glued = (
        b.body("moved", is_kinematic=True),
        *(b.body(name) for name in ("child", "fixed", "swing", "glued")),
    )
    b.add_articulation(
        [
            b.add_joint_revolute(-1, moved, axis=(0, 0, 1), label="prescribed", **b.frames()),
            b.add_joint_ball(moved, child, label="child", **b.frames()),
        ]
    )
    b.add_articulation(
        [
            b.add_joint_fixed(-1, fixed, label="fixed", **b.frames()),
            b.add_joint_revolute(fixed, swing, axis=(0, 1, 0), label="swing", **b.frames()),
            b.add_joint_fixed(swing, glued, label="glue", **b.frames()),
        ]
    )
    return b.finalize(requires_grad=True)


def locked_root():
    """Return a root whose D6 joint has no axis, and a child."""
    b = Builder(11)
    root, swing = b.body("root"), b.body("swing")
    b.add_articulation(
        [
            b.add_joint_d6(-1, root, label="locked", **b.frames()),
            b.add_joint_revolute(root, swing, axis=(0, 1, 0), label="swing", **b.frames()),
        ]
    )
    return b.finalize(requires_grad=True)


def out_of_order():
    """Return joints that are not in the order of the tree."""
    b = Builder(10)
    base, left, right, tip = (b.body(name) for name in ("base", "left", "right", "tip"))
    b.add_articulation(
        [
            b.add_joint_revolute(-1, base, axis=(0, 1, 0), label="root", **b.frames()),
            b.add_joint_revolute(base, left, axis=(1, 0, 0), label="left", **b.frames()),
            b.add_joint_revolute(base, right, axis=(1, 0, 0), label="right", **b.frames()),
            b.add_joint_ball(left, tip, label="tip", **b.frames()),
        ]
    )
    return b.finalize(requires_grad=True)
