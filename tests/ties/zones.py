"""Ties of constraint forces: zones of the friction cone, bounds of dry friction, inactive rows."""

from collections.abc import Callable

import mujoco
import numpy as np

from mujacobian import reference
from tests.ties.judge import LEFT, ONE_SIDE, RAISES, RIGHT, SMOOTH, Tie
from tests.ties.rows import LIMIT, RANGE, ball
from tests.ties.sensors import SITES

ELLIPTIC = ball('friction=".4 .01 .02"')
FRICTIONLESS = ball('condim="1"')
PYRAMID = ball('friction=".4 .01 .02"', cone="pyramidal")
BOUND = LIMIT.format('frictionloss=".25"', "", "")
TWO = """
<mujoco>
  <option timestep=".002" gravity="0 0 0"/>
  <worldbody>
    <body><joint type="slide" axis="1 0 0" stiffness="9"/><geom size=".125" condim="1"/></body>
    <body pos=".2495 0 0"><joint type="slide" axis="1 0 0" damping="2"/>
      <geom size=".125" condim="1"/></body>
  </worldbody>
</mujoco>"""
NOSLIP = 'noslip_iterations="300" noslip_tolerance="0"'
DISCRETE = LIMIT.replace('timestep=".002"', 'timestep=".01" integrator="discrete"')
CAPPED = DISCRETE.format(RANGE + ' solreflimit="-1e4 -51975" solimplimit=".9 .99 .02"', "", "")
DAMPED = DISCRETE.format(RANGE + ' solreflimit="1e-5 100" solimplimit=".9 .99 .02"', "", "")
BALL_LIMIT = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body><joint name="j" type="ball" limited="true" {}/>
      <geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>
  </worldbody>
