"""A solver that stops early is reported once per model, and `converged` makes it converge."""

import copy
import warnings

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import SolverNotConvergedWarning, control, reference, sysid
from mujacobian import _notices as notices
from tests.scenes.cases import (
    CONSTRAINT_MODELS,
    CONTACT_MODELS,
    constrained_states,
    load,
    simulated_states,
)

STATE = mujoco.mjtState.mjSTATE_INTEGRATION
LANDED = 0.1  # s
# The step of `converged` is at the optimum up to the solver's own tolerance of 1e-15.
CONVERGED = 1e-6
# Settings of the robots of mujoco_playground.
FEW = {"iterations": 1, "ls_iterations": 5}
CAPPED_LIMIT = 2.5e-6  # of solver_error, after the last iteration


def quadruped(**options):
    model = load("contacts/quadruped")
    for name, value in options.items():
        setattr(model.opt, name, value)
    return model


def moving(model):
    """Return data of a robot that has landed, simulated with default settings."""
    default = quadruped()
    _, data = next(simulated_states(default, "contacts/quadruped", times=(LANDED,)))
    data.qacc_warmstart[:] = 0  # removes the warm start of a converged step
    return same_state(default, data, model)


def same_state(model, data, twin):
    """Return data of the copy of a model in the same state, after mj_forward."""
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    other = mujoco.MjData(twin)
    mujoco.mj_setState(twin, other, state, STATE)
    mujoco.mj_forward(twin, other)
    return other


def size(acceleration, smooth):
    """Return the scale of (SOL-3) in a model with the default gravity."""
    return max(abs(acceleration).max(), min(abs(smooth).max(), 981.0))


def rows(model, data):
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    return np.tile(state, (4, 1))


def differentiate_rollout(model, data, threads=1, **options):
    controls = np.zeros((3, 5, model.nu))
    trajectory = mujacobian.rollout(model, data, controls, threads=threads, **options)
    trajectory.gradient(np.ones_like(trajectory.states))


def push_forward(model, data):
    params = mujacobian.Parameters(model, ["body_mass"])
    mujacobian.rollout(model, data, np.zeros((5, model.nu)), params=params).jacobian()


def differentiate_torch(model, data):
    torch = pytest.importorskip("torch")
    import mujacobian.torch as bridge

    controls = torch.zeros(5, model.nu, dtype=torch.float64, requires_grad=True)
    states, _ = bridge.rollout(model, data, controls)
    states.sum().backward()


def differentiate_jax(model, data):
    jax = pytest.importorskip("jax")
    import mujacobian.jax as bridge

    state = np.concatenate([data.qpos, data.qvel, data.act])
    loss = lambda u: bridge.rollout(model, state, u)[0].sum()  # noqa: E731
    with jax.enable_x64(True):
        jax.block_until_ready(jax.grad(loss)(np.zeros((5, model.nu))))


def plan(threads):
    def use(model, data):
        cost = control.Cost(model, [control.Term("effort", control.controls(model))])
        control.ILQR(model, cost, 6, threads=threads).solve(data)

    return use


def logged(model, data):
    """Return the arguments of an identification from two logs."""
    state = np.concatenate([data.qpos, data.qvel, data.act])
    controls = np.zeros((5, model.nu))
    states = mujacobian.rollout(model, state, controls).states
    parameters = mujacobian.Parameters(model, [("body_mass", 1)])
    return {
        "parameters": parameters,
        "logs": [sysid.Log(state, controls, states=states)] * 2,
        "start": parameters.values * 1.1,
        "initial_states": "given",
    }


USES = {
    "linearize": lambda m, d: mujacobian.linearize(m, d),
    "transition": lambda m, d: mujacobian.transition(m, d, np.empty((2 * m.nv, 2 * m.nv))),
    "batch": lambda m, d: mujacobian.linearize_batch(m, rows(m, d), np.zeros((4, m.nu)), threads=1),
    "batch in threads": lambda m, d: mujacobian.linearize_batch(
        m, rows(m, d), np.zeros((4, m.nu)), threads=2
    ),
    "vjp": lambda m, d: mujacobian.vjp(m, d, np.ones(2 * m.nv)),
    "jvp": lambda m, d: mujacobian.jvp(m, d, np.ones(2 * m.nv)),
    "gradient": differentiate_rollout,
    "gradient in threads": lambda m, d: differentiate_rollout(m, d, threads=2),
    "gradient by workers": lambda m, d: differentiate_rollout(m, d, workers=map),
    "gradient of parameters": lambda m, d: differentiate_rollout(
        m, d, params=mujacobian.Parameters(m, ["body_mass"])
    ),
    "jacobian": push_forward,
    "torch": differentiate_torch,
    "jax": differentiate_jax,
    "planner": plan(1),
    "planner in threads": plan(2),
    "identification": lambda m, d: sysid.identify(**logged(m, d), threads=1),
    "identification in threads": lambda m, d: sysid.identify(**logged(m, d), threads=2),
    "identification by workers": lambda m, d: sysid.identify(**logged(m, d), workers=map),
}


