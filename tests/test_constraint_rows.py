"""Equality, friction-loss and limit rows: A, B and Bf of every model, integrator and state."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import ROW_TOLERANCE, judge_constrained
from tests.scenes.cases import CONSTRAINT_MODELS, INTEGRATORS, constrained_states, load, sample

# Columns on a kink are left out, and entries below rounding (none in these states). A test that
# left out more would prove little.
TRUSTED_SHARE = 0.95
INVERSE_STEP = 1e-5  # change of the acceleration, small relative to the width of the zones
INVERSE_TOLERANCE = 1e-6  # rounding of forces / INVERSE_STEP, times the condition number of K


def load_converged(name):
    return reference.converge(load(f"constraints/{name}"))


@pytest.mark.parametrize(("name", "integrator"), sample(3, CONSTRAINT_MODELS, INTEGRATORS))
def test_derivatives_match_the_reference(name, integrator):
    model = load_converged(name)
    INTEGRATORS[integrator](model)
    for label, data in constrained_states(model, name):
        try:
            share = judge_constrained(model, data, ROW_TOLERANCE)
        except AssertionError as error:
            raise AssertionError(f"{name}, {integrator}, state {label}: {error}") from None
        assert share >= TRUSTED_SHARE, f"state {label}: the reference trusts only {share:.3f}"


@pytest.mark.parametrize("name", CONSTRAINT_MODELS)
def test_exact_diagonal(name):
    """With the flag diagexact, the regularization depends on the configuration."""
    model = load_converged(name)
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_DIAGEXACT)
    INTEGRATORS["implicitfast"](model)
    for label, data in constrained_states(model, name):
        try:
            share = judge_constrained(model, data, ROW_TOLERANCE, forces=False)
        except AssertionError as error:
            raise AssertionError(f"state {label}: {error}") from None
        assert share >= TRUSTED_SHARE, f"state {label}: the reference trusts only {share:.3f}"


@pytest.mark.parametrize("name", CONSTRAINT_MODELS)
def test_states_are_in_every_zone_that_the_model_is_named_after(name):
    """Equality rows pull, friction losses slide and stick, limits press."""
    model = load_converged(name)
    found = set()
    for _, data in constrained_states(model, name):
        mujoco.mj_forward(model, data)
        found |= set(reference.zones(model, data).tolist())
    assert reference.QUADRATIC in found
    if name.startswith("friction_loss"):
        assert {reference.LINEARNEG, reference.LINEARPOS} <= found
    if name.endswith("limits"):
        assert reference.SATISFIED in found


@pytest.mark.parametrize("name", CONSTRAINT_MODELS)
def test_K_is_the_derivative_of_inverse_dynamics(name):
    """K = M + J^T H J equals d(qfrc_inverse)/d(qacc), which needs no solver at all.

    Without implicit damping v' = v + h a, so Bf = h K^-1 in its velocity rows.
    """
    model = load_converged(name)
    INTEGRATORS["euler_explicit"](model)
    for label, data in constrained_states(model, name):
        lin = mujacobian.linearize(model, data, sensors=False, forces=True)
        K = _inverse_jacobian(model, data)
        product = K @ lin.Bf[model.nv : 2 * model.nv] / model.opt.timestep
        error = abs(product - np.eye(model.nv)).max()
        assert error <= INVERSE_TOLERANCE, f"state {label}: {error:.1e}"


def _inverse_jacobian(model, data):
    """Return d(qfrc_inverse)/d(qacc) at the converged acceleration; it is linear within a zone."""
    probe = mujoco.MjData(model)
    mujoco.mj_copyData(probe, model, data)
    mujoco.mj_forward(model, probe)
    acc = probe.qacc.copy()
    columns = []
    for j in range(model.nv):
        h = INVERSE_STEP * max(1.0, abs(acc).max())
        forces = []
        for sign in (1, -1):
            probe.qacc[:] = acc
            probe.qacc[j] += sign * h
            mujoco.mj_inverse(model, probe)
            forces.append(probe.qfrc_inverse.copy())
        columns.append((forces[0] - forces[1]) / (2 * h))
    return np.array(columns).T


HEAVY = """
<mujoco>
  <option cone="{cone}" impratio="{impratio}" gravity="0 0 0" tolerance="0"/>
  <worldbody>
    <geom type="plane" size="5 5 1" friction=".1"/>
    <body pos="0 0 .0999">
      <freejoint/>
      <geom name="ball" size=".1" mass="{mass}" friction="{friction}"/>
    </body>
  </worldbody>
</mujoco>"""


@pytest.mark.parametrize("mass", [1e14, 1e17])
@pytest.mark.parametrize(
    ("cone", "impratio", "friction"),
    [("pyramidal", 1, 1), ("pyramidal", 1, 0.5), ("elliptic", 1, 1), ("elliptic", 10, 1)],
)
def test_lower_bound_of_the_regularization(cone, impratio, friction, mass):
    """MuJoCo bounds R of the normal, from which the other entries of R follow (ROW-16)."""
    text = HEAVY.format(cone=cone, impratio=impratio, friction=friction, mass=mass)
    model = reference.converge(mujoco.MjModel.from_xml_string(text))
    data = mujoco.MjData(model)
    data.qvel[:] = [0.01, 0.02, -0.1, 0, 0, 0]
    mujoco.mj_forward(model, data)
    scale = 2 * data.contact[0].mu ** 2 if cone == "pyramidal" else 1
    bounded = data.efc_R[0] <= scale * mujoco.mjMINVAL
    assert bounded == (mass > 1e15)
    assert judge_constrained(model, data, ROW_TOLERANCE, forces=False) >= TRUSTED_SHARE
    params = mujacobian.Parameters(model, [("geom_friction", "ball"), ("geom_solimp", "ball")])
    for k in range(len(params.values)):
        given = mujacobian.jvp(model, data, params=params, d_params=np.eye(len(params.values))[k])
        assert np.allclose(given[0], _parameter_difference(params, data, k), rtol=1e-5, atol=1e-9)


def _parameter_difference(params, data, k):
    """Return the central difference of a step with respect to one parameter."""
    ends = []
    for sign in (1, -1):
        values = params.values.copy()
        values[k] += sign * 1e-6
        model = params.apply(values)
        scratch = mujoco.MjData(model)
        scratch.qpos[:], scratch.qvel[:] = data.qpos, data.qvel
        mujoco.mj_step(model, scratch)
        ends.append((scratch.qpos.copy(), scratch.qvel.copy()))
    slope = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, slope, 2e-6, ends[1][0], ends[0][0])
    return np.concatenate([slope, (ends[0][1] - ends[1][1]) / 2e-6])
