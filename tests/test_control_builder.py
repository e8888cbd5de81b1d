"""Rows of a specification: values, sensors that are added, and errors."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import control
from tests.test_control_cost import TOLERANCE, differences

XML = """
<mujoco>
  <option timestep=".005" integrator="implicitfast"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <camera name="eye" pos="0 -2 1" euler="60 0 0"/>
    <body name="hull" pos=".1 .2 .098" euler="7 5 20">
      <freejoint name="root"/>
      <geom name="hull" type="sphere" size=".1" mass="1.3"/>
      <site name="mark" pos=".05 0 .02" euler="10 20 30"/>
      <body name="arm" pos=".1 0 .05">
        <joint name="lift" axis="0 1 0" damping=".1" armature=".01"/>
        <geom name="rod" type="capsule" fromto="0 0 0 .2 0 .1" size=".02" mass=".3"/>
        <body name="slider" pos=".2 0 .1">
          <joint name="push" type="slide" axis="1 0 0" damping=".1"/>
          <geom name="cube" type="box" size=".03 .04 .05" mass=".2"/>
          <site name="tip" pos=".05 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="lift" joint="lift"/>
    <position name="push" joint="push" kp="20"/>
  </actuator>
  <sensor>
    <jointpos name="own" joint="lift"/>
    <framepos name="position:tip" objtype="geom" objname="cube"/>
  </sensor>
</mujoco>
"""
FIRST = ["own", "position:tip"]
# rounding of values of order 1
EXACT = 1e-12
ROWS = {
    "position": lambda r: r.position("tip"),
    "position of a geom": lambda r: r.position("hull", kind="geom"),
    "position in a frame": lambda r: r.position("tip", relative_to="mark"),
    "position in a camera": lambda r: r.position("tip", relative_to="eye"),
    "orientation": lambda r: r.orientation("tip"),
    "orientation with a target": lambda r: r.orientation("mark", [0.9, 0.1, -0.3, 0.2]),
    "axis": lambda r: r.axis("slider", "y"),
    "velocity": lambda r: r.velocity("tip"),
    "angular velocity": lambda r: r.angular_velocity("slider"),
    "joint positions": lambda r: r.joint_positions(),
    "joint velocities": lambda r: r.joint_velocities("push", "lift"),
    "joint torques": lambda r: r.joint_torques(),
    "controls": lambda r: r.controls(),
    "sensor": lambda r: r.sensor("own"),
    "center of mass": lambda r: r.center_of_mass(),
    "velocity of the center of mass": lambda r: r.center_of_mass_velocity("arm"),
    "momentum": lambda r: r.momentum("arm"),
    "angular momentum": lambda r: r.angular_momentum("hull"),
    "distance": lambda r: r.distance("cube", "floor", 1.0),
    "distance of bodies": lambda r: r.distance("slider", "hull", 1.0, kind="body"),
    "contact force": lambda r: r.contact_force("hull", "floor", kind="geom"),
    "slip": lambda r: r.foot_slip("tip", 0.3, ground=0.05),
}


def spec():
    return mujoco.MjSpec.from_string(XML)


def moving(model, z=None):
    """Return data in motion, with the sphere in contact, displaced by z = (x, u)."""
    rng = np.random.default_rng(3)
    data = mujoco.MjData(model)
    z = np.zeros(2 * model.nv + model.nu) if z is None else z
    data.qpos[7:] += rng.uniform(-0.3, 0.3, 2)
    data.qvel[:] = rng.uniform(-0.5, 0.5, model.nv)
    data.ctrl[:] = rng.uniform(-0.5, 0.5, model.nu)
    mujoco.mj_integratePos(model, data.qpos, np.ascontiguousarray(z[: model.nv]), 1.0)
    data.qvel += z[model.nv : 2 * model.nv]
    data.ctrl += z[2 * model.nv :]
    mujoco.mj_forward(model, data)
    return data


def read(model, rows, data):
    """Return the values of rows at a state."""
    terms = [control.Term(f"row {k}", rows[k], control.Null()) for k in range(len(rows))]
    return control.Cost(model, terms).by_term([data.sensordata], [data.ctrl], [0.0])[0]


def by_hand(model, data):
    """Return values of the rows from MuJoCo's own fields."""
    site, tip = data.site("mark"), data.site("tip")
    mark = site.xmat.reshape(3, 3)
    velocity = np.zeros((2, 6))
    for out, (kind, index) in zip(
        velocity,
        (
            (mujoco.mjtObj.mjOBJ_SITE, model.site("tip").id),
            (mujoco.mjtObj.mjOBJ_XBODY, model.body("slider").id),
        ),
        strict=True,
    ):
        mujoco.mj_objectVelocity(model, data, kind, index, out, 0)
    quat, turn = np.zeros(4), np.zeros(4)
    mujoco.mju_mat2Quat(quat, site.xmat)
    target = np.array([0.9, 0.1, -0.3, 0.2])
    target /= np.linalg.norm(target)
    mujoco.mju_mulQuat(turn, target * [1, -1, -1, -1], quat)
    mujoco.mj_subtreeVel(model, data)
    arm = model.body("arm").id
    force = np.zeros(6)
    mujoco.mj_contactForce(model, data, 0, force)
    near = 1 / (1 + np.exp((tip.xpos[2] - 0.05 - 0.3) / (0.25 * 0.3)))
    return {
        "position": tip.xpos,
        "position of a geom": data.geom("hull").xpos,
        "position in a frame": mark.T @ (tip.xpos - site.xpos),
        "orientation with a target": 2 * turn[1:],
        "axis": data.body("slider").xmat.reshape(3, 3)[:, 1],
        "velocity": velocity[0, 3:],
        "angular velocity": velocity[1, :3],
        "joint positions": data.qpos[7:],
        "joint velocities": data.qvel[[7, 6]],
        "joint torques": data.qfrc_actuator[6:],
        "controls": data.ctrl,
        "sensor": data.qpos[7:8],
        "center of mass": data.subtree_com[0],
        "velocity of the center of mass": data.subtree_linvel[arm],
        "momentum": model.body_subtreemass[arm] * data.subtree_linvel[arm],
        "angular momentum": data.subtree_angmom[model.body("hull").id],
        "contact force": data.contact[0].frame.reshape(3, 3).T @ force[:3],
        "slip": velocity[0, 3:5] * near,
    }


