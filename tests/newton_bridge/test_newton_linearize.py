"""A and B in Newton's coordinates against differences of Newton's step in double precision."""

import mujoco
import newton
import numpy as np
import pytest
import scenes
from oracle import Oracle, differences

from mujacobian.newton import DifferentiableMuJoCo

DT = 0.005
TOLERANCE = 1e-7


def numbers(array):
    return array.numpy().astype(float)


def worst(found, wanted):
    scale = max(1.0, np.abs(wanted).max(initial=0))
    return np.abs(found - wanted).max(initial=0) / scale


def compare(solver, state, control, coords="tangent", h=1e-3):
    """Return the errors of A and of the blocks of B, relative to the largest entry."""
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


MODES = newton.JointTargetMode
SCENES = {
    "tree": scenes.tree,
    "ball position": lambda: scenes.ball_targets(MODES.POSITION),
    "ball velocity": lambda: scenes.ball_targets(MODES.VELOCITY),
    "ball both": lambda: scenes.ball_targets(MODES.POSITION_VELOCITY),
    "ball none": lambda: scenes.ball_targets(MODES.NONE),
    "limits far": lambda: scenes.limits(-3.0, 3.0),
    "limits active": lambda: scenes.limits(0.6, 1.0),
    "friction": lambda: scenes.limits(-3.0, 3.0, friction=0.3, damping=0.2),
    "saturated": lambda: scenes.limits(
        -3.0, 3.0, actuator_mode=MODES.POSITION, target_ke=50.0, effort_limit=0.5
    ),
    "machine": scenes.machine,
    **{name: lambda x=xml: scenes.machine(x) for name, xml in scenes.EQUALITIES.items()},
    "loop revolute": lambda: scenes.loop("revolute"),
    "loop ball": lambda: scenes.loop("ball"),
    "loop fixed": lambda: scenes.loop("fixed"),
    "mimic": scenes.mimic,
    "roots": scenes.roots,
    "locked root": scenes.locked_root,
    "out of order": scenes.out_of_order,
}


@pytest.mark.parametrize("name", SCENES)
def test_tangent(name):
    model = SCENES[name]()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    state, control = scenes.random_state(model)
    if solver.mj_model.na:
        solver.mj_data.act[:] = [0.3, -0.2]
    errors = compare(solver, state, control)
    print(name, solver.mj_model.nv, solver.mj_data.nefc, errors)
    assert max(errors.values()) < TOLERANCE


def test_loop_that_newton_leaves_out():
    model = scenes.loop("prismatic")
    with pytest.warns(UserWarning, match="Skipping loop closure"):
        solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    assert solver.mj_model.neq == 0
    errors = compare(solver, *scenes.random_state(model))
    print(errors)
    assert max(errors.values()) < TOLERANCE


@pytest.mark.parametrize("name", ["tree", "ball both", "roots"])
def test_ambient(name):
    model = SCENES[name]()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    errors = compare(solver, *scenes.random_state(model), "ambient")
    assert max(errors.values()) < TOLERANCE


@pytest.mark.parametrize("kind", scenes.TRANSMISSIONS)
def test_transmission(kind):
    model = scenes.driven(kind)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    trn = getattr(mujoco.mjtTrn, f"mjTRN_{kind.upper()}")
    assert int(trn) in solver.mj_model.actuator_trntype.tolist()
    state, control = scenes.random_state(model)
    errors = compare(solver, state, control)
    print(kind, errors)
    assert solver.linearize(state, control, DT).block("ctrl")[:, -1].any()
    assert max(errors.values()) < TOLERANCE


SHAPES = ("sphere", "capsule", "cylinder", "box", "ellipsoid", "cone", "mesh")


@pytest.mark.parametrize(
    ("kind", "ground"),
    [*((kind, "plane") for kind in SHAPES), ("box", "box"), ("mesh", "box"), ("sphere", "field")],
)
def test_contact(kind, ground):
    model = scenes.resting(kind, ground)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    state, control = scenes.touching(model, solver)
    errors = compare(solver, state, control, h=1e-6)
    print(kind, ground, errors)
    assert max(errors.values()) < TOLERANCE


@pytest.mark.parametrize("kind", ["cylinder", "ellipsoid"])
def test_curved_shapes(kind):
    """MuJoCo's collider stops within its tolerance, and nothing else differs."""
    model = scenes.resting(kind, "box")
    found = []
    for tolerance in (1e-12, 1e-14):
        solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, ccd_tolerance=tolerance)
        found.append(max(compare(solver, *scenes.touching(model, solver), h=1e-4).values()))
    print(kind, found)
    assert found[1] < min(found[0], TOLERANCE)


def test_gap():
    """Near shapes have contacts, and those that do not touch have no force."""
    model = scenes.resting("sphere")
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    assert (solver.mj_model.geom_gap > 0.03).all()
    state, control = scenes.touching(model, solver, depth=-0.03)
    solver.step(state, model.state(), control, None, DT)
    assert solver.mj_data.ncon == 1
    assert solver.mj_data.nefc == 0
    errors = compare(solver, state, control, h=1e-6)
    print(errors)
    assert max(errors.values()) < TOLERANCE


def test_targets_by_dof(monkeypatch):
    """Targets have the layout of Newton before 1.5."""
    monkeypatch.setattr(newton, "use_coord_layout_targets", False)
    model = scenes.machine()
    assert not model.use_coord_layout_targets
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True)
    state, control = scenes.random_state(model)
    errors = compare(solver, state, control)
    print(errors)
    assert solver.linearize(state, control, DT).block("joint_target_q").any()
    assert max(errors.values()) < TOLERANCE


SIX_DIMENSIONAL = {
    "rough": lambda: scenes.rough(scenes.resting("box")),
    "pair": scenes.pair,
    "sticky pair": lambda: scenes.pair(scenes.ADHESION),
}


@pytest.mark.parametrize("name", SIX_DIMENSIONAL)
def test_six_dimensional_contact(name):
    """The contact has torsional and rolling friction, from shapes or a pair, also with adhesion."""
    model = SIX_DIMENSIONAL[name]()
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, cone="elliptic")
    assert solver.mj_model.npair == ("pair" in name)
    state, control = scenes.touching(model, solver)
    errors = compare(solver, state, control, h=1e-6)
    print(name, errors)
    solver.step(state, model.state(), control, None, DT)
    assert (solver.mj_data.contact.dim == 6).all()
    if solver.mj_model.nu:
        assert solver.linearize(state, control, DT).block("ctrl").any()
    assert max(errors.values()) < TOLERANCE


@pytest.mark.parametrize(
    ("options", "ground"),
    [
        ({"solver": "cg"}, "plane"),
        ({"jacobian": "sparse"}, "plane"),
        ({"jacobian": "dense"}, "plane"),
        ({"enable_multiccd": True}, "box"),
    ],
)
def test_solver_options(options, ground):
    model = scenes.resting("box", ground)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, **options)
    state, control = scenes.touching(model, solver)
    errors = compare(solver, state, control, h=1e-6)
    print(options, errors)
    assert max(errors.values()) < TOLERANCE


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("integrator", ["euler", "rk4", "implicit", "implicitfast"])
def test_options(integrator, cone):
    model = scenes.resting("box")
    solver = DifferentiableMuJoCo(
        model, use_mujoco_cpu=True, integrator=integrator, cone=cone, impratio=2.0
    )
    state, control = scenes.touching(model, solver)
    errors = compare(solver, state, control, h=1e-6)
    print(integrator, cone, errors)
    assert max(errors.values()) < TOLERANCE
