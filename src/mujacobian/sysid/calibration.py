"""Delays, biases and gains of sensors as unknowns."""

from __future__ import annotations

from collections.abc import Iterable

import mujoco
import numpy as np

from mujacobian._arguments import Array, require_model, suggestion
from mujacobian.errors import ArgumentError, ArgumentTypeError

Item = str | tuple[str, str | int | Iterable[str | int]]

FIELDS = ("sensor_bias", "sensor_gain", "sensor_delay")
LONGEST_DELAY = 0.1
_ROTATIONS = (int(mujoco.mjtSensor.mjSENS_FRAMEQUAT), int(mujoco.mjtSensor.mjSENS_BALLQUAT))


class Calibration:
    """Unknown biases, gains and delays of sensors: `reading = gain * sensor(t - delay) + bias`.

    Args:
      model: the model.
      items: fields, or pairs of a field and one or several sensors, by name or index. The fields
        are `sensor_bias` and `sensor_gain`, with one number per component of a sensor, and
        `sensor_delay`, in seconds, with one number per sensor. A field alone stands for all
        sensors. Quaternions have a delay only.
      longest_delay: largest possible delay in seconds, by default 0.1. Readings within this time
        after the first state are left out, because they may be older than the first state.

    Example:
      >>> import mujoco
      >>> from mujacobian.sysid import Calibration
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint name='pivot'/><geom size='.1'/></body>"
      ...     "</worldbody><sensor><jointpos name='angle' joint='pivot'/></sensor></mujoco>")
      >>> Calibration(model, ["sensor_bias", ("sensor_delay", "angle")]).names
      ('sensor_bias["angle"]', 'sensor_delay["angle"]')
    """

    def __init__(
        self, model: mujoco.MjModel, items: Iterable[Item], *, longest_delay: float = LONGEST_DELAY
    ) -> None:
        require_model(model)
        if isinstance(items, str) or not isinstance(items, Iterable):
            raise ArgumentTypeError(f"items must be a list of fields, got {items!r}")
        if not 0 < longest_delay < np.inf:
            raise ArgumentError(f"longest_delay must be positive, got {longest_delay}")
        self.longest_delay = float(longest_delay)
        # field, and the first column in sensordata with the number of columns
        self._entries: list[tuple[str, int, int]] = []
        names = []
        for item in items:
            for field, sensor in _expand(model, item):
                first, size = int(model.sensor_adr[sensor]), int(model.sensor_dim[sensor])
                name = model.sensor(sensor).name
                text = f'{field}["{name}"]' if name else f"{field}[{sensor}]"
                if field == "sensor_delay" or size == 1:
                    self._entries.append((field, first, size))
                    names.append(text)
                    continue
                self._entries += [(field, first + k, 1) for k in range(size)]
                names += [f"{text}[{k}]" for k in range(size)]
        repeated = [name for k, name in enumerate(names) if name in names[:k]]
        if repeated:
            raise ArgumentError(f"{repeated[0]} is asked for twice")
        self.names = tuple(names)
        self._columns = int(model.nsensordata)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<Calibration: {', '.join(self.names)}>"

    @property
    def units(self) -> tuple[str, ...]:
        """The units; that of a bias is the unit of its sensor."""
        units = {"sensor_bias": "as sensor", "sensor_gain": "1", "sensor_delay": "s"}
        return tuple(units[field] for field, _, _ in self._entries)

    @property
    def values(self) -> Array:
        """The numbers of ideal sensors: no bias, gain 1 and no delay."""
        return np.array([float(field == "sensor_gain") for field, _, _ in self._entries])

    @property
    def lower(self) -> Array:
        """Lower bounds: delays are not negative."""
        return np.array([0.0 if f == "sensor_delay" else -np.inf for f, _, _ in self._entries])

    @property
    def upper(self) -> Array:
        """Upper bounds: delays are at most `longest_delay`."""
        longest = self.longest_delay
        return np.array([longest if f == "sensor_delay" else np.inf for f, _, _ in self._entries])

    def dead_time(self) -> Array:
        """Return for each column the time after the first state without usable readings."""
        made = np.zeros(self._columns)
        for field, first, size in self._entries:
            if field == "sensor_delay":
                made[first : first + size] = self.longest_delay
        return made

    def columns(self, field: str, values: Array, default: float) -> Array:
        """Return the bias, gain or delay of each column of sensordata."""
        made = np.full(self._columns, default)
        for (own, first, size), value in zip(self._entries, values, strict=True):
            if own == field:
                made[first : first + size] = value
        return made

    def write_slopes(self, slopes: Array, raw: Array, rates: Array) -> None:
        """Write the derivatives of readings by the entries (SID-7).

        Args:
          slopes: output, `(m, entries, columns)`, zero before.
          raw: sensors before the gain, `(m, columns)`.
          rates: derivatives of the readings by time, `(m, columns)`.
        """
        for k, (field, first, size) in enumerate(self._entries):
            here = slice(first, first + size)
            if field == "sensor_bias":
                slopes[:, k, here] = 1
            elif field == "sensor_gain":
                slopes[:, k, here] = raw[:, here]
            else:
                slopes[:, k, here] = -rates[:, here]


def _expand(model: mujoco.MjModel, item: Item) -> list[tuple[str, int]]:
    """Return the pairs of field and sensor that an item stands for."""
    is_pair = isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str)
    if not isinstance(item, str) and not is_pair:
        raise ArgumentTypeError(f"items must be fields or pairs (field, sensors), got {item!r}")
    field, chosen = (item, None) if isinstance(item, str) else item
    if field not in FIELDS:
        raise ArgumentError(f"unknown field {field!r}: {suggestion(field, FIELDS)}")
    is_rotation = np.isin(model.sensor_type, _ROTATIONS) & (field != "sensor_delay")
    if chosen is None:
        return [(field, sensor) for sensor in range(model.nsensor) if not is_rotation[sensor]]
    several = [chosen] if isinstance(chosen, str | int) else list(chosen)
    names = [model.sensor(k).name for k in range(model.nsensor)]
    made = []
    for one in several:
        index = names.index(one) if isinstance(one, str) and one in names else one
        if not isinstance(index, int) or not 0 <= index < model.nsensor:
            hint = suggestion(str(one), [name for name in names if name])
            raise ArgumentError(f"{field}: the model has no sensor {one!r}: {hint}")
        if is_rotation[index]:
            raise ArgumentError(f"{field}: sensor {one!r} is a quaternion, which has only a delay")
        made.append((field, index))
    return made
