"""Newton models that have every kind of joint, contact, constraint and actuator."""

import newton
import numpy as np
import warp as wp

wp.config.quiet = True
DOF = newton.ModelBuilder.JointDofConfig
INERTIA = wp.mat33(0.02, 0.001, 0.0, 0.001, 0.03, 0.002, 0.0, 0.002, 0.025)


class Builder(newton.ModelBuilder):
    """A builder with random frames."""

    def __init__(self, seed=0, **options):
        super().__init__(**options)
        newton.solvers.SolverMuJoCo.register_custom_attributes(self)
        self.rng = np.random.default_rng(seed)

    def quat(self):
        q = self.rng.normal(size=4)
        return wp.quat(*(q / np.linalg.norm(q)).tolist())

    def vec(self, scale):
        return wp.vec3(*(scale * self.rng.normal(size=3)).tolist())

    def frames(self, scale=0.2):
        return {
            "parent_xform": wp.transform(self.vec(scale), self.quat()),
            "child_xform": wp.transform(self.vec(scale), self.quat()),
        }

    def body(self, label, com=0.1, **options):
        return self.add_link(mass=1.0, inertia=INERTIA, com=self.vec(com), label=label, **options)


def add_tree(b):
    """A free base with a hinge, a slide, a ball and a D6 joint, all frames turned and shifted."""
    base, arm, slider, ball, six = (
        b.body(name) for name in ("base", "arm", "slider", "ball", "six")
    )
    drive = {"target_ke": 3.0, "target_kd": 0.2}
    position = newton.JointTargetMode.POSITION
    both = newton.JointTargetMode.POSITION_VELOCITY
    b.add_articulation(
        [
            b.add_joint_free(parent=-1, child=base, label="free", **b.frames()),
            b.add_joint_revolute(
                base, arm, axis=(0, 1, 0), label="hinge", actuator_mode=position, damping=0.1,
                armature=0.01, **drive, **b.frames(),
            ),
            b.add_joint_prismatic(
                arm, slider, axis=(1, 0, 0), label="slide", actuator_mode=both, **drive,
                **b.frames(),
            ),
            b.add_joint_ball(arm, ball, label="ball", **b.frames()),
            b.add_joint_d6(
                ball,
                six,
                linear_axes=[DOF(axis=(1, 0, 0))],
                angular_axes=[
                    DOF(axis=a, target_ke=1.0, target_kd=0.1, actuator_mode=both)
                    for a in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
                ],
                label="six",
                **b.frames(),
            ),
        ]
    )  # fmt: skip


def tree(seed=0, **finalize):
    b = Builder(seed)
    add_tree(b)
    return b.finalize(requires_grad=True, **finalize)


def random_state(model, seed=1, scale=0.3):
    """A state and a control with random numbers, quaternions normalised."""
    rng = np.random.default_rng(seed)
    state, control = model.state(), model.control()
    q = state.joint_q.numpy() + scale * rng.normal(size=model.joint_coord_count)
    starts, kinds = model.joint_q_start.numpy(), model.joint_type.numpy()
    for start, kind in zip(starts, kinds, strict=False):
        if kind in (newton.JointType.FREE, newton.JointType.BALL):
            first = start + (3 if kind == newton.JointType.FREE else 0)
            q[first : first + 4] /= np.linalg.norm(q[first : first + 4])
    state.joint_q.assign(q.astype(np.float32))
    state.joint_qd.assign(rng.normal(size=model.joint_dof_count).astype(np.float32))
    state.body_f.assign(rng.normal(size=(model.body_count, 6)).astype(np.float32))
    control.joint_f.assign(rng.normal(size=model.joint_dof_count).astype(np.float32))
    for name in ("joint_target_q", "joint_target_qd"):
        array = getattr(control, name)
        values = array.numpy() + 0.3 * rng.normal(size=array.shape)
        array.assign(values.astype(np.float32))
    direct = getattr(getattr(control, "mujoco", None), "ctrl", None)
    if direct is not None:
        direct.assign(rng.normal(size=direct.shape).astype(np.float32))
    return state, control
