"""The robots of the speed table: bare kinematic trees from the URDFs of `example-robot-data`."""

import sys
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

SHARE = "cmeel.prefix/share/example-robot-data/robots"


@dataclass(frozen=True)
class Robot:
    """A URDF file of `example-robot-data`, and whether its base floats."""

    name: str
    urdf: str
    floating: bool

    @property
    def path(self) -> Path:
        """The installed URDF file."""
        for folder in sys.path:
            path = Path(folder) / SHARE / self.urdf
            if path.exists():
                return path
        raise FileNotFoundError(f"no {self.urdf}: pip install example-robot-data")


ROBOTS = (
    Robot("panda", "panda_description/urdf/panda.urdf", floating=False),
    Robot("solo12", "solo_description/robots/solo12.urdf", floating=True),
    Robot("talos", "talos_data/robots/talos_reduced.urdf", floating=True),
)


def load(robot: Robot) -> mujoco.MjModel:
    """Return the robot without geometry or constraints, with motors on all joints and Euler."""
    spec = mujoco.MjSpec.from_file(str(robot.path))
    for element in [*spec.geoms, *spec.meshes]:
        spec.delete(element)
    if robot.floating:
        spec.worldbody.first_body().add_freejoint()
    for joint in spec.joints:
        if joint.type in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    model = spec.compile()
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model


def random_data(model: mujoco.MjModel, seed: int) -> mujoco.MjData:
    """Return data at a random configuration, velocity and control, after mj_forward."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, 0.5 * rng.standard_normal(model.nv), 1.0)
    data.qvel[:] = rng.standard_normal(model.nv)
    data.ctrl[:] = rng.standard_normal(model.nu)
    mujoco.mj_forward(model, data)
    return data
