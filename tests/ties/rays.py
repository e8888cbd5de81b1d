"""Ties of rays, touch sensors, cameras and contact sensors."""

from tests.ties.contacts import BALL, BOX, CUBE, CYLINDER, FLOOR, SHAPES, pair
from tests.ties.judge import LEFT, RAISES, RIGHT, SMOOTH, Tie

TURNED = 'euler="0 45 0"'


def ray(geom: str, height: float, more: str = "") -> str:
    """Return a ray along -x at a height above the center of a geom."""
    return f"""
    <mujoco>
      <option gravity="0 0 0"/>
      <asset><mesh name="cube" vertex="{CUBE}"/></asset>
      <worldbody>
        <geom {geom} contype="0"/>{more}
        <body pos="1 0 {height!r}">
          <joint type="slide" axis="0 0 1"/>
          <joint type="slide" axis="0 1 0"/>
          <geom size=".05" contype="0"/>
          <site name="s" zaxis="-1 0 0"/>
        </body>
      </worldbody>
      <sensor><rangefinder site="s" data="dist point normal"/></sensor>
    </mujoco>"""


def touch(shape: str, height: float) -> str:
    """Return a ball on a floor with a touch sensor at a height above its center."""
    return f"""
    <mujoco>
      <option timestep=".002" cone="elliptic"/>
      <worldbody>
        <geom {FLOOR}/>
        <body pos="0 0 .124">
          <freejoint/><geom size=".125"/><site name="s" pos="{height!r} 0 -.125" {shape}/>
        </body>
      </worldbody>
      <sensor><touch site="s"/></sensor>
    </mujoco>"""


def zone(shape: str) -> str:
    """Return the same with a contact sensor, whose volume ends at the contact."""
    sensor = '<contact site="s" data="found force dist"/>'
    xml = touch(shape, 0.0625).replace('<touch site="s"/>', sensor)
    return xml.replace(".0625 0 -.125", ".0625 0 -.1245")


def camera(mode: str, pos: str) -> str:
    """Return a camera at the origin and a site in its view."""
    return f"""
    <mujoco>
      <option gravity="0 0 0"/>
      <worldbody>
        <camera name="c" {mode}/>
        <body name="b" pos="{pos}"><freejoint/><geom size=".1"/><site name="s" pos=".1 0 0"/></body>
      </worldbody>
      <sensor><camprojection site="s" camera="c"/></sensor>
    </mujoco>"""


def contact(reduce: str) -> str:
    """Return a contact sensor."""
    return f"""<sensor><contact geom1="moving" data="found force torque dist pos normal tangent"
      reduce="{reduce}" num="2"/></sensor>"""


LEVEL = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body pos="0 0 .25"><joint type="slide" axis="0 0 1"/><geom size=".05"/>
      <site name="s" zaxis="0 0 -1"/></body>
  </worldbody>
  <sensor><rangefinder site="s" cutoff=".25"/></sensor>
</mujoco>"""
ZONES = {
    "box": 'type="box" size=".0625 .0625 .0625"',
    "sphere": 'size=".0625"',
    "cylinder": 'type="cylinder" size=".0625 .0625"',
    "capsule": 'type="capsule" size=".0625 .0625"',
    "ellipsoid": 'type="ellipsoid" size=".0625 .0625 .0625"',
}
ZERO = '<sensor><{} geom1="fixed" geom2="moving" cutoff="1"/></sensor>'
BESIDE = 'contype="0" conaffinity="0"'
TIES = (
    *(Tie(f"ray along the upper face of a {name}", "ray at the end of a surface", RIGHT, ("q0",),
          ray(shape, height)) for name, shape, height in (
              ("box", BOX, 0.25), ("cylinder", CYLINDER, 0.25), ("mesh", SHAPES["mesh"], 0.125))),
    Tie("ray to an edge of a box", "ray at the end of a surface", RIGHT, ("q0",),
        ray(f"{BOX} {TURNED}", 0.0)),
    Tie("ray to an edge between triangles of a face", "ray at the end of a surface", SMOOTH,
        ("q0", "q1"), ray(SHAPES["mesh"], 0.0)),
    Tie("ray to the rim of a cylinder", "ray at the rim of a cylinder", RIGHT, ("q0",),
        ray(f'type="cylinder" size=".25 .25" {TURNED}', 0.0)),
    Tie("ray to two geoms at one distance", "ray at the end of a surface", SMOOTH, ("q0", "q1"),
        ray(BOX, 0.0, '<geom type="box" size=".25 .25 .125" pos="0 0 .125" contype="0"/>')),
    *(Tie(f"ray tangent to a {name}", "tangent ray", RAISES, (), ray(shape, 0.25))
      for name, shape in (("sphere", 'size=".25"'),
                          ("ellipsoid", 'type="ellipsoid" size=".25 .25 .25"'),
                          ("cylinder", 'type="cylinder" size=".25 .25" euler="90 0 0"'))),
    Tie("rangefinder at its cutoff", "cutoff of a positive sensor", RIGHT, ("q0",), LEVEL),

    *(Tie(f"contact at the rim of a touch sensor, {name}", "zone of a touch sensor", rule, ("q4",),
          touch(ZONES[name], 0.0625)) for name, rule in (
              ("box", RIGHT), ("cylinder", RIGHT), ("sphere", LEFT), ("capsule", LEFT),
              ("ellipsoid", LEFT))),
    *(Tie(f"contact at the rim of a contact sensor, {name}", "zone of a contact sensor", LEFT,
          ("q4",), zone(shape)) for name, shape in ZONES.items()),
    Tie("touch sensor of a contact without force", "touch without force", SMOOTH, ("q2", "v2"),
        touch('size=".0625"', 0.0), {"qvel": [0.0, 0.0, 3.0]}),
    Tie("net force of contacts without force", "net force of zero", SMOOTH, ("q2", "q3", "v2"),
        pair(FLOOR, SHAPES["box"], "0 0 .1245", more=contact("netforce")),
        {"qvel": [0.0, 0.0, 3.0]}),
    Tie("strongest of four equal contacts", "order of contacts", SMOOTH, ("q2", "v2"),
        pair(FLOOR, SHAPES["box"], "0 0 .1245", more=contact("maxforce"))),

    Tie("site beside a camera", "site beside a camera", RAISES, (), camera("", "-.1 .2 0")),
    Tie("camera above its target", "camera at its target", RAISES, (),
        camera('mode="targetbody" target="b"', "0 0 -1")),
    Tie("camera at its target", "camera at its target", RAISES, (),
        camera('mode="targetbody" target="b"', "0 0 0")),
    *(Tie(f"{kind} of spheres that just touch", "distance of zero", RAISES, (),
          pair(f"{BALL} {BESIDE}", f"{BALL} {BESIDE}", "0 0 .25", more=ZERO.format(kind)))
      for kind in ("distance", "normal", "fromto")),
)  # fmt: skip
