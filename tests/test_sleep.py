"""Steps with sleeping trees: the identity for them, ordinary derivatives for everything else."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
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


def agree(model, data, lin, *, rows=None):
    """Compare the columns that the reference knows, and require that it knows the awake ones."""
    ref = reference.jacobian(model, data, forces=True, constrained=True)
    asleep = dofs(model, data)
    awake = np.concatenate([~asleep, ~asleep, np.ones(model.na + model.nu, dtype=bool), ~asleep])
    given = np.block([[lin.A, lin.B, lin.Bf], [lin.C, lin.D, lin.Df]])
    expected, err = ref.J[:rows, awake], ref.err[:rows, awake]
    scale = abs(expected).max(axis=0, initial=1.0)
    trusted = err <= CONTACT_TOLERANCE * scale / 10
    assert trusted.mean() > 0.9
    difference = abs(given[:rows, awake] - expected) / scale
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
        awake = ~np.concatenate([last, last, np.zeros(model.na + model.nu, dtype=bool), last])
        trusted &= awake
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
