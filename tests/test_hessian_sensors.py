"""Second derivatives of sensors against differences of C and D, and their errors."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.oracle.second_order import cotangent, differences, joined, judge
from tests.scenes.cases import INTEGRATORS, random_state, sample
from tests.test_hessian import ROWS, pendulum
from tests.test_hvp import judge as judge_product
from tests.test_sensors import BODIES

TOLERANCE = 1e-8
INTEGRATORS_COVERED = ("euler", "implicitfast", "implicit", "euler_explicit")

# Objects in a chain, in another tree, and static ones; references above, below and beside them.
OBJECTS = (
    ("xbody", "tip"),
    ("body", "base"),
    ("geom", "lower"),
    ("site", "touch"),
    ("camera", "wrist"),
    ("site", "lamp"),
)
REFERENCES = (
    ("xbody", "arm"),
    ("site", "beacon"),
    ("site", "held"),
    ("site", "mount"),
    ("geom", "nail"),
)
RELATIVE = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis")
FAMILIES = {
    **{name: "frame" for name in (*RELATIVE, "framelinvel", "frameangvel")},
    **{name: "absolute" for name in ("framelinacc", "frameangacc")},
    **{name: "site" for name in ("gyro", "velocimeter", "accelerometer", "magnetometer")},
    **{name: "subtree" for name in ("subtreecom", "subtreelinvel", "subtreeangmom")},
    **{name: "wrench" for name in ("force", "torque")},
    "ballquat": "joint",
}

ACTUATED = """
<mujoco>
  <option timestep=".004"/>
  <worldbody>
    <body>
      <joint name="a" axis="0 1 0"/>
      <geom size=".1" pos=".3 0 0"/>
      <body pos=".4 0 0">
        <joint name="b" axis="0 0 1" actuatorfrcrange="-.6 .6"/>
        <geom size=".1" pos=".2 .1 0"/>
        <body pos=".3 0 0">
          <joint name="ball" type="ball"/>
          <geom size=".1" pos=".2 0 .1"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="mix"><joint joint="a" coef=".4"/><joint joint="b" coef="-.7"/></fixed>
  </tendon>
  <actuator>
    <general name="bilinear" joint="a" gear="3" gaintype="affine" gainprm="1 .5 .2"
             biastype="affine" biasprm=".1 -2 -.3"/>
    <general name="clamped" joint="a" gaintype="affine" gainprm="1 9 9" forcerange="-.01 .01"/>
    <general name="slow" joint="b" gear=".4" dyntype="filter" dynprm=".1" gaintype="affine"
             gainprm="1 2 3"/>
    <general name="winch" tendon="mix" gear="2" gaintype="affine" gainprm="1 .5 .2"
             biastype="affine" biasprm=".1 -2 -.3"/>
    <motor name="pull" tendon="mix" gear="1.2"/>
    <general name="aim" joint="ball" gear=".3 .5 1" gaintype="affine" gainprm="2 1 1"
             biastype="affine" biasprm="0 -1.5 -.1"/>
  </actuator>
  <sensor>{sensors}</sensor>
</mujoco>"""
ACTUATORS = ("bilinear", "clamped", "slow", "winch", "pull", "aim")


def machine(kind, integrator="euler"):
    """Return a machine with all sensors of a type."""
    made = []
    match FAMILIES[kind]:
        case "frame" | "absolute":
            for k, (thing, name) in enumerate(OBJECTS):
                made.append(f'<{kind} objtype="{thing}" objname="{name}"/>')
                for step in (0, 2) if FAMILIES[kind] == "frame" else ():
                    ref, about = REFERENCES[(k + step) % len(REFERENCES)]
                    made.append(
                        f'<{kind} objtype="{thing}" objname="{name}" reftype="{ref}" '
                        f'refname="{about}"/>'
                    )
        case "site":
            made = [f'<{kind} site="{name}"/>' for name in ("imu", "touch", "beacon", "lamp")]
        case "wrench":
            made = [f'<{kind} site="{name}"/>' for name in ("imu", "mount", "touch", "beacon")]
        case "subtree":
            bodies = ("world", "base", "bracket", "drone", "pole")
            made = [f'<{kind} body="{name}"/>' for name in bodies]
        case "joint":
            made = [f'<{kind} joint="{name}"/>' for name in ("shoulder", "gimbal")]
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option timestep=".003" magnetic="1 2 3"><flag constraint="disable"/></option>
        <worldbody>{BODIES.replace("LIMITED", "false")}</worldbody>
        <actuator><motor joint="elbow"/></actuator>
        <sensor>{"".join(made)}</sensor>
      </mujoco>""")
    INTEGRATORS[integrator](model)
    return model


