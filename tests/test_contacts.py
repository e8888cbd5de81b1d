"""Contacts: A, B and Bf of every pair, cone, condim and kind of motion against the reference."""

import zlib

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained
from tests.scenes.cases import CONTACT_MODELS, INTEGRATORS, load, sample, simulated_states
from tests.scenes.contact_scenes import PAIRS, STATES, pose, scene, set_motion

# Columns on a kink are left out, and entries below rounding (none in these states). A test that
# left out more would prove little.
TRUSTED_SHARE = 0.95
# The points of a standing cylinder move by 1/tilt, and so does the rounding of MuJoCo's step.
# Hulls touch with small faces, and some finite differences add or remove points of a manifold.
TRUSTED_SHARES = {
    "plane-cylinder standing": 0.4,
    "mesh-mesh": 0.5,
    "mesh-mesh flat": 0.5,
    "box-mesh flat": 0.8,
}
# The required zone of an elliptic contact, for the states that are named after a zone.
ZONES = {
    "sticking": reference.QUADRATIC,
    "slipping": reference.CONE,
    "separating": reference.SATISFIED,
}
CONES = ("pyramidal", "elliptic")
# Bodies at rest are close to kinks: a resting ball can roll in either direction.
SCENE_SHARE = 0.8

# name: (attributes of <option>, attributes of both geoms)
OPTIONS = {
    "impratio": ('impratio="7"', ""),
    "timeconst": ("", 'solref=".03 .6"'),
    "stiffness and damping": ("", 'solref="-2000 -60"'),
    "too stiff to be safe": ("", 'solref=".001 1"'),
    "power 1": ("", 'solimp=".3 .95 .001 .5 1"'),
    "power 3.5": ("", 'solimp=".3 .95 .001 .3 3.5"'),
    "flat": ("", 'solimp=".9 .9 .001 .5 2"'),
    "saturated": ("", 'solimp=".3 .95 1e-4 .5 2"'),
    "decreasing": ("", 'solimp=".95 .5 .001 .5 2"'),
    "margin": ("", 'margin=".0007"'),
    "margin and gap": ("", 'margin=".002" gap=".001"'),
    "no gravity": ('gravity="0 0 0"', ""),
    "slippery": ("", 'friction=".05 .001 .0005"'),
    "sticky": ("", 'friction="3 .5 .2"'),
    "surface velocity": ("", 'surfacevel=".3 -.2 .1 .5 1 .7"'),
}
if tuple(int(x) for x in mujoco.__version__.split(".")[:2]) >= (4, 0):  # new in 4.0
    OPTIONS["adhesion"] = ("", 'adhesion="5"')
    OPTIONS["adhesion within a margin"] = ("", 'adhesion="5" margin=".0007"')
FLAGS = {
    "refsafe": ("disableflags", mujoco.mjtDisableBit.mjDSBL_REFSAFE),
    "island": ("disableflags", mujoco.mjtDisableBit.mjDSBL_ISLAND),
    "warmstart": ("disableflags", mujoco.mjtDisableBit.mjDSBL_WARMSTART),
    "diagexact": ("enableflags", mujoco.mjtEnableBit.mjENBL_DIAGEXACT),
}
# (pair, the second geom with a closed form, the same shape for the convex collider)
CURVED = {
    "sphere-ellipsoid": (
        "sphere-sphere",
        'type="sphere" size=".1"',
        'type="ellipsoid" size=".1 .1 .1"',
    ),
    "box-ellipsoid": (
        "sphere-box edge",
        'type="sphere" size=".1"',
        'type="ellipsoid" size=".1 .1 .1"',
    ),
    "capsule-cylinder": (
        "capsule-capsule crossed",
        'type="capsule" size=".06 .15"',
        'type="cylinder" size=".06 .15"',
    ),
}
# The error of the collider's normal is the square root of its tolerance of 1e-13, 3e-7. The error
# of the contact force is its stiffness times that.
CURVED_TOLERANCE = 1e-5
OPTION_PAIRS = ("plane-capsule lying", "sphere-box edge", "capsule-capsule crossed")