</mujoco>"""


def boundary(
    xml: str, field: str, index: int, low: float, high: float, state: dict[str, list[float]],
    measure: Callable[[mujoco.MjData], float],
) -> dict[str, list[float]]:  # fmt: skip
    """Return the state with a value of a field at which `measure` changes its sign."""
    model = reference.converge(mujoco.MjModel.from_xml_string(xml))
    start = {name: list(values) for name, values in state.items()}
    values = start[field]

    def sign(x: float) -> bool:
        values[index] = x
        data = mujoco.MjData(model)
        for name, numbers in start.items():
            getattr(data, name)[: len(numbers)] = numbers
        mujoco.mj_forward(model, data)
        return measure(data) > 0

    below = sign(low)
    assert sign(high) != below
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if sign(middle) == below else (low, middle)
    values[index] = low
    return start


LEAST_RATIO = 0.0001 / 0.9999  # (1 - imp) / imp of the largest impedance


def slack(data: mujoco.MjData) -> float:
    """Return the margin of a sliding contact in its cone, which is zero where sliding begins."""
    normal, friction = data.efc_force[0], data.efc_force[1:3] / 0.4
    return float(normal * (1 - 1e-9) - np.hypot(*friction))


def pressing(data: mujoco.MjData) -> float:
    """Return the total force of the rows, minus the smallest force that counts."""
    return float(abs(data.efc_force).sum() - 1e-9)


def second_edge(data: mujoco.MjData) -> float:
    """Return the force of one edge of a pyramid, minus the smallest force that counts."""
    return float(data.efc_force[1] - 1e-9)


def bound(data: mujoco.MjData) -> float:
    """Return the distance of dry friction from its bound."""
    return float(0.25 * (1 - 1e-12) - abs(data.efc_force[0]))


def uncapped(data: mujoco.MjData) -> float:
    """Return the distance of the diagonal of the discrete integrator from its bound."""
    stiffness, damping, impedance, _ = data.efc_KBIP[0]
    factor = 1 + 0.01 * damping + 1e-4 * stiffness * impedance
    return float((1 - impedance) / (impedance * factor) - LEAST_RATIO * (1 + 1e-9))


def below_most(data: mujoco.MjData) -> float:
    """Return the distance of the damping of a resolved spring from its bound."""
    _, damping, impedance, _ = data.efc_KBIP[0]
    most = ((1 - impedance) / (LEAST_RATIO * impedance) - 2) / 0.01
    return float(most * (1 - 1e-9) - damping)


SLIDING = {"qvel": [0.5, 0.0, 0.0, 0.0, 0.0, 0.0]}
RISING = {"qvel": [0.01, 0.0, 0.5, 0.0, 0.0, 0.0]}
LIMITED = LIMIT.format(RANGE, "", "")
# the state is in the zone with more force, by less than 1e-9 of the force
STICKS = boundary(ELLIPTIC, "qvel", 0, 0.0, 2.0, SLIDING, slack)
SLIDES = boundary(ELLIPTIC, "qvel", 2, 0.0, 2.0, RISING, pressing)
PRESSES = boundary(FRICTIONLESS, "qvel", 2, 0.0, 2.0, RISING, pressing)
HOLDS = boundary(LIMITED, "qvel", 0, 0.0, -2.0, {"qpos": [0.13], "qvel": [0.0]}, pressing)
EDGE = boundary(PYRAMID, "qvel", 0, 0.0, -2.0, SLIDING, second_edge)
CREEPS = boundary(BOUND, "qvel", 0, 0.0, 1.0, {"qvel": [0.01]}, bound)
SINKS = {"qpos": [0.0], "qvel": [0.1]}
RUBBED = BOUND.replace("<option", f"<option {NOSLIP}")
RUBBING = boundary(RUBBED, "qvel", 0, 0.0, 1.0, {"qvel": [0.01]}, bound)
GRIPPED = ELLIPTIC.replace("<option", f"<option {NOSLIP}")
GRIPPING = boundary(GRIPPED, "qvel", 0, 0.0, 2.0, SLIDING, slack)
TIES = (
    Tie("noslip friction at its bound", "noslip and the bound of dry friction", LEFT, ("v0",),
        RUBBED, RUBBING),
    Tie("noslip contact that begins to slide", "noslip and the cone", LEFT, ("v0",), GRIPPED,
        GRIPPING),
    Tie("discrete diagonal at its bound", "cap of the discrete diagonal", LEFT, ("q0",), CAPPED,
        boundary(CAPPED, "qpos", 0, 0.13, 0.14, SINKS, uncapped)),
    Tie("damping of a resolved spring at its bound", "greatest damping of a resolved spring", LEFT,
        ("q0",), DAMPED, boundary(DAMPED, "qpos", 0, 0.13, 0.145, SINKS, below_most)),
    Tie("contact that begins to slide", "cone and sticking", LEFT, ("v0",), ELLIPTIC, STICKS),
    Tie("contact that begins to roll", "cone and sticking", RIGHT, ("v4",), ELLIPTIC, STICKS),
    Tie("sliding contact that loses its force", "cone and no force", LEFT, ("v2",), ELLIPTIC,
        SLIDES),
    Tie("contact without friction that loses its force", "row without force", LEFT, ("q2", "v2"),
        FRICTIONLESS, PRESSES),
    Tie("limit that loses its force", "row without force", RIGHT, ("q0", "v0"), LIMITED, HOLDS),
    Tie("edge of a pyramid that loses its force", "edge of a pyramid", RIGHT, ("v0",), PYRAMID,
        EDGE),
    Tie("solimp where an edge of a pyramid loses its force", "edge of a pyramid as a parameter",
        ONE_SIDE, (("geom_solimp", "ball", 1),), PYRAMID, EDGE),
    Tie("dry friction at its bound", "bound of dry friction", LEFT, ("v0",), BOUND, CREEPS),
    Tie("two bodies whose contact has no force", "row without force", SMOOTH,
        ("q0", "q1", "v0", "v1"), TWO, {"qvel": [-0.3, 0.5]}),
    *(Tie(f"ball joint without rotation, {name}", tie, RAISES, (), BALL_LIMIT.format(limit),
          {"qvel": [0.1, 0.2, 0.3]})
      for name, tie, limit in (
          ("range of zero", "ball limit at its margin", 'range="0 0"'),
          ("range equal to the margin", "ball limit at its margin", 'range="0 .5" margin=".5"'),
          ("range below the margin", "axis of a ball limit", 'range="0 .4" margin=".5"'))),
    Tie("ball joint without rotation, range above the margin", "ball limit at its margin", SMOOTH,
        ("q0", "q1", "q2", "v0"), BALL_LIMIT.format('range="0 .6" margin=".5"'),
        {"qvel": [0.1, 0.2, 0.3]}),
    Tie("both limits of a joint at their margin", "both limits at their margin", RAISES, (),
        LIMIT.format(RANGE + ' margin=".125"', "", "")),
    Tie("both limits of a tendon at their margin", "both limits at their margin", RAISES, (),
        LIMIT.format("", RANGE + ' margin=".125"', "")),
    Tie("limit of a tendon of no length", "tendon of no length", RAISES, (),
        SITES.format('limited="true" range="-1 0"')),
)  # fmt: skip
