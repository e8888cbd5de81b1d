"""Derivatives of steps with user callbacks: mjcb_control, mjcb_passive and mjcb_sensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian._arguments import Array, numbers
from mujacobian._manifold import tangent_size
from mujacobian.errors import ArgumentError, ArgumentTypeError, UnsupportedFeatureError

ACCELERATION = int(mujoco.mjtStage.mjSTAGE_ACC)
REAL = int(mujoco.mjtDataType.mjDATATYPE_REAL)
POSITIVE = int(mujoco.mjtDataType.mjDATATYPE_POSITIVE)

Function = Callable[[mujoco.MjModel, mujoco.MjData], None]
PassiveJacobian = Callable[[mujoco.MjModel, mujoco.MjData], ArrayLike]
SensorFunction = Callable[[mujoco.MjModel, mujoco.MjData, int], None]
SensorJacobian = Callable[[mujoco.MjModel, mujoco.MjData], ArrayLike | tuple[ArrayLike, ...]]
ControlJacobian = Callable[[mujoco.MjModel, mujoco.MjData], ArrayLike | tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True)
class Callbacks:
    """Callbacks with Jacobians; a Jacobian is None if its callback is not installed."""

    control: Function | None = None
    control_jacobian: ControlJacobian | None = None
    passive: Function | None = None
    passive_jacobian: PassiveJacobian | None = None
    sensor: SensorFunction | None = None
    sensor_jacobian: SensorJacobian | None = None

    @property
    def differentiates_control(self) -> bool:
        """Whether the Jacobian belongs to the function that MuJoCo calls now."""
        return self.control_jacobian is not None and mujoco.get_mjcb_control() is self.control

    @property
    def differentiates_passive(self) -> bool:
        """Whether the Jacobian belongs to the function that MuJoCo calls now."""
        return self.passive_jacobian is not None and mujoco.get_mjcb_passive() is self.passive

    @property
    def differentiates_sensor(self) -> bool:
        """Whether the Jacobian belongs to the function that MuJoCo calls now."""
        return self.sensor_jacobian is not None and mujoco.get_mjcb_sensor() is self.sensor


NONE = Callbacks()
_current = NONE  # MuJoCo's callbacks are global, and so are their Jacobians


def current() -> Callbacks:
    """Return the callbacks that `callbacks` has installed."""
    return _current


@contextmanager
def callbacks(
    *,
    control: Function | None = None,
    control_jacobian: ControlJacobian | None = None,
    passive: Function | None = None,
    passive_jacobian: PassiveJacobian | None = None,
    sensor: SensorFunction | None = None,
    sensor_jacobian: SensorJacobian | None = None,
) -> Iterator[None]:
    """Install callbacks of MuJoCo whose Jacobians are known, for the duration of a `with` block.

    Inside of the block, `mj_step` calls the functions as after `mujoco.set_mjcb_control`,
    `mujoco.set_mjcb_passive` and `mujoco.set_mjcb_sensor`, and `linearize` returns the derivatives
    of the closed loop. All other functions of this package raise `UnsupportedFeatureError`, as they
    do for callbacks without Jacobians.

    Args:
      control: sets `data.ctrl`.
      control_jacobian: returns du/dx, the derivative (nu, nx) of the controls that `control` sets
        with respect to the state x = (q, v, act) in the tangent coordinates of `linearize`. If they
        also depend on the controls before the call, it returns the pair du/dx, du/du (nu, nu).
      passive: adds to `data.qfrc_passive`.
      passive_jacobian: returns the derivative (nv, nx) of the force that `passive` adds.
      sensor: sets the entries of user sensors in `data.sensordata`; its third argument is the
        stage.
      sensor_jacobian: returns the derivative (n, nx) of the n values of all user sensors, in the
        order of `sensordata`, or a pair with their derivative (n, nu) with respect to the controls,
        or a triple with that (n, nv) with respect to applied forces. Derivatives that are left out
        are zero. With `control` and `passive`, all of them are those of the closed loop.

    A callback without a Jacobian is installed, too, and raises `UnsupportedFeatureError` in
    `linearize`. The Jacobians are evaluated on the data that `linearize` receives.

    Example:
      >>> import mujoco, mujacobian, numpy as np
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint name='hip'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody><actuator><motor joint='hip'/></actuator></mujoco>")
      >>> gain = np.array([[-3.0, -1.0]])
      >>> def control(model, data):
      ...     data.ctrl[:] = gain @ [*data.qpos, *data.qvel]
      >>> with mujacobian.callbacks(control=control, control_jacobian=lambda model, data: gain):
      ...     closed = mujacobian.linearize(model, mujoco.MjData(model))
      >>> open_ = mujacobian.linearize(model, mujoco.MjData(model))
      >>> bool(np.allclose(closed.A, open_.A + open_.B @ gain))
      True
    """
    global _current
    given = Callbacks(control, control_jacobian, passive, passive_jacobian, sensor, sensor_jacobian)
    for name in ("control", "passive", "sensor"):
        if getattr(given, name) is None and getattr(given, f"{name}_jacobian") is not None:
            raise ArgumentError(f"{name}_jacobian is given without {name}")
    for name, value in vars(given).items():
        if value is not None and not callable(value):
            raise ArgumentTypeError(f"{name} must be a function, got {type(value).__name__}")
    before = _current
    functions = mujoco.get_mjcb_control(), mujoco.get_mjcb_passive(), mujoco.get_mjcb_sensor()
    try:
        if control is not None:
            mujoco.set_mjcb_control(control)
        if passive is not None:
            mujoco.set_mjcb_passive(passive)
        if sensor is not None:
            mujoco.set_mjcb_sensor(sensor)
        _current = given
        yield
    finally:
        _current = before
        mujoco.set_mjcb_control(functions[0])
        mujoco.set_mjcb_passive(functions[1])
        mujoco.set_mjcb_sensor(functions[2])


def require_single_stage(model: mujoco.MjModel) -> None:
    """Raise if the integrator calls the callbacks more than once per step."""
    if model.opt.integrator == int(mujoco.mjtIntegrator.mjINT_RK4):
        raise UnsupportedFeatureError(
            "the integrator RK4", "it calls user callbacks at four states of each step"
        )


def control_slopes(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[Array, Array]:
    """Return the derivatives du/dx (nu, nx) and du/du (nu, nu) of the control callback."""
    assert _current.control_jacobian is not None
    given = _current.control_jacobian(model, data)
    state, before = given if isinstance(given, tuple) else (given, np.zeros((model.nu, model.nu)))
    return (
        _matrix("control_jacobian", state, (model.nu, tangent_size(model))),
        _matrix("control_jacobian", before, (model.nu, model.nu)),
    )


def passive_slopes(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return the derivative (nv, nx) of the force of the passive callback."""
    assert _current.passive_jacobian is not None
    given = _current.passive_jacobian(model, data)
    return _matrix("passive_jacobian", given, (model.nv, tangent_size(model)))


