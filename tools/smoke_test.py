"""Check an installed mujacobian in a few seconds: versions, a contact, a gradient.

`make wheels` and cibuildwheel run this file in an environment with nothing but the wheel and its
dependencies.
"""

from __future__ import annotations

import platform

import mujoco
import numpy as np

import mujacobian

# A motor pushes a ball over a plane. Only friction turns the ball.
MODEL = """
<mujoco>
  <option cone="elliptic" solver="Newton" tolerance="1e-12" iterations="100"/>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 0.0998">
      <joint name="forward" type="slide" axis="1 0 0"/>
      <joint type="slide" axis="0 0 1"/>
      <joint name="roll" axis="0 1 0" damping="0.01"/>
      <geom type="sphere" size="0.1"/>
    </body>
  </worldbody>
  <actuator><motor joint="forward"/></actuator>
  <sensor><jointpos joint="roll"/></sensor>
</mujoco>
"""
DIFFERENCE = 1e-6  # step of the centered differences
TOLERANCE = 1e-4  # of the differences, which are only a rough check
STEPS = 20


def check_linearization(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Return the largest difference between `linearize` and centered differences."""
    nx = 2 * model.nv + model.na
    A, B = np.zeros((nx, nx)), np.zeros((nx, model.nu))
    C, D = np.zeros((model.nsensordata, nx)), np.zeros((model.nsensordata, model.nu))
    mujoco.mjd_transitionFD(model, data, DIFFERENCE, True, A, B, C, D)
    lin = mujacobian.linearize(model, data)
    pairs = ((lin.A, A), (lin.B, B), (lin.C, C), (lin.D, D))
    return max(np.abs(exact - rough).max() / (1 + np.abs(rough).max()) for exact, rough in pairs)


def check_gradient(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Return the relative error of the gradient of the last angle, against differences."""
    controls = np.full((STEPS, model.nu), 0.1)
    direction = np.random.default_rng(0).standard_normal(controls.shape)

    def last_angle(controls: np.ndarray) -> float:
        return float(mujacobian.rollout(model, data, controls).sensordata[-1, 0])

    trajectory = mujacobian.rollout(model, data, controls)
    d_sensors = np.zeros_like(trajectory.sensordata)
    d_sensors[-1, 0] = 1
    exact = np.vdot(trajectory.gradient(d_sensors=d_sensors).controls, direction)
    change = DIFFERENCE * direction
    rough = (last_angle(controls + change) - last_angle(controls - change)) / (2 * DIFFERENCE)
    return abs(exact - rough) / abs(rough)


def main() -> None:
    """Print the versions and the errors; raise if an error is too large."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.1, -0.1, 0
    mujoco.mj_forward(model, data)
    assert data.ncon == 1, "the ball must touch the plane"
    errors = {
        "linearize": check_linearization(model, data),
        "gradient": check_gradient(model, data),
    }
    print(
        f"mujacobian {mujacobian._core.version()}, MuJoCo {mujoco.__version__}, "
        f"NumPy {np.__version__}, Python {platform.python_version()}, {platform.platform()}"
    )
    for name, error in errors.items():
        print(f"{name}: {error:.1e} from centered differences")
        assert error < TOLERANCE, f"{name} must agree with differences to {TOLERANCE:g}"


if __name__ == "__main__":
    main()
