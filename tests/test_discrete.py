"""The discrete integrator: rows in its metric, evaluated at the end of the step.

The models of the other tests also run with it, because it is in `cases.INTEGRATORS`.
"""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained
from tests.scenes.cases import CONTACT_MODELS, INTEGRATORS, load, sample, simulated_states
from tests.test_contacts import CONES, OPTIONS, prepare

TRUSTED_SHARE, ENOUGH = 0.8, 0.5
Disable = mujoco.mjtDisableBit

# An arm whose springs, dampers and gains all vary, so that the metric varies. Its contacts, limits,
# friction, tendons and the medium depend on it through their regularization.
WORKSHOP = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="{timestep}" cone="{cone}" {medium}/>
  <default><geom {geom}/></default>
  <worldbody>
    <geom type="plane" size="3 3 .1"/>
    <site name="wall" pos="-.3 .2 .6"/>
    <body pos="0 0 .35">
      <joint name="yaw" axis=".1 0 1" stiffness="4 3 2" damping=".3 .2 .1" frictionloss=".05"/>
      <joint name="lift" type="slide" axis="0 .1 1" stiffness="60 20 5" damping="2 1"
             range="-.4 .01" limited="true" solimplimit=".4 .9 .1" solreflimit="{limit}"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".04"/><site name="a" pos=".15 .05 .05"/>
      <body pos=".3 0 0">
        <joint name="shoulder" type="ball" stiffness="1 .5 .3" damping=".05 .02" pos="0 .01 0"/>
        <geom type="box" size=".12 .04 .03" pos=".12 0 -.02"/><site name="b" pos=".2 0 .04"/>
        <body pos=".26 0 0">
          <joint name="wrist" axis="0 1 .2" damping=".02" armature=".01"/>
          <geom type="ellipsoid" size=".1 .05 .04" pos=".08 0 -.05"/><site name="c" pos=".1 0 0"/>
        </body>
      </body>
    </body>
    <body pos=".5 .5 .12">
      <freejoint name="loose"/><geom type="box" size=".1 .15 .1"/><site name="e" pos=".1 .1 .1"/>
    </body>
    <body pos="-1 0 2"><freejoint name="flying"/><geom type="box" size=".1 .2 .05"/></body>
  </worldbody>
  <tendon>
    <spatial name="cable" stiffness="30 10 5" damping="1 .5 .3" springlength="0 .3" range="0 .5"
             limited="true" frictionloss=".1" armature=".05">
      <site site="wall"/><site site="b"/>
    </spatial>
    <spatial name="leash" stiffness="8" damping=".4"><site site="c"/><site site="e"/></spatial>
    <fixed name="sum" damping=".2">
      <joint joint="yaw" coef=".5"/><joint joint="wrist" coef="-.3"/>
    </fixed>
  </tendon>
  <equality>
    <connect site1="a" site2="wall" solimp=".05 .3 .4" solref=".1 1" active="{hold}"/>
  </equality>
  <actuator>
    <position joint="wrist" kp="3" kv=".2"/>
    <general joint="yaw" gaintype="affine" gainprm="2 -.8 -.3" biastype="affine"
             biasprm="0 -1 -.1"/>
    <general tendon="cable" gear="1.5" gaintype="affine" gainprm="3 -2 -1"/>
  </actuator>
</mujoco>"""

VARIANTS = {
    "plain": {},
    "held": {"hold": "true"},
    "large timestep": {"timestep": ".02"},
    "too stiff to be resolved": {
        "geom": 'solimp=".3 .95 .05" solref=".004 .6"',
        "limit": ".003 .8",
        "timestep": ".01",
    },
    "damping at its bound": {
        "geom": 'solimp=".98 .9999 .02" solref=".0001 60"',
        "timestep": ".01",
    },
    "in a medium": {"medium": 'density="400" viscosity=".5" wind=".3 .1 0"'},
}


def workshop(cone, **changes):
    settings = {
        "timestep": ".003",
        "medium": "",
        "geom": 'solimp=".3 .95 .05"',
        "limit": ".02 1",
        "hold": "false",
        **changes,
    }
    model = mujoco.MjModel.from_xml_string(WORKSHOP.format(cone=cone, **settings))
    INTEGRATORS["discrete"](model)
    return reference.converge(model)


def check(model, data, label, **options):
    try:
        return judge_constrained(model, data, CONTACT_TOLERANCE, **options)
    except AssertionError as error:
        raise AssertionError(f"{label}: {error}") from None


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("name", VARIANTS)
def test_everything_that_moves_the_metric(name, cone):
    model = workshop(cone, **VARIANTS[name])
    stiff = name in ("too stiff to be resolved", "damping at its bound")
    shares = []
    for label, data in simulated_states(model, name, (0.15,)):
        shares.append(check(model, data, label))
        spring = model.opt.timestep**2 * data.efc_KBIP[:, 0] * data.efc_KBIP[:, 2]
        assert np.any(abs(spring - 1) < 1e-12) or not stiff
    assert shares
    assert min(shares) >= TRUSTED_SHARE, shares


@pytest.mark.parametrize("flag", ["SPRING", "DAMPER", "ACTUATION", "REFSAFE"])
def test_flags(flag):
    model = workshop("elliptic", geom='solimp=".3 .95 .05" solref=".004 .6"')
    model.opt.disableflags |= int(getattr(Disable, f"mjDSBL_{flag}"))
    for label, data in simulated_states(model, flag, (0.1,)):
        assert check(model, data, label, forces=False) >= TRUSTED_SHARE


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("cone", CONES)
def test_options_of_contacts(cone, name):
    option, geom = OPTIONS[name]
    model, data = prepare("sphere-box edge", cone, 4, "mixed", option=option, geom=geom)
    INTEGRATORS["discrete"](model)
    mujoco.mj_forward(model, data)
    assert check(model, data, name, forces=False) >= TRUSTED_SHARE


@pytest.mark.parametrize(("name", "cone"), sample(2, CONTACT_MODELS, CONES))
def test_scenes(name, cone):
    model = load(f"contacts/{name}")
    model.opt.cone = CONES.index(cone)
    INTEGRATORS["discrete"](model)
    reference.converge(model)
    shares = [
        check(model, data, label, forces=False)
        for label, data in simulated_states(model, name, (0.0, 0.1, 0.25, 0.4))
    ]
    assert shares
    assert min(shares) > ENOUGH
    # over all states: where MuJoCo's solver stops at 1e-11, fewer entries of one are trusted
    assert np.mean(shares) >= TRUSTED_SHARE, shares


def test_the_optimum_is_that_of_the_metric():
    """MuJoCo's acceleration solves K da = -dg up to rounding."""
    model = workshop("elliptic")
    _, data = next(simulated_states(model, "optimum", (0.1,)))
    found = mujacobian.diagnose(model, data)
    assert found.residual_before <= 1e-9
    assert np.linalg.eigvalsh(found.K).min() > 0


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda opt: setattr(opt, "noslip_iterations", 3), "noslip"),
        (lambda opt: setattr(opt, "solver", mujoco.mjtSolver.mjSOL_PGS), "PGS"),
        (
            lambda opt: setattr(opt, "enableflags", int(mujoco.mjtEnableBit.mjENBL_DIAGEXACT)),
            "diag",
        ),
    ],
)
def test_refusals(change, name):
    model = workshop("elliptic")
    change(model.opt)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=name):
        mujacobian.linearize(model, mujoco.MjData(model))
