"""K factored by blocks of trees: components of many trees, each of which touches few others."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.directional import EXACT, judge_directions

# K dv'/df = h without damping; the rest is the rounding of a solve.
SOLVE_TOLERANCE = 1e-9
RADIUS = 0.1
JOINTS = {
    "hinge": '<joint type="hinge" axis=".3 1 .2" pos="0 0 .5"/>',
    "two slides": '<joint type="slide" axis="0 0 1"/><joint type="slide" axis="1 .2 0"/>',
    "ball": '<joint type="ball" pos=".1 .2 .4"/>',
    "slide and ball": '<joint type="slide" axis="0 0 1"/><joint type="ball"/>',
    "free": "<freejoint/>",
}


def scene(places, rng):
    """Return the MJCF of spheres at `places`, on all kinds of joints in turn."""
    kinds = list(JOINTS.values())
    bodies = "".join(
        f"""<body pos="{x} {y} {z}">{kinds[k % len(kinds)]}
        <geom size="{RADIUS}" friction="{rng.uniform(0.3, 1)}"/></body>"""
        for k, (x, y, z) in enumerate(places)
    )
    return f"""<mujoco>
      <option integrator="Euler" cone="elliptic" gravity="0 0 -1"/>
      <worldbody>{bodies}</worldbody></mujoco>"""


def row(count):
    return [(1.99 * RADIUS * k, 0.002 * (-1) ** k, 0.0) for k in range(count)]


def ring(count):
    radius = 0.995 * RADIUS / np.sin(np.pi / count)
    angles = 2 * np.pi * np.arange(count) / count
    return [(radius * np.cos(a), radius * np.sin(a), 0.0) for a in angles]


def grid(count):
    return [(1.99 * RADIUS * x, 1.99 * RADIUS * y, 0.0) for x in range(count) for y in range(count)]


def star(arms):
    """Return a sphere in the middle of rows along the axes."""
    ends = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]
    steps = [1.99 * RADIUS * k for k in range(1, arms + 1)]
    return [(0, 0, 0), *(tuple(s * e for e in end) for end in ends for s in steps)]


SCENES = {"row": row(17), "ring": ring(14), "grid": grid(5), "star": star(3)}


@pytest.fixture(params=SCENES)
def state(request):
    rng = np.random.default_rng(3)
    model = mujoco.MjModel.from_xml_string(scene(SCENES[request.param], rng))
    reference.converge(model)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.05 * rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    assert data.ncon >= len(SCENES[request.param]) - 1
    return model, data


def test_solution(state):
    model, data = state
    lin = mujacobian.linearize(model, data, forces=True)
    K = mujacobian.diagnose(model, data).K
    product = K @ lin.Bf[model.nv :] / model.opt.timestep
    np.testing.assert_allclose(product, np.eye(model.nv), atol=SOLVE_TOLERANCE)


def test_every_block_alone(state):
    """Other tiles of right-hand sides use other code paths of the solve."""
    model, data = state
    both = mujacobian.linearize(model, data, forces=True)
    A = np.empty_like(both.A)
    mujacobian.transition(model, data, A)
    assert A.tobytes() == both.A.tobytes()
    again = mujacobian.linearize(model, data, forces=True)
    assert again.Bf.tobytes() == both.Bf.tobytes()


def test_derivative(state):
    model, data = state
    assert judge_directions(model, data, seed=0).word == EXACT
