"""The derivative is that of the optimum, for every solver and wherever it stops."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import CONTACT_TOLERANCE, judge_constrained
from tests.scenes.cases import (
    CONSTRAINT_MODELS,
    CONTACT_MODELS,
    constrained_states,
    load,
    simulated_states,
)

# Solvers stop at their own tolerance; after Newton refinement they are at the same optimum.
SOLVER_AGREEMENT = 1e-7
# Islands, dense and sparse Jacobians only change the order of additions.
ORDER_AGREEMENT = 1e-12
# At default settings: tolerance of the project at the 99th percentile.
DEFAULT_TOLERANCE = 1e-5
PERCENTILE = 99
STEPS_BETWEEN = 9  # steps of the walking model between two states, so that they differ
STATES = 200
SEED = 5

SOLVERS = {
    "newton": mujoco.mjtSolver.mjSOL_NEWTON,
    "cg": mujoco.mjtSolver.mjSOL_CG,
    "pgs": mujoco.mjtSolver.mjSOL_PGS,
}
ALL = [f"constraints/{name}" for name in CONSTRAINT_MODELS]
ALL += [f"contacts/{name}" for name in CONTACT_MODELS]


def some_states(model, name):
    if name.startswith("contacts"):
        return simulated_states(model, name, times=(0.1, 0.4))
    return constrained_states(model, name)


def blocks(model, data):
    lin = mujacobian.linearize(model, data, sensors=False, forces=True)
    return np.hstack([lin.A, lin.B, lin.Bf])


def difference(J, K):
    """Return the largest difference, relative to the largest entry of its column."""
    return float((abs(J - K) / abs(K).max(axis=0)).max())


@pytest.mark.parametrize("cone", [0, 1], ids=["pyramidal", "elliptic"])
@pytest.mark.parametrize("name", ALL)
def test_newton_cg_and_pgs_agree(name, cone):
    model = reference.converge(load(name))
    model.opt.cone = cone
    for label, data in some_states(model, name):
        model.opt.solver, model.opt.iterations = SOLVERS["newton"], 50
        newton = blocks(model, data)
        for solver in ("cg", "pgs"):
            model.opt.solver, model.opt.iterations = SOLVERS[solver], 5000
            error = difference(blocks(model, data), newton)
            assert error <= SOLVER_AGREEMENT, f"{label}, {solver}: {error:.1e}"


@pytest.mark.parametrize("name", ALL)
def test_islands_and_sparsity_do_not_matter(name):
    model = reference.converge(load(name))
    island = int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
    for label, data in some_states(model, name):
        found = []
        for jacobian in (mujoco.mjtJacobian.mjJAC_DENSE, mujoco.mjtJacobian.mjJAC_SPARSE):
            for flag in (0, island):
                model.opt.jacobian = jacobian
                model.opt.disableflags = (model.opt.disableflags & ~island) | flag
                found.append(blocks(model, data))
        for other in found[1:]:
            error = difference(other, found[0])
            assert error <= ORDER_AGREEMENT, f"{label}: {error:.1e}"


def walk(model, count):
    """Yield states of the quadruped under random servo targets, as in a typical simulation."""
    rng = np.random.default_rng(SEED)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    stand = data.ctrl.copy()
    for _ in range(count):
        data.ctrl[:] = stand + rng.normal(size=model.nu) * 0.08
        for _ in range(STEPS_BETWEEN):
            mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        yield data


def test_default_tolerance_is_polished():
    """At default settings, the derivative agrees with that of the converged model."""
    model = load("contacts/quadruped")
    assert model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    tight = reference.converge(load("contacts/quadruped"))
    errors, touching = [], 0
    for data in walk(model, STATES):
        J = blocks(model, data)
        twin = mujoco.MjData(tight)
        mujoco.mj_setState(tight, twin, _state(model, data), mujoco.mjtState.mjSTATE_INTEGRATION)
        errors.append(difference(J, blocks(tight, twin)))
        touching += data.ncon > 0
    assert touching > 0.8 * STATES
    assert np.percentile(errors, PERCENTILE) <= DEFAULT_TOLERANCE, sorted(errors)[-3:]


def test_default_tolerance_against_the_reference():
    """The same agrees with differences of the converged step, at a few of these states."""
    model = load("contacts/quadruped")
    tight = reference.converge(load("contacts/quadruped"))
    shares = []
    for data in list(_copies(model, walk(model, 8))):
        J = blocks(model, data)
        twin = mujoco.MjData(tight)
        mujoco.mj_setState(tight, twin, _state(model, data), mujoco.mjtState.mjSTATE_INTEGRATION)
        ref = reference.jacobian(tight, twin, constrained=True, settled=1e-8)
        J = J[:, : ref.J.shape[1]]
        result = reference.compare(J, ref.J, ref.err, ref.blocks[:4], trust=1e-7)
        assert result.error <= DEFAULT_TOLERANCE
        shares.append(result.share)
    assert np.mean(shares) > 0.9


def test_a_solver_far_from_the_optimum_is_polished_or_refused():
    """After one iteration the result is still exact, or a ValueError states the remedy."""
    model = load("contacts/quadruped")
    tight = reference.converge(load("contacts/quadruped"))
    refusals = []
    for data in list(_copies(model, walk(model, STATES))):
        model.opt.iterations, model.opt.ls_iterations = 1, 1
        data.qacc_warmstart[:] = 0
        twin = mujoco.MjData(tight)
        mujoco.mj_setState(tight, twin, _state(model, data), mujoco.mjtState.mjSTATE_INTEGRATION)
        try:
            J = blocks(model, data)
        except ValueError as error:
            refusals.append(str(error))
            continue
        assert difference(J, blocks(tight, twin)) <= DEFAULT_TOLERANCE
    assert all("iterations" in text and "residual" in text for text in refusals), refusals


def test_diagnostics_report_the_distance_from_the_optimum():
    model = load("contacts/quadruped")
    for data in walk(model, 10):
        found = mujacobian.diagnose(model, data)
        assert found.residual <= 1e-9
        assert found.residual <= found.residual_before * (1 + 1e-12)
        assert found.condition >= 1
        np.testing.assert_allclose(found.K, found.K.T, rtol=1e-12, atol=1e-12)


WHEEL = """
<mujoco>
  <option cone="{cone}"/>
  <worldbody>
    <geom type="plane" size="1 1 .1"/>
    <body pos="0 0 .05">
      <joint axis="{axis}"/>
      <geom type="sphere" size=".1"/>
    </body>
  </worldbody>