def weights(model, seed=3):
    return np.random.default_rng(seed).normal(size=model.nsensordata)


@pytest.mark.parametrize(("kind", "integrator"), sample(4, FAMILIES, INTEGRATORS_COVERED))
def test_sensors_of_motion(kind, integrator):
    model = machine(kind, integrator)
    data = random_state(model, np.random.default_rng(0), forces=True)
    assert data.xfrc_applied.any()
    judge(model, data, sensed=weights(model), tolerance=TOLERANCE, forces=True)
    judge_product(model, data, cotangent(model), weights(model))


@pytest.mark.parametrize("kind", ["framelinvel", "accelerometer", "torque"])
def test_rest_positions(kind):
    """Rotations by zero, and no velocity."""
    model = machine(kind)
    judge(model, mujoco.MjData(model), sensed=weights(model), tolerance=TOLERANCE)


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
@pytest.mark.parametrize("kind", ["actuatorpos", "actuatorvel", "actuatorfrc"])
def test_actuators(kind, integrator):
    sensors = "".join(f'<{kind} actuator="{name}"/>' for name in ACTUATORS)
    model = mujoco.MjModel.from_xml_string(ACTUATED.format(sensors=sensors))
    INTEGRATORS[integrator](model)
    for seed in range(2):
        data = random_state(model, np.random.default_rng(seed))
        judge(model, data, sensed=weights(model), tolerance=TOLERANCE)


def test_actuator_forces_of_joints_and_tendons():
    """The force on joint b is saturated in some of the states."""
    sensors = '<jointactuatorfrc joint="a"/><jointactuatorfrc joint="b"/>'
    sensors += '<tendonactuatorfrc tendon="mix"/><tendonpos tendon="mix"/><tendonvel tendon="mix"/>'
    sensors += '<jointpos joint="a"/><jointvel joint="b"/><ballangvel joint="ball"/><clock/>'
    model = mujoco.MjModel.from_xml_string(ACTUATED.format(sensors=sensors))
    saturated = set()
    for seed in range(4):
        data = random_state(model, np.random.default_rng(seed))
        judge(model, data, sensed=weights(model), tolerance=TOLERANCE)
        saturated.add(bool(abs(data.qfrc_actuator[1]) >= 0.6))
    assert saturated == {True, False}


