"""Ties of motors, servos and implicit integrators."""

from math import pi

import mujoco

from tests.ties.actuators import slider, tendon
from tests.ties.judge import AVERAGE, LEFT, RAISES, RIGHT, SMOOTH, Tie

IMPLICIT = 'integrator="implicitfast"'
# before 4.0, the implicit integrators use only the force ranges of actuators
SINCE_4 = RIGHT if mujoco.mj_version() >= 4000000 else LEFT
SERVO = '<position joint="j" kp="4" kv="3" {}/>'
MOTOR = '<dcmotor joint="j" motorconst=".5" resistance="1" {}/>'
SUPPLY = MOTOR.format('input="pos" controller="2 0 .5 0 0 1"')
CURRENT = MOTOR.format('inductance="0 .01" saturation="0 0 5"')
BRISTLE = MOTOR.format('lugre="20 .3 .2 .4 .5"')
SLEW = MOTOR.format('input="pos" controller="3 0 .4 125"')
INTEGRAL = MOTOR.format('input="pos" controller="3 2 .4 0 .5"')
PASSIVE = """<muscle joint="j" timeconst=".01 .06" lengthrange="0 1" range=".5 1.5" force="3"
  lmin=".5" lmax="1.5" vmax="2" fpmax="1.3" fvmax="1.25"/>"""
CRANK = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <site name="slider" zaxis="1 0 0"/>
    <body><joint axis="0 0 1"/><geom size=".1"/><site name="crank" pos="0 .5 0"/></body>
  </worldbody>
  <actuator><motor cranksite="crank" slidersite="slider" cranklength=".5"/></actuator>
</mujoco>"""
FLUID = """
<mujoco>
  <option timestep=".002" density="900" viscosity=".3" gravity="9 9 -9" integrator="implicit"/>
  <worldbody>
    <body><freejoint/><geom type="box" size=".1 .2 .3" fluidshape="{}"/></body>
  </worldbody>
