"""Identify the mass and damping of a pendulum in Newton from angles, with a wp.Tape."""

import newton
import numpy as np
import warp as wp
from scipy.optimize import minimize

from mujacobian.newton import DifferentiableMuJoCo

STEPS, DT = 100, 0.01
TRUTH = np.array([1.3, 0.25])  # kg, N m s/rad
GUESS = np.array([1.0, 0.1])


@wp.kernel
def squared_error(
    angle: wp.array[float], measured: wp.array[float], step: int, loss: wp.array[float]
) -> None:
    """Add the squared error of one angle."""
    error = angle[0] - measured[step]
    wp.atomic_add(loss, 0, error * error)


def build() -> newton.Model:
    """Return a rod with known inertia that hangs from a hinge."""
    builder = newton.ModelBuilder()
    inertia = wp.mat33(0.05, 0.0, 0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 0.01)
    rod = builder.add_link(mass=1.0, inertia=inertia, com=wp.vec3(0.0, 0.0, -0.4))
    builder.add_articulation([builder.add_joint_revolute(-1, rod, axis=(0, 1, 0))])
    builder.joint_q[0] = 1.2
    return builder.finalize(requires_grad=True)


class Pendulum:
    """Simulations on a tape with given parameters."""

    def __init__(self) -> None:
        self.model = build()
        self.solver = DifferentiableMuJoCo(
            self.model, use_mujoco_cpu=True, parameters=("body_mass", "joint_damping")
        )
        self.states = [self.model.state() for _ in range(STEPS + 1)]
        self.control = self.model.control()
        self.measured = wp.zeros(STEPS, dtype=float)

    def simulate(self, parameters: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the angles, their squared error and its gradient."""
        mass, damping = self.model.body_mass, self.model.joint_damping
        mass.assign(parameters[:1].astype(np.float32))
        damping.assign(parameters[1:].astype(np.float32))
        self.solver.notify_model_changed(newton.ModelFlags.ALL)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for step in range(STEPS):
                before, after = self.states[step : step + 2]
                self.solver.step(before, after, self.control, None, DT)
                wp.launch(
                    squared_error, 1, inputs=[after.joint_q, self.measured, step], outputs=[loss]
                )
        tape.backward(loss)
        gradient = np.array([mass.grad.numpy()[0], damping.grad.numpy()[0]], dtype=np.float64)
        tape.zero()
        angles = np.array([state.joint_q.numpy()[0] for state in self.states[1:]])
        return angles, float(loss.numpy()[0]), gradient


def main() -> np.ndarray:
    """Print and return the identified parameters."""
    pendulum = Pendulum()
    pendulum.measured.assign(pendulum.simulate(TRUTH)[0])
    found = minimize(
        lambda p: pendulum.simulate(p)[1:],
        GUESS,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.1, 5), (0, 2)],
    )
    print(f"{found.nfev} simulations with gradients")
    for name, value, truth in zip(("mass", "damping"), found.x, TRUTH, strict=True):
        print(f"{name:8} {value:.5f}, true value {truth}")
    return found.x


if __name__ == "__main__":
    main()
