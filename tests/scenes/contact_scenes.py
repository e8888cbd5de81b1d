"""Scenes of two touching geoms, and states in which they stick, slip, separate, roll and spin.

The first geom is on a body with a slide and a ball joint, and the second is on a free body, so that
both move in every way. Planes must be static; they are on a mocap body, which tilts them. Poses are
random within a region of the collider. Then the free body is moved along the normal until the
deepest contact has the required depth.
"""

from dataclasses import dataclass

import mujoco
import numpy as np

DEPTH = 4e-4  # m: within the range of 1e-3 m over which the default impedance varies
TILT = 8e-4  # rad: tilt of a geom that lies flat, so small that all its corners touch

SIZES = {
    "plane": "1 1 1",
    "sphere": ".1",
    "capsule": ".06 .15",
    "cylinder": ".12 .1",
    "ellipsoid": ".1 .15 .07",
    "box": ".12 .15 .1",
}
# the faces of the prism across its axis are flat in single precision, so manifolds are exact
MESH = """<asset><mesh name="mesh" vertex="-.1 -.1 -.1 .12 -.1 -.1 -.1 .13 -.1 .11 .1 -.1
  0 0 .12 .1 .02 .1 -.05 .08 .09"/>
  <mesh name="prism" vertex="0.120 0.000 -0.08 0.120 0.000 0.08 0.037 0.095 -0.08 0.037 0.095 0.08
  -0.097 0.059 -0.08 -0.097 0.059 0.08 -0.097 -0.059 -0.08
  -0.097 -0.059 0.08 0.037 -0.095 -0.08 0.037 -0.095 0.08"/></asset>"""

MESHES = {"mesh", "prism"}

# a rough height field; its steepest sides rise by 60 degrees
ROWS, COLUMNS = 9, 11
_HEIGHTS = np.random.default_rng(0).random((ROWS, COLUMNS))
FIELD = f"""<asset><hfield name="field" nrow="{ROWS}" ncol="{COLUMNS}" size=".5 .4 .06 .1"
  elevation="{" ".join(f"{height:.3f}" for height in _HEIGHTS.ravel())}"/></asset>"""

JOINTS = """<joint name="lift" type="slide" axis=".2 .1 1" stiffness="50" damping="2"/>
  <joint name="tilt" type="ball" damping=".5"/>
  <inertial pos=".05 -.02 .03" mass="3" fullinertia=".2 .3 .25 .02 -.01 .03"/>"""

UP = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Pair:
    """Two geom types, and the pose of the second in the frame of the first.

    toward: direction of its center.
    axis: direction of its z axis, or None for a random one.
    """

    first: str
    second: str
    toward: tuple[float, float, float]
    axis: tuple[float, float, float] | None = None

    @property
    def contacts(self) -> int:
        """Return the minimum number of contacts."""
        if self.first != "plane" or self.axis is None:
            return 1
        if self.axis == UP:
            return {"box": 4, "mesh": 3, "cylinder": 3}.get(self.second, 1)
        return 2


