"""Identify the masses, damping and dry friction of an arm from noisy logs of its joints."""

import mujoco
import numpy as np

import mujacobian
from mujacobian.sysid import Identification, Log, identify

ARM = """
<mujoco model="arm">
  <option timestep=".002" integrator="implicitfast"/>
  <default>
    <geom type="capsule" size=".04" contype="0" conaffinity="0"/>
    <joint axis="0 1 0" armature=".05" damping=".5" frictionloss=".4"/>
    <motor ctrlrange="-40 40"/>
  </default>
  <worldbody>
    <body name="upper_arm" pos="0 0 1">
      <inertial mass="2" pos=".15 0 0" diaginertia=".004 .02 .02"/>
      <joint name="shoulder"/>
      <geom fromto="0 0 0 .3 0 0"/>
      <body name="forearm" pos=".3 0 0">
        <inertial mass="1.5" pos=".14 0 0" diaginertia=".002 .015 .015"/>
        <joint name="elbow" axis="0 .6 .8"/>
        <geom fromto="0 0 0 .3 0 0"/>
        <body name="hand" pos=".3 0 0">
          <inertial mass=".8" pos=".06 0 .01" diaginertia=".001 .002 .002"/>
          <joint name="wrist" armature=".02" damping=".2" frictionloss=".2"/>
          <geom fromto="0 0 0 .12 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="shoulder"/>
    <motor joint="elbow"/>
    <motor joint="wrist"/>
  </actuator>
  <sensor>
    <jointpos name="shoulder_angle" joint="shoulder" noise=".002"/>
    <jointpos name="elbow_angle" joint="elbow" noise=".002"/>
    <jointpos name="wrist_angle" joint="wrist" noise=".002"/>
    <jointvel name="shoulder_speed" joint="shoulder" noise=".02"/>
    <jointvel name="elbow_speed" joint="elbow" noise=".02"/>
    <jointvel name="wrist_speed" joint="wrist" noise=".02"/>
  </sensor>
</mujoco>
"""


def record(model: mujoco.MjModel, seed: int, steps: int = 500) -> Log:
    """Return a log of noisy sensor readings under sinusoidal motor torques."""
    rng = np.random.default_rng(seed)
    time = np.arange(steps)[:, None] * model.opt.timestep
    phase, frequency = rng.uniform(0, 2 * np.pi, size=3), rng.uniform(4, 9, size=3)
    controls = [14, 3, 0.5] + [12, 5, 2] * np.sin(frequency * time + phase)
    state = np.zeros(model.nq + model.nv)
    exact = mujacobian.rollout(model, state, controls).sensordata
    noise = np.repeat(model.sensor_noise, model.sensor_dim) * rng.normal(size=exact.shape)
    return Log(state, controls, exact + noise)


def main() -> tuple[Identification, np.ndarray]:
    """Identify the arm from a guess that is 30% off; return the result and the true values."""
    arm = mujoco.MjModel.from_xml_string(ARM)
    logs = [record(arm, seed) for seed in (0, 1)]

    truth = mujacobian.Parameters(arm, ["body_mass", "dof_damping", "dof_frictionloss"])
    guess = truth.values * np.random.default_rng(2).uniform(0.7, 1.3, size=len(truth))
    found = identify(truth, logs, start=guess)

    print(found)
    off = (found.values - truth.values) / found.standard_errors
    print(f"off by {off.round(1)} standard errors")
    print(f"{len(found.history) - 1} iterations, {found.steps} simulated steps: {found.message}")
    return found, truth.values


if __name__ == "__main__":
    main()