def test_rows_are_what_they_say():
    made = spec()
    residuals = control.residuals(made)
    rows = {name: make(residuals) for name, make in ROWS.items()}
    model = made.compile()
    data = moving(model)
    assert data.ncon == 1
    expected = by_hand(model, data)
    for name, wanted in expected.items():
        np.testing.assert_allclose(read(model, rows[name], data), wanted, atol=EXACT, err_msg=name)
        assert abs(np.asarray(wanted)).max() > 1e-3, name
    assert expected["contact force"][2] > 1  # the floor pushes upward
    corner = data.geom("cube").xpos[2] - abs(data.geom("cube").xmat.reshape(3, 3)[2]) @ (
        0.03,
        0.04,
        0.05,
    )
    assert read(model, rows["distance"], data) == pytest.approx([corner], abs=1e-9)


@pytest.mark.parametrize("name", ROWS)
def test_derivatives_of_rows_are_exact(name):
    made = spec()
    rows = ROWS[name](control.residuals(made))
    model = made.compile()
    cost = control.Cost(model, [control.Term("all", rows - 0.1, control.L2(0.3))])

    def value(z):
        data = moving(model, z)
        return cost([data.sensordata], [data.ctrl], [0.0])[0]

    data = moving(model)
    lin = mujacobian.linearize(mujacobian.converged(model), data)
    gradient, _ = cost.expand([data.sensordata], [data.ctrl], [0.0], [lin.C], [lin.D])
    model.opt.tolerance = 0  # differences of forces need a solver that converges
    zero = np.zeros(2 * model.nv + model.nu)
    expected = differences(value, zero, 1e-4 if name == "contact force" else 1e-3)
    # forces are of order 100 and have kinks nearby
    scale = max(1, abs(expected).max()) * (1e3 if name == "contact force" else 10)
    assert np.allclose(gradient[0], expected, atol=TOLERANCE * scale)
    assert abs(expected).max() > 1e-3


def test_existing_sensors_keep_their_order_and_names_are_unique():
    plain, made = spec().compile(), spec()
    residuals = control.residuals(made)
    first = [make(residuals) for make in ROWS.values()]
    again = [make(residuals) for make in ROWS.values()]
    others = control.residuals(made).position("tip")
    model = made.compile()
    names = [model.sensor(k).name for k in range(model.nsensor)]
    assert names[:2] == FIRST
    assert "position:tip:2" in names  # the name is taken by another quantity
    assert len(set(names)) == len(names)
    assert np.array_equal(model.sensor_adr[:2], plain.sensor_adr)
    assert np.array_equal(model.sensor_type[:2], plain.sensor_type)
    assert model.signature != plain.signature
    assert (model.nq, model.nv, model.nu, model.nkey) == (plain.nq, plain.nv, plain.nu, plain.nkey)
    # the same quantity uses the same sensor
    data = moving(model)
    for a, b in zip(first, again, strict=True):
        assert np.array_equal(read(model, a, data), read(model, b, data))
    assert names.count("position:tip:2") == 1
    assert np.array_equal(read(model, others, data), read(model, first[0], data))
    # the simulation does not change
    old, new = moving(plain), moving(model)
    for _ in range(20):
        mujoco.mj_step(plain, old)
        mujoco.mj_step(model, new)
    assert np.array_equal(old.qpos, new.qpos)


