"""Misuse raises an error that names the argument; nothing crashes or is silently wrong."""

import ast
import builtins
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import MujacobianError, control, rods, sysid
from tests.scenes.cases import load, snapshot
from tests.scenes.control_models import quadratic_cost, slides

SOURCES = Path(mujacobian.__file__).parent
PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS
PROMPT = 0.5  # part of the duration of a computation in which an interrupt must end it

CONTACT = """
<mujoco>
  <worldbody><body><joint/><geom size=".1"/></body></worldbody>
  <sensor><contact {}/></sensor>
</mujoco>
"""
SLIDES = """
<mujoco>
  <worldbody>
    <body>
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="y" type="slide" axis="0 1 0"/>
      <joint name="both" type="slide" axis="1 1 0" {}/>
      <geom size=".1"/>
    </body>
  </worldbody>
</mujoco>
"""


def raised_names(path: Path) -> list[str]:
    """Return the classes that a module uses in `raise` statements."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and node.exc is not None:
            called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            names.append(ast.unparse(called))
    return names


def test_no_source_raises_a_builtin_exception():
    files = sorted(SOURCES.rglob("*.py"))
    assert len(files) > 50
    total = 0
    for path in files:
        for name in raised_names(path):
            total += 1
            kind = getattr(builtins, name, None)
            foreign = isinstance(kind, type) and issubclass(kind, BaseException)
            if path.name == "__init__.py" and kind is AttributeError:
                continue  # the language asks for it where a module has no such name
            assert not foreign, f"{path.name} raises {name}"
    assert total > 150


def test_every_error_class_is_one_of_ours():
    for name, kind in vars(mujacobian.errors).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            ours = issubclass(kind, MujacobianError | UserWarning)
            assert ours, name


def arm():
    model = load("everything")
    return model, mujoco.MjData(model)


def full(model, data, n=1):
    state = np.empty(mujoco.mj_stateSize(model, PHYSICS))
    mujoco.mj_getState(model, data, state, PHYSICS)
    return np.tile(state, (n, 1))


def batch(model, data, **options):
    given = {"states": full(model, data), "controls": np.zeros((1, model.nu))} | options
    return mujacobian.linearize_batch(model, **given)


def rollout(model, data, **options):
    given = {"state": data, "controls": np.zeros((2, model.nu))} | options
    return mujacobian.rollout(model, **given)


BAD = {
    "states must be an array of numbers": lambda m, d: batch(m, d, states=full(m, d) + 1j),
    "controls must be an array of numbers": lambda m, d: batch(m, d, controls=[["x"] * m.nu]),
    "threads must be at most": lambda m, d: batch(m, d, threads=2**40),
    "threads must be an integer": lambda m, d: batch(m, d, threads=True),
    "threads must be at most 1024": lambda m, d: rollout(m, d, threads=2**40),
    "checkpoint must be at most": lambda m, d: rollout(m, d, checkpoint=2**31),
    "checkpoint must be an integer": lambda m, d: rollout(m, d, checkpoint=2.5),
    "d_next must be an array": lambda m, d: mujacobian.vjp(m, d, np.ones(2 * m.nv + m.na) * 1j),
    "data must be a mujoco.MjData, got NoneType": lambda m, d: mujacobian.linearize(m, None),
    "data must be a mujoco.MjData, got .*MjModel": lambda m, d: mujacobian.transition(m, m),
    "model must be a mujoco.MjModel, got NoneType": lambda m, d: mujacobian.transition(None, d),
    "model must be a mujoco.MjModel, got str": lambda m, d: mujacobian.converged("x"),
    r"pairs \(field, element or elements\), got None": lambda m, d: mujacobian.Parameters(
        m, [None]
    ),
    "items must be a list of fields, got None": lambda m, d: mujacobian.Parameters(m, None),
    "body_mass: elements must be names or indices, got 1.5": lambda m, d: mujacobian.Parameters(
        m, [("body_mass", 1.5)]
    ),
    "got None": lambda m, d: mujacobian.Parameters(m, [("body_mass", [0, None])]),
    "values must be an array of numbers": lambda m, d: mujacobian.Parameters(m, ["gravity"]).apply(
        ["a", "b", "c"]
    ),
    "values must be an array of numbers: its el": lambda m, d: mujacobian.Parameters(
        m, ["gravity"]
    ).jacobian([1j, 0, 0], m),
    r"values must have shape \(3,\), got \(2,\)": lambda m, d: mujacobian.Parameters(
        m, ["gravity"]
    ).apply([0, 0]),
}


@pytest.mark.parametrize("message", BAD)
def test_arguments_are_named(message):
    model, data = arm()
    with pytest.raises(MujacobianError, match=message) as raised:
        BAD[message](model, data)
    assert isinstance(raised.value, ValueError | TypeError)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("option", ["timestep", "gravity", "density", "viscosity", "wind"])
def test_options_must_be_finite(option, value):
    model, data = arm()
    number = getattr(model.opt, option)
    setattr(model.opt, option, value if np.isscalar(number) else [0, value, 0])
    with pytest.raises(MujacobianError, match=rf"model\.opt\.{option} must be finite"):
        mujacobian.linearize(model, data)


def test_huge_numbers_are_short():
    model, data = arm()
    data.qvel[1] = 1e300
    with pytest.raises(MujacobianError, match=r"qvel\[1\] is 1e\+300: "):
        mujacobian.linearize(model, data)


def test_a_quaternion_of_length_zero_is_refused_by_rollouts():
    model = load("free_body")
    data = mujoco.MjData(model)
    data.qpos[3:7] = 0
    with pytest.raises(MujacobianError, match="quaternion"):
        mujacobian.rollout(model, data, np.zeros((2, model.nu)))


def test_a_singular_mass_matrix_is_refused():
    model = mujoco.MjModel.from_xml_string(SLIDES.format(""))
    data = mujoco.MjData(model)
    for use in (
        lambda: mujacobian.linearize(model, data),
        lambda: mujacobian.vjp(model, data, np.ones(2 * model.nv)),
        lambda: mujacobian.jvp(model, data, np.ones(2 * model.nv)),
    ):
        with pytest.raises(MujacobianError, match="the mass matrix is singular: joint"):
            use()
    model = mujoco.MjModel.from_xml_string(SLIDES.format('armature="1e-3"'))
    data = mujoco.MjData(model)
    lin = mujacobian.linearize(model, data)
    x = np.arange(1.0, 7.0)
    assert mujacobian.vjp(model, data, x).state == pytest.approx(x @ lin.A, rel=1e-9)


@pytest.mark.parametrize(
    "use",
    [
        lambda m, d: mujacobian.linearize(m, d),
        lambda m, d: mujacobian.transition(m, d),
        lambda m, d: mujacobian.inverse(m, d),
        lambda m, d: mujacobian.diagnose(m, d),
        lambda m, d: mujacobian.vjp(m, d, np.ones(2 * m.nv)),
        lambda m, d: mujacobian.jvp(m, d, np.ones(2 * m.nv)),
        lambda m, d: mujacobian.rollout(m, d, np.zeros((1, m.nu))),
    ],
    ids=["linearize", "transition", "inverse", "diagnose", "vjp", "jvp", "rollout"],
)
def test_data_with_other_sizes_are_refused_though_the_signature_is_the_same(use):
    small, large = (
        mujoco.MjModel.from_xml_string(CONTACT.format(text))
        for text in ('num="1"', 'num="5000" data="found force torque dist pos normal tangent"')
    )
    assert small.signature == large.signature
    with pytest.raises(ValueError, match="with nsensordata 1, the given one has 85000") as raised:
        use(large, mujoco.MjData(small))
    assert isinstance(raised.value, MujacobianError)


def test_data_of_a_copy_of_the_model_are_welcome():
    model, _ = arm()
    twin = mujacobian.converged(model)
    lin = mujacobian.linearize(model, mujoco.MjData(twin))
    assert (lin.A == mujacobian.linearize(model, mujoco.MjData(model)).A).all()


def test_one_data_in_two_threads_raises():
    model, data = arm()
    before = snapshot(model, data)
    done, errors = [], []

    def work():
        for _ in range(200):
            try:
                mujacobian.linearize(model, data)
                done.append(1)
            except MujacobianError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) + len(errors) == 800
    assert done
    assert set(errors) <= {"data is in use by another thread: give each thread its own"}
    assert snapshot(model, data) == before
    assert data.pstack == 0
    mujacobian.linearize(model, data)  # no other call uses the data now


def test_the_exception_of_a_callback_is_kept():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody>"
        "<sensor><user dim='1'/></sensor></mujoco>"
    )
    data = mujoco.MjData(model)
    reason = ZeroDivisionError("in a sensor")

    def sense(*_):
        raise reason

    mujoco.set_mjcb_sensor(sense)
    try:
        with pytest.raises(MujacobianError, match="Python exception raised") as raised:
            mujacobian.linearize(model, data, sensors=False)
    finally:
        mujoco.set_mjcb_sensor(None)
    assert raised.value.__cause__ is reason
    mujacobian.linearize(model, data, sensors=False)


def test_diagnose_refuses_the_same_features():
    model, data = arm()
    mujoco.set_mjcb_passive(lambda *_: None)
    try:
        with pytest.raises(mujacobian.UnsupportedFeatureError, match="mjcb_passive"):
            mujacobian.diagnose(model, data)
    finally:
        mujoco.set_mjcb_passive(None)
    model.opt.enableflags |= 64
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="flag ipc"):
        mujacobian.diagnose(model, data)


def long_batch():
    model, data = arm()
    n = 30000
    return lambda: mujacobian.linearize_batch(
        model, full(model, data, n), np.zeros((n, model.nu)), sensors=False
    )


def long_hessians():
    model = slides()
    n = 100000
    states, d_states = full(model, mujoco.MjData(model), n), np.ones((n, 2 * model.nv))
    return lambda: mujacobian.hessian_batch(model, states, np.zeros((n, model.nu)), d_states)


def long_rollout(lead):
    model, data = arm()
    return lambda: mujacobian.rollout(model, data, np.zeros((*lead, 100000, model.nu)))


def long_gradient():
    model = slides()
    data = mujoco.MjData(model)
    trajectory = mujacobian.rollout(model, data, np.zeros((100000, model.nu)))
    return lambda: trajectory.gradient(np.ones_like(trajectory.states))


def long_product():
    model = slides()
    data = mujoco.MjData(model)
    trajectory = mujacobian.rollout(model, data, np.zeros((50000, model.nu)))
    along = np.ones(trajectory.states.shape[-1]), None
    return lambda: trajectory.hvp(along, np.ones_like(trajectory.states))


def long_plan():
    model = slides()
    planner = control.ILQR(model, quadratic_cost(model), 10000)
    return lambda: planner.solve(np.zeros(model.nq + model.nv))


def long_identification(logs):
    model = slides()
    data = mujoco.MjData(model)
    controls = np.ones((60000, model.nu))
    states = mujacobian.rollout(model, data, controls).states
    parameters = mujacobian.Parameters(model, ["dof_damping"])
    log = sysid.Log(data, controls, states=states)
    return lambda: sysid.identify(parameters, [log] * logs)


def long_rods():
    bodies = [rods.RigidBody(mass=1, inertia=[1, 1, 1]) for _ in range(20)]
    world = rods.World(timestep=1e-3, gravity=(0, 0, -9.81), bodies=bodies)
    return lambda: rods.rollout(world, steps=100000)


LONG = {
    "batch": long_batch,
    "rollout": lambda: long_rollout(()),
    "rollouts": lambda: long_rollout((4,)),
    "hessians": long_hessians,
    "gradient": long_gradient,
    "Hessian-vector product": long_product,
    "plan": long_plan,
    "rods": long_rods,
    "identification": lambda: long_identification(1),
    "identification in threads": lambda: long_identification(4),
}


@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_is_answered_at_once(name):
    """The test runs in a separate process, because a worker of pytest is not a main thread."""
    code = f"from tests import test_misuse; test_misuse.interrupt({name!r})"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < PROMPT


def interrupt(name: str) -> None:
    """Print the time between SIGINT and the end of a long computation, relative to its duration."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    work = LONG[name]()
    start = time.perf_counter()
    work()
    duration = time.perf_counter() - start
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.1 * duration, send)
    timer.start()
    try:
        work()
    except KeyboardInterrupt:
        print((time.perf_counter() - sent[0]) / duration)
        model, data = arm()
        mujacobian.linearize(model, data)  # everything still works
        return
    timer.cancel()
    sys.exit("it finished")
