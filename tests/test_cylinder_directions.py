"""Tilted cylinders on faces: the contact direction of MuJoCo's collider.

MuJoCo reports the ends of a cylinder's side along the normal of the face. But the collider finds
them in the direction of least depth: that normal, or the direction between the side and an edge or
rim. In symmetric poses these agree in the plane across the axis, and only their depths differ.
"""

from itertools import product

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference

CORNERS = " ".join(f"{x} {y} {z}" for x, y, z in product((-0.3, 0.3), (-0.2, 0.2), (-0.1, 0.1)))
FACES = {
    "box": 'type="box" size=".3 .2 .1"',
    "mesh": 'type="mesh" mesh="block"',
    "cap": 'type="cylinder" size=".2 .1"',
}
HEADINGS = (0.0, 1e-12, 1e-9, 1e-6, np.pi / 4, np.pi / 2, np.pi, 0.3)
RADIUS, HALF, DEPTH = 0.02, 0.05, 7e-4

# The collider finds the points to 1e-8 m, which matters for short steps; for long ones the step of
# MuJoCo is not linear. One of these lengths agrees to the tolerance, relative to the largest entry.
STEPS, TOLERANCE = (1e-6, 1e-5, 1e-4), 2e-4


def make_model(face: str, heading: float, tilt: float, at: tuple[float, float]) -> mujoco.MjModel:
    """Return a free cylinder on a face, with the end along its heading lower by `tilt`."""
    height = HALF * abs(np.sin(tilt)) + RADIUS * np.cos(tilt) - DEPTH
    turn, fall = np.zeros(4), np.zeros(4)
    mujoco.mju_axisAngle2Quat(turn, [0, 0, 1], heading)
    mujoco.mju_axisAngle2Quat(fall, [0, 1, 0], np.pi / 2 + tilt)
    mujoco.mju_mulQuat(turn, turn.copy(), fall)
    quat = " ".join(repr(float(x)) for x in turn)
    model = mujoco.MjModel.from_xml_string(f"""
    <mujoco>
      <option cone="elliptic"/>
      <asset><mesh name="block" vertex="{CORNERS}"/></asset>
      <worldbody>
        <geom {FACES[face]} pos="0 0 -.1"/>
        <body pos="{at[0]} {at[1]} {float(height)!r}" quat="{quat}">
          <freejoint/>
          <geom type="cylinder" size="{RADIUS} {HALF}"/>
          <geom size=".01" pos=".3 .2 .5" contype="0" conaffinity="0"/>
        </body>
      </worldbody>
    </mujoco>""")
    return reference.converge(model)


def next_velocity(model: mujoco.MjModel, data: mujoco.MjData, dof: int, h: float) -> np.ndarray:
    """Return the velocity after a step from a pose that is displaced by h along a dof."""
    moved = mujoco.MjData(model)
    moved.qpos[:], moved.qvel[:] = data.qpos, data.qvel
    mujoco.mj_integratePos(model, moved.qpos, np.eye(model.nv)[dof], h)
    mujoco.mj_step(model, moved)
    return moved.qvel.copy()


def assert_derivative(model: mujoco.MjModel) -> None:
    """Compare the derivative with respect to the pose with central differences of mj_step."""
    data = mujoco.MjData(model)
    data.qvel[:] = [0.1, -0.05, 0.02, 0.3, -0.2, 0.4]
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    given = mujacobian.linearize(model, data).A[model.nv :, : model.nv]
    scale = 1 + abs(given).max()
    for dof in range(model.nv):
        sides = [[next_velocity(model, data, dof, s * h) for s in (1, -1)] for h in STEPS]
        differences = [(a - b) / (2 * h) for (a, b), h in zip(sides, STEPS, strict=True)]
        error = min(abs(given[:, dof] - d).max() for d in differences) / scale
        assert error < TOLERANCE, f"dof {dof}: {error}\n{given[:, dof]}\n{differences}"


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("tilt", [0.05, -0.02])
def test_rim_over_a_face(face: str, heading: float, tilt: float) -> None:
    for at in ((0.009, 0.0), (0.005, 0.0), (0.03, 0.1)):
        assert_derivative(make_model(face, heading, tilt, at))


@pytest.mark.parametrize("heading", [np.pi / 2, np.pi / 4, np.pi / 3, 0.3])
@pytest.mark.parametrize("face", FACES)
def test_side_across_a_rim_or_edge(face: str, heading: float) -> None:
    tilt = -1e-4 if heading == np.pi / 2 else 1e-4
    assert_derivative(make_model(face, heading, tilt, (0.03, 0.18)))
