"""Links of the same width on parallel hinges: sides of their faces are parallel up to rounding."""

import mujoco
import numpy as np
import pytest

from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained

SIDES = 74  # of the roller: MuJoCo treats its neighboring faces as aligned
RADIUS, HALF = 0.05, 0.04  # m: radius of the roller, half the width of both
SLAB = np.array([0.1, HALF, 0.05])  # m: half sizes
YAW = 3e-9  # rad: error of two parallel axes after a chain of frames


def scene(shape: str, yaw: float) -> mujoco.MjModel:
    """Return a roller or a box on a slab that rocks; all axes of rotation are parallel."""
    angle = 2 * np.pi * np.arange(SIDES) / SIDES
    rim = RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    roller = [np.insert(rim, 1, y, axis=1) for y in (-HALF, HALF)]
    slab = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * SLAB
    upper = {
        "mesh": 'type="mesh" mesh="roller"',
        "box": f'type="box" size="{RADIUS} {HALF} {RADIUS}"',
    }
    lower = {"mesh": 'type="mesh" mesh="slab"', "box": f'type="box" size="{_text(SLAB)}"'}
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <compiler angle="radian"/>
        <option timestep=".001"/>
        <asset>
          <mesh name="roller" vertex="{_text(np.array(roller))}"/>
          <mesh name="slab" vertex="{_text(slab)}"/>
        </asset>
        <worldbody>
          <body pos="0 0 {RADIUS + SLAB[2]}" euler="0 0 {yaw}">
            <joint type="slide" axis="0 0 1"/>
            <joint axis="0 1 0"/>
            <geom {upper[shape]}/>
          </body>
          <body>
            <joint axis="0 1 0" stiffness="1000"/>
            <geom {lower[shape]}/>
          </body>
        </worldbody>
      </mujoco>""")
    return reference.converge(model)


@pytest.mark.parametrize("yaw", [0.0, YAW, 1e3 * YAW])
@pytest.mark.parametrize("shape", ["mesh", "box"])
def test_corners_of_faces_of_the_same_width(shape: str, yaw: float) -> None:
    model = scene(shape, yaw)
    rng = np.random.default_rng(0)
    turn = 2 * np.pi if shape == "mesh" else 0.02
    for _ in range(5):
        data = mujoco.MjData(model)
        data.qpos[:] = -rng.uniform(1e-3, 4e-3), rng.uniform(0, turn), 0.01 * rng.normal()
        data.qvel[:] = 0.1 * rng.normal(size=3)
        judge_constrained(model, data, CONTACT_TOLERANCE)


def _text(numbers: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(numbers))
