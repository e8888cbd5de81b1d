"""Ties of sensors, and of what is left: singular poses and fluids."""

from tie_actuators import slider
from tie_contacts import BALL, BOX, FLOOR, MOVING, SHAPES, pair
from tie_judge import BETWEEN, JUMPS, LEFT, ONE_SIDE, RAISES, RIGHT, SMOOTH, Tie

DISTANCE = "sensor/distance.cc"
ORDER = "distance < nearest.distance"
FAR = 0.5  # m: between surfaces, beyond any contact


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
  <tendon><spatial name="t" stiffness="9" springlength=".5"><site site="a"/><site site="b"/>
  </spatial></tendon>
</mujoco>"""
WRAP = """
<mujoco>
  <option timestep=".002"/>
  <worldbody>
    <site name="a" pos="-.5 0 .25"/><geom name="s" type="sphere" size=".25" contype="0"/>
    <site name="side" pos="0 0 .5"/>
    <body pos=".5 0 .25"><joint type="slide" axis="0 0 1"/><geom size=".05" contype="0"/>
      <site name="b"/></body>
  </worldbody>
  <tendon><spatial name="t" stiffness="90" springlength=".5">
    <site site="a"/><geom geom="s" sidesite="side"/><site site="b"/>
  </spatial></tendon>
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
TIES = (
    Tie("sensor at its cutoff", "sensor/sensor.cc", "std::abs(value) >= cutoff", RIGHT, ("q0",),
        slider(other=CUT), {"qpos": [0.25]}),
    Tie("sensor at its negative cutoff", "sensor/sensor.cc", "std::abs(value) >= cutoff", LEFT,
        ("q0",), slider(other=CUT), {"qpos": [-0.25]}),
    Tie("two geoms at the same distance", DISTANCE, ORDER, ONE_SIDE, ("q0",), TWO),
    *(Tie(f"distance over an edge of a {name}", "contact/sphere.cc", "nearest[k] != p[k]", SMOOTH,
          ("q0", "q1", "q2"), over_edge("distance", *shape))
      for name, shape in {"box": (BOX, 0.25), "mesh": (SHAPES["mesh"], 0.125)}.items()),
    *(Tie(f"{kind} over an edge of a {name}", "contact/sphere.cc", "nearest[k] != p[k]", ONE_SIDE,
          ("q0",), over_edge(kind, *shape)) for kind in ("normal", "fromto")
      for name, shape in {"box": (BOX, 0.25), "mesh": (SHAPES["mesh"], 0.125)}.items()),
    Tie("distance of parallel faces", "contact/convex.cc", "identify_simplex(vertices", SMOOTH,
        ("q0", "q1", "q2", "q5"), pair(BOX, BOX, "0 0 1", more=sensed("distance"))),
    Tie("distance of parallel faces that tilt", "contact/convex.cc", "identify_simplex(vertices",
        BETWEEN, ("q3", "q4"), pair(BOX, BOX, "0 0 1", more=sensed("distance"))),
    Tie("nearest points of equal faces that tilt", "contact/convex.cc", "other.is_vertex(x",
        JUMPS, ("q3", "q4"), pair(BOX, BOX, "0 0 1", more=sensed("fromto"))),
    Tie("nearest points of parallel faces", "contact/convex.cc", "other.is_vertex(x", JUMPS,
        ("q0", "q1"), pair(BOX, SHAPES["box"], "0 0 1", more=sensed("fromto"))),
    Tie("nearest of four corners", "sensor/contact.cc", "a.criterion != b.criterion", SMOOTH,
        ("q2",), pair(FLOOR, SHAPES["box"], "0 0 .1245", more=LEAST), MOVING),
    Tie("nearest of four corners that tilt", "sensor/contact.cc", "a.criterion != b.criterion",
        BETWEEN, ("q3", "q4"), pair(FLOOR, SHAPES["box"], "0 0 .1245", more=LEAST)),
    Tie("limit of a ball joint without rotation", "constraint/scalar.cc", "size == 0", RAISES,
        (), BALL_JOINT),
    Tie("tendon of no length", "smooth/tendon.cc", "length < kMinLength", RAISES, (), SITES),
    Tie("tendon that just touches a sphere", "smooth/tendon.cc", "d.wrap_obj[entry] < 0",
        ONE_SIDE, ("q0",), WRAP),
    *(Tie(f"body at rest in a fluid{name}", "smooth/fluid.cc", "value(f.den) == 0", SMOOTH,
          tuple(f"v{k}" for k in range(6)), FLUID.format(shape))
      for name, shape in {"": "", ", ellipsoid": 'fluidshape="ellipsoid"'}.items()),
    Tie("setpoint at its greatest speed", "smooth/motor.cc", "if (step > most)", LEFT, ("u0",),
        slider(PID.format('slewmax="125"'), option='integrator="Euler"'), {"ctrl": [0.25]}),
    Tie("integral at its limit without error", "smooth/motor.cc",
        "integral >= limit ? rate.v > 0", LEFT, ("u0",),
        slider(PID.format('ki="3" imax=".5"')), {"act": [0.5]}),
)  # fmt: skip
