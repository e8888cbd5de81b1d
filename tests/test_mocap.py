"""Derivatives with respect to the poses of mocap bodies, against differences of mj_step."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import mujacobian

INTEGRATORS = ("Euler", "implicit", "implicitfast", "RK4", "discrete")

HELD = """
<mujoco>
  <option timestep="0.003"/>
  <worldbody>
    <body name="hand" mocap="true" pos=".5 .1 1" quat=".9 .2 -.1 .3">
      <geom name="palm" type="box" size=".05 .06 .02" pos=".01 0 0"/>
      <site name="wrist" pos="0 .02 .03"/>
      <site name="eye" pos="0 0 -.1" zaxis=".1 .2 -1"/>
      <body name="finger" pos="0 0 .1"><site name="tip" pos=".02 0 .05" quat=".8 .1 .3 .2"/></body>
    </body>
    <body name="hook" mocap="true" pos="-.3 0 1.4" euler="10 30 0">
      <geom size=".02" mass=".1"/>
      <site name="peg"/>
      <body name="bob" pos=".1 0 0" gravcomp=".3">
        <joint name="swing" axis="0 1 .2" damping=".1" armature=".01"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .1 .05 -.3" mass=".4"/>
        <site name="end" pos=".1 .05 -.3"/>
      </body>
      <body name="twig" pos="-.1 0 0">
        <joint type="ball" damping=".05"/>
        <geom type="box" size=".02 .1 .03" pos="0 .05 .02" mass=".3"/>
      </body>
    </body>
    <body name="box" pos=".5 .1 .95"><freejoint/>
      <geom type="box" size=".04 .05 .06" mass=".5"/>
      <site name="grip" pos=".02 .01 .05"/>
    </body>
    <body name="arm" pos="0 .4 1">
      <joint name="shoulder" type="ball" damping=".1"/>
      <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".6"/>
      <body name="fore" pos=".3 0 0">
        <joint name="elbow" axis="0 0 1" damping=".1"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .2 0 0" mass=".4"/>
        <site name="hand" pos=".2 0 0"/>
      </body>
    </body>
    <geom name="post" type="cylinder" size=".03 .3" pos="-.15 .2 1.1" contype="0" conaffinity="0"/>
    <site name="side" pos="-.15 .3 1.1"/>
  </worldbody>
  <contact><exclude body1="hand" body2="box"/></contact>
  <equality>
    <weld body1="hand" body2="box" relpose=".01 0 -.06 1 .05 0 .02" solref=".05 1"/>
    <connect site1="hand" site2="wrist" solref=".06 1"/>
  </equality>
  <tendon>
    <spatial name="rope" stiffness="20" damping=".6" springlength=".1">
      <site site="peg"/><geom geom="post" sidesite="side"/><site site="hand"/>
    </spatial>
    <spatial name="cord" stiffness="5" springlength=".05" armature=".02">
      <site site="tip"/><site site="end"/>
    </spatial>
  </tendon>
  <actuator>
    <general name="winch" tendon="rope" biastype="affine" biasprm=".2 -2 -.1" gear="1.5"
             dyntype="integrator" gainprm="2"/>
    <general name="thrust" site="grip" refsite="tip" gear="1 .2 0 .1 0 .3" gainprm="2"
             biastype="affine" biasprm="0 -.5 -.1"/>
    <muscle name="muscle" tendon="rope" range=".5 1.2" force="3" lengthrange=".2 .9"/>
  </actuator>
  <sensor>
    <framepos objtype="site" objname="grip" reftype="site" refname="tip"/>
    <framequat objtype="body" objname="hand"/>
    <framelinvel objtype="site" objname="end" reftype="body" refname="hook"/>
    <accelerometer site="end"/> <accelerometer site="wrist"/> <gyro site="grip"/>
    <force site="end"/> <torque site="grip"/> <tendonpos tendon="rope"/>
    <actuatorfrc actuator="winch"/>
    <rangefinder site="eye"/> <distance geom1="palm" geom2="post" cutoff="9"/>
    <subtreecom body="hook"/> <e_potential/> <e_kinetic/> <magnetometer site="tip"/>
  </sensor>
</mujoco>
"""

PUSHED = """
<mujoco>
  <option timestep="0.002" cone="elliptic" impratio="2"/>
  <default><geom solref="0.03 1" solimp=".7 .95 .02"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 .1"/>
    <body name="paddle" mocap="true" pos="-.14 0 .1" euler="3 -4 2">
      <geom name="paddle" type="box" size=".05 .2 .09"/>
    </body>
    <body name="ball" pos="0 0 .098"><freejoint/>
      <geom name="ball" size=".1" condim="4" mass=".4"/>
      <site name="skin" size=".2"/></body>
    <body name="stick" pos="-.14 .1 .2"><freejoint/>
      <geom type="capsule" size=".02 .1" euler="0 80 10" mass=".2" condim="6"/></body>
  </worldbody>
  <sensor><touch site="skin"/><framelinacc objtype="body" objname="ball"/></sensor>
