"""Height fields: A, B and Bf of every pair against the reference, and the share that is refused."""

import zlib

import mujoco
import numpy as np
import pytest

import mujacobian
import reference
from contact_scenes import DEPTH, UP, Pair, scene, set_motion
from judge import CONTACT_TOLERANCE, judge_constrained

EXACT = ("sphere", "capsule", "box", "mesh")
CURVED = ("ellipsoid", "cylinder")
CONES = ("pyramidal", "elliptic")
STATES = {1: "mixed", 3: "sticking", 4: "slipping", 6: "mixed"}


def pose(model: mujoco.MjModel, rng: np.random.Generator, depth: float = DEPTH) -> mujoco.MjData:
    """Return a state in which the free body, at a random place and turned at random, just touches.

    The field is tilted; the body comes down along its z axis and sinks in by `depth`.
    """
    data = mujoco.MjData(model)
    turn = rng.normal(size=3) * 0.4
    mujoco.mju_axisAngle2Quat(
        data.joint("tilt").qpos, turn / np.linalg.norm(turn), np.linalg.norm(turn)
    )
    mujoco.mj_kinematics(model, data)
    field = data.geom("first")
    origin, R = field.xpos.copy(), field.xmat.reshape(3, 3).copy()
    quat = rng.normal(size=4)
    data.qpos[-4:] = quat / np.linalg.norm(quat)
    x, y = rng.uniform(-0.3, 0.3, 2)

    def touches(z):
        data.qpos[-7:-4] = origin + R @ (x, y, z)
        mujoco.mj_forward(model, data)
        return any(contact.dist < 0 for contact in data.contact)

    low, high = 0.0, 0.5
    while high - low > 1e-3 * DEPTH:
        middle = (low + high) / 2
        low, high = (middle, high) if touches(middle) else (low, middle)
    touches(low - depth)
    return data


def prepare(kind, cone, condim, state, *, seed=0, **options):
    """Return the converged model and a state of it, the same in every run."""
    text = scene(Pair("field", kind, UP), cone, condim, **options)
    model = reference.converge(mujoco.MjModel.from_xml_string(text))
    rng = np.random.default_rng(zlib.crc32(f"{kind} {cone} {condim} {seed}".encode()))
    data = pose(model, rng)
    set_motion(model, data, state, rng)
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize("condim", STATES)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("kind", EXACT)
def test_pairs(kind, cone, condim):
    shares = []
    for seed in range(3):
        model, data = prepare(kind, cone, condim, STATES[condim], seed=seed)
        shares.append(judge_constrained(model, data, CONTACT_TOLERANCE, forces=False))
    print(shares)
