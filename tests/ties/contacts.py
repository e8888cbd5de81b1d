"""Ties of contacts: features that meet, regions of colliders, frames."""

from itertools import product

from tests.ties.judge import AVERAGE, JUMPS, LEFT, RAISES, RIGHT, SMOOTH, Tie

CUBE = " ".join(f"{x} {y} {z}" for x, y, z in product((-0.125, 0.125), repeat=3))
SHAPES = {"box": 'type="box" size=".125 .125 .125"', "mesh": 'type="mesh" mesh="cube"'}
CONES, CONDIMS = ("pyramidal", "elliptic"), (1, 3, 4, 6)
SHARED = "edges in one plane"
ALL = tuple(f"q{k}" for k in range(12) if k not in (5, 11))  # no rotations about the normal


def stack(shape: str, *, count: int = 2, condim: int = 3, cone: str = "pyramidal",
          offset: float = 0.0, com: str = "0 0 0", solref: str = ".02 1") -> str:  # fmt: skip
    """Return two equal boxes, one on the other; `com` is the center of mass of the top one."""
    inertial = f'<inertial pos="{com}" mass="2" diaginertia=".02 .03 .04"/>'
    bodies = "".join(
        f"""<body pos="{offset * k!r} {offset * k!r} {0.1249 + 0.2498 * k!r}">
          <freejoint/>{inertial if k == count - 1 else ""}<geom {SHAPES[shape]}/></body>"""
        for k in range(count)
    )
    return f"""
    <mujoco>
      <option timestep=".002" cone="{cone}"/>
      <default><geom condim="{condim}" solref="{solref}"/></default>
      <asset><mesh name="cube" vertex="{CUBE}"/></asset>
      <worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody>
    </mujoco>"""


def plates(first: str, second: str) -> str:
    """Return two free geoms over a plane, the first one on top of the second."""
    return f"""
    <mujoco>
      <option timestep=".002" cone="elliptic"/>
      <asset><mesh name="cube" vertex="{CUBE}"/></asset>
      <worldbody>
        <geom type="plane" size="5 5 1"/>
        <body pos="0 0 .3747"><freejoint/><geom {first}/></body>
        <body pos="0 0 .1249"><freejoint/><geom {second}/></body>
      </worldbody>
    </mujoco>"""


def hinged(lower: float, upper: float, size: str) -> str:
    """Return two pressed boxes that turn about pivots at these heights, on one common hinge."""
    return f"""
    <mujoco>
      <option timestep=".002" cone="elliptic"/>
      <worldbody>
        <body>
          <joint axis="0 1 0" pos="0 0 -1"/>
          <geom size=".05" pos="0 0 -1" contype="0"/>
          <body>
            <joint type="slide" axis="0 0 1" stiffness="4000" springref=".1"/>
            <joint axis="0 1 0" pos="0 0 {lower}"/>
            <joint axis="1 .3 0" pos="0 0 {lower}"/>
            <geom {SHAPES["box"]}/>
          </body>
          <body pos="0 0 .249">
            <joint axis="0 1 0" pos="0 0 {upper}"/>
            <joint type="slide" axis="1 0 0"/>
            <geom type="box" size="{size}"/>
          </body>
        </body>
      </worldbody>
    </mujoco>"""


def pair(fixed: str, moving: str, pos: str, *, more: str = "", option: str = "") -> str:
    """Return a free geom against a fixed one."""
    return f"""
    <mujoco>
      <option timestep=".002" cone="elliptic" {option}/>
      <asset><mesh name="cube" vertex="{CUBE}"/></asset>
      <worldbody>
        <geom name="fixed" {fixed}/>
        <body pos="{pos}"><freejoint/><geom name="moving" {moving}/></body>
      </worldbody>
      {more}
    </mujoco>"""


