"""Ties of tactile sensors and of the distance fields that they read."""

from tests.ties.judge import AVERAGE, RAISES, RIGHT, SMOOTH, Tie

SIDES = (-1, 1)


def corners(x: float, y: float, z: float) -> str:
    """Return the vertices of a box with these half sizes."""
    return " ".join(f"{i * x} {j * y} {k * z}" for i in SIDES for j in SIDES for k in SIDES)


CUBE = f'vertex="{corners(0.125, 0.125, 0.125)}"'
PLATE = 'builtin="plate" params="3 3" scale=".125 .125 .125"'
SLAB = f'<mesh name="slab" vertex="{corners(0.125, 0.25, 0.25)}"/>'
FIELD = '<geom type="sdf" mesh="slab" pos="9 0 0" contype="0" conaffinity="0"/>'


def skin(*fixed: str, mesh: str = CUBE, more: str = "") -> str:
    """Return a skin that moves along three axes. Its contacts with the geoms exert no force."""
    geoms = "".join(f'<geom gap="2" {geom}/>' for geom in fixed)
    return f"""
<mujoco>
  <option gravity="0 0 0"/>
  <asset><mesh name="skin" {mesh}/>{SLAB}</asset>
  <worldbody>
    {geoms}{more}
    <body>
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="slide"/>
      <geom name="skin" type="mesh" mesh="skin" contype="0" conaffinity="0" mass="1"/>
      <geom size=".002" pos="-.03 -.03 -.03" mass="1"/>
    </body>
  </worldbody>
  <sensor><tactile geom="skin" mesh="skin"/></sensor>
</mujoco>"""


def at(*vertex: float) -> dict[str, list[float]]:
    """Return the state in which the last vertex of the cube is at this point."""
    return {"qpos": [x - 0.125 for x in vertex]}


BALL = 'size=".5"'
TIES = (
    Tie(
        "taxel on a plane",
        "taxel on a surface",
        RIGHT,
        ("q2",),
        skin('type="plane" size="1 1 1"'),
        {"qpos": [0, 0, 0.125]},
    ),
    Tie(
        "taxel between two balls",
        "taxel equally deep in two geoms",
        AVERAGE,
        ("q0",),
        skin('size=".5" pos=".25 0 0"', 'size=".5" pos="-.25 0 0"'),
        at(0, -0.25, 0.0625),
    ),
    Tie(
        "taxel at rest",
        "taxel that does not slide",
        AVERAGE,
        ("v1",),
        skin(BALL, mesh=PLATE),
        {"qpos": [0.1, 0.1, 0.2]},
    ),
    Tie(
        "taxel at the center of a ball",
        "center of a distance field",
        RAISES,
        (),
        skin(BALL),
        at(0, 0, 0),
    ),
    Tie(
        "taxel on the axis of a cylinder",
        "center of a distance field",
        RAISES,
        (),
        skin('type="cylinder" size=".25 .5"'),
        at(0, 0, 0.0625),
    ),
    Tie(
        "taxel at the center of an ellipsoid",
        "center of a distance field",
        RAISES,
        (),
        skin('type="ellipsoid" size=".25 .5 .3"'),
        at(0, 0, 0),
    ),
    Tie(
        "taxel beside the end of a capsule",
        "end of the axis of a distance field",
        SMOOTH,
        ("q0", "q2"),
        skin('type="capsule" size=".25 .25"'),
        at(-0.125, 0, -0.25),
    ),
    Tie(
        "taxel in the middle of a box",
        "middle of a distance field",
        AVERAGE,
        ("q0",),
        skin('type="box" size=".2 .25 .5"'),
        at(0, -0.125, -0.175),
    ),
    Tie(
        "taxel as far from two faces of a box",
        "nearest face of a distance field",
        AVERAGE,
        ("q0", "q1"),
        skin('type="box" size=".25 .25 .5"'),
        at(-0.125, -0.125, -0.175),
    ),
    Tie(
        "taxel as far from the side and a cap",
        "rim of a distance field",
        AVERAGE,
        ("q0", "q2"),
        skin('type="cylinder" size=".5 .25"'),
        at(-0.375, 0, -0.125),
    ),
    Tie(
        "taxel between two cells of an octree",
        "cells of an octree",
        RIGHT,
        ("q0",),
        skin('type="mesh" mesh="slab"', more=FIELD),
        at(0, -0.15, -0.16),
    ),
)
