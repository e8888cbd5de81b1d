"""Distance sensors of all pairs of geoms, apart and overlapping, of bodies, with cutoffs."""

from itertools import combinations_with_replacement

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.scenes import cases

TOLERANCE = 1e-8
LIMIT_TOLERANCE = 1e-5  # the comparison uses points of MuJoCo, which have errors of about 1e-6
SLOPE_STEP = 4e-3
SLOPE_TRUST = 3e-6  # fraction of the largest slope; the extrapolated slopes are more accurate
TRUST_MARGIN = 5
FLOOR = 1e-3
STATES = 6  # states of each pair, alternately apart and overlapping

VERTICES = " ".join(
    f"{x:.3f}" for x in np.random.default_rng(0).uniform(-0.15, 0.15, size=(14, 3)).ravel()
)
GEOMS = {
    "plane": 'type="plane" size="2 2 .1"',
    "sphere": 'type="sphere" size=".11"',
    "capsule": 'type="capsule" size=".06 .15"',
    "ellipsoid": 'type="ellipsoid" size=".08 .12 .2"',
    "cylinder": 'type="cylinder" size=".1 .14"',
    "box": 'type="box" size=".1 .15 .07"',
    "mesh": 'type="mesh" mesh="rock"',
}
PAIRS = [p for p in combinations_with_replacement(GEOMS, 2) if p[1] != "plane"]
SENSORS = "".join(
    f'<{kind} geom1="{a}" geom2="{b}" cutoff="2"/>'
    for kind in ("distance", "normal", "fromto")
    for a, b in ("ab", "ba")
)


def is_limit(model: mujoco.MjModel, data: mujoco.MjData, pair: tuple[str, str]) -> bool:
    """Return whether MuJoCo's collider finds the points only to the square root of rounding.

    This is so for curved surfaces, and for meshes that reach into the core of a round geom.
    """
    inside = data.sensordata[0] < -model.geom_size[0, 0]
    if pair in (("sphere", "mesh"), ("capsule", "mesh")):
        return bool(inside)
    closed = "plane" in pair or pair == ("sphere", "cylinder")
    return not closed and bool({"ellipsoid", "cylinder"} & set(pair))


def build(first: str, second: str, sensors: str = SENSORS, rest: str = "") -> mujoco.MjModel:
    """Return a body on a hinge and a slide, unless it is a plane, and a free body."""
    joints = "" if "plane" in first else '<joint axis="1 2 3"/><joint type="slide" axis="0 1 .5"/>'
    model = mujoco.MjModel.from_xml_string(f"""
    <mujoco>
      <option ccd_iterations="200"><flag contact="disable"/></option>
      <asset><mesh name="rock" vertex="{VERTICES}"/></asset>
      <worldbody>
        <body name="first">{joints}
          <geom name="a" {first} mass="1"/>
        </body>
        <body name="second">
          <freejoint/>
          <geom name="b" {second} pos=".02 .01 0" euler="10 20 30" mass="1"/>
        </body>
        {rest}
      </worldbody>
      <sensor>{sensors}</sensor>
    </mujoco>""")
    reference.converge(model)
    return model


def place(model: mujoco.MjModel, seed: int) -> mujoco.MjData:
    """Return a state with the free body near the origin, or farther away for odd seeds."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    data.qpos[:-7] = rng.normal(size=model.nq - 7) * 0.05
    data.qpos[-7:] = rng.normal(size=7)
    direction = data.qpos[-7:-4] / np.linalg.norm(data.qpos[-7:-4])
    if model.geom_type[0] == mujoco.mjtGeom.mjGEOM_PLANE:
        direction = np.array([0.0, 0.0, 0.8])
    data.qpos[-7:-4] = (0.45 if seed % 2 else 0.05) * direction
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.qvel[:] = 0.3 * rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    return data


def judge(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Check the rows of all sensors; return the share of entries that could be compared."""
    before = cases.snapshot(model, data)
    lin = mujacobian.linearize(model, data)
    again = mujacobian.linearize(model, data)
    assert cases.snapshot(model, data) == before, "the caller's state changed"
    assert lin.C.tobytes() == again.C.tobytes(), "not repeatable"
    assert not lin.C[:, model.nv :].any()
    assert not lin.D.any()
    ref = reference.jacobian(model, data)
    rows, columns = slice(ref.nx, None), slice(model.nv)
    expected, err = ref.J[rows, columns], ref.err[rows, columns]
    scale = np.maximum(abs(expected).max(axis=1, keepdims=True), FLOOR)
    trusted = err <= TOLERANCE / TRUST_MARGIN * scale
    error = np.where(trusted, abs(lin.C[:, columns] - expected) / scale, 0.0)
    assert error.max() <= TOLERANCE, np.unravel_index(error.argmax(), error.shape)
    assert lin.C.any()
    return float(trusted.mean())


