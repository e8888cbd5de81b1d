"""Ties of segments along faces, of rays, and of rotations."""

from tie_contacts import BOX, CAPSULE, CYLINDER, FLOOR, MOVING, SHAPES, pair
from tie_judge import AVERAGE, SMOOTH, Tie

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
ALL = tuple(f"q{k}" for k in range(6))
TIES = (
    Tie("capsule along a box", "contact/capsule_box.cc", "gap < best.gap", SMOOTH,
        ("q0", "q1", "q2", "q5"),
        pair(BOX, CAPSULE.replace(".25", ".125") + " " + LYING, "0 0 .3115"), MOVING),
    *(Tie(f"{kind} as long as a {other}", source, comparison, AVERAGE, ("q0",),
          pair(SHAPES[other], f'type="{kind}" size=".0625 .125" ' + LYING, "0 0 .1865"), MOVING)
      for kind, other, source, comparison in (
          ("capsule", "box", "contact/capsule_box.cc", "std::abs(beyond) <= kTie"),
          ("capsule", "mesh", "contact/along.cc", "at_end ? 0.5 : 1"),
          ("cylinder", "box", "contact/along.cc", "at_end ? 0.5 : 1"))),
    Tie("capsule along a mesh", "contact/along.cc", "!at_end && !crosses", SMOOTH,
        ("q0", "q1", "q2", "q5"),
        pair(SHAPES["mesh"], 'type="capsule" size=".0625 .0625" ' + LYING, "0 0 .1865"), MOVING),
    Tie("capsule on a plane", "contact/plane.cc", "half) > 0 ? half : -half", SMOOTH, ALL,
        pair(FLOOR, CAPSULE + " " + LYING, "0 0 .0615"), MOVING),
    Tie("box on a plane", "contact/plane.cc", "is_corner(other, touch)", SMOOTH, ALL,
        pair(FLOOR, SHAPES["box"], "0 0 .1245"), MOVING),
    Tie("cylinder standing on a plane", "contact/plane.cc", "flat < 1e-15 ?", SMOOTH,
        ("q0", "q1", "q2"),
        pair(FLOOR, CYLINDER, "0 0 .2495"), MOVING),
    Tie("sphere over a ridge of a height field", "contact/height_field.cc",
        "above > -slack[0] - slack[1]", SMOOTH, ("q0",), FIELD, MOVING),
    Tie("ray to the end of a capsule's side", "sensor/ray.cc", "std::abs(height) > g.size[1]",
        SMOOTH, ("q0",), RAY),
    Tie("spring of a ball joint at rest", "smooth/passive.cc", "r > 0 ?", SMOOTH, ALL[:3],
        BALL_JOINT),
    Tie("spring of a ball joint at one radian", "spatial/rotation.h", "if (t < 1)", SMOOTH,
        ALL[:3], BALL_JOINT, {"qpos": [0.8775825618903728, 0.479425538604203, 0.0, 0.0]}),
    Tie("free body at rest", "spatial/quaternion.h", "half > 0", SMOOTH,
        ("q3", "q4", "q5", "v3", "v4", "v5"), FREE),
)  # fmt: skip
