"""States without a derivative: the result is that of one branch, or an `UnsupportedFeatureError`.

There is never a NaN or a crash. Each test states which branch is returned.
"""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference

CONES = ("pyramidal", "elliptic")
CONDIMS = (1, 3, 4, 6)
# The result at a kink is the limit from one side: at a distance of 1e-9 it differs by rounding.
APPROACH = 1e-9
LIMIT_TOLERANCE = 1e-5

FLOOR = '<geom name="floor" type="plane" size="2 2 .1"/>'
CAPSULE = 'type="capsule" size=".05 .1"'


def world(geom, pos, *, floor=FLOOR, cone="pyramidal", condim=3, option=""):
    return f"""
    <mujoco>
      <compiler angle="radian"/>
      <option cone="{cone}" {option}/>
      <default><geom condim="{condim}"/></default>
      <worldbody>
        {floor}
        <body name="thing" pos="{pos}"><freejoint/><geom name="thing" {geom}/></body>
      </worldbody>
    </mujoco>"""


def load(text):
    model = reference.converge(mujoco.MjModel.from_xml_string(text))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def finite_or_refused(model, data, *names):
    """Return the linearization, or None if it raised an error with one of these names."""
    try:
        lin = mujacobian.linearize(model, data, sensors=False, forces=True)
    except mujacobian.UnsupportedFeatureError as error:
        if any(name in str(error) for name in names):
            return None
        raise
    for block in (lin.A, lin.B, lin.Bf):
        assert np.isfinite(block).all()
    return lin


def finite(model, data):
    lin = finite_or_refused(model, data)
    assert lin is not None
    return lin


def assert_close(lin, other):
    scale = abs(other.A).max()
    np.testing.assert_allclose(lin.A, other.A, rtol=0, atol=LIMIT_TOLERANCE * scale)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("condim", CONDIMS)
def test_exactly_touching(cone, condim):
    """dist == margin: MuJoCo has no row there, so the result is the derivative of free flight."""
    model, data = load(world('size=".125"', "0 0 .125", cone=cone, condim=condim))
    data.qvel[:] = [0.3, 0, -0.5, 0.1, 0.2, 0.3]
    mujoco.mj_forward(model, data)
    assert data.nefc == 0
    lin = finite(model, data)
    data.qpos[2] += APPROACH
    assert_close(lin, finite(model, data))
    data.qpos[2] -= 2 * APPROACH
    mujoco.mj_forward(model, data)
    assert data.nefc > 0
    finite(model, data)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("condim", CONDIMS)
def test_zero_slip(cone, condim):
    """A body at rest is inside its cone: the result is the derivative of sticking."""
    model, data = load(world('size=".125"', "0 0 .1248", cone=cone, condim=condim))
    assert data.nefc > 0
    finite(model, data)


@pytest.mark.parametrize("condim", [3, 4, 6])
def test_zero_slip_without_load(condim):
    """Friction and normal force are both zero at the tip of the cone."""
    text = world(
        'size=".125" margin=".01" gap="0"', "0 0 .13", cone="elliptic", condim=condim,
        option='gravity="0 0 0"',
    )  # fmt: skip
    model, data = load(text)
    finite(model, data)
    model, data = load(world('size=".125"', "0 0 .125", cone="elliptic", condim=condim))
    data.qpos[2] -= 1e-12
    finite(model, data)


LIMITED = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body>
      <joint name="hinge" axis="0 1 0" range="-.5 .5"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
      <body pos=".3 0 0">
        <joint name="ball" type="ball" range="0 .6"/>
        <geom type="box" size=".05 .03 .02" pos=".06 0 0" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""


def test_a_limit_exactly_reached():
    """dist == margin: there is no row yet, and the result is the derivative of free motion."""
    model, data = load(LIMITED)
    data.qpos[0] = model.jnt_range[0, 1]
    data.qvel[:] = [0.3, 0.1, 0.2, 0.3]
    mujoco.mj_forward(model, data)
    assert data.nefc == 0
    lin = finite(model, data)
    data.qpos[0] -= APPROACH
    assert_close(lin, finite(model, data))
    data.qpos[0] += 2 * APPROACH
    mujoco.mj_forward(model, data)
    assert data.nefc == 1
    finite(model, data)


def test_a_ball_limit_at_no_rotation():
    """theta = 0 with a margin that makes the row active: the axis is undefined there."""
    text = LIMITED.replace('range="0 .6"', 'range="0 .6" margin="1"')
    model, data = load(text)
    mujoco.mj_forward(model, data)
    assert data.nefc >= 1
    finite_or_refused(model, data, "ball")


def test_friction_loss_at_rest():
    """Without load and speed, the result is the derivative of sticking."""
    model, data = load(LIMITED.replace('name="hinge"', 'name="hinge" frictionloss=".1"'))
    data.qvel[:] = 0
    finite(model, data)


def test_equality_exactly_satisfied():
    """The violation's norm has no gradient at zero; the impedance is flat there for power 2."""
    for power in (1, 2, 3.5):
        text = LIMITED.replace(
            "</mujoco>",
            f"""<equality>
              <weld body1="a" body2="b" solimp=".9 .95 .001 .5 {power}"/>
              <connect body1="a" body2="b" anchor="0 0 0" solimp=".9 .95 .001 .5 {power}"/>
            </equality></mujoco>""",
        )
        text = text.replace("<body>", '<body name="a">').replace("<body pos", '<body name="b" pos')
        model, data = load(text)
        assert data.nefc >= 9
        finite(model, data)


