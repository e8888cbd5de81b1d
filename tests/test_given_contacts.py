"""Contacts that the caller gives, against differences of MuJoCo's stages with these contacts."""

import mujoco
import numpy as np
import pytest

from mujacobian import _core
from mujacobian._convergence import converge

# extrapolated differences of a converged step, relative to the largest entry
TOLERANCE = 1e-7
STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
XML = """
<mujoco>
  <option timestep="0.004" cone="{cone}" integrator="{integrator}"/>
  <worldbody>
    <geom name="ground" type="plane" size="1 1 1" contype="1" conaffinity="2"/>
    <body pos="0 0 0.3">
      <joint name="x" type="slide" axis="1 0.2 0"/><joint name="z" type="slide" axis="0 0 1"/>
      <joint name="turn" axis="0.3 1 0.2"/>
      <geom name="trunk" size="0.1" mass="2" contype="1" conaffinity="2"/>
      <body pos="0.2 0 -0.05">
        <joint axis="0 1 0.1" damping="0.1"/>
        <geom name="leg" type="capsule" size="0.03 0.1" mass="0.5" contype="1" conaffinity="2"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
DIM = 4
# dist, pos, frame, includemargin, friction, solref, solreffriction, solimp
SIZES = (1, 3, 9, 1, 5, 2, 2, 5)
UNSET = (21, 22)  # solreffriction, which has no effect where it is zero


def frame(normal, hint=(0, 1, 0)):
    normal = np.array(normal) / np.linalg.norm(normal)
    tangent = np.array(hint) - normal * (normal @ np.array(hint))
    tangent /= np.linalg.norm(tangent)
    return np.array([normal, tangent, np.cross(normal, tangent)])


def contacts(model):
    """Return a contact of the leg with the ground and one of the trunk with the leg."""
    numbers = [
        [-0.004, 0.25, 0.02, 0.01, *frame([0.1, 0.05, 1]).ravel(), 0.001],
        [-0.002, 0.12, 0.01, 0.25, *frame([1, 0.2, 0.1]).ravel(), 0.0],
    ]
    materials = [
        [0.5, 0.4, 0.02, 0.01, 0.01, 0.02, 0.9, 0.05, 1.0, 0.85, 0.95, 0.01, 0.4, 2.0],
        [0.3, 0.3, 0.01, 0.02, 0.01, 0.03, 1.1, 0.0, 0.0, 0.8, 0.97, 0.02, 0.5, 2.0],
    ]
    geom = {name: model.geom(name).id for name in ("ground", "trunk", "leg")}
    pairs = [(geom["ground"], geom["leg"]), (geom["trunk"], geom["leg"])]
    geoms = np.array([(DIM, *pair) for pair in pairs], dtype=np.int32)
    return np.hstack([numbers, materials]), geoms


def turned(numbers, contact, rotation):
    """Return the numbers with the frame of a contact rotated about the axes of the world."""
    moved = numbers.copy()
    theta = np.linalg.norm(rotation)
    if theta > 0:
        quaternion, matrix = np.zeros(4), np.zeros(9)
        mujoco.mju_axisAngle2Quat(quaternion, rotation / theta, theta)
        mujoco.mju_quat2Mat(matrix, quaternion)
        moved[contact, 4:13] = (moved[contact, 4:13].reshape(3, 3) @ matrix.reshape(3, 3).T).ravel()
    return moved


def step(model, data, start, numbers, geoms):
    """Return qpos and qvel after a step with these contacts, by MuJoCo's own stages."""
    mujoco.mj_resetData(model, data)
    mujoco.mj_setState(model, data, start, STATE)
    mujoco.mj_fwdPosition(model, data)
    for values, (dim, *pair) in zip(numbers, geoms, strict=True):
        dist, pos, axes, margin, friction, solref, solreffriction, solimp = np.split(
            values, np.cumsum(SIZES)[:-1]
        )
        made = mujoco.MjContact()
        made.dist, made.includemargin, made.dim = dist[0], margin[0], int(dim)
        made.pos, made.frame, made.friction = pos, axes, friction
        made.solref, made.solreffriction, made.solimp = solref, solreffriction, solimp
        made.geom, made.flex = pair, [-1, -1]
        made.exclude = 0
        mujoco.mj_addContact(model, data, made)
    mujoco.mj_makeConstraint(model, data)
    mujoco.mj_projectConstraint(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_fwdActuation(model, data)
    mujoco.mj_fwdAcceleration(model, data)
    mujoco.mj_fwdConstraint(model, data)
    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER:
        mujoco.mj_Euler(model, data)
    else:
        mujoco.mj_implicit(model, data)
    return np.concatenate([data.qpos, data.qvel])


def slope(f, h=1e-4):
    """Return f'(0) by extrapolated central differences."""
    a, b, c = ((f(s) - f(-s)) / (2 * s) for s in (h, h / 2, h / 4))
    first, second = (4 * b - a) / 3, (4 * c - b) / 3
    return (16 * second - first) / 15


@pytest.fixture(params=[("pyramidal", "Euler"), ("elliptic", "implicitfast")], ids="-".join)
def scene(request):
    cone, integrator = request.param
    model = converge(mujoco.MjModel.from_xml_string(XML.format(cone=cone, integrator=integrator)))
    data = mujoco.MjData(model)
    data.qpos = [0.1, 0.02, 0.3, -0.2]
    data.qvel = [0.5, -0.3, 0.8, 0.4]
    start = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, start, STATE)
    return model, data, start


