"""Residual rows: expressions of sensor readings and controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian._arguments import Array, numbers, require_model, suggestion
from mujacobian.errors import ArgumentError, ArgumentTypeError

# NumPy's functions of rows: their names in the core and the exponents of powers
FUNCTIONS = {
    np.sin: ("sin", 0.0),
    np.cos: ("cos", 0.0),
    np.arctan: ("arctan", 0.0),
    np.tanh: ("tanh", 0.0),
    np.exp: ("exp", 0.0),
    np.log: ("log", 0.0),
    np.sqrt: ("power", 0.5),
    np.square: ("power", 2.0),
    np.reciprocal: ("power", -1.0),
}
# NumPy's operators: the methods for rows on the left and on the right
OPERATORS = {
    np.add: ("__add__", "__radd__"),
    np.subtract: ("__sub__", "__rsub__"),
    np.multiply: ("__mul__", "__rmul__"),
    np.divide: ("__truediv__", "__rtruediv__"),
    np.power: ("__pow__", ""),
    np.matmul: ("", "__rmatmul__"),
    np.negative: ("__neg__", ""),
}


@dataclass(frozen=True)
class Entry:
    """An entry of (sensordata, ctrl) of a compiled model, in which both have `width` entries."""

    index: int
    width: int


@dataclass(frozen=True)
class Reading:
    """A component of a named sensor, times the mass of the subtree of a body if there is one."""

    sensor: str
    component: int
    mass_of: str = ""


@dataclass(frozen=True)
class Command:
    """A control of a model with `count` controls."""

    index: int
    count: int


@dataclass(frozen=True, eq=False)
class Function:
    """A product of two rows, or a function of one row; `p` is the exponent of a power."""

    name: str
    p: float
    first: Rows
    second: Rows | None = None


Column = Entry | Reading | Command | Function


@dataclass(frozen=True, eq=False)
class Rows:
    """k rows r = coefficients columns + constant; the columns are sensor readings and controls.

    `sensor`, `controls` and `residuals` make rows. Rows can be added, subtracted, indexed, scaled
    by numbers and arrays, and multiplied by a matrix from the left. They can be multiplied and
    divided by rows, raised to a power, and passed to NumPy's `sin`, `cos`, `arctan`, `tanh`, `exp`,
    `log`, `sqrt`, `square` and `reciprocal`. A single row is broadcast as in NumPy. Where a
    function is not defined or not smooth, such as `sqrt` at 0, the cost is not finite, and a line
    search rejects the trajectory.

    Attributes:
      coefficients: `(k, c)`, coefficients of the columns.
      constant: `(k,)`, constant parts.
      columns: the c quantities that the coefficients multiply.

    Example:
      >>> import numpy as np
      >>> from mujacobian import control
      >>> model = control.tasks.load("arm").model
      >>> speed = control.sensor(model, "yaw_speed")
      >>> power = control.controls(model)[0] * speed  # a product of rows
      >>> smooth = np.sqrt(np.square(speed) + 0.01)
    """

    coefficients: Array
    constant: Array
    columns: tuple[Column, ...]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Rows:  # noqa: ANN401
        """Return a function of rows, or the result of an operator between an array and rows."""
        if method == "__call__" and not options:
            if ufunc in FUNCTIONS:
                name, p = FUNCTIONS[ufunc]
                return self._mapped(name, p)
            left, right = OPERATORS.get(ufunc, ("", ""))
            if left and isinstance(inputs[0], Rows):
                made: Rows = getattr(inputs[0], left)(*inputs[1:])
                return made
            if right and isinstance(inputs[-1], Rows):
                made = getattr(inputs[-1], right)(inputs[0])
                return made
        known = ", ".join(f"np.{function.__name__}" for function in FUNCTIONS)
        raise ArgumentTypeError(
            f"np.{ufunc.__name__} cannot be applied to rows: use operators or {known}"
        )

    @property
    def matrix(self) -> Array:
        """The coefficients of (sensordata, ctrl), `(k, nsensordata + nu)`, of affine rows."""
        entries = [column for column in self.columns if isinstance(column, Entry)]
        if not entries or len(entries) < len(self.columns):
            raise ArgumentError("only affine rows of a compiled model have a matrix")
        out = np.zeros((len(self), entries[0].width))
        out[:, [entry.index for entry in entries]] = self.coefficients
        return out

    def __len__(self) -> int:
        return len(self.constant)

    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[np.int_]) -> Rows:
        chosen = np.atleast_1d(np.arange(len(self))[index])
        return Rows(self.coefficients[chosen], self.constant[chosen], self.columns)

    def __add__(self, other: Rows | ArrayLike) -> Rows:
        if isinstance(other, Rows):
            a, b = self._repeated(len(other)), other._repeated(len(self))
            columns, parts = _joined("added", a, b)
            return Rows(parts[0] + parts[1], a.constant + b.constant, columns)
        values = _vector("the summand of rows", other)
        a = self._repeated(values.size)
        return Rows(a.coefficients, a.constant + values, a.columns)

    def __mul__(self, factor: Rows | ArrayLike) -> Rows:
        if isinstance(factor, Rows):
            a, b = self._repeated(len(factor)), factor._repeated(len(self))
            _joined("multiplied", a, b)  # rows of different models raise an error
            return rows_of([Function("multiply", 0.0, a[k], b[k]) for k in range(len(a))])
        values = _vector("the factor of rows", factor)
        a = self._repeated(values.size)
        return Rows(a.coefficients * values[:, None], a.constant * values, a.columns)

    def __rmatmul__(self, matrix: ArrayLike) -> Rows:
        left = numbers("matrix", matrix)
        if left.ndim not in (1, 2) or left.shape[-1] != len(self):
            raise ArgumentError(f"matrix must have shape (n, {len(self)}), got {left.shape}")
        left = np.atleast_2d(left)
        return Rows(left @ self.coefficients, left @ self.constant, self.columns)

    def __neg__(self) -> Rows:
        return self * -1.0

    def __sub__(self, other: Rows | ArrayLike) -> Rows:
        return self + (
            -other if isinstance(other, Rows) else -numbers("the subtrahend of rows", other)
        )

    def __rsub__(self, other: ArrayLike) -> Rows:
        return -self + other

    def __truediv__(self, divisor: Rows | ArrayLike) -> Rows:
        if isinstance(divisor, Rows):
            return self * divisor._mapped("power", -1.0)
        return self * (1 / numbers("the divisor of rows", divisor))

    def __rtruediv__(self, dividend: ArrayLike) -> Rows:
        return self._mapped("power", -1.0) * dividend

    def __pow__(self, exponent: ArrayLike | Rows) -> Rows:
        if isinstance(exponent, Rows):
            raise ArgumentTypeError("the exponent of rows must be a number, got rows")
        p = numbers("the exponent of rows", exponent)
        if p.ndim or p == 0:
            raise ArgumentError(f"the exponent of rows must be a number, not 0, got {exponent!r}")
        return self if p == 1 else self._mapped("power", float(p))

    __radd__ = __add__
    __rmul__ = __mul__

    def _mapped(self, name: str, p: float) -> Rows:
        return rows_of([Function(name, p, self[k]) for k in range(len(self))])

    def _repeated(self, count: int) -> Rows:
        """Return these rows, or a single row `count` times."""
        if len(self) == 1 and count > 1:
            return self[[0] * count]
        if count not in (1, len(self)):
            raise ArgumentError(f"{len(self)} rows and {count} numbers cannot be combined")
        return self


def _joined(verb: str, *parts: Rows) -> tuple[tuple[Column, ...], list[Array]]:
    """Return the columns of all parts, and the coefficients of each part for all these columns."""
    columns = tuple(dict.fromkeys(column for part in parts for column in part.columns))
    if len({column.width for column in columns if isinstance(column, Entry)}) > 1:
        raise ArgumentError(f"rows of different models cannot be {verb}")
    place = {column: k for k, column in enumerate(columns)}
    made = []
    for part in parts:
        wide = np.zeros((len(part), len(columns)))
        wide[:, [place[column] for column in part.columns]] = part.coefficients
        made.append(wide)
    return columns, made


def rows_of(columns: Sequence[Column]) -> Rows:
    """Return rows, each of which is one of these columns."""
    return Rows(np.eye(len(columns)), np.zeros(len(columns)), tuple(columns))


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
    return _entries(model, first, count)


def controls(model: mujoco.MjModel) -> Rows:
    """Return all controls as rows."""
    require_model(model)
    return _entries(model, model.nsensordata, model.nu)


def stack(*parts: Rows) -> Rows:
    """Return the rows of all parts, concatenated."""
    if not parts:
        raise ArgumentError("stack needs at least one argument")
    columns, made = _joined("stacked", *parts)
    constant = np.concatenate([part.constant for part in parts])
    return Rows(np.concatenate(made), constant, columns)


def _entries(model: mujoco.MjModel, first: int, count: int) -> Rows:
    width = model.nsensordata + model.nu
    return rows_of([Entry(k, width) for k in range(first, first + count)])
