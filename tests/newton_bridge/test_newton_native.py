"""Several worlds with MuJoCo C: edits, activations, resets, PyTorch, and what is refused."""

import newton
import numpy as np
import pytest
import scenes
import torch
import warp as wp
from losses import Loss, taped

from mujacobian.errors import MujacobianError, UnsupportedFeatureError
from mujacobian.newton import DifferentiableMuJoCo, torch_step

DT = 0.005
NOISE = 1e-6  # of models and activations in single precision
FILTERED = """<mujoco><worldbody><body>
  <joint name="j" axis="0 1 0.2" damping="0.1"/><geom size="0.1" pos="0 0 -0.3"/>
</body></worldbody><actuator>
  <general joint="j" dyntype="filter" dynprm="0.05" gainprm="3" biastype="affine"
    biasprm="0 -2 -0.1"/>
</actuator></mujoco>"""


def worlds(count):
    one, b = scenes.Builder(1), scenes.Builder(1)
    one.add_mjcf(FILTERED)
    for _ in range(count):
        b.add_world(one)
    return b.finalize(requires_grad=True)


def start(model):
    """Return a state and a control that differ between worlds."""
    state, control = model.state(), model.control()
    count = model.world_count
    state.joint_q.assign(np.linspace(0.2, 0.5, count, dtype=np.float32))
    state.joint_qd.assign(np.linspace(-0.3, 0.6, count, dtype=np.float32))
    control.mujoco.ctrl.assign(np.linspace(0.5, 1.5, count, dtype=np.float32))
    return state, control


def rollout(solver, state, control, steps=4):
    loss = Loss(solver.model, steps)
    gradients, visited = taped(solver, state, control, steps, DT, loss)
    return gradients, np.array([np.concatenate(each) for each in visited])


def close(found, wanted):
    for name, values in wanted.items():
        assert name.startswith("joint_target") or np.abs(values).max() > 1e-6
        atol = NOISE * np.abs(values).max()
        np.testing.assert_allclose(found[name], values, rtol=0, atol=atol, err_msg=name)


def test_activations_and_resets():
    """Activations pass from step to step, and a reset of one world clears its own only."""
    model = worlds(2)
    state, control = start(model)
    native = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
    warp = DifferentiableMuJoCo(model, parameters=())
    (found, visited), (wanted, other) = (rollout(s, state, control) for s in (native, warp))
    close(found, wanted)
    np.testing.assert_allclose(visited, other, rtol=0, atol=1e-5)
    act = native.mjw_data.act.numpy()
    assert np.abs(act).min() > 0.1
    native.reset(model.state(), wp.array([True, False, False], dtype=bool))
    np.testing.assert_array_equal(native.mjw_data.act.numpy(), act * [[0.0], [1.0]])


def test_edits():
    """After an edit of one world, steps and gradients are those of a new solver."""
    model = worlds(3)
    state, control = start(model)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
    before = rollout(solver, state, control)[1]
    mass = model.body_mass.numpy()
    model.body_mass.assign(mass * np.array([1, 2, 1], dtype=np.float32))
    solver.notify_model_changed(newton.ModelFlags.BODY_INERTIAL_PROPERTIES)
    solver.reset(model.state())
    found, visited = rollout(solver, state, control)
    new = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
    wanted, fresh = rollout(new, state, control)
    close(found, wanted)
    np.testing.assert_allclose(visited, fresh, rtol=0, atol=NOISE)
    changed = np.abs(visited - before).max(axis=0) > NOISE
    np.testing.assert_array_equal(changed, [False, True, False] * 2)


def test_steps_without_a_tape():
    """A step is the same on a tape and without one, and repeats are bitwise equal."""
    model = worlds(2)
    state, control = start(model)
    ends = []
    for on_tape in (False, True, True):
        solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
        after = model.state()
        with wp.Tape() if on_tape else wp.ScopedTimer("step", active=False):
            solver.step(state, after, control, None, DT)
        ends.append(after.joint_qd.numpy())
    for end in ends[1:]:
        np.testing.assert_array_equal(end, ends[0])


def test_torch():
    one, b = scenes.Builder(0), scenes.Builder(0)
    scenes.add_tree(one)
    for _ in range(2):
        b.add_world(one)
    model = b.finalize(requires_grad=True)
    state, _ = scenes.random_state(model)
    found = []
    for cpu in (True, False):
        step = torch_step(DifferentiableMuJoCo(model, use_mujoco_cpu=cpu, parameters=()))
        q, v = (
            torch.tensor(each.numpy().reshape(2, -1), requires_grad=True)
            for each in (state.joint_q, state.joint_qd)
        )
        after, _ = step(q, v, DT)
        after.square().sum().backward()
        found.append((q.grad.numpy(), v.grad.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5 * np.abs(theirs).max())


def test_divergence(monkeypatch, tmp_path):
    """A world that diverges is named on a tape."""
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its warnings to a file
    model = worlds(3)
    state, control = start(model)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
    state.joint_qd.assign(np.array([0, 0, 1e12], dtype=np.float32))
    for _ in range(2):  # the second step is judged by itself
        with pytest.raises(MujacobianError, match=r"world 2: the step diverges"), wp.Tape():
            solver.step(state, model.state(), control, None, DT)
    state.joint_qd.zero_()
    with wp.Tape():
        solver.step(state, model.state(), control, None, DT)


def test_room(monkeypatch, tmp_path):
    """Contacts that do not fit into the memory of MuJoCo C are an error on a tape."""
    monkeypatch.chdir(tmp_path)
    model = scenes.crowd(100, worlds=2)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
    with pytest.raises(MujacobianError, match=r"world 0: MuJoCo C has no room"), wp.Tape():
        solver.step(model.state(), model.state(), model.control(), None, DT)


@pytest.mark.filterwarnings("ignore:.*request_state_attributes")
def test_refusals():
    model = worlds(2)
    model.request_state_attributes("body_qdd")
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
    control = model.control()
    with pytest.raises(UnsupportedFeatureError, match="body_qdd with several worlds"):
        solver.step(model.state(), model.state(), control, None, DT)
    with pytest.raises(UnsupportedFeatureError, match="does not pass its contacts"):
        solver.update_contacts(newton.CollisionPipeline(model).contacts())
    with pytest.raises(UnsupportedFeatureError, match="enable_sleeping"):
        DifferentiableMuJoCo(model, use_mujoco_cpu=True, enable_sleeping=True)
    plain = worlds(2)
    solver = DifferentiableMuJoCo(plain, use_mujoco_cpu=True, parameters=())
    with (
        pytest.raises(UnsupportedFeatureError, match="a captured step"),
        wp.ScopedCapture(device=plain.device),
    ):
        solver.step(plain.state(), plain.state(), plain.control(), None, DT)
