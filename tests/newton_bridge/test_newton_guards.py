"""Features without a derivative raise clear errors."""

import subprocess
import sys
import warnings
from importlib.metadata import PackageNotFoundError

import mujoco
import newton
import numpy as np
import pytest
import scenes
import warp as wp
from scipy.spatial.transform import Rotation

import mujacobian
from mujacobian import MujacobianError, UnsupportedFeatureError
from mujacobian.newton import DifferentiableMuJoCo, guards, internals, mirror

DT = 0.005


@pytest.fixture(scope="module")
def pendulum():
    return scenes.mimic()


def taped_step(solver, before, after, control, dt=DT):
    with wp.Tape() as tape:
        solver.step(before, after, control, None, dt)
    return tape


def test_given_contacts_in_c(pendulum):
    with pytest.raises(UnsupportedFeatureError, match="use_mujoco_contacts=False"):
        DifferentiableMuJoCo(pendulum, use_mujoco_contacts=False, use_mujoco_cpu=True)


@pytest.mark.parametrize("kind", ["distance", "rod"])
def test_joints_that_newton_refuses(kind):
    b = scenes.Builder()
    first, second = b.body("first"), b.body("second")
    joint = b.add_joint_distance if kind == "distance" else b.add_joint_rod
    b.add_articulation(
        [
            b.add_joint_revolute(-1, first, axis=(0, 1, 0)),
            joint(first, second, label="rope"),
        ]
    )
    with pytest.raises(UnsupportedFeatureError, match=rf"rope.*no {kind.upper()} joints"):
        DifferentiableMuJoCo(b.finalize(requires_grad=True), use_mujoco_cpu=True)


def test_versions(pendulum, monkeypatch):
    monkeypatch.setattr(internals, "version", lambda name: "4.0.0")
    with pytest.raises(MujacobianError, match=r"pip install 'mujacobian\[newton\]'"):
        DifferentiableMuJoCo(pendulum, use_mujoco_cpu=True)


def test_newton_without_its_simulators(pendulum, monkeypatch):
    """`pip install newton` brings neither MuJoCo nor mujoco_warp."""

    def version(name):
        if name.startswith("mujoco"):
            raise PackageNotFoundError(name)
        return f"{internals.VERSIONS[name]}.0"

    monkeypatch.setattr(internals, "version", version)
    with pytest.raises(MujacobianError, match=r"found none: pip install 'mujacobian\[newton\]'"):
        DifferentiableMuJoCo(pendulum, use_mujoco_cpu=True)


def test_missing_extra():
    code = (
        "import sys; sys.modules['newton'] = None\n"
        "try: import mujacobian.newton\n"
        "except ImportError as error: print(error)\n"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'mujacobian[newton]'" in made.stdout


def test_parameters(pendulum):
    for name in ("joint_axis", "shape_gap", "mujoco.dof_ref"):
        with pytest.raises(UnsupportedFeatureError, match=f"{name}.*gradients are those of body_m"):
            DifferentiableMuJoCo(pendulum, use_mujoco_cpu=True, parameters=[name])
    with pytest.raises(ValueError, match="the model has no body_color"):
        DifferentiableMuJoCo(pendulum, use_mujoco_cpu=True, parameters=["body_color"])
    without = scenes.Builder()
    scenes.add_tree(without)
    model = without.finalize()
    with pytest.raises(ValueError, match="requires_grad=True"):
        DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=["body_mass"])


def test_control_and_states(pendulum):
    solver = DifferentiableMuJoCo(pendulum, use_mujoco_cpu=True)
    before, after, control = pendulum.state(), pendulum.state(), pendulum.control()
    with pytest.raises(MujacobianError, match=r"model.control\(\)"):
        taped_step(solver, before, after, None)
    with pytest.raises(MujacobianError, match="state_out does not require gradients"):
        taped_step(solver, before, pendulum.state(requires_grad=False), control)
    with pytest.raises(ValueError, match="coords"):
        solver.linearize(before, control, DT, coords="polar")
    with pytest.raises(ValueError, match="world must be between 0 and 0"):
        solver.linearize(before, control, DT, world=1)
    with pytest.raises(ValueError, match="B has no columns of 'wind'"):
        solver.linearize(before, control, DT).block("wind")


def test_captured_steps(pendulum):
    """A captured step without a tape is Newton's; a graph would not replay a derivative."""
    solver = DifferentiableMuJoCo(pendulum, use_mujoco_cpu=True)
    before, after, control = pendulum.state(), pendulum.state(), pendulum.control()
    with (
        pytest.raises(UnsupportedFeatureError, match="a captured step on a tape"),
        wp.Tape(),
        wp.ScopedCapture(device=pendulum.device),
    ):
        solver.step(before, after, control, None, DT)


