"""The checks of MuJoCo's own tests of derivatives, with our functions and models.

They cover linear systems with sensors and inverse in closed form, clamped controls, an unchanged
state, quaternions at small and large angles, skipped blocks and sensors, disabled and permuted
actuators, and dense and sparse Jacobians.
"""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.scenes.cases import INTEGRATORS, snapshot

CLOSED_FORM_TOLERANCE = 1e-12  # MuJoCo's tests require 1e-6 of its finite differences
ROTATION_TOLERANCE = 1e-12  # MuJoCo's tests require 1e-7
ANGLES = (0.0, 1e-9, 1e-5, 1e-2, 1.0, 4.0)  # rad in one step
REPEATS = 10

MASSES, ARMATURE = (2.0, 0.7, 0.4), (0.1, 0.0, 0.2)
STIFFNESS, DAMPING = (30.0, 12.0, 50.0), (0.8, 0.2, 1.5)
GEARS = ((2.0, 0.0, 0.0), (0.0, 0.5, -3.0))  # a motor on a joint, and one on a tendon of two joints
TIMESTEP = 0.01

LINEAR = f"""
<mujoco>
  <option timestep="{TIMESTEP}"/>
  <default><joint type="slide" axis="1 0 0"/></default>
  <worldbody>
    <body>
      <joint name="x0" stiffness="30" damping=".8" armature=".1"/>
      <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
      <body>
        <joint name="x1" stiffness="12" damping=".2"/>
        <inertial pos="0 0 0" mass=".7" diaginertia="1 1 1"/>
        <body name="end">
          <joint name="x2" stiffness="50" damping="1.5" armature=".2"/>
          <inertial pos="0 0 0" mass=".4" diaginertia="1 1 1"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="pair"><joint joint="x1" coef=".5"/><joint joint="x2" coef="-3"/></fixed>
  </tendon>
  <actuator>
    <motor name="drive" joint="x0" gear="2" ctrlrange="-1 1"/>
    <motor name="pull" tendon="pair" ctrlrange="-1 1"/>
  </actuator>
  <sensor>
    <jointpos joint="x1"/><jointvel joint="x2"/><tendonpos tendon="pair"/>
    <tendonvel tendon="pair"/><actuatorpos actuator="drive"/><actuatorfrc actuator="pull"/>
    <framepos objtype="xbody" objname="end"/><framelinvel objtype="xbody" objname="end"/>
    <framelinacc objtype="xbody" objname="end"/>
  </sensor>
</mujoco>"""


def mass_matrix():
    carried = np.cumsum(MASSES[::-1])[::-1]
    return np.array([[carried[max(i, j)] for j in range(3)] for i in range(3)]) + np.diag(ARMATURE)


def continuous_system(*, implicit):
    """Return F and G of (x, v)' = F (x, v) + G u; damping is in the mass matrix if implicit."""
    M = mass_matrix()
    H = M + TIMESTEP * np.diag(DAMPING) if implicit else M
    forces = np.hstack([-np.diag(STIFFNESS), -np.diag(DAMPING), np.transpose(GEARS)])
    speeds = np.hstack([np.zeros((3, 3)), np.eye(3), np.zeros((3, 2))])
    system = np.vstack([speeds, np.linalg.solve(H, forces)])
    return system[:, :6], system[:, 6:]


def linear_system(integrator="euler"):
    """Return A and B of one step: v' = v + h (F, G) (x, v, u), x' = x + h v', or four stages."""
    F, G = continuous_system(implicit=integrator not in ("euler_explicit", "rk4"))
    h, eye = TIMESTEP, np.eye(6)
    if integrator == "rk4":
        powers = [eye, h * F, h**2 * F @ F / 2, h**3 * F @ F @ F / 6, h**4 * F @ F @ F @ F / 24]
        means = sum(power / (k + 1) for k, power in enumerate(powers[:4]))
        return sum(powers), h * means @ G
    lift = np.vstack([np.hstack([np.zeros((3, 3)), h * np.eye(3)]), np.eye(6)[3:]])
    still = np.vstack([eye[:3] + h * eye[3:], eye[3:]])
    J = h * lift @ np.hstack([F, G])
    return still + J[:, :6], J[:, 6:]


