"""A and B in Newton's coordinates against differences of Newton's step in double precision."""

import numpy as np
import pytest
from oracle import Oracle, differences
from scenes import random_state, tree

from mujacobian.newton import DifferentiableMuJoCo

DT = 0.005


def numbers(array):
    return array.numpy().astype(float)


def worst(found, wanted):
    scale = max(1.0, np.abs(wanted).max(initial=0))
    return np.abs(found - wanted).max(initial=0) / scale


def compare(solver, state, control, coords="tangent", h=1e-3):
    """Errors of A and of the blocks of B, relative to the largest entry."""
    o = Oracle(solver)
    lin = solver.linearize(state, control, DT, coords=coords)
    q0, v0 = numbers(state.joint_q), numbers(state.joint_qd)
    act = solver.mj_data.act.copy()
    u = {
        "joint_f": numbers(control.joint_f),
        "joint_target_q": numbers(control.joint_target_q),
        "joint_target_qd": numbers(control.joint_target_qd),
        "body_f": numbers(state.body_f),
    }
    if hasattr(control, "mujoco") and hasattr(control.mujoco, "ctrl"):
        u["ctrl"] = numbers(control.mujoco.ctrl)
    q1, _, _ = o.step(q0, v0, act, u, DT)
    nq, nv, na = (o.nv if coords == "tangent" else o.nq), o.nv, len(act)

    def result(q, v, a, u):
        q, v, a = o.step(q, v, a, u, DT)
        return np.concatenate([o.boxminus(q, q1) if coords == "tangent" else q, v, a])

    def of_state(x):
        xi, dv, da = np.split(x, [nq, nq + nv])
        q = o.boxplus(q0, xi) if coords == "tangent" else q0 + xi
        return result(q, v0 + dv, act + da, u)

    A, _ = differences(of_state, nq + nv + na, h)
    errors = {"A": worst(lin.A, A)}
    for name in lin.layout.inputs:

        def of_input(x, name=name):
            return result(q0, v0, act, {**u, name: u[name] + x.reshape(u[name].shape)})

        B, _ = differences(of_input, u[name].size, h)
        errors[name] = worst(lin.block(name), B)
    return errors


@pytest.mark.parametrize("coords", ["tangent", "ambient"])
def test_every_joint(coords):
    model = tree()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    state, control = random_state(model)
    errors = compare(solver, state, control, coords)
    print(errors)
    assert max(errors.values()) < 1e-7
