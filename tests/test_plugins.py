"""The plugins of MuJoCo's package against the reference."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.judge import SMOOTH_TOLERANCE, judge
from tests.scenes.cases import INTEGRATORS, random_state, sample

TRUSTED_SHARE = 0.9
GRADIENT_TOLERANCE = 1e-6  # of central differences of a rollout

ARM = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep=".004"><flag contact="disable"/></option>
  <extension><plugin plugin="mujoco.pid"><instance name="servo">{config}</instance></plugin>
  </extension>
  <default>{default}</default>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="elbow" axis=".3 1 0" damping=".2" stiffness="1"/>
      <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04"/>
      <body name="hand" pos=".3 .1 0">
        <joint name="wrist" axis="1 0 .4" damping=".05"/>
        <geom type="capsule" fromto="0 0 0 .1 .1 .2" size=".03"/>
        <site name="tip" pos=".1 .1 .2"/>
      </body>
    </body>
    <site name="base" pos=".1 -.2 .9"/>
  </worldbody>
  <tendon>
    <spatial name="rope" {tendon}><site site="base"/><site site="tip"/></spatial>
  </tendon>
  <actuator>
    <motor name="motor" joint="elbow"/>
    <plugin name="first" joint="elbow" gear="1.7" {plugin}/>
    <plugin name="second" tendon="rope" gear="-.8" {plugin}/>
  </actuator>
  <sensor><actuatorfrc actuator="first"/><jointactuatorfrc joint="elbow"/></sensor>
</mujoco>"""

# attributes of the plugin, and the number of activations that they add
CONFIGS = {
    "P": ({"kp": 8}, 0),
    "PD": ({"kp": 8, "kd": 0.6}, 0),
    "PID": ({"kp": 8, "ki": 20, "kd": 0.6}, 1),
    "clamped integral": ({"kp": 8, "ki": 20, "imax": 0.2}, 1),
    "slew": ({"kp": 8, "kd": 0.6, "slewmax": 30}, 1),
    "everything": ({"kp": 8, "ki": 20, "kd": 0.6, "imax": 6, "slewmax": 60}, 2),
}
DYNAMICS = {
    "none": "",
    "integrator": 'dyntype="integrator"',
    "filter": 'dyntype="filter" dynprm=".03" actearly="true"',
    "filterexact": 'dyntype="filterexact" dynprm=".006" actearly="true"',
    "limited": 'dyntype="filterexact" dynprm=".006" actlimited="true" actrange="-.5 .5"',
}
LIMITS = 'ctrllimited="true" ctrlrange="-1 1" forcelimited="true" forcerange="-9 9"'


def arm(config, dynamics="none", *, more=LIMITS, default="", tendon=""):
    """Return an arm with two servos of the plugin."""
    attributes, acts = CONFIGS[config]
    acts += dynamics != "none"
    plugin = f'plugin="mujoco.pid" instance="servo" actdim="{acts}" {DYNAMICS[dynamics]} {more}'
    config = "".join(f'<config key="{key}" value="{value}"/>' for key, value in attributes.items())
    return mujoco.MjModel.from_xml_string(
        ARM.format(config=config, plugin=plugin, default=default, tendon=tendon)
    )


def state(model, seed, *, time=1.0):
    rng = np.random.default_rng(seed)
    data = random_state(model, rng)
    data.time = time
    data.ctrl[:] = rng.normal(size=model.nu)
    data.act[:] = 0.4 * rng.normal(size=model.na)
    return data


@pytest.mark.parametrize(
    ("config", "dynamics", "integrator"), sample(6, CONFIGS, DYNAMICS, INTEGRATORS)
)
def test_pid(config, dynamics, integrator):
    model = arm(config, dynamics)
    INTEGRATORS[integrator](model)
    for seed in range(2):
        share, _ = judge(model, state(model, seed))
        assert share >= TRUSTED_SHARE


def test_pid_has_no_last_setpoint_at_the_start():
    model = arm("everything")
    data = state(model, 0, time=0.0)
    judge(model, data)
    column = mujacobian.linearize(model, data).A[:, 2 * model.nv + 1]
    assert abs(column).max() <= np.finfo(float).eps


def test_pid_clamps_controls_without_the_flag():
    model = arm("PID")
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL
    data = state(model, 0)
    data.ctrl[:] = 2.0
    judge(model, data)
    assert not mujacobian.linearize(model, data).B[:, 1:].any()


@pytest.mark.parametrize("integrator", ["implicitfast", "discrete"])
def test_integrators_use_the_bias_of_a_plugin(integrator):
    model = arm("PD", default='<general biastype="affine" biasprm="0 -3 -2"/>')
    assert model.actuator_biastype[1] == mujoco.mjtBias.mjBIAS_AFFINE
    INTEGRATORS[integrator](model)
    judge(model, state(model, 0))


def test_sensors_of_a_plugin():
    model = arm("everything", "filter")
    data = state(model, 3)
    lin, ref = mujacobian.linearize(model, data), reference.jacobian(model, data)
    for block in ("C", "D"):
        given, expected = getattr(lin, block), getattr(ref, block)
        assert expected.any()
        scale = SMOOTH_TOLERANCE * abs(ref.C).max()
        np.testing.assert_allclose(given, expected, rtol=0, atol=scale)


