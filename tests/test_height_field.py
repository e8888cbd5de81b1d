"""Height fields: A and B of every pair against the reference, and the share that is refused."""

import zlib

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from mujacobian._versions import release
from mujacobian.check import _extrapolation
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained
from tests.scenes.contact_scenes import DEPTH, UP, Pair, scene, set_motion

SHARP = ("box", "mesh")
EXACT = ("sphere", "capsule", *SHARP)
CURVED = ("ellipsoid", "cylinder")
CONES = ("pyramidal", "elliptic")
STATES = {1: "mixed", 3: "sticking", 4: "slipping", 6: "rolling"}
SEEDS = 3
MARGIN = 'margin=".002" gap=".001"'
# Finite differences must stay on the hill they start from: beyond it they may touch again.
Q_STEP = 2e-3
# Share of the median state: the collider's early stops switch between vertices, sometimes within
# the samples that measure the rounding of the step.
TRUSTED_SHARE = 0.9
# The error of the collider's normal is the square root of its tolerance of 1e-13 divided by the
# radius, or by the margin. The error of the contact force is its stiffness times that.
ROUNDED_TOLERANCE = 5e-5
# The possible effect of an error of a curved contact's frame and position on A.
SENSITIVITY = 50
# curved geom: (exact geom, change of its size, its counterpart)
TWINS = {
    "ellipsoid": (
        "sphere",
        ("", ""),
        'type="sphere" size=".1"',
        'type="ellipsoid" size=".1 .1 .1"',
    ),
    "cylinder": ("capsule", (".06 .15", ".06 .8"), 'type="capsule"', 'type="cylinder"'),
}
# The share of poses that may be refused: one in a hundred, and one in twenty for curved pairs.
POSES = 200
REFUSED = {**dict.fromkeys(EXACT, 0.01), **dict.fromkeys(CURVED, 0.05)}
DEEPEST = 4e-3  # m: ten times the usual depth


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(_extrapolation, "Q_STEP", Q_STEP)


def pose(
    model: mujoco.MjModel, rng: np.random.Generator, depth: float = DEPTH, *, lying: bool = False
) -> mujoco.MjData:
    """Return a state in which the free body, with a random pose, touches the field.

    The field is tilted. The body moves down along the z axis of the field until it touches, and
    then by `depth`. With `lying`, the z axis of the body is parallel to the field.
    """
    data = mujoco.MjData(model)
    turn = rng.normal(size=3) * 0.4
    tilt = data.joint("tilt").qpos
    mujoco.mju_axisAngle2Quat(tilt, turn / np.linalg.norm(turn), np.linalg.norm(turn))
    mujoco.mj_kinematics(model, data)
    field = data.geom("first")
    origin, R = field.xpos.copy(), field.xmat.reshape(3, 3).copy()
    quat = rng.normal(size=4)
    if lying:
        mujoco.mju_quatZ2Vec(quat, R @ (quat[0], quat[1], 0.0) / np.hypot(quat[0], quat[1]))
    data.qpos[-4:] = quat / np.linalg.norm(quat)
    x, y = rng.uniform(-0.3, 0.3, 2)

    def touches(z: float) -> bool:
        data.qpos[-7:-4] = origin + R @ (x, y, z)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        return bool((data.contact.dist < 0).any())

    low, high = 0.0, 0.5
    while high - low > 1e-3 * DEPTH:
        middle = (low + high) / 2
        low, high = (middle, high) if touches(middle) else (low, middle)
    data.qpos[-7:-4] = origin + R @ (x, y, low - depth)
    mujoco.mj_forward(model, data)
    return data


def compiled(kind: str, cone: str = "elliptic", condim: int = 4, **options) -> mujoco.MjModel:
    text = scene(Pair("field", kind, UP), cone, condim, **options)
    return mujoco.MjModel.from_xml_string(text)


def prepare(model, label, state, **options):
    """Return a state of the model with a converged solver, which is the same in every run."""
    reference.converge(model)
    rng = np.random.default_rng(zlib.crc32(label.encode()))
    data = pose(model, rng, **options)
    set_motion(model, data, state, rng)
    mujoco.mj_forward(model, data)
    return data


