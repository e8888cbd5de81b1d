"""Gradients of arrays of the model against differences of new solvers."""

import newton
import numpy as np
import pytest
import scenes
import warp as wp
from losses import Exact, Loss, taped
from oracle import Oracle

from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton import PARAMETERS, DifferentiableMuJoCo

DT, STEPS = 0.005, 5

CASES = [
    ("tree", "body_mass"),
    ("tree", "body_inertia"),
    ("tree", "gravity"),
    ("tree", "joint_damping"),
    ("tree", "joint_armature"),
    ("tree", "joint_target_ke"),
    ("tree", "joint_target_kd"),
    ("targets", "joint_target_ke"),
    ("targets", "joint_target_kd"),
    ("friction", "joint_friction"),
    ("limits", "joint_limit_lower"),
    ("limits above", "joint_limit_upper"),
    ("limits", "joint_limit_ke"),
    ("limits", "joint_limit_kd"),
    ("limits rk4", "joint_limit_lower"),
    ("limits rk4", "body_mass"),
    ("limits", "body_mass"),
    ("limits", "body_inertia"),
    ("limits armed", "joint_armature"),
    ("box", "body_inertia"),
    ("box", "body_mass"),
    ("box", "shape_material_mu"),
    ("box", "shape_material_ke"),
    ("box", "shape_material_kd"),
    ("rough", "shape_material_mu_torsional"),
    ("rough", "shape_material_mu_rolling"),
    ("machine", "mujoco.dof_passive_stiffness"),
    ("machine", "mujoco.tendon_stiffness"),
    ("machine", "mujoco.tendon_damping"),
    ("machine dry", "mujoco.tendon_frictionloss"),
    ("machine", "mujoco.actuator_gainprm"),
    ("machine", "mujoco.actuator_biasprm"),
    ("weak", "joint_effort_limit"),
    ("connect", "mujoco.equality_constraint_anchor"),
    ("weld", "mujoco.equality_constraint_anchor"),
    ("weld", "mujoco.equality_constraint_relpose"),
    ("weld", "mujoco.equality_constraint_torquescale"),
    ("coupling", "mujoco.equality_constraint_polycoef"),
    *(
        (scene, f"mujoco.eq_{name}")
        for scene in ("connect", "weld", "coupling", "stiff")
        for name in ("solref", "solimp")
    ),
    ("mimic", "joint_mimic_coeffs"),
    ("mimic constraint", "constraint_mimic_coef0"),
    ("mimic constraint", "constraint_mimic_coef1"),
    *(
        ("pair", f"mujoco.pair_{name}")
        for name in ("friction", "solref", "solreffriction", "solimp")
    ),
]
SCENES = {
    "tree": scenes.tree,
    "targets": lambda: scenes.ball_targets(newton.JointTargetMode.POSITION_VELOCITY),
    "limits": lambda: scenes.limits(0.6, 1.0),
    "limits armed": lambda: armed(scenes.limits(0.6, 1.0)),
    "limits rk4": lambda: scenes.limits(0.6, 1.0),
    "limits above": lambda: scenes.limits(-1.0, -0.6),
    "friction": lambda: scenes.limits(-3.0, 3.0, friction=0.3),
    "box": lambda: slippery(scenes.resting("box")),
    "rough": lambda: scenes.rough(scenes.resting("box")),
    "machine": scenes.machine,
    "machine dry": scenes.dry_machine,
    "weak": lambda: weak(scenes.tree()),
    "connect": lambda: scenes.machine(scenes.EQUALITIES["connect"]),
    "weld": lambda: welded(),
    "coupling": lambda: scenes.machine(scenes.EQUALITIES["joint"]),
    "stiff": lambda: stiff(scenes.machine(scenes.EQUALITIES["connect"])),
    "mimic": scenes.mimic,
    "mimic constraint": lambda: scenes.mimic(joint=False),
    "pair": lambda: scenes.pair(),
}
TOUCHING = ("box", "rough", "pair")
# poses and sizes of shapes, with edits that do not end contacts
SHAPES = [
    *((kind, "shape_transform") for kind in ("sphere", "box", "capsule", "mesh", "two boxes")),
    *((kind, "shape_scale") for kind in ("sphere", "capsule", "cylinder", "box", "two boxes")),
]
# frames, with the length of the differences; limits and contacts bend the loss
FRAME_SCENES = {
    "tree": (scenes.tree, 0.004),
    "targets": (lambda: ball_servo(), 0.004),
    "roots": (scenes.roots, 0.002),
    "locked": (scenes.locked_root, 0.004),
    "machine": (scenes.machine, 0.002),
    "weld": (lambda: scenes.machine(scenes.EQUALITIES["weld"]), 5e-4),
    "connect": (lambda: scenes.machine(scenes.EQUALITIES["connect"]), 2e-3),
    "limits": (lambda: scenes.limits(0.6, 1.0), 5e-4),
    "box": (lambda: scenes.resting("box"), 1e-4),
}
FRAMES = [
    (scene, name) for scene in FRAME_SCENES for name in ("body_com", "joint_X_p", "joint_X_c")
]

