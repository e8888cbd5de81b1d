"""fallback="fd": differences replace exactly what has no exact derivative, counted and reported."""

import copy
import re
import subprocess
import sys
import threading

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import _fallback, control, reference

# the reference differentiates with the same steps, but stops at a smaller error
TOLERANCE = 1e-6
HAND_STEP, HAND_TOLERANCE = (
    1e-6,
    1e-5,
)  # plain differences have an error of HAND_STEP f'', and noise
STATE = mujoco.mjtState.mjSTATE_INTEGRATION

# a ball on a ring, which is a signed distance field of a plugin
RING = """
<mujoco>
  <extension><plugin plugin="mujoco.sdf.torus"><instance name="torus">
    <config key="radius1" value=".35"/><config key="radius2" value=".15"/></instance></plugin>
  </extension>
  <asset><mesh name="torus"><plugin instance="torus"/></mesh></asset>
  <option timestep=".005" sdf_iterations="10" sdf_initpoints="4"/>
  <worldbody>
    <geom name="ring" type="sdf" mesh="torus"><plugin instance="torus"/></geom>
    <body name="ball" pos=".36 .03 .245">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
      <geom name="ball" size=".1" mass=".5"/>
    </body>
  </worldbody>
  <actuator><motor joint="x"/><motor joint="z"/></actuator>
  <sensor><framepos name="ball" objtype="body" objname="ball"/></sensor>
</mujoco>"""

SPHERES = """
<mujoco>
  <worldbody>
    <body name="a"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
      <geom name="a" size=".1"/></body>
    <body name="b"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
      <geom name="b" size=".1"/></body>
  </worldbody>
  <actuator><motor joint="{joint}"/></actuator>
</mujoco>""".replace('<body name="a"><joint', '<body name="a"><joint name="x"').format(joint="x")

# a sensor without a derivative beside one with it
SENSED = """
<mujoco>
  <worldbody>
    <body name="arm"><joint name="hip" axis="0 1 0"/><geom size=".1" pos="0 0 -1"/>
      <site name="tip" pos="0 .1 -1"/></body>
  </worldbody>
  <actuator><motor joint="hip"/></actuator>
  <sensor><framepos name="tip" objtype="site" objname="tip"/>
    <user name="mine" dim="2" datatype="real" needstage="vel"/></sensor>
</mujoco>"""


def scene(xml, qpos=None, qvel=None):
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    if qpos is not None:
        data.qpos[:] = qpos
    data.qvel[:] = 0.1 if qvel is None else qvel
    return model, data


def snapshot(model, data):
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    return state.tobytes()


def truth(model, data):
    """Return the reference on a converged copy, and where it is trusted."""
    other = reference.converge(copy.copy(model))
    same = mujoco.MjData(other)
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    mujoco.mj_setState(other, same, state, STATE)
    found = reference.jacobian(other, same, constrained=True)
    return found, np.isfinite(found.err)


def by_hand(model, data):
    """Return plain central differences of the velocities of a converged step.

    All joints are slides. The columns are positions and velocities.
    """
    other = mujacobian.converged(model)
    one, columns = mujoco.MjData(other), []
    for field in ("qpos", "qvel"):
        for k in range(model.nv):
            sides = []
            for h in (HAND_STEP, -HAND_STEP):
                mujoco.mj_resetData(other, one)
                one.qpos[:], one.qvel[:], one.ctrl[:] = data.qpos, data.qvel, data.ctrl
                getattr(one, field)[k] += h
                mujoco.mj_step(other, one)
                sides.append(one.qvel.copy())
            columns.append((sides[0] - sides[1]) / (2 * HAND_STEP))
    return np.array(columns).T


def stacked(lin):
    return np.block([[lin.A, lin.B], [lin.C, lin.D]])


def user_sensor(model, data, stage):
    """Set the values of a user sensor with known derivatives."""
    if stage == mujoco.mjtStage.mjSTAGE_VEL:
        data.sensordata[3:] = data.qpos[0] ** 2, np.sin(data.qpos[0]) * data.qvel[0]