</mujoco>"""


def wrist(actuator: str = "", *, joint: str = "", option: str = "") -> str:
    """Return a box on a ball joint with an actuator."""
    return f"""
    <mujoco>
      <option timestep=".002" gravity="0 0 0" {option}/>
      <worldbody>
        <body><joint name="j" type="ball" {joint}/>
          <geom type="box" size=".1 .2 .3" contype="0"/></body>
      </worldbody>
      <actuator>{actuator}</actuator>
    </mujoco>"""


def falling(joint: str, integrator: str, other: str = "") -> str:
    """Return a mass at rest on a slide joint along gravity."""
    xml = slider(joint=joint, option=f'integrator="{integrator}"', other=other)
    return xml.replace('gravity="0 0 0"', 'gravity="9 0 0"')


ORIENTATION = '<orientation joint="j" kp="4" kv="1" {}/>'
LIMITED = ORIENTATION.format('forcerange="0 2"')
INTEGRATED = """<general joint="j" dyntype="integrator" gaintype="so3" biastype="so3" gainprm="4"
  biasprm="0 -4 -.5"/>"""
TENDON_DAMPING = '<tendon><fixed damping="3 2 1"><joint joint="j" coef="1"/></fixed></tendon>'
HALF = [0.0, 1.0, 0.0, 0.0]
TIES = (
    # the step jumps toward the inside of the range, so the outside counts
    Tie("servo at its force range, implicit", "force range, implicit", RIGHT, ("u0",),
        slider(SERVO.format('forcerange="-2 2"'), option=IMPLICIT), {"ctrl": [0.5]}),
    Tie("servo at its lower force range, implicit", "force range, implicit", LEFT, ("u0",),
        slider(SERVO.format('forcerange="-2 2"'), option=IMPLICIT), {"ctrl": [-0.5]}),
    Tie("servo at the force range of its joint, implicit", "joint force range, implicit", SINCE_4,
        ("u0",), slider(SERVO.format(""), joint='actuatorfrcrange="-2 2"', option=IMPLICIT),
        {"ctrl": [0.5]}),
    Tie("servo at the force range of its tendon, implicit", "tendon force range, implicit",
        SINCE_4, ("u0",),
        tendon('actuatorfrcrange="-2 2"', SERVO.format("").replace("joint", "tendon")
               .replace('"j"', '"t"')).replace('timestep', IMPLICIT + " timestep"),
        {"ctrl": [0.5]}),
    Tie("orientation servo at its torque, implicit", "torque of an orientation servo, implicit",
        RIGHT, ("u0",), wrist(LIMITED, option=IMPLICIT), {"ctrl": [0.5, 0.0, 0.0]}),
    Tie("supply of a motor, implicit", "limits of a motor, implicit", SINCE_4, ("u0",),
        slider(SUPPLY, option=IMPLICIT), {"ctrl": [0.25]}),
    Tie("current of a motor at its rate, implicit", "limits of a motor, implicit", SINCE_4,
        ("u0",), slider(CURRENT, option=IMPLICIT), {"ctrl": [0.05]}),

    Tie("orientation servo at its torque", "torque of an orientation servo", LEFT, ("u0",),
        wrist(LIMITED), {"ctrl": [0.5, 0.0, 0.0]}),
    Tie("supply of a motor", "supply of a motor", LEFT, ("u0",), slider(SUPPLY),
        {"ctrl": [0.25]}),
    Tie("current of a motor at its rate", "rate of a current", LEFT, ("u0",), slider(CURRENT),
        {"ctrl": [0.05]}),
    Tie("straight bristle at rest", "bristle at rest", SMOOTH, ("v0", "act0"), slider(BRISTLE)),
    Tie("bent bristle at rest", "bristle at rest", AVERAGE, ("v0",), slider(BRISTLE),
        {"act": [0.01]}),
    Tie("setpoint of a motor at its greatest speed", "slew rate", LEFT, ("u0",), slider(SLEW),
        {"ctrl": [0.25]}),
    Tie("setpoint of a motor at its least speed", "slew rate, falling", RIGHT, ("u0",),
        slider(SLEW), {"ctrl": [-0.25]}),
    Tie("integral of a motor at its limit", "integral of a motor", LEFT, ("u0", "act0"),
        slider(INTEGRAL), {"act": [0.5]}),
    Tie("integral of a motor at its lower limit", "windup", RIGHT, ("u0", "act0"),
        slider(INTEGRAL), {"act": [-0.5]}),

    Tie("servo half a turn from its setpoint", "setpoint half a turn away", RIGHT, ("u0",),
        wrist('<position joint="j" gear="1 0 0" kp="5"/>'), {"ctrl": [pi]}),
    Tie("controller half a turn from its setpoint", "setpoint half a turn away", RIGHT, ("u0",),
        wrist('<pid joint="j" gear="1 0 0" kp="5" kv=".6" ki="3" imax=".3"/>'), {"ctrl": [pi]}),
    Tie("orientation servo at its setpoint", "no rotation", SMOOTH, ("u0", "u1", "q0", "q1"),
        wrist(ORIENTATION.format(""))),
    Tie("setpoint of a zero quaternion", "setpoint of a zero quaternion", SMOOTH, ("u0",),
        wrist(ORIENTATION.format('input="quat"'))),
    Tie("activation of half a turn", "activation of half a turn", LEFT, ("act0",),
        wrist(INTEGRATED), {"act": [pi, 0.0, 0.0]}),
    Tie("spring half a turn from rest", "half a turn", LEFT, ("q0",), wrist(joint='stiffness="3"'),
        {"qpos": HALF}),
    Tie("spring half a turn from rest, across", "half a turn", SMOOTH, ("q1", "q2", "v0"),
        wrist(joint='stiffness="3"'), {"qpos": HALF}),
    Tie("spring of a ball joint at rest, discrete", "ball spring at rest in the metric", SMOOTH,
        ("q0", "q1", "q2", "v0"), wrist(joint='stiffness="3 2 1"', option='integrator="discrete"')),

    Tie("passive force at the optimum length", "start of passive force", SMOOTH, ("q0",),
        slider(PASSIVE), {"qpos": [0.5], "ctrl": [0.7], "act": [0.4]}),
    Tie("passive force at its knee", "knee of passive force", SMOOTH, ("q0",), slider(PASSIVE),
        {"qpos": [0.75], "ctrl": [0.7], "act": [0.4]}),
    Tie("rod that just reaches the axis of a slider", "rod of a crank", RAISES, (), CRANK,
        {"ctrl": [1.0]}),
    Tie("joint damping at rest", "joint damping at rest", SMOOTH, ("v0",),
        falling('damping="3 2 1"', "RK4")),
    Tie("joint damping at rest, implicit", "joint damping at rest, implicit", AVERAGE, ("v0",),
        falling('damping="3 20 1"', "implicit")),
    Tie("tendon damping at rest, implicit", "joint damping at rest, implicit", AVERAGE, ("v0",),
        falling("", "implicit", TENDON_DAMPING.replace("3 2 1", "3 20 1"))),
    *(Tie(f"falling body at rest in a fluid, {shape}", tie, AVERAGE, ("v2",), FLUID.format(shape))
      for shape, tie in (("none", "rest in the metric of a fluid"),
                         ("ellipsoid", "body at rest in a fluid"))),
    Tie("damping without slope, discrete", "sign of joint damping in the metric", RIGHT,
        ("v0",), falling('damping="1 -2 0"', "discrete"), {"qvel": [0.25]}),
    Tie("spring without slope, discrete", "sign of a spring in the metric", SMOOTH,
        ("q0", "v0"), falling('stiffness="1 -2 0"', "discrete"), {"qpos": [0.25]}),
    Tie("tendon damping without slope, discrete", "sign of a slope in the metric", RIGHT,
        ("v0",), falling("", "discrete", TENDON_DAMPING.replace("3 2 1", "1 -2 0")),
        {"qvel": [0.25]}),
)  # fmt: skip
