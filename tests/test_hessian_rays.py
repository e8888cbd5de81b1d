"""Second derivatives of distances, rays and projections, against differences of C."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.oracle.second_order import cotangent, judge_columns
from tests.scenes.cases import random_state, sample
from tests.test_distances import GEOMS, PAIRS, build, is_limit, place, slopes_of_rows
from tests.test_force_sensors import LENSES, RAY_FIELDS, TARGETS, look_at
from tests.test_hessian_sensors import weights
from tests.test_hvp import judge as judge_product
from tests.test_sensors import BODIES

TOLERANCE = 1e-8
LEAST_SHARE = 0.8  # of the columns; differences along the others leave the nearest feature
STEP = 2e-3  # of differences, rad and m; smaller than the features of the geoms
# MuJoCo finds the points of some curved geoms to the square root of rounding only. They are
# branches of C that jump by about 1e-6, so that its differences have errors of up to 1e-3.
LIMIT_TOLERANCE = 3e-3
LIMIT_SHARE = 0.5
LIMIT_STEPS = {"step": 4e-3, "levels": 5}
ROWS_TOLERANCE = 1e-10  # of the second derivative of the distance against rows of C
LIMIT_ROWS_TOLERANCE = 1e-6  # the comparison uses points of MuJoCo

SENSORS = "".join(
    f'<{kind} geom1="{a}" geom2="{b}" cutoff="2"/>'
    for kind, a, b in (("distance", "a", "b"), ("normal", "b", "a"), ("fromto", "a", "b"))
)


@pytest.mark.parametrize("pair", sample(3, PAIRS), ids="-".join)
def test_distances(pair):
    """Geoms that are apart, and geoms that overlap."""
    model = build(*(GEOMS[name] for name in pair), sensors=SENSORS)
    shares, least = [], LEAST_SHARE
    for seed in range(4):
        data = place(model, seed)
        sensed = weights(model)
        try:
            found = mujacobian.hessian(model, data, np.zeros(2 * model.nv), sensed)
            assert found.xx.any()
            if is_limit(model, data, pair):
                given, least = {"tolerance": LIMIT_TOLERANCE, **LIMIT_STEPS}, LIMIT_SHARE
            else:
                given = {"tolerance": TOLERANCE, "step": STEP}
            shares.append(judge_columns(model, data, sensed=sensed, **given))
        except mujacobian.UnsupportedFeatureError:
            continue  # here, or at a state of the differences
        judge_product(model, data, np.zeros(2 * model.nv), sensed)
    assert len(shares) >= 2
    assert np.mean(shares) >= least


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_second_derivatives_of_distances_are_rows_of_the_first_ones(pair):
    """The gradient of a distance is a function of the normal and of the nearest points."""
    model = build(*(GEOMS[name] for name in pair))
    compared = 0
    for seed in range(4):
        data = place(model, seed)
        try:
            H = mujacobian.hessian(
                model, data, np.zeros(2 * model.nv), np.eye(model.nsensordata)[0]
            ).xx
        except mujacobian.UnsupportedFeatureError:
            continue
        free = slice(model.nv - 6, model.nv)
        C = mujacobian.linearize(model, data).C
        normal = np.sign(data.sensordata[0]) * data.sensordata[2:5]
        if abs(C[0, free][:3] - normal).max() > LIMIT_ROWS_TOLERANCE:
            continue  # deep inside, MuJoCo's distance is not along its normal
        expected = slopes_of_rows(model, data, C)
        turns = expected[3:, -3:]
        expected[3:, -3:] = 0.5 * (turns + turns.T)  # in exponential coordinates
        limit = is_limit(model, data, pair)
        tolerance = (LIMIT_ROWS_TOLERANCE if limit else ROWS_TOLERANCE) * abs(expected).max()
        np.testing.assert_allclose(H[free, : model.nv], expected, rtol=0, atol=tolerance)
        compared += 1
    assert compared >= 2


def test_distances_of_two_trees_that_nothing_couples():
    """The bodies belong to different components of the step."""
    model = build(GEOMS["sphere"], GEOMS["capsule"], sensors=SENSORS)
    data = place(model, 1)
    assert mujacobian.hessian(model, data, np.ones(2 * model.nv)).xx[0, 4] == 0
    assert mujacobian.hessian(model, data, np.ones(2 * model.nv), weights(model)).xx[0, 4] != 0


def test_distances_beyond_the_cutoff_are_constant():
    model = build(GEOMS["sphere"], GEOMS["box"], sensors=SENSORS)
    model.sensor_cutoff[:] = 0.01
    found = mujacobian.hessian(model, place(model, 1), np.zeros(2 * model.nv), weights(model))
    assert not found.xx.any()


def test_parallel_faces_raise():
    """The distance has a first derivative there, but no second one."""
    model = build(GEOMS["box"], GEOMS["box"], sensors=SENSORS[: SENSORS.index("<normal")])
    model.geom_sameframe[1] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
    model.geom_quat[1] = 1, 0, 0, 0
    data = mujoco.MjData(model)
    data.qpos[-7:] = 0.01, 0.02, 0.5, 1, 0, 0, 0
    mujoco.mj_forward(model, data)
    assert mujacobian.linearize(model, data).C.any()
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="parallel"):
        mujacobian.hessian(model, data, np.zeros(2 * model.nv), np.ones(1))


@pytest.mark.parametrize("target", TARGETS)
def test_rangefinders(target):
    sensors = f"""
        <rangefinder site="eye"/>
        <rangefinder site="eye" data="{RAY_FIELDS}"/>
        <rangefinder site="eye" cutoff=".1"/>"""
    model = look_at(target, sensors, '<site name="eye" pos="0 .02 -.1" euler="183 4 20"/>')
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv)
    mujoco.mj_forward(model, data)
    if data.sensordata[0] > 0:
        data.joint("drone").qpos[2] += 0.3 - data.sensordata[0]
    sensed = weights(model)
    share = judge_columns(model, data, sensed=sensed, tolerance=TOLERANCE, step=STEP)
    assert share >= LEAST_SHARE
    judge_product(model, data, np.zeros(2 * model.nv), sensed)
    assert mujacobian.hessian(model, data, np.zeros(2 * model.nv), sensed).xx.any()


@pytest.mark.parametrize("lens", [name for name in LENSES if name != "following"])
def test_rangefinders_of_cameras(lens):
    eye = f'<camera name="eye" pos="0 .02 -.1" euler="3 4 20" resolution="3 2" {LENSES[lens]}/>'
    sensors = f'<rangefinder camera="eye" data="{RAY_FIELDS}"/>'
    model = look_at("ellipsoid", sensors, eye)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    data.joint("drone").qpos[2] += 0.6 - data.sensordata[::14].max()
    sensed = weights(model)
    share = judge_columns(model, data, sensed=sensed, tolerance=TOLERANCE, step=STEP)
    assert share >= LEAST_SHARE


def test_projections():
    """Sites on the same tree, on another one, and in the world; a lens with two focal lengths."""
    pairs = (("touch", "eye"), ("beacon", "wrist"), ("imu", "guard"), ("lamp", "eye"))
    sensors = "".join(f'<camprojection site="{s}" camera="{c}"/>' for s, c in pairs)
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option timestep=".003"><flag constraint="disable"/></option>
        <worldbody>{BODIES.replace("LIMITED", "false")}</worldbody>
        <sensor>{sensors}</sensor>
      </mujoco>""")
    data = random_state(model, np.random.default_rng(3))
    sensed = weights(model)
    share = judge_columns(model, data, sensed=sensed, tolerance=TOLERANCE, step=STEP)
    assert share >= LEAST_SHARE
    judge_product(model, data, cotangent(model), sensed)


@pytest.mark.parametrize("kind", ["rangefinder", "camprojection"])
def test_cameras_that_follow_a_body_raise(kind):
    text = {
        "rangefinder": f'<rangefinder name="s" camera="eye" data="{RAY_FIELDS}"/>',
        "camprojection": '<camprojection name="s" site="mark" camera="eye"/>',
    }[kind]
    eye = f'<camera name="eye" pos="0 .02 -.1" resolution="2 2" {LENSES["following"]}/>'
    model = look_at("sphere", text, eye + '<site name="mark" pos="1 1 1"/>')
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='sensor "s"'):
        mujacobian.hessian(model, mujoco.MjData(model), np.ones(2 * model.nv), weights(model))
    assert [u.element for u in mujacobian.support(model, order=2)] == ['sensor "s"']