OPTIONS = {
    "limits rk4": {"integrator": "rk4"},
    "pair": {"cone": "elliptic"},
    "rough": {"cone": "elliptic"},  # pyramids of six dimensions have edges without force
}


def slippery(model):
    """Set less friction on the ground, because two equal coefficients would share the gradient."""
    model.shape_material_mu.assign(np.array([0.6, 0.3], dtype=np.float32))
    return model


def welded():
    """Return a weld whose bodies are nearly at their relative pose."""
    xml = '<equality><weld body1="b" body2="d" anchor="0.1 0.2 0.3" relpose="0 1.1 0.3 1 0.2 0 0"/>'
    return scenes.machine(xml + "</equality>")


def stiff(model):
    """Give the stiffness and the damping of an equality instead of its time constant."""
    model.mujoco.eq_solref.assign(np.float32([[-900.0, -40.0]]))
    return model


def weak(model):
    """Set effort limits that the servos exceed."""
    model.joint_effort_limit.fill_(0.2)
    return model


def armed(model):
    """Set armature, which the scene with limits lacks."""
    model.joint_armature.fill_(0.05)
    return model


def array_of(model, name):
    for part in name.split("."):
        model = getattr(model, part)
    return model


def sharpen(mj, joint_limit_ke, joint_limit_kd):
    """Repeat Newton's computation of force-space limits in double precision."""
    factor = mj.dof_invweight0[mj.jnt_dofadr] * (1 - mj.jnt_solimp[:, 1])
    ke, kd = joint_limit_ke * factor, joint_limit_kd * factor
    solref = np.stack([2 / kd, kd / (2 * np.sqrt(ke))], axis=1)
    np.testing.assert_allclose(mj.jnt_solref, solref, rtol=1e-6)
    mj.jnt_solref[:] = solref


@pytest.mark.parametrize(("scene", "name"), CASES)
def test_gradient(scene, name):
    model = SCENES[scene]()
    array = array_of(model, name)
    array.requires_grad = True
    solver = DifferentiableMuJoCo(
        model, use_mujoco_cpu=True, parameters=[name], **OPTIONS.get(scene, {})
    )
    if scene in TOUCHING:
        state, control = scenes.touching(model, solver)
    else:
        state, control = scenes.random_state(model)
    loss = Loss(model, STEPS)
    gradients, visited = taped(solver, state, control, STEPS, DT, loss, of=array)
    found = gradients["of"].astype(float)
    base = array.numpy().copy()
    rng = np.random.default_rng(3)
    direction = np.where(base != 0, np.abs(base), 0) * rng.uniform(0.5, 1, base.shape)
    if name == "body_inertia":
        direction = np.broadcast_to(base * rng.uniform(0.5, 1, (len(base), 1, 1)), base.shape)
    if name == "mujoco.actuator_gainprm":
        direction = direction * [[1], [-1], [1], [-1], [1]]  # the effects do not cancel
    if name in ("joint_damping", "mujoco.dof_passive_stiffness") or name.endswith("relpose"):
        direction = direction + 0.1 * (base == 0)
    exact = Exact(solver, state, control, STEPS, DT, loss, visited)

    def value(step):
        array.assign((base + step * direction).astype(np.float32))
        fresh = newton.solvers.SolverMuJoCo(model, use_mujoco_cpu=True, **OPTIONS.get(scene, {}))
        exact.oracle = Oracle(fresh)
        if scene.startswith("limits"):
            gains = {"joint_limit_ke": model.joint_limit_ke, "joint_limit_kd": model.joint_limit_kd}
            gains = {key: values.numpy().astype(float) for key, values in gains.items()}
            if name in gains:
                gains[name] = base + step * direction
            sharpen(exact.oracle.mj, **gains)
        return exact.value(exact.x)

    def central(h):
        return (value(h) - value(-h)) / (2 * h)

    h = 0.005 if name.startswith("joint_limit_k") else 0.02
    if name.endswith(("solimp", "solreffriction")):
        h = 0.002  # impedances stay below MuJoCo's largest, and contacts keep sticking
    a, b, c = central(4 * h), central(2 * h), central(h)
    first, second = (4 * b - a) / 3, (4 * c - b) / 3
    wanted = (16 * second - first) / 15
    array.assign(base)
    got = (found * direction).sum()
    print(scene, name, got, wanted, abs(got - wanted) / abs(wanted))
    assert abs(wanted) > 1e-6
    # Newton diagonalizes inertias and computes second anchors in single precision
    rough = scene == "targets" or name == "body_inertia" or name.endswith("anchor") or h == 0.002
    assert abs(got - wanted) < (2e-4 if rough else 2e-5) * abs(wanted)


