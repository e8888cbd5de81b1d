"""Contact points that MuJoCo before 3.17 finds by rotating both geoms about the first point."""

import mujoco
import numpy as np
import pytest

from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained

pytestmark = pytest.mark.skipif(
    mujoco.mj_version() >= 3017000, reason="MuJoCo does not turn geoms since 3.17"
)
TRUSTED_SHARE = 0.6  # rotated geoms may touch with other features within a finite difference


def pair_scene(cone: str) -> mujoco.MjModel:
    """Return a capsule and a mesh, both free, that touch within margins."""
    rng = np.random.default_rng(5)
    vertices = " ".join(repr(float(x)) for x in 0.1 * rng.normal(size=(12, 3)).ravel())
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option cone="{cone}" timestep=".001"/>
        <asset><mesh name="rock" vertex="{vertices}"/></asset>
        <worldbody>
          <body><freejoint/><geom type="capsule" size=".03 .08" margin=".004"/></body>
          <body><freejoint/><geom type="mesh" mesh="rock" margin=".004"/></body>
        </worldbody>
      </mujoco>""")
    reference.converge(model)
    return model


def touch(model: mujoco.MjModel, rng: np.random.Generator) -> mujoco.MjData:
    """Rotate both at random and move them together until they are 3 mm apart."""
    data = mujoco.MjData(model)
    away = rng.normal(size=3)
    data.qpos[3:7], data.qpos[10:14] = rng.normal(size=(2, 4))
    near, far = 0.0, 0.5
    for _ in range(40):
        middle = (near + far) / 2
        data.qpos[7:10] = middle * away / np.linalg.norm(away)
        mujoco.mj_forward(model, data)
        gap = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, None)
        near, far = (near, middle) if gap > 0.003 else (middle, far)
    data.qvel[:] = 0.1 * rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    return data


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_turned_contacts(cone: str) -> None:
    model = pair_scene(cone)
    rng = np.random.default_rng(6)
    shares: list[float] = []
    while len(shares) < 3:
        data = touch(model, rng)
        if data.ncon > 1:
            shares.append(judge_constrained(model, data, CONTACT_TOLERANCE, forces=False))
    assert np.mean(shares) > TRUSTED_SHARE