@pytest.mark.parametrize("condim", STATES)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("kind", EXACT)
def test_pairs(kind, cone, condim):
    model = compiled(kind, cone, condim)
    shares = []
    for seed in range(SEEDS):
        data = prepare(model, f"{kind} {cone} {condim} {seed}", STATES[condim])
        shares.append(judge_constrained(model, data, CONTACT_TOLERANCE, forces=False))
    assert np.median(shares) >= TRUSTED_SHARE, shares


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("kind", EXACT)
def test_margins(kind, cone):
    """Before 3.16, margins raise the field. They round boxes and meshes.

    In 3.16, contacts of spheres and capsules depend on the collider's tolerance, too. The reference
    then determines fewer entries. They have the usual tolerance.
    """
    model = compiled(kind, cone, 4, geom=MARGIN)
    data = prepare(model, f"{kind} {cone} margin", "mixed")
    tolerance = ROUNDED_TOLERANCE if kind in SHARP else CONTACT_TOLERANCE
    share = judge_constrained(model, data, tolerance, forces=False)
    if release(mujoco.__version__) == (3, 16):
        share = judge_constrained(model, data, ROUNDED_TOLERANCE, forces=False)
    assert share >= TRUSTED_SHARE


@pytest.mark.parametrize("cone", CONES)
def test_a_field_moved_by_hand(cone):
    """The field may be on a mocap body, which has a pose but no velocity."""
    text = scene(Pair("field", "box", UP), cone, 4).replace(
        '<body name="base" pos=".1 .2 .3" >', '<body name="base" pos=".1 .2 .3" mocap="true">'
    )
    begin, end = text.index("<joint name"), text.index('<geom name="first"')
    text = text[:begin] + text[end:]
    model = reference.converge(mujoco.MjModel.from_xml_string(text))
    assert model.nmocap == 1
    data = mujoco.MjData(model)
    data.mocap_quat[0] = np.array([1, 0.1, -0.2, 0.15]) / np.linalg.norm([1, 0.1, -0.2, 0.15])
    data.qpos[:] = [0.15, 0.25, 0.8, 0.9, 0.3, 0.2, 0.2]
    data.qpos[3:] /= np.linalg.norm(data.qpos[3:])
    mujoco.mj_forward(model, data)
    while data.ncon == 0:
        data.qpos[2] -= DEPTH / 2
        mujoco.mj_forward(model, data)
    set_motion(model, data, "mixed", np.random.default_rng(3))
    assert judge_constrained(model, data, CONTACT_TOLERANCE, forces=False) >= TRUSTED_SHARE


@pytest.mark.parametrize("curved", TWINS)
def test_curved_pairs_agree_with_exact_ones(curved):
    """A round ellipsoid is a sphere; a cylinder longer than the field touches it like a capsule."""
    kind, sizes, twin, other_sizes = TWINS[curved]
    text = scene(Pair("field", kind, UP), "elliptic", 4).replace(*sizes)
    assert twin in text
    model = mujoco.MjModel.from_xml_string(text)
    other = reference.converge(mujoco.MjModel.from_xml_string(text.replace(twin, other_sizes)))
    for seed in range(8):
        data = prepare(model, f"{curved} {seed}", "mixed", lying=True)
        same = mujoco.MjData(other)
        for field in ("qpos", "qvel", "ctrl", "xfrc_applied"):
            getattr(same, field)[:] = getattr(data, field)
        mujoco.mj_forward(other, same)
        assert same.ncon == data.ncon > 0
        expected = mujacobian.linearize(model, data, sensors=False)
        lin = mujacobian.linearize(other, same, sensors=False)
        off = abs(same.contact.frame - data.contact.frame).max()
        off += abs(same.contact.pos - data.contact.pos).max()
        for block in ("A", "B"):
            value, exact = getattr(lin, block), getattr(expected, block)
            error = abs(value - exact).max() / abs(exact).max()
            assert error <= CONTACT_TOLERANCE + SENSITIVITY * off, f"{error:.1e} {off:.1e}"


@pytest.mark.parametrize("kind", REFUSED)
def test_few_poses_are_refused(kind):
    """The test uses MuJoCo's default tolerance."""
    model = compiled(kind)
    rng = np.random.default_rng(7)
    refused = contacts = 0
    for _ in range(POSES):
        data = pose(model, rng, rng.uniform(0, DEEPEST))
        contacts += data.ncon
        try:
            assert np.isfinite(mujacobian.linearize(model, data, sensors=False).A).all()
        except mujacobian.UnsupportedFeatureError:
            refused += 1
    print(f"{kind}: {refused} of {POSES} poses refused, {contacts} contacts")
    assert contacts >= POSES
    assert refused <= REFUSED[kind] * POSES
