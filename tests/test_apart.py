"""Geoms that are apart, within their margin: manifolds of cylinders, and ends of edges of boxes."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained

TRUSTED_SHARE = 0.6
NEWEST = mujoco.mj_version() >= 4000000

# shapes, pose of the second geom, and the feature of its contacts
POSES = {
    "cap on cap": (
        'type="cylinder" size=".12 .1"',
        'type="cylinder" size=".1 .09"',
        [0.03, 0.05, 0.196, 0.9, 0.003, 0.002, 0.4],
        "projected",
    ),
    "cylinder along a face": (
        'type="cylinder" size=".05 .1"',
        'type="box" size=".2 .08 .1"',
        [0.157, 0.01, 0.07, 0.7, 0.004, 0.71, 0.002],
        "segment",
    ),
    "ends of edges": (
        'type="box" size=".12 .15 .1"',
        'type="box" size=".12 .15 .1"',
        [0.215, 0.257, -0.241, -0.309, 0.199, 0.755, -0.543],
        "end of edge on edge",
    ),
}


@pytest.mark.skipif(not NEWEST, reason="has one contact per pair of geoms within a margin")
@pytest.mark.parametrize("name", POSES)
def test_geoms_within_their_margin(name: str) -> None:
    first, second, qpos, feature = POSES[name]
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <worldbody>
          <body><freejoint/><geom {first} margin=".02"/></body>
          <body><freejoint/><geom {second} margin=".02"/></body>
        </worldbody>
      </mujoco>""")
    reference.converge(model)
    data = mujoco.MjData(model)
    data.qpos[7:] = qpos
    data.qpos[10:] /= np.linalg.norm(qpos[3:])
    data.qvel[:] = 0.1 * np.random.default_rng(0).normal(size=model.nv)
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    assert data.contact.dist.min() > 0, "the geoms are not apart"
    features = mujacobian.diagnose(model, data).features
    assert any(feature in found for found in features), features
    assert judge_constrained(model, data, CONTACT_TOLERANCE, forces=False) > TRUSTED_SHARE


@pytest.mark.parametrize("tilt", [1e-7, 1e-5, 1e-3])
def test_a_flat_capsule_across_a_cap(tilt: float) -> None:
    """Both ends are beyond the rim, whose normal leans less than MuJoCo's point shows."""
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <worldbody>
          <body><freejoint/><geom type="cylinder" size=".12 .1"/></body>
          <body><freejoint/><geom type="capsule" size=".06 .15"/></body>
        </worldbody>
      </mujoco>""")
    reference.converge(model)
    data = mujoco.MjData(model)
    data.qpos[7:10] = 0.01, 0.03, 0.16 - 1e-3
    angle = np.pi / 2 + tilt
    data.qpos[10:] = np.cos(angle / 2), 0, np.sin(angle / 2), 0
    data.qvel[:] = 0.1 * np.random.default_rng(0).normal(size=model.nv)
    judge_constrained(model, data, CONTACT_TOLERANCE, forces=False)
    assert "normal at a rim" in str(mujacobian.diagnose(model, data).features)
