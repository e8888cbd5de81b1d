"""The noslip solver: derivatives through its sweeps, on every kind of friction and outcome."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from mujacobian.check._noslip import sweep
from tests.oracle.judge import CONTACT_TOLERANCE, ROW_TOLERANCE, judge_constrained
from tests.scenes.cases import (
    CONSTRAINT_MODELS,
    INTEGRATORS,
    constrained_states,
    load,
    simulated_states,
)

# Columns on a kink are left out, and entries below rounding: bodies that friction holds do not move
# at all after noslip. A test that left out more would prove little.
TRUSTED_SHARE = 0.8
SETTLING = 60  # steps until the bodies rest on one another
NUDGE = 3e-3  # m/s or rad/s: friction sticks in some contacts and slips in others
SLIDE = 0.4  # m/s: most contacts slip
SAME = 1e-8  # relative: derivatives from solvers that stopped at different points
SWEEPS = {"one": (1, 1e-6), "stopped": (10, 1e-6), "many": (10, 1e-15)}

CONES = ("pyramidal", "elliptic")
QUICK = [(1, "many"), (3, "stopped"), (4, "many"), (6, "one")]
SLOW = [
    pytest.param(condim, sweeps, marks=pytest.mark.slow)
    for condim in (1, 3, 4, 6)
    for sweeps in SWEEPS
    if (condim, sweeps) not in QUICK
]

# The joint that turns the capsule has another acceleration than its contacts. If they agreed, its
# residual would be rounding, and so would the branch of its update.
SCENE = """
<mujoco>
  <option cone="{cone}" noslip_iterations="3"/>
  <default><geom condim="{condim}" friction=".6 .02 .01"/></default>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .0999"><freejoint/><geom size=".1"/></body>
    <body pos=".05 .02 .285"><freejoint/><geom size=".1"/></body>
    <body pos="1 0 .0999">
      <joint type="slide" axis="0 0 1"/>
      <joint type="slide" axis="1 0 0" frictionloss=".5"/>
      <joint axis="0 0 1" frictionloss=".01" solreffriction=".03 1"/>
      <geom type="capsule" fromto="-.1 0 0 .1 .05 0" size=".1"/>
      <site name="low" pos=".1 .02 .1"/>
      <body pos="0 0 .15">
        <joint name="elbow" axis="0 1 0" frictionloss=".2"/>
        <geom type="capsule" fromto="0 0 .1 .3 0 .1" size=".03"/>
        <site name="high" pos=".25 .04 .1"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial frictionloss=".3"><site site="low"/><site site="high"/></spatial>
  </tendon>
  <actuator><motor joint="elbow" gear="3"/></actuator>
</mujoco>
"""

SMALL = """
<mujoco>
  <option cone="{cone}" noslip_iterations="4" noslip_tolerance="1e-12"/>
  <default><geom condim="{condim}" friction=".6 .02 .01"/></default>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .0999">{joints}<geom type="box" size=".1 .12 .1" mass="{mass}"/></body>
  </worldbody>
</mujoco>
"""
PLANAR = """<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
  <joint axis="0 1 0"/>"""


def scene(cone, condim, xml=SCENE, **fields):
    return reference.converge(
        mujoco.MjModel.from_xml_string(xml.format(cone=cone, condim=condim, **fields))
    )


def settled(model, slide=0.0):
    """Return a state in which the bodies rest, or in which the first one slides."""
    data = mujoco.MjData(model)
    for _ in range(SETTLING):
        mujoco.mj_step(model, data)
    data.qvel[:] += NUDGE * np.random.default_rng(0).standard_normal(model.nv)
    data.qvel[0] += slide
    return data


def blocks(model, data):
    lin = mujacobian.linearize(model, data, sensors=False, forces=True)
    return np.hstack([lin.A, lin.B, lin.Bf])


@pytest.mark.parametrize("islands", [True, False])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("cone", CONES)
def test_sweeps_agree_with_mujoco(cone, condim, islands):
    """Our sweeps end at MuJoCo's forces, after the same number of sweeps."""
    model = scene(cone, condim)
    if not islands:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND
    for iterations, tolerance in SWEEPS.values():
        model.opt.noslip_tolerance = tolerance
        data = settled(model)
        before = mujoco.MjData(model)
        before.qpos[:], before.qvel[:] = data.qpos, data.qvel
        model.opt.noslip_iterations = 0
        mujoco.mj_forward(model, before)
        model.opt.noslip_iterations = iterations
        mujoco.mj_forward(model, data)
        found = sweep(model, before, iterations, tolerance)
        assert condim == 1 or abs(data.efc_force - before.efc_force).max() > 1e-3
        np.testing.assert_allclose(found.force, data.efc_force, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("condim", "sweeps"), QUICK + SLOW)
