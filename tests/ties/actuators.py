"""Ties of actuators, muscles, tendons and springs."""

from tests.ties.judge import AVERAGE, LEFT, RIGHT, SMOOTH, Tie

SLIDE = '<joint name="j" type="slide" axis="1 0 0" {joint}/><geom size=".1" mass="1"/>'


def slider(actuator: str = "", *, joint: str = "", other: str = "", option: str = "") -> str:
    """Return a mass on a slide joint with an actuator."""
    return f"""
    <mujoco>
      <option timestep=".002" gravity="0 0 0" {option}/>
      <worldbody><body name="b">{SLIDE.format(joint=joint)}<site name="s"/></body></worldbody>
      <actuator>{actuator}</actuator>
      {other}
    </mujoco>"""


def tendon(spatial: str = "", actuator: str = "", other: str = "") -> str:
    """Return the slider with a fixed tendon as long as its position."""
    fixed = f'<tendon><fixed name="t" {spatial}><joint joint="j" coef="1"/></fixed></tendon>'
    return slider(actuator, other=fixed + other)


MUSCLE = '<muscle joint="j" timeconst=".01 .06" lengthrange="0 1" range=".5 1.5" {}/>'
SMOOTHED = slider(MUSCLE.format('tausmooth=".25"'))
CURVES = MUSCLE.format('force="3" lmin=".5" lmax="1.5" vmax="2" fpmax="1.3" fvmax="1.25"')
GENERAL = ".5 1.5 3 1 .5 1.5 2 1 1.2"  # gain and bias of a muscle


def muscle(
    name: str, rule: str, along: str, ctrl: float, act: float, *, tie: str = "settled muscle",
    more: str = "",
) -> Tie:  # fmt: skip
    """Return a muscle with a given control and activation."""
    return Tie(
        name, tie, rule, (along,), slider(MUSCLE.format(more)),
        {"qpos": [0.4], "ctrl": [ctrl], "act": [act]},
    )  # fmt: skip


def curve(name: str, tie: str, length: float, rate: float, option: str = "") -> Tie:
    """Return an active muscle at a breakpoint of its curves."""
    return Tie(
        name, tie, SMOOTH, ("q0", "v0"), slider(CURVES, option=option),
        {"qpos": [length], "qvel": [rate], "ctrl": [0.7], "act": [0.4]},
    )  # fmt: skip


