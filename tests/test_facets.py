"""An ellipsoid on a face of a box: MuJoCo's collider finds the depth to rounding, not the point.

The collider stops on a facet of its polytope. The depth is stationary at the optimum: if it is
accurate to rounding, the point is accurate only to the square root of rounding. The point moves
with the facet. Therefore `mj_step` has slopes of its own, at every `ccd_tolerance` and over every
length of a difference. Both poses come from a hand with an object on its palm (Wonik Allegro).
There, differences of `mj_step` at a `ccd_tolerance` of 1e-13 contradicted our zeros.

Here the optimum has a closed form, which uses neither our code nor MuJoCo's collider.
"""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.converged import ConvergedStep

Array = np.ndarray
RADII = np.array([0.03, 0.04, 0.02])  # m: semiaxes of the ellipsoid
HALF = np.array([0.0204, 0.0565, 0.0475])  # m: half sizes of the box
# position and orientation of the ellipsoid in the frame of the box, its velocity
POSES = {
    "seed 1 state 5": (
        [0.04081602141827919, -0.01687215840123315, 0.03626876922113264],
        [-0.3246760235359418, 0.6537033864277747, -0.3973249733711571, 0.5562285751823238],
        [-0.00325876, 0.00518156, 0.00196312, -0.15099183, -0.0507073, 0.32329347],
    ),
    "seed 2 state 4": (
        [0.04212840623226055, -0.00360937649780298, 0.03871024531344707],
        [-0.03441756398047111, 0.8350850572856376, 0.00391178117315179, 0.5490292126617194],
        [0.00582707, 0.04162831, -0.00991727, -1.13617191, 0.59876929, 1.40290515],
    ),
}
ALONG = (1, 2)  # coordinates in which the ellipsoid slides along the face
STEPS = (1e-4, 1e-5, 1e-6)  # m: lengths of differences
ROUNDED = 1e-6  # 1/s: slopes below it are rounding
DEPTH_ROUNDING = 1e-15  # m
POINT_ROUNDING = 1e-7  # m: the square root of rounding, for radii around 0.03 m
DIRECTIONS = 20000  # directions in which the depth is compared with that of the face
EXACT = 1e-8  # relative, against differences of the step with the contact in closed form
NEAR = 1e-5  # tolerance of the project for models at their own settings
TRUSTED = 0.9  # share of trusted entries
SYMMETRY = 1e-12  # relative to the largest entry: smaller entries count as zero


class FaceContact:
    """The deepest point of the ellipsoid below a face of the box, in closed form."""

    def solve(self, data: mujoco.MjData, contact: mujoco.MjContact) -> bool:
        """Move a contact of `data` to this point."""
        normal, dist, point = self.find(data)
        contact.dist, contact.pos[:] = dist, point
        contact.frame[:3] = normal
        contact.frame[3:6] = 0, 1, 0  # MuJoCo's choice for a normal along x
        contact.frame[6:] = np.cross(contact.frame[:3], contact.frame[3:6])
        return True

    def find(self, data: mujoco.MjData) -> tuple[Array, float, Array]:
        """Return the normal (out of the ellipsoid), distance and point of the contact."""
        faces = np.vstack([np.eye(3), -np.eye(3)])
        depths = self.depth(data, faces)
        normal = faces[depths.argmin()]
        center, axes = data.geom_xpos[1], data.geom_xmat[1].reshape(3, 3)
        local = RADII * (axes.T @ normal)
        lowest = center + axes @ (RADII * local) / np.linalg.norm(local)
        dist = -float(depths.min())
        return normal, dist, lowest + dist / 2 * normal

    def depth(self, data: mujoco.MjData, directions: Array) -> Array:
        """Return the overlap of the geoms along unit vectors out of the ellipsoid."""
        center, axes = data.geom_xpos[1], data.geom_xmat[1].reshape(3, 3)
        ellipsoid = directions @ center + np.linalg.norm(RADII * (directions @ axes), axis=1)
        return np.asarray(ellipsoid + abs(directions) @ HALF)