@pytest.mark.parametrize("cone", CONES)
def test_derivatives_match_the_reference(cone, condim, sweeps):
    model = scene(cone, condim)
    model.opt.noslip_iterations, model.opt.noslip_tolerance = SWEEPS[sweeps]
    INTEGRATORS["euler" if sweeps == "many" else "implicitfast"](model)
    share = judge_constrained(model, settled(model), CONTACT_TOLERANCE, forces=False)
    assert share >= TRUSTED_SHARE


@pytest.mark.parametrize("condim", [3, 4, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cone", CONES)
def test_sliding(cone, condim):
    model = scene(cone, condim)
    share = judge_constrained(model, settled(model, SLIDE), CONTACT_TOLERANCE, forces=False)
    assert share >= TRUSTED_SHARE


@pytest.mark.parametrize("integrator", ["euler_explicit", "implicit", "rk4"])
@pytest.mark.parametrize("cone", CONES)
def test_other_integrators(cone, integrator):
    model = scene(cone, 3)
    model.opt.noslip_iterations = 1  # fewer branches, which multiply over the stages of RK4
    model.opt.noslip_tolerance = 1e-15  # a stage with fewer sweeps is another branch
    INTEGRATORS[integrator](model)
    share = judge_constrained(model, settled(model), CONTACT_TOLERANCE, forces=False)
    assert share >= TRUSTED_SHARE


@pytest.mark.parametrize(
    "integrator", ["euler", pytest.param("implicitfast", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", [n for n in CONSTRAINT_MODELS if "friction" in n])
def test_dry_friction(name, integrator):
    model = reference.converge(load(f"constraints/{name}"))
    model.opt.noslip_iterations, model.opt.noslip_tolerance = 3, 1e-15
    INTEGRATORS[integrator](model)
    for _, data in constrained_states(model, name):
        assert judge_constrained(model, data, ROW_TOLERANCE, forces=False) >= TRUSTED_SHARE


@pytest.mark.parametrize("cone", CONES)
def test_without_islands(cone):
    """All rows are swept until the improvement of all together is small."""
    model = scene(cone, 3)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND
    model.opt.noslip_iterations = 4
    share = judge_constrained(model, settled(model, SLIDE), CONTACT_TOLERANCE)
    assert share >= TRUSTED_SHARE


@pytest.mark.parametrize("cone", CONES)
def test_exact_diagonal(cone):
    model = scene(cone, 3)
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_DIAGEXACT
    share = judge_constrained(model, settled(model), CONTACT_TOLERANCE, forces=False)
    assert share >= TRUSTED_SHARE


@pytest.mark.parametrize("mass", [1e-4, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("condim", [3, 4, 6])
def test_forces_that_are_small_to_the_cone_solver(condim, mass):
    """The tolerances are absolute: a grain of 0.1 g stops before the multiplier converges."""
    model = scene("elliptic", condim, SMALL, joints="<freejoint/>", mass=mass)
    for slide in (0.0, SLIDE):
        share = judge_constrained(model, settled(model, slide), CONTACT_TOLERANCE, forces=False)
        assert share >= TRUSTED_SHARE


@pytest.mark.parametrize("mass", [0.01, 1.0])
@pytest.mark.parametrize("cone", CONES)
def test_friction_across_a_plane_of_motion(cone, mass):
    """Nothing moves along one tangent, and MuJoCo's cone solver may call the matrix singular."""
    model = scene(cone, 3, SMALL, joints=PLANAR, mass=mass)
    share = judge_constrained(model, settled(model, SLIDE), CONTACT_TOLERANCE, forces=False)
    assert share >= TRUSTED_SHARE


def test_the_sweeps_change_the_derivative():
    for cone in CONES:
        model = scene(cone, 3)
        data = settled(model)
        swept = blocks(model, data)
        model.opt.noslip_iterations = 0
        plain = blocks(model, data)
        assert abs(swept - plain).max() > 1e-3 * abs(plain).max()


@pytest.mark.parametrize("solver", ["Newton", "CG", "PGS"])
@pytest.mark.parametrize("cone", CONES)
def test_default_tolerance_is_polished_or_refused(cone, solver):
    """The sweeps start from the optimum; if MuJoCo's end elsewhere, there is an error."""
    model, tight = load("contacts/quadruped"), reference.converge(load("contacts/quadruped"))
    for m in (model, tight):
        m.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}")
        m.opt.noslip_iterations = 5
    model.opt.solver = getattr(mujoco.mjtSolver, f"mjSOL_{solver.upper()}")
    compared, refusals = 0, []
    for _, data in simulated_states(model, "quadruped", tuple(0.04 * k for k in range(20))):
        twin = mujoco.MjData(tight)
        twin.qpos[:], twin.qvel[:], twin.ctrl[:] = data.qpos, data.qvel, data.ctrl
        expected = blocks(tight, twin)
        try:
            given = blocks(model, data)
        except mujacobian.UnsupportedFeatureError as error:
            refusals.append(str(error))
            continue
        compared += 1
        assert abs(given - expected).max() <= SAME * abs(expected).max()
    assert compared >= 10
    assert solver != "Newton" or not refusals
    assert all("noslip" in text and "opt.tolerance" in text for text in refusals), refusals


def test_a_solver_that_did_not_converge_is_refused():
    model = scene("elliptic", 3)
    data = settled(model)
    model.opt.solver, model.opt.iterations = mujoco.mjtSolver.mjSOL_PGS, 1
    data.qacc_warmstart[:] = 0
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"noslip.*differ"):
        mujacobian.linearize(model, data, sensors=False)


def test_inertias_that_mujoco_replaces_are_refused():
    model = scene("elliptic", 3, SMALL, joints="<freejoint/>", mass=1e11)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"noslip.*inertia"):
        mujacobian.linearize(model, settled(model), sensors=False)


def test_blocks_alone_equal_those_of_a_full_call():
    model = scene("elliptic", 4)
    data = settled(model)
    lin = mujacobian.linearize(model, data, sensors=False)
    B = np.empty_like(lin.B)
    mujacobian.transition(model, data, B=B)
    np.testing.assert_allclose(B, lin.B, rtol=1e-12, atol=1e-15)


SENSORS = """
<sensor>
  <accelerometer site="high"/><framelinacc objtype="site" objname="low"/>{more}
</sensor>
</mujoco>"""


@pytest.mark.parametrize("cone", CONES)
def test_sensors_use_the_swept_acceleration(cone):
    model = scene(cone, 3, SCENE.replace("</mujoco>", SENSORS), more="")
    model.opt.noslip_iterations = 1
    data = settled(model)
    lin = mujacobian.linearize(model, data)
    ref = reference.jacobian(model, data, constrained=True, settled=CONTACT_TOLERANCE / 1000)
    given, expected, err = np.hstack([lin.C, lin.D]), ref.J[ref.nx :], ref.err[ref.nx :]
    own = given.any(axis=0)  # the other bodies have no effect here
    result = reference.compare(
        given[:, own], expected[:, own], err[:, own], [0, 3, 6], CONTACT_TOLERANCE / 5
    )
    assert result.error <= CONTACT_TOLERANCE
    assert result.share >= TRUSTED_SHARE
    assert abs(expected[:, ~own]).max() <= CONTACT_TOLERANCE * abs(expected).max()


FORCES = """
  <force site="low"/><torque site="low"/><force site="high"/><torque site="high"/>
  <jointlimitfrc joint="elbow"/>
  <contact geom1="ball" num="3" data="found force torque dist pos normal tangent"/>
  <contact geom1="ball" reduce="netforce" data="found force torque pos"/>
  <contact geom1="rod" num="2" reduce="maxforce" data="force torque"/>"""


@pytest.mark.parametrize(("condim", "iterations"), [(3, 4), (6, 1)])
@pytest.mark.parametrize("cone", CONES)
def test_sensors_use_the_swept_forces(cone, condim, iterations):
    """Friction comes from the sweeps; normal forces, limits and equalities stay at the optimum."""
    xml = SCENE.replace("</mujoco>", SENSORS)
    xml = xml.replace('<geom size=".1"/>', '<geom name="ball" size=".1"/>', 1)
    xml = xml.replace('<geom type="capsule"', '<geom name="rod" type="capsule"', 1)
    xml = xml.replace('name="elbow"', 'name="elbow" range="1 2" limited="true"')
    model = scene(cone, condim, xml, more=FORCES)
    model.opt.noslip_iterations, model.opt.noslip_tolerance = iterations, 1e-15
    data = settled(model)
    mujoco.mj_forward(model, data)
    swept = data.efc_force.copy()
    model.opt.noslip_iterations = 0
    mujoco.mj_forward(model, data)
    assert abs(data.efc_force - swept).max() > 1e-2
    model.opt.noslip_iterations = iterations
    lin = mujacobian.linearize(model, data, forces=True)
    ref = reference.jacobian(
        model, data, forces=True, constrained=True, settled=CONTACT_TOLERANCE / 1000
    )
    given = np.hstack([lin.C, lin.D, lin.Df])
    expected, err = ref.J[ref.nx :], ref.err[ref.nx :]
    judged = []
    for adr, dim in zip(model.sensor_adr, model.sensor_dim, strict=True):
        rows = slice(adr, adr + dim)
        scale = np.maximum(abs(expected[rows]).max(axis=0), 1e-3 * abs(expected[rows]).max())
        trusted = err[rows] <= CONTACT_TOLERANCE / 5 * scale
        error = np.where(trusted, abs(given[rows] - expected[rows]) / scale, 0)
        assert error.max() <= CONTACT_TOLERANCE, f"row {adr}: {error.max():.1e}"
        judged.append(trusted.ravel())
    assert np.concatenate(judged).mean() >= TRUSTED_SHARE
