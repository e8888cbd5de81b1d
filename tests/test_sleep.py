"""Steps with sleeping trees: the identity for them, ordinary derivatives for everything else."""

from copy import copy

import mujoco
import numpy as np
import pytest

import mujacobian
from benchmarks.zoo import judge as zoo
from mujacobian import reference
from mujacobian.check._judge import Judge, converged, stack
from mujacobian.check._selfcheck import verify
from mujacobian.check._states import states
from mujacobian.check._study import Study
from tests.oracle.judge import CONTACT_TOLERANCE, linearize_twice
from tests.scenes.cases import INTEGRATORS

# a driven pendulum never sleeps; two boxes and a lever do
SCENE = """
<mujoco>
  <option timestep=".004" sleep_tolerance=".02" {option}><flag sleep="enable" {flag}/></option>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 1"/>
    <site name="base" pos="0 .5 1"/>
    <body name="first" pos="0 0 .0995"><freejoint/>
      <geom name="first" type="box" size=".1 .1 .1"/></body>
    <body name="pendulum" pos="0 0 1.5">
      <joint name="shoulder" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .5 0 0" size=".04"/>
      <body name="forearm" pos=".5 0 0">
        <joint name="elbow" axis="0 1 .2" damping=".1" frictionloss=".05"/>
        <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".03"/>
        <site name="tip" pos=".3 .1 0"/>
      </body>
    </body>
    <body name="second" pos=".5 0 .0995"><freejoint/>
      <geom name="second" type="{shape}" size=".1 .1 .1"/><site name="top" pos="0 0 .1"/></body>
    <body name="lever" pos="-.5 0 .5" sleep="allowed">
      <joint name="lever" axis="0 1 0" damping="2" stiffness="3" range="-1 1"/>
      <geom type="capsule" fromto="0 0 0 0 0 .2" size=".03" contype="0" conaffinity="0"/>
    </body>
    {other}
  </worldbody>
  <actuator>
    <position joint="shoulder" kp="5" kv=".3"/>
    <motor joint="elbow"/>
    <general name="asleep" joint="lever" dyntype="filter" dynprm=".1" gainprm=".1"/>
  </actuator>
  <sensor>
    <framepos objtype="site" objname="tip" reftype="body" refname="second"/>
    <framelinacc objtype="site" objname="tip"/>
    <framepos objtype="body" objname="first"/>
    <accelerometer site="top"/>
    <jointactuatorfrc joint="lever"/>
    <touch site="top"/>
  </sensor>
</mujoco>"""
BALL = """<body name="ball" pos="1 1 .05"><freejoint/><geom name="ball" size=".05"/></body>"""
SETTLING = 150  # steps after which the boxes and the lever sleep


def scene(*, option="", flag="", shape="box", other="", integrator="euler"):
    model = mujoco.MjModel.from_xml_string(
        SCENE.format(option=option, flag=flag, shape=shape, other=other)
    )
    INTEGRATORS[integrator](model)
    reference.converge(model)
    return model, mujoco.MjData(model)


def run(model, data, steps):
    for k in range(steps):
        data.ctrl[:2] = 1.5 * np.sin(0.02 * k), 0.3 * np.cos(0.03 * k)
        mujoco.mj_step(model, data)


def dofs(model, data):
    """Return the dofs of sleeping trees."""
    return data.tree_asleep[model.dof_treeid] >= 0


def agree(model, data, lin):
    """Compare all columns; those of sleeping trees are the identity."""
    ref = reference.jacobian(model, data, forces=True, constrained=True)
    given = np.block([[lin.A, lin.B, lin.Bf], [lin.C, lin.D, lin.Df]])
    scale = abs(ref.J).max(axis=0, initial=1.0)
    trusted = ref.err <= CONTACT_TOLERANCE * scale / 10
    assert trusted.mean() > 0.9
    difference = abs(given - ref.J) / scale
    assert difference[trusted].max() <= CONTACT_TOLERANCE


def everything(model, data):
    linearize_twice(model, data)
    return mujacobian.linearize(model, data, forces=True)


