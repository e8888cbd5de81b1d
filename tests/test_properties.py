"""Identities that hold at every state and need no finite differences."""

import mujoco
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import mujacobian
from tests.scenes.cases import INTEGRATORS, load, random_state

ROUNDING = 1e-11  # identities in double precision, relative to the largest entry
EXAMPLES = 40

seeds = st.integers(0, 2**32 - 1)
integrators = st.sampled_from(sorted(set(INTEGRATORS) - {"rk4"}))  # integrators with one stage


def linearized(name: str, integrator: str, seed: int):
    model = load(name)
    INTEGRATORS[integrator](model)
    data = random_state(model, np.random.default_rng(seed))
    return model, data, mujacobian.linearize(model, data, forces=True)


def assert_close(given_: np.ndarray, expected: np.ndarray) -> None:
    scale = max(abs(expected).max(initial=0.0), 1e-300)
    np.testing.assert_allclose(given_, expected, rtol=0, atol=ROUNDING * scale)


@given(seeds, integrators)
@settings(max_examples=EXAMPLES, deadline=None)
def test_moving_a_floating_robot_moves_the_result(seed, integrator):
    """Uniform gravity: the step commutes with translations of the free base."""
    model, _, lin = linearized("free_body_with_limbs", integrator, seed)
    assert_close(lin.A[:, :3], np.eye(2 * model.nv)[:, :3])


@given(seeds)
@settings(max_examples=EXAMPLES, deadline=None)
def test_forces_act_through_a_symmetric_positive_matrix(seed):
    """Euler: dv'/df = h (M + h D)^-1."""
    model, _, lin = linearized("joint_dampers", "euler", seed)
    dv_df = lin.Bf[model.nv :]
    assert_close(dv_df, dv_df.T)
    assert np.linalg.eigvalsh((dv_df + dv_df.T) / 2).min() > 0


@given(seeds, integrators)
@settings(max_examples=EXAMPLES, deadline=None)
def test_motors_act_through_their_moment(seed, integrator):
    """B = Bf m^T for actuators whose force is their control."""
    model, data, lin = linearized("hinge_chain", integrator, seed)
    moment = np.zeros((model.nu, model.nv))
    mujoco.mju_sparse2dense(
        moment,
        data.actuator_moment,
        data.moment_rownnz,
        data.moment_rowadr,
        data.moment_colind,
    )
    assert moment.any()
    assert_close(lin.B, lin.Bf @ moment.T)


@given(seeds, integrators)
@settings(max_examples=EXAMPLES, deadline=None)
def test_scalar_positions_advance_by_velocities(seed, integrator):
    """On hinges and slides q' = q + h v', so dq' = dq + h dv'."""
    model, _, lin = linearized("slide_chain", integrator, seed)
    nv, h = model.nv, model.opt.timestep
    J = np.hstack([lin.A, lin.B, lin.Bf])
    assert_close(J[:nv], np.eye(nv, J.shape[1]) + h * J[nv:])


@given(seeds, integrators)
@settings(max_examples=EXAMPLES, deadline=None)
def test_separate_trees_are_independent(seed, integrator):
    model, _, lin = linearized("two_robots", integrator, seed)
    nv = model.nv
    tree = model.body_treeid[model.dof_bodyid]
    apart = tree[:, None] != tree[None, :]
    assert apart.any()
    for row in (0, nv):
        for column in (0, nv):
            assert not lin.A[row : row + nv, column : column + nv][apart].any()
        assert not lin.Bf[row : row + nv][apart].any()
