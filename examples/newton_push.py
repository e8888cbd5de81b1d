"""Push a box in Newton so that it slides to a target and friction stops it there."""

import newton
import numpy as np
import warp as wp
from scipy.optimize import minimize

from mujacobian.newton import DifferentiableMuJoCo

STEPS, PUSHED, DT = 60, 15, 0.01
TARGET = np.array([0.35, 0.2])


@wp.kernel
def distance(
    pose: wp.array[float], velocity: wp.array[float], target: wp.vec2, loss: wp.array[float]
) -> None:
    """Write the squared distance of the box from the target plus a penalty on its speed."""
    x, y = pose[0] - target[0], pose[1] - target[1]
    vx, vy = velocity[0], velocity[1]
    loss[0] = x * x + y * y + 0.01 * (vx * vx + vy * vy)


def build() -> newton.Model:
    """Return a box that lies on the ground."""
    builder = newton.ModelBuilder()
    builder.default_shape_cfg.mu = 0.3
    builder.default_shape_cfg.density = 1000.0
    box = builder.add_body(xform=wp.transform(wp.vec3(0.0, 0.0, 0.0199)))
    builder.add_shape_box(box, hx=0.1, hy=0.1, hz=0.02)
    builder.add_ground_plane()
    return builder.finalize(requires_grad=True)


class Push:
    """Simulations on a tape with given forces."""

    def __init__(self) -> None:
        self.model = build()
        self.solver = DifferentiableMuJoCo(
            self.model, use_mujoco_cpu=True, cone="elliptic", parameters=()
        )
        self.states = [self.model.state() for _ in range(STEPS + 1)]
        self.control = self.model.control()
        self.force = wp.zeros(1, dtype=wp.spatial_vector, requires_grad=True)
        for state in self.states[:PUSHED]:
            state.body_f = self.force  # the same force in all these steps

    def simulate(self, push: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss of a horizontal force and its gradient."""
        wrench = np.zeros((1, 6), dtype=np.float32)
        wrench[0, :2] = push
        self.force.assign(wrench)
        self.solver.reset(self.states[0])
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for before, after in zip(self.states[:-1], self.states[1:], strict=True):
                self.solver.step(before, after, self.control, None, DT)
            wp.launch(
                distance, 1, inputs=[after.joint_q, after.joint_qd, wp.vec2(*TARGET)],
                outputs=[loss],
            )  # fmt: skip
        tape.backward(loss)
        gradient = self.force.grad.numpy()[0, :2].astype(np.float64)
        tape.zero()
        return float(loss.numpy()[0]), gradient


def main() -> float:
    """Print and return the final distance of the box from the target, m."""
    push = Push()
    found = minimize(push.simulate, np.array([12.0, 4.0]), jac=True, method="L-BFGS-B")
    push.simulate(found.x)
    end = push.states[-1].joint_q.numpy()[:2]
    away = float(np.linalg.norm(end - TARGET))
    print(f"{found.nfev} simulations with gradients")
    print(f"a push of {found.x[0]:.2f} N, {found.x[1]:.2f} N leaves the box {away:.4f} m away")
    return away


if __name__ == "__main__":
    main()