</mujoco>"""


def pressed_wheel(cone, axis):
    """Return a wheel on a fixed axle, pressed into the floor.

    Nothing can move it, so MuJoCo makes the contact as hard as possible.
    """
    model = mujoco.MjModel.from_xml_string(WHEEL.format(cone=cone, axis=axis))
    data = mujoco.MjData(reference.converge(model))
    data.qvel[:] = 0.3
    mujoco.mj_forward(model, data)
    assert abs(data.efc_force).max() > 1e14
    return model, data


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("axis", ["0 1 0", "1 1 .3", "0 0 1"])
def test_huge_forces_that_cancel_are_not_taken_for_a_bad_solver(cone, axis):
    judge_constrained(*pressed_wheel(cone, axis), CONTACT_TOLERANCE)


def test_huge_forces_that_hide_the_motion_are_an_error():
    """The axle almost passes through the contact: rounding of 1e17 N hides the friction."""
    with pytest.raises(mujacobian.MujacobianError, match="hide the motion of dof 0"):
        mujacobian.linearize(*pressed_wheel("pyramidal", "0 1e-3 1"))


CRANK = """
<mujoco>
  <option cone="{cone}"/>
  <worldbody>
    <geom type="plane" size="1 1 .1" friction="{friction} .005 .0001"/>
    <body pos="0 0 .09">
      <joint axis="0 1 0"/>
      <geom size=".1" pos=".3 0 0"/>
      <geom size=".1" pos="-.3 0 0" contype="0" conaffinity="0"/>
      <body pos="-.3 0 0"><joint axis="0 1 0"/><geom size=".02" pos=".1 0 0"/></body>
    </body>
  </worldbody>
  <sensor>{sensor}</sensor>
</mujoco>"""
TOUCH = '<contact name="push" reduce="netforce" data="force"/>'


def pressed_crank(cone, friction, sensor=""):
    """Return a crank that is pressed into the floor beside its axis, which has its center of mass.

    MuJoCo makes the contact as hard as possible, because a force at the center does not turn it.
    """
    text = CRANK.format(cone=cone, friction=friction, sensor=sensor)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(reference.converge(model))
    data.qvel[:] = 0.3, -0.2
    mujoco.mj_forward(model, data)
    assert data.efc_R.max() < 1e-14
    return model, data


@pytest.mark.parametrize("friction", [0.5, 2])
def test_forces_that_are_lost_to_rounding_leave_the_motion_exact(friction):
    model, data = pressed_crank("pyramidal", friction)
    lost = data.efc_force[data.efc_force > 0] / data.efc_D[0]
    assert 0 < lost.min() < 1e-10 * abs(data.efc_aref[0])
    judge_constrained(model, data, CONTACT_TOLERANCE)


def test_sensors_of_such_forces_and_sliding_cones_are_refused():
    model, data = pressed_crank("pyramidal", 0.5, TOUCH)
    assert mujacobian.linearize(model, data, sensors=False).A.any()
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="lost to rounding, and a sensor"):
        mujacobian.linearize(model, data)
    with pytest.raises(mujacobian.MujacobianError, match="small regularization"):
        mujacobian.linearize(*pressed_crank("elliptic", 0.5))


def _state(model, data):
    state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    return state


def _copies(model, found):
    for data in found:
        kept = mujoco.MjData(model)
        mujoco.mj_copyData(kept, model, data)
        yield kept
