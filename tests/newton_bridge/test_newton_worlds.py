"""Several worlds and mujoco_warp: gradients do not depend on them beyond single precision."""

import numpy as np
import pytest
import scenes
import warp as wp
from losses import Exact, Loss, taped

from mujacobian.newton import DifferentiableMuJoCo, model_parameters

DT = 0.005
NOISE = 2e-5  # noise of gradients, from single precision in mujoco_warp's forward pass
NATIVE_NOISE = 1e-6  # of several worlds in MuJoCo C, whose models have single precision


def apart(a, b):
    """Return the largest relative difference of gradients {name: array}."""
    return max(np.linalg.norm(a[k] - b[k]) / max(np.linalg.norm(b[k]), 1e-6) for k in b)


@pytest.fixture(scope="module")
def one():
    model = scenes.tree()
    return model, *scenes.random_state(model)


def test_pingpong(one):
    """Two states take turns, and the loss depends on intermediate states."""
    model, state, control = one
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    loss = Loss(model, 6)
    many, _ = taped(solver, state, control, 6, DT, loss)
    two, _ = taped(solver, state, control, 6, DT, loss, pingpong=True)
    print(apart(two, many))
    assert apart(two, many) < 1e-6


def test_warp(one):
    """mujoco_warp simulates forward, and the adjoint is in double precision."""
    model, state, control = one
    loss = Loss(model, 5)
    found = {}
    for cpu in (True, False):
        solver = DifferentiableMuJoCo(model, use_mujoco_cpu=cpu)
        found[cpu], visited = taped(solver, state, control, 5, DT, loss)
    print(apart(found[False], found[True]))
    assert apart(found[False], found[True]) < NOISE
    mirror = solver._current_snapshot().worlds.models[0]
    from oracle import Oracle

    errors = Exact(solver, state, control, 5, DT, loss, visited, Oracle(solver, mj=mirror)).errors(
        found[False]
    )
    print(errors)
    assert max(errors.values()) < 1e-5


