"""Handles: numbers that stand for a model and options in compiled programs of PyTorch and JAX."""

from __future__ import annotations

import ctypes
import secrets
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

import mujoco
import numpy as np

from mujacobian._arguments import Array, count
from mujacobian._differenced import require_fallback
from mujacobian._host import HostRollout, flattened
from mujacobian._parameters import Parameters
from mujacobian._threads import thread_count
from mujacobian.errors import MujacobianError

# the inputs of a rollout in the order of the bits of a mask
NAMES = ("state", "controls", "forces", "wrenches", "mocap")


class Handle:
    """A model and the options of its rollouts. The handle does not keep the model alive.

    Attributes:
      token: a random number, so that a program of another process does not find a wrong model.
      options: `every`, `threads` and `fallback` of `HostRollout`.
      is_registered: whether programs of JAX can find the model in the core.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        parameters: Parameters | None,
        options: tuple[int, int, str | None],
    ) -> None:
        self.token = secrets.randbits(62)
        self.options = options
        self.is_registered = False
        self._model = ref(model)
        self._parameters = None if parameters is None else ref(parameters)

    def host(self) -> HostRollout:
        """Return the rollouts, which keep the model alive."""
        model = self._model()
        parameters = None if self._parameters is None else self._parameters()
        if model is None or (self._parameters is not None and parameters is None):
            raise MujacobianError("the model of this compiled function does not exist anymore")
        return HostRollout(model, parameters, *self.options)

    def has(self, parameters: Parameters | None) -> bool:
        """Return whether these are the parameters of the handle."""
        mine = None if self._parameters is None else self._parameters()
        return mine is parameters and (mine is None) == (self._parameters is None)


_handles: WeakKeyDictionary[mujoco.MjModel, dict[Any, Handle]] = WeakKeyDictionary()
_by_token: WeakValueDictionary[int, Handle] = WeakValueDictionary()


def handle(
    model: mujoco.MjModel,
    parameters: Parameters | None,
    checkpoint: int | None,
    threads: int | None,
    fallback: str | None,
) -> Handle:
    """Return the handle of a model and options, the same one in every call."""
    every = 1 if checkpoint is None else count("checkpoint", checkpoint)
    require_fallback(fallback)
    options = every, thread_count(threads), fallback
    of_model = _handles.setdefault(model, {})
    key = (None if parameters is None else id(parameters), *options)
    known = of_model.get(key)
    if known is None or not known.has(parameters):
        known = of_model[key] = Handle(model, parameters, options)
        _by_token[known.token] = known
    return known


def of_token(token: int) -> Handle:
    """Return the handle with this token."""
    found = _by_token.get(token)
    if found is None:
        raise MujacobianError("the model of this compiled function does not exist anymore")
    return found


def model_of(token: int) -> mujoco.MjModel:
    """Return the model of the handle with this token."""
    return of_token(token).host().model


def repeat(kind: str, token: int, mask: int, arguments: list[Any], results: list[Any]) -> None:
    """Repeat a call of a compiled program that did not succeed in the core, to raise its error.

    Arguments and results are pairs of an address and a shape. The mask has the bits of `NAMES`.
    """
    host = of_token(token).host()
    names = [name for k, name in enumerate(NAMES) if mask >> k & 1]
    given = [_array(*each) for each in arguments]
    if kind == "simulate":
        made = flattened(host.simulate)(dict(zip(names, given, strict=True)))
    elif kind == "push":
        inputs = {"controls": _controls(host, given[0])}
        moved = dict(zip(names, given[2:], strict=True))
        made = flattened(host.push)(inputs, *given[:2], moved)
    else:
        inputs = {"controls": _controls(host, given[0])}
        # gradients depend on the poses of mocap bodies, and otherwise on the recorded states only
        for name, (_, shape) in zip(names, results, strict=True):
            inputs[name] = given[4] if name == "mocap" else np.zeros(shape)
        work = partial(host.pull_back, wanted=names)
        made = flattened(work)(inputs, *given[:4]).values()
    for (address, shape), values in zip(results, made, strict=True):
        _array(address, shape)[...] = values


def _array(address: int, shape: list[int]) -> Array:
    """Return the array of numbers at an address."""
    size = int(np.prod(shape))
    if size == 0:
        return np.empty(shape)
    numbers = np.ctypeslib.as_array((ctypes.c_double * size).from_address(address))
    # the core requires the native type, which the one of ctypes only equals
    return numbers.view(np.float64).reshape(shape)


def _controls(host: HostRollout, states: Array) -> Array:
    """Return zeros in the shape of the controls that belong to these states."""
    *lead, rows, _ = states.shape
    return np.zeros((*lead, rows - 1, host.model.nu))
