"""Sleeping: gradients while nothing sleeps, and errors as soon as a body sleeps."""

import newton
import numpy as np
import pytest
import scenes
import torch
import warp as wp

from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton import DifferentiableMuJoCo, torch_step

DT = 0.005
SLEEPS = "sleep of body"


def boxes():
    """Return a model of a box on the ground and of one above it."""
    b = scenes.Builder()
    b.add_ground_plane()
    for k in range(2):
        place = wp.transform(wp.vec3(1.0 * k, 0.0, 0.099 + 0.5 * k), wp.quat_identity())
        b.add_shape_box(b.add_body(xform=place, label=f"box {k}"), hx=0.1, hy=0.1, hz=0.1)
    return b.finalize(requires_grad=True)


def taped(solver, before, after, control):
    with wp.Tape() as tape:
        solver.step(before, after, control, None, DT)
    return tape


def gradients(model, **options):
    solver = DifferentiableMuJoCo(model, parameters=["body_mass"], **options)
    before, after, control = model.state(), model.state(), model.control()
    before.joint_qd.assign(np.linspace(-0.3, 0.4, 12, dtype=np.float32))
    tape = taped(solver, before, after, control)
    tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})
    arrays = before.joint_q, before.joint_qd, control.joint_f, model.body_mass
    found = [array.grad.numpy().copy() for array in arrays]
    tape.zero()
    return found


def test_gradient_while_nothing_sleeps():
    model = boxes()
    awake, plain = gradients(model, enable_sleeping=True), gradients(model)
    for found, wanted in zip(awake, plain, strict=True):
        assert np.abs(wanted).max() > 1e-4
        np.testing.assert_array_equal(found, wanted)


def test_sleep():
    """The step in which a box falls asleep raises, and so does all that follows."""
    model = boxes()
    solver = DifferentiableMuJoCo(model, enable_sleeping=True, sleep_tolerance=0.1, parameters=())
    before, after, control = model.state(), model.state(), model.control()

    def fall():
        states = [before, after]
        for _ in range(100):
            taped(solver, *states, control)
            states.reverse()

    with pytest.raises(UnsupportedFeatureError, match=rf'{SLEEPS} "box 0" in world 0'):
        fall()
    asleep = solver.mjw_data.tree_asleep.numpy()[0] >= 0
    assert asleep.tolist() == [True, False]
    with pytest.raises(UnsupportedFeatureError, match=SLEEPS):
        taped(solver, after, before, control)
    with pytest.raises(UnsupportedFeatureError, match=SLEEPS):
        solver.linearize(after, control, DT)
    q, v = (torch.tensor(each.numpy())[None] for each in (after.joint_q, after.joint_qd))
    with pytest.raises(UnsupportedFeatureError, match=SLEEPS):
        torch_step(solver)(q, v, DT)


def test_bodies_that_sleep_from_the_start():
    """MJCF may enable sleep, and bodies that sleep at first; `reset` restores their sleep."""
    b = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(b)
    b.add_mjcf(
        """<mujoco><option><flag sleep="enable"/></option>
        <worldbody><body sleep="init"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""
    )
    model = b.finalize(requires_grad=True)
    solver = DifferentiableMuJoCo(model)
    with pytest.raises(UnsupportedFeatureError, match=SLEEPS):
        taped(solver, model.state(), model.state(), model.control())
    solver = DifferentiableMuJoCo(model, enable_sleeping=False)
    taped(solver, model.state(), model.state(), model.control())


def test_room_for_all_dofs():
    model = boxes()
    solver = DifferentiableMuJoCo(model, enable_sleeping=True, nvmax=12)
    taped(solver, model.state(), model.state(), model.control())
    solver.nvmax = 6
    with pytest.raises(UnsupportedFeatureError, match="nvmax=6"):
        taped(solver, model.state(), model.state(), model.control())