@pytest.fixture
def sensed():
    """Return a model and a state with a user sensor, whose callback is installed."""
    made = scene(SENSED, [0.4], [0.3])
    mujoco.set_mjcb_sensor(user_sensor)
    yield made
    mujoco.set_mjcb_sensor(None)


@pytest.mark.parametrize(
    ("xml", "qpos", "names"),
    [(RING, None, ("ring", "ball")), (SPHERES, None, ("a", "b"))],
    ids=["sdf", "coincident spheres"],
)
def test_a_step_without_derivative_is_differenced(xml, qpos, names):
    model, data = scene(xml, qpos)
    with pytest.raises(mujacobian.UnsupportedFeatureError) as raised:
        mujacobian.linearize(model, data)
    before, count = snapshot(model, data), mujacobian.fd_count()
    lin = mujacobian.linearize(model, data, fallback="fd")
    assert mujacobian.fd_count() > count
    assert snapshot(model, data) == before
    (report,) = lin.differenced
    assert report.element == raised.value.element
    assert report.reason == raised.value.reason
    assert all(f'"{name}"' in report.element for name in names)
    found, known = truth(model, data)
    assert known.any()
    error = abs(stacked(lin) - found.J)[known] / max(1.0, abs(found.J[known]).max())
    print(f"error {error.max():.1e}, trusted {known.mean():.0%}, {report}")
    assert error.max() < TOLERANCE
    assert report.error < TOLERANCE
    n = model.nv
    smooth = known[n : 2 * n, : 2 * n]
    apart = abs(by_hand(model, data) - lin.A[n:])[smooth] / max(1.0, abs(lin.A).max())
    print(f"by hand {apart.max():.1e}")
    assert apart.max() < HAND_TOLERANCE
    assert np.isfinite(stacked(lin)).all()
    assert lin.A.any()
    assert report.entries == stacked(lin).size
    again = mujacobian.linearize(model, data, fallback="fd")
    assert (stacked(again) == stacked(lin)).all()
    assert again.differenced == lin.differenced


def test_differences_on_a_jump_are_reported_as_untrusted():
    model, data = scene(SPHERES)
    (report,) = mujacobian.linearize(model, data, fallback="fd").differenced
    assert not report.is_trusted
    assert 0 < report.untrusted < report.entries
    assert "not trusted" in str(report)
    model, data = scene(RING)
    data.qpos[1] = 0.003
    (report,) = mujacobian.linearize(model, data, fallback="fd").differenced
    assert report.untrusted < report.entries


def test_exact_states_are_not_differenced():
    model, data = scene(RING)
    data.qpos[1] = 0.1  # the ball does not touch the ring
    count = mujacobian.fd_count()
    plain, lin = (mujacobian.linearize(model, data, fallback=way) for way in (None, "fd"))
    assert lin.differenced == plain.differenced == ()
    assert (stacked(lin) == stacked(plain)).all()
    assert mujacobian.fd_count() == count


def test_only_the_rows_of_a_sensor_are_differenced(sensed):
    model, data = sensed
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="mine"):
        mujacobian.linearize(model, data)
    exact = mujacobian.linearize(model, data, sensors=False, forces=True)
    lin = mujacobian.linearize(model, data, forces=True, fallback="fd")
    assert (lin.A == exact.A).all()
    assert (lin.B == exact.B).all()
    assert (lin.Bf == exact.Bf).all()
    (report,) = lin.differenced
    assert report.element == 'sensor "mine"'
    assert report.entries == 2 * (2 + 1 + 1)
    assert report.is_trusted
    q, v = 0.4, 0.3
    np.testing.assert_allclose(lin.C[3:], [[2 * q, 0], [np.cos(q) * v, np.sin(q)]], atol=1e-9)
    np.testing.assert_allclose(lin.D[3:], 0, atol=1e-12)
    # the rows of the other sensor are those of a model without the user sensor
    plain = re.sub("<user.*/>", "", SENSED)
    other, same = scene(plain, [0.4], [0.3])
    assert (lin.C[:3] == mujacobian.linearize(other, same).C).all()