def is_identity(model, lin, asleep):
    """Check the rows and columns of sleeping dofs."""
    nv = model.nv
    both = np.concatenate([asleep, asleep, np.zeros(model.na, dtype=bool)])
    unit = np.eye(2 * nv + model.na)
    np.testing.assert_array_equal(lin.A[both], unit[both])
    np.testing.assert_array_equal(lin.A[:, both], unit[:, both])
    assert not lin.B[both].any()
    assert not lin.Bf[both].any()
    assert not lin.Bf[:, asleep].any()
    assert not lin.C[:, both].any()


def stepped(model, data, field, index, change):
    """Return the data after a step from a state with one changed number."""
    after = mujoco.MjData(model)
    mujoco.mj_copyData(after, model, data)
    getattr(after, field)[index] += change
    mujoco.mj_step(model, after)
    return after


@pytest.mark.parametrize(("field", "index"), [("qpos", 2), ("qvel", 2), ("qfrc_applied", 2)])
def test_any_change_of_a_sleeping_tree_wakes_it_and_the_step_jumps(field, index):
    """So `mj_step` has no derivative there, however short the differences are."""
    model, data = scene()
    run(model, data, SETTLING)
    asleep = stepped(model, data, field, index, 0.0)
    assert asleep.tree_asleep[0] >= 0
    np.testing.assert_array_equal(asleep.qpos[:7], data.qpos[:7])
    jumps = []
    for change in (1e-9, -1e-9, 1e-12, -1e-12):
        awake = stepped(model, data, field, index, change)
        assert awake.tree_asleep[0] < 0
        np.testing.assert_array_equal(awake.qpos[7:9], asleep.qpos[7:9])  # the pendulum
        jumps.append(awake.qvel[2] - asleep.qvel[2])
    # the jump does not shrink with the change, and has one sign
    np.testing.assert_allclose(jumps, jumps[-1], rtol=1e-4)
    assert abs(jumps[-1]) > 1e-4


def test_a_control_of_a_sleeping_tree_does_not_wake_it():
    model, data = scene()
    run(model, data, SETTLING)
    lever = model.dof_treeid[-1]
    assert stepped(model, data, "ctrl", 2, 0.3).tree_asleep[lever] >= 0


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "implicit"])
@pytest.mark.parametrize("option", ["", 'cone="elliptic" noslip_iterations="3"'])
def test_sleeping_trees(integrator, option):
    model, data = scene(integrator=integrator, option=option)
    run(model, data, SETTLING)
    mujoco.mj_forward(model, data)
    asleep = dofs(model, data)
    assert asleep.sum() == 13
    assert data.nefc > 0
    lin = everything(model, data)
    agree(model, data, lin)
    is_identity(model, lin, asleep)
    assert lin.A[-1, -1] == 1.0, "the activation of a sleeping actuator has a constant rate"


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "implicit", "rk4", "discrete"])
def test_without_sleeping_trees_the_flag_does_not_matter(integrator):
    model, data = scene(integrator=integrator)
    run(model, data, 5)
    assert not dofs(model, data).any()
    lin = mujacobian.linearize(model, data)
    model.opt.enableflags = 0
    other = mujacobian.linearize(model, data)
    for block in ("A", "B", "C", "D"):
        np.testing.assert_array_equal(getattr(lin, block), getattr(other, block))


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "discrete"])
def test_trees_that_fall_asleep_keep_their_position(integrator):
    model, data = scene(integrator=integrator)
    before, last = mujoco.MjData(model), dofs(model, data)
    events = 0
    for _ in range(SETTLING):
        mujoco.mj_copyData(before, model, data)
        run(model, data, 1)
        now = dofs(model, data)
        falling = now & ~last
        if not falling.any():
            continue
        if integrator == "discrete" and last.any():
            break  # refused
        events += 1
        lin = mujacobian.linearize(model, before, sensors=False, forces=True)
        nv = model.nv
        np.testing.assert_array_equal(lin.A[:nv][falling], np.eye(2 * nv + model.na)[:nv][falling])
        assert not lin.A[nv : 2 * nv][falling].any()
        np.testing.assert_array_equal(data.qvel[falling], 0.0)
        full = mujacobian.linearize(model, before, sensors=False, forces=True)
        ref = reference.jacobian(model, before, forces=True, constrained=True)
        given, expected = np.hstack([full.A, full.B, full.Bf]), ref.J[: ref.nx]
        trusted = ref.err[: ref.nx] <= CONTACT_TOLERANCE / 10 * max(1.0, abs(expected).max())
        assert trusted.mean() > 0.5
        worst = abs(given - expected)[trusted].max()
        assert worst <= CONTACT_TOLERANCE * max(1.0, abs(expected).max())
        with pytest.raises(mujacobian.UnsupportedFeatureError, match="fall asleep"):
            mujacobian.linearize(model, before)
        last = now
    assert events