@pytest.mark.parametrize(("scene", "name"), SHAPES)
def test_gradient_of_shapes(scene, name):
    """The edits are rounded to single precision, so that the difference is along the rounded edit.

    The second difference is the error of the first one.
    """
    model = scenes.resting("box", "box") if scene == "two boxes" else scenes.resting(scene)
    array = getattr(model, name)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=[name])
    state, control = scenes.touching(model, solver)
    loss = Loss(model, 1)
    gradients, visited = taped(solver, state, control, 1, DT, loss, of=array)
    found, base = gradients["of"].astype(float), array.numpy().copy()
    rng = np.random.default_rng(5)
    direction = rng.normal(size=base.shape) * (base != 0 if name == "shape_scale" else 1)
    exact = Exact(solver, state, control, 1, DT, loss, visited)

    def apart(h):
        """Return the differences of the loss and of the array."""
        values, arrays = [], []
        for sign in (1, -1):
            array.assign((base + sign * h * direction).astype(np.float32))
            arrays.append(array.numpy().astype(float))
            exact.oracle = Oracle(newton.solvers.SolverMuJoCo(model, use_mujoco_cpu=True))
            values.append(exact.value(exact.x))
        array.assign(base)
        return values[0] - values[1], arrays[0] - arrays[1]

    errors = []
    for h in (2e-4, 1e-4):
        difference, edit = apart(h)
        errors.append(abs((found * edit).sum() - difference) / np.abs(found * edit).sum())
    print(scene, name, (found * edit).sum(), difference, errors)
    # the error is that of the difference, which is quadratic in the edit
    assert errors[1] < 1e-4
    assert errors[1] < max(0.4 * errors[0], 2e-6)


@pytest.mark.parametrize(("scene", "name"), FRAMES)
def test_gradient_of_frames(scene, name):
    """The difference is along the edit as it is rounded to single precision."""
    build, h = FRAME_SCENES[scene]
    model = build()
    array = getattr(model, name)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=[name])
    assert solver.parameters == (name,)
    resting = scene == "box"
    state, control = scenes.touching(model, solver) if resting else scenes.random_state(model)
    steps = 1 if resting else STEPS
    loss = Loss(model, steps)
    gradients, visited = taped(solver, state, control, steps, DT, loss, of=array)
    found, base = gradients["of"].astype(float), array.numpy().copy()
    exact = Exact(solver, state, control, steps, DT, loss, visited)
    rng = np.random.default_rng(3)
    direction = rng.normal(size=base.shape)
    if name != "body_com":  # the length of quaternions has no effect
        q = base[:, 3:]
        direction[:, 3:] -= q * (q * direction[:, 3:]).sum(axis=1, keepdims=True)

    def apart(h):
        """Return the difference of the loss, and that of the array times the gradient."""
        values, arrays = [], []
        for sign in (1, -1):
            moved = base + sign * h * direction
            if name != "body_com":
                moved[:, 3:] /= np.linalg.norm(moved[:, 3:], axis=1, keepdims=True)
            array.assign(moved.astype(np.float32))
            arrays.append(array.numpy().astype(float))
            exact.oracle = Oracle(newton.solvers.SolverMuJoCo(model, use_mujoco_cpu=True))
            values.append(exact.value(exact.x))
        array.assign(base)
        return np.array([values[0] - values[1], (found * (arrays[0] - arrays[1])).sum()]) / (2 * h)

    first, second = apart(2 * h), apart(h)
    wanted, got = (4 * second - first) / 3
    size = np.linalg.norm(found)
    print(scene, name, got, wanted, abs(got - wanted) / size)
    assert abs(wanted) > 1e-3 * size
    # the error of the difference; Newton computes frames and anchors in single precision
    assert abs(got - wanted) < (1e-3 if scene in ("connect", "limits") else 2e-4) * size