</mujoco>
"""


def load(xml: str, integrator: str, cone: str = "elliptic") -> mujoco.MjModel:
    model = mujoco.MjModel.from_xml_string(xml.replace('cone="elliptic"', f'cone="{cone}"'))
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    model.opt.tolerance = 0
    model.opt.iterations = 100
    return model


def disturbed(model: mujoco.MjModel, seed: int, speed: float) -> mujoco.MjData:
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    data.qvel[:] = speed * rng.standard_normal(model.nv)
    data.ctrl[:] = 0.5 * rng.random(model.nu)
    data.act[:] = 0.5 * rng.random(model.na)
    data.mocap_quat[:] *= 1.3  # MuJoCo normalizes quaternions
    for _ in range(3):
        mujoco.mj_step(model, data)
    return data


def step_from(
    model: mujoco.MjModel, data: mujoco.MjData, poses: np.ndarray, after: mujoco.MjData
) -> None:
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    mujoco.mj_setState(model, after, state, spec)
    after.mocap_pos[:], after.mocap_quat[:] = poses[:, :3], poses[:, 3:]
    mujoco.mj_step(model, after)


def change(model: mujoco.MjModel, a: mujoco.MjData, b: mujoco.MjData) -> np.ndarray:
    turn = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, turn, 1.0, a.qpos, b.qpos)
    return np.concatenate([turn, b.qvel - a.qvel, b.act - a.act, b.sensordata - a.sensordata])


def differences(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """Return sixth-order differences with respect to all numbers of the poses, and their spread."""
    poses = np.hstack([data.mocap_pos, data.mocap_quat])
    behind, ahead = mujoco.MjData(model), mujoco.MjData(model)
    columns, spreads = [], []
    for k in range(poses.size):

        def slope(h: float, k: int = k) -> np.ndarray:
            for step, after in ((-h, behind), (h, ahead)):
                moved = poses.copy()
                moved.flat[k] += step
                step_from(model, data, moved, after)
            return change(model, behind, ahead) / (2 * h)

        made = []
        for h in (1e-3, 5e-4):
            slopes = [slope(n * h) for n in (1, 2, 3)]
            made.append(1.5 * slopes[0] - 0.6 * slopes[1] + 0.1 * slopes[2])
        columns.append(made[1])
        spreads.append(np.abs(made[1] - made[0]))
    return np.array(columns).T, np.array(spreads).T


def analytic(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Return the same by forward products, whose transposes are the backward products."""
    nx, size = 2 * model.nv + model.na, 7 * model.nmocap
    made = []
    for unit in np.eye(size):
        parts = mujacobian.jvp(model, data, d_mocap=unit.reshape(-1, 7))
        made.append(np.concatenate(parts))
    forward = np.array(made).T
    rng = np.random.default_rng(0)
    for _ in range(3):
        y = rng.normal(size=len(forward))
        back = mujacobian.vjp(model, data, y[:nx], y[nx:], mocap=True).mocap.ravel()
        scale = np.abs(y) @ np.abs(forward)
        assert (np.abs(back - y @ forward) <= 1e-10 * scale.max()).all()
    quats = forward.reshape(-1, model.nmocap, 7)[..., 3:]
    assert np.abs((quats * data.mocap_quat).sum(axis=-1)).max() < 1e-9 * np.abs(quats).max()
    return forward


def judge(model: mujoco.MjModel, data: mujoco.MjData, share: float) -> None:
    """Assert that rows with converged differences agree to 1e-6 of their largest entry."""
    expected, spread = differences(model, data)
    got = analytic(model, data)
    trusted = 0
    for row in range(len(expected)):
        scale = max(np.abs(expected[row]).max(), 1e-3)
        good = spread[row] <= 3e-7 * scale
        trusted += good.sum()
        error = np.abs(got[row] - expected[row])[good].max(initial=0) / scale
        assert error <= 1e-6, f"row {row}: {error:.1e}"
    assert trusted >= share * expected.size, f"{trusted / expected.size:.2f} trusted"
    assert np.abs(got).max() > 1e-3


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_held_by_constraints_and_tendons(integrator: str) -> None:
    model = load(HELD, integrator)
    judge(model, disturbed(model, 1, 0.5), 0.8)


@pytest.mark.parametrize("option", ['viscosity="2"', 'density="1000"', "diagexact"])
def test_options(option: str) -> None:
    """A mocap body has no effect on fluid forces; it affects the exact diagonal through J."""
    chosen = f"<option {option}/>"
    if option == "diagexact":
        chosen = '<option><flag diagexact="enable"/></option>'
    model = load(PUSHED.replace("<mujoco>", f"<mujoco>{chosen}"), "implicitfast")
    judge(model, disturbed(model, 2, 0.2), 0.6)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_pushing(cone: str, integrator: str) -> None:
    model = load(PUSHED, integrator, cone)
    data = disturbed(model, 2, 0.2)
    geom = model.geom("paddle").id
    mujoco.mj_forward(model, data)
    assert (data.contact.geom == geom).any(axis=1).sum() >= 2
    judge(model, data, 0.6)


STEPS = 12