def test_transition_returns_the_report(sensed):
    model, data = sensed
    A, C = np.empty((2, 2)), np.empty((5, 2))
    assert mujacobian.transition(model, data, A) is None
    (report,) = mujacobian.transition(model, data, A, C=C, fallback="fd")
    assert "mine" in report.element
    lin = mujacobian.linearize(model, data, fallback="fd")
    assert (A == lin.A).all()
    assert (C == lin.C).all()
    with pytest.raises(ValueError, match=r"C must be .* of shape"):
        mujacobian.transition(model, data, A, C=np.empty((4, 2)), fallback="fd")


def test_other_values_raise_and_name_the_valid_ones():
    model, data = scene(RING)
    cost = control.Cost(model, [control.Term("u", control.controls(model))])
    calls = [
        lambda way: mujacobian.linearize(model, data, fallback=way),
        lambda way: mujacobian.transition(model, data, fallback=way),
        lambda way: mujacobian.linearize_batch(
            model, np.zeros((1, 5)), np.zeros((1, 2)), fallback=way
        ),
        lambda way: mujacobian.rollout(model, data, np.zeros((1, 2)), fallback=way),
        lambda way: control.ILQR(model, cost, 5, fallback=way),
        lambda way: control.MPC(model, control.ILQR(model, cost, 5), fallback=way),
    ]
    for call in calls:
        for way in ("central", True, 1e-6):
            with pytest.raises(ValueError, match='None or "fd"'):
                call(way)
    with pytest.raises(ValueError, match="analytic"):
        control.ILQR(model, cost, 5, derivatives="fd", fallback="fd")


@pytest.mark.parametrize("value", [np.nan, 1e300])
def test_states_that_cannot_be_stepped_raise(value):
    model, data = scene(SENSED.replace("<mujoco>", '<mujoco><option integrator="discrete"/>'))
    model.opt.noslip_iterations = 2  # unsupported in every state
    data.qpos[0] = value
    with pytest.raises(ValueError, match="qpos"):
        mujacobian.linearize(model, data, sensors=False, fallback="fd")


def test_models_without_any_derivative_are_differenced():
    xml = SENSED.replace(
        "<mujoco>", '<mujoco><option integrator="discrete" noslip_iterations="2"/>'
    )
    model, data = scene(re.sub("<user.*/>", "", xml), [0.4], [0.3])
    lin = mujacobian.linearize(model, data, forces=True, fallback="fd")
    plain = mujacobian.linearize(*scene(re.sub("noslip_iterations=.2.", "", xml), [0.4], [0.3]),
                                 sensors=False, forces=True)  # fmt: skip
    assert "noslip" in lin.differenced[0].element
    np.testing.assert_allclose(lin.A, plain.A, atol=1e-9)  # there is no contact to slip
    np.testing.assert_allclose(lin.Bf, plain.Bf, atol=1e-9)
    np.testing.assert_allclose(data.xpos[1], 0)  # mj_forward has run
    assert data.cinert[1].any()


def test_callbacks_without_jacobian_are_differenced():
    """The differences are those of the closed loop, and ctrl of the caller stays as it is."""
    model, data = scene(re.sub("<user.*/>", "", SENSED), [0.4], [0.3])
    data.ctrl[:] = 0.7

    def control_callback(model, data):
        data.ctrl[:] = 0.5 * data.ctrl - 2 * data.qpos

    open_loop = mujacobian.linearize(model, data)
    with mujacobian.callbacks(control=control_callback):
        lin = mujacobian.linearize(model, data, fallback="fd")
    assert data.ctrl[0] == 0.7
    assert lin.differenced[0].element == "mjcb_control"
    np.testing.assert_allclose(lin.B, 0.5 * open_loop.B, atol=1e-9)
    np.testing.assert_allclose(lin.A, open_loop.A + open_loop.B @ [[-2, 0]], atol=1e-9)


