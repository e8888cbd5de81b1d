"""Small models, one per row of the table of `mujacobian.newton.references`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import mujoco
import newton
import numpy as np
import warp as wp

Dof = newton.ModelBuilder.JointDofConfig
Mode = newton.JointTargetMode
INERTIA = wp.mat33(0.02, 0.001, 0.0, 0.001, 0.03, 0.002, 0.0, 0.002, 0.025)
_DEPTH = 0.002  # of contacts [m]
_TILT = (0.12, -0.08, 0.05, 1.0)  # quaternion of bodies that touch the ground, not normalized


class Row(NamedTuple):
    """A model, options of its solver, and arrays of the model to differentiate."""

    build: Callable[[], newton.Model]
    options: dict[str, Any] = {}  # noqa: RUF012
    parameters: tuple[str, ...] = ("body_mass", "body_com", "body_inertia", "gravity")
    touches: bool = False  # whether the first body is lowered until it touches the ground


class Builder(newton.ModelBuilder):  # type: ignore[misc]
    """A builder of chains with turned anchors and shifted centers of mass."""

    def __init__(self) -> None:
        super().__init__()
        newton.solvers.SolverMuJoCo.register_custom_attributes(self)
        self._rng = np.random.default_rng(0)

    def frames(self) -> dict[str, wp.transform]:
        """Return two anchors."""
        return {"parent_xform": self._frame(), "child_xform": self._frame()}

    def body(self, **options: Any) -> int:  # noqa: ANN401
        """Add a body with a center of mass off its origin."""
        com = wp.vec3(*(0.1 * self._rng.normal(size=3)).tolist())
        body: int = self.add_link(mass=1.0, inertia=INERTIA, com=com, **options)
        return body

    def _frame(self) -> wp.transform:
        q = self._rng.normal(size=4)
        position = 0.2 * self._rng.normal(size=3)
        return wp.transform(wp.vec3(*position.tolist()), wp.quat(*(q / np.linalg.norm(q)).tolist()))


def chain(*kinds: str, **options: Any) -> newton.Model:  # noqa: ANN401
    """Return a chain of joints: free, ball, revolute, prismatic, d6, fixed or kinematic.

    options: of revolute and prismatic joints.
    """
    b, joints, parent = Builder(), [], -1
    for kind in kinds:
        child = b.body(is_kinematic=kind == "kinematic")
        ends = {"parent": parent, "child": child, **b.frames()}
        if kind in ("revolute", "kinematic"):
            own = options if kind == "revolute" else {}
            joints.append(b.add_joint_revolute(axis=(0, 1, 0), **ends, **own))
        elif kind == "prismatic":
            joints.append(b.add_joint_prismatic(axis=(1, 0, 0), **ends, **options))
        elif kind == "d6":
            turns = [Dof(axis=(1, 0, 0)), Dof(axis=(0, 1, 0))]
            ends |= {"linear_axes": [Dof(axis=(0, 0, 1))], "angular_axes": turns}
            joints.append(b.add_joint_d6(**ends))
        else:
            joints.append(getattr(b, f"add_joint_{kind}")(**ends))
        parent = child
    b.add_articulation(joints)
    return b.finalize(requires_grad=True)


def ball_servo() -> newton.Model:
    """Return a ball joint with targets of position and velocity."""
    b = Builder()
    first, second = b.body(), b.body()
    joints = [
        b.add_joint_revolute(-1, first, axis=(0, 1, 0), **b.frames()),
        b.add_joint_ball(first, second, actuator_mode=Mode.POSITION_VELOCITY, **b.frames()),
    ]
    b.add_articulation(joints)
    b.joint_target_ke[1:4], b.joint_target_kd[1:4] = [2.0] * 3, [0.3] * 3
    return b.finalize(requires_grad=True)


def loop(kind: str) -> newton.Model:
    """Return two pendulums whose ends are connected by a joint outside of the tree."""
    b = Builder()
    first, second = b.body(), b.body()
    joints = [
        b.add_joint_revolute(-1, first, axis=(0, 1, 0), **b.frames()),
        b.add_joint_ball(-1, second, **b.frames()),
    ]
    b.add_articulation(joints)
    ends = {"parent": first, "child": second, **b.frames()}
    axis = {"axis": (0, 0, 1)} if kind == "revolute" else {}
    getattr(b, f"add_joint_{kind}")(**ends, **axis)
    return b.finalize(requires_grad=True)


def mimic() -> newton.Model:
    """Return a hinge that follows another one."""
    b = Builder()
    first, second = b.body(), b.body()
    joints = [
        b.add_joint_revolute(-1, first, axis=(0, 1, 0), **b.frames()),
        b.add_joint_revolute(first, second, axis=(1, 0, 0), **b.frames()),
    ]
    b.add_articulation(joints)
    b.set_joint_mimic(joints[1], joints[0], coeffs=(0.1, 0.7))
    return b.finalize(requires_grad=True)


def resting(kind: str, on: str = "plane") -> newton.Model:
    """Return a free body of one shape above a plane, a box or a height field."""
    b = Builder()
    body = b.add_link(mass=1.0, inertia=INERTIA, com=wp.vec3(0.01, 0.02, 0.0))
    b.add_articulation([b.add_joint_free(parent=-1, child=body)])
    b.default_shape_cfg.density = 0.0
    sizes: dict[str, Any] = {
        "sphere": {"radius": 0.1},
        "capsule": {"radius": 0.08, "half_height": 0.1},
        "cylinder": {"radius": 0.08, "half_height": 0.1},
        "box": {"hx": 0.1, "hy": 0.08, "hz": 0.06},
        "ellipsoid": {"rx": 0.12, "ry": 0.1, "rz": 0.08},
    }
    if kind == "mesh":
        b.add_shape_mesh(body, mesh=newton.Mesh.create_box(0.1, 0.08, 0.06))
    else:
        getattr(b, f"add_shape_{kind}")(body, **sizes[kind])
    if on == "plane":
        b.add_ground_plane()
    elif on == "box":
        b.add_shape_box(-1, hx=1.0, hy=1.0, hz=0.5, xform=wp.transform(wp.vec3(0, 0, -0.5)))
    else:
        heights = (0.05 * np.random.default_rng(0).random((8, 8))).astype(np.float32)
        field = newton.Heightfield(data=heights, nrow=8, ncol=8, hx=1.0, hy=1.0)
        b.add_shape_heightfield(heightfield=field)
    model = b.finalize(requires_grad=True)
    # different friction, because two equal coefficients would share the gradient
    model.shape_material_mu.assign(np.linspace(0.6, 0.3, model.shape_count, dtype=np.float32))
    return model


ARM = """
<mujoco>
  <default><geom type="capsule" size="0.03" contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="anchor" pos="0 0.3 1"/>
    <body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0" damping="0.1" armature="0.01"/>
      <geom fromto="0.02 0 0 0 0 -0.4" mass="1"/>
      <body name="b" pos="0 0 -0.4"><joint name="jb" axis="1 0 0" frictionloss="0.2" stiffness="1"/>
        <geom fromto="0 0.03 0 0 0 -0.3" mass="0.7"/><site name="sb" pos="0 0.05 -0.3"/>
      </body>
    </body>
    <body name="d" pos="0 1 1"><joint name="jd" axis="0 1 0" damping="0.05"/>
      <geom fromto="0.1 0 0 0.1 0 -0.4" mass="1"/>
    </body>
  </worldbody>
  {}