def linear_sensors():
    """Return C, D and the rows of accelerations; sensors are evaluated before any integrator."""
    ends = np.zeros((3, 3))
    ends[0] = 1  # all bodies move along x, the last one with all joints
    pull = np.array([GEARS[1]])
    nothing = np.zeros((1, 3))
    positions = [np.eye(3)[1:2], nothing, pull, nothing, GEARS[0] * np.eye(3)[:1], nothing, ends]
    velocities = [nothing, np.eye(3)[2:], nothing, pull, nothing, nothing, 0 * ends, ends]
    q = np.vstack([*positions, 0 * ends, 0 * ends])
    v = np.vstack([*velocities, 0 * ends])
    a = np.vstack([np.zeros((12, 3)), ends])
    F, G = (x[3:] for x in continuous_system(implicit=False))
    D = a @ G
    D[5, 1] = 1  # the force of an actuator is its control
    return np.hstack([q, v]) + a @ F, D, a


def load_linear(integrator="euler"):
    model = mujoco.MjModel.from_xml_string(LINEAR)
    INTEGRATORS[integrator](model)
    data = mujoco.MjData(model)
    data.ctrl[:] = 0.1, -0.1
    mujoco.mj_step(model, data, 20)
    return model, data


@pytest.mark.parametrize("integrator", sorted(set(INTEGRATORS) - {"discrete"}))
def test_linear_system(integrator):
    lin = mujacobian.linearize(*load_linear(integrator))
    A, B = linear_system(integrator)
    np.testing.assert_allclose(lin.A, A, rtol=CLOSED_FORM_TOLERANCE, atol=1e-15)
    np.testing.assert_allclose(lin.B, B, rtol=CLOSED_FORM_TOLERANCE, atol=1e-15)


@pytest.mark.parametrize("integrator", sorted(set(INTEGRATORS) - {"discrete"}))
def test_sensors_of_a_linear_system(integrator):
    lin = mujacobian.linearize(*load_linear(integrator))
    C, D, _ = linear_sensors()
    np.testing.assert_allclose(lin.C, C, rtol=CLOSED_FORM_TOLERANCE, atol=1e-14)
    np.testing.assert_allclose(lin.D, D, rtol=CLOSED_FORM_TOLERANCE, atol=1e-15)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_sensors_are_skipped(integrator):
    """Without C and D, A and B are the same, and values of sensors do not change."""
    model, data = load_linear(integrator)
    lin = mujacobian.linearize(model, data)
    mujoco.mj_forward(model, data)
    data.sensordata[:] = 7
    A, B = np.full_like(lin.A, np.nan), np.full_like(lin.B, np.nan)
    mujacobian.transition(model, data, A, B, forward=False)
    # sensors of accelerations use another code path of the same solve
    np.testing.assert_allclose(A, lin.A, rtol=CLOSED_FORM_TOLERANCE, atol=1e-15)
    np.testing.assert_allclose(B, lin.B, rtol=CLOSED_FORM_TOLERANCE, atol=1e-15)
    assert (data.sensordata == 7).all()
    alone = mujacobian.linearize(model, data, sensors=False)
    assert alone.C is None
    assert alone.D is None
    np.testing.assert_array_equal(alone.A, A)
    np.testing.assert_array_equal(alone.B, B)
    C = np.full_like(lin.C, np.nan)
    mujacobian.transition(model, data, C=C)
    np.testing.assert_array_equal(C, lin.C)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
def test_linear_inverse_system(integrator, discrete):
    """f = M a + damping v + stiffness x; with discrete time, the matrix includes the damping."""
    model, data = load_linear(integrator)
    M, ns = mass_matrix(), model.nsensordata
    H = M
    if discrete:
        model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_INVDISCRETE
        H = M + TIMESTEP * np.diag(DAMPING)
    mujoco.mj_forward(model, data)
    force = [np.full((3, 3), np.nan) for _ in range(3)]
    sensed = [np.full((3, ns), np.nan) for _ in range(3)]
    inertia = np.full((3, model.nC), np.nan)
    mujacobian.inverse(model, data, *force, *sensed, inertia)
    for given, expected in zip(force, (np.diag(STIFFNESS), np.diag(DAMPING), H), strict=True):
        np.testing.assert_allclose(given, expected, rtol=CLOSED_FORM_TOLERANCE, atol=1e-12)
    assert not inertia.any()
    C, _, a = linear_sensors()
    C -= a @ continuous_system(implicit=False)[0][3:]
    accelerations = a @ np.linalg.solve(M, H)
    for given, expected in zip(sensed, (C[:, :3], C[:, 3:], accelerations), strict=True):
        np.testing.assert_allclose(given.T, expected, rtol=CLOSED_FORM_TOLERANCE, atol=1e-12)


