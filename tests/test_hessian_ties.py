"""Second derivatives of states exactly on ties, against one-sided differences of A, B, C and D.

The step of a tie that the tables call smooth has a derivative. Where this derivative also has the
same slope on both sides, `hessian` returns that slope. Elsewhere it returns that of a branch.
"""

from dataclasses import dataclass

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.oracle.second_order import Pulled, brackets, cotangent, joined
from tests.scenes.cases import sample
from tests.test_ties import TIES
from tests.ties.contacts import MOVING, SHAPES, pair
from tests.ties.judge import SMOOTH, load
from tests.ties.shapes import LYING

# Distances of the points of one-sided differences. The best one depends on the tie: impedances bend
# within micrometers, and the rounding errors of contact forces are multiplied by their stiffness.
STEPS = 1e-3 * 10.0 ** (-np.arange(8) / 2)
POINTS = np.arange(1, 6)
# weights of the points in the value and the slope at zero of their interpolating polynomial
VALUE, SLOPE = np.linalg.solve(np.vander(POINTS, increasing=True).T, np.eye(len(POINTS))[:, :2]).T
CONTINUOUS = 1e-10  # largest jump of the function on a side, relative to its largest entry
# How many times the measured error of the differences a column may be off, and the smallest
# tolerance. Both are relative to the largest entry.
ERRORS, TOLERANCE = 10.0, 1e-8
LEAST = 1e-3  # smaller entries are relative to this one
KNOWN = 3e-5  # largest error of differences that prove something
# Where edges of meshes lie in one plane, A contains the average of two velocities (CON-25), and
# `hessian` contains products of this average.
AVERAGE_TOLERANCE = 1e-5
# Columns along which several rows leave a tie at once, at the midpoint or the end of an impedance,
# or as the row that a sensor reads. Rounding puts each row on a side of its own in the state.
MIXED = {
    "box on a plane": (3, 4),
    "capsule along a box": (4,),
    "capsule along a mesh": (2,),
    "capsule on a plane": (2,),
    "nearest of four corners": (3, 4),
    "parallel capsules": (4,),
    "strongest of four equal contacts": (3,),
}
# Along these, meshes of a stack turn about their normal. The step jumps on one side, because edges
# cross, and on the other side the average of (CON-25) is not that of a branch.
TURNING = (5, 11, 17)


@dataclass
class Side:
    """The slope of a function at zero in one direction, and the error of the differences."""

    slope: np.ndarray
    error: float


def one_side(function, k, sign, here):
    """Return the slope along coordinate k on one side, or None if the function jumps there."""
    along = sign * np.eye(function.size)[k]
    best = last = None
    for step in STEPS:
        values = np.array([function(step * point * along) for point in POINTS])
        jump = abs(VALUE @ values - here).max() / max(abs(here).max(), LEAST)
        slope = sign * (SLOPE @ values) / step
        if last is not None and jump < CONTINUOUS:
            error = abs(slope - last).max()
            if best is None or error < best.error:
                best = Side(slope, error)
        last = slope
    return best


def compare_column(function, k, column, here, scale, *, mixed=False):
    """Assert that a column is the slope on both sides, or on one; return whether it is on both."""
    try:
        sides = [one_side(function, k, sign, here) for sign in (-1, 1)]
    except mujacobian.UnsupportedFeatureError:  # a neighboring state
        return False
    sides = [side for side in sides if side is not None]
    if not sides or mixed:  # the branch of the state is narrower than the steps
        return False
    scale = max(scale, *(abs(side.slope).max() for side in sides), LEAST)
    error = max(side.error for side in sides) / scale
    tolerance = max(ERRORS * error, TOLERANCE)
    assert error < KNOWN, f"column {k}: the differences are accurate to {error:.1e} only"
    offs = [abs(column - side.slope).max() / scale for side in sides]
    if len(sides) == 1:
        assert offs[0] < tolerance, f"column {k}: {offs[0]:.1e} of {scale:.1e}, one side jumps"
        return False
    if abs(sides[0].slope - sides[1].slope).max() / scale < tolerance:
        assert max(offs) < 2 * tolerance, f"column {k}: {max(offs):.1e} of {scale:.1e}"
        return True
    average = abs(column - (sides[0].slope + sides[1].slope) / 2).max() / scale
    assert min(offs) < tolerance or average < AVERAGE_TOLERANCE, (
        f"column {k}: {offs[0]:.1e} and {offs[1]:.1e} of {scale:.1e} from the slopes on the sides "
        f"of a kink, {average:.1e} from their average"
    )
    return False


