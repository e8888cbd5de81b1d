"""Exact second derivatives of one MuJoCo step, contracted with a cotangent."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, require_model, shaped
from mujacobian._batch import batch_rows
from mujacobian._manifold import tangent_size
from mujacobian._parameters import Parameters
from mujacobian._product import Pullback, bind
from mujacobian._summary import describe
from mujacobian._threads import thread_count
from mujacobian.errors import ArgumentError


@dataclass(frozen=True, repr=False)
class Hessian:
    """Second derivatives of a scalar through one step.

    With the state x, the controls u and `qfrc_applied` f, in the tangent coordinates of `A`:

        xx (nx, nx), xu (nx, nu), uu (nu, nu), xf (nx, nv), uf (nu, nv), ff (nv, nv)

    `xx`, `uu` and `ff` are symmetric. The blocks of forces are None if they were not requested.
    Batches have a leading axis.

    Attributes:
      xx: derivatives with respect to the state twice.
      xu: derivatives with respect to the state and the controls.
      uu: derivatives with respect to the controls twice.
      xf: derivatives with respect to the state and the applied forces.
      uf: derivatives with respect to the controls and the applied forces.
      ff: derivatives with respect to the applied forces twice.
    """

    xx: Array
    xu: Array
    uu: Array
    xf: Array | None = None
    uf: Array | None = None
    ff: Array | None = None

    def __repr__(self) -> str:
        return describe(
            "Hessian", xx=self.xx, xu=self.xu, uu=self.uu, xf=self.xf, uf=self.uf, ff=self.ff
        )


def hessian(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    d_state: ArrayLike,
    d_sensors: ArrayLike | None = None,
    *,
    forces: bool = False,
    forward: bool = True,
) -> Hessian:
    """Return the second derivative of a scalar through one step: `sum_i d_state[i] d2x'_i / dz2`.

    Here z = (x, u), or (x, u, f) with applied forces. The derivative is that of the function
    `d_state . (x'(x + dx, u + du) - x'(x, u))` at zero, where plus and minus are those of the
    configuration manifold (`mj_integratePos` and `mj_differentiatePos`). It is therefore symmetric.
    It is exact, like `linearize`. An element whose second derivative is not supported raises
    `UnsupportedFeatureError`; `support(model, order=2)` lists these elements.

    Args:
      model: any model that MuJoCo loads.
      data: the state, controls and applied forces; not changed.
      d_state: `(nx,)`, derivative of the scalar with respect to the next state, in the tangent
        coordinates of `A`.
      d_sensors: `(ns,)`, derivative with respect to `sensordata`, whose second derivatives are then
        added. Sensors whose derivative is zero need no support.
      forces: compute the derivatives with respect to `qfrc_applied`, too.
      forward: run `mj_forward` first. Use False if you have just called it on this state.

    Example:
      >>> import mujoco, mujacobian
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody></mujoco>")
      >>> data = mujoco.MjData(model)
      >>> data.qpos[0] = 0.5  # the torque of gravity is proportional to sin(q)
      >>> lin = mujacobian.linearize(model, data)
      >>> H = mujacobian.hessian(model, data, [0, 1])
      >>> float(-H.xx[0, 0] / lin.A[1, 0]).__round__(6)  # tan(0.5)
      0.546302
    """
    require_model(model)
    nx, nu, nv = tangent_size(model), model.nu, model.nv
    sensed = None if d_sensors is None else shaped("d_sensors", d_sensors, (model.nsensordata,))
    blocks = {"xx": np.empty((nx, nx)), "xu": np.empty((nx, nu)), "uu": np.empty((nu, nu))}
    applied = {"xf": np.empty((nx, nv)), "uf": np.empty((nu, nv)), "ff": np.empty((nv, nv))}
    _core.hessian_into(
        model,
        data,
        d_state=shaped("d_state", d_state, (nx,)),
        d_sensors=sensed,
        **blocks,
        **(applied if forces else dict.fromkeys(applied)),
        forward=forward,
    )
    return Hessian(**blocks, **(applied if forces else {}))


def hessian_batch(
    model: mujoco.MjModel,
    states: ArrayLike,
    controls: ArrayLike,
    d_states: ArrayLike,
    d_sensors: ArrayLike | None = None,
    *,
    threads: int | None = None,
) -> Hessian:
    """Return the second derivatives at many states, with a leading axis. Threads compute them.

    Args:
      model: any model that MuJoCo loads.
      states: `(n, nstate)`, rows of `mj_getState(FULLPHYSICS)`, as in `linearize_batch`, which says
        what holds for all other inputs.
      controls: `(n, nu)`.
      d_states: `(n, nx)`, rows of the argument `d_state` of `hessian`.
      d_sensors: `(n, ns)`, rows of the argument `d_sensors` of `hessian`.
      threads: number of threads, by default one per available core. Results do not depend on it.

    Example:
      >>> import mujoco, mujacobian, numpy as np
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody></mujoco>")
      >>> states = [[0, 0.1, 0], [0, 0.2, 0], [0, 0.3, 0]]  # time, qpos, qvel
      >>> mujacobian.hessian_batch(model, states, np.zeros((3, 0)), np.ones((3, 2))).xx.shape
      (3, 2, 2)
    """
    require_model(model)
    rows, inputs = batch_rows(model, states, controls)
    n, nx, nu, ns = len(rows), tangent_size(model), model.nu, model.nsensordata
    made = Hessian(np.empty((n, nx, nx)), np.empty((n, nx, nu)), np.empty((n, nu, nu)))
    _core.hessian_batch_into(
        model,
        states=rows,
        controls=inputs,
        nstate=rows.shape[1],
        n=n,
        d_states=shaped("d_states", d_states, (n, nx)),
        d_sensors=None if d_sensors is None else shaped("d_sensors", d_sensors, (n, ns)),
        xx=made.xx,
        xu=made.xu,
        uu=made.uu,
        threads=thread_count(threads),
    )
    return made


def hvp(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    dx: ArrayLike,
    du: ArrayLike,
    d_state: ArrayLike,
    d_sensors: ArrayLike | None = None,
    *,
    params: Parameters | None = None,
    d_params: ArrayLike | None = None,
    forward: bool = True,
) -> Pullback:
    """Return the product of the second derivative of one step with a direction.

    With the blocks of `hessian(model, data, d_state, d_sensors)`, these are
    `state = xx @ dx + xu @ du` and `controls = xu.T @ dx + uu @ du`, but the blocks are not formed.
    This is the derivative of the result of `vjp` along the direction, in exponential coordinates.
    With parameters, the result also has `params`. Parameters whose second derivative is not
    supported raise `UnsupportedFeatureError`.

    Args:
      model: any model that MuJoCo loads.
      data: the state, controls and applied forces; not changed.
      dx: `(nx,)`, direction of the state, in the tangent coordinates of `A`.
      du: `(nu,)`, direction of the controls.
      d_state: `(nx,)`, as in `hessian`.
      d_sensors: `(ns,)`, as in `hessian`.
      params: parameters, at their values in `model`, that are variables, too.
      d_params: one number per parameter, their direction; None: zeros.
      forward: run `mj_forward` first. Use False if you have just called it on this state.

    Example:
      >>> import mujoco, mujacobian, numpy as np
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody></mujoco>")
      >>> data = mujoco.MjData(model)
      >>> data.qpos[0] = 0.5
      >>> H = mujacobian.hessian(model, data, [1, 2])
      >>> np.allclose(mujacobian.hvp(model, data, [3, 4], [], [1, 2]).state, H.xx @ [3, 4])
      True
    """
    require_model(model)
    if d_params is not None and params is None:
        raise ArgumentError("d_params needs params, the parameters that change")
    nx, ns = tangent_size(model), model.nsensordata
    made = Pullback(np.empty(nx), np.empty(model.nu))
    here = None if params is None else bind(params, model)
    core = [] if here is None else here.core
    along = np.zeros(0 if here is None else len(here))
    if d_params is not None:
        along = shaped("d_params", d_params, along.shape)
    chain = np.zeros((0, 0)) if here is None else here.jacobian(here.values, model)
    first, second = np.zeros((2, len(core)))
    _core.hvp_into(
        model,
        data,
        d_state=shaped("d_state", d_state, (nx,)),
        d_sensors=None if d_sensors is None else shaped("d_sensors", d_sensors, (ns,)),
        dx=shaped("dx", dx, (nx,)),
        du=shaped("du", du, (model.nu,)),
        parameters=core,
        d_params=chain @ along,
        state=made.state,
        controls=made.controls,
        first_params=first,
        params=second,
        forward=forward,
    )
    if here is None:
        return made
    curved = here.curve(here.values, along, first, model, chain)
    return replace(made, params=second @ chain + curved)
