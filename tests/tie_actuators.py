"""Ties of actuators, muscles, tendons and springs."""

from tie_judge import AVERAGE, LEFT, RIGHT, SMOOTH, Tie

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
MUSCLE_FILE, CLAMP = "smooth/muscle.cc", "outside(x.v, range) ? Number(clamp(x.v, range)) : x"
EXCESS = "excess.v == 0 && prm[2] < kMinVal"
BAND = "length > upper ? length - upper : length < lower ? length - lower : 0"


def muscle(name: str, rule: str, along: str, ctrl: float, act: float, more: str = "") -> Tie:
    """Return a muscle whose control and activation are given."""
    return Tie(
        name, MUSCLE_FILE, EXCESS, rule, (along,), slider(MUSCLE.format(more)),
        {"qpos": [0.4], "ctrl": [ctrl], "act": [act]},
    )  # fmt: skip


def curve(name: str, comparison: str, length: float, rate: float, option: str = "") -> Tie:
    """Return an active muscle at a breakpoint of its curves."""
    return Tie(
        name, MUSCLE_FILE, comparison, SMOOTH, ("q0", "v0"), slider(CURVES, option=option),
        {"qpos": [length], "qvel": [rate], "ctrl": [0.7], "act": [0.4]},
    )  # fmt: skip


LIMITED = '<motor joint="j" ctrlrange="-1 1"/>'
CONTROL = "outside(value, range) ? 0.0 : 1.0"
TIES = (
    Tie("control at its upper end", "smooth/activation.cc", CONTROL, LEFT, ("u0",),
        slider(LIMITED), {"ctrl": [1.0]}),
    Tie("control at its lower end", "smooth/activation.cc", CONTROL, RIGHT, ("u0",),
        slider(LIMITED), {"ctrl": [-1.0]}),
    Tie("activation at its upper end", "smooth/number.h", CLAMP, LEFT, ("act0", "u0"),
        slider('<intvelocity joint="j" kp="2" actrange="-1 1"/>'), {"act": [1.0]}),
    Tie("activation at its lower end", "smooth/number.h", CLAMP, RIGHT, ("act0", "u0"),
        slider('<intvelocity joint="j" kp="2" actrange="-1 1"/>'), {"act": [-1.0]}),
    Tie("force at its upper end", "smooth/actuation.cc", "o.clamped = outside(o.force, range)",
        LEFT, ("u0",), slider('<motor joint="j" forcerange="-1 1"/>'), {"ctrl": [1.0]}),
    Tie("force at its lower end", "smooth/actuation.cc", "o.clamped = outside(o.force, range)",
        RIGHT, ("u0",), slider('<motor joint="j" forcerange="-1 1"/>'), {"ctrl": [-1.0]}),
    Tie("joint force at its upper end", "smooth/actuation.cc", "m.jnt_actfrcrange + 2 * id",
        LEFT, ("u0",), slider('<motor joint="j"/>', joint='actuatorfrcrange="-1 1"'),
        {"ctrl": [1.0]}),
    Tie("tendon force at its upper end", "smooth/actuation.cc",
        "outside(scaling[t].total, range)", LEFT, ("u0",),
        tendon('actuatorfrcrange="-1 1"', '<motor tendon="t"/>'), {"ctrl": [1.0]}),
    muscle("muscle at rest, control", RIGHT, "u0", 0.0, 0.0),
    muscle("muscle at rest, activation", RIGHT, "act0", 0.0, 0.0),
    muscle("muscle settled, control", LEFT, "u0", 0.5, 0.5),
    muscle("muscle settled, activation", RIGHT, "act0", 0.5, 0.5),
    muscle("muscle fully active, control", LEFT, "u0", 1.0, 1.0),
    muscle("muscle fully active, activation", LEFT, "act0", 1.0, 1.0),
    muscle("muscle at its least control", RIGHT, "u0", 0.25, 0.25, 'ctrlrange=".25 1"'),
    Tie("muscle at its most activation", MUSCLE_FILE, EXCESS, LEFT, ("act0",), slider(
        '<general joint="j" dyntype="muscle" gaintype="muscle" biastype="muscle" '
        f'dynprm=".01 .06 0" gainprm="{GENERAL}" biasprm="{GENERAL}" lengthrange="0 1" '
        'actrange="0 .75"/>'),
        {"qpos": [0.4], "ctrl": [0.75], "act": [0.75]}),
    Tie("smoothed muscle settled", MUSCLE_FILE, "prm[2] >= kMinVal", SMOOTH, ("u0", "act0"),
        SMOOTHED, {"qpos": [0.4], "ctrl": [0.5], "act": [0.5]}),
    Tie("smoothed muscle where smoothing ends", MUSCLE_FILE, "if (x >= 1) return {1, 0, 0}",
        SMOOTH, ("u0", "act0"), SMOOTHED, {"qpos": [0.4], "ctrl": [0.625], "act": [0.5]}),
    Tie("smoothed muscle where smoothing begins", MUSCLE_FILE, "if (x <= 0) return {0, 0, 0}",
        SMOOTH, ("u0", "act0"), SMOOTHED, {"qpos": [0.4], "ctrl": [0.375], "act": [0.5]}),
    curve("muscle at its least length", "lower <= l && l <= upper", 0.0, 0.1),
    curve("muscle half way to its optimum", "if (l <= left)", 0.25, 0.1),
    curve("muscle at its optimum length", "if (l <= 1) return parabola", 0.5, 0.1),
    curve("muscle half way from its optimum", "if (l <= right)", 0.75, 0.1),
    curve("muscle at its greatest length", "lower <= l && l <= upper", 1.0, 0.1),
    curve("muscle at its greatest speed", "if (v <= -1) return {0, 0, 0}", 0.6, -2.0),
    curve("muscle without speed", "if (v <= 0) return", 0.6, 0.0),
    curve("muscle where it pulls most", "if (v > y) return {most, 0, 0}", 0.6, 0.5),
    Tie("spring at the upper end of its dead band", "smooth/tendon.cc", BAND, LEFT, ("q0",),
        tendon('stiffness="300" springlength=".125 .25"'), {"qpos": [0.25]}),
    Tie("spring at the lower end of its dead band", "smooth/tendon.cc", BAND, RIGHT, ("q0",),
        tendon('stiffness="300" springlength=".125 .25"'), {"qpos": [0.125]}),
    Tie("spring at its only rest length", "smooth/tendon.cc", "lower < upper", SMOOTH, ("q0",),
        tendon('stiffness="300" springlength=".25"'), {"qpos": [0.25]}),
    Tie("rest length of a spring at rest", "adjoint/force_parameter.cc", "rest[0] == rest[1]",
        AVERAGE, (("tendon_lengthspring", "t", 0), ("tendon_lengthspring", "t", 1)),
        tendon('stiffness="300" springlength=".25"'), {"qpos": [0.25]}),
    Tie("damping without speed", "smooth/tendon.cc", "rate < 0 ? -rate : rate", SMOOTH, ("v0",),
        tendon('damping="3 2 1"'), {}),
    Tie("energy of a spring at the end of its dead band", "sensor/energy.cc",
        "length > rest[1] ? length - rest[1]", SMOOTH, ("q0",),
        slider(other='<tendon><fixed name="t" stiffness="1e-6" springlength=".125 .25">'
               '<joint joint="j" coef="1"/></fixed></tendon>'
               "<sensor><e_potential/></sensor>"), {"qpos": [0.25]}),
)  # fmt: skip
