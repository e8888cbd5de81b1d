"""Small models to control: linear ones with known optima, and a few nonlinear ones."""

from __future__ import annotations

import mujoco
import numpy as np

from mujacobian import control

SLIDES = """
<mujoco>
  <option timestep=".05" gravity="0 0 0"/>
  <worldbody>{bodies}</worldbody>
  <actuator>{motors}</actuator>
  <sensor>{sensors}</sensor>
</mujoco>
"""


def slides(count: int = 3, motors: int = 2, limits: str = "") -> mujoco.MjModel:
    """Return masses on springs with some motors, which is a linear system."""
    bodies = "".join(
        f'<body><joint name="s{k}" type="slide" axis="1 0 0" stiffness="{k + 1}" '
        f'damping="0.{k + 1}"/><geom size=".1" mass="{k + 1}" contype="0" conaffinity="0"/></body>'
        for k in range(count)
    )
    drives = "".join(f'<motor name="m{k}" joint="s{k}" {limits}/>' for k in range(motors))
    sensors = "".join(
        f'<jointpos name="p{k}" joint="s{k}"/><jointvel name="v{k}" joint="s{k}"/>'
        for k in range(count)
    )
    return mujoco.MjModel.from_xml_string(
        SLIDES.format(bodies=bodies, motors=drives, sensors=sensors)
    )


def quadratic_cost(model: mujoco.MjModel) -> control.Cost:
    """Return a cost of squared positions, velocities and controls of `slides`."""
    p = control.stack(*(control.sensor(model, f"p{k}") for k in range(model.nv)))
    v = control.stack(*(control.sensor(model, f"v{k}") for k in range(model.nv)))
    return control.Cost(
        model,
        [
            control.Term("position", p - 0.3),
            control.Term("velocity", v, weight=0.1),
            control.Term("effort", control.controls(model), weight=0.05),
        ],
    )


def tumbler() -> tuple[mujoco.MjModel, control.Cost]:
    """Return a model with a free body over a floor, an arm and an activation, and its cost."""
    model = mujoco.MjModel.from_xml_string(
        """
        <mujoco>
          <option timestep=".01" integrator="implicitfast"/>
          <worldbody>
            <geom name="floor" type="plane" size="5 5 .1" condim="3"/>
            <body name="hull" pos="0 0 .12">
              <freejoint/>
              <geom name="hull" type="sphere" size=".1" mass="1"/>
              <site name="tip" pos=".2 0 0"/>
              <body pos=".1 0 0">
                <joint name="arm" axis="0 1 0" damping=".05" armature=".01"/>
                <geom name="arm" type="capsule" size=".03" fromto="0 0 0 .2 0 0" mass=".3"/>
                <body pos=".2 0 0">
                  <joint name="hand" type="ball" damping=".05" armature=".01"/>
                  <geom name="hand" size=".05" mass=".2"/>
                </body>
              </body>
            </body>
          </worldbody>
          <actuator>
            <motor name="arm" joint="arm" gear="2" ctrllimited="true" ctrlrange="-1 1"/>
            <general name="hand" joint="hand" gear="0 1 0" dyntype="filter" dynprm=".05"/>
          </actuator>
          <sensor>
            <framepos name="tip" objtype="site" objname="tip"/>
            <framequat name="turn" objtype="body" objname="hull"/>
            <subtreelinvel name="drift" body="hull"/>
            <actuatorfrc name="force" actuator="arm"/>
            <jointpos name="angle" joint="arm"/>
          </sensor>
        </mujoco>
        """
    )
    cost = control.Cost(
        model,
        [
            control.Term("tip", control.sensor(model, "tip") - [0.2, 0.05, 0.2], control.L2(0.1)),
            control.Term("turn", control.sensor(model, "turn")[1:], control.SmoothAbs(0.1), 0.3),
            control.Term("drift", control.sensor(model, "drift"), weight=0.1),
            control.Term("force", control.sensor(model, "force") * 0.3, weight=0.01),
            control.Term("effort", control.controls(model), weight=0.01),
        ],
    )
    return model, cost


def pendulum(limit: float = 1.0) -> tuple[mujoco.MjModel, control.Cost]:
    """Return a pole to swing up, with a motor too weak to lift it directly, and its cost."""
    model = mujoco.MjModel.from_xml_string(
        f"""
        <mujoco>
          <option timestep=".02"/>
          <worldbody><body><joint name="pivot" axis="0 1 0" damping=".02"/>
            <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.5" mass=".5"/>
            <site name="tip" pos="0 0 -.5"/></body></worldbody>
          <actuator>
            <motor joint="pivot" ctrllimited="true" ctrlrange="-{limit} {limit}"/>
          </actuator>
          <sensor><framepos name="tip" objtype="site" objname="tip"/>
            <jointvel name="speed" joint="pivot"/></sensor>
        </mujoco>
        """
    )
    cost = control.Cost(
        model,
        [
            control.Term("tip", control.sensor(model, "tip") - [0, 0, 0.5], control.L2(0.2)),
            control.Term("speed", control.sensor(model, "speed"), weight=0.01),
            control.Term("effort", control.controls(model), weight=0.01),
        ],
    )
    return model, cost


def falling_cylinder() -> tuple[mujoco.MjModel, control.Cost]:
    """Return a cylinder above a flat height field, whose contact with it is not supported."""
    model = mujoco.MjModel.from_xml_string(
        """
        <mujoco>
          <option timestep=".01"/>
          <asset><hfield name="plain" nrow="3" ncol="3" size="1 1 .2 .1"
            elevation="0 0 0 0 0 0 0 0 1"/></asset>
          <worldbody>
            <geom name="field" type="hfield" hfield="plain"/>
            <body pos=".02 .01 .11">
              <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
              <geom name="can" type="cylinder" size=".1 .1"/></body>
          </worldbody>
          <actuator><motor joint="x" gear="20"/></actuator>
          <sensor><jointpos name="x" joint="x"/></sensor>
        </mujoco>
        """
    )
    cost = control.Cost(
        model,
        [
            control.Term("x", control.sensor(model, "x") - 0.1),
            control.Term("u", control.controls(model), weight=1e-4),
        ],
    )
    return model, cost


def random_state(model: mujoco.MjModel, seed: int) -> np.ndarray:
    """Return a random row (qpos, qvel, act) near the initial state."""
    rng = np.random.default_rng(seed)
    qpos = model.qpos0.copy()
    mujoco.mj_integratePos(model, qpos, rng.uniform(-0.3, 0.3, model.nv), 1.0)
    return np.concatenate([qpos, rng.uniform(-0.5, 0.5, model.nv), np.zeros(model.na)])