def found_by(use, model, data):
    """Return the warnings of two calls."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        use(model, data)
        use(model, data)
    return [w for w in found if issubclass(w.category, SolverNotConvergedWarning)]


@pytest.mark.parametrize("use", USES)
def test_a_solver_that_stops_early_is_reported_once_per_model(use):
    model = quadruped(**FEW)
    data = moving(model)
    (first,) = found_by(USES[use], model, data)
    if use not in ("torch", "jax"):  # torch and jax call back from their own frames
        assert first.filename == __file__
    assert first.message.value > first.message.limit == CAPPED_LIMIT
    assert f"{first.message.value:.1e}" in str(first.message)
    assert "iterations (now 1)" in str(first.message)
    (other,) = found_by(USES[use], copy.copy(model), data)
    assert str(other.message) == str(first.message)


def test_the_limit_is_smaller_after_the_last_iteration():
    """An error that is small enough for a converged solver is reported if iterations ran out."""
    found = {}
    for iterations in (6, 100):
        model = quadruped(iterations=iterations)
        data = mujoco.MjData(model)
        data.qvel[:] = 0.3 * np.random.default_rng(0).standard_normal(model.nv)
        for _ in range(5):
            mujoco.mj_step(model, data)
        found[iterations] = mujacobian.diagnose(model, data)
        warned = bool(found_by(mujacobian.linearize, model, data))
        assert warned == (iterations == 6)
    assert found[6].solver_limit == CAPPED_LIMIT < found[6].solver_error < found[100].solver_limit
    assert found[6].solver.startswith("not converged")


def test_a_warning_from_inside_an_optimizer_is_at_the_line_of_the_user(monkeypatch):
    model = quadruped(**FEW)
    arguments = logged(model, moving(model))
    calls = []

    def show(found, original=notices.show):
        calls.append(found)
        if len(calls) > 1:  # the optimizer of scipy has started
            original(found)

    monkeypatch.setattr(notices, "show", show)
    user = compile("identify(**arguments)", "user.py", "exec")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        exec(user, {"identify": sysid.identify, "arguments": arguments})
    assert len(calls) > 1
    (first,) = (w for w in found if issubclass(w.category, SolverNotConvergedWarning))
    assert first.filename == "user.py"


@pytest.mark.parametrize("use", USES)
def test_default_settings_are_not_reported(use):
    model = quadruped()
    assert found_by(USES[use], model, moving(model)) == []


def test_the_distance_is_that_of_the_accelerations():
    model = quadruped(**FEW, integrator=mujoco.mjtIntegrator.mjINT_EULER)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP  # the step integrates qacc
    data = moving(model)
    found = mujacobian.diagnose(model, data)
    tight = mujacobian.converged(model)
    other = same_state(model, data, tight)
    expected = abs(data.qacc - other.qacc).max() / size(data.qacc, data.qacc_smooth)
    assert found.solver_error == pytest.approx(expected, rel=1e-6)
    assert found.solver.startswith("not converged: the acceleration of mj_step is ")
    assert mujacobian.diagnose(tight, other).solver.startswith("converged: ")


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast"])
def test_the_distance_is_also_that_of_the_velocities(integrator):
    """Damping is integrated with the force, which shows an error that stiff rows hide in qacc."""
    model = quadruped(integrator=getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}"))
    model.dof_damping[6:] = 0.5
    model.geom_solref[:] = (0.005, 1.0)
    data = moving(model)
    rough = copy.copy(model)
    rough.opt.iterations = 2
    found = mujacobian.diagnose(rough, data)
    ends = []
    for each in (rough, mujacobian.converged(model)):
        after = same_state(model, data, each)
        ends.append((after.qacc.copy(), after.qacc_smooth.copy()))
        mujoco.mj_step(each, after)
        ends[-1] += (after.qvel.copy(),)
    (qacc, smooth, velocity), (best_qacc, _, best_velocity) = ends
    integrated = (velocity - data.qvel) / model.opt.timestep
    distance = abs(velocity - best_velocity).max() / model.opt.timestep
    of_velocity = distance / size(integrated, smooth)
    of_qacc = abs(qacc - best_qacc).max() / size(qacc, smooth)
    assert of_velocity > 2 * of_qacc
    assert found.solver_error == pytest.approx(of_velocity, rel=1e-6)


PRESSED = """
<mujoco>
  <option iterations="{iterations}"/>
  <worldbody>
    <geom type="plane" size="3 3 1"/>
    <body pos="0 0 .17">
      <freejoint/>
      <geom type="box" size=".1 .08 .03"/>
      <geom type="capsule" size=".02" fromto=".1 .08 0 .12 .08 -.15"/>
      <geom type="capsule" size=".02" fromto="-.1 .02 0 -.1 .02 -.15"/>
      <geom type="capsule" size=".02" fromto=".05 -.08 0 .05 -.08 -.15"/>
      <body pos="0 0 .05">
        <joint name="light" axis="0 0 1" range="-10 10"/>
        <geom size=".02" mass=".001" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="light" gear=".1"/></actuator>
