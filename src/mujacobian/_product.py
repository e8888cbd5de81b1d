"""Products of one step's Jacobian with vectors, computed without the Jacobian."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, require_model, shaped
from mujacobian._manifold import pull_poses, push_poses, tangent_size
from mujacobian._parameters import Parameters
from mujacobian._summary import summarize
from mujacobian.errors import ArgumentError, ArgumentTypeError


@dataclass(frozen=True, repr=False)
class Pullback:
    """Derivatives of a scalar with respect to the inputs of a step; None if not requested."""

    state: Array
    controls: Array
    forces: Array | None = None
    params: Array | None = None
    mocap: Array | None = None

    __repr__ = summarize


def vjp(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    d_next: ArrayLike | None = None,
    d_sensors: ArrayLike | None = None,
    *,
    forces: bool = False,
    mocap: bool = False,
    params: Parameters | None = None,
    forward: bool = True,
) -> Pullback:
    """Return the gradient of a scalar through one step: `A^T d_next + C^T d_sensors` and the like.

    It is as exact as `linearize`, raises the same errors, and costs one solve: `A` is not formed.

    Args:
      model: any model that MuJoCo loads.
      data: the state, controls and applied forces; not changed.
      d_next: `(nx,)`, derivative with respect to the next state, in the tangent coordinates of `A`.
      d_sensors: `(ns,)`, derivative with respect to `sensordata`.
      forces: compute the derivative with respect to `qfrc_applied`, too.
      mocap: compute the derivative with respect to the poses of mocap bodies, too, `(nmocap, 7)`:
        positions and quaternions, which are normalized to q / |q|.
      params: parameters, at their values in `model`, whose derivative is computed, too.
      forward: run `mj_forward` first. Use False if you have just called it on this state.

    Example:
      >>> import mujoco, mujacobian, numpy as np
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody></mujoco>")
      >>> data = mujoco.MjData(model)
      >>> lin = mujacobian.linearize(model, data)
      >>> np.allclose(mujacobian.vjp(model, data, [1, 2]).state, [1, 2] @ lin.A)
      True
    """
    require_model(model)
    nx = tangent_size(model)
    here = None if params is None else bind(params, model)
    core = [] if here is None else here.core
    poses = _poses(data) if mocap else None
    raw = np.zeros(len(core) + (6 * model.nmocap if mocap else 0))
    state, controls = np.zeros(nx), np.zeros(model.nu)
    applied = np.zeros(model.nv) if forces else None
    _core.vjp_into(
        model,
        data,
        next_state=None if d_next is None else shaped("d_next", d_next, (nx,)),
        sensors=None if d_sensors is None else shaped("d_sensors", d_sensors, (model.nsensordata,)),
        parameters=core,
        state=state,
        ctrl=controls,
        force=applied,
        params=raw,
        mocap=mocap,
        forward=forward,
    )
    of_params, of_poses = raw[: len(core)], raw[len(core) :].reshape(-1, 6)
    return Pullback(
        state,
        controls,
        applied,
        None if here is None else of_params @ here.jacobian(here.values, model),
        None if poses is None else pull_poses(poses, of_poses),
    )


def jvp(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    d_state: ArrayLike | None = None,
    d_controls: ArrayLike | None = None,
    *,
    d_forces: ArrayLike | None = None,
    d_mocap: ArrayLike | None = None,
    params: Parameters | None = None,
    d_params: ArrayLike | None = None,
    sensors: bool = True,
    forward: bool = True,
) -> tuple[Array, Array | None]:
    """Return the change of the next state and of the sensors for a change of the inputs.

    These are `A d_state + B d_controls + Bf d_forces` and `C d_state + D d_controls + Df d_forces`,
    but `A` and `B` are not formed. They are as exact as `linearize`, with the same errors.

    Args:
      model: any model that MuJoCo loads.
      data: the state, controls and applied forces; not changed.
      d_state: `(nx,)`, in the tangent coordinates of `A`.
      d_controls: `(nu,)`.
      d_forces: `(nv,)`, change of `qfrc_applied`.
      d_mocap: `(nmocap, 7)`, change of the positions and quaternions of mocap bodies.
      params: the parameters that change, at their values in `model`.
      d_params: one number per parameter.
      sensors: compute the change of the sensors, too; otherwise None is returned in its place.
      forward: run `mj_forward` first. Use False if you have just called it on this state.

    Example:
      >>> import mujoco, mujacobian, numpy as np
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody></mujoco>")
      >>> data = mujoco.MjData(model)
      >>> lin = mujacobian.linearize(model, data)
      >>> np.allclose(mujacobian.jvp(model, data, [1, 2])[0], lin.A @ [1, 2])
      True
    """
    require_model(model)
    if d_params is not None and params is None:
        raise ArgumentError("d_params needs params, the parameters that change")
    nx = tangent_size(model)
    core: list[tuple[int, int, int]] = []
    raw = [np.zeros(0)]
    if params is not None and d_params is not None:
        here = bind(params, model)
        core = here.core
        raw.append(here.jacobian(here.values, model) @ shaped("d_params", d_params, (len(here),)))
    if d_mocap is not None:
        moved = shaped("d_mocap", d_mocap, (model.nmocap, 7))
        raw.append(push_poses(_poses(data), moved).ravel())
    next_state = np.zeros(nx)
    sensordata = np.zeros(model.nsensordata) if sensors else None
    _core.jvp_into(
        model,
        data,
        state=None if d_state is None else shaped("d_state", d_state, (nx,)),
        ctrl=None if d_controls is None else shaped("d_controls", d_controls, (model.nu,)),
        force=None if d_forces is None else shaped("d_forces", d_forces, (model.nv,)),
        parameters=core,
        params=None if len(raw) == 1 else np.concatenate(raw),
        mocap=d_mocap is not None,
        next_state=next_state,
        sensors=sensordata,
        forward=forward,
    )
    return next_state, sensordata


def _poses(data: mujoco.MjData) -> Array:
    """Return the positions and quaternions of mocap bodies, `(nmocap, 7)`."""
    if not isinstance(data, mujoco.MjData):
        raise ArgumentTypeError(f"data must be a mujoco.MjData, got {type(data).__name__}")
    if (np.linalg.norm(data.mocap_quat, axis=-1) < mujoco.mjMINVAL).any():
        raise ArgumentError("data.mocap_quat has a quaternion of length 0")
    return np.concatenate([data.mocap_pos, data.mocap_quat], axis=-1)


def bind(params: Parameters, model: mujoco.MjModel) -> Parameters:
    """Return the same parameters for this model, which must have the sizes of their own model."""
    if not isinstance(params, Parameters):
        raise ArgumentTypeError(
            f"params must be mujacobian.Parameters, got {type(params).__name__}"
        )
    if params.model.signature != model.signature:
        raise ArgumentError("model and params do not belong together: params are of another model")
    return params.of_model(model)