PAIRS = {
    "plane-sphere": Pair("plane", "sphere", UP),
    "plane-capsule end": Pair("plane", "capsule", UP),
    "plane-capsule lying": Pair("plane", "capsule", UP, (0.8, 0.6, 0.0)),
    "plane-capsule upright": Pair("plane", "capsule", UP, UP),
    "plane-box corner": Pair("plane", "box", UP),
    "plane-box flat": Pair("plane", "box", UP, UP),
    "plane-mesh corner": Pair("plane", "mesh", UP),
    "plane-mesh flat": Pair("plane", "mesh", UP, UP),
    "plane-cylinder rim": Pair("plane", "cylinder", UP),
    "plane-cylinder lying": Pair("plane", "cylinder", UP, (0.8, 0.6, 0.0)),
    "plane-cylinder standing": Pair("plane", "cylinder", UP, UP),
    "plane-ellipsoid": Pair("plane", "ellipsoid", UP),
    "sphere-sphere": Pair("sphere", "sphere", (0.3, 0.5, 0.8)),
    "sphere-capsule side": Pair("capsule", "sphere", (0.8, 0.6, 0.1)),
    "sphere-capsule end": Pair("capsule", "sphere", (0.2, 0.1, 1.0)),
    "sphere-cylinder side": Pair("cylinder", "sphere", (0.8, 0.6, 0.1)),
    "sphere-cylinder cap": Pair("cylinder", "sphere", (0.1, 0.2, 1.0)),
    "sphere-cylinder rim": Pair("cylinder", "sphere", (0.6, 0.5, 0.78)),
    "sphere-box face": Pair("box", "sphere", (0.1, 0.2, 1.0)),
    "sphere-box edge": Pair("box", "sphere", (0.1, 1.0, 0.8)),
    "sphere-box vertex": Pair("box", "sphere", (0.8, 1.0, 0.7)),
    "capsule-capsule crossed": Pair("capsule", "capsule", (0.7, 0.7, 0.2), (0.7, -0.5, 0.4)),
    "capsule-capsule end": Pair("capsule", "capsule", (0.6, 0.8, 0.3), (0.6, 0.7, 0.4)),
    "capsule-capsule ends": Pair("capsule", "capsule", (0.2, 0.3, 1.0), (0.3, 0.2, 0.9)),
    "capsule-box vertex": Pair("box", "capsule", (0.8, 1.0, 0.7), (0.7, -0.8, 0.2)),
    "capsule-box face": Pair("box", "capsule", (0.1, 0.2, 1.0), (0.2, 0.3, 0.9)),
    "capsule-box edge": Pair("box", "capsule", (0.1, 1.0, 0.8), (0.5, -0.5, 0.6)),
    "box-box vertex": Pair("box", "box", (0.1, 0.2, 1.0)),
    "box-box flat": Pair("box", "box", (0.2, 0.3, 1.0), UP),
    "box-mesh vertex": Pair("box", "mesh", (0.1, 0.2, 1.0)),
    "box-mesh flat": Pair("box", "prism", (0.1, 0.2, 1.0), UP),
    "mesh-mesh flat": Pair("prism", "prism", (0.1, 0.2, 1.0), UP),
    "mesh-mesh": Pair("mesh", "mesh", (0.3, 0.5, 0.8)),
    "sphere-mesh": Pair("mesh", "sphere", (0.3, 0.5, 0.8)),
    "capsule-mesh end": Pair("mesh", "capsule", (0.3, 0.5, 0.8), (0.3, 0.6, 0.7)),
}
# by condim: without friction all states are alike, and without a torsional row nothing resists spin
STATES = {
    1: ("sticking", "slipping", "separating", "rolling"),
    3: ("sticking", "slipping", "separating", "rolling", "mixed"),
    4: ("sticking", "slipping", "separating", "rolling", "spinning", "mixed"),
    6: ("sticking", "slipping", "separating", "rolling", "spinning", "mixed"),
}


FREE = '<freejoint name="top"/>'


def scene(
    pair: Pair,
    cone: str,
    condim: int,
    *,
    option: str = "",
    geom: str = "",
    joints: str = JOINTS,
    free: str = FREE,
) -> str:
    """Return the MJCF of a pair; the first geom's body is tilted out of all symmetry planes."""
    first, second = (_geom(kind, condim, geom) for kind in (pair.first, pair.second))
    fixed = pair.first == "plane"
    return f"""
    <mujoco>
      <compiler angle="radian"/>
      <option timestep=".004" cone="{cone}" {option}/>
      {MESH if {pair.first, pair.second} & MESHES else ""}
      {FIELD if pair.first == "field" else ""}
      <worldbody>
        <body name="base" pos=".1 .2 .3" {'mocap="true"' if fixed else ""}>
          {"" if fixed else joints}
          <geom name="first" {first}/>
        </body>
        <body name="top">
          {free}
          <inertial pos=".01 .02 -.01" mass=".8" fullinertia=".01 .013 .008 .001 -.002 .0005"/>
          <geom name="second" {second}/>
        </body>
      </worldbody>
      <actuator><general joint="top" gear="3 1 0 .1 0 .2"/></actuator>
    </mujoco>"""


def pose(model: mujoco.MjModel, pair: Pair, rng: np.random.Generator) -> mujoco.MjData:
    """Return a state in which the deepest contact of the pair is `DEPTH` deep."""
    data = mujoco.MjData(model)
    turn = rng.normal(size=3) * 0.4
    tilt = data.mocap_quat[0] if model.nmocap else data.joint("tilt").qpos
    mujoco.mju_axisAngle2Quat(tilt, turn / np.linalg.norm(turn), np.linalg.norm(turn))
    mujoco.mj_kinematics(model, data)
    R = data.geom("first").xmat.reshape(3, 3)
    if pair.axis is None:
        quat = rng.normal(size=4)
    else:
        quat = _turn_to(R @ (pair.axis / np.linalg.norm(pair.axis)), rng)
    data.qpos[-4:] = quat / np.linalg.norm(quat)
    toward = R @ (np.array(pair.toward) / np.linalg.norm(pair.toward))
    data.qpos[-7:-4] = data.geom("first").xpos + 0.4 * toward
    _touch(model, data)
    return data


