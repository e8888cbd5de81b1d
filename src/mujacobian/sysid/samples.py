"""Samples with time stamps, and their conversion to the steps of a model."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers, shaped, suggestion
from mujacobian.errors import ArgumentError, ArgumentTypeError

# a sample less than this fraction of a step after a step counts as a sample at the step
ROUNDING = 1e-6


class TimeSeries(Protocol):
    """The attributes of `mujoco.sysid.TimeSeries` that are read."""

    times: Any
    data: Any
    signal_mapping: Any


Series = TimeSeries | tuple[ArrayLike, ArrayLike]


@dataclass(frozen=True)
class Samples:
    """Numbers with increasing time stamps; NaN marks missing ones."""

    times: Array
    values: Array


def control_columns(model: mujoco.MjModel) -> dict[str, int]:
    """Return the places of controls by the names of actuators, and by these names with _ctrl."""
    names = [model.actuator(k).name for k in range(model.nu)]
    sensors = sensor_columns(model)
    plain = {name: k for k, name in enumerate(names) if name and name not in sensors}
    return plain | {f"{name}_ctrl": k for k, name in enumerate(names) if name}


def sensor_columns(model: mujoco.MjModel) -> dict[str, int]:
    """Return the places in sensordata: `name` of a number, `name[k]` of a component."""
    made = {}
    for sensor in range(model.nsensor):
        name = model.sensor(sensor).name
        first, size = int(model.sensor_adr[sensor]), int(model.sensor_dim[sensor])
        if name and size == 1:
            made[name] = first
        elif name:
            made |= {f"{name}[{k}]": first + k for k in range(size)}
    return made


def read_csv(
    model: mujoco.MjModel, path: Path, time: str, columns: Mapping[str, str | None]
) -> tuple[Samples, Samples]:
    """Return the controls and the sensor readings of a table with a header."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row]
    if len(rows) < 2:
        raise ArgumentError(f"{path}: there must be a header and at least one row of numbers")
    header = [name.strip() for name in rows[0]]
    for name in columns:
        if name not in header:
            raise ArgumentError(f"{path}: there is no column {name!r}, {suggestion(name, header)}")
    if time not in header:
        raise ArgumentError(f"{path}: there is no column {time!r}, {suggestion(time, header)}")
    table = np.array([_numbers(path, k + 2, row, header) for k, row in enumerate(rows[1:])])
    times = _stamps(f"{path}: column {time!r}", table[:, header.index(time)])
    controls = np.full((len(times), model.nu), np.nan)
    sensordata = np.full((len(times), model.nsensordata), np.nan)
    of_controls, of_sensors = control_columns(model), sensor_columns(model)
    for k, name in enumerate(header):
        target = columns.get(name, name)
        if name == time or target is None:
            continue
        if target in of_sensors:
            sensordata[:, of_sensors[target]] = table[:, k]
        elif target in of_controls:
            controls[:, of_controls[target]] = table[:, k]
        else:
            raise ArgumentError(
                f"{path}: the model has no actuator or sensor {target!r},"
                f" {suggestion(target, [*of_sensors, *of_controls])} To skip the column, use"
                f" columns={{{name!r}: None}}"
            )
    return Samples(times, controls), Samples(times, sensordata)


def _numbers(path: Path, line: int, row: Sequence[str], header: Sequence[str]) -> list[float]:
    if len(row) != len(header):
        raise ArgumentError(
            f"{path}, line {line}: the header has {len(header)} columns, this row has {len(row)}"
        )
    made = []
    for name, text in zip(header, row, strict=True):
        try:
            made.append(float(text) if text.strip() else np.nan)
        except ValueError:
            raise ArgumentError(
                f"{path}, line {line}, column {name!r}: {text!r} is not a number"
            ) from None
    return made


