"""After an edit and a notification, derivatives are those of a new solver, in both modes."""

from contextlib import nullcontext

import newton
import numpy as np
import pytest
import scenes
import warp as wp

from mujacobian import UnsupportedFeatureError
from mujacobian.newton import DifferentiableMuJoCo
from mujacobian.newton.parameters import array_of

DT = 0.005
FLAGS = newton.ModelFlags


def scale(name, factor):
    def edit(model):
        array = getattr(model, name)
        array.assign((factor * array.numpy()).astype(np.float32))

    return edit


def turn_frames(model):
    """Move and rotate the parent anchors of joints a little.

    Fixed joints inside a tree are excluded: Newton 1.7 propagates their edits in neither mode.
    """
    values = model.joint_X_p.numpy()
    chosen = [label != "glue" for label in model.joint_label]
    values[chosen, :3] += 0.05
    values[chosen, 3:] += 0.1
    values[:, 3:] /= np.linalg.norm(values[:, 3:], axis=1, keepdims=True)
    model.joint_X_p.assign(values)


def shift_shapes(model):
    values = model.shape_transform.numpy()
    values[:, :3] += [0.01, 0.0, 0.002]
    model.shape_transform.assign(values)


def release(model):
    model.mujoco.equality_constraint_enabled.fill_(False)


EDITS = {
    "mass": ("roots", scale("body_mass", 1.5), FLAGS.BODY_INERTIAL_PROPERTIES),
    "inertia": ("roots", scale("body_inertia", 2.0), FLAGS.BODY_INERTIAL_PROPERTIES),
    "com": ("roots", scale("body_com", 0.5), FLAGS.BODY_INERTIAL_PROPERTIES),
    "frames": ("roots", turn_frames, FLAGS.JOINT_PROPERTIES),
    "gravity": ("roots", scale("gravity", 0.5), FLAGS.MODEL_PROPERTIES),
    "limits": ("limits", scale("joint_limit_ke", 3.0), FLAGS.JOINT_DOF_PROPERTIES),
    "limits with mass": ("limits", scale("body_mass", 1.5), FLAGS.BODY_INERTIAL_PROPERTIES),
    "bounds": ("limits", scale("joint_limit_lower", 0.9), FLAGS.JOINT_DOF_PROPERTIES),
    "friction": ("box", scale("shape_material_mu", 0.3), FLAGS.SHAPE_PROPERTIES),
    "stiffness": ("box", scale("shape_material_ke", 2.0), FLAGS.SHAPE_PROPERTIES),
    "shapes": ("box", shift_shapes, FLAGS.SHAPE_PROPERTIES),
    "equalities": ("connect", release, FLAGS.CONSTRAINT_PROPERTIES),
}
SCENES = {
    "roots": scenes.roots,
    "limits": lambda: scenes.limits(0.6, 1.0, damping=0.1),
    "box": lambda: scenes.resting("box"),
    "connect": lambda: scenes.machine(scenes.EQUALITIES["connect"]),
}


@pytest.mark.parametrize("cpu", [True, False], ids=["c", "warp"])
@pytest.mark.parametrize("edit", EDITS)
def test_edit(edit, cpu):
    scene, change, flags = EDITS[edit]
    model = SCENES[scene]()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=cpu)
    if scene == "box":
        state, control = scenes.touching(model, solver)
    else:
        state, control = scenes.random_state(model)
    before = solver.linearize(state, control, DT)
    change(model)
    solver.notify_model_changed(flags)
    after = solver.linearize(state, control, DT)
    fresh = DifferentiableMuJoCo(model, use_mujoco_cpu=cpu).linearize(state, control, DT)
    for found, wanted, old in ((after.A, fresh.A, before.A), (after.B, fresh.B, before.B)):
        size = np.abs(wanted).max()
        print(edit, cpu, np.abs(found - wanted).max() / size, np.abs(old - wanted).max() / size)
        assert np.abs(found - wanted).max() < 2e-5 * size
    assert np.abs(before.A - fresh.A).max() > 1e-6 * np.abs(fresh.A).max()


