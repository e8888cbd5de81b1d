"""Scenes with many contacts: stacks and heaps of boxes, cylinders on boxes, a hand with an object.

Each scene is simulated until it is nearly at rest. Its derived quantities are up to date.
"""

import mujoco
import numpy as np

import mujacobian

STACK = 5  # boxes in a stack, which is an island
HALF = 0.05  # m: half the edge of a box
PIT = 0.25  # m: half the width of the pit of a heap
FINGERS, LINKS = 5, 4  # fingers of the hand, hinges of each finger
APOTHEM = 0.04  # m: distance between the sides of the object and its axis
LINK = np.array([0.006, 0.012, 0.017])  # m: half sizes of a phalanx


def stacks(count: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return `count` boxes in stacks of five that do not touch one another."""
    rng = np.random.default_rng(0)
    boxes = ""
    for k in range(count):
        stack, level = divmod(k, STACK)
        x, y = 0.3 * (stack % 5), 0.3 * (stack // 5)
        shift = 0.1 * HALF * rng.uniform(-1, 1, 2)
        boxes += _box([x + shift[0], y + shift[1], HALF * (1 + 2.001 * level)], [1, 0, 0, 0])
    return _settled(_scene(boxes), 150)


def heap(count: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return `count` boxes that fell into a pit and lie on one another: one island of 100."""
    rng = np.random.default_rng(2)
    boxes = ""
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        wall = f'pos="{PIT * x} {PIT * y} 0" zaxis="{-x} {-y} 0"'
        boxes += f'<geom type="plane" size="5 5 .1" {wall}/>'
    for k in range(count):
        level, place = divmod(k, 9)
        y, x = divmod(place, 3)
        center = 3.2 * HALF * np.array([x - 1, y - 1, level + 1]) + 0.01 * rng.normal(size=3)
        boxes += _box(center, rng.normal(size=4))
    return _settled(_scene(boxes), 600)


def grasp() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a hand of five fingers around a prism that stands on its palm, nv 28."""
    angles = 2 * np.pi * np.arange(FINGERS) / FINGERS
    radius = APOTHEM / np.cos(np.pi / FINGERS)
    rim = [(radius * np.cos(a), radius * np.sin(a)) for a in angles + np.pi / FINGERS]
    vertices = " ".join(f"{x} {y} {z}" for z in (0.0, 0.16) for x, y in rim)
    fingers = "".join(_finger(k, float(angle)) for k, angle in enumerate(angles))
    motors = "".join(
        f'<motor joint="joint{k}_{i}" gear="{(LINKS - i) ** 2}"/>'
        for k in range(FINGERS)
        for i in range(LINKS)
    )
    text = f"""
    <mujoco>
      <option cone="elliptic" integrator="implicitfast" timestep=".001"/>
      <asset><mesh name="object" vertex="{vertices}"/></asset>
      <worldbody>
        <body name="palm" pos="0 0 1">
          <joint name="pitch" axis="1 0 0" stiffness="40" damping="1"/>
          <joint name="roll" axis="0 1 0" stiffness="40" damping="1"/>
          <geom type="box" size=".08 .08 .01" pos="0 0 -.01"/>
          {fingers}
        </body>
        <body pos="0 0 1.0005"><freejoint/><geom type="mesh" mesh="object" density="500"/></body>
      </worldbody>
      <actuator>{motors}</actuator>
    </mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    return _settled(model, 300, control=0.03)


def cylinders(*, lying: bool, converged: bool) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return six cylinders that stand or lie on boxes, perhaps with a converged collider."""
    pose = 'zaxis="1 .3 0"' if lying else ""
    height = 2 * HALF + (0.03 if lying else 0.04) - 0.0005
    bodies = ""
    for k in range(6):
        bodies += _box([k, 0, HALF], [1, 0, 0, 0])
        bodies += f"""
          <body pos="{k} .01 {height}"><freejoint/>
            <geom type="cylinder" size=".03 .04" {pose}/></body>"""
    model = _scene(bodies)
    return _settled(mujacobian.converged(model) if converged else model, 50)


def _finger(k: int, angle: float) -> str:
    """Return the MJCF of a finger: boxes beside a side of the object that bend toward it."""
    text, close = "", ""
    for i in range(LINKS):
        height = 2.2 * LINK[2] if i else 0.005
        text += f"""
          <body pos="{0 if i else APOTHEM + LINK[0] + 0.0005} 0 {height}">
            <joint name="joint{k}_{i}" axis="0 -1 0" damping=".005" armature=".0001"/>
            <geom type="box" size="{LINK[0]} {LINK[1]} {LINK[2]}" pos="0 0 {LINK[2]}"/>"""
        close += "</body>"
    return f'<frame euler="0 0 {np.degrees(angle)}">{text}{close}</frame>'


def _box(center: np.ndarray | list[float], quat: np.ndarray | list[float]) -> str:
    place = " ".join(f"{x:.6f}" for x in center)
    turn = " ".join(f"{x:.6f}" for x in quat)
    return f"""
      <body pos="{place}" quat="{turn}">
        <freejoint/><geom type="box" size="{HALF} {HALF} {HALF}"/>
      </body>"""


def _scene(bodies: str) -> mujoco.MjModel:
    text = f"""
    <mujoco>
      <size memory="200M"/>
      <option cone="elliptic"/>
      <worldbody><geom type="plane" size="5 5 .1"/>{bodies}</worldbody>
    </mujoco>"""
    return mujoco.MjModel.from_xml_string(text)


def _settled(
    model: mujoco.MjModel, steps: int, control: float = 0.0
) -> tuple[mujoco.MjModel, mujoco.MjData]:
    data = mujoco.MjData(model)
    data.ctrl[:] = control
    for _ in range(steps):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return model, data
