"""Exact Jacobians at many states."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core, _fallback
from mujacobian._arguments import Array, numbers, require_model
from mujacobian._differenced import Differenced, may_difference, require_fallback
from mujacobian._linearization import SELFCHECK, Linearization
from mujacobian._manifold import tangent_size
from mujacobian._threads import each, thread_count
from mujacobian.errors import ArgumentError


def linearize_batch(
    model: mujoco.MjModel,
    states: ArrayLike,
    controls: ArrayLike,
    *,
    sensors: bool = True,
    threads: int | None = None,
    fallback: str | None = None,
) -> Linearization:
    """Return the exact Jacobians at many states, with a leading axis. Threads compute them.

    Args:
      model: any model that MuJoCo loads.
      states: `(n, nstate)`, rows of `mj_getState(FULLPHYSICS)`, as in `mujoco.rollout`.
      controls: `(n, nu)`.
      sensors: compute C and D, too.
      threads: number of threads, by default one per available core. Results do not depend on it.
      fallback: "fd" replaces derivatives that do not exist in exact form by finite differences, as
        in `linearize`. By default None.

    All inputs that are not in these rows are as after `mj_resetData`: applied forces are zero,
    mocap bodies have their initial poses, `eq_active0` of the model decides which equality
    constraints are active, and the solver has no warm start.

    Example:
      >>> import mujoco, mujacobian, numpy as np
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody></mujoco>")
      >>> states = [[0, 0.1, 0], [0, 0.2, 0], [0, 0.3, 0]]  # time, qpos, qvel
      >>> mujacobian.linearize_batch(model, states, np.zeros((3, 0))).A.shape
      (3, 2, 2)
    """
    require_model(model)
    rows, inputs = batch_rows(model, states, controls)
    n = len(rows)
    threads = thread_count(threads)
    require_fallback(fallback)
    nx, ns = tangent_size(model), model.nsensordata
    lin = Linearization(
        A=np.empty((n, nx, nx)),
        B=np.empty((n, nx, model.nu)),
        C=np.empty((n, ns, nx)) if sensors else None,
        D=np.empty((n, ns, model.nu)) if sensors else None,
    )
    refused = _core.batch_into(
        model,
        states=rows,
        controls=inputs,
        nstate=rows.shape[1],
        n=n,
        A=lin.A,
        B=lin.B,
        C=lin.C,
        D=lin.D,
        threads=threads,
        may_refuse=may_difference(model, fallback),
    )
    if refused:
        lin = replace(
            lin, differenced=_difference_batch(model, rows, inputs, lin, refused, threads)
        )
    if SELFCHECK:
        from mujacobian.check._selfcheck import verify_batch

        verify_batch(model, rows, inputs, lin)
    return lin


def _difference_batch(
    model: mujoco.MjModel,
    states: Array,
    controls: Array,
    lin: Linearization,
    refused: list[int],
    threads: int,
) -> tuple[Differenced, ...]:
    """Fill the blocks of the refused states of a batch; return the reports of differences."""
    found: dict[int, tuple[Differenced, ...]] = {}

    def work(place: int, data: mujoco.MjData) -> None:
        k = refused[place]
        mujoco.mj_resetData(model, data)
        mujoco.mj_setState(model, data, states[k], mujoco.mjtState.mjSTATE_FULLPHYSICS)
        data.ctrl[:] = controls[k]
        one = _fallback.linearize(model, data, sensors=lin.C is not None, index=(k,))
        found[k] = one.differenced
        for name, block in one.blocks.items():
            getattr(lin, name)[k] = block

    each(model, len(refused), threads, work, lambda place: f"at state {refused[place]}")
    return tuple(report for k in refused for report in found[k])


def batch_rows(
    model: mujoco.MjModel, states: ArrayLike, controls: ArrayLike
) -> tuple[Array, Array]:
    """Return the states and controls of a batch as contiguous arrays with the same rows."""
    rows = _rows("states", states, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    inputs = _rows("controls", controls, model.nu)
    if len(inputs) != len(rows):
        raise ArgumentError(
            f"controls must have as many rows as states, {len(rows)}, got {len(inputs)}"
        )
    return rows, inputs


def _rows(name: str, values: ArrayLike, width: int) -> Array:
    """Return `values` as a contiguous float64 array with rows of the given width."""
    array = numbers(name, values, finite=False)  # the core reports values that are not finite
    if array.ndim != 2 or array.shape[1] != width:
        raise ArgumentError(f"{name} must have shape (n, {width}), got {array.shape}")
    return array