def test_controls_at_their_limits_have_the_derivative_from_inside():
    model, data = load_linear()
    _, B = linear_system()
    for ctrl in ((1, -1), (-1, 1)):
        data.ctrl[:] = ctrl
        lin = mujacobian.linearize(model, data)
        np.testing.assert_allclose(lin.B, B, rtol=CLOSED_FORM_TOLERANCE, atol=1e-15)


def test_controls_beyond_their_limits_have_no_effect():
    model, data = load_linear()
    A, _ = linear_system()
    for ctrl in ((2, -2), (-1.5, 1 + 1e-12)):
        data.ctrl[:] = ctrl
        lin = mujacobian.linearize(model, data)
        assert not lin.B.any()
        np.testing.assert_allclose(lin.A, A, rtol=CLOSED_FORM_TOLERANCE, atol=1e-15)
        assert tuple(data.ctrl) == ctrl


def test_one_control_beyond_its_limit_leaves_the_other():
    model, data = load_linear()
    _, B = linear_system()
    data.ctrl[:] = 3, 0.5
    lin = mujacobian.linearize(model, data)
    assert not lin.B[:, 0].any()
    np.testing.assert_allclose(lin.B[:, 1], B[:, 1], rtol=CLOSED_FORM_TOLERANCE, atol=1e-15)


MIXED = """
<mujoco>
  <worldbody>
    <geom type="plane" size="3 3 .1"/>
    <body mocap="true"><geom size=".01" contype="0" conaffinity="0"/></body>
    <body pos="0 0 1">
      <freejoint/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".05"/>
      <body pos=".3 0 0">
        <joint name="ball" type="ball"/>
        <geom type="box" size=".1 .05 .03" pos=".1 0 0"/>
        <body pos=".2 0 0">
          <joint name="hinge" axis="0 1 0" damping=".1"/>
          <geom size=".05" pos=".1 .02 0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="drive" joint="hinge"/><velocity joint="hinge" kv="2"/></actuator>
</mujoco>"""


def load_mixed():
    """Return a state without zeros and with quaternions that are not normalized."""
    model = mujoco.MjModel.from_xml_string(MIXED)
    data = mujoco.MjData(model)
    data.time = 0.5
    data.qpos[:] = 1 + np.arange(model.nq)
    data.qvel[:] = 2 + np.arange(model.nv)
    data.ctrl[:] = 1 + np.arange(model.nu)
    data.qfrc_applied[:] = 0.1 * np.arange(model.nv)
    data.xfrc_applied[:] = 0.2
    data.mocap_pos[:] = 3
    data.qacc_warmstart[:] = 4
    return model, data


def test_the_state_is_not_changed():
    model, data = load_mixed()
    before = snapshot(model, data)
    lin = mujacobian.linearize(model, data, forces=True)
    assert snapshot(model, data) == before
    mujacobian.transition(model, data, lin.A, lin.B)
    assert snapshot(model, data) == before
    mujacobian.diagnose(model, data)
    assert snapshot(model, data) == before


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_length_of_a_quaternion_does_not_matter(integrator):
    model, data = load_mixed()
    INTEGRATORS[integrator](model)
    mujoco.mj_normalizeQuat(model, data.qpos)
    lin = mujacobian.linearize(model, data)
    for start in (3, 7):
        data.qpos[start : start + 4] *= 8
    longer = mujacobian.linearize(model, data)
    for block in ("A", "B"):
        expected = getattr(lin, block)
        np.testing.assert_allclose(
            getattr(longer, block), expected, atol=1e-11 * abs(expected).max()
        )


