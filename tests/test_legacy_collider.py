"""Contacts of the legacy collider, which the flag nativeccd selects (CON-48)."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.scenes.cases import snapshot

TOLERANCE = 1e-6  # of the reference with contacts
TRUSTED_SHARE = 0.9
STEP = 1e-6  # of differences of A, whose error is about 1e-8 of the largest entry

XML = """
<mujoco>
  <option timestep=".002"><flag nativeccd="disable" multiccd="{multiccd}"/></option>
  <asset>
    <mesh name="lump" vertex="{lump}"/><mesh name="stone" vertex="{stone}"/>
    <mesh name="brick" vertex="{brick}"/>
  </asset>
  <worldbody>
    <body><freejoint/><geom name="lower" {lower}/></body>
    <body>
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="slide"/>
      <joint axis="1 0 0"/><joint axis="0 1 0"/><joint axis="0 0 1"/>
      <geom name="upper" type="mesh" mesh="{upper}" {more}/>
    </body>
  </worldbody>
</mujoco>"""
GEOMS = {"box": 'type="box" size=".3 .25 .1"', "mesh": 'type="mesh" mesh="lump"'}


def vertices(points):
    return " ".join(str(x) for x in np.ravel(points))


def lump(count, seed):
    """Return vertices on an ellipsoid."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True) * [0.2, 0.15, 0.25]


def scene(lower, upper="stone", multiccd="enable", more=""):
    brick = [[0.2 * i, 0.15 * j, 0.1 * k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    xml = XML.format(
        lower=GEOMS.get(lower, lower),
        upper=upper,
        multiccd=multiccd,
        more=more,
        lump=vertices(lump(14, 0)),
        stone=vertices(lump(10, 1)),
        brick=vertices(brick),
    )
    model = mujacobian.converged(mujoco.MjModel.from_xml_string(xml))
    return model, mujoco.MjData(model)


def approach(model, data, seed, depth=0.0):
    """Move the upper geom towards the lower one, from a random direction, until they touch."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    data.qpos[10:] = rng.uniform(-1, 1, 3)
    data.qvel[:] = rng.normal(size=model.nv) * 0.1
    data.qvel[6:9] -= direction
    for distance in np.arange(0.6, 0.05, -0.004):
        data.qpos[7:10] = distance * direction / np.linalg.norm(direction)
        mujoco.mj_forward(model, data)
        if data.ncon and data.contact.dist[0] < -depth:
            return
    raise AssertionError("the geoms do not touch")


def lie(model, data, tilt=(0.0, 0.0, 0.0)):
    """Put a brick on a box or brick, turned about the vertical and tilted."""
    data.qpos[7:] = [0.03, 0.02, 0.198, *tilt]
    data.qpos[12] += 0.4
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv) * 0.1
    mujoco.mj_forward(model, data)


def compare(model, data):
    """Compare A with the reference, and return it."""
    before = snapshot(model, data)
    lin = mujacobian.linearize(model, data)
    assert snapshot(model, data) == before, "the caller's state changed"
    assert mujacobian.linearize(model, data).A.tobytes() == lin.A.tobytes()
    found = reference.jacobian(model, data, constrained=True)
    scale = np.maximum(abs(found.A).max(axis=0), 1)
    nx = found.nx
    trusted = found.err[:nx, :nx] <= TOLERANCE / 5 * scale
    assert trusted.mean() > TRUSTED_SHARE
    assert (abs(lin.A - found.A) / scale)[trusted].max() < TOLERANCE
    assert data.efc_force.any()
    return lin.A


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lower", GEOMS)
def test_vertices_faces_and_edges_are_exact(lower, seed):
    model, data = scene(lower)
    approach(model, data, seed)
    compare(model, data)
    rows = mujacobian.diagnose(model, data).rows
    assert all("legacy" in row.feature for row in rows)


@pytest.mark.parametrize("seed", [2, 5])
def test_deep_contacts_are_exact(seed):
    """The nearest point is on an edge of the portal, so that no face or edge has the normal."""
    model, data = scene("mesh", multiccd="disable")
    approach(model, data, seed, depth=0.08)
    compare(model, data)
    normal = data.contact.frame[0, :3]
    ends = []
    for name, side in (("lower", 1), ("upper", -1)):
        axes = data.geom(name).xmat.reshape(3, 3)
        mesh = model.mesh_vertadr[model.geom(name).dataid[0]]
        count = model.mesh_vertnum[model.geom(name).dataid[0]]
        points = model.mesh_vert[mesh : mesh + count] @ axes.T + data.geom(name).xpos
        ends.append((side * points @ normal).max())
    assert sum(ends) > 1e-3 - data.contact.dist[0]


@pytest.mark.parametrize("lower", ["box", 'type="mesh" mesh="brick"'])
def test_points_of_perturbed_geoms_are_exact(lower):
    model, data = scene(lower, "brick")
    lie(model, data, (3e-4, -2e-4, 0))
    assert data.ncon > 2
    compare(model, data)


@pytest.mark.parametrize(("seed", "depth"), [(1, 0.0), (5, 0.08)])
def test_second_derivatives_are_those_of_the_first(seed, depth):
    model, data = scene("mesh", multiccd="disable")
    approach(model, data, seed, depth)
    nx, last = 2 * model.nv, slice(6, 12)  # coordinates of slides and hinges
    y = np.random.default_rng(4).normal(size=nx)
    product = mujacobian.hessian(model, data, y).xx[last, last]
    columns = []
    for k in range(6):
        sides = []
        for sign in (1, -1):
            moved = mujoco.MjData(model)
            moved.qpos[:], moved.qvel[:] = data.qpos, data.qvel
            moved.qpos[7 + k] += sign * STEP
            sides.append((mujacobian.linearize(model, moved).A.T @ y)[last])
        columns.append((sides[0] - sides[1]) / (2 * STEP))
    # the rotation of the lower geom adds an antisymmetric part
    expected = (np.array(columns) + np.array(columns).T) / 2
    assert abs(product - expected).max() < 1e-7 * abs(expected).max()


@pytest.mark.parametrize(
    ("lower", "more", "reason"),
    [
        ("box", "", "did not end at"),  # parallel faces
        ("box", 'margin=".01"', "margin"),
        ('type="cylinder" size=".3 .1"', "", "iterations"),
    ],
)
def test_other_contacts_raise(lower, more, reason):
    model, data = scene(lower, "brick", more=more)
    lie(model, data)
    with pytest.raises(
        mujacobian.UnsupportedFeatureError, match=rf"lower.*upper.*legacy.*{reason}"
    ):
        mujacobian.linearize(model, data)
