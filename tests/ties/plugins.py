"""Ties of plugins."""

from tests.ties.actuators import slider
from tests.ties.judge import LEFT, RIGHT, Tie

EXTENSION = """<extension><plugin plugin="mujoco.pid"><instance name="i">
  <config key="kp" value="4"/><config key="ki" value="2"/>{}</instance></plugin></extension>"""
SLEW = EXTENSION.format('<config key="slewmax" value="125"/>')
INTEGRAL = EXTENSION.format('<config key="imax" value="1"/>')


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
    Tie("control of a plugin at its limit", "control range of a plugin", LEFT, ("u0",),
        servo(INTEGRAL, acts=1, more='ctrllimited="true" ctrlrange="-.5 .5"'), {"ctrl": [0.5]}),
)  # fmt: skip