def second_slopes(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, float]:
    """Return d(gradient of the distance with respect to the free body)/dq, (6, nv), and errors."""
    moved = mujoco.MjData(model)

    def distance(*moves: np.ndarray) -> float:
        moved.qpos[:] = data.qpos
        for move in moves:
            mujoco.mj_integratePos(model, moved.qpos, move, 1.0)
        mujoco.mj_kinematics(model, moved)
        return mujoco.mj_geomDistance(model, moved, 0, 1, 2, None)

    def difference(h: float) -> np.ndarray:
        steps = h * np.eye(model.nv)
        slopes = np.zeros((6, model.nv))
        for j, step in enumerate(steps):
            for k, inner in enumerate(steps[-6:]):
                for sign in (1, -1):
                    above, below = distance(sign * step, inner), distance(sign * step, -inner)
                    slopes[k, j] += sign * (above - below)
        return slopes / (4 * h * h)

    coarse, middle, fine = (difference(SLOPE_STEP / 2**k) for k in range(3))
    first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    return (16 * second - first) / 15, float(abs(second - first).max())


def slopes_of_rows(model: mujoco.MjModel, data: mujoco.MjData, C: np.ndarray) -> np.ndarray:
    """Return the same derivative, from the rows of the normal n and the point x on the free body.

    The gradient is (n, R^T ((x - p) x n)), with p and R those of the free body.
    """
    body = model.body("second").id
    p, R = data.xpos[body], data.xmat[body].reshape(3, 3)
    sign = np.sign(data.sensordata[0])  # inside, the sensor's normal is reversed
    normal, point = slice(2, 5), slice(11, 14)
    n, dn = sign * data.sensordata[normal], sign * C[normal, : model.nv]
    arm, darm = data.sensordata[point] - p, C[point, : model.nv].copy()
    darm[:, -6:-3] -= np.eye(3)
    torque = np.cross(arm, n)
    dtorque = np.cross(darm.T, n).T + np.cross(arm, dn.T).T
    dtorque[:, -3:] -= np.cross(R.T, torque).T
    return np.vstack([dn, R.T @ dtorque])


def judge_limit(model: mujoco.MjModel, data: mujoco.MjData) -> bool:
    """Check all rows against distances alone; return whether these are accurate enough."""
    try:
        C = mujacobian.linearize(model, data).C
    except mujacobian.UnsupportedFeatureError:
        return False  # MuJoCo 3.15 stops far from the deepest points of some ellipsoids
    (expected, error), given = second_slopes(model, data), slopes_of_rows(model, data, C)
    size = abs(expected).max()
    if error > SLOPE_TRUST * size:
        return False
    assert abs(given - expected).max() <= LIMIT_TOLERANCE * size
    return True


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pairs_of_geoms(pair: tuple[str, str]) -> None:
    model = build(*(GEOMS[name] for name in pair))
    signs, limits, compared = set(), 0, 0
    for seed in range(STATES):
        data = place(model, seed)
        signs.add(data.sensordata[0] > 0)
        if is_limit(model, data, pair):
            limits += 1
            compared += judge_limit(model, data)
        else:
            assert judge(model, data) > 0.8
    assert signs == {False, True}
    assert compared or not limits


