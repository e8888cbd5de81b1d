"""Ties of tendons that wrap around geoms."""

from tests.ties.judge import LEFT, RAISES, RIGHT, SMOOTH, Tie

SHAPES = {"sphere": 'type="sphere" size=".25"', "cylinder": 'type="cylinder" size=".25 1"'}


def wrap(shape: str, first: str, second: str, side: str = "0 0 .5") -> str:
    """Return a tendon around a geom at the origin, from a fixed site to one that slides."""
    sites = f'<site name="side" pos="{side}"/>' if side else ""
    sidesite = 'sidesite="side"' if side else ""
    return f"""
    <mujoco>
      <option timestep=".002" gravity="0 0 0"/>
      <worldbody>
        <site name="a" pos="{first}"/>{sites}<geom name="s" {SHAPES[shape]} contype="0"/>
        <body pos="{second}">
          <joint type="slide" axis="0 0 1"/>
          <joint type="slide" axis="1 0 0"/>
          <joint type="slide" axis="0 1 0"/>
          <geom size=".05" contype="0"/><site name="b"/>
        </body>
      </worldbody>
      <tendon><spatial name="t" stiffness="90" springlength=".3">
        <site site="a"/><geom geom="s" {sidesite}/><site site="b"/>
      </spatial></tendon>
    </mujoco>"""


ALL = ("q0", "q1", "q2")
TOUCH = "tendon that touches a geom"
TIES = (
    Tie("tendon that just touches a sphere", TOUCH, RIGHT, ("q0",),
        wrap("sphere", "-.5 0 .25", ".5 0 .25")),
    Tie("tendon that just touches a sphere without a side", TOUCH, RIGHT, ("q0",),
        wrap("sphere", "-.5 0 .25", ".5 0 .25", side="")),
    Tie("tendon that just touches a cylinder without a side", TOUCH, LEFT, ("q2",),
        wrap("cylinder", "-.5 .25 0", ".5 .25 0", side="")),
    Tie("sites opposite one another around a cylinder", "wrap of opposite sites", SMOOTH, ALL,
        wrap("cylinder", "-.5 0 0", ".5 0 0", side="0 .5 0")),
    Tie("sites opposite one another around a cylinder without a side", "wrap of opposite sites",
        LEFT, ("q2",), wrap("cylinder", "-.5 0 0", ".5 0 0", side="")),
    Tie("sites opposite one another inside a cylinder", "inside wrap of opposite sites", SMOOTH,
        ALL, wrap("cylinder", "-.5 0 0", ".5 0 0", side="0 .1 0")),
    Tie("sites on one ray from the axis", "inside wrap of opposite sites", SMOOTH,
        ("q0", "q1"), wrap("cylinder", "-.5 0 0", "-.6 0 0", side="0 .1 0")),
    *(Tie(f"sites opposite one another around a sphere{name}", "plane of a wrap", RAISES, (),
          wrap("sphere", "-.5 .1 0", ".5 -.1 0", side=side))
      for name, side in (("", "0 0 .5"), (" without a side", ""))),
    *(Tie(f"site on the surface of a {shape}", "tendon of no length", RAISES, (),
          wrap(shape, "-.25 0 0", ".5 0 .1")) for shape in SHAPES),
    Tie("sites at one place beside a sphere", "tendon of no length", RAISES, (),
        wrap("sphere", "-.5 0 0", "-.5 0 0")),
)  # fmt: skip