def test_gradient_of_a_rollout_with_a_plugin():
    model = arm("everything", "filter")
    data, steps = state(model, 1), 12
    ctrl = np.random.default_rng(2).normal(size=(steps, model.nu)) * 0.3
    trajectory = mujacobian.rollout(model, data, ctrl)
    loss = np.zeros_like(trajectory.states)
    loss[-1] = np.random.default_rng(3).normal(size=loss.shape[1])
    gradient = trajectory.gradient(loss)

    def value(controls):
        return mujacobian.rollout(model, data, controls).states[-1] @ loss[-1]

    expected, h = np.empty_like(ctrl), 1e-5
    for index in np.ndindex(*ctrl.shape):
        step = np.zeros_like(ctrl)
        step[index] = h
        expected[index] = (value(ctrl + step) - value(ctrl - step)) / (2 * h)
    assert abs(expected).max() > 0
    atol = GRADIENT_TOLERANCE * abs(expected).max()
    np.testing.assert_allclose(gradient.controls, expected, rtol=0, atol=atol)


def test_products_agree_with_the_linearization():
    model = arm("everything", "filterexact")
    data, rng = state(model, 5), np.random.default_rng(6)
    lin = mujacobian.linearize(model, data)
    dx, du = rng.normal(size=lin.A.shape[1]), rng.normal(size=model.nu)
    x_bar = rng.normal(size=lin.A.shape[0])
    moved = mujacobian.jvp(model, data, d_state=dx, d_controls=du)[0]
    np.testing.assert_allclose(moved, lin.A @ dx + lin.B @ du, rtol=0, atol=1e-11)
    pulled = mujacobian.vjp(model, data, x_bar)
    np.testing.assert_allclose(pulled.controls, lin.B.T @ x_bar, rtol=0, atol=1e-11)


def test_masses_as_parameters_of_a_model_with_a_plugin():
    model = arm("everything", "filter")
    data = state(model, 4)
    params = mujacobian.Parameters(model, [("body_mass", "hand")])
    (slope, *_) = mujacobian.jvp(model, data, params=params, d_params=np.ones(1))
    h, sides = 1e-5, []
    for sign in (1, -1):
        other = params.apply(params.values + sign * h)
        moved = mujoco.MjData(other)
        moved.qpos[:], moved.qvel[:], moved.act[:] = data.qpos, data.qvel, data.act
        moved.ctrl[:], moved.time = data.ctrl, data.time
        mujoco.mj_step(other, moved)
        sides.append(np.concatenate([moved.qpos, moved.qvel, moved.act]))
    expected = (sides[0] - sides[1]) / (2 * h)
    assert abs(expected).max() > 0
    np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-7 * abs(expected).max())


def test_gains_of_a_plugin_are_not_parameters():
    model = arm("PID")
    params = mujacobian.Parameters(model, [("actuator_gainprm", "first")])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"first.*plugin"):
        mujacobian.jvp(model, state(model, 0), params=params, d_params=params.values)


REFUSED = {
    "disabled": {"more": 'group="2"'},
    "tendon range": {"tendon": 'actuatorfrclimited="true" actuatorfrcrange="-1 1"'},
    "delay": {"more": 'delay=".01" nsample="4"'},
}


@pytest.mark.parametrize("case", REFUSED)
def test_pid_is_refused_by_name(case):
    model = arm("PD", **REFUSED[case])
    model.opt.disableactuator = 4
    assert [entry.element for entry in mujacobian.support(model) if "second" in entry.element]
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"first|second"):
        mujacobian.linearize(model, mujoco.MjData(model), sensors=False)


CABLE = """
<mujoco>
  <extension><plugin plugin="mujoco.elasticity.cable"><instance name="cable">
    <config key="bend" value="1e5"/><config key="twist" value="1e5"/></instance></plugin>
  </extension>
  <worldbody>
    <body name="B_first"><joint type="ball"/>
      <geom type="capsule" fromto="0 0 0 .1 0 0" size=".01"/><plugin instance="cable"/>
      <body name="B_last" pos=".1 0 0"><joint type="ball"/>
        <geom type="capsule" fromto="0 0 0 .1 0 0" size=".01"/><plugin instance="cable"/></body>
    </body>
  </worldbody>
</mujoco>"""


@pytest.mark.skipif(mujoco.mj_version() >= 4000000, reason="4.0 has no plugin of passive forces")
def test_other_plugins_are_refused_with_their_name():
    model = mujoco.MjModel.from_xml_string(CABLE)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"mujoco\.elasticity\.cable"):
        mujacobian.linearize(model, mujoco.MjData(model))


def test_an_actuator_of_another_plugin_is_refused():
    model, data = arm("P"), mujoco.MjData(arm("P"))
    ring = "<mujoco><extension><plugin plugin='mujoco.sdf.torus'><instance name='ring'/></plugin>"
    other = mujoco.MjModel.from_xml_string(f"{ring}</extension></mujoco>")
    model.plugin[:] = other.plugin[0]
    assert mujacobian.support(model)[0].element == 'actuator "first"'
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r"first.*plugin"):
        mujacobian.linearize(model, data)
