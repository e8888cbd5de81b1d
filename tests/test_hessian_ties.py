"""Second derivatives of states exactly on ties, against one-sided differences of A, B, C and D.

The step of a tie that the tables call smooth has a derivative. Where this derivative also has the
same slope on both sides, `hessian` returns that slope. Elsewhere it returns that of a branch.
"""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.oracle.second_order import Pulled, brackets, cotangent, joined
from tests.scenes.cases import sample
from tests.test_ties import TIES
from tests.ties.judge import SMOOTH, load

STEP = 1e-5  # distance of the points of a one-sided difference
POINTS = np.arange(1, 6)
# weights of the points in the value and the slope at zero of their interpolating polynomial
VALUE, SLOPE = np.linalg.solve(np.vander(POINTS, increasing=True).T, np.eye(len(POINTS))[:, :2]).T
CONTINUOUS = 1e-7  # largest jump, relative to the largest entry
TRUSTED = 1e-3  # error of the slopes and distance between them, relative to the largest entry
TOLERANCE = 2e-3  # the same, of a column of `hessian`


def sides(function, k, step):
    """Return the value and the slope along coordinate k, extrapolated from each side to zero."""
    found = []
    for sign in (-1, 1):
        along = sign * step * np.eye(function.size)[k]
        values = np.array([function(point * along) for point in POINTS])
        found.append((VALUE @ values, SLOPE @ values / (sign * step)))
    return found


def compared_columns(model, data, given, sensed):
    """Assert that the columns agree whose differences are smooth; return their number."""
    found = joined(mujacobian.hessian(model, data, given, sensed))
    assert np.isfinite(found).all()
    assert (found == found.T).all()
    found += 0.5 * brackets(model, data, given, sensed)
    function = Pulled(model, data, given, sensed)
    here = function(np.zeros(function.size))
    count = 0
    for k in range(function.size):
        try:
            coarse, fine = sides(function, k, 2 * STEP), sides(function, k, STEP)
        except mujacobian.UnsupportedFeatureError:  # a neighboring state
            continue
        (before, left), (after, right) = fine
        size = max(abs(here).max(), TRUSTED)
        if max(abs(before - here).max(), abs(after - here).max()) > CONTINUOUS * size:
            continue
        scale = max(abs(found).max(), abs(left).max(), abs(right).max(), TRUSTED)
        apart = [left - right, left - coarse[0][1], right - coarse[1][1]]
        if abs(np.array(apart)).max() > TRUSTED * scale:
            continue
        count += 1
        off = abs(found[:, k] - left).max() / scale
        assert off < TOLERANCE, f"column {k}: {off:.1e} of {scale:.1e}"
    return count


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
    assert compared_columns(model, data, given, sensed) > 0
    assert mujacobian.fd_count() == count


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
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="power below 2"):
        mujacobian.hessian(model, data, given)
