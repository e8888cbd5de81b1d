"""Ties of segments along faces, of rays, and of rotations."""

from tests.ties.contacts import BOX, CAPSULE, CYLINDER, FLOOR, MOVING, SHAPES, pair
from tests.ties.judge import AVERAGE, LEFT, RIGHT, SMOOTH, STEP, Tie

LYING = 'euler="0 90 0"'  # along the x axis
BALL_JOINT = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body><joint type="ball" stiffness="3"/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>
  </worldbody>
</mujoco>"""
FREE = """
<mujoco>
  <worldbody><body><freejoint/><geom type="box" size=".1 .2 .3"/></body></worldbody>
</mujoco>"""
RAY = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <geom type="capsule" size=".125 .25" contype="0"/>
    <body pos="1 0 .25"><joint type="slide" axis="0 0 1"/><geom size=".05" contype="0"/>
      <site name="s" zaxis="-1 0 0"/></body>
  </worldbody>
  <sensor><rangefinder site="s"/></sensor>
</mujoco>"""
FIELD = """
<mujoco>
  <option timestep=".002" cone="elliptic"/>
  <asset><hfield name="f" nrow="3" ncol="3" size="1 1 .5 .5" elevation="0 1 0 0 1 0 0 1 0"/></asset>
  <worldbody>
    <geom type="hfield" hfield="f"/>
    <body pos="0 .3 .62"><freejoint/><geom size=".125"/></body>
  </worldbody>
</mujoco>"""
LONG_STEP = 1e-3  # length of differences
ALL = tuple(f"q{k}" for k in range(6))
TIES = (
    Tie("capsule along a box", "end of a capsule over a box", SMOOTH,
        ("q0", "q1", "q2", "q5"),
        pair(BOX, CAPSULE.replace(".25", ".125") + " " + LYING, "0 0 .3115"), MOVING),
    *(Tie(f"{kind} as long as a {other}", tie, AVERAGE, ("q0",),
          pair(SHAPES[other], f'type="{kind}" size=".0625 .125" ' + LYING, "0 0 .1865"), MOVING,
          step) for kind, other, tie, step in (
          ("capsule", "box", "capsule as long as a box", STEP),
          ("capsule", "mesh", "segment as long as a face", STEP),
          ("cylinder", "box", "segment as long as a face", STEP),
          # MuJoCo 3.15 moves the point of a cylinder on a mesh by 3e-9 m across the cylinder
          ("cylinder", "mesh", "segment as long as a face", LONG_STEP))),
    Tie("capsule along a mesh", "segment within a face", SMOOTH,
        ("q0", "q1", "q2", "q5"),
        pair(SHAPES["mesh"], 'type="capsule" size=".0625 .0625" ' + LYING, "0 0 .1865"), MOVING),
    *(Tie(f"capsule beside a parallel edge of a mesh, {name}", "segment parallel to an edge", rule,
          along, pair(SHAPES["mesh"], 'type="capsule" size=".0625 .25" ' + LYING, "0 .128 .187"),
          MOVING)
      for name, rule, along in (("moving", SMOOTH, ("q0", "q1", "q2", "q3")),
                                ("tilting", AVERAGE, ("q4", "q5")))),
    Tie("capsule on a plane", "lower end of a capsule", SMOOTH, ALL,
        pair(FLOOR, CAPSULE + " " + LYING, "0 0 .0615"), MOVING),
    Tie("box on a plane", "corner of a box", SMOOTH, ALL,
        pair(FLOOR, SHAPES["box"], "0 0 .1245"), MOVING),
    Tie("cylinder standing on a plane", "upright cylinder", SMOOTH,
        ("q0", "q1", "q2"),
        pair(FLOOR, CYLINDER, "0 0 .2495"), MOVING),
    Tie("end of a capsule over the end of another", "end of a capsule", RIGHT, ("q2",),
        pair(CAPSULE, CAPSULE + ' euler="90 0 0"', ".124 0 .25"), MOVING),
    Tie("sphere in a cylinder, as far from its side as from its cap", "sphere in a cylinder",
        RIGHT, ("q0",), pair('type="cylinder" size=".25 .25"', 'size=".125"', ".125 0 .125"),
        MOVING),
    Tie("sphere in the middle of a disk", "cap of a cylinder", LEFT, ("q2",),
        pair('type="cylinder" size=".5 .0625"', 'size=".125"', ".125 0 0"), MOVING),
    Tie("sphere in a box, as far from two faces", "sphere in a box", RIGHT, ("q0",),
        pair(BOX, 'size=".125"', ".125 0 .125"), MOVING),
    Tie("sphere in the middle of a plate", "face of a box", LEFT, ("q2",),
        pair('type="box" size=".5 .5 .0625"', 'size=".125"', "0 0 0"), MOVING),
    Tie("cylinder on its rim that leans over", "rim of a cylinder", SMOOTH, ("q2", "q3"),
        pair(FLOOR, CYLINDER + ' euler="30 0 0"', "0 0 .2785"), MOVING),
    Tie("sphere over a ridge of a height field", "diagonal of a height field", SMOOTH, ("q0",),
        FIELD, MOVING),
    Tie("ray to the end of a capsule's side", "ray at the end of a capsule",
        SMOOTH, ("q0",), RAY),
    Tie("spring of a ball joint at rest", "ball spring at rest", SMOOTH, ALL[:3],
        BALL_JOINT),
    Tie("spring of a ball joint at one radian", "series of a rotation", SMOOTH,
        ALL[:3], BALL_JOINT, {"qpos": [0.8775825618903728, 0.479425538604203, 0.0, 0.0]}),
    Tie("free body at rest", "no rotation", SMOOTH,
        ("q3", "q4", "q5", "v3", "v4", "v5"), FREE),
)  # fmt: skip