def test_equal_friction_is_shared():
    """Each of two shapes with the same friction has half of the derivative of both together."""
    model = scenes.resting("box")
    mu = model.shape_material_mu
    mu.fill_(0.5)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=["shape_material_mu"])
    state, control = scenes.touching(model, solver)
    loss = Loss(model, 1)
    gradients, visited = taped(solver, state, control, 1, DT, loss, of=mu)
    exact = Exact(solver, state, control, 1, DT, loss, visited)

    def value(friction):
        mu.fill_(friction)
        exact.oracle = Oracle(newton.solvers.SolverMuJoCo(model, use_mujoco_cpu=True))
        return exact.value(exact.x)

    wanted = (value(0.505) - value(0.495)) / 0.01
    found = gradients["of"]
    assert abs(wanted) > 1e-6
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    assert found.sum() == pytest.approx(wanted, rel=1e-4)


def test_all_are_listed():
    assert {name for _, name in CASES + SHAPES + FRAMES} == set(PARAMETERS)


def test_the_solver_lists_its_parameters():
    """All other arrays also require gradients, which stay zero."""
    model = scenes.machine()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    assert "mujoco.tendon_stiffness" in solver.parameters
    before, control = scenes.random_state(model)
    after = model.state()
    with wp.Tape() as tape:
        solver.step(before, after, control, None, DT)
    tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})
    assert array_of(model, "body_mass").grad.numpy().any()
    for name in ("joint_axis", "mujoco.dof_ref"):
        assert array_of(model, name).requires_grad
        assert not array_of(model, name).grad.numpy().any()
    only = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=["body_mass"])
    assert only.parameters == ("body_mass",)


def ball_servo():
    return scenes.ball_targets(newton.JointTargetMode.POSITION)


@pytest.mark.parametrize(
    ("build", "name"),
    [(lambda: scenes.resting("ellipsoid"), "shape_scale"), (scenes.machine, "shape_transform")],
)
def test_shapes_are_chosen_by_name(build, name):
    """They have no gradient by default, because some contacts have no derivative there."""
    model = build()
    assert name not in DifferentiableMuJoCo(model, use_mujoco_cpu=True).parameters
    with pytest.raises(UnsupportedFeatureError, match=r"not supported|act on sites"):
        DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=[name])


@pytest.mark.parametrize(
    ("build", "options", "name"),
    [
        (ball_servo, {}, "joint_effort_limit"),
        (scenes.tree, {"density": 1.2, "viscosity": 0.1}, "body_inertia"),
        (scenes.tree, {"integrator": "rk4"}, "joint_effort_limit"),
    ],
)
def test_arrays_without_a_derivative_are_left_out(build, options, name):
    """One warning names them when the solver is built, and asking for them raises there."""
    model = build()
    with pytest.warns(RuntimeWarning, match=f"no gradients: .*{name}"):
        solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, **options)
    assert name not in solver.parameters
    assert "gravity" in solver.parameters
    with pytest.raises(UnsupportedFeatureError):
        DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=[name], **options)
    before, control = scenes.random_state(model)
    after = model.state()
    with wp.Tape() as tape:
        solver.step(before, after, control, None, DT)
    tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})
    assert model.gravity.grad.numpy().any()
    assert not array_of(model, name).grad.numpy().any()


