"""Single precision at the surface: functions that take and return it, and compute in double."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from mujacobian._trajectory import Trajectory
from mujacobian.errors import ArgumentTypeError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

NAMES = {"float32", "float64", "torch.float32", "torch.float64"}


def single(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a function that takes and returns arrays of single precision, and computes in double.

    Arrays of single precision in the arguments are converted to double, which is exact. All arrays
    of double precision in the result are rounded to single at the end. The rule is the same for
    NumPy, PyTorch and JAX. Gradients of tensors pass the conversions: they are computed in double
    and arrive in single. JAX needs `jax_enable_x64`, as always.

    Args:
      function: a function of this package, such as `mujacobian.linearize` or
        `mujacobian.torch.rollout`, or a method such as `trajectory.gradient`. A function that
        returns a `Trajectory` raises `ArgumentTypeError`, because a trajectory needs its states in
        double: wrap its methods instead.

    Example:
      >>> import mujoco, mujacobian, numpy as np
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint name='pivot'/><geom size='.1'/></body>"
      ...     "</worldbody><actuator><motor joint='pivot'/></actuator></mujoco>")
      >>> trajectory = mujacobian.rollout(model, [0, 0], np.ones((50, 1)))
      >>> d_states = np.ones(trajectory.states.shape, np.float32)
      >>> mujacobian.single(trajectory.gradient)(d_states).controls.dtype
      dtype('float32')
    """

    @wraps(function)
    def wrapped(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        given = tuple(_convert(each, 64) for each in arguments)
        named = {name: _convert(each, 64) for name, each in options.items()}
        made = function(*given, **named)
        if isinstance(made, Trajectory):
            raise ArgumentTypeError(
                "a Trajectory needs double precision: wrap its methods, as in"
                " single(trajectory.gradient)"
            )
        return _convert(made, 32)  # type: ignore[no-any-return]

    return wrapped


def _convert(value: Any, bits: int) -> Any:  # noqa: ANN401
    """Return a value with all its arrays of floating-point numbers in 32 or 64 bits."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_convert(each, bits) for each in value)
    if bits == 32 and is_dataclass(value) and not isinstance(value, type):
        made = {each.name: _convert(getattr(value, each.name), 32) for each in fields(value)}
        return replace(value, **made)
    name = str(getattr(value, "dtype", ""))
    if name not in NAMES or name.endswith(str(bits)):
        return value
    if name.startswith("torch."):
        return value.double() if bits == 64 else value.float()
    return value.astype(f"float{bits}")