def test_parameters_with_states_that_have_no_gradient(pendulum):
    solver = DifferentiableMuJoCo(pendulum, use_mujoco_cpu=True, parameters=["body_mass"])
    before, after = (pendulum.state(requires_grad=False) for _ in range(2))
    with pytest.raises(MujacobianError, match="state_out does not require gradients"):
        taped_step(solver, before, after, pendulum.control(requires_grad=False))


def test_losses_on_more_than_the_state(pendulum):
    """Accelerations and forces have no gradient; a loss that depends on them raises an error."""
    solver = DifferentiableMuJoCo(pendulum, parameters=())
    more = solver.observables({"body_qdd", "qfrc_actuator"})
    before, after, control = pendulum.state(), pendulum.state(), pendulum.control()
    with wp.Tape() as tape:
        solver.step(before, after, control, None, DT, observables=more)
    tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})
    assert before.joint_qd.grad.numpy().any()
    for name in ("body_qdd", "qfrc_actuator"):
        tape.zero()
        array = getattr(more, name)
        with pytest.raises(UnsupportedFeatureError, match=f"a loss on {name}"):
            tape.backward(grads={array: wp.ones_like(array)})


@pytest.mark.filterwarnings("ignore:The legacy DOF-shaped joint_target_q")
def test_balls_with_targets_as_angles(monkeypatch):
    monkeypatch.setattr(newton, "use_coord_layout_targets", False)
    model = scenes.ball_targets(newton.JointTargetMode.POSITION)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
    with pytest.raises(UnsupportedFeatureError, match="Euler angles"):
        taped_step(solver, model.state(), model.state(), model.control())


def test_bodies_of_the_global_world():
    """Their gravity differs from that of the world in which they are simulated."""
    b, world = scenes.Builder(), scenes.Builder()
    for builder in (b, world):
        builder.add_articulation([builder.add_joint_free(parent=-1, child=builder.body("body"))])
    b.add_world(world)
    model = b.finalize(requires_grad=True)
    before, after, control = model.state(), model.state(), model.control()
    masses = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=["body_mass"])
    taped_step(masses, before, after, control)  # allowed while both are equal
    model.gravity.assign(model.gravity.numpy() * [[1.0], [0.5]])
    masses.notify_model_changed(newton.ModelFlags.MODEL_PROPERTIES)
    for name in ("body_mass", "gravity"):
        solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=[name])
        with pytest.raises(UnsupportedFeatureError, match=f"{name}.*body of the global world"):
            taped_step(solver, before, after, control)


def test_simple_bodies_cannot_move_their_center():
    """Newton's own models have no simple bodies; one with them could not be edited."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body name="one"><freejoint/><geom size="0.1"/></body></worldbody>
        </mujoco>"""
    )
    assert model.body_simple[1]
    with pytest.raises(UnsupportedFeatureError, match=r'"one".*make a new solver'):
        mirror.write(model, {"body_ipos": np.array([[0, 0, 0], [0.1, 0, 0]])})


def test_planes_on_bodies():
    b = scenes.Builder()
    body = b.body("body")
    b.add_articulation([b.add_joint_free(parent=-1, child=body)])
    b.add_shape_plane(body=body, width=1.0, length=1.0)
    with pytest.raises(ValueError, match="Planes can only be attached to static bodies"):
        DifferentiableMuJoCo(b.finalize(requires_grad=True), use_mujoco_cpu=True)


def test_linearize_under_rk4_has_no_columns_of_wrenches():
    model = scenes.resting("sphere")
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, integrator="rk4", parameters=())
    before, control = model.state(), model.control()
    assert "body_f" not in solver.linearize(before, control, DT).layout.inputs


def test_resets_between_steps_that_continue(pendulum):
    solver = DifferentiableMuJoCo(pendulum, use_mujoco_cpu=True, update_data_interval=2)
    with wp.Tape(), pytest.raises(UnsupportedFeatureError, match="update_data_interval=2"):
        solver.reset(pendulum.state())