def ring_states(model, n):
    """Return n states of the ball, some of which touch the ring, and their controls."""
    data, rows = mujoco.MjData(model), []
    for k in range(n):
        data.qpos[:], data.qvel[:] = (0.002 * k, 0.08 * (k % 2)), 0.1
        rows.append(np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
        mujoco.mj_getState(model, data, rows[-1], mujoco.mjtState.mjSTATE_FULLPHYSICS)
    return np.array(rows), np.zeros((n, model.nu))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_differences_only_the_refused_states(threads):
    model, _ = scene(RING)
    states, controls = ring_states(model, 5)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="state 0"):
        mujacobian.linearize_batch(model, states, controls)
    batch = mujacobian.linearize_batch(model, states, controls, threads=threads, fallback="fd")
    assert [report.index for report in batch.differenced] == [(0,), (2,), (4,)]
    data = mujoco.MjData(model)
    for k, state in enumerate(states):
        mujoco.mj_resetData(model, data)
        mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        lin = mujacobian.linearize(model, data, fallback="fd")
        for name, block in lin.blocks.items():
            assert (getattr(batch, name)[k] == block).all()
    assert (
        mujacobian.linearize_batch(model, states[:0], controls[:0], fallback="fd").A.shape[0] == 0
    )


def test_a_batch_differences_rows_of_sensors(sensed):
    model, _ = sensed
    states = np.array([[0.0, 0.4, 0.3], [0.0, 0.1, -0.2]])
    batch = mujacobian.linearize_batch(model, states, np.zeros((2, 1)), fallback="fd")
    assert [report.element for report in batch.differenced] == ['sensor "mine"'] * 2
    np.testing.assert_allclose(batch.C[:, 3, 0], 2 * states[:, 1], atol=1e-9)


@pytest.mark.parametrize("is_batch", [False, True])
@pytest.mark.parametrize("checkpoint", [None, 3])
def test_gradients_of_rollouts_use_the_differences(is_batch, checkpoint):
    model, data = scene(RING, qvel=[0.3, 0.0])
    T, rng = 5, np.random.default_rng(3)
    shape = (2, T) if is_batch else (T,)
    controls, forces = rng.normal(size=(*shape, 2)), 0.1 * rng.normal(size=(*shape, 2))
    wrenches = 0.1 * rng.normal(size=(*shape, model.nbody, 6))
    given = {"forces": forces, "wrenches": wrenches, "checkpoint": checkpoint}
    trajectory = mujacobian.rollout(model, data, controls, **given)
    d_states = rng.normal(size=trajectory.states.shape)
    d_sensors = rng.normal(size=trajectory.sensordata.shape)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="step"):
        trajectory.gradient(d_states, d_sensors)
    trajectory = mujacobian.rollout(model, data, controls, **given, fallback="fd")
    gradient = trajectory.gradient(d_states, d_sensors)
    indices = {report.index for report in gradient.differenced}
    assert len(indices) > 2
    assert all(len(index) == 1 + is_batch for index in indices)

    # the chain rule with the linearization of every step
    k = 1 if is_batch else 0
    row = (lambda x: x[k]) if is_batch else (lambda x: x)
    one, step = mujoco.MjData(model), []
    mujoco.mj_copyData(one, model, data)
    for t in range(T):
        one.ctrl[:], one.qfrc_applied[:] = row(controls)[t], row(forces)[t]
        one.xfrc_applied[:] = row(wrenches)[t]
        step.append(mujacobian.linearize(model, one, forces=True, fallback="fd"))
        mujoco.mj_step(model, one)
    bar = row(d_states)[-1]
    for t in reversed(range(T)):
        sensed = row(d_sensors)[t]
        want = step[t].B.T @ bar + step[t].D.T @ sensed
        np.testing.assert_allclose(row(gradient.controls)[t], want, rtol=1e-6, atol=1e-9)
        want = step[t].Bf.T @ bar + step[t].Df.T @ sensed
        np.testing.assert_allclose(row(gradient.forces)[t], want, rtol=1e-6, atol=1e-9)
        # the joints are slides along x and z
        np.testing.assert_allclose(row(gradient.wrenches)[t, 1, [0, 2]], want, rtol=1e-6, atol=1e-9)
        bar = step[t].A.T @ bar + step[t].C.T @ sensed + row(d_states)[t]
    np.testing.assert_allclose(row(gradient.state), bar, rtol=1e-6)

    jacobian = trajectory.jacobian("state")
    assert {report.index for report in jacobian.differenced} == indices
    want = np.einsum("...tij,...ti->...j", jacobian.states, d_states) + np.einsum(
        "...tij,...ti->...j", jacobian.sensordata, d_sensors
    )
    np.testing.assert_allclose(gradient.state, want, rtol=1e-6)


