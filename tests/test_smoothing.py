"""smoothed: contacts that act from a distance, without jumps, in a copy of the model."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from mujacobian.reference import converge
from tests.oracle.judge import CONTACT_TOLERANCE

MARGIN = 0.008

DROP = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body pos="0 0 .1">
      <freejoint/>
      <geom name="ball" size=".1"/>
    </body>
  </worldbody>
  {pairs}
</mujoco>
"""
PAIR = "<contact><pair geom1='floor' geom2='ball' margin='.001'/></contact>"


def falling(model, height, speed=-1.0):
    data = mujoco.MjData(model)
    data.qpos[2] += height
    data.qvel[2] = speed
    mujoco.mj_forward(model, data)
    return data


@pytest.mark.parametrize(("pairs", "margin"), [("", MARGIN), (PAIR, MARGIN + 0.001)])
def test_forces_begin_at_the_margin_without_a_jump(pairs, margin):
    model = converge(mujoco.MjModel.from_xml_string(DROP.format(pairs=pairs)))
    soft = mujacobian.smoothed(model, MARGIN)

    def jump(m, at):
        above, below = falling(m, at + 1e-9), falling(m, at - 1e-9)
        assert (above.nefc, below.nefc > 0) == (0, True)
        return abs(below.qacc[2] - above.qacc[2])

    assert jump(model, margin - MARGIN) > 10
    assert jump(soft, margin) < 0.05  # MuJoCo's smallest impedance is 1e-4
    assert falling(soft, margin / 2).qacc[2] > 1


def test_gradients_before_contact():
    """A contact without effect on the model has an effect on the copy, with an exact derivative."""
    model = converge(mujoco.MjModel.from_xml_string(DROP.format(pairs="")))
    soft = mujacobian.smoothed(model, MARGIN)
    height, v = 2, model.nv + 2
    assert mujacobian.linearize(model, falling(model, 0.003)).A[v, height] == 0
    data = falling(soft, 0.003)
    lin = mujacobian.linearize(soft, data)
    assert lin.A[v, height] < -1e-3
    ref = reference.jacobian(soft, data)
    result = reference.compare(np.hstack([lin.A, lin.B]), ref.J, ref.err, ref.blocks)
    assert result.error <= CONTACT_TOLERANCE


def test_bodies_rest_within_the_margin():
    model = mujoco.MjModel.from_xml_string(DROP.format(pairs=""))
    soft = mujacobian.smoothed(model, MARGIN)
    rest = mujacobian.rollout(soft, falling(soft, 0.01, 0), np.zeros((2000, 0))).states[-1]
    assert 0 < rest[2] - 0.1 < MARGIN
    assert abs(rest[model.nq + 2]) < 1e-6


def test_the_model_is_not_changed():
    model = mujoco.MjModel.from_xml_string(DROP.format(pairs=PAIR))
    kept = [model.geom_margin.copy(), model.geom_solimp.copy(), model.pair_solimp.copy()]
    mujacobian.smoothed(model)
    for values, now in zip(
        kept, [model.geom_margin, model.geom_solimp, model.pair_solimp], strict=True
    ):
        assert (values == now).all()


@pytest.mark.parametrize("margin", [0, -0.01, np.nan, np.inf])
def test_bad_margin(margin):
    model = mujoco.MjModel.from_xml_string(DROP.format(pairs=""))
    with pytest.raises(ValueError, match="margin must be a positive length"):
        mujacobian.smoothed(model, margin)
    with pytest.raises(TypeError, match="model must be"):
        mujacobian.smoothed(None)


BOXES = """
<mujoco>
  <option timestep=".005" cone="elliptic"/>
  <worldbody>
    <body><freejoint/><geom type="box" size=".03 .03 .03"/></body>
    <body><freejoint/><geom type="box" size=".03 .02 .04"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.filterwarnings("ignore::mujacobian.SolverNotConvergedWarning")
def test_boxes_within_the_margin_have_derivatives():
    """Also boxes that are nearly aligned, as in a hand that holds a cube."""
    soft = mujacobian.smoothed(mujoco.MjModel.from_xml_string(BOXES), 0.003)
    data, rng, apart = mujoco.MjData(soft), np.random.default_rng(0), 0
    for tilt in np.tile((0.02, 0.2, 10.0), 400):
        data.qpos[:7] = 0, 0, 0, 1, 0, 0, 0
        data.qpos[7:10] = rng.uniform((0.05, -0.02, -0.02), (0.08, 0.02, 0.02))
        turned = (1, 0, 0, 0) + tilt * rng.normal(size=4)
        data.qpos[10:] = turned / np.linalg.norm(turned)
        mujoco.mj_forward(soft, data)
        if data.ncon and data.contact.dist.min() > 0:
            apart += 1
            assert np.isfinite(mujacobian.linearize(soft, data).A).all()
    assert apart > 50