def gripper(shape: str) -> str:
    """Return two pads that close on a cube of their width."""
    pads = "".join(
        f"""<body pos="{0.1875 * side} 0 0"><joint type="slide" axis="{-side} 0 0"/>
            <joint type="slide" axis="0 1 0" stiffness="900"/>
            <geom type="box" size=".0625 .125 .125"/></body>"""
        for side in (-1, 1)
    )
    return f"""
    <mujoco>
      <option timestep=".002" gravity="0 0 0" cone="elliptic"/>
      <asset><mesh name="cube" vertex="{CUBE}"/></asset>
      <worldbody>{pads}<body><freejoint/><geom {SHAPES[shape]}/></body></worldbody>
    </mujoco>"""


CYLINDERS = 'type="cylinder" size=".2 .125"'
BALL, BOX = 'size=".125"', 'type="box" size=".25 .25 .25"'
DEEP = 0.125 - 2.0**-10
FLOOR = 'type="plane" size="5 5 1"'
CAPSULE, CYLINDER = 'type="capsule" size=".0625 .25"', 'type="cylinder" size=".125 .25"'
MOVING = {"qvel": [0.1, 0.2, -0.3, 0.4, 0.5, 0.6]}
LOWER = (0.0, 0.0, 0.1249, 1.0, 0.0, 0.0, 0.0)  # the pose of the lower box of a stack
UPPER = (0.0, 0.0, 0.3747, 1.0)  # the upper box, without the vector of its quaternion
TIES = (
    *(Tie(f"stack of two, {shape}, condim {condim}, {cone}", SHARED, SMOOTH, ALL,
          stack(shape, condim=condim, cone=cone))
      for shape in SHAPES for condim in CONDIMS for cone in CONES),
    *(Tie(f"stack of three, {shape}, condim {condim}", SHARED, SMOOTH,
          (*ALL, "q12", "q13", "q14", "q15", "q16"),
          stack(shape, count=3, condim=condim)) for shape in SHAPES for condim in (1, 3)),
    *(Tie(f"stack off by {offset}, {shape}", SHARED, SMOOTH, ("q6", "q7", "q8"),
          stack(shape, offset=offset)) for shape in SHAPES for offset in (1e-15, 1e-13, 1e-10)),
    *(Tie(f"lopsided stack, {shape}, {cone}", SHARED, AVERAGE, ("q6", "q7"),
          stack(shape, cone=cone, com=".02 .01 0")) for shape in SHAPES for cone in CONES),
    *(Tie(f"pads on a cube of their width, {shape}", SHARED, SMOOTH, ("q0", "q1", "q5"),
          gripper(shape), {"qpos": [2e-4, 0.0, 2e-4, 0.0]}) for shape in SHAPES),
    *(Tie(f"stack turned by {yaw}", "edge along a side", RAISES, (), stack("box"),
          {"qpos": [*LOWER, *UPPER, 0.0, 0.0, yaw / 2]}) for yaw in (1e-12, 1e-10, 9e-10)),
    Tie("stack turned about the normal", SHARED, JUMPS, ("q5", "q11"), stack("box")),
    *(Tie(f"stack turned as one, {shape}", SHARED, SMOOTH, ("q5+q11",), stack(shape))
      for shape in SHAPES),
    *(Tie(f"stack off by .03 that tilts, {axis}", "reference face by width",
          rule, (axis,), stack("box", offset=0.03, solref=".5 1"))
      for axis, rule in (("q3", LEFT), ("q9", RIGHT))),
    *(Tie(f"box on a larger one, {name}", "reference face by width", SMOOTH,
          ALL, plates(*shapes)) for name, shapes in {
              "small first": (SHAPES["box"], 'type="box" size=".25 .3 .125"'),
              "large first": ('type="box" size=".25 .3 .125"', SHAPES["box"]),
              "of the same depth": (SHAPES["box"], 'type="box" size=".25 .125 .125"'),
              "of a mesh": (SHAPES["mesh"], 'type="box" size=".25 .3 .125"')}.items()),
    *(Tie(f"hinged boxes, pivots at {lower} and {upper}, {size}", "reference face by motion",
          SMOOTH, ("q0", "q2", "q3", "q4", "q5"),
          hinged(lower, upper, size)) for lower, upper, size in (
              (0, 0, ".125 .125 .125"), (0.3, -0.4, ".125 .125 .125"),
              (-0.3, 0.3, ".125 .125 .125"), (0.2, 0.1, ".125 .25 .125"))),
    *(Tie(f"box and box-shaped mesh, {name}", SHARED, SMOOTH, ALL, plates(*shapes))
      for name, shapes in {"box on top": (SHAPES["box"], SHAPES["mesh"]),
                           "mesh on top": (SHAPES["mesh"], SHAPES["box"])}.items()),
    Tie("equal cylinders on one another", SHARED, JUMPS, ("q0", "q1", "q6", "q7"),
        plates(CYLINDERS, CYLINDERS)),
    Tie("equal cylinders moved as one", SHARED, SMOOTH, ("q0+q6", "q1+q7", "q5+q11"),
        plates(CYLINDERS, CYLINDERS)),
    Tie("sphere over the rim of a face of a box", "sphere at the rim of a box", LEFT, ("q0",),
        pair(BOX, BALL, f".25 0 {0.25 + DEEP!r}"), MOVING),
    Tie("sphere at the end of a capsule", "sphere at the end of a capsule", LEFT, ("q2",),
        pair(CAPSULE, BALL, f"{0.0625 + DEEP!r} 0 .25"), MOVING),
    Tie("sphere over the rim of a cylinder's cap", "sphere at the rim of a cylinder", RIGHT,
        ("q0",), pair(CYLINDER, BALL, f".125 0 {0.25 + DEEP!r}"), MOVING),
    Tie("sphere beside the rim of a cylinder's side", "sphere at the rim of a cylinder", RIGHT,
        ("q2",), pair(CYLINDER, BALL, f"{0.125 + DEEP!r} 0 .25"), MOVING),
    Tie("sphere that just touches a plane", "row of MuJoCo", RIGHT, ("q2",),
        pair(FLOOR, BALL, "0 0 .125"), MOVING),
    Tie("frame between two hints", "hint of a frame", SMOOTH, ("q0", "q1", "q2"),
        pair(FLOOR + ' euler="-30 0 0"', BALL, f"0 {DEEP / 2!r} {DEEP * 0.75**0.5!r}"), MOVING),
    Tie("capsule standing on a plane", "upright capsule", SMOOTH,
        ("q0", "q2", "q3", "q4", "q5"),
        pair(FLOOR, CAPSULE, f"0 0 {0.25 + 0.0625 - 2.0**-10!r}"), MOVING),
    Tie("parallel capsules", "parallel capsules", SMOOTH,
        ("q0", "q1"), pair(CAPSULE, CAPSULE, ".124 0 .05"), MOVING),
    Tie("coincident spheres", "coincident centers", RAISES, (),
        pair(BALL, BALL, "0 0 0")),
    Tie("coincident capsules", "features of a contact", RAISES, (),
        pair(CAPSULE, CAPSULE, "0 0 0")),
    Tie("cylinder lying on a plane", "lower cap of a cylinder", SMOOTH,
        ("q0", "q1", "q2", "q5"), pair(FLOOR, CYLINDER + ' euler="90 0 0"', f"0 0 {DEEP!r}"),
        MOVING),
    Tie("sphere over a box vertex", "sphere at the rim of a box", LEFT, ("q0", "q1"),
        pair(BOX, BALL, f".25 .25 {0.25 + DEEP!r}"), MOVING),
    Tie("sphere over the rim of a face of a mesh", "sphere over an edge of a mesh", RIGHT,
        ("q0",), pair(SHAPES["mesh"], BALL, f".125 0 {0.125 + DEEP!r}"), MOVING),
)  # fmt: skip