def several(count, masses=None):
    """Return worlds with a tree each, which differ in their masses."""
    world = scenes.Builder(0)
    scenes.add_tree(world)
    b = scenes.Builder(0)
    for _ in range(count):
        b.add_world(world)
    model = b.finalize(requires_grad=True)
    if masses is not None:
        model.body_mass.assign(np.repeat(masses, model.body_count // count).astype(np.float32))
    return model


@pytest.mark.parametrize("cpu", [False, True])
def test_worlds(cpu):
    """The states and gradients of each world agree with those of a model with this world only."""
    masses = np.array([1.0, 1.5, 0.7])
    model = several(3, masses)
    gravity = model.gravity.numpy()[-3:] * [[1.0], [0.5], [2.0]]
    model.gravity.assign(gravity)
    state, control = scenes.random_state(model)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=cpu)
    loss, noise = Loss(model, 3), NATIVE_NOISE if cpu else NOISE
    gradients, visited = taped(solver, state, control, 3, DT, loss)
    for world, mass in enumerate(masses):
        alone = scenes.tree()
        alone.body_mass.fill_(mass)
        alone.gravity.assign(gravity[world : world + 1])
        alone_state, alone_control = alone.state(), alone.control()
        pairs = [(state, alone_state, n) for n in ("joint_q", "joint_qd", "body_f")] + [
            (control, alone_control, n) for n in ("joint_f", "joint_target_q", "joint_target_qd")
        ]
        for source, target, name in pairs:
            getattr(target, name).assign(part(getattr(source, name).numpy(), world))
        single = DifferentiableMuJoCo(alone, use_mujoco_cpu=True)
        own = Loss(alone, 3)
        own.weights = {key: part(w, world) for key, w in loss.weights.items()}
        wanted, own_visited = taped(single, alone_state, alone_control, 3, DT, own)
        found = {name: part(g, world) for name, g in gradients.items()}
        print(world, apart(found, wanted))
        assert apart(found, wanted) < noise
        for ours, theirs in zip(visited, own_visited, strict=True):
            for values, alone_values in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(
                    part(values, world), alone_values, rtol=0, atol=noise * np.abs(values).max()
                )
        A = solver.linearize(state, control, DT, world=world).A
        B = single.linearize(alone_state, alone_control, DT).A
        print(np.abs(A - B).max() / np.abs(B).max())
        np.testing.assert_allclose(A, B, rtol=0, atol=2e-6 * np.abs(B).max())


def test_frames_of_worlds():
    """Gradients of frames and centers of each world agree with those of this world alone."""
    masses = np.array([1.0, 1.5, 0.7])
    names = ["body_com", "body_mass", "joint_X_p", "joint_X_c"]
    model = several(3, masses)
    state, control = scenes.random_state(model)
    loss = Loss(model, 2)
    solver = DifferentiableMuJoCo(model, parameters=names)
    for array in names:
        of = getattr(model, array)
        found, _ = taped(solver, state, control, 2, DT, loss, of=of)
        for world, mass in enumerate(masses):
            alone = scenes.tree()
            alone.body_mass.fill_(mass)
            alone_state, alone_control = alone.state(), alone.control()
            for source, target, keys in (
                (state, alone_state, ("joint_q", "joint_qd", "body_f")),
                (control, alone_control, ("joint_f", "joint_target_q", "joint_target_qd")),
            ):
                for key in keys:
                    getattr(target, key).assign(part(getattr(source, key).numpy(), world))
            own = Loss(alone, 2)
            own.weights = {key: part(w, world) for key, w in loss.weights.items()}
            single = DifferentiableMuJoCo(alone, use_mujoco_cpu=True, parameters=names)
            wanted, _ = taped(
                single, alone_state, alone_control, 2, DT, own, of=getattr(alone, array)
            )
            a, b = part(found["of"], world), wanted["of"]
            print(array, world, np.abs(a - b).max() / np.abs(b).max())
            assert np.abs(b).max() > 1e-3
            np.testing.assert_allclose(a, b, rtol=0, atol=NOISE * np.abs(b).max())


def part(values, world, worlds=3):
    return np.split(values, worlds)[world]


ROWS = {
    "connect": ("mujoco.equality_constraint_anchor", "mujoco.eq_solref", "mujoco.eq_solimp"),
    "joint": ("mujoco.equality_constraint_polycoef", "mujoco.eq_solref"),
    "mimic": ("joint_mimic_coeffs",),
    "pair": ("mujoco.pair_friction", "mujoco.pair_solref"),
}


@pytest.mark.filterwarnings("ignore:.*polycoef")
@pytest.mark.parametrize("kind", ROWS)
def test_equalities_and_pairs_of_worlds(kind):
    """Each of two equal worlds has the gradients that it has alone."""
    found = []
    for count in (1, 2):
        one = scenes.Builder(6)
        if kind == "mimic":
            scenes.add_mimic(one)
        elif kind == "pair":
            one.add_mjcf(scenes.PAIR.replace("EXTRA", ""))
            one.joint_q[2] = 0.055
        else:
            one.add_mjcf(scenes.MACHINE.replace("EXTRA", scenes.EQUALITIES[kind]))
        b = scenes.Builder(6)
        for _ in range(count):
            b.add_world(one)
        model = b.finalize(requires_grad=True)
        arrays = []
        for name in ROWS[kind]:
            owner = model.mujoco if name.startswith("mujoco.") else model
            arrays.append(getattr(owner, name.removeprefix("mujoco.")))
            arrays[-1].requires_grad = True
        solver = DifferentiableMuJoCo(model, parameters=ROWS[kind])
        before, after = model.state(), model.state()
        dofs = model.joint_dof_count // count
        speeds = np.linspace(-0.3, 0.4, dofs, dtype=np.float32)
        before.joint_qd.assign(np.tile(speeds, count))
        with wp.Tape() as tape:
            solver.step(before, after, model.control(), None, DT)
        weights = np.linspace(1, 2, dofs, dtype=np.float32)
        tape.backward(grads={after.joint_qd: wp.array(np.tile(weights, count))})
        found.append([array.grad.numpy() for array in arrays])
    for alone, both in zip(*found, strict=True):
        assert alone.any()
        for world in np.split(both, 2):
            np.testing.assert_allclose(world, alone, rtol=1e-3, atol=1e-4 * np.abs(alone).max())


def equal_machines():
    one, b = scenes.Builder(6), scenes.Builder(6)
    one.add_mjcf(scenes.MACHINE.replace("EXTRA", scenes.EQUALITIES["weld"]))
    for _ in range(3):
        b.add_world(one)
    return b.finalize(requires_grad=True)


def spheres_on_a_ground():
    """Return worlds that share a shape."""
    one, b = scenes.Builder(0), scenes.Builder(0)
    one.default_shape_cfg.density = 0.0
    body = one.body("ball")
    one.add_articulation([one.add_joint_free(parent=-1, child=body)])
    one.add_shape_sphere(body, radius=0.1)
    for _ in range(3):
        b.add_world(one)
    b.add_ground_plane()
    return b.finalize(requires_grad=True)


@pytest.mark.parametrize("build", [lambda: several(3), equal_machines, spheres_on_a_ground])
def test_equal_worlds_share_their_terms(build, monkeypatch):
    """The dependence on arrays is the same as if it was computed for each world."""
    solver = DifferentiableMuJoCo(build())
    names, maps = solver.parameters, solver._maps
    assert model_parameters._are_alike(solver.model, maps, names)
    made = []
    for alike in (True, False):
        if not alike:
            monkeypatch.setattr(model_parameters, "_are_alike", lambda *_: False)
        solver._snapshot = None
        parameters = solver._current_snapshot().parameters
        raw = np.random.default_rng(0).normal(size=(3, len(parameters.core)))
        made.append((parameters.core, parameters.gradients(raw)))
    assert made[0][0] == made[1][0]
    for name, values in made[0][1].items():
        np.testing.assert_array_equal(values, made[1][1][name], err_msg=name)
    solver.model.joint_damping.assign(np.arange(solver.model.joint_dof_count, dtype=np.float32))
    monkeypatch.undo()
    assert not model_parameters._are_alike(solver.model, maps, names)
