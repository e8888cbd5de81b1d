"""Swing up a pendulum with a motor that is too weak to lift it, by shooting with L-BFGS."""

import mujoco
import numpy as np
from scipy.optimize import minimize

import mujacobian

PENDULUM = """
<mujoco model="pendulum">
  <option timestep=".02" integrator="implicitfast"/>
  <worldbody>
    <body name="rod">
      <joint name="pivot" axis="0 1 0" damping=".05"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".02" mass=".1"/>
      <geom type="sphere" pos="0 0 -.5" size=".05" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor joint="pivot"/></actuator>
</mujoco>
"""
STEPS = 150
TORQUE = 2.0  # N m; holding the rod level takes 5.2 N m
EFFORT = 1e-3


def main() -> np.ndarray:
    """Print the numbers of iterations and rollouts; return the states of the swing-up."""
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    hanging = np.zeros(2)

    def loss(u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss, from the final angle and speed and the effort, and its gradient."""
        controls = u.reshape(STEPS, 1)
        trajectory = mujacobian.rollout(model, hanging, controls)
        angle, speed = trajectory.states[-1]
        value = 10 * (1 + np.cos(angle)) + speed**2 / 2 + EFFORT * np.sum(u**2)

        d_states = np.zeros_like(trajectory.states)
        d_states[-1] = -10 * np.sin(angle), speed
        gradient = trajectory.gradient(d_states).controls + 2 * EFFORT * controls
        return value, gradient.ravel()

    first = 0.1 * np.random.default_rng(0).normal(size=STEPS)
    limits = [(-TORQUE, TORQUE)] * STEPS
    found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=limits)

    states = mujacobian.rollout(model, hanging, found.x.reshape(STEPS, 1)).states
    angle, speed = states[-1]
    print(f"{found.nit} iterations, {found.nfev} rollouts with gradients")
    print(f"the rod ends {np.pi - abs(angle):.4f} rad from upright at {speed:.4f} rad/s")
    return states


if __name__ == "__main__":
    main()
