"""Time of C and D in addition to A and B: a standing A1 with thirty sensors of many kinds."""

from pathlib import Path

import mujoco
import numpy as np

from benchmarks.speed import transition_calls
from benchmarks.timing import best
from mujacobian.control import tasks

A1 = Path(tasks.__file__).with_name("a1.xml")
LEGS = ("FL", "RL", "FR", "RR")
SETTLE = 100  # steps until the robot is on its feet; it still moves
BENT = 20.0  # N m/rad: stiffness with which the legs keep their pose


def robot() -> mujoco.MjModel:
    """Return the trotting A1 with an inertial unit, a load cell and six sensors per leg."""
    spec = mujoco.MjSpec.from_file(str(A1))
    for sensor in list(spec.sensors):
        spec.delete(sensor)
    kind, of = mujoco.mjtSensor, mujoco.mjtObj
    sensors = [
        (kind.mjSENS_ACCELEROMETER, of.mjOBJ_SITE, "head"),
        (kind.mjSENS_GYRO, of.mjOBJ_SITE, "head"),
        (kind.mjSENS_VELOCIMETER, of.mjOBJ_SITE, "head"),
        (kind.mjSENS_FRAMEQUAT, of.mjOBJ_SITE, "head"),
        (kind.mjSENS_FORCE, of.mjOBJ_SITE, "FL_toe"),
        (kind.mjSENS_TORQUE, of.mjOBJ_SITE, "FL_toe"),
    ]
    for leg in LEGS:
        spec.body(f"{leg}_calf").add_site(name=f"{leg}_toe", pos=[0, 0, -0.2], size=[0.03] * 3)
        sensors += [
            (kind.mjSENS_FRAMEPOS, of.mjOBJ_GEOM, leg),
            (kind.mjSENS_FRAMELINVEL, of.mjOBJ_GEOM, leg),
            (kind.mjSENS_TOUCH, of.mjOBJ_SITE, f"{leg}_toe"),
            (kind.mjSENS_JOINTPOS, of.mjOBJ_JOINT, f"{leg}_knee"),
            (kind.mjSENS_JOINTVEL, of.mjOBJ_JOINT, f"{leg}_knee"),
            (kind.mjSENS_ACTUATORFRC, of.mjOBJ_ACTUATOR, f"{leg}_knee"),
        ]
    for sensor, element, name in sensors:
        spec.add_sensor(type=sensor, objtype=element, objname=name)
    return spec.compile()


def standing(model: mujoco.MjModel) -> mujoco.MjData:
    """Return the state in which the robot stands on its feet."""
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    home = data.qpos[7:].copy()
    for _ in range(SETTLE):
        data.ctrl[:] = np.clip(BENT / 40 * (home - data.qpos[7:]), -1, 1)
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return data


def measure(rounds: int) -> dict[str, float]:
    """Return microseconds for A and B and for all blocks, with and without `mj_forward`."""
    model = robot()
    data = standing(model)
    state = transition_calls(model, data)
    everything = transition_calls(model, data, sensors=True)
    calls = {f"{key}, A B": state[key] for key in ("ours", "bare")}
    calls |= {f"{key}, all": everything[key] for key in ("ours", "bare")}
    sizes = {"sensors": model.nsensor, "rows": model.nsensordata, "contacts": data.ncon}
    return sizes | best(calls, rounds)
