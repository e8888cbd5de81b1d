"""Derivatives of steps in which user callbacks take part: mjcb_control and mjcb_passive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers
from mujacobian._manifold import tangent_size
from mujacobian.errors import ArgumentError, ArgumentTypeError, UnsupportedFeatureError

Function = Callable[[mujoco.MjModel, mujoco.MjData], None]
PassiveJacobian = Callable[[mujoco.MjModel, mujoco.MjData], ArrayLike]
ControlJacobian = Callable[[mujoco.MjModel, mujoco.MjData], ArrayLike | tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True)
class Callbacks:
    """Callbacks with Jacobians; a Jacobian is None if its callback is not installed."""

    control: Function | None = None
    control_jacobian: ControlJacobian | None = None
    passive: Function | None = None
    passive_jacobian: PassiveJacobian | None = None

    @property
    def differentiates_control(self) -> bool:
        """Whether the Jacobian belongs to the function that MuJoCo calls now."""
        return self.control_jacobian is not None and mujoco.get_mjcb_control() is self.control

    @property
    def differentiates_passive(self) -> bool:
        """Whether the Jacobian belongs to the function that MuJoCo calls now."""
        return self.passive_jacobian is not None and mujoco.get_mjcb_passive() is self.passive


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
) -> Iterator[None]:
    """Install callbacks of MuJoCo whose Jacobians are known, for the duration of a `with` block.

    Inside of the block, `mj_step` calls the functions as after `mujoco.set_mjcb_control` and
    `mujoco.set_mjcb_passive`, and `linearize` returns the derivatives of the closed loop. All other
    functions of this package raise `UnsupportedFeatureError`, as they do for callbacks without
    Jacobians.

    Args:
      control: sets `data.ctrl`.
      control_jacobian: returns du/dx, the derivative (nu, nx) of the controls that `control` sets
        with respect to the state x = (q, v, act) in the tangent coordinates of `linearize`. If they
        also depend on the controls before the call, it returns the pair du/dx, du/du (nu, nu).
      passive: adds to `data.qfrc_passive`.
      passive_jacobian: returns the derivative (nv, nx) of the force that `passive` adds.

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
    given = Callbacks(control, control_jacobian, passive, passive_jacobian)
    for name in ("control", "passive"):
        if getattr(given, name) is None and getattr(given, f"{name}_jacobian") is not None:
            raise ArgumentError(f"{name}_jacobian is given without {name}")
    for name, value in vars(given).items():
        if value is not None and not callable(value):
            raise ArgumentTypeError(f"{name} must be a function, got {type(value).__name__}")
    before = _current, mujoco.get_mjcb_control(), mujoco.get_mjcb_passive()
    try:
        if control is not None:
            mujoco.set_mjcb_control(control)
        if passive is not None:
            mujoco.set_mjcb_passive(passive)
        _current = given
        yield
    finally:
        _current = before[0]
        mujoco.set_mjcb_control(before[1])
        mujoco.set_mjcb_passive(before[2])


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


def _matrix(name: str, value: ArrayLike, shape: tuple[int, int]) -> Array:
    """Return what a Jacobian callback returned, as an array of the required shape."""
    array = numbers(f"the result of {name}", value)
    if array.shape != shape:
        raise ArgumentError(f"{name} must return an array of shape {shape}, got {array.shape}")
    return array
