"""Steps as functions of PyTorch: gradients against differences and against a tape."""

import doctest

import newton
import numpy as np
import pytest
import scenes
import warp as wp

from mujacobian.errors import ArgumentError, MujacobianError, UnsupportedFeatureError
from mujacobian.newton import DifferentiableMuJoCo, torch_step

torch = pytest.importorskip("torch")
from mujacobian.newton import torch_bridge  # noqa: E402

DT = 0.005
# Newton's arrays have single precision, so that differences need large steps
STEP, TOLERANCE = 2e-2, 2e-3


def tensors(model, worlds, dtype=torch.float64):
    """Return the state and inputs of `random_state`, one row per world."""
    state, control = scenes.random_state(model)
    found = {
        "joint_q": state.joint_q, "joint_qd": state.joint_qd, "joint_f": control.joint_f,
        "joint_target_q": control.joint_target_q, "joint_target_qd": control.joint_target_qd,
        "body_f": state.body_f,
    }  # fmt: skip
    rows = {name: array.numpy().reshape(worlds, -1, *array.numpy().shape[1:])
            for name, array in found.items()}  # fmt: skip
    return {name: torch.tensor(values, dtype=dtype) for name, values in rows.items()}


def chain(count):
    """Return worlds with a hinge and a slide that have servos; no quaternions, no contacts."""
    one = newton.ModelBuilder()
    inertia = wp.mat33(0.1, 0, 0, 0, 0.12, 0, 0, 0, 0.09)
    first, second = (one.add_link(mass=1.0, inertia=inertia, com=wp.vec3(0.1, 0, 0.2))
                     for _ in range(2))  # fmt: skip
    servo = {"target_ke": 5.0, "target_kd": 0.5, "actuator_mode": newton.JointTargetMode.POSITION}
    hinge = one.add_joint_revolute(-1, first, axis=(0, 1, 0), **servo)
    slide = one.add_joint_prismatic(first, second, axis=(1, 0, 0.3), **servo)
    one.add_articulation([hinge, slide])
    every = newton.ModelBuilder()
    every.replicate(one, count)
    return every.finalize(requires_grad=True)


@pytest.mark.parametrize(("worlds", "cpu"), [(1, True), (3, False)])
def test_gradcheck(worlds, cpu):
    model = chain(worlds)
    step = torch_step(DifferentiableMuJoCo(model, use_mujoco_cpu=cpu, parameters=()))
    given = tensors(model, worlds)
    names = list(given)
    for tensor in given.values():
        tensor.requires_grad_(True)

    def two_steps(*values):
        inputs = dict(zip(names, values, strict=True))
        q, v = inputs.pop("joint_q"), inputs.pop("joint_qd")
        for _ in range(2):
            q, v = step(q, v, 0.05, **inputs)
        return q, v

    assert torch.autograd.gradcheck(
        two_steps, tuple(given.values()), eps=STEP, atol=TOLERANCE, rtol=TOLERANCE
    )


@pytest.mark.parametrize("cpu", [True, False])
def test_agrees_with_a_tape(cpu):
    """All joint types, with their quaternions."""
    model = scenes.tree()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=cpu, parameters=())
    state, control = scenes.random_state(model)
    states = [state, *(model.state() for _ in range(3))]
    with wp.Tape() as tape:
        for k in range(3):
            solver.step(states[k], states[k + 1], control, None, DT)
    tape.backward(grads={states[-1].joint_q: wp.ones_like(state.joint_q)})

    given = tensors(model, 1, torch.float32)
    for tensor in given.values():
        tensor.requires_grad_(True)
    step = torch_step(DifferentiableMuJoCo(model, use_mujoco_cpu=cpu, parameters=()))
    q, v = given["joint_q"], given["joint_qd"]
    inputs = {name: given[name] for name in step.inputs if name in given}
    first = inputs.pop("body_f")
    for k in range(3):
        q, v = step(q, v, DT, **inputs, **({"body_f": first} if k == 0 else {}))
    np.testing.assert_array_equal(q.detach().numpy().ravel(), states[-1].joint_q.numpy())
    q.sum().backward()
    for name, array in (
        ("joint_q", state.joint_q), ("joint_qd", state.joint_qd), ("body_f", state.body_f),
        ("joint_f", control.joint_f), ("joint_target_q", control.joint_target_q),
    ):  # fmt: skip
        wanted, found = array.grad.numpy().ravel(), given[name].grad.numpy().ravel()
        assert wanted.any()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())


def test_operators_are_registered_correctly():
    model = chain(2)
    step = torch_step(DifferentiableMuJoCo(model, parameters=()))
    given = tensors(model, 2)
    values = [given[name].requires_grad_(True) for name in ("joint_q", "joint_qd", "joint_f")]
    # the warm start is state of the solver, which has no effect without contacts
    torch.library.opcheck(
        torch_bridge._step, (id(step), DT, "joint_q,joint_qd,joint_f", values),
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )  # fmt: skip


def test_errors():
    model = chain(2)
    solver = DifferentiableMuJoCo(model, parameters=())
    step = torch_step(solver)
    q, v = torch.zeros(2, 2, requires_grad=True), torch.zeros(2, 2)
    with pytest.raises(ArgumentError, match=r"joint_q must have shape \(2, 2\), got \(1, 2\)"):
        step(q[:1], v, DT)
    with pytest.raises(ArgumentError, match="wind is no input of this model"):
        step(q, v, DT, wind=v)
    after, _ = step(q, v, DT)
    solver.notify_model_changed(int(newton.ModelFlags.ALL))
    step(q, v, DT)
    with pytest.raises(MujacobianError, match="the model was changed"):
        after.sum().backward()
    with pytest.raises(UnsupportedFeatureError, match="activations"):
        torch_step(DifferentiableMuJoCo(scenes.machine(), use_mujoco_cpu=True, parameters=()))
    with pytest.raises(UnsupportedFeatureError, match="update_data_interval=2"):
        torch_step(DifferentiableMuJoCo(model, parameters=(), update_data_interval=2))


def test_a_step_lives_until_its_gradient():
    q, v = torch.zeros(2, 2, requires_grad=True), torch.zeros(2, 2)
    after, _ = torch_step(DifferentiableMuJoCo(chain(2), parameters=()))(q, v, DT)
    after.sum().backward()
    assert q.grad.abs().sum() > 0


def test_docstring():
    assert doctest.testmod(torch_bridge).failed == 0
