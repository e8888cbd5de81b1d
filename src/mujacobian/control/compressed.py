"""Rows of a cost in the form of the core: affine expressions, and the nodes that they contain."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian.control.rows import Column, Command, Entry, Function, Reading, Rows
from mujacobian.errors import ArgumentError


class AffineRows:
    """Affine expressions in compressed form."""

    def __init__(self) -> None:
        self.start, self.index, self.coefficient = [0], list[int](), list[float]()

    def add(self, entries: list[tuple[int, float]]) -> int:
        """Add an expression with these indices and coefficients, and return its number."""
        self.index += [index for index, _ in entries]
        self.coefficient += [coefficient for _, coefficient in entries]
        self.start.append(len(self.index))
        return len(self.start) - 2

    @property
    def lists(self) -> tuple[list[int], list[int], list[float]]:
        """The lists that the core expects."""
        return self.start, self.index, self.coefficient


class Compressed:
    """Rows of terms whose columns are places in (sensordata, ctrl, nodes) of a model.

    Attributes:
      rows: the rows of all terms.
      operands: the operands of the nodes.
      constants: constant parts of the operands.
      nodes: name, exponent and operands of each node; a missing operand is -1.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model, self.ns, self.nu = model, model.nsensordata, model.nu
        self.rows, self.operands = AffineRows(), AffineRows()
        self.constants: list[float] = []
        self.nodes: list[tuple[str, float, int, int]] = []
        self._numbers: dict[Function, int] = {}

    def add(self, owner: str, rows: Rows) -> None:
        """Add rows; `owner` is what they belong to in errors, such as 'term "name"'."""
        for k in range(len(rows)):
            self.rows.add(self._entries(owner, rows[k]))

    def reads(self, residual: Rows) -> NDArray[np.bool_]:
        """Return which sensor readings these rows depend on, `(ns,)`."""
        out = np.zeros(self.ns, dtype=bool)
        for column in _leaves(residual):
            index, _ = self._place("", column)
            if index < self.ns:
                out[index] = True
        return out

    def _entries(self, owner: str, row: Rows) -> list[tuple[int, float]]:
        """Return the places and coefficients of the columns of one row."""
        made = []
        for k in np.flatnonzero(row.coefficients[0]):
            index, scale = self._place(owner, row.columns[k])
            made.append((index, scale * float(row.coefficients[0, k])))
        return made

    def _place(self, owner: str, column: Column) -> tuple[int, float]:
        """Return the place of a column and a factor."""
        if isinstance(column, Function):
            return self.ns + self.nu + self._node(owner, column), 1.0
        if isinstance(column, Reading):
            return self._reading(owner, column)
        count = self.nu if isinstance(column, Command) else self.ns + self.nu
        if count != (column.count if isinstance(column, Command) else column.width):
            raise ArgumentError(f"{owner} has rows of another model")
        return column.index + (self.ns if isinstance(column, Command) else 0), 1.0

    def _reading(self, owner: str, column: Reading) -> tuple[int, float]:
        index = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_SENSOR, column.sensor)
        if index < 0:
            raise ArgumentError(
                f'{owner} reads the sensor "{column.sensor}", which the model does not have: '
                "compile the specification after control.residuals has added all rows"
            )
        scale = 1.0
        if column.mass_of:
            scale = float(self.model.body_subtreemass[self.model.body(column.mass_of).id])
        return int(self.model.sensor_adr[index]) + column.component, scale

    def _node(self, owner: str, function: Function) -> int:
        """Return the number of a node, which follows the nodes that it depends on."""
        if function not in self._numbers:
            first = self._operand(owner, function.first)
            second = -1 if function.second is None else self._operand(owner, function.second)
            self._numbers[function] = len(self.nodes)
            self.nodes.append((function.name, function.p, first, second))
        return self._numbers[function]

    def _operand(self, owner: str, row: Rows) -> int:
        number = self.operands.add(self._entries(owner, row))
        self.constants.append(float(row.constant[0]))
        return number


def _leaves(rows: Rows) -> Iterator[Entry | Reading | Command]:
    """Yield the readings and controls that rows depend on."""
    found, pending = set[Column](), [rows]
    while pending:
        part = pending.pop()
        for k in np.flatnonzero(part.coefficients.any(axis=0)):
            column = part.columns[k]
            if column in found:
                continue
            found.add(column)
            if not isinstance(column, Function):
                yield column
                continue
            pending += [row for row in (column.first, column.second) if row is not None]
