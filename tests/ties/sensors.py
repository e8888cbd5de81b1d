"""Ties of sensors, singular poses and fluids."""

from tests.ties.actuators import slider
from tests.ties.contacts import BALL, BOX, CAPSULE, FLOOR, MOVING, SHAPES, pair
from tests.ties.judge import LEFT, RAISES, RIGHT, SMOOTH, SUBGRADIENT, Tie

FAR = 0.5  # m: distance between surfaces, beyond any contact


def sensed(kind: str) -> str:
    """Return a sensor of the distance between the two geoms."""
    return f'<sensor><{kind} geom1="fixed" geom2="moving" cutoff="3"/></sensor>'


def over_edge(kind: str, fixed: str, half: float) -> str:
    """Return a sphere above the rim of the upper face of a box or mesh."""
    return pair(fixed, BALL, f"{half} 0 {half + 0.125 + FAR}", more=sensed(kind))


TWO = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="walls"><geom size=".125" pos="-1 0 0"/><geom size=".125" pos="1 0 0"/></body>
    <body name="ball"><freejoint/><geom size=".125"/></body>
  </worldbody>
  <sensor><distance body1="walls" body2="ball" cutoff="3"/></sensor>
</mujoco>"""
BALL_JOINT = """
<mujoco>
  <worldbody>
    <body><joint type="ball" range="0 .6" limited="true" margin="1"/>
      <geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>
  </worldbody>
</mujoco>"""
SITES = """
<mujoco>
  <worldbody>
    <site name="a"/>
    <body><joint type="slide"/><geom size=".1"/><site name="b"/></body>
  </worldbody>
  <tendon><spatial name="t" {}><site site="a"/><site site="b"/></spatial></tendon>
</mujoco>"""
FLUID = """
<mujoco>
  <option timestep=".002" density="900" viscosity=".3" gravity="0 0 0"/>
  <worldbody>
    <body><freejoint/><geom type="ellipsoid" size=".1 .2 .3" {}/></body>
  </worldbody>
</mujoco>"""
CUT = '<sensor><jointpos joint="j" cutoff=".25"/></sensor>'
PID = '<pid joint="j" kp="5" kv=".6" {}/>'
LEAST = '<sensor><contact geom1="moving" data="dist" reduce="mindist" num="1"/></sensor>'
LYING, ON_EDGE = 'euler="0 90 0"', 'euler="0 45 0"'
TILTS = (("q3", LEFT), ("q4", RIGHT))  # derivatives of the vertex that MuJoCo reports
TIES = (
    Tie("sensor at its cutoff", "cutoff", RIGHT, ("q0",),
        slider(other=CUT), {"qpos": [0.25]}),
    Tie("sensor at its negative cutoff", "cutoff", LEFT,
        ("q0",), slider(other=CUT), {"qpos": [-0.25]}),
    Tie("two geoms at the same distance", "nearest of several geoms", LEFT, ("q0",), TWO),
    *(Tie(f"distance over an edge of a {name}", "sphere at the rim of a box", SMOOTH,
          ("q0", "q1", "q2"), over_edge("distance", *shape))
      for name, shape in {"box": (BOX, 0.25), "mesh": (SHAPES["mesh"], 0.125)}.items()),
    *(Tie(f"{kind} over an edge of a {name}", tie, rule, ("q0",), over_edge(kind, *shape))
      for kind in ("normal", "fromto") for name, tie, rule, shape in (
          ("box", "sphere at the rim of a box", LEFT, (BOX, 0.25)),
          ("mesh", "sphere over an edge of a mesh", RIGHT, (SHAPES["mesh"], 0.125)))),
    Tie("distance of parallel faces", "nearest features", SMOOTH,
        ("q0", "q1", "q2", "q5"), pair(BOX, BOX, "0 0 1", more=sensed("distance"))),
    *(Tie(f"distance of parallel faces that tilt, {axis}", "nearest point of a face", rule, (axis,),
          pair(BOX, BOX, "0 0 1", more=sensed("distance"))) for axis, rule in TILTS),
    *(Tie(f"distance of faces that overlap, {axis}", "nearest features", SUBGRADIENT, (axis,),
          pair(BOX, BOX, ".01 .02 1", more=sensed("distance"))) for axis in ("q3", "q4")),
    *(Tie(f"{kind} of {name}", "parallel features", RAISES, (),
          pair(fixed, moving, "0 0 1", more=sensed(kind)))
      for kind in ("normal", "fromto") for name, fixed, moving in (
          ("equal faces", BOX, BOX), ("parallel faces", BOX, SHAPES["box"]),
          ("parallel faces of meshes", SHAPES["mesh"], SHAPES["mesh"]),
          ("a capsule along a face", BOX, f"{CAPSULE} {LYING}"),
          ("parallel capsules", f"{CAPSULE} {LYING}", f"{CAPSULE} {LYING}"),
          ("edges along one another", f"{BOX} {ON_EDGE}", f"{BOX} {ON_EDGE}"))),
    Tie("nearest of four corners", "order of contacts", SMOOTH,
        ("q2",), pair(FLOOR, SHAPES["box"], "0 0 .1245", more=LEAST), MOVING),
    *(Tie(f"nearest of four corners that tilt, {axis}", "order of contacts", rule, (axis,),
          pair(FLOOR, SHAPES["box"], "0 0 .1245", more=LEAST))
      for axis, rule in (("q3", RIGHT), ("q4", LEFT))),
    Tie("sensor whose interval has just passed", "interval of a sensor", SMOOTH, ("q0",),
        slider(other='<sensor><jointpos joint="j" interval=".25" nsample="3"/></sensor>')),
    Tie("limit of a ball joint without rotation", "axis of a ball limit", RAISES,
        (), BALL_JOINT),
    Tie("tendon of no length", "tendon of no length", RAISES, (),
        SITES.format('stiffness="9" springlength=".5"')),
    *(Tie(f"body at rest in a fluid{name}", "body at rest in a fluid", SMOOTH,
          tuple(f"v{k}" for k in range(6)), FLUID.format(shape))
      for name, shape in {"": "", ", ellipsoid": 'fluidshape="ellipsoid"'}.items()),
    Tie("setpoint at its greatest speed", "slew rate", LEFT, ("u0",),
        slider(PID.format('slewmax="125"'), option='integrator="Euler"'), {"ctrl": [0.25]}),
    Tie("integral at its limit without error", "windup", LEFT, ("u0",),
        slider(PID.format('ki="3" imax=".5"')), {"act": [0.5]}),
)  # fmt: skip
