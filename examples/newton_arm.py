"""Optimize the torques of an arm in Newton with a wp.Tape, so that its hand rests at a target."""

import newton
import numpy as np
import warp as wp
from scipy.optimize import minimize

from mujacobian.newton import DifferentiableMuJoCo

STEPS, DT = 40, 0.02
LINKS, LENGTH = 3, 0.3
TARGET = wp.vec3(0.5, 0.0, 0.35)
EFFORT = 1e-5


@wp.kernel
def reach(
    poses: wp.array[wp.transform],
    speeds: wp.array[float],
    target: wp.vec3,
    hand: wp.vec3,
    loss: wp.array[float],
) -> None:
    """Write the squared distance of the hand from the target plus squared joint speeds."""
    error = wp.transform_point(poses[2], hand) - target
    total = wp.dot(error, error)
    for i in range(3):
        total += 0.01 * speeds[i] * speeds[i]
    loss[0] = total


def build() -> newton.Model:
    """Return a hanging chain of three links with hinges."""
    builder = newton.ModelBuilder()
    inertia = wp.mat33(0.004, 0.0, 0.0, 0.0, 0.004, 0.0, 0.0, 0.0, 0.001)
    parent, joints = -1, []
    for k in range(LINKS):
        link = builder.add_link(mass=0.5, inertia=inertia, com=wp.vec3(0.0, 0.0, -LENGTH / 2))
        place = wp.transform(wp.vec3(0.0, 0.0, -LENGTH if k else 0.6))
        joints.append(
            builder.add_joint_revolute(
                parent, link, axis=(0, 1, 0), parent_xform=place, damping=0.05, armature=0.01
            )
        )
        parent = link
    builder.add_articulation(joints)
    return builder.finalize(requires_grad=True)


class Arm:
    """Simulations on a tape with given torques."""

    def __init__(self) -> None:
        self.model = build()
        self.solver = DifferentiableMuJoCo(self.model, use_mujoco_cpu=True, parameters=())
        self.states = [self.model.state() for _ in range(STEPS + 1)]
        self.controls = [self.model.control() for _ in range(STEPS)]

    def simulate(self, torques: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss of all torques and its gradient."""
        rows = torques.reshape(STEPS, LINKS)
        for control, row in zip(self.controls, rows, strict=True):
            control.joint_f.assign(row.astype(np.float32))
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for k, control in enumerate(self.controls):
                self.solver.step(self.states[k], self.states[k + 1], control, None, DT)
            end = self.states[-1]
            wp.launch(
                reach, 1, inputs=[end.body_q, end.joint_qd, TARGET, wp.vec3(0.0, 0.0, -LENGTH)],
                outputs=[loss],
            )  # fmt: skip
        tape.backward(loss)
        gradient = np.array([control.joint_f.grad.numpy() for control in self.controls])
        tape.zero()
        value = float(loss.numpy()[0]) + EFFORT * np.sum(rows**2)
        return value, (gradient.astype(np.float64) + 2 * EFFORT * rows).ravel()

    def hand(self) -> np.ndarray:
        """Return the final position of the hand."""
        pose = wp.transform(*self.states[-1].body_q.numpy()[-1].tolist())
        return np.array(wp.transform_point(pose, wp.vec3(0.0, 0.0, -LENGTH)))


def main() -> float:
    """Print and return the final distance of the hand from the target, m."""
    arm = Arm()
    found = minimize(
        arm.simulate,
        np.zeros(STEPS * LINKS),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 60},
    )
    arm.simulate(found.x)
    away = float(np.linalg.norm(arm.hand() - np.array(TARGET)))
    print(f"{found.nfev} simulations with gradients of {STEPS * LINKS} torques")
    print(f"the hand ends {away:.4f} m from the target")
    return away


if __name__ == "__main__":
    main()