def compared_columns(model, data, given, sensed, mixed=()):
    """Assert that the columns agree with differences; return the number of smooth ones."""
    found = joined(mujacobian.hessian(model, data, given, sensed))
    assert np.isfinite(found).all()
    assert (found == found.T).all()
    found += 0.5 * brackets(model, data, given, sensed)
    function = Pulled(model, data, given, sensed)
    here = function(np.zeros(function.size))
    scale = abs(found).max()
    return sum(
        compare_column(function, k, found[:, k], here, scale, mixed=k in mixed)
        for k in range(function.size)
    )


def mixed_columns(tie):
    """Return the columns of a tie whose branch in the state is not that of a side."""
    is_stack = tie.name.startswith("stack") and "mesh" in tie.name
    return MIXED.get(tie.name, ()) + (TURNING if is_stack else ())


@pytest.mark.parametrize(
    "tie", sample(5, [t for t in TIES if t.rule == SMOOTH]), ids=lambda t: t.name
)
def test_smooth_ties(tie):
    model, data = load(tie)
    sensed = np.random.default_rng(0).normal(size=model.nsensordata) if model.nsensordata else None
    given = cotangent(model)
    count = mujacobian.fd_count()
    try:
        mujacobian.hessian(model, data, given, sensed)
    except mujacobian.UnsupportedFeatureError:
        return
    assert compared_columns(model, data, given, sensed, mixed_columns(tie)) > 0
    assert mujacobian.fd_count() == count


@pytest.mark.parametrize(("half", "place"), [(0.25, 0.0), (0.25, 0.2), (0.06, 0.02)])
def test_capsules_beside_a_parallel_edge(half, place):
    """The middle of their common part moves with two ends of the edge, with one, or with none."""
    capsule = f'type="capsule" size=".0625 {half}" {LYING}'
    xml = pair(SHAPES["mesh"], capsule, f"{place} .128 .187")
    model = mujacobian.converged(mujoco.MjModel.from_xml_string(xml))
    data = mujoco.MjData(model)
    data.qvel[:] = MOVING["qvel"]
    mujoco.mj_forward(model, data)
    assert data.ncon == 2
    given = cotangent(model)
    found = joined(mujacobian.hessian(model, data, given))
    found += 0.5 * brackets(model, data, given)
    function = Pulled(model, data, given)
    here = function(np.zeros(function.size))
    # a capsule beside the middle of the edge does not change its contacts when it moves along it
    assert (abs(found[3:6, 0]).max() > 1e-4 * abs(found).max()) == (half > 0.125)
    assert compare_column(function, 0, found[:, 0], here, abs(found).max())


COUPLED = """
<mujoco>
  <option tolerance="1e-15"/>
  <worldbody>
    <body><joint name="a" axis="0 1 0"/><geom size=".1" pos=".2 0 0" contype="0"/></body>
    <body><joint name="b" axis="1 0 0"/><geom size=".1" pos="0 .3 0" contype="0"/></body>
  </worldbody>
  <tendon>
    <fixed name="s"><joint joint="a" coef="1"/></fixed>
    <fixed name="t"><joint joint="b" coef="2"/></fixed>
  </tendon>
  <equality><{kind} name="couple" {kind}1="{first}" {kind}2="{second}" {more}/></equality>
</mujoco>"""


@pytest.mark.parametrize("power", [2, 3])
@pytest.mark.parametrize(("kind", "first", "second"), [("joint", "a", "b"), ("tendon", "s", "t")])
def test_couplings_that_are_satisfied_exactly(kind, first, second, power):
    """The slope of the impedance is zero there, but its second derivative is not for power 2."""
    more = f'solimp=".5 .9 .1 .4 {power}"'
    xml = COUPLED.format(kind=kind, first=first, second=second, more=more)
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.3, -0.2
    mujoco.mj_forward(model, data)
    assert not data.efc_pos.any()
    given = cotangent(model)
    assert compared_columns(model, data, given, None) == 4
    model.eq_solimp[0, 4] = 1.5
    # exactly, or up to a rounding error
    for data.qpos[0] in (0, 1e-16):
        with pytest.raises(mujacobian.UnsupportedFeatureError, match="power below 2"):
            mujacobian.hessian(model, data, given)
