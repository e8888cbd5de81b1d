"""Contacts of curved geoms against MuJoCo's own step with a converged collider.

The tolerance of the collider limits all other tests of these contacts to 1e-6 at best.
"""

import itertools

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.converged import ConvergedStep
from tests.oracle.directional import is_kink, is_line_inside, is_linear
from tests.scenes.random_scenes import random_scene

TOLERANCE = 1e-8
POSES = 3
DIRECTIONS = 2  # number of directions of each kind; a wrong entry shows along almost any direction
SHAPES = {
    "ellipsoid": 'type="ellipsoid" size=".05 .08 .03"',
    "cylinder": 'type="cylinder" size=".05 .06"',
    "capsule": 'type="capsule" size=".04 .05"',
    "sphere": 'type="sphere" size=".05"',
    "box": 'type="box" size=".05 .04 .06"',
    "mesh": 'type="mesh" mesh="blob"',
}
CURVED = ("ellipsoid", "cylinder")
PAIRS = [
    (curved, other)
    for curved, other in itertools.product(CURVED, SHAPES)
    if (curved, other) not in [("cylinder", "sphere"), ("cylinder", "ellipsoid")]
]


def scene(first: str, second: str) -> mujoco.MjModel:
    """Return two free bodies of these shapes, whose contacts are single."""
    vertices = np.random.default_rng(1).normal(size=(14, 3)) * 0.05
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option timestep=".002"><flag multiccd="disable"/></option>
        <asset><mesh name="blob" vertex="{" ".join(f"{x:.5f}" for x in vertices.ravel())}"/></asset>
        <worldbody>
          <body><freejoint/><geom {SHAPES[first]}/></body>
          <body><freejoint/><geom {SHAPES[second]}/></body>
        </worldbody>
      </mujoco>""")
    return reference.converge(model)


def touching(model: mujoco.MjModel, rng: np.random.Generator) -> mujoco.MjData:
    """Return a random pose in which the bodies overlap by a few millimeters."""
    data = mujoco.MjData(model)
    for adr in (3, 10):
        quat = rng.normal(size=4)
        data.qpos[adr : adr + 4] = quat / np.linalg.norm(quat)
    data.qvel[:] = 0.02 * rng.normal(size=model.nv)
    toward = rng.normal(size=3)
    toward /= np.linalg.norm(toward)
    far, near = 0.25, 0.0
    depth = rng.uniform(1e-3, 6e-3)
    for _ in range(40):
        data.qpos[7:10] = (far + near) / 2 * toward
        mujoco.mj_forward(model, data)
        deep = data.ncon > 0 and data.contact.dist.min() < -depth
        far, near = (far, (far + near) / 2) if deep else ((far + near) / 2, near)
    return data


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_converged(pair: tuple[str, str]) -> None:
    model = scene(*pair)
    rng = np.random.default_rng(7)
    for pose in range(POSES):
        data = touching(model, rng)
        assert data.ncon == 1
        step = ConvergedStep(model, data)
        assert_converged(model, step, rng, f"pose {pose}")


@pytest.mark.skipif(mujoco.mj_version() < 3017000, reason="cylinders along faces turn instead")
@pytest.mark.parametrize(("depth", "margin"), [(0.01, 0), (0.03, 0), (0.01, 0.002)])
def test_a_cylinder_across_an_edge(depth: float, margin: float) -> None:
    """The cylinder is less or more deep than its axis; the direction of least depth is the same."""
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <worldbody>
          <body><freejoint/><geom type="cylinder" size=".015 .14" margin="{margin}"/></body>
          <body><freejoint/><geom type="box" size=".2 .01 .08"/></body>
        </worldbody>
      </mujoco>""")
    reference.converge(model)
    data = mujoco.MjData(model)
    tilt, turn, along = np.zeros(4), np.zeros(4), np.zeros(4)
    mujoco.mju_axisAngle2Quat(along, np.array([1.0, 0, 0]), np.pi / 2)
    mujoco.mju_axisAngle2Quat(tilt, np.array([1.0, 0, 0]), 0.06)
    mujoco.mju_axisAngle2Quat(turn, np.array([0.0, 0, 1]), 0.3)
    mujoco.mju_mulQuat(turn, turn, tilt)
    mujoco.mju_mulQuat(data.qpos[3:7], turn, along)
    data.qpos[2] = 0.08 + 0.015 - depth
    mujoco.mj_forward(model, data)
    assert data.ncon == 2
    assert (data.contact.dist.min() < -0.015) == (depth > 0.015)
    assert_converged(model, ConvergedStep(model, data), np.random.default_rng(0), f"{depth} deep")