def test_lengths_of_spatial_tendons():
    """The tendon couples two trees, and wraps around a sphere."""
    bodies = BODIES.replace("LIMITED", "false")
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option><flag constraint="disable"/></option>
        <worldbody>
          {bodies}<geom name="bump" size=".2" pos=".6 .1 1" contype="0" conaffinity="0"/>
        </worldbody>
        <tendon>
          <spatial name="cord">
            <site site="anchor"/><site site="mount"/><pulley divisor="2"/>
            <site site="imu"/><geom geom="bump"/><site site="beacon"/>
          </spatial>
        </tendon>
        <sensor><tendonpos tendon="cord"/></sensor>
      </mujoco>""")
    for seed in range(2):
        data = random_state(model, np.random.default_rng(seed))
        judge(model, data, sensed=np.ones(1), tolerance=TOLERANCE)
        judge_product(model, data, cotangent(model), np.ones(1))
        assert (data.wrap_obj >= 0).any()


@pytest.mark.parametrize("integrator", INTEGRATORS_COVERED)
def test_accelerations_of_constrained_trees(integrator):
    """Limits, friction and couplings act, and one component has none of them."""
    model = mujoco.MjModel.from_xml_string(
        ROWS.format(flag="")
        .replace(
            "</mujoco>",
            '<sensor><framelinacc objtype="body" objname="hand"/><frameangacc objtype="body" '
            'objname="hand"/><framelinvel objtype="body" objname="hand" reftype="body" '
            'refname="other"/><framelinacc objtype="body" objname="other"/></sensor></mujoco>',
        )
        .replace(
            '<body pos=".1 0 .1">\n              <joint name="d"',
            '<body name="hand" pos=".1 0 .1">\n              <joint name="d"',
        )
        .replace('<body pos="1 0 0">', '<body name="other" pos="1 0 0">')
    )
    INTEGRATORS[integrator](model)
    for seed in range(2):
        data = random_state(model, np.random.default_rng(seed))
        judge(model, data, sensed=weights(model), tolerance=TOLERANCE)
        judge_product(model, data, cotangent(model), weights(model))
        assert data.nefc > 3


def test_values_beyond_a_cutoff_are_constant():
    model, data = pendulum(
        rest='<sensor><framepos objtype="site" objname="bob" cutoff=".5"/></sensor>'
    )
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    mujoco.mj_forward(model, data)
    clamped = abs(data.sensordata) >= 0.5
    assert clamped.any()
    assert not clamped.all()
    d_sensors = np.array([1.0, 2.0, 3.0])
    found = mujacobian.hessian(model, data, [0, 0], d_sensors).xx
    assert found.any()
    expected = mujacobian.hessian(model, data, [0, 0], np.where(clamped, 0, d_sensors)).xx
    assert (found == expected).all()
    judge(model, data, sensed=d_sensors, tolerance=TOLERANCE)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SENSOR
    assert not mujacobian.hessian(model, data, [0, 0], d_sensors).xx.any()


def test_the_result_is_the_sum_over_sensors_and_states():
    model = machine("frameangvel")
    data = random_state(model, np.random.default_rng(1))
    next_state, sensed = cotangent(model), weights(model)
    nothing = np.zeros_like(next_state)
    parts = [
        joined(mujacobian.hessian(model, data, next_state)),
        joined(mujacobian.hessian(model, data, nothing, sensed)),
    ]
    both = joined(mujacobian.hessian(model, data, next_state, sensed))
    np.testing.assert_allclose(both, sum(parts), atol=1e-12 * abs(both).max())
    assert (both == both.T).all()
    again = joined(mujacobian.hessian(model, data, next_state, sensed))
    assert (both == again).all()
    assert abs(parts[1][: model.nv, : model.nv]).max() > 0


def test_batches_have_sensors():
    model = machine("framelinacc")
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = np.empty((4, mujoco.mj_stateSize(model, spec)))
    controls = np.random.default_rng(0).normal(size=(4, model.nu))
    d_states = np.random.default_rng(1).normal(size=(4, 2 * model.nv))
    d_sensors = np.random.default_rng(2).normal(size=(4, model.nsensordata))
    datas = [random_state(model, np.random.default_rng(k)) for k in range(4)]
    for row, data, control in zip(states, datas, controls, strict=True):
        mujoco.mj_getState(model, data, row, spec)
        data.ctrl[:] = control
        data.qacc_warmstart[:] = 0
    batch = mujacobian.hessian_batch(model, states, controls, d_states, d_sensors, threads=2)
    for k, data in enumerate(datas):
        one = mujacobian.hessian(model, data, d_states[k], d_sensors[k])
        assert (batch.xx[k] == one.xx).all()
        assert (batch.xu[k] == one.xu).all()


REFUSED = {
    "centroid": '<contact name="s" reduce="netforce" data="pos"/>',
    "net torque": '<contact name="s" reduce="netforce" data="force torque"/>',
}


@pytest.mark.parametrize("kind", REFUSED)
def test_sensors_without_second_derivative_raise_with_their_name(kind):
    model, data = pendulum(rest=f"<sensor><clock/>{REFUSED[kind]}</sensor>")
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    count = model.nsensordata
    assert np.isfinite(mujacobian.hessian(model, data, [1, 2], np.zeros(count)).xx).all()
    mujacobian.hessian(model, data, [1, 2], np.eye(count)[0])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='sensor "s"') as raised:
        mujacobian.hessian(model, data, [1, 2], np.ones(count))
    assert "second derivatives" in raised.value.reason
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='sensor "s"'):
        mujacobian.hvp(model, data, [1, 2], [], [1, 2], np.ones(count))
    assert [u.element for u in mujacobian.support(model, order=2)] == ['sensor "s"']


def test_cameras_that_follow_a_body_raise():
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option><flag constraint="disable"/></option>
        <worldbody>{BODIES.replace("LIMITED", "false")}</worldbody>
        <sensor>
          <framepos name="seen" objtype="site" objname="imu" reftype="camera" refname="track"/>
        </sensor>
      </mujoco>""")
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='sensor "seen"'):
        mujacobian.hessian(model, mujoco.MjData(model), np.ones(2 * model.nv), np.ones(3))


def test_differences_know_the_part_of_sensors():
    """The oracle itself: the second derivative of the height of a pendulum is known."""
    model, data = pendulum(
        rest='<sensor><framepos objtype="site" objname="bob"/></sensor>',
        option='gravity="0 0 0"',
    )
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    found = differences(model, data, np.zeros(2), np.array([0.0, 0, 1])).hessian
    np.testing.assert_allclose(found, [[0.5 * np.cos(0.3), 0], [0, 0]], atol=1e-10)