def set_motion(
    model: mujoco.MjModel, data: mujoco.MjData, state: str, rng: np.random.Generator
) -> None:
    """Give the two bodies the relative motion of this state."""
    mujoco.mj_forward(model, data)
    contact = data.contact[0]
    normal, tangent = contact.frame[:3], contact.frame[3:6]
    arm = contact.pos - data.body("top").xpos
    linear, angular = np.zeros(3), np.zeros(3)
    press = 0.0
    data.qvel[:] = 0.0
    if state == "sticking":
        press = 30.0
        data.qvel[:] = rng.normal(size=model.nv) * 1e-3
    elif state == "slipping":
        press = 10.0
        linear = 3.0 * tangent + 2.0 * np.cross(normal, tangent)
    elif state == "separating":
        linear = 2.0 * _outward(data) + 0.3 * tangent
    elif state == "rolling":
        press = 20.0
        angular = 3.0 * tangent + 0.5 * np.cross(normal, tangent)
        linear = -np.cross(angular, arm)
    elif state == "spinning":
        press = 20.0
        angular = 5.0 * normal + 0.3 * tangent
        linear = -np.cross(angular, arm)
    else:
        press = 10.0
        data.qvel[:] = rng.normal(size=model.nv)
    data.qvel[-6:-3] += linear
    data.qvel[-3:] += data.body("top").xmat.reshape(3, 3).T @ angular
    press_together(data, press)
    data.ctrl[:] = 0.3


def press_together(data: mujoco.MjData, press: float) -> None:
    """Press the second body through the first contact, so that it does not turn away."""
    force = -press * _outward(data)
    top = data.body("top").id
    arm = data.contact[0].pos - data.xipos[top]
    data.xfrc_applied[top] = np.concatenate([force, np.cross(arm, force)])


def _outward(data: mujoco.MjData) -> np.ndarray:
    """Return the normal of the first contact, from the first body to the free one."""
    contact = data.contact[0]
    sign = 1.0 if data.geom("second").id == contact.geom[1] else -1.0
    return sign * contact.frame[:3]


def _touch(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Move the free body until the deepest contact is `DEPTH` deep."""
    margin = model.geom_margin.copy()
    model.geom_margin[:] = 0.5
    for _ in range(60):
        mujoco.mj_forward(model, data)
        deepest = min(data.contact, key=lambda contact: contact.dist)
        if abs(deepest.dist + DEPTH) < 1e-3 * DEPTH:
            break
        sign = 1.0 if data.geom("second").id == deepest.geom[1] else -1.0
        data.qpos[-7:-4] -= sign * (deepest.dist + DEPTH) * deepest.frame[:3]
    model.geom_margin[:] = margin
    mujoco.mj_forward(model, data)


def _turn_to(axis: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a quaternion with a z axis near `axis` and a random spin about it."""
    aim = np.empty(4)
    mujoco.mju_quatZ2Vec(aim, axis)
    spin = np.empty(4)
    mujoco.mju_axisAngle2Quat(spin, np.array([0.0, 0.0, 1.0]), rng.uniform(-3, 3))
    direction = rng.uniform(-np.pi, np.pi)
    tilt = np.array([1.0, np.cos(direction) * TILT / 2, np.sin(direction) * TILT / 2, 0.0])
    quat = np.empty(4)
    mujoco.mju_mulQuat(quat, aim, spin)
    mujoco.mju_mulQuat(quat, quat.copy(), tilt)
    return quat


def _geom(kind: str, condim: int, extra: str) -> str:
    if kind in MESHES:
        shape = f'type="mesh" mesh="{kind}"'
    elif kind == "field":
        shape = 'type="hfield" hfield="field"'
    else:
        shape = f'type="{kind}" size="{SIZES[kind]}"'
    friction = "" if "friction" in extra else 'friction=".7 .02 .01"'
    return f'{shape} condim="{condim}" {friction} {extra}'
