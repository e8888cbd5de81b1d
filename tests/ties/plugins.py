"""Ties of plugins."""

from tests.ties.actuators import slider
from tests.ties.judge import LEFT, RIGHT, SMOOTH, Tie

EXTENSION = """<extension><plugin plugin="mujoco.pid"><instance name="i">
  <config key="kp" value="4"/><config key="ki" value="2"/>{}</instance></plugin></extension>"""
SLEW = EXTENSION.format('<config key="slewmax" value="125"/>')
INTEGRAL = EXTENSION.format('<config key="imax" value="1"/>')

# a ball under a site, with the contact exactly between two bins
GRID = """
<mujoco>
  <extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>
  <worldbody>
    <geom type="plane" size="5 5 1"/><site name="eye" pos="0 0 .5"/>
    <body pos="0 0 .124"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
      <geom size=".125"/></body>
  </worldbody>
  <sensor>
    <plugin plugin="mujoco.sensor.touch_grid" objtype="site" objname="eye">
      <config key="size" value="2 1"/><config key="fov" value="90 45"/>
      <config key="gamma" value="0"/><config key="nchannel" value="3"/>
    </plugin>
  </sensor>
</mujoco>"""


def servo(extension: str, *, acts: int, more: str = "") -> str:
    """Return a mass on a slide joint with an instance of mujoco.pid."""
    plugin = f'<plugin joint="j" plugin="mujoco.pid" instance="i" actdim="{acts}" {more}/>'
    return slider(plugin).replace("<worldbody>", f"{extension}<worldbody>", 1)


TIES = (
    Tie("setpoint of a plugin at its greatest speed", "slew rate of a plugin", LEFT, ("u0",),
        servo(SLEW, acts=2), {"ctrl": [0.25], "time": [1.0]}),
    Tie("setpoint of a plugin at its least speed", "slew rate of a plugin, falling", RIGHT,
        ("u0",), servo(SLEW, acts=2), {"ctrl": [-0.25], "time": [1.0]}),
    Tie("integral of a plugin at its limit", "integral of a plugin", LEFT, ("u0", "act0"),
        servo(INTEGRAL, acts=1), {"act": [0.5]}),
    Tie("contact between two bins of a grid", "edge of a bin", LEFT, ("q0",), GRID),
    Tie("contact that stays between two bins", "edge of a bin", SMOOTH, ("q1", "v0", "v1"), GRID),
    Tie("control of a plugin at its limit", "control range of a plugin", LEFT, ("u0",),
        servo(INTEGRAL, acts=1, more='ctrllimited="true" ctrlrange="-.5 .5"'), {"ctrl": [0.5]}),
)  # fmt: skip
