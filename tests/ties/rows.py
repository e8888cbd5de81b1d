"""Ties of constraint rows and their parameters."""

from tests.ties.judge import AVERAGE, LEFT, RIGHT, SMOOTH, Tie

DEPTH = 2.0**-10  # m: a power of two, so that widths and depths are equal without rounding
LIMIT = """
<mujoco>
  <option timestep=".002"/>
  <worldbody>
    <body><joint name="j" type="slide" axis="1 0 0" {}/><geom size=".1"/></body>
  </worldbody>
  <tendon><fixed name="t" {}><joint joint="j" coef="1.5"/></fixed></tendon>
  <sensor>{}</sensor>
</mujoco>"""
RANGE = 'limited="true" range="-.125 .125"'
OF_JOINT = '<jointlimitpos joint="j"/><jointlimitvel joint="j"/><jointlimitfrc joint="j"/>'
OF_TENDON = OF_JOINT.replace("joint=", "tendon=").replace("jointl", "tendonl").replace('"j"', '"t"')
BOTH = LIMIT.format(f'{RANGE} margin=".25"', "", OF_JOINT)
BOTH_TENDON = LIMIT.format("", f'{RANGE} margin=".25"', OF_TENDON)
MAX = "larger of two parameters"


def ball(solver: str = "", *, floor: str = "", depth: float = DEPTH, cone: str = "elliptic") -> str:
    """Return a ball in a floor, both with these solver parameters."""
    return f"""
    <mujoco>
      <option timestep=".002" cone="{cone}"/>
      <worldbody>
        <geom name="floor" type="plane" size="5 5 1" {solver} {floor}/>
        <body pos="0 0 {0.125 - depth!r}">
          <freejoint/>
          <geom name="ball" size=".125" {solver}/>
        </body>
      </worldbody>
    </mujoco>"""


def both(field: str, component: int) -> tuple[tuple[str, str, int], ...]:
    """Return the same parameter of the ball and the floor."""
    return (field, "ball", component), (field, "floor", component)


def parameter(
    name: str,
    tie: str,
    rule: str,
    field: str,
    component: int,
    xml: str,
    slip: float = 0.6,
    spin: float = 0.1,
    only: str = "",
) -> Tie:
    """Return the ball sliding and sinking, with a parameter of both geoms or of one."""
    state = {"qvel": [slip, 0.1, -0.1, 0.2, 8 * slip, spin]}
    along = tuple(entry for entry in both(field, component) if only in entry[1])
    return Tie(name, tie, rule, along, xml, state)


def weld(solimp: str) -> str:
    """Return a heavy body held by a joint equality without residual."""
    return f"""
    <mujoco>
      <option timestep=".002"/>
      <worldbody>
        <body><joint name="j" type="slide" axis="0 0 1"/><geom size=".1"/></body>
      </worldbody>
      <equality><joint joint1="j" polycoef="0 0 0 0 0" solimp="{solimp}"/></equality>
    </mujoco>"""


def sinking(name: str, rule: str, along: tuple[str, ...], solimp: str) -> Tie:
    """Return the ball at a breakpoint of its impedance."""
    state = {"qvel": [0.6, 0.1, -0.1, 0.2, 0.3, 0.1]}
    return Tie(name, "impedance", rule, along,
               ball(f'solimp="{solimp}"'), state)  # fmt: skip


