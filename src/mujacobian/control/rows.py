"""Residual rows: affine expressions of sensor readings and controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian._arguments import Array, numbers, require_model, suggestion
from mujacobian.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class Rows:
    """k rows r = matrix (s, u) + constant of sensor readings s and controls u.

    `sensor` and `controls` make rows. Rows can be added, subtracted, indexed, scaled by numbers and
    arrays, and multiplied by a matrix from the left. A single row is broadcast as in NumPy.

    Attributes:
      matrix: `(k, nsensordata + nu)`, coefficients.
      constant: `(k,)`, constant parts.
    """

    matrix: Array
    constant: Array

    __array_ufunc__ = None  # array * rows calls __rmul__ of this class

    def __len__(self) -> int:
        return len(self.constant)

    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[np.int_]) -> Rows:
        chosen = np.atleast_1d(np.arange(len(self))[index])
        return Rows(self.matrix[chosen], self.constant[chosen])

    def __add__(self, other: Rows | ArrayLike) -> Rows:
        if isinstance(other, Rows):
            if self.matrix.shape[1] != other.matrix.shape[1]:
                raise ArgumentError("rows of different models cannot be added")
            a, b = self._repeated(len(other)), other._repeated(len(self))
            return Rows(a.matrix + b.matrix, a.constant + b.constant)
        values = _vector("the summand of rows", other)
        a = self._repeated(values.size)
        return Rows(a.matrix, a.constant + values)

    def __mul__(self, factor: ArrayLike) -> Rows:
        values = _vector("the factor of rows", factor)
        a = self._repeated(values.size)
        return Rows(a.matrix * values[:, None], a.constant * values)

    def __rmatmul__(self, matrix: ArrayLike) -> Rows:
        left = numbers("matrix", matrix)
        if left.ndim not in (1, 2) or left.shape[-1] != len(self):
            raise ArgumentError(f"matrix must have shape (n, {len(self)}), got {left.shape}")
        left = np.atleast_2d(left)
        return Rows(left @ self.matrix, left @ self.constant)

    def __neg__(self) -> Rows:
        return self * -1.0

    def __sub__(self, other: Rows | ArrayLike) -> Rows:
        return self + (
            -other if isinstance(other, Rows) else -numbers("the subtrahend of rows", other)
        )

    def __rsub__(self, other: ArrayLike) -> Rows:
        return -self + other

    def __truediv__(self, divisor: ArrayLike) -> Rows:
        return self * (1 / numbers("the divisor of rows", divisor))

    __radd__ = __add__
    __rmul__ = __mul__

    def _repeated(self, count: int) -> Rows:
        """Return these rows, or a single row `count` times."""
        if len(self) == 1 and count > 1:
            return self[[0] * count]
        if count not in (1, len(self)):
            raise ArgumentError(f"{len(self)} rows and {count} numbers cannot be combined")
        return self


def _vector(name: str, values: ArrayLike) -> Array:
    array = np.atleast_1d(numbers(name, values))
    if array.ndim != 1:
        raise ArgumentError(f"{name} must be a number or a vector, got shape {array.shape}")
    return array


def sensor(model: mujoco.MjModel, name: str) -> Rows:
    """Return the readings of the sensor with this name as rows.

    Example:
      >>> from mujacobian import control
      >>> model = control.tasks.load("arm").model
      >>> tip = control.sensor(model, "tip")
      >>> (tip - [0.5, 0, 0.3]).matrix.shape[0]  # the distance to a target has three rows
      3
      >>> height = tip[2]  # rows can be indexed, scaled and added
    """
    require_model(model)
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SENSOR, name)
    if index < 0:
        names = [model.sensor(k).name for k in range(model.nsensor)]
        hint = suggestion(name, names) if names else "the model has no sensors"
        raise ArgumentError(f'the model has no sensor "{name}": {hint}')
    first, count = int(model.sensor_adr[index]), int(model.sensor_dim[index])
    return _unit(model, first, count)


def controls(model: mujoco.MjModel) -> Rows:
    """Return all controls as rows."""
    require_model(model)
    return _unit(model, model.nsensordata, model.nu)


def stack(*parts: Rows) -> Rows:
    """Return the rows of all parts, concatenated."""
    if not parts:
        raise ArgumentError("stack needs at least one argument")
    if len({part.matrix.shape[1] for part in parts}) > 1:
        raise ArgumentError("rows of different models cannot be stacked")
    return Rows(
        np.concatenate([part.matrix for part in parts]),
        np.concatenate([part.constant for part in parts]),
    )


def _unit(model: mujoco.MjModel, first: int, count: int) -> Rows:
    return Rows(np.eye(count, model.nsensordata + model.nu, first), np.zeros(count))