class FaceStep(ConvergedStep):
    """MuJoCo's step, stage by stage, with the contact in closed form."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        super().__init__(model, data)
        self.optima = {0: FaceContact()}
        self.forget()

    def exact(self) -> mujoco.MjData:
        """Return the data of the state with this contact, as after `mj_forward`."""
        self._move(np.zeros(self.nz))
        self._forward()
        return self.data


def palm(pose: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return an ellipsoid on the face of a fixed box, with a converged solver and collider."""
    place, turn, velocity = POSES[pose]
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option timestep=".002" cone="elliptic" impratio="10" gravity="-9.81 0 0"/>
        <default><geom friction=".7 .002 .002" condim="6"/></default>
        <worldbody>
          <geom type="box" size="{" ".join(map(str, HALF))}"/>
          <body><freejoint/><geom type="ellipsoid" size="{" ".join(map(str, RADII))}"/></body>
        </worldbody>
      </mujoco>""")
    reference.converge(model)
    data = mujoco.MjData(model)
    data.qpos[:3], data.qpos[3:], data.qvel[:] = place, turn, velocity
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    return model, data


@pytest.mark.parametrize("pose", POSES)
def test_the_derivative_is_that_of_the_contact_in_closed_form(pose: str) -> None:
    model, data = palm(pose)
    _, dist, _ = FaceContact().find(data)
    # the face has the smallest separating translation of all directions
    directions = np.random.default_rng(0).normal(size=(DIRECTIONS, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    assert (FaceContact().depth(data, directions) > -dist).all()

    step = FaceStep(model, data)
    J, err = reference.differentiate(step, np.eye(step.nz)[: step.nx], EXACT / 1000)
    A = mujacobian.linearize(model, step.exact(), forward=False).A
    assert_equal(A, J, err, step, EXACT)
    # by symmetry, sliding along the face changes neither depth nor force
    assert abs(A[model.nv :, ALONG]).max() <= SYMMETRY * abs(A).max()

    # for any tolerance, points of MuJoCo's collider are accurate to the square root of rounding
    for tolerance in (1e-6, 1e-13):
        model.opt.ccd_tolerance = tolerance
        A = mujacobian.linearize(model, data).A
        assert_equal(A, J, err, step, NEAR)
        assert abs(A[model.nv :, ALONG]).max() <= SYMMETRY * abs(A).max()


def assert_equal(A: Array, J: Array, err: Array, step: FaceStep, limit: float) -> None:
    result = reference.compare(A, J[: step.nx], err[: step.nx], step.blocks[:4], trust=EXACT / 5)
    assert result.error <= limit, f"{result.error:.1e} at {result.worst()}"
    assert result.share > TRUSTED


@pytest.mark.parametrize("pose", POSES)
def test_the_collider_finds_depths_to_rounding_and_points_to_its_root(pose: str) -> None:
    _, data = palm(pose)
    normal, dist, point = FaceContact().find(data)
    contact = data.contact[0]
    assert abs(contact.dist - dist) <= DEPTH_ROUNDING
    np.testing.assert_allclose(contact.frame[:3], normal, atol=1e-12)
    assert np.linalg.norm(contact.pos - point) <= POINT_ROUNDING


@pytest.mark.skipif(mujoco.mj_version() < 4000000, reason="finds no contact with a tolerance of 0")
@pytest.mark.parametrize("pose", POSES)
def test_steps_have_the_slope_of_a_facet(pose: str) -> None:
    """The slope is the same over all lengths, and shrinks with the error of the point."""
    model, data = palm(pose)
    point = FaceContact().find(data)[2]
    errors, slopes = [], []
    for tolerance in (1e-6, 1e-13, 0):  # 0 ends at rounding
        model.opt.ccd_tolerance = tolerance
        mujoco.mj_forward(model, data)
        errors.append(np.linalg.norm(data.contact[0].pos - point))
        over = [slide(model, data, step) for step in STEPS]
        slopes.append(abs(over[0]).max())
        if slopes[-1] > ROUNDED:
            assert np.ptp(over, axis=0).max() <= 0.1 * slopes[-1]
    assert errors == sorted(errors, reverse=True)
    assert slopes == sorted(slopes, reverse=True)
    assert slopes[0] > 1e-3  # 1/s: at MuJoCo's default; ours is zero
    assert slopes[1] > ROUNDED  # no smaller tolerance except zero changes it


def slide(model: mujoco.MjModel, data: mujoco.MjData, step: float) -> Array:
    """Return d velocity / d position along the face, by differences of `mj_step`."""
    ends = []
    for way in (1, -1):
        probe = mujoco.MjData(model)
        probe.qpos[:], probe.qvel[:] = data.qpos, data.qvel
        probe.qacc_warmstart[:] = data.qacc
        probe.qpos[ALONG[0]] += way * step
        mujoco.mj_step(model, probe)
        ends.append(probe.qvel.copy())
    return (ends[0] - ends[1]) / (2 * step)