def read_series(
    name: str, series: Series, width: int, columns: Mapping[str, int], *, entries: bool
) -> Samples:
    """Return the samples of a time series, or of a pair of times and rows.

    Args:
      name: name of the argument.
      series: the time series. With a signal mapping, its columns are assigned by name; without
        one, they must be all columns of the model in its order.
      width: number of columns of the model.
      columns: places of columns by name.
      entries: whether a signal of several numbers is listed as `name[k]`.
    """
    if isinstance(series, tuple) and len(series) == 2:
        times, values, mapping = *series, None
    elif hasattr(series, "times") and hasattr(series, "data"):
        times, values = series.times, series.data
        mapping = getattr(series, "signal_mapping", None)
    else:
        raise ArgumentTypeError(
            f"{name} must be a mujoco.sysid.TimeSeries or a pair (times, rows), got"
            f" {type(series).__name__}"
        )
    stamps = _stamps(f"{name}: times", numbers(f"{name}: times", times, finite=False))
    rows = numbers(name, values, finite=False)
    if rows.ndim == 1:
        rows = rows[:, None]
    if not mapping:
        return Samples(stamps, shaped(name, rows, (len(stamps), width), finite=False))
    made = np.full((len(stamps), width), np.nan)
    for signal, (_, places) in mapping.items():
        for k, place in enumerate(np.atleast_1d(places)):
            target = f"{signal}[{k}]" if entries and np.size(places) > 1 else signal
            if target not in columns:
                hint = suggestion(target, list(columns))
                raise ArgumentError(f"{name}: the model has no signal {target!r}, {hint}")
            made[:, columns[target]] = rows[:, place]
    return Samples(stamps, made)


def _stamps(name: str, times: Array) -> Array:
    """Return time stamps; raise if they do not increase."""
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all():
        raise ArgumentError(f"{name} must be finite numbers, one per row")
    for k in np.flatnonzero(np.diff(times) <= 0)[:1]:
        raise ArgumentError(
            f"{name} must increase, but row {k + 1} has {times[k + 1]:g} after {times[k]:g}"
        )
    return times


def on_steps(
    model: mujoco.MjModel, controls: Samples, readings: Samples, interpolation: str
) -> tuple[Array, Array, Array]:
    """Return the controls of all steps, and the readings with their times from the first step.

    The first step is at the first time at which every control is known. Readings before it are
    left out, because the state there is unknown.
    """
    if interpolation not in ("previous", "linear"):
        raise ArgumentError(f'interpolation must be "previous" or "linear", got {interpolation!r}')
    known = [np.flatnonzero(~np.isnan(column)) for column in controls.values.T]
    for k, places in enumerate(known):
        if not len(places):
            name = model.actuator(k).name or f"actuator {k}"
            raise ArgumentError(f"no control of {name!r} was recorded")
    begin = max((float(controls.times[places[0]]) for places in known), default=readings.times[0])
    h = model.opt.timestep
    times = readings.times - begin
    kept = (times >= -ROUNDING * h) & ~np.isnan(readings.values).all(axis=1)
    if not kept.any():
        raise ArgumentError("there is no reading after the first controls")
    times = np.maximum(times[kept], 0.0)
    steps = int(np.ceil(times[-1] / h - ROUNDING)) + 1
    grid = begin + h * np.arange(steps)
    made = np.empty((steps, model.nu))
    for k, places in enumerate(known):
        stamps, values = controls.times[places], controls.values[places, k]
        if interpolation == "linear":
            made[:, k] = np.interp(grid, stamps, values)
        else:
            held = np.searchsorted(stamps, grid + ROUNDING * h, side="right") - 1
            made[:, k] = values[np.maximum(held, 0)]
    return made, np.minimum(times, (steps - 1) * h), readings.values[kept]


def first_reading(model: mujoco.MjModel, sensordata: Array) -> Array:
    """Return the initial state of the model with the first readings of its joint sensors."""
    state = np.concatenate([model.qpos0, np.zeros(model.nv + model.na)])
    places = {
        int(mujoco.mjtSensor.mjSENS_JOINTPOS): model.jnt_qposadr,
        int(mujoco.mjtSensor.mjSENS_JOINTVEL): model.nq + model.jnt_dofadr,
    }
    for sensor in range(model.nsensor):
        column = sensordata[:, model.sensor_adr[sensor]]
        there = np.flatnonzero(~np.isnan(column))
        if int(model.sensor_type[sensor]) in places and len(there):
            joint = model.sensor_objid[sensor]
            state[places[int(model.sensor_type[sensor])][joint]] = column[there[0]]
    return state