# Two cylinders: pose of the second in the frame of the first, the margin of both, and whether the
# side of the first touches. The poses are self-collisions of a humanoid and of a quadruped.
ALONG_CAPS = {
    "rim": (
        (".065 .0675", ".06 .095"),
        "0.146246 0.031149 -0.134106",
        "0.381568 0.671194 -0.076893 -0.630866",
        (0, False),
    ),
    "side": (
        (".046 .02", ".011 .0325"),
        "-0.045135 -0.052906 -0.0155",
        "-0.452989 0.452989 0.542956 -0.542956",
        (0.001, True),
    ),
}


@pytest.mark.skipif(mujoco.mj_version() < 3017000, reason="cylinders along faces turn instead")
@pytest.mark.parametrize("case", ALONG_CAPS)
def test_a_cylinder_along_a_cap(case: str) -> None:
    """One of the sixteen sides of the cap and its own end clip the line."""
    (first, second), place, turn, (margin, sideways) = ALONG_CAPS[case]
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <default><geom type="cylinder" margin="{margin}"/></default>
        <worldbody>
          <body quat=".58 .04 -.04 .81"><freejoint/><geom size="{first}"/></body>
          <body quat=".58 .04 -.04 .81">
            <freejoint/><geom size="{second}" pos="{place}" quat="{turn}"/>
          </body>
        </worldbody>
      </mujoco>""")
    reference.converge(model)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == 2
    step = ConvergedStep(model, data)
    for line in step.optima.values():
        assert bool(line.optimum.sides[0].slides) == sideways
    mujacobian.linearize(model, data)  # also with the contact of the unconverged collider
    assert_converged(model, step, np.random.default_rng(0), case)


@pytest.mark.skipif(mujoco.mj_version() < 3017000, reason="one contact then")
@pytest.mark.parametrize("tilt", [-3e-3, 1e-3, 5e-3])
def test_a_capsule_along_a_cap(tilt: float) -> None:
    """The line of the capsule's surface points along the normal at the rim or at its lower end."""
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <worldbody>
          <body><freejoint/><geom type="capsule" size=".06 .15"/></body>
          <body><freejoint/><geom type="cylinder" size=".12 .1"/></body>
        </worldbody>
      </mujoco>""")
    reference.converge(model)
    data = mujoco.MjData(model)
    mujoco.mju_euler2Quat(data.qpos[3:7], np.array([0.0, np.pi / 2 + tilt, 0.3]), "XYZ")
    data.qpos[:3] = [0.06, 0.02, 0.1 + 0.06 - 1e-3]
    mujoco.mj_forward(model, data)
    assert data.ncon == 2
    step = ConvergedStep(model, data)
    at_rim = [not line.optimum.sides[1].slides for line in step.optima.values()]
    assert at_rim == [tilt > 0] * 2
    assert_converged(model, step, np.random.default_rng(0), f"tilt {tilt}")


def test_a_kink_across_zero_is_one() -> None:
    """The slopes of a curved step and a kink of opposite signs; a smooth step has no kink."""

    class Curve:
        noise, value = np.array([1e-14]), np.zeros(1)

        def __init__(self, jump: float) -> None:
            self.jump = jump

        def __call__(self, z: np.ndarray) -> np.ndarray:
            x = z[0]
            return np.array([x - 20 * x**2 + 300 * x**4 + self.jump / 2 * abs(x)])

    one = np.ones(1)
    assert is_kink(Curve(1e-3), one, 0, 1.0, 1 + 5e-4)
    assert is_kink(Curve(-1e-3), one, 0, 1.0, 1 + 5e-4)
    assert not is_kink(Curve(0.0), one, 0, 1.0, 1 + 5e-4)


@pytest.mark.parametrize("height", [-1e-4, 1e-4])
def test_a_manifold_hides_a_center_line_in_a_mesh(height: float) -> None:
    """The line of the capsule crosses an edge of a cube, over one of its faces."""
    corners = np.array(np.meshgrid(*3 * [[-0.1, 0.1]])).reshape(3, -1).T
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <asset><mesh name="cube" vertex="{" ".join(map(str, corners.ravel()))}"/></asset>
        <worldbody>
          <body><freejoint/><geom type="capsule" size=".05 .2"/></body>
          <geom type="mesh" mesh="cube"/>
        </worldbody>
      </mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mju_euler2Quat(data.qpos[3:7], np.array([0.0, np.pi / 2 + 0.01, 0.3]), "XYZ")
    data.qpos[:3] = 0.1, 0.0, 0.1 + height
    mujoco.mj_forward(model, data)
    assert data.ncon == 2
    assert is_line_inside(model, data, data.contact[0]) == (height < 0)


def test_slopes_that_do_not_add_up_are_no_derivative() -> None:
    """A crease between two axes is smooth along them and along the diagonal, but not linear."""

    class Roof:
        noise, value = np.array([1e-14]), np.zeros(1)

        def __init__(self, crease: float) -> None:
            self.crease = crease

        def __call__(self, z: np.ndarray) -> np.ndarray:
            x, y = z[:2]
            return np.array([x + 2 * y + self.crease * np.sqrt(abs(x * y)) * np.sign(x)])

    diagonal = np.ones(2)
    assert not is_linear(Roof(0.1), diagonal, 0, 3.1, 3.0)
    assert is_linear(Roof(0.1), diagonal, 0, 3.1, 2.9)  # the given entry is not that of the axes
    assert is_linear(Roof(0.0), diagonal, 0, 3.0, 2.9)


@pytest.mark.skipif(mujoco.mj_version() < 4000000, reason="another scene then")
def test_a_rim_within_the_margin_of_a_height_field() -> None:
    """The collider's own map has an error of 2e-4 here. The pose was found among 10,000 scenes."""
    with reference.quiet():
        model, data = random_scene(2000414)
        reference.converge(model)
        mujoco.mj_forward(model, data)
        step = ConvergedStep(model, data)
        assert len(step.optima) == 2
        assert_converged(model, step, np.random.default_rng(0), "rim over triangles")