def test_a_contact_wakes_a_tree():
    model, data = scene(other=BALL)
    run(model, data, SETTLING)
    first = model.body("first").dofadr[0]
    assert dofs(model, data)[first]
    data.qpos[-7:-4] = 0.02, 0.01, 0.4  # above the first box
    before = mujoco.MjData(model)
    for _ in range(100):
        mujoco.mj_copyData(before, model, data)
        mujoco.mj_step(model, data)
        if data.tree_asleep[model.dof_treeid[first]] < 0:
            break
    assert dofs(model, before)[first]
    lin = everything(model, before)
    assert not dofs(model, before)[first], "mj_forward wakes the tree, as mj_step does"
    agree(model, before, lin)


def test_a_changed_state_wakes_a_tree():
    model, data = scene()
    run(model, data, SETTLING)
    first = model.body("first").dofadr[0]
    assert dofs(model, data)[first]
    data.qpos[0] += 1e-3
    lin = everything(model, data)
    assert not dofs(model, data)[first]
    assert lin.A[0, model.nv] != 0


@pytest.mark.parametrize("noslip", [0, 2])
def test_products_agree_with_the_linearization(noslip):
    model, data = scene(integrator="implicitfast", option=f'noslip_iterations="{noslip}"')
    run(model, data, SETTLING)
    assert dofs(model, data).any()
    lin, rng = mujacobian.linearize(model, data, forces=True), np.random.default_rng(0)
    dx, du = rng.normal(size=lin.A.shape[1]), rng.normal(size=model.nu)
    df = rng.normal(size=model.nv)
    moved = mujacobian.jvp(model, data, d_state=dx, d_controls=du, d_forces=df)
    np.testing.assert_allclose(moved[0], lin.A @ dx + lin.B @ du + lin.Bf @ df, atol=1e-9)
    np.testing.assert_allclose(moved[1], lin.C @ dx + lin.D @ du + lin.Df @ df, atol=1e-6)
    x_bar, y_bar = rng.normal(size=lin.A.shape[0]), rng.normal(size=lin.C.shape[0])
    pulled = mujacobian.vjp(model, data, x_bar, y_bar)
    np.testing.assert_allclose(pulled.state, lin.A.T @ x_bar + lin.C.T @ y_bar, atol=1e-6)
    np.testing.assert_allclose(pulled.controls, lin.B.T @ x_bar + lin.D.T @ y_bar, atol=1e-6)


def test_curved_geoms_at_the_users_tolerance():
    """The collider is run again, in an mjData in which the same trees sleep."""
    model, data = scene(
        shape="cylinder",
        other="""
      <body name="disc" pos="1 1 .5"><freejoint/>
        <geom type="cylinder" size=".1 .05"/></body>
      <body name="block" pos="1 1 .1"><joint type="slide" axis="0 0 1"/>
        <geom type="box" size=".2 .2 .1"/></body>""",
    )
    model.opt.ccd_tolerance = 1e-6
    run(model, data, SETTLING)
    data.qpos[-8] = 0.2499
    data.qvel[-7] = 0.05
    mujoco.mj_forward(model, data)
    asleep = dofs(model, data)
    assert 0 < asleep.sum() < model.nv
    lin = everything(model, data)
    is_identity(model, lin, asleep)
    model.opt.ccd_tolerance = 1e-13
    model.opt.ccd_iterations = 500
    other = mujacobian.linearize(model, data)
    np.testing.assert_allclose(lin.A, other.A, atol=1e-6 * abs(other.A).max())