def test_rows_of_a_specification_and_of_its_model_can_be_combined():
    made = spec()
    tip = control.residuals(made).position("tip")
    model = made.compile()
    rows = control.stack(tip[2] + control.sensor(model, "own"), np.sin(tip[0]))
    data = moving(model)
    x = data.site("tip").xpos
    assert np.allclose(read(model, rows, data), [x[2] + data.qpos[7], np.sin(x[0])], atol=EXACT)


def test_a_planner_uses_the_rows():
    made = spec()
    residuals = control.residuals(made)
    terms = [
        control.Term("reach", residuals.position("tip") - [0.4, 0.2, 0.3], control.L2(0.1)),
        control.Term("still", residuals.joint_velocities(), weight=0.01),
        control.Term("slip", residuals.foot_slip("hull", 0.05, ground=0.1, kind="body")),
        control.Term("effort", residuals.controls(), weight=0.01),
    ]
    model = made.compile()
    planned = control.planning_model(model, timestep=0.01)
    plan = control.ILQR(planned, control.Cost(planned, terms), 30).solve(mujoco.MjData(model))
    assert plan.cost < 0.9 * plan.initial_cost
    assert not plan.refused


def test_wrong_names_and_arguments_raise():
    made = spec()
    residuals = control.residuals(made)
    with pytest.raises(TypeError, match=r"must be a mujoco\.MjSpec, got MjModel: load"):
        control.residuals(made.compile())
    with pytest.raises(ValueError, match='has no frame "tpi": did you mean tip'):
        residuals.position("tpi")
    with pytest.raises(ValueError, match='"hull" is the name of a body and of a geom: choose'):
        residuals.position("hull")
    with pytest.raises(ValueError, match='has no camera "tip": did you mean eye'):
        residuals.velocity("tip", kind="camera")
    with pytest.raises(ValueError, match="kind must be one of site, body, geom, camera"):
        residuals.velocity("tip", kind="tendon")
    with pytest.raises(ValueError, match='has no frame "": did you mean'):
        residuals.velocity("")
    with pytest.raises(ValueError, match='has no joint "lfit": did you mean lift'):
        residuals.joint_positions("lfit")
    with pytest.raises(ValueError, match=r'joint "root" is not a hinge or slide.*body "hull"'):
        residuals.joint_positions("root")
    with pytest.raises(ValueError, match='has no body "hul": did you mean hull'):
        residuals.momentum("hul")
    with pytest.raises(ValueError, match='has no geom or body "cub": did you mean cube'):
        residuals.distance("cub", "floor", 1.0)
    with pytest.raises(ValueError, match="cutoff must be a positive number"):
        residuals.distance("cube", "floor", 0.0)
    with pytest.raises(ValueError, match='"cube" has no distance to itself'):
        residuals.distance("cube", "cube", 1.0)
    with pytest.raises(ValueError, match="clearance must be a positive number"):
        residuals.foot_slip("tip", -1.0)
    with pytest.raises(ValueError, match='axis must be "x", "y" or "z"'):
        residuals.axis("tip", "w")
    with pytest.raises(ValueError, match="quaternion that is not zero"):
        residuals.orientation("tip", np.zeros(4))
    with pytest.raises(ValueError, match='has no sensor "owm": did you mean own'):
        residuals.sensor("owm")
    assert len(made.sensors) == 2  # nothing was added
    model = made.compile()
    late = control.Term("late", residuals.velocity("tip"))
    with pytest.raises(ValueError, match=r'"late" reads the sensor "velocity:tip".*compile'):
        control.Cost(model, [late])
    made.joint("lift").name = ""
    made.sensors[0].objname, made.actuators[0].target = "push", "push"
    with pytest.raises(ValueError, match='a joint of body "arm" has no name'):
        residuals.joint_velocities()
    other = mujoco.MjSpec.from_string(XML.replace('<motor name="lift" joint="lift"/>', ""))
    with pytest.raises(ValueError, match='term "effort" has rows of another model'):
        control.Cost(other.compile(), [control.Term("effort", residuals.controls())])