def test_parameters_of_a_refused_step_raise():
    model, data = scene(RING)
    params = mujacobian.Parameters(model, [("body_mass", "ball")])
    trajectory = mujacobian.rollout(model, data, np.zeros((3, 2)), params=params, fallback="fd")
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="ring"):
        trajectory.gradient(np.ones_like(trajectory.states))


def reach(model):
    goal = control.sensor(model, "ball")[0] - 0.39
    terms = [control.Term("goal", goal, weight=100.0), control.Term("u", control.controls(model))]
    return control.Cost(model, terms)


@pytest.mark.parametrize("threads", [1, 2])
def test_ilqr_runs_through_a_distance_field(threads):
    model, data = scene(RING, qvel=[0.0, 0.0])
    planner = control.ILQR(model, reach(model), 10, threads=threads, fallback="fd")
    plan = planner.solve(data, iterations=4)
    assert plan.cost < plan.initial_cost
    assert plan.refused == ""
    assert not plan.status.startswith("refused")
    assert plan.differenced
    assert {len(report.index) for report in plan.differenced} == {1}
    assert "differenced" in repr(plan)
    # without the fallback the plan names the refusal
    planner.fallback = None
    plan = planner.solve(data)
    assert re.match('refused: knot 0: contact .*"ring".*: ', plan.status)
    assert plan.cost == plan.initial_cost
    assert plan.differenced == ()


def test_ilqr_differences_only_sensors_of_the_cost():
    model, data = scene(SENSED, [0.4], [0.3])
    cost = control.Cost(model, [control.Term("tip", control.sensor(model, "tip"))])
    plan = control.ILQR(model, cost, 5, fallback="fd").solve(data, iterations=2)
    assert plan.differenced == ()


def test_ilqr_differences_rows_of_sensors():
    torque = '<torque name="base" site="base"/>'  # at a site of the world, which is not supported
    xml = SENSED.replace("<worldbody>", '<option timestep=".02"/><worldbody><site name="base"/>')
    model, data = scene(re.sub("<user.*/>", torque, xml), [0.4], [0.3])
    rows = control.sensor(model, "base"), control.sensor(model, "tip")[0]
    cost = control.Cost(model, [control.Term(str(k), row) for k, row in enumerate(rows)])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="base"):
        control.ILQR(model, cost, 6)
    planner = control.ILQR(model, cost, 6, regularization="none", fallback="fd")
    plan = planner.solve(data, iterations=3)
    assert {report.element for report in plan.differenced} == {'sensor "base"'}
    assert {report.index[0] for report in plan.differenced} == set(range(6))
    assert planner.linearization.C[:, 3:].any(axis=(1, 2)).all()
    assert plan.cost < plan.initial_cost


def test_mpc_reports_the_plans_with_differences():
    model, data = scene(RING, qvel=[0.0, 0.0])
    planner = control.ILQR(model, reach(model), 6)
    result = control.MPC(model, planner, fallback="fd").run(data, seconds=0.02, progress=False)
    assert planner.fallback == "fd"
    assert len(result.differenced) == len(result.refused) == 4
    assert all(result.differenced)
    assert not any(result.refused)
    assert result.to_dict()["plans_differenced"] == 4