def skew(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def exp_series(w, shift):
    """Return the sum of (-1)^k [w]^k / (k + shift)!: exp(-w) for 0, its right Jacobian for 1."""
    total, term = np.zeros((3, 3)), np.eye(3)
    for k in range(60):
        total += term / (1 if k + shift == 0 else np.prod(np.arange(1.0, k + shift + 1)))
        term = -term @ skew(w)
    return total


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("joint", ['<joint type="ball"/>', "<freejoint/>"])
def test_quaternion_integration(joint, angle):
    """A body that turns freely has q' = q exp(h v): dq'/dq = exp(-h v), dq'/dv = h Jr(h v)."""
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option gravity="0 0 0" timestep="{TIMESTEP}"/><worldbody><body>{joint}'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    turn = slice(model.nv - 3, model.nv)
    speed = slice(2 * model.nv - 3, 2 * model.nv)
    rng = np.random.default_rng(int(1e9 * angle) % 2**32)
    for _ in range(REPEATS):
        axis, quaternion = rng.normal(size=3), rng.normal(size=4)
        w = angle * axis / np.linalg.norm(axis)
        data.qpos[-4:] = quaternion / np.linalg.norm(quaternion)
        data.qvel[-3:] = w / TIMESTEP
        A = mujacobian.linearize(model, data).A
        np.testing.assert_allclose(A[turn, turn], exp_series(w, 0), atol=ROTATION_TOLERANCE)
        expected = TIMESTEP * exp_series(w, 1)
        np.testing.assert_allclose(A[turn, speed], expected, atol=ROTATION_TOLERANCE * TIMESTEP)
        np.testing.assert_allclose(A[speed, speed], np.eye(3), atol=ROTATION_TOLERANCE)


def test_blocks_are_skipped():
    model, data = load_mixed()
    lin = mujacobian.linearize(model, data)
    A, B = np.full_like(lin.A, np.nan), np.full_like(lin.B, np.nan)
    mujacobian.transition(model, data)
    mujacobian.transition(model, data, A)
    mujacobian.transition(model, data, None, B, None, None)
    np.testing.assert_array_equal(A, lin.A)
    np.testing.assert_array_equal(B, lin.B)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_disabled_actuators_do_not_contribute(integrator):
    """They do not contribute to A through damping either, which implicit integrators include."""
    actuators = '<position name="{}" joint="hinge" group="{}" kp="200" kv="20"/>'
    text = MIXED[: MIXED.index("<actuator>")] + "{}<actuator>{}</actuator></mujoco>"
    one = actuators.format("on", 1)
    two = one + actuators.format("off", 2)
    lins = []
    for option, elements in (("", one), ('<option actuatorgroupdisable="2"/>', two)):
        model = mujoco.MjModel.from_xml_string(text.format(option, elements))
        INTEGRATORS[integrator](model)
        data = mujoco.MjData(model)
        data.qvel[:] = 1
        data.ctrl[:] = 6
        lins.append(mujacobian.linearize(model, data))
    alone, beside = lins
    np.testing.assert_array_equal(beside.A, alone.A)
    np.testing.assert_array_equal(beside.B[:, :1], alone.B)
    assert not beside.B[:, 1].any()
    assert alone.B.any()


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_order_of_actuators_does_not_matter(integrator):
    elements = [
        '<motor joint="hinge" gear="3"/>',
        '<damper joint="hinge" kv="20" ctrlrange="0 6"/>',
    ]
    head = MIXED[: MIXED.index("<actuator>")]
    lins = []
    for order in (elements, elements[::-1]):
        model = mujoco.MjModel.from_xml_string(
            head + f"<actuator>{''.join(order)}</actuator></mujoco>"
        )
        INTEGRATORS[integrator](model)
        data = mujoco.MjData(model)
        data.qvel[:], data.ctrl[:] = 1, 4
        lins.append(mujacobian.linearize(model, data))
    scale = abs(lins[0].A).max()
    np.testing.assert_allclose(lins[1].A, lins[0].A, atol=1e-13 * scale)
    np.testing.assert_allclose(lins[1].B[:, ::-1], lins[0].B, atol=1e-13 * scale)


def test_dense_and_sparse_jacobians_agree():
    model, data = load_mixed()
    data.qpos[:] = mujoco.MjData(model).qpos
    data.qpos[2] = 0.049
    lins = []
    for kind in (mujoco.mjtJacobian.mjJAC_DENSE, mujoco.mjtJacobian.mjJAC_SPARSE):
        model.opt.jacobian = kind
        lins.append(mujacobian.linearize(model, data))
        assert data.ncon
    for block in ("A", "B"):
        dense, sparse = (getattr(lin, block) for lin in lins)
        np.testing.assert_allclose(sparse, dense, atol=1e-9 * abs(dense).max())