</mujoco>
"""


@pytest.mark.parametrize(("iterations", "warns"), [(2, True), (100, False)])
def test_a_motor_against_a_stop_does_not_hide_an_error(iterations, warns):
    """Without its stop, the light link would accelerate 1e5 times as fast as the others."""
    model = mujoco.MjModel.from_xml_string(PRESSED.format(iterations=iterations))
    data = mujoco.MjData(mujacobian.converged(model))
    data.ctrl[:] = 1
    mujoco.mj_step(mujacobian.converged(model), data, nstep=60)
    data.qvel[:6] += 0.1 * np.random.default_rng(0).standard_normal(6)
    mujoco.mj_forward(model, data)
    assert abs(data.qacc_smooth).max() > 1e5
    best = same_state(model, data, mujacobian.converged(model))
    assert (abs(data.qacc - best.qacc)[:3].max() > 0.5) == warns
    assert bool(found_by(USES["linearize"], model, data)) == warns


def test_without_a_warning_the_slopes_of_the_step_agree():
    """The error of a Newton iterate is quadratic, and that of its derivative linear."""
    hidden = 0
    for iterations in range(1, 9):
        model = quadruped(iterations=iterations)
        _, data = next(simulated_states(model, "contacts/quadruped", times=(0,)))
        data.qacc_warmstart[:] = 0
        lin, nv = mujacobian.linearize(model, data, sensors=False), model.nv
        direction = np.zeros(3 * nv + model.na + model.nu)
        direction[nv : 2 * nv] = np.random.default_rng(0).uniform(-1, 1, nv)
        step, h = reference.Step(model, data), 1e-6
        own = (step(h * direction) - step(-h * direction))[nv : 2 * nv] / (2 * h)
        given = (lin.A @ direction[: len(lin.A)])[nv : 2 * nv]
        error = abs(own - given).max() / abs(given).max()
        found = mujacobian.diagnose(model, data)
        assert error < 1e-2 or found.solver_error > found.solver_limit
        hidden += error > 1e-2 and found.solver_error < 1e-3
    assert hidden, "the errors of all iterates are large"


EGGS = """
<mujoco>
  <option cone="elliptic" impratio="10"/>
  <worldbody>
    <geom type="box" size="1 1 .1" pos="0 0 -.1"/>
    <body pos="0 0 .09"><freejoint/><geom type="ellipsoid" size=".1 .2 .1" mass="1"/></body>
    <body pos=".15 .1 .09"><freejoint/><geom type="ellipsoid" size=".1 .12 .1" mass="3"/></body>
    <body pos=".1 0 .28"><freejoint/><geom type="ellipsoid" size=".15 .12 .1" mass="10"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_the_error_of_the_solver_is_not_that_of_the_collider(iterations):
    """Contacts of ellipsoids are computed again, and then the solver stops as early as before."""
    model = mujoco.MjModel.from_xml_string(EGGS)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=30)
    data.qvel[:] += np.linspace(-2, 2, model.nv)
    data.qacc_warmstart[:] = 0
    rough = copy.copy(model)
    rough.opt.iterations = iterations
    with pytest.warns(SolverNotConvergedWarning):
        mujacobian.linearize(rough, data)
    found = mujacobian.diagnose(rough, data)

    model.opt.tolerance = 0
    stopped, best = (same_state(model, data, each) for each in (rough, model))
    scale = size(stopped.qacc, stopped.qacc_smooth)
    error = abs(stopped.qacc - best.qacc).max() / scale
    assert error > 0.01
    assert found.solver_error == pytest.approx(error, rel=0.02)
    assert found.collider_error < 0.01


def test_a_warning_may_be_an_error():
    model = quadruped(**FEW)
    data = moving(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SolverNotConvergedWarning):
            mujacobian.linearize(model, data)


@pytest.mark.parametrize("name", [f"contacts/{n}" for n in CONTACT_MODELS] + [
    f"constraints/{n}" for n in CONSTRAINT_MODELS
])  # fmt: skip
def test_bundled_models_converge_with_their_own_settings(name):
    model = load(name)
    states = simulated_states if name.startswith("contacts") else constrained_states
    for label, data in states(model, name):
        found = mujacobian.diagnose(model, data)
        assert found.solver_error <= found.solver_limit, f"{label}: {found.solver}"


@pytest.mark.parametrize("name", CONTACT_MODELS)
def test_converged_models_step_to_the_optimum(name):
    model = load(f"contacts/{name}")
    model.opt.solver = mujoco.mjtSolver.mjSOL_CG
    for option, value in FEW.items():
        setattr(model.opt, option, value)
    before = copy.copy(model.opt)
    tight = mujacobian.converged(model)
    assert model.opt.iterations == before.iterations == FEW["iterations"]
    assert model.opt.solver == before.solver
    for label, data in simulated_states(tight, f"contacts/{name}"):
        assert mujacobian.diagnose(tight, data).solver_error <= CONVERGED, label