def test_torch_warns_of_differences():
    torch = pytest.importorskip("torch")
    import mujacobian.torch as mt

    model, _ = scene(RING)
    controls = torch.zeros((3, 2), dtype=torch.float64, requires_grad=True)
    states, _ = mt.rollout(model, np.array([0, 0, 0.1, 0.0]), controls, fallback="fd")
    with pytest.warns(mujacobian.errors.DifferencedWarning, match="ring") as caught:
        states[-1].sum().backward()
    assert caught[0].message.differenced
    assert controls.grad.any()


def test_jax_warns_of_differences(double_precision):
    import jax

    import mujacobian.jax as mj

    model, _ = scene(RING)

    def loss(controls):
        return mj.rollout(model, np.array([0, 0, 0.1, 0.0]), controls, fallback="fd")[0][-1].sum()

    with pytest.warns(mujacobian.errors.DifferencedWarning, match="ring"):
        gradient = jax.grad(loss)(np.zeros((3, 2)))
    assert np.asarray(gradient).any()


def test_threads_of_the_caller_do_not_lose_the_handler_of_warnings():
    before = mujoco.get_mju_user_warning()
    model, _ = scene(SPHERES)

    def work():
        mujacobian.linearize(model, mujoco.MjData(model), fallback="fd")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mujoco.get_mju_user_warning() is before


INTERRUPTED = """
import os, signal, sys, threading, time, mujoco, mujacobian, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
model = mujoco.MjModel.from_xml_string(sys.stdin.read())
states = np.zeros((2000, 1 + model.nq + model.nv))
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    mujacobian.linearize_batch(model, states, np.zeros((2000, model.nu)), threads=2, fallback="fd")
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin)
"""


def test_interrupts_stop_the_differences():
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], input=RING, text=True, capture_output=True, timeout=60
    )
    word, seconds = run.stdout.split()
    assert word == "interrupted", run.stderr
    assert float(seconds) < 20


def test_errors_of_mujoco_far_from_the_state_are_ignored(monkeypatch):
    model, data = scene(RING)
    expected = mujacobian.linearize(model, data, fallback="fd")
    step, errors = mujoco.mj_step, []

    def failing(model, data):
        if abs(data.qpos[0]) > 0.05:
            errors.append(data.qpos[0])
            raise mujoco.FatalError("the arena is full")
        step(model, data)

    monkeypatch.setattr(mujoco, "mj_step", failing)
    lin = mujacobian.linearize(model, data, fallback="fd")
    assert errors
    np.testing.assert_allclose(stacked(lin), stacked(expected), rtol=1e-6, atol=1e-6)

    monkeypatch.setattr(mujoco, "mj_forward", failing)
    data.qpos[0] = 0.06
    with pytest.raises(mujacobian.MujacobianError, match="the arena is full"):
        _fallback.linearize(model, data, forward=False)


CONTACT = """
<mujoco>
  <option cone="elliptic"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body pos="0 0 .0985"><freejoint/><geom name="ball" size=".1" condim="6"/></body>
    <body pos=".5 0 .0485"><freejoint/>
      <geom type="capsule" size=".05 .1" euler="0 90 0" condim="4"/></body>
  </worldbody>
</mujoco>"""


def test_differences_agree_with_exact_derivatives_in_contact():
    """A callback that does nothing makes an exact step one that must be differenced."""
    model, data = scene(CONTACT)
    exact = mujacobian.linearize(model, data)
    with mujacobian.callbacks(control=lambda model, data: None):
        lin = mujacobian.linearize(model, data, fallback="fd")
    (report,) = lin.differenced
    assert report.element == "mjcb_control"
    error = abs(lin.A - exact.A) / abs(exact.A).max(axis=0)
    print(f"error {error.max():.1e}, {report}")
    assert report.is_trusted
    assert error.max() < TOLERANCE