def test_edits_reach_the_simulation():
    """With use_mujoco_cpu, Newton 1.7 itself would continue with the old poses of fixed roots."""
    model = scenes.roots()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    turn_frames(model)
    solver.notify_model_changed(FLAGS.JOINT_PROPERTIES)
    fresh = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    state, control = scenes.random_state(model)
    results = []
    for each in (solver, fresh):
        after = model.state()
        each.step(state, after, control, None, DT)
        results.append(after)
    for name in ("joint_q", "joint_qd"):
        found, wanted = (getattr(state, name).numpy() for state in results)
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("cpu", [True, False], ids=["c", "warp"])
def test_equality_released_between_steps(cpu):
    """Each step of a tape has the equalities of its own time."""
    model = SCENES["connect"]()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=cpu, parameters=())
    first, control = scenes.random_state(model)
    second, third = model.state(), model.state()
    steps = []
    with wp.Tape() as tape:
        for before, after in ((first, second), (second, third)):
            steps.append(solver.linearize(before, control, DT, coords="ambient"))
            solver.step(before, after, control, None, DT)
            release(model)
            solver.notify_model_changed(FLAGS.CONSTRAINT_PROPERTIES)
    seed = np.arange(1, model.joint_dof_count + 1, dtype=np.float32)
    tape.backward(grads={third.joint_qd: wp.array(seed)})
    held, free = steps
    wanted = seed @ free.A[free.layout.state["joint_qd"]] @ held.A
    for name in ("joint_q", "joint_qd"):
        error = getattr(first, name).grad.numpy() - wanted[held.layout.state[name]]
        print(name, np.abs(error).max() / np.abs(wanted).max())
        assert np.abs(error).max() < 1e-6 * np.abs(wanted).max()


def test_edits_on_a_tape():
    """Edits of arrays with gradients are part of the tape; edits of others raise an error."""
    model = scenes.roots()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    before, control = scenes.random_state(model)
    after = model.state()
    factor = wp.array(np.full(model.body_count, 1.5, dtype=np.float32), requires_grad=True)
    unit = wp.clone(model.body_mass, requires_grad=False)
    with wp.Tape() as tape:
        wp.launch(multiply, model.body_count, inputs=[unit, factor], outputs=[model.body_mass])
        solver.notify_model_changed(FLAGS.BODY_INERTIAL_PROPERTIES)
        solver.step(before, after, control, None, DT)
    tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})
    assert factor.grad.numpy().any()
    for name, flags in (
        ("joint_axis", FLAGS.JOINT_PROPERTIES),
        ("joint_X_p", FLAGS.JOINT_PROPERTIES),
        ("mujoco.gravcomp", FLAGS.BODY_PROPERTIES),
    ):
        array = array_of(model, name)
        for wanted in (True, False):
            array.assign((0.9 * array.numpy() + 0.1).astype(np.float32))
            array.requires_grad = wanted
            refused = pytest.raises(UnsupportedFeatureError, match=f"an edit of {name} on a tape")
            with refused if wanted else nullcontext(), wp.Tape():
                solver.notify_model_changed(flags)


@wp.kernel
def multiply(a: wp.array[float], b: wp.array[float], c: wp.array[float]):
    i = wp.tid()
    c[i] = a[i] * b[i]


def test_without_edits_nothing_changes():
    """A notification without edits leaves the C model as SolverMuJoCo made it."""
    model = scenes.tree()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    plain = newton.solvers.SolverMuJoCo(model, use_mujoco_cpu=True)
    assert isinstance(solver, newton.solvers.SolverMuJoCo)
    state, control = scenes.random_state(model)
    results = []
    for each in (solver, plain):
        after = model.state()
        each.step(state, after, control, None, DT)
        results.append(np.concatenate([after.joint_q.numpy(), after.joint_qd.numpy()]))
    np.testing.assert_array_equal(*results)