def pull(model, start, numbers, geoms, cotangent):
    """Return the cotangents of the state and of the contacts."""
    state = cotangent[None].copy()
    d_contacts = np.zeros((len(numbers), _core.CONTACT_NUMBERS))
    _core.Worlds([model], [], []).pull_back(
        start=start[None], parameters=[], state=state, ctrl=np.zeros((1, model.nu)),
        force=np.zeros((1, model.nv)), wrench=None, center=None,
        params=np.zeros((1, 0)), actuation=None, pairs=None,
        contacts=numbers, geoms=geoms, first=np.array([0, len(numbers)], dtype=np.int32),
        d_contacts=d_contacts, number=0,
    )  # fmt: skip
    return state[0], d_contacts


def test_state_and_contacts(scene):
    """All coordinates are scalars here, so that tangents are differences of numbers."""
    model, data, start = scene
    numbers, geoms = contacts(model)
    weights = np.random.default_rng(0).normal(size=2 * model.nv)
    state, d_contacts = pull(model, start, numbers, geoms, weights)

    def loss(at, given):
        return weights @ step(model, data, at, given, geoms)

    # the state, while the contacts do not move
    unit = np.eye(len(start))
    columns = [1 + k for k in range(2 * model.nv)]  # after the time
    wanted = np.array([slope(lambda h, k=k: loss(start + h * unit[k], numbers)) for k in columns])
    print("state", np.abs(state - wanted).max() / np.abs(wanted).max())
    np.testing.assert_allclose(state, wanted, rtol=0, atol=TOLERANCE * np.abs(wanted).max())

    # the numbers of the contacts
    found, expected = [], []
    places = [0, 1, 2, 3, None, None, None, *range(14, 28)]
    for contact in range(len(numbers)):
        for k, place in enumerate(places):
            if place is not None and place in UNSET and numbers[contact, place] == 0:
                assert d_contacts[contact, k] == 0
                continue

            def at(h, contact=contact, k=k, place=place):
                if place is None:
                    return turned(numbers, contact, h * np.eye(3)[k - 4])
                moved = numbers.copy()
                moved[contact, place] += h
                return moved

            expected.append(slope(lambda h, at=at: loss(start, at(h))))
            found.append(d_contacts[contact, k])
    scale = np.abs(expected).max()
    print("contacts", np.abs(np.subtract(found, expected)).max() / scale)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * scale)
    assert (np.abs(d_contacts[:, :7]) > 0).all()
    # a margin is subtracted from the distance
    margin = slope(lambda h: loss(start, numbers + h * np.eye(28)[13] * [[1], [0]]))
    np.testing.assert_allclose(margin, -d_contacts[0, 0], rtol=0, atol=TOLERANCE * scale)


def test_worlds_with_other_fields(scene):
    """Worlds that differ in a field agree with a model that has this field."""
    model, _, start = scene
    numbers, geoms = contacts(model)
    weights = np.random.default_rng(1).normal(size=2 * model.nv)
    masses = np.stack([model.body_mass, 1.5 * model.body_mass])
    state = np.stack([weights, weights])
    worlds = _core.Worlds([model], [masses], [[model.body_mass]])
    sizes = {"ctrl": (2, model.nu), "force": (2, model.nv), "params": (2, 0)}
    worlds.pull_back(
        start=np.stack([start, start]), parameters=[], state=state, wrench=None, center=None,
        actuation=None, pairs=None,
        contacts=np.concatenate([numbers, numbers]), geoms=np.concatenate([geoms, geoms]),
        first=np.array([0, 2, 4], dtype=np.int32), d_contacts=np.zeros((4, _core.CONTACT_NUMBERS)),
        number=0, **{name: np.zeros(size) for name, size in sizes.items()},
    )  # fmt: skip
    for mass, found in zip(masses, state, strict=True):
        model.body_mass[:] = mass
        alone, _ = pull(model, start, numbers, geoms, weights)
        np.testing.assert_array_equal(found, alone)
    assert np.abs(state[0] - state[1]).max() > 1e-3