def test_targets_of_balls_beyond_half_a_turn():
    """MuJoCo shifts the setpoint by a turn, but not if the gain or the stiffness changes alone."""
    model = scenes.ball_targets(newton.JointTargetMode.POSITION)
    names = ["joint_target_ke"]
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=names)
    before, after, control = model.state(), model.state(), model.control()
    # about the first axis of MuJoCo's frame
    anchor = Rotation.from_quat(model.joint_X_c.numpy()[1, 3:])
    for array, angle in ((before.joint_q, -1.7), (control.joint_target_q, 1.7)):
        q = array.numpy()
        q[1:5] = Rotation.from_rotvec(anchor.inv().apply([angle, 0, 0])).as_quat()
        array.assign(q)
    tape = taped_step(solver, before, after, control)
    with pytest.raises(UnsupportedFeatureError, match="half a turn"):
        tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})


def test_parameters_without_derivative_are_refused_with_a_hint():
    """The contact of a cylinder with a box has no derivative with respect to their sizes."""
    model = scenes.resting("cylinder", "box")
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=["shape_scale"])
    before, control = scenes.touching(model, solver)
    after = model.state()
    tape = taped_step(solver, before, after, control)
    with pytest.raises(UnsupportedFeatureError, match="sizes of its geoms") as caught:
        tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})
    assert "parameters=()" in caught.value.__notes__[-1]


def test_divergence(pendulum):
    solver = DifferentiableMuJoCo(pendulum, use_mujoco_cpu=True)
    before, after, control = pendulum.state(), pendulum.state(), pendulum.control()
    before.joint_qd.fill_(1e30)
    for _ in range(3):  # MuJoCo resets its count of warnings each time
        with pytest.raises(MujacobianError, match="diverges"):
            taped_step(solver, before, after, control)


def test_room_for_contacts():
    """There are two spheres on the ground, and memory for one contact."""
    b = scenes.Builder()
    b.default_shape_cfg.density = 0.0
    for x in (0.0, 1.0):
        body = b.add_link(mass=1.0, inertia=scenes.INERTIA)
        b.add_articulation([b.add_joint_free(parent=-1, child=body)])
        b.add_shape_sphere(body, radius=0.1)
        b.joint_q[-7:-4] = [x, 0.0, 1.0]
    b.add_ground_plane()
    model = b.finalize(requires_grad=True)
    solver = DifferentiableMuJoCo(model, nconmax=1, njmax=20)
    before, after, control = model.state(), model.state(), model.control()
    q = before.joint_q.numpy()
    q[[2, 9]] = 0.099
    before.joint_q.assign(q)
    with pytest.raises(MujacobianError, match="larger nconmax"):
        taped_step(solver, before, after, control)


@pytest.mark.parametrize(("count", "left_out"), [(100, "constraints"), (150, "contacts")])
def test_room_in_c(count, left_out, monkeypatch, tmp_path):
    """MuJoCo C drops contacts that do not fit into its memory; here that is an error."""
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its warnings to a file
    model = scenes.crowd(count)
    solver = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
    before, after, control = model.state(), model.state(), model.control()
    with pytest.raises(MujacobianError, match="no room for all contacts or constraints"):
        taped_step(solver, before, after, control)
    assert (solver.mj_data.ncon < count**2) == (left_out == "contacts")
    with pytest.raises(MujacobianError, match="no room"):
        solver.linearize(before, control, DT)
    with monkeypatch.context() as patch:  # as if mujoco_warp, which has room, had taken the step
        patch.setattr(guards.Watch, "judge", lambda self: None)
        tape = taped_step(solver, before, after, control)
    with pytest.raises(MujacobianError, match="no room"):
        tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})


@pytest.mark.parametrize("kind", ["box", "cone"])
def test_contacts_that_differ_are_reported(kind):
    """One warning says that contacts differ; gradients are those of MuJoCo C."""
    model = scenes.resting(kind)
    solver = DifferentiableMuJoCo(model, parameters=())
    before, control = scenes.touching(model, solver)
    after = model.state()
    for differ in (kind == "cone", False):
        tape = taped_step(solver, before, after, control)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tape.backward(grads={after.joint_qd: wp.ones_like(after.joint_qd)})
        messages = [str(each.message) for each in caught if each.category is RuntimeWarning]
        assert len(messages) == differ
        assert not differ or "mujoco_warp found 3 contacts" in messages[0]
        assert before.joint_qd.grad.numpy().any()


def test_no_finite_differences():
    assert mujacobian.fd_count() == 0


def test_outside_a_tape_nothing_is_kept(pendulum):
    solver = DifferentiableMuJoCo(pendulum, use_mujoco_cpu=True)
    before, after, control = pendulum.state(), pendulum.state(), pendulum.control()
    solver.step(before, after, control, None, DT)
    assert solver._last is None
    assert np.isfinite(after.joint_q.numpy()).all()
    assert isinstance(solver, newton.solvers.SolverMuJoCo)