def test_parallel_capsules():
    """There are two contacts, one at each end of the overlap."""
    lower = f'<geom name="floor" {CAPSULE} euler="1.5707963267948966 0 0"/>'
    for cone in CONES:
        for shift in (0.0, 0.03, 0.1):
            text = world(
                CAPSULE + ' euler="1.5707963267948966 0 0"', f"0 {shift} .0999", floor=lower,
                cone=cone,
            )  # fmt: skip
            model, data = load(text)
            assert data.ncon >= 1
            finite_or_refused(model, data, "thing", "floor")


def test_parallel_capsules_along_the_world_axis():
    for cone in CONES:
        text = world(CAPSULE, ".0999 0 .03", floor=f'<geom name="floor" {CAPSULE}/>', cone=cone)
        model, data = load(text)
        assert data.ncon >= 1
        finite_or_refused(model, data, "thing", "floor")


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("condim", CONDIMS)
def test_a_flat_box(cone, condim):
    """All four corners are equally deep; they stay the four corners of contact."""
    model, data = load(world('type="box" size=".1 .1 .1"', "0 0 .0998", cone=cone, condim=condim))
    assert data.ncon == 4
    lin = finite(model, data)
    data.qpos[4] += APPROACH
    assert_close(lin, finite(model, data))


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("condim", CONDIMS)
def test_an_upright_capsule(cone, condim):
    """Its axis defines no tangent: MuJoCo uses a world axis, and so does the derivative."""
    model, data = load(world(CAPSULE, "0 0 .1499", cone=cone, condim=condim))
    assert data.ncon == 1
    lin = finite_or_refused(model, data, "thing", "floor")
    if condim == 1 or cone == "elliptic":
        assert lin is not None, "no tangent matters here"


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("condim", CONDIMS)
@pytest.mark.parametrize("tilt", [0.0, 1e-14, 1e-9, 1e-4])
def test_a_standing_cylinder(cone, condim, tilt):
    """The points on the rim depend on the direction of the tilt, which is undefined."""
    model, data = load(world('type="cylinder" size=".1 .1"', "0 0 .0998", cone=cone, condim=condim))
    data.qpos[4] += tilt
    mujoco.mj_forward(model, data)
    assert data.ncon >= 3
    finite_or_refused(model, data, "thing", "floor")


@pytest.mark.parametrize("cone", CONES)
def test_coincident_centers(cone):
    """Two spheres, or a sphere and the axis of a capsule, are in the same place."""
    for lower in (
        'size=".1"',
        CAPSULE,
        'type="cylinder" size=".1 .1"',
        'type="box" size=".1 .1 .1"',
    ):
        text = world('size=".08"', "0 0 0", floor=f'<geom name="floor" {lower}/>', cone=cone)
        model, data = load(text)
        assert data.ncon >= 1
        finite_or_refused(model, data, "thing", "floor")


@pytest.mark.parametrize("cone", CONES)
def test_a_frame_that_switches(cone):
    """|n_y| = 0.5, where the first tangent changes from the y axis to the z axis of the world."""
    floor = f'<geom name="floor" type="plane" size="2 2 .1" euler="{-np.pi / 6:.17g} 0 0"/>'
    model, data = load(world('size=".1"', "0 0 .1", floor=floor, cone=cone))
    data.qpos[:3] = 0.0999 * data.geom("floor").xmat.reshape(3, 3)[:, 2]
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    finite(model, data)


@pytest.mark.parametrize("cone", CONES)
def test_edges_of_a_colliders_regions(cone):
    """The sphere is over the face, edge and corner of a box, and over the rim of a cylinder."""
    box = '<geom name="floor" type="box" size=".2 .2 .1"/>'
    for pos in ("0 0 .1999", ".2 0 .1999", ".2 .2 .1999", ".2999 0 0", ".2999 .2 .1"):
        model, data = load(world('size=".1"', pos, floor=box, cone=cone))
        assert data.ncon == 1
        finite(model, data)
    cylinder = '<geom name="floor" type="cylinder" size=".2 .1"/>'
    for pos in ("0 0 .1999", ".2 0 .1999", ".2999 0 .1", "0 .2999 0"):
        model, data = load(world('size=".1"', pos, floor=cylinder, cone=cone))
        assert data.ncon == 1
        finite(model, data)


def test_edges_of_equal_pads_lie_in_one_plane():
    """Between the pads of a gripper, rounding decides where MuJoCo clips edges: this is exact."""
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <worldbody>
          <body>
            <freejoint/>
            <geom type="sphere" size=".01" pos="0 0 -.3" mass="1"/>
            <body pos="0 0 .0021">
              <joint type="slide" axis="0 0 1"/>
              <geom type="box" size=".012 .015 .0025" mass=".1"/>
            </body>
            <body pos="0 0 -.0021" euler="180 0 0">
              <joint type="slide" axis="0 0 1"/>
              <geom type="box" size=".012 .015 .0025" euler="1e-3 0 0" mass=".1"/>
            </body>
          </body>
        </worldbody>
      </mujoco>""")
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    counts = set()
    for _ in range(60):
        quat = rng.normal(size=4)
        data.qpos[3:7] = quat / np.linalg.norm(quat)
        lin = mujacobian.linearize(model, data)
        assert np.isfinite(lin.A).all()
        counts.add(data.ncon)
    assert max(counts) > 4, "no edge was cut"