def asleep_at_own_settings():
    """Return a state with sleeping trees of a model whose solver is not converged."""
    model, data = scene()
    model.opt.tolerance, model.opt.iterations = 1e-8, 100
    run(model, data, SETTLING)
    mujoco.mj_forward(model, data)
    assert dofs(model, data).sum() == 13
    return model, data


def test_the_converged_copy_sleeps_as_well():
    model, data = asleep_at_own_settings()
    twin, same = converged(model, data)
    np.testing.assert_array_equal(same.tree_asleep, data.tree_asleep)
    lin, best = mujacobian.linearize(model, data), mujacobian.linearize(twin, same)
    np.testing.assert_allclose(lin.A, best.A, atol=1e-9 * abs(best.A).max())
    copied = mujacobian.converged(model)
    same = mujoco.MjData(copied)
    mujoco.mj_copyData(same, copied, data)
    mujoco.mj_step(copied, same)
    np.testing.assert_array_equal(dofs(copied, same), dofs(model, data))


def test_old_warnings_do_not_hide_the_reference():
    model, data = asleep_at_own_settings()
    data.warning.number[:] = 1
    assert reference.jacobian(model, data, constrained=True).J.any()


def test_the_checks_accept_the_identity_only():
    model, data = asleep_at_own_settings()
    lin = mujacobian.linearize(model, data, forces=True)
    judge = Judge(model, data)
    result = judge.compare(stack(mujacobian.linearize(model, data)))
    assert result.error <= judge.tolerance
    assert result.share > 0.8
    verify(model, data, lin.blocks)
    awake = copy(model)
    awake.opt.enableflags = 0
    same = mujoco.MjData(awake)
    mujoco.mj_copyData(same, awake, data)
    with pytest.raises(mujacobian.SelfCheckError):
        verify(model, data, {"A": mujacobian.linearize(awake, same).A})


def test_the_command_checks_sleeping_trees():
    model, _ = scene()
    for label, data in states(model, 2, seed=0):
        mujoco.mj_forward(model, data)
        if label == "driven":
            assert dofs(model, data).any(), "the jitter has woken the trees"
    study = Study(model, 2, seed=0)
    list(study.run())
    assert [state.verdict for state in study.report.states] == ["exact", "exact"]
    assert "sleep" in study.report.differences_missing


def test_the_zoo_judges_sleeping_trees():
    model, data = asleep_at_own_settings()
    *_, found = zoo.judge(model, data, seed=0)
    for settings in ("own", "converged"):
        assert found[settings]["word"] == zoo.EXACT, found[settings]
        assert found[settings]["share"] > 0.8


def test_trajectories_and_batches_raise_while_a_tree_sleeps():
    model, data = scene()
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"first.*sleeps"):
        mujacobian.rollout(model, data, np.zeros((SETTLING, model.nu)))
    trajectory = mujacobian.rollout(model, data, np.ones((8, model.nu)))
    loss = np.ones_like(trajectory.states)
    assert abs(trajectory.gradient(loss).controls).max() > 0
    xml = SCENE.format(option="", flag="", shape="box", other="").replace("allowed", "init")
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    assert dofs(model, data).any()
    state = np.concatenate([[data.time], data.qpos, data.qvel, data.act])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"lever.*sleep"):
        mujacobian.linearize_batch(model, state[None], np.zeros((1, model.nu)))


@pytest.mark.parametrize(("integrator", "name"), [("rk4", "RK4"), ("discrete", "discrete")])
def test_integrators_that_are_refused_while_a_tree_sleeps(integrator, name):
    model, data = scene()
    run(model, data, SETTLING)
    INTEGRATORS[integrator](model)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=name):
        mujacobian.linearize(model, data)


def test_parameters_are_refused_while_a_tree_sleeps():
    model, data = scene()
    run(model, data, SETTLING)
    params = mujacobian.Parameters(model, [("body_mass", "first")])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="sleep"):
        mujacobian.jvp(model, data, params=params, d_params=np.ones(1))


def test_inverse_dynamics_is_refused_while_a_tree_sleeps():
    model, data = scene()
    run(model, data, SETTLING)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="sleep"):
        mujacobian.inverse(model, data)