def motion(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """Return controls and poses of every step."""
    rng = np.random.default_rng(3)
    poses = np.tile(np.hstack([data.mocap_pos, data.mocap_quat]), (STEPS, 1, 1))
    poses += 3e-3 * rng.standard_normal(poses.shape)
    return np.tile(data.ctrl, (STEPS, 1)), poses


def test_rollout() -> None:
    """The loss depends on all states and sensors, and all poses change along random directions."""
    model = load(HELD, "implicitfast")
    data = disturbed(model, 1, 0.5)
    controls, poses = motion(model, data)
    trajectory = mujacobian.rollout(model, data, controls, mocap=poses)
    rng = np.random.default_rng(4)
    d_states = rng.standard_normal(trajectory.states.shape)
    d_sensors = 0.1 * rng.standard_normal(trajectory.sensordata.shape)
    d_sensors[:, 3:7] = 0  # a quaternion of the poses themselves

    def loss(moved: np.ndarray) -> float:
        made = mujacobian.rollout(model, data, controls, mocap=moved)
        return float((made.states * d_states).sum() + (made.sensordata * d_sensors).sum())

    gradient = trajectory.gradient(d_states, d_sensors)
    assert gradient.mocap.shape == poses.shape
    assert np.abs((gradient.mocap * poses)[..., 3:].sum(axis=-1)).max() < 1e-8
    for _ in range(3):
        along = rng.standard_normal(poses.shape)
        slopes = [
            (loss(poses + h * along) - loss(poses - h * along)) / (2 * h) for h in (2e-4, 4e-4)
        ]
        expected = (4 * slopes[0] - slopes[1]) / 3
        scale = np.linalg.norm(gradient.mocap) * np.linalg.norm(along)
        assert abs((gradient.mocap * along).sum() - expected) < 1e-6 * scale

    again = mujacobian.rollout(model, data, controls, mocap=poses, checkpoint=5)
    assert again.gradient(d_states, d_sensors).mocap.tobytes() == gradient.mocap.tobytes()
    batch = mujacobian.rollout(model, data, controls, mocap=np.stack([poses + 0.01, poses]))
    both = batch.gradient(np.stack([d_states] * 2), np.stack([d_sensors] * 2))
    assert both.mocap[1].tobytes() == gradient.mocap.tobytes()
    assert mujacobian.rollout(model, data, controls).gradient(d_states).mocap is None


def test_torch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    bridge = pytest.importorskip("mujacobian.torch")
    model = load(PUSHED, "Euler")
    data = disturbed(model, 2, 0.2)
    controls, poses = motion(model, data)

    def states(moved: torch.Tensor) -> torch.Tensor:
        return bridge.rollout(model, data, controls[:3], mocap=moved)[0]

    given = torch.tensor(poses[:3], requires_grad=True)
    assert torch.autograd.gradcheck(states, given)
    model.opt.noslip_iterations = 3
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="noslip"):
        states(given).sum().backward()


def test_jax() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    bridge = pytest.importorskip("mujacobian.jax")
    model = load(PUSHED, "Euler")
    data = disturbed(model, 2, 0.2)
    controls, poses = motion(model, data)
    state = np.concatenate([data.qpos, data.qvel, data.act])
    trajectory = mujacobian.rollout(model, state, controls, mocap=poses)
    weights = np.random.default_rng(5).standard_normal(trajectory.states.shape)
    wanted = trajectory.gradient(weights).mocap
    with jax.enable_x64(True):

        def loss(moved: jax.Array) -> jax.Array:
            return (bridge.rollout(model, state, controls, mocap=moved)[0] * weights).sum()

        made = jax.jit(jax.grad(loss))(poses)
        both = jax.vmap(jax.grad(loss))(np.stack([poses, poses]))
    np.testing.assert_allclose(made, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    np.testing.assert_allclose(both[1], wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def test_limits() -> None:
    model = load(PUSHED, "Euler")
    data = disturbed(model, 2, 0.2)
    controls, poses = motion(model, data)
    with pytest.raises(ValueError, match="quaternion of length 0"):
        mujacobian.rollout(model, data, controls, mocap=0 * poses)
    model.opt.noslip_iterations = 3
    trajectory = mujacobian.rollout(model, data, controls, mocap=poses)
    gradient = trajectory.gradient(np.ones_like(trajectory.states))
    assert gradient.mocap is None
    assert gradient.state.any()
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="noslip"):
        mujacobian.vjp(model, data, np.ones(2 * model.nv), mocap=True)
    with pytest.raises(ValueError, match="it is a mocap body"):
        mujacobian.Parameters(model, [("body_pos", "paddle")])
    assert not any("paddle" in name for name in mujacobian.Parameters(model, ["body_pos"]).names)
    data.mocap_quat[:] = 0
    with pytest.raises(ValueError, match="quaternion of length 0"):
        mujacobian.vjp(model, data, mocap=True)
    swing = load(HELD, "Euler")
    swing.opt.viscosity = 0.1
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='body "hook"'):
        mujacobian.vjp(swing, mujoco.MjData(swing), np.ones(2 * swing.nv + 2), mocap=True)