LIMITED = '<motor joint="j" ctrlrange="-1 1"/>'
TIES = (
    Tie("control at its upper end", "control range", LEFT, ("u0",),
        slider(LIMITED), {"ctrl": [1.0]}),
    Tie("control at its lower end", "control range", RIGHT, ("u0",),
        slider(LIMITED), {"ctrl": [-1.0]}),
    Tie("activation at its upper end", "activation range", LEFT, ("act0", "u0"),
        slider('<intvelocity joint="j" kp="2" actrange="-1 1"/>'), {"act": [1.0]}),
    Tie("activation at its lower end", "activation range", RIGHT, ("act0", "u0"),
        slider('<intvelocity joint="j" kp="2" actrange="-1 1"/>'), {"act": [-1.0]}),
    Tie("force at its upper end", "force range",
        LEFT, ("u0",), slider('<motor joint="j" forcerange="-1 1"/>'), {"ctrl": [1.0]}),
    Tie("force at its lower end", "force range",
        RIGHT, ("u0",), slider('<motor joint="j" forcerange="-1 1"/>'), {"ctrl": [-1.0]}),
    Tie("joint force at its upper end", "joint force range",
        LEFT, ("u0",), slider('<motor joint="j"/>', joint='actuatorfrcrange="-1 1"'),
        {"ctrl": [1.0]}),
    Tie("tendon force at its upper end", "tendon force range",
        LEFT, ("u0",),
        tendon('actuatorfrcrange="-1 1"', '<motor tendon="t"/>'), {"ctrl": [1.0]}),
    muscle("muscle at rest, control", RIGHT, "u0", 0.0, 0.0, tie="least control of a muscle"),
    muscle("muscle at rest, activation", RIGHT, "act0", 0.0, 0.0),
    muscle("muscle settled, control", LEFT, "u0", 0.5, 0.5),
    muscle("muscle settled, activation", RIGHT, "act0", 0.5, 0.5),
    muscle("muscle fully active, control", LEFT, "u0", 1.0, 1.0),
    muscle("muscle fully active, activation", LEFT, "act0", 1.0, 1.0,
           tie="greatest activation of a muscle"),
    muscle("muscle at its least control", RIGHT, "u0", 0.25, 0.25,
           tie="least control of a muscle", more='ctrlrange=".25 1"'),
    Tie("muscle at its most activation", "greatest activation of a muscle", LEFT, ("act0",), slider(
        '<general joint="j" dyntype="muscle" gaintype="muscle" biastype="muscle" '
        f'dynprm=".01 .06 0" gainprm="{GENERAL}" biasprm="{GENERAL}" lengthrange="0 1" '
        'actrange="0 .75"/>'),
        {"qpos": [0.4], "ctrl": [0.75], "act": [0.75]}),
    Tie("smoothed muscle settled", "smoothed muscle", SMOOTH, ("u0", "act0"),
        SMOOTHED, {"qpos": [0.4], "ctrl": [0.5], "act": [0.5]}),
    Tie("smoothed muscle where smoothing ends", "end of smoothing",
        SMOOTH, ("u0", "act0"), SMOOTHED, {"qpos": [0.4], "ctrl": [0.625], "act": [0.5]}),
    Tie("smoothed muscle where smoothing begins", "start of smoothing",
        SMOOTH, ("u0", "act0"), SMOOTHED, {"qpos": [0.4], "ctrl": [0.375], "act": [0.5]}),
    curve("muscle at its least length", "lengths of a muscle", 0.0, 0.1),
    curve("muscle half way to its optimum", "muscle half way to its optimum", 0.25, 0.1),
    curve("muscle at its optimum length", "optimum length of a muscle", 0.5, 0.1),
    curve("muscle half way from its optimum", "muscle half way from its optimum", 0.75, 0.1),
    curve("muscle at its greatest length", "lengths of a muscle", 1.0, 0.1),
    curve("muscle at its greatest speed", "greatest speed of a muscle", 0.6, -2.0),
    curve("muscle without speed", "muscle without speed", 0.6, 0.0),
    curve("muscle where it pulls most", "greatest pull of a muscle", 0.6, 0.5),
    Tie("spring at the upper end of its dead band", "dead band", LEFT, ("q0",),
        tendon('stiffness="300" springlength=".125 .25"'), {"qpos": [0.25]}),
    Tie("spring at the lower end of its dead band", "dead band", RIGHT, ("q0",),
        tendon('stiffness="300" springlength=".125 .25"'), {"qpos": [0.125]}),
    Tie("spring at its only rest length", "only rest length", SMOOTH, ("q0",),
        tendon('stiffness="300" springlength=".25"'), {"qpos": [0.25]}),
    Tie("rest length of a spring at rest", "only rest length as a parameter",
        AVERAGE, (("tendon_lengthspring", "t", 0), ("tendon_lengthspring", "t", 1)),
        tendon('stiffness="300" springlength=".25"'), {"qpos": [0.25]}),
    Tie("rest length at the upper end of a dead band", "dead band as a parameter", RIGHT,
        (("tendon_lengthspring", "t", 1),),
        tendon('stiffness="300" springlength=".125 .25"'), {"qpos": [0.25]}),
    Tie("rest length at the lower end of a dead band", "dead band as a parameter", LEFT,
        (("tendon_lengthspring", "t", 0),),
        tendon('stiffness="300" springlength=".125 .25"'), {"qpos": [0.125]}),
    Tie("damping without speed", "tendon damping at rest", SMOOTH, ("v0",),
        tendon('damping="3 2 1"'), {}),
    Tie("energy of a spring at the end of its dead band", "energy of a dead band", SMOOTH, ("q0",),
        slider(other='<tendon><fixed name="t" stiffness="1e-6" springlength=".125 .25">'
               '<joint joint="j" coef="1"/></fixed></tendon>'
               "<sensor><e_potential/></sensor>"), {"qpos": [0.25]}),
)  # fmt: skip