@pytest.mark.parametrize("side", [-1, 1])
def test_a_sphere_deep_beside_a_diagonal(side: int) -> None:
    """The center is in one prism, and touches the wall that this prism shares with another one."""
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <asset>
          <hfield name="ground" nrow="2" ncol="2" size="1 1 .05 .1" elevation="0 0 0 0"/>
        </asset>
        <worldbody>
          <geom type="hfield" hfield="ground"/>
          <body><freejoint/><geom type="sphere" size=".0175"/></body>
        </worldbody>
      </mujoco>""")
    reference.converge(model)
    data = mujoco.MjData(model)
    data.qpos[:3] = 0.141 + side * 0.0006, 0.141 - side * 0.0006, -0.0178
    mujoco.mj_forward(model, data)
    assert data.ncon == 2
    step = ConvergedStep(model, data)
    assert len(step.optima) == 1
    assert_converged(model, step, np.random.default_rng(0), f"side {side}")


def assert_converged(
    model: mujoco.MjModel, step: ConvergedStep, rng: np.random.Generator, name: str
) -> None:
    """Compare derivatives along random directions of positions where the reference is trusted."""
    lin = mujacobian.linearize(model, step.converged, sensors=False, forward=False)
    directions = np.zeros((DIRECTIONS, step.nz))
    directions[:, : model.nv] = rng.uniform(-1, 1, (DIRECTIONS, model.nv))
    J, err = reference.differentiate(step, directions, TOLERANCE / 100)
    given, blocks = lin.A @ directions[:, : step.nx].T, step.blocks[:4]
    result = reference.compare(given, J[: step.nx], err[: step.nx], blocks, trust=TOLERANCE / 5)
    assert result.error <= TOLERANCE, f"{name}: {result.error:.1e} at {result.worst()}"
    assert result.share > 0, f"{name}: nothing is known"


@pytest.mark.parametrize("shape", ["sphere", "capsule"])
def test_round_geoms_deep_in_a_mesh(shape: str) -> None:
    """The core of the round geom is inside the mesh, where the collider uses its surface."""
    model = scene(shape, "mesh")
    rng = np.random.default_rng(5)
    for pose in range(POSES):
        data = mujoco.MjData(model)
        data.qpos[:3], data.qpos[3:7] = 0.01 * rng.normal(size=3), rng.normal(size=4)
        mujoco.mj_forward(model, data)
        assert reference.is_deep(model, data.contact[0])
        assert_converged(model, ConvergedStep(model, data), rng, f"pose {pose}")