def test_bodies_report_their_nearest_geoms() -> None:
    """Planes have no distance from planes, and geoms beyond the cutoff do not count."""
    rest = """<body name="third" pos="0 0 -.3"><joint axis="0 1 .3" pos=".4 0 0"/>
      <geom type="sphere" size=".05" pos=".1 0 0"/><geom type="capsule" size=".04 .1"/>
      <geom type="box" size=".05 .06 .07" pos="-.1 .1 0"/></body>
      <body name="ground" pos="0 0 -1"><geom type="plane" size="1 1 1"/>
      <geom type="box" size=".1 .1 .1" pos="0 0 .1"/></body>"""
    sensors = "".join(
        f'<{kind} {a[0]}1="{a[1]}" {b[0]}2="{b[1]}" cutoff="{cutoff}"/>'
        for kind in ("distance", "normal", "fromto")
        for cutoff in (0.3, 2)
        for a, b in (
            (("body", "second"), ("body", "third")),
            (("body", "third"), ("geom", "a")),
            (("body", "ground"), ("body", "third")),
        )
    )
    model = build(GEOMS["box"], GEOMS["capsule"], sensors, rest)
    for seed in range(STATES):
        data = place(model, seed)
        data.qpos[-1] = 0.2 * seed
        data.qpos[2:9] = place(build(GEOMS["box"], GEOMS["capsule"]), seed).qpos[2:9]
        mujoco.mj_forward(model, data)
        assert judge(model, data) > 0.8


def test_beyond_the_cutoff_all_is_constant() -> None:
    sensors = SENSORS.replace('cutoff="2"', 'cutoff=".05"')
    model = build(GEOMS["box"], GEOMS["sphere"], sensors)
    data = place(model, 1)
    assert data.sensordata[0] == 0.05
    assert not mujacobian.linearize(model, data).C.any()


def test_deeper_than_the_cutoff_the_distance_is_clipped() -> None:
    sensors = SENSORS.replace('cutoff="2"', 'cutoff=".05"')
    model = build(GEOMS["box"], GEOMS["sphere"], sensors)
    data = place(model, 2)
    assert data.sensordata[0] == -0.05
    C = mujacobian.linearize(model, data).C
    assert not C[:2].any()
    assert C[2:].any(axis=1).all()


def test_without_a_cutoff_only_depths_count() -> None:
    model = build(GEOMS["box"], GEOMS["mesh"], SENSORS.replace('cutoff="2"', ""))
    for seed in range(2):
        data = place(model, seed)
        rows = mujacobian.linearize(model, data).C
        deep = mujacobian.linearize(build(GEOMS["box"], GEOMS["mesh"]), data).C
        np.testing.assert_allclose(rows, 0 if seed else deep, atol=1e-12)


def test_faces_that_stay_parallel() -> None:
    """Fingers on slides: distance and normal are smooth, but the nearest points are not unique."""
    slides = '<joint type="slide" axis="1 .2 .1"/><joint type="slide" axis="0 1 0"/>'
    finger = f'<body pos="{{}} {{}} 0">{slides}{{}}</body>'
    sensors = '<distance geom1="l" geom2="r" cutoff="1"/><normal geom1="l" geom2="r" cutoff="1"/>'
    xml = f"""
    <mujoco>
      <option><flag contact="disable"/></option>
      <worldbody>
        {finger.format(-0.1, 0.003, '<geom name="l" type="box" size=".01 .02 .04"/>')}
        {finger.format(0.1, 0.01, '<geom name="r" type="box" size=".02 .03 .05"/>')}
      </worldbody>
      <sensor>{sensors}REST</sensor>
    </mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml.replace("REST", ""))
    data = mujoco.MjData(model)
    data.qvel[:] = 0.1
    mujoco.mj_forward(model, data)
    assert judge(model, data) == 1
    rest = '<fromto name="span" geom1="l" geom2="r" cutoff="1"/>'
    model = mujoco.MjModel.from_xml_string(xml.replace("REST", rest))
    data = mujoco.MjData(model)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r'sensor "span".*parallel'):
        mujacobian.linearize(model, data)
    assert mujacobian.linearize(model, data, sensors=False).A.any()


def test_the_legacy_collider_is_refused_by_name() -> None:
    model = build(
        GEOMS["box"], GEOMS["mesh"], SENSORS.replace("<distance", '<distance name="d"', 1)
    )
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_NATIVECCD
    data = place(model, 1)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r'sensor "d".*geom "a"'):
        mujacobian.linearize(model, data)
    assert mujacobian.linearize(model, data, sensors=False).A.any()