def prepare(pair, cone, condim, state, **options):
    """Return the converged model and a state of it, which is the same in every run."""
    text = scene(PAIRS[pair], cone, condim, **options)
    model = reference.converge(mujoco.MjModel.from_xml_string(text))
    rng = np.random.default_rng(zlib.crc32(f"{pair} {cone} {condim} {state}".encode()))
    data = pose(model, PAIRS[pair], rng)
    set_motion(model, data, state, rng)
    mujoco.mj_forward(model, data)
    return model, data


def check(model, data, label, *, least=TRUSTED_SHARE, **options):
    try:
        share = judge_constrained(model, data, CONTACT_TOLERANCE, **options)
    except AssertionError as error:
        raise AssertionError(f"{label}: {error}") from None
    assert share >= least, f"{label}: the reference trusts only {share:.3f}"


@pytest.mark.parametrize(("pair", "cone", "condim"), sample(4, PAIRS, CONES, STATES))
def test_pairs(pair, cone, condim):
    for state in STATES[condim]:
        model, data = prepare(pair, cone, condim, state)
        assert data.ncon >= PAIRS[pair].contacts
        if cone == "elliptic" and condim > 1 and state in ZONES:
            assert ZONES[state] in reference.zones(model, data), state
        # Bf contains no dependence that B does not test
        least = TRUSTED_SHARES.get(pair, TRUSTED_SHARE)
        check(model, data, state, forces=state == "mixed", least=least)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("case", CURVED)
def test_curved_pairs_agree_with_closed_forms(case, cone):
    """A round ellipsoid is a sphere, and the side of a cylinder is the side of a capsule."""
    pair, closed, curved = CURVED[case]
    text = scene(PAIRS[pair], cone, 4)
    assert closed in text
    model = reference.converge(mujoco.MjModel.from_xml_string(text))
    data = pose(model, PAIRS[pair], np.random.default_rng(7))
    set_motion(model, data, "mixed", np.random.default_rng(8))
    other = reference.converge(mujoco.MjModel.from_xml_string(text.replace(closed, curved)))
    same = mujoco.MjData(other)
    for field in ("qpos", "qvel", "ctrl", "xfrc_applied"):
        getattr(same, field)[:] = getattr(data, field)
    mujoco.mj_forward(other, same)
    assert same.ncon == data.ncon == 1
    expected = mujacobian.linearize(model, data, sensors=False)
    lin = mujacobian.linearize(other, same, sensors=False)
    for block in ("A", "B"):
        value, reference_ = getattr(lin, block), getattr(expected, block)
        np.testing.assert_allclose(value, reference_, atol=CURVED_TOLERANCE * abs(reference_).max())


@pytest.mark.parametrize(("pair", "cone", "name"), sample(2, OPTION_PAIRS, CONES, OPTIONS))
def test_options(pair, cone, name):
    option, geom = OPTIONS[name]
    for state in ("sticking", "slipping", "mixed"):
        model, data = prepare(pair, cone, 4, state, option=option, geom=geom)
        check(model, data, state, forces=False)


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("pair", OPTION_PAIRS)
def test_flags(pair, cone, flag):
    field, bit = FLAGS[flag]
    for state in ("sticking", "slipping", "mixed"):
        model, data = prepare(pair, cone, 6, state, geom='solref=".005 1"')
        setattr(model.opt, field, getattr(model.opt, field) | int(bit))
        check(model, data, state, forces=False)


@pytest.mark.parametrize(
    ("name", "cone", "integrator"), sample(2, CONTACT_MODELS, CONES, ["euler", "implicitfast"])
)
def test_scenes(name, cone, integrator):
    """Chains, hands, stacks and walls come to rest."""
    model = reference.converge(load(f"contacts/{name}"))
    model.opt.cone = CONES.index(cone)
    INTEGRATORS[integrator](model)
    shares = []
    for label, data in simulated_states(model, name):
        try:
            shares.append(judge_constrained(model, data, CONTACT_TOLERANCE, forces=False))
        except AssertionError as error:
            raise AssertionError(f"{label}: {error}") from None
    assert shares, "no state with contacts"
    assert min(shares) >= SCENE_SHARE, shares