</mujoco>
"""
PAIR = """
<mujoco>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="4 4 1"/>
    <body><freejoint/><geom name="brick" type="box" size="0.1 0.08 0.06" mass="1.3"/></body>
  </worldbody>
  <contact>
    <pair geom1="floor" geom2="brick" condim="6" friction="0.7 0.5 0.02 0.002 0.001"/>
  </contact>
</mujoco>
"""
ACTUATORS = """
<actuator>
  <motor joint="ja" gear="2"/>
  <general joint="jb" dyntype="filter" dynprm="0.05" gainprm="1.5" biastype="affine"
    biasprm="0 -0.5 -0.1"/>
  <general site="sb" gear="1 0.5 0 0 0 0" gainprm="0.6"/>
  <position joint="jd" kp="4" kv="0.5"/>
</actuator>
"""
TENDONS = """
<tendon>
  <fixed stiffness="3" damping="0.2" range="-0.1 0.1" limited="true">
    <joint joint="ja" coef="1"/><joint joint="jb" coef="-0.7"/>
  </fixed>
  <spatial stiffness="5" damping="0.3" springlength="0.2">
    <site site="anchor"/><site site="sb"/>
  </spatial>
</tendon>
"""
CONNECT = '<equality><connect body1="b" body2="d" anchor="0 0.4 -0.2"/></equality>'
WELD = '<equality><weld body1="b" body2="d" relpose="0 1.1 0.3 1 0.2 0 0"/></equality>'
COUPLING = '<equality><joint joint1="ja" joint2="jd" polycoef="0.1 0.8 0 0 0"/></equality>'


def parsed(xml: str, more: str = "") -> newton.Model:
    """Return a model from MJCF."""
    b = Builder()
    b.add_mjcf(xml.format(more))
    return b.finalize(requires_grad=True)


def _joints() -> Iterator[tuple[str, Row]]:
    frames = ("joint_X_p", "joint_X_c")
    base = Row.__new__.__defaults__[1] + frames  # type: ignore[index]
    for kinds in (
        ("free",), ("revolute", "ball"), ("revolute", "prismatic"), ("revolute", "d6"),
        ("fixed", "revolute", "fixed"), ("kinematic", "ball"), ("free", "revolute", "prismatic"),
    ):  # fmt: skip
        yield f"joints: {', '.join(kinds)}", Row(partial(chain, *kinds), {}, base)
    dofs = ("joint_armature", "joint_damping", "joint_friction")
    rough = {"armature": 0.05, "damping": 0.1, "friction": 0.3}
    yield (
        "armature, damping, dry friction",
        Row(partial(chain, "revolute", "prismatic", **rough), {}, dofs),
    )
    limits = ("body_mass", "body_com", "body_inertia", "joint_armature",
              *(f"joint_limit_{end}" for end in ("lower", "ke", "kd")))  # fmt: skip
    bounds = {"limit_lower": 0.6, "limit_upper": 1.0, "armature": 0.05}
    gains = {"limit_ke": 500.0, "limit_kd": 5.0}
    yield (
        "limits in force space",
        Row(partial(chain, "revolute", "prismatic", **bounds, **gains), {}, limits),
    )
    defaults = {"limit_ke": 0.0, "limit_kd": 0.0}
    yield (
        "limits with the default solref",
        Row(partial(chain, "revolute", "prismatic", **bounds, **defaults), {}, limits[:5]),
    )
    targets = ("joint_target_ke", "joint_target_kd")
    for mode in (Mode.POSITION, Mode.VELOCITY, Mode.POSITION_VELOCITY):
        drive = {"target_ke": 3.0, "target_kd": 0.2, "actuator_mode": mode}
        own = targets[1:] if mode == Mode.VELOCITY else targets
        yield (
            f"targets: {mode.name}",
            Row(partial(chain, "revolute", "prismatic", **drive), {}, own),
        )
    yield "targets of a ball joint", Row(ball_servo, {}, targets)
    weak = {"target_ke": 30.0, "target_kd": 0.2, "effort_limit": 0.2,
            "actuator_mode": Mode.POSITION}  # fmt: skip
    yield (
        "effort limit",
        Row(partial(chain, "revolute", "prismatic", **weak), {}, ("joint_effort_limit",)),
    )


def _constraints() -> Iterator[tuple[str, Row]]:
    masses = ("body_mass", "body_inertia", "joint_armature")
    rows = ("mujoco.eq_solref", "mujoco.eq_solimp")
    anchor = "mujoco.equality_constraint_anchor"
    yield "connect", Row(partial(parsed, ARM, CONNECT), {}, (*masses, *rows, anchor))
    yield "weld", Row(partial(parsed, ARM, WELD), {}, (*masses, *rows, anchor))
    polynomial = "mujoco.equality_constraint_polycoef"
    yield "joint equality", Row(partial(parsed, ARM, COUPLING), {}, (*masses, *rows, polynomial))
    yield "mimic", Row(mimic, {}, ("body_mass", "joint_mimic_coeffs"))
    for kind in ("revolute", "ball", "fixed"):
        yield f"loop: {kind}", Row(partial(loop, kind), {}, ("body_mass",))
    tendons = tuple(f"mujoco.tendon_{name}" for name in ("stiffness", "damping"))
    yield "tendons", Row(partial(parsed, ARM, TENDONS), {}, tendons)
    gains = ("mujoco.actuator_gainprm", "mujoco.actuator_biasprm")
    yield "general actuators", Row(partial(parsed, ARM, ACTUATORS), {}, gains)


def _contacts() -> Iterator[tuple[str, Row]]:
    names = ("body_mass", "body_com", "body_inertia",
             *(f"shape_material_{name}" for name in ("mu", "ke", "kd")))  # fmt: skip
    exact = {"ccd_tolerance": 1e-14, "ccd_iterations": 500}
    for kind in ("sphere", "capsule", "cylinder", "box", "ellipsoid", "mesh"):
        yield (
            f"contact: {kind} on plane",
            Row(partial(resting, kind), exact, (*names, "shape_transform"), True),
        )
    for kind, on in (("sphere", "box"), ("capsule", "box"), ("box", "box"),
                     ("sphere", "height field")):  # fmt: skip
        yield (
            f"contact: {kind} on {on}",
            Row(partial(resting, kind, on), exact, names, True),
        )
    for option in ({"cone": "elliptic", "impratio": 5.0}, {"integrator": "euler"},
                   {"integrator": "implicit"}, {"integrator": "rk4"},
                   {"enable_multiccd": True}):  # fmt: skip
        title = ", ".join(f"{key} {value}" for key, value in option.items())
        fewer = ("body_mass", "body_inertia")
        yield f"contact: box on plane, {title}", Row(partial(resting, "box"), option, fewer, True)
    pairs = tuple(f"mujoco.pair_{name}" for name in ("friction", "solref", "solimp"))
    yield "contact pair, condim 6", Row(partial(parsed, PAIR), {"cone": "elliptic"}, pairs, True)
    yield (
        "density, viscosity",
        Row(partial(chain, "free", "revolute"), {"density": 1.2, "viscosity": 0.1}, ("gravity",)),
    )


ROWS: dict[str, Row] = dict([*_joints(), *_constraints(), *_contacts()])


def random_state(model: newton.Model, seed: int = 1) -> tuple[newton.State, newton.Control]:
    """Return a random state and random inputs."""
    rng = np.random.default_rng(seed)
    state, control = model.state(), model.control()
    q = model.joint_q.numpy() + 0.3 * rng.normal(size=model.joint_coord_count)
    for start, kind in zip(model.joint_q_start.numpy(), model.joint_type.numpy(), strict=False):
        first = int(start) + 3 * int(kind == newton.JointType.FREE)
        if kind in (newton.JointType.FREE, newton.JointType.BALL):
            q[first : first + 4] /= np.linalg.norm(q[first : first + 4])
    state.joint_q.assign(q.astype(np.float32))
    direct = getattr(getattr(control, "mujoco", None), "ctrl", None)
    for array in (state.joint_qd, state.body_f, control.joint_f, control.joint_target_q,
                  control.joint_target_qd, direct):  # fmt: skip
        if array is not None:
            values = array.numpy()
            array.assign((values + 0.3 * rng.normal(size=values.shape)).astype(np.float32))
    return state, control


def lower(model: newton.Model, mj: mujoco.MjModel, state: newton.State) -> None:
    """Lower the first body, tilted, until it penetrates the ground."""
    turned = np.array(_TILT) / np.linalg.norm(_TILT)
    data = mujoco.MjData(mj)
    for height in np.arange(0.5, -0.2, -0.0005):
        data.qpos[:3], data.qpos[3:7] = (0.03, 0.02, height), np.roll(turned, 1)
        mujoco.mj_forward(mj, data)
        if any(contact.dist < -_DEPTH for contact in data.contact):
            break
    q = state.joint_q.numpy()
    q[:3], q[3:7] = data.qpos[:3], turned
    state.joint_q.assign(q)
    state.joint_qd.assign((0.1 * state.joint_qd.numpy()).astype(np.float32))
