"""Diagnostics: the rows and clamps, their distances from kinks, and K."""

import mujoco
import numpy as np
import pytest

import mujacobian

MODEL = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 {height}"><freejoint/><geom name="ball" size=".1"/></body>
    <body name="arm" pos="1 0 1">
      <joint name="elbow" axis="0 1 0" range="-.5 .5" frictionloss=".1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="elbow" ctrlrange="-1 1" forcerange="-3 3"/></actuator>
</mujoco>"""


def forward(height, elbow=0.0, ctrl=0.0):
    model = mujoco.MjModel.from_xml_string(
        MODEL.format(height=height).replace("<worldbody>", '<compiler angle="radian"/><worldbody>')
    )
    data = mujoco.MjData(model)
    data.joint("elbow").qpos = elbow
    data.ctrl[:] = ctrl
    mujoco.mj_forward(model, data)
    return model, data


def test_rows_are_named_and_measured():
    model, data = forward(height=0.099, elbow=0.51)
    rows = {row.element: row for row in mujacobian.diagnose(model, data).rows}
    assert set(rows) == {
        'joint "elbow" friction',
        'joint "elbow" limit',
        'contact between geom "floor" and geom "ball"',
    }
    contact = rows['contact between geom "floor" and geom "ball"']
    assert contact.state == "sticking"
    assert contact.activation == pytest.approx(0.001)
    assert contact.zone > 0
    assert contact.feature == "sphere on face"
    limit = rows['joint "elbow" limit']
    assert limit.state == "pressing"
    assert limit.activation == pytest.approx(0.01)
    assert limit.feature == ""
    assert rows['joint "elbow" friction'].activation == np.inf


CORNERS = """
<mujoco>
  <option ccd_tolerance="1e-13"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="first" pos="0 0 .2"><freejoint/><geom name="first" {first}/></body>
    <body name="second" pos="{offset}"><freejoint/><geom name="second" {second}/></body>
  </worldbody>
</mujoco>"""


@pytest.mark.parametrize(
    ("first", "second", "offset", "feature"),
    [
        ('size=".1"', 'size=".1"', "0 .12 .35", "point on point"),
        ('type="capsule" size=".1 .2"', 'size=".1"', ".19 0 .25", "point on line"),
        ('type="box" size=".1 .1 .1"', 'size=".1"', ".03 .02 .39", "sphere on face"),
        (
            'type="box" size=".1 .1 .1" euler="45 0 0"',
            'type="box" size=".1 .1 .1" euler="0 45 0"',
            "0 0 .48",
            "edge on edge",
        ),
        (
            'type="ellipsoid" size=".1 .12 .14"',
            'type="box" size=".1 .1 .1"',
            ".02 .01 .43",
            "supports: curved surface on face",
        ),
    ],
)
def test_the_features_of_a_contact_are_named(first, second, offset, feature):
    text = CORNERS.format(first=first, second=second, offset=offset)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[2] += 1  # off the floor
    data.qpos[9] += 1
    result = mujacobian.diagnose(model, data)
    assert result.features == {feature: len(result.rows)}
    assert f"contact features: {len(result.rows)} {feature}" in repr(result)


def test_every_corner_of_a_box_on_a_plane_is_a_vertex_on_a_face():
    text = CORNERS.format(first='type="box" size=".1 .1 .1"', second='size=".1"', offset="5 5 .099")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[2] = 0.0999
    result = mujacobian.diagnose(model, data)
    assert result.features == {"vertex on face": 4, "sphere on face": 1}
    assert "contact features: 4 vertex on face; 1 sphere on face" in repr(result)


def test_clamps_are_measured_to_their_nearer_end():
    model, data = forward(height=1.0, ctrl=0.75)
    clamps = {clamp.clamp: clamp.distance for clamp in mujacobian.diagnose(model, data).clamps}
    assert clamps == {"ctrlrange": pytest.approx(0.25), "forcerange": pytest.approx(2.25)}
    data.ctrl[:] = 1.5
    ctrl = mujacobian.diagnose(model, data).clamps[0]
    assert (ctrl.element, ctrl.distance) == ('actuator "push"', pytest.approx(-0.5))


def test_K_is_M_where_nothing_is_active():
    model, data = forward(height=1.0)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS
    result = mujacobian.diagnose(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    np.testing.assert_allclose(result.K, M, rtol=1e-15)
    assert result.rows == []
    assert result.condition >= 1


def test_the_residual_shrinks_and_the_state_stays():
    model, data = forward(height=0.099)
    model.opt.iterations = 2
    before = data.qpos.tobytes() + data.qvel.tobytes() + data.qacc_warmstart.tobytes()
    result = mujacobian.diagnose(model, data)
    assert result.residual <= max(1e-10, result.residual_before)
    assert data.qpos.tobytes() + data.qvel.tobytes() + data.qacc_warmstart.tobytes() == before


def test_wrong_arguments_are_named():
    model, data = forward(height=1.0)
    with pytest.raises(TypeError, match="model"):
        mujacobian.diagnose(data, data)
    with pytest.raises(TypeError, match="data"):
        mujacobian.diagnose(model, model)
    data.qpos[2] = np.nan
    with pytest.raises(ValueError, match="qpos"):
        mujacobian.diagnose(model, data)