def is_user_sensor(model: mujoco.MjModel) -> NDArray[np.bool_]:
    """Return a mask of the sensors that the sensor callback computes."""
    return np.asarray(model.sensor_type == int(mujoco.mjtSensor.mjSENS_USER))


def user_rows(model: mujoco.MjModel) -> NDArray[np.intp]:
    """Return the entries of `sensordata` that the sensor callback computes."""
    return np.flatnonzero(np.repeat(is_user_sensor(model), model.sensor_dim))


def sensor_slopes(
    model: mujoco.MjModel, data: mujoco.MjData, *, forces: bool
) -> tuple[Array, Array, Array]:
    """Return the derivatives of the user sensors by state, controls and applied forces."""
    assert _current.sensor_jacobian is not None
    given = _current.sensor_jacobian(model, data)
    parts = given if isinstance(given, tuple) else (given,)
    user, rows = is_user_sensor(model), user_rows(model)
    if forces and len(parts) < 3 and (model.sensor_needstage[user] == ACCELERATION).any():
        raise UnsupportedFeatureError(
            "mjcb_sensor", "sensor_jacobian returns no derivative with respect to applied forces"
        )
    widths = tangent_size(model), model.nu, model.nv
    if len(parts) > len(widths):
        raise ArgumentError(f"sensor_jacobian must return up to 3 arrays, got {len(parts)}")
    slopes = [
        _matrix("sensor_jacobian", parts[k], (len(rows), width))
        if k < len(parts)
        else np.zeros((len(rows), width))
        for k, width in enumerate(widths)
    ]
    constant = _is_constant(model, data)[rows]
    by_state, by_control, by_force = (np.where(constant[:, None], 0.0, x) for x in slopes)
    return by_state, by_control, by_force


def _is_constant(model: mujoco.MjModel, data: mujoco.MjData) -> NDArray[np.bool_]:
    """Return which entries of `sensordata` a cutoff clamps, or are not computed (SEN-2)."""
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR:
        return np.ones(model.nsensordata, bool)
    cutoff = np.repeat(model.sensor_cutoff, model.sensor_dim)
    kind = np.repeat(model.sensor_datatype, model.sensor_dim)
    real, positive = kind == REAL, kind == POSITIVE
    beyond = real & (abs(data.sensordata) >= cutoff) | positive & (data.sensordata >= cutoff)
    return np.asarray((cutoff > 0) & beyond)


def _matrix(name: str, value: ArrayLike, shape: tuple[int, int]) -> Array:
    """Return what a Jacobian callback returned, as an array of the required shape."""
    array = numbers(f"the result of {name}", value)
    if array.shape != shape:
        raise ArgumentError(f"{name} must return an array of shape {shape}, got {array.shape}")
    return array