# k imp h^2 = 1 with k = 131072 / .5^2, imp = .5, h = 2^-9
RESOLVED = LIMIT.format(
    RANGE + ' solreflimit="-131072 -100" solimplimit=".5 .5 .01"', "", ""
).replace('timestep=".002"', f'timestep="{2.0**-9!r}" integrator="discrete"')
FLAT = 'solimp=".8 .8 .01"'
SAFE = 'solref=".004 1"'
TIES = (
    Tie("both limits of a joint at mid-range", "side of a limit", SMOOTH, ("q0", "v0"), BOTH,
        {"qvel": [0.1]}),
    Tie("both limits of a tendon at mid-range", "side of a limit", SMOOTH, ("q0", "v0"),
        BOTH_TENDON, {"qvel": [0.1]}),
    Tie("range of a joint at mid-range", "side of a limit as a parameter", SMOOTH,
        (("jnt_range", "j", 0), ("jnt_range", "j", 1)),
        LIMIT.format(f'{RANGE} margin=".25"', "", ""), {"qvel": [0.1]}),
    Tie("upper limit just reached", "row of MuJoCo", LEFT, ("q0",),
        LIMIT.format(RANGE, "", OF_JOINT),
        {"qpos": [0.125], "qvel": [0.1]}),
    Tie("lower limit just reached", "row of MuJoCo", RIGHT, ("q0",),
        LIMIT.format(RANGE, "", OF_JOINT),
        {"qpos": [-0.125], "qvel": [-0.1]}),
    Tie("solref of a limit at two timesteps", "solref of two timesteps", AVERAGE,
        (("jnt_solref", "j", 0),), LIMIT.format(RANGE + ' solreflimit=".004 1"', "", ""),
        {"qpos": [0.14], "qvel": [0.1]}),
    Tie("dry friction at rest", "bound of dry friction", SMOOTH, ("q0", "v0"),
        LIMIT.format('frictionloss=".3"', "", "")),
    Tie("stiffest spring that the timestep resolves", "stiffest resolved spring", SMOOTH,
        ("q0", "v0"), RESOLVED, {"qpos": [0.14], "qvel": [0.1]}),
    sinking("impedance saturated", SMOOTH, ("q2", "v2"), f".5 .9 {DEPTH!r} .5 2"),
    sinking("impedance at its midpoint", SMOOTH, ("q2", "v2"), f".5 .9 {2 * DEPTH!r} .5 2"),
    sinking("straight impedance saturated", LEFT, ("q2",), f".5 .9 {DEPTH!r} .5 1"),
    Tie("equality without residual", "impedance", SMOOTH, ("q0", "v0"),
        weld(".5 .9 .01 .5 2"), {}),
    Tie("equality without residual, straight impedance", "impedance", AVERAGE, ("q0",),
        weld(".5 .9 .01 .5 1")),
    *(parameter(f"flat solimp, component {k}", "midpoint of solimp", SMOOTH, "geom_solimp", k,
                ball(FLAT)) for k in range(5)),
    *(parameter(f"solimp at its midpoint, component {k}", "midpoint of solimp", SMOOTH,
                "geom_solimp", k, ball(f'solimp=".5 .9 {2 * DEPTH!r} .5 3"')) for k in range(5)),
    *(parameter(f"solimp saturated, component {k}", "saturated solimp", SMOOTH, "geom_solimp", k,
                ball(f'solimp=".5 .9 {DEPTH!r} .5 3"')) for k in range(2)),
    parameter("sliding friction of equal geoms, ellipse", MAX, AVERAGE, "geom_friction", 0,
              ball('friction=".4 .01 .02" condim="6"')),
    parameter("torsional friction of equal geoms, ellipse", MAX, AVERAGE, "geom_friction", 1,
              ball('friction=".4 .01 .02" condim="6"')),
    parameter("rolling friction of equal geoms, ellipse", MAX, AVERAGE, "geom_friction", 2,
              ball('friction=".4 .01 .02" condim="6"')),
    *(parameter(f"friction of equal geoms, pyramid, component {k}", MAX, AVERAGE,
                "geom_friction", k,
                ball('friction=".4 .01 .02" condim="6"', cone="pyramidal"), slip=slip, spin=spin)
      for k, slip, spin in ((0, 0.6, 0.1), (1, 0.01, 3.0), (2, 0.01, 0.1))),
    parameter("friction at the least", "least friction", RIGHT, "geom_friction", 0,
              ball('friction="1e-5 0 0"').replace("1e-5", "1e-6", 1), only="ball"),
    parameter("greatest impedance at its greatest", "range of solimp", LEFT, "geom_solimp", 1,
              ball('solimp=".5 .9999 .01"')),
    parameter("least impedance at its least", "range of solimp", RIGHT, "geom_solimp", 0,
              ball('solimp=".0001 .9 .01"')),
    parameter("power of one", "range of solimp", RIGHT, "geom_solimp", 4,
              ball(f'solimp=".5 .9 {3 * DEPTH!r} .5 1"')),
    parameter("solref of mixed signs", "solref of mixed signs", SMOOTH, "geom_solref", 0,
              ball('solref=".02 -1"')),
    *(parameter(f"solimp without width, component {k}", "width of solimp", SMOOTH, "geom_solimp", k,
                ball('solimp=".5 .9 0"')) for k in range(2)),
    parameter("friction below the least", "least friction", SMOOTH, "geom_friction", 0,
              ball('friction="5e-6 0 0"')),
    parameter("solref of equal geoms", "format of solref", SMOOTH, "geom_solref", 0,
              ball('solref=".02 1"')),
    *(parameter(f"direct solref of equal geoms, component {k}", MAX,
                AVERAGE, "geom_solref", k, ball('solref="-900 -60"')) for k in range(2)),
    parameter("solref of a contact at two timesteps", "solref of two timesteps", AVERAGE,
              "geom_solref", 0, ball(SAFE)),
    parameter("solimp of equal geoms", "solmix", SMOOTH, "geom_solimp", 1, ball()),
)  # fmt: skip