def gradients_of(model, names, state, control, **options):
    """Return the gradients of the sum of speeds after a step, {name: array}, and the solver."""
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=names, **options)
    after = model.state()
    with wp.Tape() as tape:
        solver.step(state, after, control, None, DT)
    tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})
    found = {name: array_of(model, name).grad.numpy().copy() for name in names}
    tape.zero()
    return found, solver


@pytest.mark.filterwarnings("ignore:.*SOLREF_MODE_FORCE_SPACE")  # the same in MuJoCo C
@pytest.mark.parametrize("raw", [True, False])
def test_shapes_with_solref_of_their_own(raw):
    """Their stiffness and damping have no effect."""
    model = slippery(scenes.resting("box"))
    model.mujoco.solref_mode.fill_(1 if raw else 0)
    model.mujoco.solref.assign(np.tile(np.float32([0.03, 1.2]), (model.shape_count, 1)))
    plain = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    assert (np.abs(plain.mj_model.geom_solref[:, 1] - 1.2).max() < 1e-6) == raw
    state, control = scenes.touching(model, plain)
    names = ["shape_material_ke", "shape_material_kd"]
    for values in gradients_of(model, names, state, control)[0].values():
        assert values.any() != raw


def test_limits_with_solref_of_their_own():
    """Limits from MJCF have their own solref, until stiffness or damping is edited."""
    model = scenes.machine()
    state, control = scenes.random_state(model)
    q, v = state.joint_q.numpy(), state.joint_qd.numpy()
    q[2], v[2] = 0.12, 0.5  # the slide is beyond its limit, and moves on
    state.joint_q.assign(q)
    state.joint_qd.assign(v)
    names = ["joint_limit_ke", "joint_limit_kd"]
    found, solver = gradients_of(model, names, state, control)
    assert not any(values.any() for values in found.values())
    solref = solver.mj_model.jnt_solref.copy()
    model.joint_limit_ke.fill_(1e5)
    model.joint_limit_kd.fill_(1e3)
    solver.notify_model_changed(newton.ModelFlags.JOINT_DOF_PROPERTIES)
    assert (solver.mj_model.jnt_solref[2] != solref[2]).any()
    found, _ = gradients_of(model, names, state, control)
    assert all(values[2] != 0 for values in found.values())


def test_pairs_have_their_own_friction():
    """The friction and stiffness of the shapes have no effect then."""
    model = scenes.pair()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, cone="elliptic")
    before, control = scenes.touching(model, solver)
    after = model.state()
    with wp.Tape() as tape:
        solver.step(before, after, control, None, DT)
    tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})
    assert model.body_mass.grad.numpy().any()
    for name in solver.parameters:
        if name.startswith("shape_material"):
            assert not array_of(model, name).grad.numpy().any()


def test_worlds_have_their_own():
    """Gradients of shapes that worlds share are added."""
    b = scenes.Builder(0)
    world = scenes.Builder(0)
    body = world.add_link(mass=1.0, inertia=scenes.INERTIA, label="ball")
    world.add_articulation([world.add_joint_free(parent=-1, child=body)])
    world.default_shape_cfg.density = 0.0
    world.add_shape_sphere(body, radius=0.1)
    for _ in range(2):
        b.add_world(world)
    b.add_ground_plane()
    model = b.finalize(requires_grad=True)
    solver = DifferentiableMuJoCo(model, parameters=["body_mass", "shape_material_mu"])
    before, after, control = model.state(), model.state(), model.control()
    q = before.joint_q.numpy().reshape(2, 7)
    q[:, 2] = 0.099
    before.joint_q.assign(q.ravel())
    before.joint_qd.assign(np.tile([0.5, 0, -0.1, 0, 0, 0], 2).astype(np.float32))
    with wp.Tape() as tape:
        solver.step(before, after, control, None, DT)
    seed = np.zeros((2, 6), dtype=np.float32)
    seed[0] = seed[1] = [1, 0, 0.5, 0, 0, 0]
    tape.backward(grads={after.joint_qd: wp.array(seed.ravel())})
    mass, friction = model.body_mass.grad.numpy(), model.shape_material_mu.grad.numpy()
    assert mass[0] != 0
    assert mass[0] == pytest.approx(mass[1], rel=1e-4)
    ground = int(np.flatnonzero(model.shape_body.numpy() < 0)[0])
    assert friction[ground] == pytest.approx(np.delete(friction, ground).sum(), rel=1e-4)
