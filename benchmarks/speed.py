"""Time of one linearization: ours, MuJoCo's finite differences, Pinocchio's rigid-body part."""

from collections.abc import Callable

import mujoco
import numpy as np

import mujacobian
from benchmarks.robots import Robot
from benchmarks.timing import beside_step, has_differences

EPS = 1e-6


def transition_calls(
    model: mujoco.MjModel, data: mujoco.MjData, *, sensors: bool = False
) -> dict[str, Callable[[], object]]:
    """Return the calls to compare, which all write the same blocks."""
    nx, ns = 2 * model.nv + model.na, model.nsensordata if sensors else 0
    shapes = ((nx, nx), (nx, model.nu), (ns, nx), (ns, model.nu))
    out = [np.zeros(shape) if 0 not in shape else None for shape in shapes]
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: mujacobian.transition(model, data, *out),
        "bare": lambda: mujacobian.transition(model, data, *out, forward=False),
    }
    if has_differences(model):
        calls["fd"] = lambda: mujoco.mjd_transitionFD(model, data, EPS, False, *out)
        calls["fdc"] = lambda: mujoco.mjd_transitionFD(model, data, EPS, True, *out)
    return calls


def pinocchio_call(robot: Robot, seed: int = 0) -> Callable[[], object]:
    """Return Pinocchio's forward-dynamics derivatives of the same URDF at a random state."""
    import pinocchio

    base = [pinocchio.JointModelFreeFlyer()] if robot.floating else []
    model = pinocchio.buildModelFromUrdf(str(robot.path), *base)
    data = model.createData()
    rng = np.random.default_rng(seed)
    q = pinocchio.integrate(model, pinocchio.neutral(model), rng.standard_normal(model.nv))
    v, tau = rng.standard_normal((2, model.nv))
    return lambda: pinocchio.computeABADerivatives(model, data, q, v, tau)


def measure(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    robot: Robot | None = None,
    rounds: int = 25,
    *,
    sensors: bool = False,
) -> dict[str, float]:
    """Return microseconds per call and the ratios of the table."""
    calls = transition_calls(model, data, sensors=sensors)
    if robot is not None:
        calls["pinocchio"] = pinocchio_call(robot)
    times = beside_step(model, data, calls, rounds)
    ratios = {"bare/step": times["bare"] / times["step"]}
    ratios |= {f"{key}/ours": times[key] / times["ours"] for key in ("fd", "fdc") if key in times}
    if robot is not None:
        ratios["fdc/pinocchio"] = times["fdc"] / times["pinocchio"]
        ratios["pinocchio/ours"] = times["pinocchio"] / times["ours"]
    return times | ratios
