"""Identify the friction and mass of a box from logs of a finger that pushes it."""

import mujoco
import numpy as np

import mujacobian
from mujacobian.sysid import Identification, Log, identify

SCENE = """
<mujoco model="pushed box">
  <option timestep=".002" cone="elliptic" impratio="10"/>
  <!-- forces begin at zero, so that readings are continuous functions of the parameters -->
  <default><geom solimp="0 .95 .001" solref=".01 1"/></default>
  <worldbody>
    <geom type="plane" size="2 1 .1"/>
    <body name="box" pos="0 0 .03">
      <freejoint/>
      <geom name="box" type="box" size=".08 .08 .03" mass="1.2" friction=".4" priority="1"/>
    </body>
    <body name="finger" pos="-.1 0 .025">
      <joint name="finger" type="slide" axis="1 0 0" damping="1"/>
      <geom type="sphere" size=".02" mass=".3" condim="1" priority="2"/>
    </body>
  </worldbody>
  <actuator><motor joint="finger"/></actuator>
  <sensor>
    <jointpos name="finger" joint="finger" noise=".0005"/>
    <framepos name="box" objtype="body" objname="box" noise=".0005"/>
  </sensor>
</mujoco>
"""


def record(model: mujoco.MjModel, push: float, seed: int) -> Log:
    """Return a log of noisy sensor readings while the finger pushes with an oscillating force."""
    time = np.arange(400)[:, None] * model.opt.timestep
    controls = push * (1 + 0.5 * np.sin(12 * time))
    data = mujoco.MjData(model)
    exact = mujacobian.rollout(model, data, controls).sensordata
    noise = np.repeat(model.sensor_noise, model.sensor_dim)
    rng = np.random.default_rng(seed)
    return Log(data, controls, exact + noise * rng.normal(size=exact.shape))


def main() -> tuple[Identification, np.ndarray]:
    """Identify the box from a guess that is too light and too slippery."""
    model = mujoco.MjModel.from_xml_string(SCENE)
    logs = [record(model, push, seed) for seed, push in enumerate((6.5, 8))]

    parameters = mujacobian.Parameters(model, [("body_mass", "box"), ("geom_friction", "box")])
    guess = parameters.values * [0.6, 0.6, 1, 1]
    # the box is at rest initially, so its first state is known
    found = identify(parameters, logs, start=guess, initial_states="given")

    # the log does not determine torsional and rolling friction, so their errors are infinite
    print(found)
    print(f"truth {parameters.values}")
    print(f"{len(found.history) - 1} iterations, {found.steps} simulated steps: {found.message}")
    return found, parameters.values


if __name__ == "__main__":
    main()
